# SPDX-License-Identifier: GPL-2.0-only
# Compiles OBJECTS again, each as kbuild did and with FLAGS as well: make -f tune.mk OBJECTS="..." FLAGS="..."
pound := \#

all: $(OBJECTS:%=tuned/%)

# how kbuild compiled them: cmd_OBJECT, or savedcmd_OBJECT since 6.5
include $(foreach object,$(OBJECTS),$(dir $(object)).$(notdir $(object)).cmd)

# the command's file stays the newer of the two, as kbuild leaves it
tuned/%:
	@echo "  TUNE    $*"
	@$(subst -c -o,$(FLAGS) -c -o,$(or $(savedcmd_$*),$(cmd_$*)))
	@rm -f $(dir $*).$(notdir $*).d
	@touch $(dir $*).$(notdir $*).cmd

.PHONY: all

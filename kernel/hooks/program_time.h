/* SPDX-License-Identifier: GPL-2.0-only */
/* Virtual time for programs that do not sleep: program_time.c. */
#ifndef HOURGLASS_PROGRAM_TIME_H
#define HOURGLASS_PROGRAM_TIME_H

#include <linux/types.h>

struct uml_pt_regs;

void program_time_enter(void);
void program_time_leave(int call, long result);

/* Whether what trapped was a read of the time stamp counter; it is carried out then. */
bool program_time_read_tsc(struct uml_pt_regs *regs);

#endif

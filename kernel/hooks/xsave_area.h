/* SPDX-License-Identifier: GPL-2.0-only */
/* The floating-point registers of a host's process: xsave_area.c. */
#ifndef HOURGLASS_XSAVE_AREA_H
#define HOURGLASS_XSAVE_AREA_H

#define HOURGLASS_XSAVE_SIZE	2696	/* bytes */

/* Reads the registers of a process that is stopped, as a set of ptrace's (NT_X86_XSTATE). */
int xsave_area_read(int pid, long regset, unsigned long *head);

/* Writes them. */
int xsave_area_write(int pid, long regset, const unsigned long *head);

#endif

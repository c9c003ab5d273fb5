/* SPDX-License-Identifier: GPL-2.0-only */
/* The floating-point registers of a process on the host; see xsave_area.c. */
#ifndef HOURGLASS_XSAVE_AREA_H
#define HOURGLASS_XSAVE_AREA_H

#define HOURGLASS_XSAVE_SIZE	2696	/* bytes of `head` */

/* Reads a stopped process's registers (NT_X86_XSTATE) into `head`. Returns 0 or -errno. */
int xsave_area_read(int pid, long regset, unsigned long *head);

/* Writes them from `head`. Returns 0 or -errno. */
int xsave_area_write(int pid, long regset, const unsigned long *head);

#endif

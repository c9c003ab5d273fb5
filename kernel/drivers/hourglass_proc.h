/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _HOURGLASS_PROC_H
#define _HOURGLASS_PROC_H

struct proc_dir_entry;

/* The folder /proc/hourglass; NULL if it cannot be made. */
struct proc_dir_entry *hourglass_proc(void);

#endif

// SPDX-License-Identifier: GPL-2.0-only
/* /proc/hourglass, where the drivers have their files. */
#include <linux/proc_fs.h>
#include "hourglass_proc.h"

struct proc_dir_entry *hourglass_proc(void)
{
	static struct proc_dir_entry *folder;

	if (!folder)
		folder = proc_mkdir("hourglass", NULL);
	return folder;
}

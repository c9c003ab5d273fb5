// SPDX-License-Identifier: GPL-2.0-only
/* /proc/hourglass, the directory of the drivers' files. Only the agent opens them. */
#include <linux/proc_fs.h>
#include "../../../../fs/proc/internal.h"
#include "hourglass_proc.h"

static struct dentry *hourglass_lookup(struct inode *dir, struct dentry *dentry, unsigned int flags)
{
	if (!hourglass_is_agent())
		return ERR_PTR(-EACCES);
	return proc_lookup(dir, dentry, flags);
}

static const struct inode_operations hourglass_folder = {
	.lookup = hourglass_lookup,
};

struct proc_dir_entry *hourglass_proc(void)
{
	static struct proc_dir_entry *folder;

	if (!folder) {
		folder = proc_mkdir("hourglass", NULL);
		if (folder)
			folder->proc_iops = &hourglass_folder;
	}
	return folder;
}

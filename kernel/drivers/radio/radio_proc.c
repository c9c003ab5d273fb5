// SPDX-License-Identifier: GPL-2.0-only
/*
 * /proc/hourglass/radio takes one command per line, in whole lines:
 *
 *	phy NAME key=value ...	creates a radio; keys: see radio_params.c; addr=MAC
 *	set NAME key=value ...	changes it
 *
 * A read returns a line of JSON per radio, see radio_stats.c. A refused command returns its
 * errno, and the kernel's log has the reason.
 */
#include <linux/init.h>
#include <linux/mutex.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include "hourglass_proc.h"
#include "radio.h"

static DEFINE_MUTEX(radio_commands);

static int radio_command_phy(const char *name, char *arguments)
{
	struct radio_params params;
	u8 address[ETH_ALEN] = {};
	int err;

	err = radio_params_parse(&params, address, arguments, false);
	return err ?: radio_phy_make(name, &params, address);
}

static int radio_command_set(const char *name, char *arguments)
{
	struct radio_phy *phy = radio_phy_find(name);
	struct radio_params params;
	int err;

	if (!phy)
		return -ENODEV;
	params = phy->params;
	err = radio_params_parse(&params, NULL, arguments, true);
	return err ?: radio_phy_apply(phy, &params);
}

static int radio_command(char *line)
{
	char *verb = strsep(&line, " \t"), *name = strsep(&line, " \t"), none[] = "";

	if (!*verb && !name)
		return 0;
	if (!name || !*name)
		return -EINVAL;
	if (!strcmp(verb, "phy"))
		return radio_command_phy(name, line ?: none);
	if (!strcmp(verb, "set"))
		return radio_command_set(name, line ?: none);
	pr_err("radio: %s: phy or set\n", verb);
	return -EINVAL;
}

static ssize_t radio_write(struct file *file, const char __user *from, size_t length,
			   loff_t *at)
{
	char *text, *rest, *line;
	int err = 0;

	if (length > PAGE_SIZE)
		return -E2BIG;
	text = memdup_user_nul(from, length);
	if (IS_ERR(text))
		return PTR_ERR(text);
	rest = text;
	mutex_lock(&radio_commands);
	while (!err && (line = strsep(&rest, "\n")))
		err = radio_command(line);
	mutex_unlock(&radio_commands);
	kfree(text);
	return err ?: length;
}

static int radio_show(struct seq_file *file, void *nothing)
{
	struct radio_phy *phy = NULL;

	mutex_lock(&radio_commands);
	while ((phy = radio_phy_next(phy)))
		radio_stats_gather(phy);
	local_bh_disable();
	while ((phy = radio_phy_next(phy)))
		radio_stats_print(file, phy);
	local_bh_enable();
	mutex_unlock(&radio_commands);
	return 0;
}

static int radio_open(struct inode *inode, struct file *file)
{
	return single_open(file, radio_show, NULL);
}

static const struct proc_ops radio_proc_ops = {
	.proc_open = radio_open,
	.proc_read = seq_read,
	.proc_lseek = seq_lseek,
	.proc_release = single_release,
	.proc_write = radio_write,
};

static int __init radio_proc_init(void)
{
	return proc_create("radio", 0600, hourglass_proc(), &radio_proc_ops) ? 0 :
									     -ENOMEM;
}
late_initcall(radio_proc_init);

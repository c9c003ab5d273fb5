// SPDX-License-Identifier: GPL-2.0-only
/*
 * The owners of files in a root that do not belong to root (hostroot.c).
 *
 * The engine lists them in .guest/owners-N, if there are any: "UID GID PATH", each ended by a NUL,
 * in the order of the paths' bytes.
 */
#include <linux/bsearch.h>
#include <linux/errno.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/overflow.h>
#include <linux/string.h>
#include <linux/vmalloc.h>
#include "hostroot.h"

static int by_path(const void *path, const void *owner)
{
	return strcmp(path, ((const struct hostroot_owner *)owner)->path);
}

const struct hostroot_owner *hostroot_owner_of(const struct hostroot_owners *owners,
					       const char *path)
{
	return bsearch(path, owners->list, owners->count, sizeof(*owners->list), by_path);
}

/* @text ends with a NUL. */
static int __init parse(struct hostroot_owners *owners, char *text, const char *end)
{
	unsigned int count = 0;
	int length;
	char *at;

	for (at = text; at < end; at += strlen(at) + 1)
		count++;
	owners->list = vmalloc(array_size(count, sizeof(*owners->list)));
	if (!owners->list)
		return -ENOMEM;
	for (at = text; at < end; at += strlen(at) + 1) {
		struct hostroot_owner *owner = &owners->list[owners->count++];

		if (sscanf(at, "%u %u%n", &owner->uid, &owner->gid, &length) < 2 ||
		    at[length] != ' ')
			return -EINVAL;
		owner->path = at + length + 1;
	}
	return 0;
}

int __init hostroot_read_owners(unsigned int number, struct hostroot_owners *owners)
{
	unsigned long long size;
	int fd = hostroot_open_owners(number, &size), err = -ENOMEM;
	char *text;

	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return fd;
	text = size < INT_MAX ? vmalloc(size + 1) : NULL;
	if (text) {
		memset(text, 0, size + 1);	/* maps its pages: the host would not */
		err = hostroot_read(fd, 0, text, size);
	}
	hostroot_close(fd);
	if (err <= 0) {
		vfree(text);
		return err;
	}
	return parse(owners, text, text + err);
}

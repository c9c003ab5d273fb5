/* SPDX-License-Identifier: GPL-2.0-only */
/* The two halves of hostroot.c: what the guest's kernel asks the host. Errors are negative. */
#ifndef HOSTROOT_H
#define HOSTROOT_H

#define HOSTROOT_MAX	64	/* roots */

enum hostroot_kind { HOSTROOT_FILE, HOSTROOT_FOLDER, HOSTROOT_LINK, HOSTROOT_OTHER };

struct hostroot_facts {
	enum hostroot_kind kind;
	unsigned int mode;		/* the permission bits alone */
	unsigned long long size;
	unsigned long long device;	/* of the host: to see where another file system begins */
};

/* Opens .guest/root-NUMBER; gives a descriptor. */
int hostroot_open_root(unsigned int number);

/* Paths are relative to the folder @root, "" is itself. No link at their end is followed. */
int hostroot_stat(int root, const char *path, struct hostroot_facts *facts);
int hostroot_open(int root, const char *path);
int hostroot_link(int root, const char *path, char *target, int size);

int hostroot_read(int fd, unsigned long long offset, char *to, int length);
void hostroot_close(int fd);

/* Calls @one for each name in a folder until it gives something else than 0, and gives that. */
int hostroot_list(int root, const char *path, int (*one)(void *closure, const char *name),
		  void *closure);

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/* The interface between the parts of hostroot.c: its host's part, and the owners. Errors are
 * negative.
 */
#ifndef HOSTROOT_H
#define HOSTROOT_H

#define HOSTROOT_MAX	64	/* roots */

enum hostroot_kind { HOSTROOT_FILE, HOSTROOT_FOLDER, HOSTROOT_LINK, HOSTROOT_OTHER };

struct hostroot_facts {
	enum hostroot_kind kind;
	unsigned int mode;		/* only the permission bits */
	unsigned long long size;
	unsigned long long device;	/* of the host, to detect another file system */
};

struct hostroot_owner {
	unsigned int uid, gid;
	const char *path;
};

struct hostroot_owners {
	struct hostroot_owner *list;	/* in the order of their paths */
	unsigned int count;
};

int hostroot_read_owners(unsigned int number, struct hostroot_owners *owners);

/* Returns NULL for a file of root. */
const struct hostroot_owner *hostroot_owner_of(const struct hostroot_owners *owners,
					       const char *path);

/* Opens .guest/root-NUMBER and returns a descriptor. */
int hostroot_open_root(unsigned int number);

/* Opens .guest/owners-NUMBER. Returns a descriptor and the file's size. */
int hostroot_open_owners(unsigned int number, unsigned long long *size);

/* @path is relative to the directory @root, "" is @root itself. A link at its end is not
 * followed.
 */
int hostroot_stat(int root, const char *path, struct hostroot_facts *facts);
int hostroot_open(int root, const char *path);
int hostroot_link(int root, const char *path, char *target, int size);

int hostroot_read(int fd, unsigned long long offset, char *to, int length);
void hostroot_close(int fd);

/* Calls a function for each name in a directory, until it returns a value other than 0. Returns
 * that value.
 */
int hostroot_list(int root, const char *path, int (*visit)(void *closure, const char *name),
		  void *closure);

#endif

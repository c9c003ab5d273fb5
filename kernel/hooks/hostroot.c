// SPDX-License-Identifier: GPL-2.0-only
/*
 * The file system `hourglass`: directories of the host as read-only roots of programs in nodes.
 *
 *	mount -t hourglass none /mnt -o N	shows root N, counted from 0
 *
 * The engine creates a link to each directory next to the plan, .guest/root-N. It passes their
 * number on the kernel's command line: hourglass.roots=COUNT. The directories are opened once,
 * at boot, before any program runs. Only paths below them are accessible. The contents of a root
 * depend only on names, file contents, permissions and the targets of links:
 *
 *   inode number	a hash of the path
 *   order of names	by their bytes
 *   owner		that of hostroot_owners.c; else root
 *   times		2024-01-01 00:00:00 UTC; hard links: 1; size of a folder: 4096
 *   symbolic links	as they are; the guest follows them, in its own tree
 *   free space		none
 *
 * Left out: device nodes, sockets and pipes do not appear. Mount points of other file systems
 * are empty directories, so a root that is the host's / shows neither /proc nor /sys nor /dev.
 * The directories must not change while a guest runs, since a path is looked up only once.
 */
#include <linux/fs.h>
#include <linux/fs_context.h>
#include <linux/init.h>
#include <linux/list.h>
#include <linux/list_sort.h>
#include <linux/pagemap.h>
#include <linux/pid_namespace.h>
#include <linux/backing-dev.h>
#include <linux/slab.h>
#include <linux/statfs.h>
#include <linux/string.h>
#include <linux/uidgid.h>
#include <linux/version.h>
#include "hostroot.h"

#define HOSTROOT_MAGIC	0x48676c73
#define HOSTROOT_TIME	1704067200	/* the guest's clock at boot */
#define HOSTROOT_AHEAD	(SZ_256K / PAGE_SIZE)
#define HOSTROOT_OPEN	256	/* a user's processes may open only 1024 files */

struct hostroot_inode {
	struct hostroot_facts facts;
	int fd;			/* of a file that was read, else -1 */
	struct list_head open;	/* in open_files, while fd is */
	char *target;		/* of a symbolic link */
	char path[];		/* below the root; "" is the root */
};

static struct {
	int fd;			/* of the directory, or an error */
	struct hostroot_owners owners;
} roots[HOSTROOT_MAX];
static unsigned int root_count;

/* The files with a descriptor, the oldest descriptor first. One CPU, no preemption: no lock. */
static LIST_HEAD(open_files);
static unsigned int open_count;

static struct inode *hostroot_inode(struct super_block *sb, const char *folder, const char *name);

static struct hostroot_inode *of(const struct inode *inode)
{
	return inode->i_private;
}

static int root_of(const struct super_block *sb)
{
	return roots[(long)sb->s_fs_info].fd;
}

/* Returns whether the entries of a directory belong to the root. */
static bool belongs(const struct inode *folder)
{
	return of(folder)->facts.device == of(d_inode(folder->i_sb->s_root))->facts.device;
}

static struct dentry *hostroot_lookup(struct inode *folder, struct dentry *dentry,
				      unsigned int flags)
{
	struct inode *inode = NULL;

	if (dentry->d_name.len > NAME_MAX)
		return ERR_PTR(-ENAMETOOLONG);
	if (belongs(folder))
		inode = hostroot_inode(folder->i_sb, of(folder)->path, dentry->d_name.name);
	if (inode == ERR_PTR(-ENOENT))
		inode = NULL;
	return d_splice_alias(inode, dentry);
}

struct listed {
	struct list_head list;
	char name[];
};

static int add_name(void *closure, const char *name)
{
	struct listed *entry = kmalloc(struct_size(entry, name, strlen(name) + 1), GFP_KERNEL);

	if (!entry)
		return -ENOMEM;
	strcpy(entry->name, name);
	list_add_tail(&entry->list, closure);
	return 0;
}

static int by_name(void *unused, const struct list_head *a, const struct list_head *b)
{
	return strcmp(list_entry(a, struct listed, list)->name,
		      list_entry(b, struct listed, list)->name);
}

static void forget(struct list_head *names)
{
	struct listed *entry, *next;

	list_for_each_entry_safe(entry, next, names, list)
		kfree(entry);
	kfree(names);
}

/* Returns the sorted names of a directory, read at the first call. They are freed with the file. */
static struct list_head *names_of(struct file *file, bool again)
{
	struct inode *folder = file_inode(file);
	struct list_head *names = file->private_data;
	int err = 0;

	if (names && !again)
		return names;
	if (names)
		forget(names);
	file->private_data = NULL;
	names = kmalloc(sizeof(*names), GFP_KERNEL);
	if (!names)
		return ERR_PTR(-ENOMEM);
	INIT_LIST_HEAD(names);
	if (belongs(folder))
		err = hostroot_list(root_of(folder->i_sb), of(folder)->path, add_name, names);
	if (err) {
		forget(names);
		return ERR_PTR(err);
	}
	list_sort(NULL, names, by_name);
	file->private_data = names;
	return names;
}

/* Position 2 + N is name N, whether or not it can be shown. */
static int hostroot_readdir(struct file *file, struct dir_context *ctx)
{
	struct inode *folder = file_inode(file);
	struct list_head *names = names_of(file, ctx->pos == 0);
	struct listed *entry;
	loff_t at = 2;

	if (IS_ERR(names))
		return PTR_ERR(names);
	if (!dir_emit_dots(file, ctx))
		return 0;
	list_for_each_entry(entry, names, list) {
		struct inode *inode;
		bool fits;

		if (at++ < ctx->pos)
			continue;
		inode = hostroot_inode(folder->i_sb, of(folder)->path, entry->name);
		if (!IS_ERR(inode)) {
			fits = dir_emit(ctx, entry->name, strlen(entry->name), inode->i_ino,
					fs_umode_to_dtype(inode->i_mode));
			iput(inode);
			if (!fits)
				return 0;
		}
		ctx->pos = at;
	}
	return 0;
}

static int hostroot_release(struct inode *inode, struct file *file)
{
	if (file->private_data)
		forget(file->private_data);
	return 0;
}

static void hostroot_forget(struct hostroot_inode *info)
{
	if (info->fd < 0)
		return;
	hostroot_close(info->fd);
	info->fd = -1;
	list_del(&info->open);
	open_count--;
}

/* Opens a file unless it is open. If too many are open, the oldest one is closed. */
static int hostroot_ensure_open(struct hostroot_inode *info, int root)
{
	if (info->fd >= 0)
		return 0;
	if (open_count == HOSTROOT_OPEN)
		hostroot_forget(list_first_entry(&open_files, struct hostroot_inode, open));
	info->fd = hostroot_open(root, info->path);
	if (info->fd < 0) {
		int error = info->fd;

		info->fd = -1;
		return error;
	}
	list_add_tail(&info->open, &open_files);
	open_count++;
	return 0;
}

static int hostroot_fill(struct inode *inode, struct page *page)
{
	struct hostroot_inode *info = of(inode);
	char *to = page_address(page);
	int length = hostroot_ensure_open(info, root_of(inode->i_sb));

	if (length < 0)
		return length;
	length = hostroot_read(info->fd, page_offset(page), to, PAGE_SIZE);
	if (length < 0)
		return length;
	memset(to + length, 0, PAGE_SIZE - length);
	flush_dcache_page(page);
	SetPageUptodate(page);
	return 0;
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 19, 0)
static int hostroot_read_folio(struct file *file, struct folio *folio)
{
	int err = hostroot_fill(folio->mapping->host, &folio->page);

	folio_unlock(folio);
	return err;
}

static const struct address_space_operations hostroot_aops = { .read_folio = hostroot_read_folio };
#else
static int hostroot_readpage(struct file *file, struct page *page)
{
	int err = hostroot_fill(page->mapping->host, page);

	unlock_page(page);
	return err;
}

static const struct address_space_operations hostroot_aops = { .readpage = hostroot_readpage };
#endif

static const struct file_operations hostroot_folder_fops = {
	.llseek = generic_file_llseek,
	.read = generic_read_dir,
	.iterate_shared = hostroot_readdir,
	.release = hostroot_release,
};

static const struct inode_operations hostroot_folder_iops = { .lookup = hostroot_lookup };

/* FNV-1a of the path, cut to the integers that a double represents exactly, for JavaScript. */
static unsigned long hash_of(const char *path)
{
	u64 hash = 0xcbf29ce484222325ULL;

	for (; *path; path++)
		hash = (hash ^ (u8)*path) * 0x100000001b3ULL;
	hash &= (1ULL << 53) - 1;
	return hash > 2 ? hash : hash + 3;
}

static void set_times(struct inode *inode)
{
	struct timespec64 then = { .tv_sec = HOSTROOT_TIME };

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
	inode_set_atime_to_ts(inode, then);
	inode_set_mtime_to_ts(inode, then);
	inode_set_ctime_to_ts(inode, then);
#else
	inode->i_atime = then;
	inode->i_mtime = then;
	inode->i_ctime = then;
#endif
}

static int set_link(struct inode *inode, struct hostroot_inode *info)
{
	int length;

	info->target = kmalloc(PATH_MAX, GFP_KERNEL);
	if (!info->target)
		return -ENOMEM;
	length = hostroot_link(root_of(inode->i_sb), info->path, info->target, PATH_MAX);
	if (length < 0)
		return length;
	inode->i_mode = S_IFLNK | 0777;
	inode->i_size = length;
	inode->i_link = info->target;
	inode->i_op = &simple_symlink_inode_operations;
	return 0;
}

static int set_kind(struct inode *inode, struct hostroot_inode *info)
{
	switch (info->facts.kind) {
	case HOSTROOT_FILE:
		inode->i_mode = S_IFREG | info->facts.mode;
		inode->i_size = info->facts.size;
		inode->i_blocks = DIV_ROUND_UP_ULL(inode->i_size, 512);
		inode->i_fop = &generic_ro_fops;
		inode->i_mapping->a_ops = &hostroot_aops;
		return 0;
	case HOSTROOT_FOLDER:
		inode->i_mode = S_IFDIR | info->facts.mode;
		inode->i_size = PAGE_SIZE;
		inode->i_op = &hostroot_folder_iops;
		inode->i_fop = &hostroot_folder_fops;
		return 0;
	case HOSTROOT_LINK:
		return set_link(inode, info);
	default:
		return -ENOENT;
	}
}

static void set_owner(struct inode *inode, const char *path)
{
	const struct hostroot_owner *owner =
		hostroot_owner_of(&roots[(long)inode->i_sb->s_fs_info].owners, path);

	if (!owner)
		return;
	inode->i_uid = KUIDT_INIT(owner->uid);
	inode->i_gid = KGIDT_INIT(owner->gid);
}

/* Returns the inode of a name in a directory, a path below the root. Both are empty for the
 * root.
 */
static struct inode *hostroot_inode(struct super_block *sb, const char *folder, const char *name)
{
	size_t length = strlen(folder) + strlen(name) + 2;
	struct hostroot_inode *info;
	struct inode *inode;
	int err;

	if (length > PATH_MAX)
		return ERR_PTR(-ENAMETOOLONG);
	info = kzalloc(struct_size(info, path, length), GFP_KERNEL);
	if (!info)
		return ERR_PTR(-ENOMEM);
	info->fd = -1;
	snprintf(info->path, length, "%s%s%s", folder, *folder ? "/" : "", name);
	err = hostroot_stat(root_of(sb), info->path, &info->facts);
	if (err)
		goto no_inode;
	err = -ENOMEM;
	inode = new_inode(sb);
	if (!inode)
		goto no_inode;
	inode->i_ino = hash_of(info->path);
	inode->i_private = info;
	inode->i_flags |= S_NOATIME | S_NOCMTIME;
	set_times(inode);
	set_owner(inode, info->path);
	err = set_kind(inode, info);
	if (!err)
		return inode;
	iput(inode);
	return ERR_PTR(err);
no_inode:
	kfree(info);
	return ERR_PTR(err);
}

static void hostroot_evict(struct inode *inode)
{
	struct hostroot_inode *info = of(inode);

	truncate_inode_pages_final(&inode->i_data);
	clear_inode(inode);
	if (info)
		hostroot_forget(info);
}

/* Path walks take no locks, so they may read the target of a link until this call. */
static void hostroot_free(struct inode *inode)
{
	struct hostroot_inode *info = of(inode);

	if (info) {
		kfree(info->target);
		kfree(info);
	}
	free_inode_nonrcu(inode);
}

static const struct super_operations hostroot_sops = {
	.statfs = simple_statfs,
	.evict_inode = hostroot_evict,
	.free_inode = hostroot_free,
};

static int hostroot_fill_super(struct super_block *sb, struct fs_context *fc)
{
	const char *data = fc->fs_private;
	unsigned int number;
	struct inode *inode;
	int err;

	if (task_active_pid_ns(current) != &init_pid_ns)
		return -EPERM;
	if (!data || kstrtouint(data, 10, &number) || number >= root_count)
		return -EINVAL;
	if (roots[number].fd < 0)
		return roots[number].fd;
	err = super_setup_bdi(sb);
	if (err)
		return err;
	sb->s_bdi->ra_pages = HOSTROOT_AHEAD;
	sb->s_bdi->io_pages = HOSTROOT_AHEAD;
	sb->s_fs_info = (void *)(long)number;
	sb->s_magic = HOSTROOT_MAGIC;
	sb->s_op = &hostroot_sops;
	sb->s_flags |= SB_RDONLY | SB_NOATIME;
	sb->s_iflags |= SB_I_NODEV;
	sb->s_maxbytes = MAX_LFS_FILESIZE;
	sb->s_blocksize = PAGE_SIZE;
	sb->s_blocksize_bits = PAGE_SHIFT;
	inode = hostroot_inode(sb, "", "");
	if (IS_ERR(inode))
		return PTR_ERR(inode);
	sb->s_root = d_make_root(inode);
	return sb->s_root ? 0 : -ENOMEM;
}

/* Parses the number of a root, the option of mount(2). */
static int hostroot_parse(struct fs_context *fc, void *data)
{
	fc->fs_private = data ? kstrdup(data, GFP_KERNEL) : NULL;
	return data && !fc->fs_private ? -ENOMEM : 0;
}

static int hostroot_get_tree(struct fs_context *fc)
{
	return get_tree_nodev(fc, hostroot_fill_super);
}

static void hostroot_free_context(struct fs_context *fc)
{
	kfree(fc->fs_private);
}

static const struct fs_context_operations hostroot_context = {
	.parse_monolithic = hostroot_parse,
	.get_tree = hostroot_get_tree,
	.free = hostroot_free_context,
};

static int hostroot_init_context(struct fs_context *fc)
{
	fc->sb_flags |= SB_RDONLY;
	fc->ops = &hostroot_context;
	return 0;
}

static struct file_system_type hostroot_type = {
	.owner = THIS_MODULE,
	.name = "hourglass",
	.init_fs_context = hostroot_init_context,
	.kill_sb = kill_anon_super,
};

static int __init hostroot_count(char *text)
{
	return kstrtouint(text, 10, &root_count) || root_count > HOSTROOT_MAX ? -EINVAL : 0;
}
early_param("hourglass.roots", hostroot_count);

static int __init hostroot_init(void)
{
	unsigned int number;
	int err;

	for (number = 0; number < root_count; number++) {
		err = hostroot_read_owners(number, &roots[number].owners);
		roots[number].fd = err ?: hostroot_open_root(number);
	}
	return root_count ? register_filesystem(&hostroot_type) : 0;
}
fs_initcall(hostroot_init);

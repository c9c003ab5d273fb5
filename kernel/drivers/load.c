// SPDX-License-Identifier: GPL-2.0-only
/*
 * /proc/hourglass/load: a source of bulk data inside the kernel. Written
 *
 *	send FD
 *
 * it sends over the TCP socket FD of the caller for as long as the connection
 * lives, as an application does that always has data and hands over LOAD_PIECE
 * at a time; the write ends with the error that ended it. All payload is zeros
 * in one block of pages that nobody reads. Until Linux 6.4 it is not even
 * copied: the block is as large as those that send() copies into
 * (SKB_FRAG_PAGE_ORDER) and is passed through from end to end like one of them,
 * so an skb has the same fragments either way, and nobody who counts them
 * (descriptors, coalescing receivers) sees a difference. Later kernels would
 * make a fragment of every 4 KiB (skb_splice_from_iter()): there it is copied.
 */
#include <linux/gfp.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/net.h>
#include <linux/proc_fs.h>
#include <linux/sizes.h>
#include <linux/socket.h>
#include <linux/uaccess.h>
#include <linux/uio.h>
#include <linux/version.h>
#include <net/sock.h>
#include "hourglass_proc.h"

/* What netperf sends in one call: net.ipv4.tcp_wmem's default. */
#define LOAD_PIECE SZ_16K
/* net/core/sock.c: SKB_FRAG_PAGE_ORDER */
#define LOAD_BLOCK SZ_32K

static struct page *load_block;

/* As send() of @length zeros at @from of the block. */
static ssize_t load_send_some(struct socket *sock, size_t from, size_t length)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
	return kernel_sendpage(sock, load_block, from, length, MSG_NOSIGNAL);
#else
	struct msghdr msg = { .msg_flags = MSG_NOSIGNAL };
	struct kvec zeros = { page_address(load_block) + from, length };

	return kernel_sendmsg(sock, &msg, &zeros, 1, length);
#endif
}

static ssize_t load_send(struct socket *sock)
{
	size_t from = 0;

	for (;;) {
		size_t left = LOAD_PIECE - from % LOAD_PIECE;
		ssize_t sent = load_send_some(sock, from, left);

		if (sent < 0)
			return sent;
		from = (from + sent) % LOAD_BLOCK;
	}
}

static ssize_t load_write(struct file *file, const char __user *from, size_t length, loff_t *at)
{
	char words[32] = "";
	struct socket *sock;
	ssize_t err;
	int fd;

	if (length >= sizeof(words))
		return -E2BIG;
	if (copy_from_user(words, from, length))
		return -EFAULT;
	if (sscanf(words, "send %d", &fd) != 1)
		return -EINVAL;
	sock = sockfd_lookup(fd, (int *)&err);
	if (!sock)
		return -ENOTSOCK;
	err = load_send(sock);
	sockfd_put(sock);
	return err;
}

static const struct proc_ops load_proc_ops = {
	.proc_write = load_write,
};

static int __init load_init(void)
{
	load_block = alloc_pages(GFP_KERNEL | __GFP_COMP | __GFP_ZERO,
				 get_order(LOAD_BLOCK));
	if (!load_block)
		return -ENOMEM;
	return proc_create("load", 0600, hourglass_proc(), &load_proc_ops) ? 0 : -ENOMEM;
}
late_initcall(load_init);

// SPDX-License-Identifier: GPL-2.0-only
/*
 * load: bulk data that is never copied, /proc/hourglass/load.
 *
 * A process writes the number of one of its TCP sockets there. From then on the data of that
 * socket are zeros, whatever its buffers contain; only lengths matter. Where tcp_sendmsg() would
 * copy into pages, it calls this file instead (kernel/hooks/load.toml). This file returns a
 * block as large as the blocks that the kernel would allocate. When the block is used up, it is
 * used again from its beginning. So skbs, their fragments, the memory charged to the socket, and
 * its sleeps are the same as with a copy.
 *
 * Left out: with a copy, a socket without data in flight starts a new page. Here it continues to
 * the end of the block, so the boundary between two fragments of an skb may differ. Nothing
 * writes into sent data, since this kernel has no encryption in place (IPsec).
 */
#include <linux/init.h>
#include <linux/mm.h>
#include <linux/net.h>
#include <linux/proc_fs.h>
#include <linux/uaccess.h>
#include <net/hourglass_load.h>
#include <net/tcp.h>
#include "hourglass_proc.h"

#define LOAD_ORDER	get_order(32768)	/* SKB_FRAG_PAGE_ORDER */
#define LOAD_MIN	32			/* sk_page_frag_refill() */

static struct page *load_zeros;

/* Makes sure that the fragment has at least LOAD_MIN bytes. */
bool __load_refill(struct page_frag *fragment)
{
	if (fragment->page != load_zeros) {
		if (fragment->page)
			put_page(fragment->page);	/* allocated before the socket was marked */
		get_page(load_zeros);
		fragment->page = load_zeros;
		fragment->size = PAGE_SIZE << LOAD_ORDER;
		fragment->offset = 0;
	} else if (fragment->offset + LOAD_MIN > fragment->size) {
		fragment->offset = 0;
	}
	return true;
}

static int load_mark(int number)
{
	struct socket *socket;
	int err = 0;

	socket = sockfd_lookup(number, &err);
	if (!socket)
		return err;
	if (socket->sk->sk_protocol == IPPROTO_TCP && socket->type == SOCK_STREAM) {
		lock_sock(socket->sk);
		set_bit(LOAD_FLAG, &socket->sk->sk_flags);
		release_sock(socket->sk);
	} else {
		err = -EPROTOTYPE;
	}
	sockfd_put(socket);
	return err;
}

static ssize_t load_write(struct file *file, const char __user *from, size_t length,
			  loff_t *at)
{
	int number, err;

	err = kstrtoint_from_user(from, length, 10, &number);
	if (!err)
		err = load_mark(number);
	return err ?: length;
}

static const struct proc_ops load_proc_ops = {
	.proc_write = load_write,
};

static int __init load_init(void)
{
	load_zeros = alloc_pages(GFP_KERNEL | __GFP_COMP | __GFP_ZERO, LOAD_ORDER);
	if (!load_zeros)
		return -ENOMEM;
	return proc_create("load", 0600, hourglass_proc(), &load_proc_ops) ? 0 : -ENOMEM;
}
late_initcall(load_init);

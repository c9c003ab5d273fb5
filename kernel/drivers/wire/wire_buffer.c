// SPDX-License-Identifier: GPL-2.0-only
/*
 * wire: the receive buffers of drivers, and their charge to sockets.
 *
 * A socket's memory is counted by truesize, so the receive window depends on the driver. In the
 * ring, a frame is still the sender's skb with the sender's pages. When the NIC takes it out of
 * the ring, it is copied into a buffer like the real driver's:
 *
 *	length <= rx_copy	an skb of the frame's size (netdev_alloc_skb), copied by the driver
 *	else			a buffer of rx_buffer bytes, headroom and skb_shared_info
 *				included, from a page fragment; the skb is built around it
 *				(build_skb), so that GRO and TCP merge it as a page
 *	too long for that	one of rx_large bytes from kmalloc(); if that is 0, several
 *				of rx_buffer
 *	rx_buffer is 0		every frame is copied into an skb of the frame's size
 *
 * On 64 bits an skb of 2,048 bytes is charged 2,304. A frame that is forwarded unchanged is
 * already in such a buffer and stays there.
 *
 * driver	rx_copy	rx_buffer	rx_large	where (Linux 6.1)
 * tg3		256	1984		16384		tg3_alloc_rx_data(), tg3.c:6671;
 *						tg3_rx(), tg3.c:6878
 * igb, ixgbe	0	2048; 4096 with	0		igb_build_skb(), igb_main.c:8513;
 *			jumbo frames			ixgbe_build_skb(), ixgbe_main.c:2150
 * r8169	-	0		0		rtl_rx(), r8169_main.c:4581
 */
#include <linux/etherdevice.h>
#include <linux/slab.h>
#include "wire.h"

/* tg3 aligns the IP header of a copied frame (TG3_RAW_IP_ALIGN). */
#define WIRE_COPY_ALIGN	2

/* Cache lines of data in an skb of netdev_alloc_skb(). Its truesize is determined once per
 * value.
 */
#define WIRE_SMALL_LINE(length)	DIV_ROUND_UP(NET_SKB_PAD + WIRE_COPY_ALIGN + (length),	\
					     SMP_CACHE_BYTES)

#define WIRE_SMALL_LINES	16

static u32 wire_small[WIRE_SMALL_LINES];

int __init wire_buffer_init(void)
{
	u32 lines;

	if (WARN_ON(WIRE_SMALL_LINE(WIRE_COPY_MAX) >= WIRE_SMALL_LINES))
		return -EINVAL;
	for (lines = WIRE_SMALL_LINE(0); lines <= WIRE_SMALL_LINE(WIRE_COPY_MAX); lines++) {
		struct sk_buff *skb = netdev_alloc_skb(NULL, lines * SMP_CACHE_BYTES - NET_SKB_PAD);

		if (!skb)
			return -ENOMEM;
		wire_small[lines] = skb->truesize;
		kfree_skb(skb);
	}
	return 0;
}

/* Copies the metadata of @frame to @skb. */
static void wire_buffer_describe(struct sk_buff *skb, const struct sk_buff *frame)
{
	skb->ip_summed = frame->ip_summed;
	if (frame->ip_summed != CHECKSUM_PARTIAL)
		return;
	skb->csum_start = frame->csum_start - skb_headroom(frame) + skb_headroom(skb);
	skb->csum_offset = frame->csum_offset;
}

static struct sk_buff *wire_buffer_build(u32 size)
{
	bool paged = size <= PAGE_SIZE;
	void *data = paged ? napi_alloc_frag(size) : kmalloc(size, GFP_ATOMIC);
	struct sk_buff *skb;

	if (!data)
		return NULL;
	skb = paged ? napi_build_skb(data, size) : slab_build_skb(data);
	if (skb)
		skb_reserve(skb, NET_SKB_PAD);
	else if (paged)
		skb_free_frag(data);
	else
		kfree(data);
	return skb;
}

/* Returns whether @frame owns all of its data: no clone, no list, no page of a program. */
static bool wire_buffer_owns(struct sk_buff *frame)
{
	return !skb_cloned(frame) && !skb_has_frag_list(frame) && !skb_zcopy(frame) &&
	       !frame->head_frag;
}

/*
 * Copies like memcpy(), twice as fast for a frame. User Mode Linux's memcpy() is that of x86
 * CPUs without fast string instructions, since it is not patched at boot.
 */
static void wire_copy(void *to, const void *from, u32 bytes)
{
	size_t quads = bytes / 8;

	asm volatile("rep movsq" : "+D" (to), "+S" (from), "+c" (quads) : : "memory");
	memcpy(to, from, bytes % 8);
}

/* Copies the bytes of @frame, which has no list, to @data. */
static void wire_buffer_fill(u8 *data, const struct sk_buff *frame)
{
	const struct skb_shared_info *shared = skb_shinfo(frame);
	u32 i, head = skb_headlen(frame);

	wire_copy(data, frame->data, head);
	data += head;
	for (i = 0; i < shared->nr_frags; i++) {
		const skb_frag_t *frag = &shared->frags[i];

		wire_copy(data, skb_frag_address(frag), skb_frag_size(frag));
		data += skb_frag_size(frag);
	}
}

/*
 * Moves @frame into a page buffer, in the layout of build_skb(). The skb itself is reused, which
 * saves allocating one and freeing the other. Returns false if memory is short.
 */
static bool wire_buffer_move(struct sk_buff *frame, u32 size)
{
	u32 i, length = frame->len, start = frame->csum_start - skb_headroom(frame);
	u8 summed = frame->ip_summed, fclone = frame->fclone;
	u16 offset = frame->csum_offset;
	u8 *data = napi_alloc_frag(size);

	if (!data)
		return false;
	wire_buffer_fill(data + NET_SKB_PAD, frame);
	for (i = 0; i < skb_shinfo(frame)->nr_frags; i++)
		skb_frag_unref(frame, i);
	kfree(frame->head);
	memset(frame, 0, offsetof(struct sk_buff, tail));
	frame->fclone = fclone;
	build_skb_around(frame, data, size);
	skb_reserve(frame, NET_SKB_PAD);
	__skb_put(frame, length);
	frame->ip_summed = summed;
	if (summed == CHECKSUM_PARTIAL) {
		frame->csum_start = start + skb_headroom(frame);
		frame->csum_offset = offset;
	}
	return true;
}

/* Adds the rest of @frame, from @at on, in more buffers. */
static bool wire_buffer_chain(struct sk_buff *skb, const struct sk_buff *frame, u32 at, u32 size)
{
	while (at < frame->len) {
		u32 part = min_t(u32, frame->len - at, size);
		void *data = napi_alloc_frag(size);
		struct page *page;

		if (!data)
			return false;
		page = virt_to_head_page(data);
		skb_copy_bits(frame, at, data, part);
		skb_add_rx_frag(skb, skb_shinfo(skb)->nr_frags, page,
				(u8 *)data - (u8 *)page_address(page), part, size);
		at += part;
	}
	return true;
}

/* Returns whether @frame is already in a page buffer of @size bytes. */
static bool wire_buffer_fits(const struct sk_buff *frame, u32 size)
{
	return frame->head_frag && !skb_is_nonlinear(frame) &&
	       skb_end_offset(frame) == SKB_WITH_OVERHEAD(size);
}

/* Returns the size of the driver's receive buffer for a frame of @length bytes. */
static u32 wire_buffer_size(const struct wire_nic *nic, u32 length)
{
	if (!nic->rx_buffer)
		return SKB_DATA_ALIGN(NET_SKB_PAD + length) + WIRE_BUFFER_TAIL;
	if (nic->rx_large && length > nic->rx_buffer - NET_SKB_PAD - WIRE_BUFFER_TAIL)
		return nic->rx_large;
	return nic->rx_buffer;
}

/* Returns the skb for the stack and consumes @frame. Returns NULL if memory is short. */
struct sk_buff *wire_buffer_receive(const struct wire_nic *nic, struct sk_buff *frame)
{
	u32 size, head, length = frame->len;
	struct sk_buff *skb;

	if (length <= nic->rx_copy && !skb_is_nonlinear(frame)) {
		frame->truesize = wire_small[WIRE_SMALL_LINE(length)];
		return frame;
	}
	size = wire_buffer_size(nic, length);
	if (wire_buffer_fits(frame, size))
		return frame;
	if (length > nic->rx_copy && size <= PAGE_SIZE && wire_buffer_owns(frame) &&
	    length <= SKB_WITH_OVERHEAD(size) - NET_SKB_PAD)
		return wire_buffer_move(frame, size) ? frame : NULL;
	skb = length <= nic->rx_copy ? netdev_alloc_skb(nic->dev, length + WIRE_COPY_ALIGN) :
				       wire_buffer_build(size);
	if (!skb)
		return NULL;
	head = min_t(u32, length, skb_tailroom(skb));
	skb_copy_bits(frame, 0, __skb_put(skb, head), head);
	wire_buffer_describe(skb, frame);
	if (!wire_buffer_chain(skb, frame, head, size)) {
		kfree_skb(skb);
		return NULL;
	}
	napi_consume_skb(frame, 1);
	return skb;
}

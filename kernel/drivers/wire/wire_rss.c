// SPDX-License-Identifier: GPL-2.0-only
/*
 * The receive queue of a frame (receive side scaling, RSS).
 *
 * The chip hashes addresses, and for TCP also ports, with a key. Seven bits of the hash select a
 * row of a table, which names the queue. So the frames of a connection have one queue, and two
 * connections share it by chance. igb and ixgbe hash UDP without ports (ethtool -n X
 * rx-flow-hash udp4), and fragments too.
 *
 * The hash is Microsoft's: "RSS hashing types" of the Windows driver documentation. Drivers fill
 * the key with random numbers. Here it depends on the scenario's seed and the NIC.
 *
 * Left out: other tables, such as igb's, and keys (ethtool -X); hashes of VLANs and tunnels;
 * filters (-N). igb marks the hash as one of addresses, so the kernel hashes TCP again.
 * Tests: kernel/tests/wire_rss_test.c.
 */
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/skbuff.h>
#include <linux/string.h>
#include <net/ip.h>
#include "compat.h"
#include "wire_faults.h"
#include "wire_rss.h"

/* The rows of ixgbe's table: row N names queue N modulo the number of queues. */
#define WIRE_RSS_ROWS	128

u32 wire_rss_toeplitz(const u8 *key, const u8 *input, u32 length)
{
	u32 window = (u32)key[0] << 24 | key[1] << 16 | key[2] << 8 | key[3];
	u32 hash = 0, i;
	int bit;

	for (i = 0; i < length; i++)
		for (bit = 7; bit >= 0; bit--) {
			if (input[i] >> bit & 1)
				hash ^= window;
			window = window << 1 | (key[i + 4] >> bit & 1);
		}
	return hash;
}

/* Writes addresses, and TCP's ports, to @input. Returns their length; 0 for other frames. */
static u32 wire_rss_input(const struct sk_buff *frame, u8 *input, bool *ports)
{
	int at = skb_network_offset(frame);
	u32 length;

	if (skb_protocol(frame, true) == htons(ETH_P_IP)) {
		struct iphdr space, *ip = skb_header_pointer(frame, at, sizeof(space), &space);

		if (!ip)
			return 0;
		length = 2 * sizeof(ip->saddr);
		memcpy(input, &ip->saddr, length);
		*ports = ip->protocol == IPPROTO_TCP && !ip_is_fragment(ip);
		at += ip->ihl * 4;
	} else if (skb_protocol(frame, true) == htons(ETH_P_IPV6)) {
		struct ipv6hdr space, *ip = skb_header_pointer(frame, at, sizeof(space), &space);

		if (!ip)
			return 0;
		length = 2 * sizeof(ip->saddr);
		memcpy(input, &ip->saddr, length);
		*ports = ip->nexthdr == IPPROTO_TCP;
		at += sizeof(*ip);
	} else {
		return 0;
	}
	*ports = *ports && !skb_copy_bits(frame, at, input + length, 2 * sizeof(__be16));
	return length + (*ports ? 2 * sizeof(__be16) : 0);
}

struct wire_rss wire_rss(const struct sk_buff *frame, const struct wire_faults *faults)
{
	u64 key[WIRE_RSS_KEY_BYTES / sizeof(u64)];
	u8 input[WIRE_RSS_KEY_BYTES - sizeof(u32)];
	struct wire_rss rss = { };
	u32 length, i;

	length = wire_rss_input(frame, input, &rss.ports);
	for (i = 0; i < ARRAY_SIZE(key); i++)
		key[i] = wire_rss_key(faults, i);
	rss.hash = wire_rss_toeplitz((const u8 *)key, input, length);
	return rss;
}

u32 wire_rss_queue(const struct wire_rss *rss, u32 queues)
{
	return rss->hash % WIRE_RSS_ROWS % queues;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * wire: the path of a frame, computed when it enters the ring of a NIC with one queue, or when a
 * NIC with several queues fetches it.
 *
 *	ring ----> line ---------> policer ------------> shaper ------> delay, faults
 *	     (medium; wire_line.c) (wire_bucket.c) (wire_shaper.c)
 *
 * Each stage is a FIFO of known times, so the whole path is arithmetic. Policer and shaper are
 * at the end of the line, like a modem or the provider's edge.
 *
 * Lines may share a medium: the two directions of a cable (half duplex), or several cables (a
 * segment of a cable network, a bus). Their NICs have one queue. One frame leaves at a time,
 * without collisions. Frames leave in the order in which they entered their rings, as if one
 * scheduler saw all queues. So the frames of a TSO skb are not interleaved with others. Left out:
 * CSMA/CD, and schedulers that are fair between senders.
 */
#include <linux/etherdevice.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/inet_ecn.h>
#include "wire.h"

/* The medium of several lines; see wire_line.h for the state of a line. */
struct wire_medium {
	struct list_head list;
	int number;
	unsigned int lines;
	u64 free_ns;
	u64 spare;
};

static LIST_HEAD(wire_media);	/* under RTNL */

static void wire_medium_leave(struct wire_nic *nic)
{
	struct wire_medium *medium = nic->medium;

	nic->medium = NULL;
	if (!medium || --medium->lines)
		return;
	list_del(&medium->list);
	kfree(medium);
}

/* Puts the line of @nic into the shared medium @number, or into none (WIRE_NO_MEDIUM). */
int wire_medium_join(struct wire_nic *nic, int number)
{
	struct wire_medium *medium = NULL, *other;

	ASSERT_RTNL();
	list_for_each_entry(other, &wire_media, list)
		if (other->number == number)
			medium = other;
	if (!medium && number != WIRE_NO_MEDIUM) {
		medium = kzalloc(sizeof(*medium), GFP_KERNEL);
		if (!medium)
			return -ENOMEM;
		medium->number = number;
		list_add_tail(&medium->list, &wire_media);
	}
	if (medium)
		medium->lines++;
	local_bh_disable();
	wire_medium_leave(nic);
	nic->medium = medium;
	local_bh_enable();
	return 0;
}

int wire_medium_number(const struct wire_nic *nic)
{
	return nic->medium ? nic->medium->number : WIRE_NO_MEDIUM;
}

/* Computes how long the frame waits, and when its bits leave. */
static void wire_fly_line(struct wire_nic *nic, u32 bytes, u64 now_ns, struct wire_flight *flight)
{
	struct wire_medium *medium = nic->medium;
	struct wire_line *line = &nic->line;

	flight->head_ns = max(now_ns, line->free_ns);
	if (medium) {
		line->free_ns = medium->free_ns;
		line->spare = medium->spare;
	}
	flight->start_ns = max(now_ns, line->free_ns);
	flight->end_ns = wire_line_send(line, now_ns, bytes);
	if (medium) {
		medium->free_ns = line->free_ns;
		medium->spare = line->spare;
	}
}

/* Computes the path through policer and shaper. */
static void wire_fly_box(struct wire_nic *nic, u32 bytes, struct wire_flight *flight)
{
	struct wire_shaper *shaper = &nic->shaper;

	if (nic->policer.rate_bps && !wire_bucket_pass(&nic->policer, flight->end_ns, bytes)) {
		nic->stats.tx_policed++;
		flight->lost = "policer";
	} else if (shaper->sustained.rate_bps) {
		u64 leaves_ns = wire_shaper_send(shaper, flight->end_ns, bytes);

		if (leaves_ns == WIRE_NEVER) {
			nic->stats.tx_shaper_full++;
			flight->lost = "shaper is full";
			return;
		}
		flight->leaves_ns = leaves_ns;
		flight->congested = shaper->ce_threshold_ns &&
				    leaves_ns - flight->end_ns > shaper->ce_threshold_ns;
	}
}

/* Computes the path of a frame that waits since @now_ns, up to the beginning of the cable. */
void wire_fly(struct wire_nic *nic, const struct sk_buff *frame, u64 now_ns,
	      struct wire_flight *flight)
{
	flight->copies = 0;
	flight->lost = NULL;
	flight->congested = false;
	flight->arrival_ns = 0;
	wire_fly_line(nic, max_t(u32, frame->len, ETH_ZLEN) + WIRE_OVERHEAD, now_ns, flight);
	flight->leaves_ns = flight->end_ns;
	if (flight->end_ns != WIRE_NEVER)
		wire_fly_box(nic, frame->len, flight);
}

/*
 * Writes "congestion experienced" and the checksum into the IP header of an ECN-capable packet.
 * Returns whether this changed the codepoint.
 */
bool wire_mark(struct sk_buff *frame)
{
	int header = skb_network_offset(frame);
	u8 field;

	switch (skb_protocol(frame, true)) {
	case htons(ETH_P_IP):
		if (!pskb_may_pull(frame, header + sizeof(struct iphdr)))
			return false;
		field = ipv4_get_dsfield(ip_hdr(frame));
		break;
	case htons(ETH_P_IPV6):
		if (!pskb_may_pull(frame, header + sizeof(struct ipv6hdr)))
			return false;
		field = ipv6_get_dsfield(ipv6_hdr(frame));
		break;
	default:
		return false;
	}
	return !INET_ECN_is_ce(field) && INET_ECN_set_ce(frame);
}

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * probe: where every packet is and was, of the streams it is told to watch.
 *
 *	tracepoints of kernel, wire and radio; TCP --> slots, connections
 *	slots, connections --> records --> /proc/hourglass/probe
 *
 * probe_parse.c	headers of an skb -> whose packets these are
 * probe_slot.c		what is known of a packet: its slot
 * probe_path.c		the events that move packets on
 * probe_radio.c	those of radios; probe_radiotap.c: their frames in captures
 * probe_drop.c		packets that end early
 * probe_program.c	streams that programs open, which the plan does not name
 * probe_key.c		what tells their packets from others
 * probe_connection.c	TCP connections, from their first packet to their sockets' end
 * probe_tcp.c		sockets: what is written, held back, read
 * probe_cc.c		what congestion controls of a user's own say of themselves
 * probe_sample.c	sockets and queues at an instant
 * probe_proc.c		commands, records, the clock of the samples
 *
 * A packet is known by what stands in it (flow, sequence number), not by its
 * skb: skbs are cut, merged and copied on the way. The unit is what the wire
 * carries: a GSO skb is as many packets as it has segments. Everything here
 * runs in bottom halves or with them off; the guest has one CPU. Nothing here
 * changes a packet, a queue or a timer.
 */
#ifndef _PROBE_H
#define _PROBE_H

#include <linux/if_ether.h>
#include <linux/in6.h>
#include <linux/in.h>
#include <linux/list.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include "compat.h"
#include "probe_abi.h"

#define PROBE_WATCHES 16384
#define PROBE_VISITS 12 /* nodes that one packet passes; the last stands for all beyond */

/* The layers between two sockets, those of cables first; the others belong to a socket. */
enum probe_hop {
	HOP_RX,
	HOP_STACK,
	HOP_QDISC,
	HOP_RING,
	HOP_WIRE,
	HOP_PROPAGATION,
	HOP_SHAPER,
	HOP_CONTENTION,
	HOP_TXQ,
	HOP_RETRY,
	HOP_AIR,
	HOP_RESEQUENCE,
	HOP_COUNT
};

#define PROBE_SENDER_LAYERS (PROBE_STACK - PROBE_CWND)

enum probe_content { PROBE_DATA, PROBE_ACK, PROBE_CONTROL, PROBE_DATAGRAM };

enum probe_state {
	PROBE_IN_QDISC = 1,
	PROBE_IN_RING = 2,
	PROBE_ON_WIRE = 4,
	PROBE_RECEIVED = 8, /* by a node; of TCP data at its end: not read yet */
	PROBE_LOST = 16, /* TCP data that was dropped: kept for its retransmission */
	PROBE_IN_TXQ = 32, /* mac80211's */
	PROBE_IN_RADIO = 64, /* its radio_mpdu's cookie is the slot */
	PROBE_IN_MAC80211 = 128, /* of the receiver */
};

/* Sums over the packets of a stream that ended, at one node. */
struct probe_sums {
	u16 node;
	u64 packets;
	u64 ns[PROBE_LAYER_COUNT];
};

/* What became of packets, by what stood in their ECN field then. */
struct probe_counts {
	u64 sent, duplicated, delivered, dropped;
	s64 became; /* changed to it, less changed from it */
	u64 unread; /* that a socket took with it when it was closed */
	u64 in_flight; /* counted when the balance is drawn */
};

/* One way of a watched stream. */
struct probe_way {
	int final; /* the node where its packets end; -1: not known yet */
	u32 number; /* of the next packet */
	struct probe_counts of[PROBE_ECN_COUNT];
	u64 unmatched;
	u64 bytes; /* of data delivered */
	struct probe_sums *sums[2]; /* [data] of PROBE_VISITS nodes */
};

/* What addresses and ports say of a packet; IPv4's are mapped. No gaps: it is hashed. */
struct probe_key {
	struct in6_addr source, destination;
	__be16 source_port, destination_port;
	u32 protocol;
};

/* What a stream is that no plan names. */
struct probe_program {
	struct probe_key key; /* of what its client sends */
	s64 first_ns, last_ns; /* when a packet was sent */
	u64 told; /* packets that ended when the sums were given last */
	u32 connections;
	u16 node; /* the client's */
	u16 app[2]; /* of the client, of the server */
	char comm[2][TASK_COMM_LEN];
	bool shared; /* by many connections */
	bool mptcp;
	bool sent_on; /* a node on the way has the address that the client sends to */
	bool again; /* what it sends on now was taken for delivered there */
};

struct probe_watch {
	struct probe_program *program; /* NULL: it is the plan's */
	u16 id;
	u8 protocol;
	u16 key;
	struct probe_way way[2];
	struct probe_connection *last;
};

/* Data was written up to @end at @t_ns, when so much time had been spent held back. */
struct probe_written {
	struct list_head list;
	u32 end;
	s64 t_ns;
	s64 hold_ns[PROBE_HOLD_COUNT];
};

/* One end of a TCP connection. */
struct probe_end {
	struct hlist_node hash; /* by @sk, while it is known */
	struct probe_connection *connection;
	struct sock *sk;
	bool gone; /* the socket was there and is no more */
	/* as sender */
	struct list_head written;
	struct list_head lost; /* slots, which wait to be sent again */
	u32 sent_end; /* sequence number behind all that was ever sent */
	bool has_sent;
	u32 gso_bytes;
	enum probe_hold hold;
	s64 hold_since_ns;
	s64 hold_ns[PROBE_HOLD_COUNT];
	u64 tsq_limit, tsq_rate;
	u32 tsq_truesize, tsq_term, tsq_shift, tsq_throttled;
	/* as receiver */
	struct list_head received; /* slots, by sequence number */
	u32 read_end; /* sequence number behind all that was read */
	bool has_read;
	s64 in_order_ns; /* when the data read last was in order */
};

struct probe_connection {
	struct hlist_node hash;
	struct list_head list;
	struct probe_watch *watch;
	u16 port; /* the client's */
	s64 gone_ns; /* no socket is known since; 0: one is */
	struct probe_end end[2]; /* the client, the server */
};

/* A hop of a cable is in one cache line, and what took no time is in none. */
struct probe_visited {
	u16 node;
	u16 took; /* bits of the hops that have an ns[] */
	u8 ecn;
	s64 ns[HOP_COUNT];
} ____cacheline_aligned;

/* What a search looks at stands in the first cache line. */
struct probe_slot {
	struct hlist_node hash;
	u64 who, what;
	s64 at_ns; /* the last layer ended, or will */
	u16 node; /* where it is; on a cable: where to */
	u8 state;
	u8 way, content;
	u8 visits;
	u8 ecn; /* what stands in its IP header */
	bool twin : 1; /* of a packet that is known */
	bool equals : 1; /* there are, or were, others of the same who and what */
	bool held : 1; /* has sender_ns */
	int device; /* in whose queue it was last: ifindex */
	struct probe_watch *watch;
	/*
	 * in probe_end, while PROBE_RECEIVED at its end, or PROBE_LOST; in probe_radio.c
	 * until the interrupt
	 */
	struct list_head received;
	u32 number, bytes, seq;
	s64 begin_ns;
	s64 sent_ns; /* for the first time */
	s64 reorder_ns, read_ns;
	/* of TCP data */
	s64 sender_ns[PROBE_SENDER_LAYERS];
	/* of packets that a radio received and that have had no interrupt since */
	const void *radio;
	struct probe_visited visit[PROBE_VISITS];
};

/* The packets that an skb stands for. */
struct probe_packets {
	struct probe_watch *watch;
	u8 way, content, ecn;
	u16 port; /* the client's */
	u64 what; /* of the first */
	u32 seq, ack;
	u32 payload, step; /* bytes: of all, of each but the last */
	u32 count;
	const struct sk_buff *skb; /* of datagrams of programs: where their payload is */
	int offset;
	bool fragment; /* the first one of a packet that was cut up */
};

extern bool probe_on;

/* probe_program.c */
extern bool probe_programs;
void probe_program_start(u16 first);
void probe_program_stop(void);
void probe_program_sends(const struct sk_buff *skb, int offset, int node);
void probe_program_meet(struct probe_watch *watch, u8 way);
struct probe_watch *probe_program_of(const struct probe_key *key, u8 *way, u16 *port);
bool probe_program_sent_on(const struct probe_watch *watch, const struct sk_buff *skb, int offset);

/* probe_key.c */
struct probe_key probe_key_turned(const struct probe_key *key);
void probe_key_of_sock(const struct sock *sk, struct probe_key *key);
bool probe_key_of_packet(const struct sk_buff *skb, int offset, struct probe_key *key, int *next);
bool probe_translated(const struct sk_buff *skb, struct probe_key *before,
		      struct probe_key *behind);
u64 probe_datagram(const struct sk_buff *skb, int offset, u32 bytes);

/* probe_proc.c */
extern unsigned int probe_net_id;

struct probe_net {
	int node; /* + 1; 0: not watched */
};

static inline int probe_node(const struct net *net)
{
	return ((struct probe_net *)net_generic(net, probe_net_id))->node - 1;
}

/* probe_parse.c */
int probe_watch(struct probe_watch *watch);
struct probe_watch *probe_watch_of(u8 protocol, u16 source, u16 destination, u8 *way);
bool probe_parse(const struct sk_buff *skb, int offset, struct probe_packets *packets);
bool probe_local(const struct sk_buff *skb, int offset, struct net *net);
int probe_offset(const struct sk_buff *skb);
int probe_offset_80211(const struct sk_buff *skb);

/* An access point sends it on within its cell: mac80211's word for that. */
static inline bool probe_forwarded(const struct sk_buff *skb)
{
	return skb->protocol == htons(ETH_P_802_3);
}

/* Of a ping or datagrams of the plan: packets that are known by a number of their own. */
static inline bool probe_numbered(const struct probe_watch *watch)
{
	return watch->protocol != IPPROTO_TCP && !watch->program;
}

static inline u64 probe_who(const struct probe_packets *packets)
{
	return (u64)packets->watch->id << 32 | (u64)packets->way << 24 |
	       (u64)packets->content << 16 | packets->port;
}

static inline u32 probe_bytes(const struct probe_packets *packets, u32 index)
{
	return min(packets->step, packets->payload - index * packets->step);
}

static inline u64 probe_what(const struct probe_packets *packets, u32 index)
{
	if (packets->content == PROBE_DATA)
		return packets->seq + index * packets->step;
	if (packets->skb)
		return probe_datagram(packets->skb, packets->offset + index * packets->step,
				      probe_bytes(packets, index));
	return packets->what;
}

/* It is where it cannot be: but for what is left of one that was lost by another fragment. */
static inline void probe_unmatched(const struct probe_packets *packets)
{
	if (!packets->fragment)
		packets->watch->way[packets->way].unmatched++;
}

/* probe_slot.c */
int probe_slot_start(void);
struct probe_slot *probe_slot_new(const struct probe_packets *packets, u32 index, int node,
				  s64 now_ns);
struct probe_slot *probe_slot_find(u64 who, u64 what, int states, int node, s64 now_ns);
struct probe_slot *probe_slot_twin(const struct probe_slot *slot);
void probe_slot_visit(struct probe_slot *slot, int node);
void probe_slot_ecn(struct probe_slot *slot, u8 ecn, const struct net_device *dev,
		    enum probe_place place);
void probe_slot_layers(const struct probe_slot *slot, struct probe_visit *visit);
void probe_slot_finish(struct probe_slot *slot);
void probe_slot_free(struct probe_slot *slot);
void probe_slots_count(void);

/* The time up to @until_ns was spent in @hop of the node where the packet is. */
static inline void probe_slot_spend(struct probe_slot *slot, enum probe_hop hop, s64 until_ns)
{
	struct probe_visited *visit = &slot->visit[slot->visits - 1];
	s64 ns = until_ns - slot->at_ns;

	if (!ns)
		return;
	slot->at_ns = until_ns;
	if (visit->took & BIT(hop))
		ns += visit->ns[hop];
	visit->took |= BIT(hop);
	visit->ns[hop] = ns;
}

static inline struct probe_counts *probe_slot_counts(const struct probe_slot *slot)
{
	return &slot->watch->way[slot->way].of[slot->ecn];
}

static inline bool probe_slot_data(const struct probe_slot *slot)
{
	return slot->content == PROBE_DATA || slot->content == PROBE_DATAGRAM;
}

static inline struct probe_stream probe_slot_stream(const struct probe_slot *slot)
{
	return (struct probe_stream){ .id = slot->watch->id,
				      .way = slot->way };
}

/* probe_path.c */
int probe_path_start(void);
int probe_path_capture(void);
bool probe_just_given(const struct sk_buff *skb);
u8 *probe_capture(const struct sk_buff *frame, const struct net_device *dev, int offset, s64 t_ns,
		  bool received, const struct probe_slot *slot, const void *head, u32 head_bytes);

/* probe_radio.c */
#ifdef CONFIG_HOURGLASS_RADIO
int probe_radio_start(void);
void probe_radio_sample(void);
bool probe_radio_dequeues(void);
#else
static inline int probe_radio_start(void)
{
	return 0;
}

static inline void probe_radio_sample(void)
{
}

static inline bool probe_radio_dequeues(void)
{
	return false;
}
#endif

/* probe_drop.c */
int probe_drop_start(void);
void probe_wire_lost(struct probe_slot *packet, const struct sk_buff *frame,
		     const struct net_device *dev, const char *reason);
void probe_slot_drop(struct probe_slot *slot, const struct net_device *dev, enum probe_place place,
		     const char *reason);

/* probe_connection.c */
struct probe_connection *probe_connection(struct probe_watch *watch, u16 port, bool make);
struct probe_end *probe_meet(struct sock *sk);
void probe_part(struct sock *sk);
void probe_lose(struct probe_slot *slot);
extern struct list_head probe_connections;

/* probe_tcp.c */
int probe_tcp_start(void);
void probe_tcp_sent(const struct probe_packets *packets, struct sock *sk, struct probe_slot *slot,
		    s64 now_ns);
bool probe_tcp_received(const struct probe_packets *packets, struct probe_slot *slot);
void probe_end_hold(struct probe_end *end, enum probe_hold hold, s64 now_ns);

/* probe_cc.c */
void probe_cc_sample(struct sock *sk, struct probe_stream stream, s64 t_ns);

/* probe_sample.c */
int probe_sample_start(void);
struct probe_queue *probe_queue_of(const struct net_device *dev);
void probe_sample(s64 t_ns);
void probe_totals(s64 t_ns);
void probe_balance(s64 t_ns);

/* probe_proc.c */
extern struct probe_watch *probe_watches[];
extern unsigned int probe_watch_count;
u32 probe_snaplen(const struct net_device *dev, bool *captured);
bool probe_kept(const struct probe_slot *slot);
void *probe_emit(enum probe_record type, u32 bytes);

#endif

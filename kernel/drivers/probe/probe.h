/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * probe: the present and past position of every packet of the watched streams.
 *
 *	tracepoints of kernel, wire and radio; TCP --> slots, connections
 *	slots, connections --> records --> /proc/hourglass/probe
 *
 * probe_parse.c	headers of an skb -> stream and packets
 * probe_slot.c		the state of a packet: its slot
 * probe_path.c		events on the path of a packet
 * probe_radio.c	events of radios; probe_radiotap.c: radiotap headers of captures
 * probe_drop.c		dropped packets
 * probe_program.c	streams of programs, which the plan does not list
 * probe_key.c		identification of their packets
 * probe_connection.c	TCP connections, from the first packet to the end of their sockets
 * probe_tcp.c		sockets: data written, held back, read
 * probe_cc.c		the private state of custom congestion controls
 * probe_sample.c	samples of sockets and queues
 * probe_proc.c		commands, records, the sampling clock
 *
 * A packet is identified by its content (flow, sequence number), not by its skb, since skbs are
 * segmented, merged and copied on the path. The unit is the packet on the wire: a GSO skb counts
 * as its number of segments. All code here runs in bottom halves or with bottom halves disabled,
 * and the guest has one CPU. Nothing here changes a packet, a queue or a timer.
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
#define PROBE_VISITS 12 /* nodes on the path of a packet; the last entry covers all further nodes */

/* The layers between two sockets: first those of a cable, then those of a socket. */
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
	PROBE_RECEIVED = 8, /* by a node; TCP data at its destination: not read yet */
	PROBE_LOST = 16, /* dropped TCP data, kept for the retransmission */
	PROBE_IN_TXQ = 32, /* in mac80211's queue */
	PROBE_IN_RADIO = 64, /* the slot is the cookie of its MPDU, or of the copy */
	PROBE_IN_MAC80211 = 128, /* in mac80211 of the receiver, its current node */
};

/* Sums over the completed packets of a stream, at one node. */
struct probe_sums {
	u16 node;
	u64 packets;
	u64 ns[PROBE_LAYER_COUNT];
};

/* Packet counts by outcome, for one codepoint in the ECN field. */
struct probe_counts {
	u64 sent, duplicated, delivered, dropped;
	s64 became; /* packets changed to this codepoint minus packets changed from it */
	u64 unread; /* received by a socket that closed before it read them */
	u64 in_flight; /* counted when the balance is taken */
};

/* One direction of a watched stream. */
struct probe_oneway {
	int final; /* the destination node; -1: unknown */
	u32 number; /* of the next packet */
	struct probe_counts of[PROBE_ECN_COUNT];
	u64 unmatched;
	u64 bytes; /* delivered payload */
	struct probe_sums *sums[2]; /* [data] of PROBE_VISITS nodes */
};

/* Addresses and ports of a packet, with IPv4 addresses mapped. No padding, since it is hashed. */
struct probe_key {
	struct in6_addr source, destination;
	__be16 source_port, destination_port;
	u32 protocol;
};

/* A stream of a program, which the plan does not list. */
struct probe_program {
	struct probe_key key; /* of packets from the client */
	s64 first_ns, last_ns; /* the first and the last packet were sent */
	u64 reported; /* completed packets at the last report */
	u32 connections;
	u16 node; /* of the client */
	u16 app[2]; /* of client and server */
	char comm[2][TASK_COMM_LEN];
	bool shared; /* used by many connections */
	bool mptcp;
	bool redirected; /* a node on the path has the client's destination address */
	bool recount; /* forwarded packets were counted as delivered there */
};

struct probe_watch {
	struct probe_program *program; /* NULL: a stream of the plan */
	u16 id;
	u8 protocol;
	u16 key;
	struct probe_oneway oneway[2];
	struct probe_connection *last;
};

/* Data up to @end was written at @t_ns; @hold_ns: the accumulated hold times then. */
struct probe_written {
	struct list_head list;
	u32 end;
	s64 t_ns;
	s64 hold_ns[PROBE_HOLD_COUNT];
};

/* One end of a TCP connection. */
struct probe_end {
	struct hlist_node hash; /* by @sk, while that is known */
	struct probe_connection *connection;
	struct sock *sk;
	bool gone; /* the socket existed and was destroyed */
	/* as the sender */
	struct list_head written;
	struct list_head lost; /* slots that wait for retransmission */
	u32 sent_end; /* sequence number after all data sent so far */
	bool has_sent;
	u32 gso_bytes;
	enum probe_hold hold;
	s64 hold_since_ns;
	s64 hold_ns[PROBE_HOLD_COUNT];
	u64 tsq_limit, tsq_rate;
	u32 tsq_truesize, tsq_term, tsq_shift, tsq_throttled;
	/* as the receiver */
	struct list_head received; /* slots, by sequence number */
	u32 read_end; /* sequence number after all data read so far */
	bool has_read;
	s64 in_order_ns; /* when the data read last became in order */
};

struct probe_connection {
	struct hlist_node hash;
	struct list_head list;
	struct probe_watch *watch;
	u16 port; /* of the client */
	s64 gone_ns; /* when the last known socket was destroyed; 0: a socket exists */
	struct probe_end end[2]; /* client, server */
};

/* A hop over a cable fits into one cache line. Layers without time have no entry. */
struct probe_visited {
	u16 node;
	u16 took; /* bitmap of hops that have an ns[] */
	u8 ecn;
	s64 ns[HOP_COUNT];
} ____cacheline_aligned;

/* Fields that a search reads are in the first cache line. */
struct probe_slot {
	struct hlist_node hash;
	u64 owner, ident;
	s64 at_ns; /* the last layer ended, or will end */
	u16 node; /* the current node; on a cable the next node */
	u8 state;
	u8 direction, content;
	u8 visits;
	u8 ecn; /* codepoint in the IP header */
	bool twin : 1; /* a copy of a known packet */
	bool equals : 1; /* other slots have, or had, the same owner and ident */
	bool has_sender_ns : 1; /* sender_ns is valid */
	int device; /* ifindex of the last queue */
	struct probe_watch *watch;
	/* in probe_end, while PROBE_RECEIVED at its destination, or PROBE_LOST */
	struct list_head received;
	u32 number, bytes, seq;
	s64 begin_ns;
	s64 sent_ns; /* first transmission */
	s64 reorder_ns, read_ns;
	/* for TCP data */
	s64 sender_ns[PROBE_SENDER_LAYERS];
	struct probe_visited visit[PROBE_VISITS];
};

/* The packets of an skb. */
struct probe_packets {
	struct probe_watch *watch;
	u8 direction, content, ecn;
	u16 port; /* of the client */
	u64 ident; /* of the first packet */
	u32 seq, ack;
	u32 payload, step; /* bytes: of all packets, of each packet but the last */
	u32 count;
	const struct sk_buff *skb; /* for datagrams of programs: the skb with their payload */
	int offset;
	bool fragment; /* the first fragment of a fragmented packet */
};

extern bool probe_on;

/* probe_program.c */
extern bool probe_programs;
void probe_program_start(u16 stream, u16 node);
int probe_program_namespace(struct net *net);
void probe_program_stop(void);
void probe_program_sends(const struct sk_buff *skb, int offset, int node);
void probe_program_meet(struct probe_watch *watch, u8 direction);
struct probe_watch *probe_program_of(const struct probe_key *key, u8 *direction, u16 *port);
bool probe_redirects(const struct probe_watch *watch, const struct sk_buff *skb, int offset);

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
	int node; /* index + 1; 0: not watched */
};

static inline int probe_node(const struct net *net)
{
	return ((struct probe_net *)net_generic(net, probe_net_id))->node - 1;
}

static inline void probe_node_set(const struct net *net, u16 node)
{
	((struct probe_net *)net_generic(net, probe_net_id))->node = node + 1;
}

/* probe_parse.c */
int probe_watch(struct probe_watch *watch);
struct probe_watch *probe_watch_of(u8 protocol, u16 source, u16 destination, u8 *direction);
bool probe_parse(const struct sk_buff *skb, int offset, struct probe_packets *packets);
bool probe_local(const struct sk_buff *skb, int offset, struct net *net);
int probe_offset(const struct sk_buff *skb);
int probe_offset_80211(const struct sk_buff *skb);

/* Returns whether an access point forwards the frame within its cell: mac80211's flag. */
static inline bool probe_forwarded(const struct sk_buff *skb)
{
	return skb->protocol == htons(ETH_P_802_3);
}

/* Returns whether packets are identified by a number: pings and datagrams of the plan. */
static inline bool probe_numbered(const struct probe_watch *watch)
{
	return watch->protocol != IPPROTO_TCP && !watch->program;
}

static inline u64 probe_owner(const struct probe_packets *packets)
{
	return (u64)packets->watch->id << 32 | (u64)packets->direction << 24 |
	       (u64)packets->content << 16 | packets->port;
}

static inline u32 probe_bytes(const struct probe_packets *packets, u32 index)
{
	return min(packets->step, packets->payload - index * packets->step);
}

static inline u64 probe_ident(const struct probe_packets *packets, u32 index)
{
	if (packets->content == PROBE_DATA)
		return packets->seq + index * packets->step;
	if (packets->skb)
		return probe_datagram(packets->skb, packets->offset + index * packets->step,
				      probe_bytes(packets, index));
	return packets->ident;
}

/* Counts a packet at an impossible place, unless it is the rest of a packet that lost a
 * fragment.
 */
static inline void probe_unmatched(const struct probe_packets *packets)
{
	if (!packets->fragment)
		packets->watch->oneway[packets->direction].unmatched++;
}

/* probe_slot.c */
int probe_slot_start(void);
struct probe_slot *probe_slot_new(const struct probe_packets *packets, u32 index, int node,
				  s64 now_ns);
struct probe_slot *probe_slot_at(u64 owner, u64 ident, int states, int node, int device,
				 s64 now_ns);

/* Does the same at any device. */
static inline struct probe_slot *probe_slot_find(u64 owner, u64 ident, int states, int node,
						 s64 now_ns)
{
	return probe_slot_at(owner, ident, states, node, 0, now_ns);
}

struct probe_slot *probe_slot_duplicate(const struct probe_slot *slot);
void probe_slot_visit(struct probe_slot *slot, int node);
void probe_slot_ecn(struct probe_slot *slot, u8 ecn, const struct net_device *dev,
		    enum probe_place place);
void probe_slot_layers(const struct probe_slot *slot, struct probe_visit *visit);
void probe_slot_finish(struct probe_slot *slot);
void probe_slot_free(struct probe_slot *slot);
void probe_slots_count(void);

/* Books the time up to @until_ns on @hop of the packet's current node. */
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
	return &slot->watch->oneway[slot->direction].of[slot->ecn];
}

static inline bool probe_slot_data(const struct probe_slot *slot)
{
	return slot->content == PROBE_DATA || slot->content == PROBE_DATAGRAM;
}

static inline struct probe_stream probe_slot_stream(const struct probe_slot *slot)
{
	return (struct probe_stream){ .id = slot->watch->id,
				      .way = slot->direction };
}

/* probe_path.c */
int probe_path_start(void);
int probe_path_capture(void);
bool probe_just_queued(const struct sk_buff *skb);
u8 *probe_capture(const struct sk_buff *frame, const struct net_device *dev, int offset, s64 t_ns,
		  bool received, const struct probe_slot *slot, const void *head, u32 head_bytes);

/* probe_radio.c */
#ifdef CONFIG_HOURGLASS_RADIO
int probe_radio_start(void);
void probe_radio_sample(void);
bool probe_radio_dequeues(void);
bool probe_radio_queued(const struct sk_buff *skb, int offset, const struct net_device *dev);
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

static inline bool probe_radio_queued(const struct sk_buff *skb, int offset,
				      const struct net_device *dev)
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
struct probe_end *probe_end_of(struct sock *sk);
void probe_end_detach(struct sock *sk);
void probe_keep_lost(struct probe_slot *slot);
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
bool probe_is_recorded(const struct probe_slot *slot);
void *probe_emit(enum probe_record type, u32 bytes);

#endif

/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * probe: what /proc/hourglass/probe takes and gives.
 *
 * Written to it, a command per line:
 *
 * node INDEX		the writer's network namespace is node INDEX
 * watch KIND ID PROTO KEY
 *			KIND flow or probe; PROTO tcp, udp or icmp; KEY the port
 *			the server listens on, or the echo identifier; ID as in
 *			the plan
 * capture DEVICE SNAPLEN
 *			frames on this wire or radio of the writer's namespace,
 *			cut to SNAPLEN bytes (radiotap not counted); 0: whole
 * packets N		rows of one packet in N; 1 all, 0 none (totals are
 *			always of all)
 * totals NS		PROBE_LAYERS each NS; 0: at stop only
 * sample NS		PROBE_TCP and PROBE_QUEUE each NS; 0: never
 * start NS		intervals count from this CLOCK_MONOTONIC; from now on
 *			packets are followed
 * stop			gives what is still to give: PROBE_LAYERS,
 *			PROBE_BALANCE; then reads end
 *
 * Read from it: whole records, each a struct probe_head and its body, padded to
 * 8 bytes. A read waits until its buffer is half full, or 200 ms of virtual
 * time have passed; 0 after `stop` when all is read. All times are ns of
 * CLOCK_MONOTONIC, all durations ns.
 */
#ifndef _PROBE_ABI_H
#define _PROBE_ABI_H

#include <linux/types.h>

enum probe_record {
	PROBE_PACKET = 1,
	PROBE_LAYERS,
	PROBE_TCP,
	PROBE_QUEUE,
	PROBE_DROP,
	PROBE_FRAME,
	PROBE_BALANCE,
};

/*
 * The layers of one node, in the order in which a packet passes them; what a
 * packet does not pass is 0. They add up to the time from the write of a
 * packet's first byte (of the first bit's enqueueing, where there is no socket
 * to write to) to its read.
 */
enum probe_layer {
	/* arrived, until the stack has it: interrupt moderation, NAPI, GRO */
	PROBE_RX,
	/* in mac80211 of the receiver, until no MPDU before it is missing */
	PROBE_RESEQUENCE,
	PROBE_REORDER,		/* in the receiver, until nothing before it is missing */
	PROBE_READ,		/* in the receiver's socket, until it is read */
	PROBE_CWND,		/* written, not sent: the congestion window is full */
	PROBE_RWND,		/* ... the receiver's window is full */
	PROBE_PACING,		/* ... its time has not come */
	PROBE_TSQ,		/* ... TCP Small Queues */
	PROBE_PUSH,		/* ... Nagle, TSO deferral, not connected yet */
	PROBE_RECOVERY,		/* sent before, until it was sent again */
	PROBE_STACK,		/* between socket or receive path and qdisc: routing, neighbours */
	PROBE_QDISC,
	PROBE_TXQ,		/* in mac80211's queue, until the radio's driver takes it */
	/*
	 * given to the driver, until its first bit leaves; of a radio: until its PPDU is
	 * the first of its hardware queue
	 */
	PROBE_RING,
	PROBE_CONTENTION,	/* ... until that PPDU begins: EDCA, others' air time, RTS, CTS */
	PROBE_RETRY,		/* from there, until the PPDU begins that is received */
	PROBE_AIR,		/* that PPDU, preamble to last bit */
	PROBE_WIRE,		/* first bit to last bit, gap included */
	PROBE_PROPAGATION,	/* delay and jitter of the cable; through the air */
	PROBE_LAYER_COUNT,
};

struct probe_head {
	__u32 size;		/* with head and padding */
	__u16 type;
	__u16 reserved;
};

/* Which packet: one way of one flow or probe. */
struct probe_stream {
	__u16 id;
	__u8 kind;		/* 0 flow, 1 probe, 255 neither */
	__u8 way;		/* 0 to the server, 1 from it */
};

struct probe_visit {
	__u16 node;
	__u16 reserved[3];
	__s64 layer_ns[PROBE_LAYER_COUNT];
};

/* A packet that was read at its end. */
struct probe_packet {
	__s64 t_ns;		/* its first layer began */
	__s64 end_ns;		/* its last layer ended */
	struct probe_stream stream;
	/* counts the packets of the stream; of a probe its sequence number */
	__u32 number;
	__u32 bytes;		/* of payload: TCP's, UDP's or ICMP's */
	__u16 data;		/* 0: a bare acknowledgment, SYN, FIN */
	__u16 visits;
	struct probe_visit visit[];	/* [visits], from sender to receiver */
};

/* All packets of a stream that ended so far, by the node they passed. */
struct probe_layers {
	__s64 t_ns;
	struct probe_stream stream;
	__u16 node;
	__u16 data;		/* as above */
	__u64 packets;
	__u64 layer_ns[PROBE_LAYER_COUNT];
};

/* Which term of TCP Small Queues' rule gave the limit. */
enum probe_term {
	PROBE_TERM_NONE,	/* never checked yet */
	PROBE_TERM_FLOOR,	/* two skbs */
	PROBE_TERM_RATE,	/* the pacing rate */
	PROBE_TERM_CAP,		/* tcp_limit_output_bytes */
	PROBE_TERM_BYTES,	/* tcp_tsq_bytes */
	PROBE_TERM_OFF,
};

enum probe_hold {
	PROBE_HOLD_NONE,
	PROBE_HOLD_CWND,
	PROBE_HOLD_RWND,
	PROBE_HOLD_PACING,
	PROBE_HOLD_TSQ,
	PROBE_HOLD_PUSH,
	PROBE_HOLD_COUNT,
};

struct probe_tcp {
	__s64 t_ns;
	struct probe_stream stream;	/* way: of what this socket sends */
	__u32 info_bytes;	/* of struct tcp_info that this kernel has */
	__u8 info[320];		/* struct tcp_info */
	__u32 meminfo[9];	/* SK_MEMINFO_* */
	__u32 ca_attribute;	/* INET_DIAG_{VEGAS,DCTCP,BBR}INFO, or 0 */
	__u8 ca_info[24];	/* union tcp_cc_info */
	/* TCP Small Queues at its last check */
	__u64 tsq_limit;	/* bytes of truesize, doubling for retransmissions left out */
	__u32 tsq_truesize;	/* of the skb that asked */
	__u32 tsq_term;		/* enum probe_term */
	__u64 tsq_rate;		/* sk_pacing_rate then, bytes/s */
	__u32 tsq_shift;	/* sk_pacing_shift then */
	__u32 tsq_throttled;	/* how often it held the socket back */
	/* time so far in which unsent data waited, by cause */
	__u32 hold;		/* enum probe_hold, now */
	__u32 gso_bytes;	/* payload of the skb last sent */
	__u64 hold_ns[PROBE_HOLD_COUNT];
};

struct probe_queue {
	__s64 t_ns;
	__u16 node;
	__u16 reserved[3];
	char device[16];
	__u32 qdisc_packets;	/* the root qdisc's, children included */
	__u32 qdisc_bytes;
	__u32 ring_skbs;	/* of a radio: MPDUs with driver and hardware, unreported */
	__u32 ring_bytes;
	__u32 bql_limit;
	__u32 bql_inflight;
	__u32 txq_packets;	/* of a radio: in mac80211's queues to all its stations */
	__u32 txq_bytes;
};

enum probe_place {
	PROBE_AT_SOCKET,
	PROBE_AT_STACK,
	PROBE_AT_QDISC,
	PROBE_AT_RING,
	PROBE_AT_WIRE,
	PROBE_AT_RX,
	PROBE_AT_TXQ,
	PROBE_AT_AIR,
};

struct probe_drop {
	__s64 t_ns;
	struct probe_stream stream;
	__u16 node;
	__u16 place;		/* enum probe_place */
	__u32 packets;		/* segments of the skb */
	__u32 bytes;		/* of payload */
	char device[16];	/* empty: no device has to do with it */
	/* the kernel's drop reason; its function where it has none; or the driver's word */
	char reason[40];
};

/*
 * A frame on the cable; @t_ns is its first bit leaving, or its last bit arriving. On
 * the air: its PPDU's first or last bit, and a radiotap header before the frame.
 */
struct probe_frame {
	__s64 t_ns;
	__u16 node;
	__u16 received;		/* 0: sent */
	__u32 length;
	__u32 captured;
	/* 0: not followed; else the layers so far, to which t_ns - begin_ns adds up */
	__u16 visits;
	__u16 reserved;
	char device[16];
	struct probe_stream stream;	/* kind 255 and number 0 where it is not followed */
	__u32 number;		/* as in probe_packet */
	__s64 begin_ns;
	struct probe_visit visit[];	/* [visits], then u8 data[captured] */
};

/* At the end: sent = delivered + dropped + in flight. */
struct probe_balance {
	__s64 t_ns;
	struct probe_stream stream;
	__u32 reserved;
	__u64 sent;		/* onto the first qdisc; retransmissions count again */
	__u64 duplicated;	/* by the cable */
	__u64 delivered;
	__u64 dropped;
	__u64 in_flight;
	__u64 unmatched;	/* seen in a place where they cannot be: 0, or the probe is wrong */
};

#endif

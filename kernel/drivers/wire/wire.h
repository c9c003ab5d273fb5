/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * wire: an Ethernet NIC and its end of a cable, in virtual time.
 *
 *	 xmit           ring          line        delay        moderation
 *	------> [descriptors, BQL] ==========> ( in flight ) ------------> NAPI
 *	            ^  completion interrupt |                   peer NIC
 *	            +-----------------------+
 *
 * A NIC has one or several queues. Each has a ring in both directions, with its interrupts.
 *
 * wire_nic.c	creation of NICs, cables
 * wire_queue.c	queues and their interrupts
 * wire_tx.c	ring, segmentation, transmission, completion
 * wire_fetch.c	the turns of several transmit queues
 * wire_offload.c	what tc moves into the chip: gates, launch times, priorities
 * wire_phc.c	the NIC's PTP clock
 * wire_stamp.c	time stamps of frames by that clock
 * wire_rx.c	arrival, moderation, NAPI
 * wire_rss.c	the receive queue of a frame
 * wire_buffer.c	receive buffers of drivers
 * wire_cpu.c	the time of frames on the node's CPU
 * wire_flight.c	the path of a frame after the ring, computed in advance
 * wire_fifo.c, wire_itr.c, wire_line.c, wire_grant.c, wire_bucket.c, wire_shaper.c,
 * wire_faults.c, wire_clock.c, wire_schedule.c	the arithmetic: pure functions
 * wire_ethtool.c, wire_sysfs.c	the user interface: ethtool(8), /sys/class/net/X/wire/
 * wire_trace.h	tracepoints for subscribers that follow frames
 *
 * The guest has one CPU. All of this runs in bottom halves, or under RTNL with bottom halves
 * off, so there are no locks.
 */
#ifndef _WIRE_H
#define _WIRE_H

#include <linux/hrtimer.h>
#include <linux/net_tstamp.h>
#include <linux/netdevice.h>
#include <linux/ptp_clock_kernel.h>
#include <linux/skbuff.h>
#include <linux/time-internal.h>
#include <net/hourglass_cpu.h>
#include "compat.h"
#include "wire_clock.h"
#include "wire_faults.h"
#include "wire_fifo.h"
#include "wire_itr.h"
#include "wire_line.h"
#include "wire_rss.h"
#include "wire_schedule.h"
#include "wire_shaper.h"

/* Preamble and start of frame 8, FCS 4, gap 12. The header is in skb->len. */
#define WIRE_OVERHEAD	24
#define WIRE_NO_CABLE	(-1)
#define WIRE_NO_MEDIUM	(-1)

/* The longest frame that a driver copies. An skb has as much room after its data. */
#define WIRE_COPY_MAX	256
#define WIRE_BUFFER_TAIL	SKB_DATA_ALIGN(sizeof(struct skb_shared_info))

/*
 * Interrupt after @frames, or @usecs after the first, whichever is earlier. For a NIC with
 * intervals (wire_itr.c) @usecs is the first interval, or the only one.
 */
struct wire_moderation {
	u32 usecs;
	u32 frames;	/* 0: no limit */
};

/* An interrupt vector with its timer and its NAPI. */
struct wire_vector {
	struct time_travel_event event;
	struct napi_struct napi;
	u64 fires_ns;		/* WIRE_NEVER: not armed */
	bool masked;		/* NAPI runs, or the NIC is down */
	bool polling;		/* the poll continues when the CPU has received a frame */
	struct wire_itr itr;
};

/* A descriptor chain that the NIC has. Its skb is freed at completion. */
struct wire_slot {
	struct sk_buff *skb;
	struct sk_buff *waiting;	/* a NIC with several queues has not fetched these frames */
	u64 queued_ns;
	u64 done_ns;		/* WIRE_NEVER: unknown yet */
	u32 bytes;		/* for BQL */
	u32 descriptors;
	struct wire_work frames;
};

struct wire_stats {
	u64 tx_frames, tx_bytes, tx_wire_bytes, tx_skbs, tx_tso_skbs;
	u64 tx_stops, tx_no_carrier, tx_no_memory;
	u64 tx_lost, tx_policed, tx_shaper_full, tx_duplicated, tx_reordered, tx_marked;
	u64 rx_frames, rx_bytes, rx_corrupted, rx_missed;
	u64 tx_interrupts, rx_interrupts;
	u64 tx_digest;
};

/* A transmit queue and a receive queue of a NIC. */
struct wire_queue {
	struct wire_nic *nic;
	u32 index;

	/* transmission */
	struct wire_slot *slots;	/* ring of tx_ring slots, a part of the NIC's */
	u32 slot_first, slot_count;
	u32 slots_fetched;		/* of slot_count */
	u32 descriptors_used;
	u64 tx_frames;
	u32 rank;			/* lower ones are served first, if not in turn */
	bool timed;			/* frames wait for their launch times */
	struct wire_vector tx_vector;	/* unused where the directions share a vector */

	/* the node's CPU, if packets take time on it */
	u64 received_ns;		/* the CPU has received the first frame; 0: not begun */
	int polled;			/* frames of the current poll */

	/* reception: frames in flight or arrived, by time of arrival */
	struct sk_buff_head frames;
	u64 rx_frames;
	struct wire_vector rx_vector;
};

struct wire_nic {
	struct net_device *dev;
	struct list_head list;		/* list of all NICs */
	struct hlist_node ends;		/* hash of NICs by cable */

	/* parameters */
	int cable;			/* two NICs with the same number are connected */
	u64 delay_ns;
	struct wire_faults faults;	/* of the direction that leaves this NIC */
	struct wire_moderation tx_moderation, rx_moderation;
	u32 tx_ring, rx_ring;		/* descriptors */
	enum wire_law law;		/* interrupt moderation of both directions */
	u64 vectors;			/* 1: both directions share one */
	u64 tx_fifo;			/* bytes */
	u64 tx_wake;			/* free descriptors at which a stopped queue is woken */
	u64 tx_context;			/* additional descriptors of an skb with offloads */
	u64 bql_headers;		/* BQL counts the headers of all segments of an skb */
	u64 rx_copy, rx_buffer, rx_large;	/* bytes; see wire_buffer.c */
	u64 launch_time;		/* unit of launch times, ns; 0: the chip has none */
	u64 gates;			/* the chip's queues have gates and priorities */

	/* transmission */
	struct wire_nic *peer;
	struct wire_medium *medium;	/* shared by several lines, or NULL */
	struct wire_line line;
	struct wire_fifo fifo;
	struct wire_bucket policer;
	struct wire_shaper shaper;
	u64 arrival_last_ns;		/* jitter does not reorder frames */
	bool last_lost;			/* the last frame was lost, for bursts */

	struct wire_queue *queues;
	u32 queue_count;
	struct wire_slot *slots;	/* of all queues */
	struct hrtimer fetching;	/* the memory has room for the next frame */
	u32 turn;			/* the queue whose turn it is */
	u32 timed;			/* queues whose frames have launch times */
	u32 classes;			/* traffic classes of mqprio in the chip */
	struct wire_schedule *schedule;	/* of the gates, or NULL */
	struct wire_clock clock;
	struct ptp_clock_info phc_info;
	struct ptp_clock *phc;		/* or NULL */

	/* time stamps of frames */
	bool stamps_sent, stamps_received;
	struct sk_buff *stamped;	/* the sent skb that gets a stamp, or NULL */
	u64 stamped_ns;			/* it leaves then */
	struct hrtimer stamping;

	/* the node's CPU, if packets take time on it */
	struct sk_buff *handed;		/* the skb on its way to a ring, or NULL */
	struct hrtimer handing;

	/* text of the trace, as far as written */
	char *trace_text;
	size_t trace_length;

	struct wire_stats stats;
};

/* The path of a frame, known when it enters the ring. */
struct wire_flight {
	u64 head_ns;		/* earlier frames of this NIC have left */
	u64 start_ns, end_ns;	/* its first and its last bit leave, gap included */
	u64 leaves_ns;		/* it leaves the shaper after the line */
	u64 arrival_ns;		/* its last bit arrives */
	u32 copies;		/* number of copies that arrive */
	const char *lost;	/* reason if no copy arrives */
	bool congested;		/* it waited longer than the shaper's threshold */
};

/* Private data of a frame between two NICs. */
struct wire_cb {
	u64 arrival_ns;
	u64 departure_ns;
	struct wire_rss rss;	/* of a NIC with several queues */
	ktime_t stamp;		/* 0: by the clock of the receiver as it is */
	bool corrupted;
};

static inline struct wire_cb *wire_cb(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct wire_cb) > sizeof(skb->cb));
	return (struct wire_cb *)skb->cb;
}

#define wire_for_each_queue(queue, nic) \
	for ((queue) = (nic)->queues; (queue) < (nic)->queues + (nic)->queue_count; (queue)++)

/* Returns the queue that sends @skb. */
static inline struct wire_queue *wire_queue_of(const struct wire_nic *nic,
					       const struct sk_buff *skb)
{
	return &nic->queues[skb_get_queue_mapping(skb)];
}

/* Returns the kernel's transmit queue. */
static inline struct netdev_queue *wire_txq(const struct wire_queue *queue)
{
	return netdev_get_tx_queue(queue->nic->dev, queue->index);
}

/* wire_nic.c */
int wire_plug(struct wire_nic *nic, int cable);
void wire_start(struct wire_nic *nic);
void wire_halt(struct wire_nic *nic);
void wire_sample(void);

/* wire_queue.c */
int wire_queues_init(struct wire_nic *nic);
void wire_queues_free(struct wire_nic *nic);
void wire_queues_enable(struct wire_nic *nic);
void wire_queues_disable(struct wire_nic *nic);
void wire_tx_arm(struct wire_queue *queue);
void wire_rx_arm(struct wire_queue *queue);
void wire_itr_begin(struct wire_nic *nic);

/* wire_tx.c */
netdev_tx_t wire_xmit(struct sk_buff *skb, struct net_device *dev);
void wire_tx_ring(struct wire_queue *queue, struct sk_buff *skb);
void wire_tx_refuse(struct wire_nic *nic, struct sk_buff *skb);
struct wire_slot *wire_slot(const struct wire_queue *queue, u32 index);
struct sk_buff *wire_take_frame(struct wire_slot *slot);
void wire_sent(struct wire_queue *queue, const struct wire_slot *slot);
u64 wire_send_frame(struct wire_nic *nic, struct sk_buff *frame, u64 queued_ns, u64 now_ns);
bool wire_tx_room(const struct wire_queue *queue);
void wire_tx_reap(struct wire_queue *queue, u64 now_ns);
u64 wire_tx_due(const struct wire_queue *queue);
u32 wire_tx_bytes(const struct wire_queue *queue);
int wire_tx_resize(struct wire_nic *nic, u32 descriptors);
void wire_tx_flush(struct wire_nic *nic);
void wire_tx_revive(struct wire_nic *nic, u64 now_ns);

/* wire_fetch.c */
void wire_fetch(struct wire_nic *nic, u64 now_ns);
int wire_fetch_changed(struct wire_nic *nic);
void wire_fetch_setup(struct wire_nic *nic);

/* wire_offload.c */
int wire_setup_tc(struct net_device *dev, enum tc_setup_type type, void *data);
void wire_schedule_free(struct wire_nic *nic);

/* wire_phc.c */
int wire_phc_open(struct wire_nic *nic);
void wire_phc_close(struct wire_nic *nic);

/* wire_stamp.c */
void wire_stamp_request(struct wire_nic *nic, struct sk_buff *skb);
void wire_stamp_sent(struct wire_nic *nic, u64 left_ns);
void wire_stamp_drop(struct wire_nic *nic);
void wire_stamp_setup(struct wire_nic *nic);
void wire_stamp_arrived(struct wire_nic *nic, u64 now_ns);
void wire_stamp_received(const struct wire_nic *nic, struct sk_buff *skb,
			 const struct wire_cb *cb);
int wire_stamps_get(struct net_device *dev, struct kernel_hwtstamp_config *config);
int wire_stamps_set(struct net_device *dev, struct kernel_hwtstamp_config *config,
		    struct netlink_ext_ack *extack);
int wire_ioctl(struct net_device *dev, struct ifreq *request, int command);

static inline bool wire_shared(const struct wire_nic *nic)
{
	return nic->vectors == 1;
}

/* Returns the vector that reports transmissions. */
static inline struct wire_vector *wire_tx_vector(struct wire_queue *queue)
{
	return wire_shared(queue->nic) ? &queue->rx_vector : &queue->tx_vector;
}

/* wire_cpu.c */
bool wire_cpu_sends(struct wire_nic *nic, struct sk_buff *skb);
bool wire_cpu_received(struct wire_queue *queue, u64 now_ns);
void wire_cpu_setup(struct wire_nic *nic);
void wire_cpu_drop(struct wire_nic *nic);

/* wire_flight.c */
void wire_fly(struct wire_nic *nic, const struct sk_buff *frame, u64 now_ns,
	      struct wire_flight *flight);
bool wire_mark(struct sk_buff *frame);
int wire_medium_join(struct wire_nic *nic, int number);
int wire_medium_number(const struct wire_nic *nic);

/* wire_rx.c */
void wire_rx_enqueue(struct wire_nic *nic, struct sk_buff *frame);
u64 wire_rx_due(const struct wire_queue *queue);
void wire_rx_poll(struct wire_queue *queue, u64 now_ns, int budget);
void wire_rx_flush(struct wire_nic *nic);
void wire_rx_recall(struct wire_nic *nic, u64 now_ns);
u64 wire_rx_settled_ns(const struct net_device *dev, u64 now_ns);

/* wire_buffer.c */
int wire_buffer_init(void);
struct sk_buff *wire_buffer_receive(const struct wire_nic *nic, struct sk_buff *frame);

/* wire_ethtool.c, wire_sysfs.c */
extern const struct ethtool_ops wire_ethtool_ops;
extern const struct attribute_group wire_attributes;
void wire_trace_free(struct wire_nic *nic);

#endif

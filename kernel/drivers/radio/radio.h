/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * radio: an 802.11 radio below the kernel's mac80211, and the medium, in virtual time.
 *
 *	mac80211 TXQ --> TID window --> hardware queue (EDCA) ==air==> receive
 *	     ^  pull        ^   |  not acknowledged |            |  moderation
 *	     |              +-------- retries ------+            v
 *	     +-- completion: refill, then free            mac80211 of the peer
 *
 * radio_phy.c	creation of radios; radio_ops.c callbacks of mac80211; radio_caps.c
 *		capabilities; radio_proc.c, radio_stats.c the user interface
 * radio_medium.c	channel access and reception; radio_queue.c hardware queues
 * radio_ampdu.c	windows, aggregates; radio_tx.c frames and their status reports;
 *		radio_rates.c rates
 * radio_pull.c, radio_usb.c	personalities: how frames reach the hardware
 * radio_rx.c	arrival, interrupt mitigation; radio_cpu.c the time of frames on the node's CPU
 * radio_trace.h	tracepoints for subscribers that follow frames
 * radio_duration.c, radio_edca.c, radio_errors.c	the arithmetic: pure functions
 *
 * The guest has one CPU. All of this runs in bottom halves or with bottom halves off, so there
 * are no locks. Before a call of mac80211, which may call back, the state is consistent.
 */
#ifndef _RADIO_H
#define _RADIO_H

#include <linux/bitmap.h>
#include <linux/hrtimer.h>
#include <linux/skbuff.h>
#include <net/hourglass_cpu.h>
#include <net/mac80211.h>
#include "compat.h"
#include "radio_duration.h"
#include "radio_edca.h"
#include "radio_errors.h"

#define RADIO_SUBFRAMES	256
#define RADIO_BEACONS	IEEE80211_NUM_ACS	/* the queue after those of the ACs */
#define RADIO_QUEUES	(IEEE80211_NUM_ACS + 1)
#define RADIO_MINSTREL	U64_MAX	/* an MCS: mac80211 selects the rate */
#define RADIO_DSSS_RATES	4

enum radio_chip { RADIO_ATH9K, RADIO_ATH9K_HTC, RADIO_GENERIC };
enum radio_standard { RADIO_N, RADIO_AC, RADIO_AX };

/* The parameters; see the table in radio_params.c. One type, since one loop parses all of them. */
struct radio_params {
	u64 chip, standard, medium, band, width, streams, sgi, mcs, snr_cdb, per_ppm,
	    seed, rx_last_us, rx_first_us, max_subframes, max_airtime_us, depth,
	    fifo, gap_us, usb_ns, collide, pacing_shift, aql, fair, csa, rts_bytes,
	    propagation_ns, hw_tries, sw_tries;
};

/* One frame, from mac80211 until its status report. */
struct radio_mpdu {
	struct list_head list;
	struct sk_buff *skb;
	struct radio_tid *tid;	/* NULL: for no station */
	u32 bytes;		/* with FCS */
	u32 part_bytes;		/* of its PSDU, up to the frame's last byte */
	u16 seq;
	u16 tries;		/* transmissions so far */
	bool ampdu;		/* of a block ack session */
	bool acked;
	/* timestamps in ns, from which the waiting times of a packet are computed */
	u64 taken_ns;		/* dequeued from mac80211 */
	u64 txq_ns;		/* time in mac80211's queue, in units of CoDel's clock */
	u64 queued_ns;		/* its PPDU entered the hardware queue, last time; before, when
				 * the CPU has handed it over
				 */
	u64 head_ns;		/* its PPDU reached the head of that queue */
	u64 start_ns, end_ns;	/* its PPDU's first bit, and its own last bit, on the air */
	u64 air_ns;		/* time on the air in all tries */
	void *cookie;		/* of a subscriber: see radio_trace.h */
};

enum radio_ack { RADIO_NO_ACK, RADIO_NORMAL_ACK, RADIO_BLOCK_ACK };

/* A PPDU: what the hardware sends at once. */
struct radio_ppdu {
	struct list_head list;		/* in a hardware queue */
	struct list_head mpdus;
	struct radio_queue *queue;
	struct ieee80211_sta *sta;	/* NULL: none, or removed */
	struct radio_rate rates[IEEE80211_TX_MAX_RATES];
	u8 tries[IEEE80211_TX_MAX_RATES];	/* allowed; 0 ends the series */
	u8 series;			/* index of the current rate */
	u8 tries_spent;			/* at the current rate */
	u16 sent;			/* transmissions so far */
	u16 count;
	u32 bytes;			/* of PSDU */
	enum radio_ack ack;
	bool ampdu;			/* of a block ack session */
	bool counted;			/* ... that counts towards the limit of aggregates */
	u8 rts;				/* bitmap: which of `rates` begin with RTS/CTS */
	u64 queued_ns, head_ns;
	u64 start_ns, end_ns;		/* of the last try: preamble to last bit */
	u64 air_ns;			/* of all tries */
};

/* A hardware queue, which contends for the medium. */
struct radio_queue {
	struct radio_phy *phy;
	u8 ac;
	struct radio_edca edca;
	struct list_head ppdus;
	struct list_head on_air;	/* in the medium's list of senders */
	u64 txop_start_ns;
	u32 aggregates, singles;		/* in ppdus */
	/* firmware: TIDs with frames, round robin */
	struct list_head tids;
	struct hrtimer gap;		/* the firmware's pause between aggregates */
	bool pausing;
};

/* The frames of one TID to one station. */
struct radio_tid {
	struct radio_queue *queue;
	struct ieee80211_sta *sta;
	struct list_head retry;		/* of radio_mpdu, before all others */
	struct list_head pending;	/* in the firmware */
	struct list_head list;		/* in queue->tids */
	u8 tid;
	bool active;			/* block ack session */
	bool ba_requested;			/* a session was requested */
	u16 window;
	u16 seq_first, seq_next;
	u32 bar;			/* sequence number to send a BAR for, or -1 */
	DECLARE_BITMAP(done, 512);
};

#define RADIO_NO_BAR	U32_MAX

/* mac80211's counters of the queues to a station, summed over its TIDs, at the last request. */
struct radio_txq_stats {
	u64 backlog_packets, backlog_bytes, drops, overlimit, ecn_marks, collisions;
	u64 tx_packets, tx_bytes;
};

struct radio_station {
	struct list_head list;		/* of the phy */
	struct ieee80211_sta *sta;
	struct radio_tid tids[IEEE80211_NUM_TIDS];
	struct radio_rate rate;	/* of the last data frame; streams 0: none yet */
	u64 tx_ns[IEEE80211_NUM_ACS], rx_ns[IEEE80211_NUM_ACS];
	struct radio_txq_stats txq;
};

struct radio_vif {
	struct list_head list;		/* of the phy */
	struct ieee80211_vif *vif;
	u8 address[ETH_ALEN];
	struct radio_tid tid;		/* multicast frames */
	u64 beacon_ns;			/* interval; 0: none */
	u64 tbtt_ns;
};

struct radio_stats {
	u64 tx_ppdus, tx_aggregates, tx_singles, tx_beacons, tx_rts;
	u64 tx_mpdus, tx_acked, tx_failed, tx_dropped, tx_retries, tx_bars;
	u64 tx_collisions, tx_internal, tx_unanswered, tx_attempts, tx_ns;
	u64 tx_truesize, tx_truesize_mpdus, tx_fifo_stops, tx_no_memory;
	u64 rx_ppdus, rx_mpdus, rx_errors, rx_interrupts, rx_ns;
	u64 tx_digest;
};

/* The time in which the medium was busy, and the part of it with responses and the gaps of
 * exchanges.
 */
struct radio_busy {
	u64 busy_ns, answer_ns;
	u64 until_ns;		/* counted up to here */
};

/* Counters of a radio for one access category: see radio_stats.c. */
struct radio_category {
	u64 ppdus, failed, mpdus, tx_ns;
	u64 waited, txq_ns, ring_ns, contention_ns;
};

/* The USB side of ath9k_htc. */
struct radio_usb {
	struct list_head fifo, transfer;
	struct hrtimer timer;
	struct hrtimer events;
	struct list_head done;
	u32 queued;		/* frames that the host has handed over and that are not reported */
	u32 buffers;		/* free in the firmware */
	bool busy, stopped;
};

/* Frames on the node's CPU, if they take time on it. */
struct radio_cpu {
	struct sk_buff_head received;	/* by the last interrupt, for the stack */
	bool receiving;			/* ... the CPU works on the first one */
	struct list_head building;	/* PPDUs on their way to the hardware, in order */
	struct list_head handing;	/* MPDUs on their way to the firmware, in order */
	struct hrtimer receive, send;
};

struct radio_phy {
	struct ieee80211_hw *hw;
	struct list_head list;		/* of the medium */
	struct radio_medium *medium;
	const struct radio_personality *chip;
	struct radio_params params;
	struct radio_random backoffs, errors;
	bool running, monitor;
	struct list_head vifs, stations;
	struct radio_queue queues[RADIO_QUEUES];
	struct hrtimer beacons;
	struct sk_buff_head arrived;
	u32 unreported, unreported_bytes;	/* MPDUs of mac80211, not reported yet */
	struct radio_ppdu *heard;	/* on the air now; NULL: nothing for this radio */
	struct radio_mpdu *heard_next;	/* its first frame that has not arrived yet */
	u64 rx_first_ns, rx_last_ns;
	struct hrtimer rx_interrupt;
	struct radio_cpu cpu;
	u32 ampdu_reference;
	struct radio_usb usb;
	struct radio_stats stats;
	struct radio_category categories[RADIO_QUEUES];
	u64 histogram[RADIO_SUBFRAMES + 1];
	/* capabilities: see radio_caps.c */
	struct ieee80211_supported_band sband;
	struct ieee80211_sband_iftype_data iftypes;
	struct ieee80211_channel channels[11];
	struct ieee80211_rate bitrates[12];
	struct device *device;
	char name[32];
	struct list_head all;
};

/* Queued frames in a radio and above it. */
struct radio_backlog {
	u32 ring_skbs, ring_bytes;	/* from mac80211, not reported yet */
	u32 txq_packets, txq_bytes;	/* in mac80211's queues to all stations */
};

/* A personality: how frames get from mac80211 into the hardware, and constants. */
struct radio_personality {
	const char *name;
	bool firmware;		/* TIDs are queued below the driver */
	u32 min_bytes;	/* minimum of a subframe */
	u32 density_us;		/* minimum MPDU start spacing; the HT capability follows */
	u32 singles;		/* limit of PPDUs with one frame in a hardware queue */
	/* bytes that the driver allocates for a received frame: rx_buffer, or with rx_buffer 0
	 * the frame's length plus rx_header; by dev_alloc_skb()
	 */
	u32 rx_buffer, rx_header;
	bool rx_per_ppdu;		/* all frames of a PPDU are delivered at once */
	bool rts_lowest;	/* RTS is sent at the lowest basic rate */
	struct radio_params params;	/* defaults; 0 means the common default */
	void (*refill)(struct radio_queue *queue);	/* the hardware has room */
	void (*report)(struct radio_phy *phy, struct list_head *done);
	void (*wake)(struct radio_phy *phy, struct ieee80211_txq *txq);
	void (*tx)(struct radio_phy *phy, struct ieee80211_sta *sta,
		   struct sk_buff *skb);
	void (*handed)(struct radio_phy *phy, struct radio_mpdu *mpdu); /* with firmware */
};

extern const struct radio_personality radio_ath9k, radio_htc, radio_generic;

static inline struct radio_phy *radio_phy(struct ieee80211_hw *hw)
{
	return hw->priv;
}

static inline struct radio_station *radio_station(struct ieee80211_sta *sta)
{
	return (struct radio_station *)sta->drv_priv;
}

static inline struct radio_vif *radio_vif(struct ieee80211_vif *vif)
{
	return (struct radio_vif *)vif->drv_priv;
}

typedef enum hrtimer_restart (*radio_timer)(struct hrtimer *timer);

static inline void radio_timer_setup(struct hrtimer *timer, radio_timer function)
{
	hrtimer_setup(timer, function, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
}

static inline void radio_timer_set(struct hrtimer *timer, u64 at_ns)
{
	hrtimer_start(timer, ns_to_ktime(at_ns), HRTIMER_MODE_ABS_SOFT);
}

/* radio_phy.c */
int radio_phy_make(const char *name, const struct radio_params *params,
		   const u8 *address);
struct radio_phy *radio_phy_find(const char *name);
const struct radio_phy *radio_phy_peer(const struct radio_phy *phy, const u8 *address);
struct radio_phy *radio_phy_next(struct radio_phy *phy);
int radio_phy_apply(struct radio_phy *phy, const struct radio_params *params);

/* radio_params.c */
const struct radio_personality *radio_params_chip(u64 chip);
int radio_params_parse(struct radio_params *params, u8 *address, char *words,
		       bool live);
int radio_params_check(const struct radio_params *params);

/* radio_caps.c */
void radio_caps_set(struct radio_phy *phy);
bool radio_params_rate(const struct radio_params *params, struct radio_rate *rate);

/* radio_ops.c */
extern const struct ieee80211_ops radio_txq_ops;
extern const struct ieee80211_ops radio_fifo_ops;
void radio_beacons(struct radio_phy *phy);
void radio_beacons_setup(struct radio_phy *phy);

/* radio_medium.c */
struct radio_medium *radio_medium_join(struct radio_phy *phy, u64 number);
const struct radio_busy *radio_medium_busy(struct radio_medium *medium);

/* radio_queue.c */
void radio_medium_enqueue(struct radio_ppdu *ppdu);
void radio_queue_add(struct radio_ppdu *ppdu);
void radio_medium_forget(struct radio_phy *phy, struct ieee80211_sta *sta);
void radio_medium_flush(struct radio_phy *phy, const struct ieee80211_vif *vif);
bool radio_queues_empty(const struct radio_phy *phy);

/* radio_tx.c */
struct radio_mpdu *radio_mpdu_make(struct radio_phy *phy, struct radio_tid *tid,
				   struct sk_buff *skb);
struct radio_ppdu *radio_ppdu_make(struct radio_queue *queue,
				   struct ieee80211_sta *sta,
				   struct radio_mpdu *first);
bool radio_ppdu_send(struct radio_queue *queue, struct ieee80211_sta *sta,
		     struct radio_mpdu *mpdu);
void radio_ppdu_complete(struct radio_ppdu *ppdu, bool answered);
void radio_mpdu_free(struct radio_phy *phy, struct radio_mpdu *mpdu);
void radio_report(struct radio_phy *phy, struct list_head *done);
void radio_discard(struct radio_phy *phy, struct list_head *mpdus);
void radio_digest(struct radio_phy *phy, const struct radio_ppdu *ppdu);
u32 radio_backoff(struct radio_phy *phy);

/* radio_rates.c */
struct radio_rate radio_rate_lowest(const struct radio_phy *phy);
/* Returns false if minstrel selects the rates of the link. */
bool radio_rate_is_fixed(const struct radio_phy *phy, const struct ieee80211_sta *sta);
void radio_ppdu_rates(struct radio_ppdu *ppdu, struct sk_buff *skb);
u8 radio_rate_index(const struct radio_phy *phy, const struct radio_rate *rate);
void radio_rate_info(const struct radio_rate *rate, struct rate_info *info);
void radio_status(struct radio_phy *phy, const struct radio_ppdu *ppdu,
		  struct radio_mpdu *mpdu, u32 acked, bool first);
void radio_status_priced(struct radio_phy *phy, struct ieee80211_sta *sta,
			 struct sk_buff *skb);

/* radio_ampdu.c */
void radio_tid_setup(struct radio_tid *tid, struct radio_queue *queue,
		     struct ieee80211_sta *sta, u8 number);
struct radio_tid *radio_tid_of(struct radio_phy *phy, struct ieee80211_sta *sta,
			       struct sk_buff *skb);
void radio_tid_start(struct radio_tid *tid, u16 ssn);
void radio_tid_done(struct radio_tid *tid, struct radio_mpdu *mpdu);
bool radio_tid_within(const struct radio_tid *tid, u16 seq);
int radio_tid_schedule(struct radio_tid *tid, struct ieee80211_txq *txq);
int radio_ampdu_action(struct ieee80211_hw *hw, struct ieee80211_vif *vif,
		       struct ieee80211_ampdu_params *action);

/* radio_pull.c, radio_usb.c */
extern bool radio_dequeues;
struct radio_mpdu *radio_dequeue(struct radio_tid *tid, struct ieee80211_txq *txq);
void radio_firmware_refill(struct radio_queue *queue);
void radio_firmware_add(struct radio_tid *tid, struct radio_mpdu *mpdu);
void radio_usb_setup(struct radio_phy *phy);
void radio_usb_start(struct radio_phy *phy);
void radio_usb_stop(struct radio_phy *phy);
void radio_usb_forget(struct radio_phy *phy, struct list_head *mpdus);
void radio_usb_drop(struct radio_phy *phy, const struct ieee80211_vif *vif);

/* radio_rx.c */
void radio_rx_begin(struct radio_phy *phy, struct radio_ppdu *ppdu);
void radio_rx_end(struct radio_phy *phy);
void radio_rx_drain(struct radio_phy *phy);
void radio_rx_flush(struct radio_phy *phy);
void radio_rx_purge(const struct radio_phy *phy, struct sk_buff_head *queue);
void radio_rx_setup(struct radio_phy *phy);
bool radio_rx_wants(const struct radio_phy *phy, const struct sk_buff *skb);
s8 radio_rx_signal(const struct radio_phy *phy);
bool radio_rx_answers(const struct radio_phy *phy, const struct sk_buff *skb);
bool radio_rx_tuned(const struct radio_phy *phy, const struct radio_phy *to);

/* radio_cpu.c */
void radio_cpu_receive(struct radio_phy *phy);
bool radio_cpu_builds(struct radio_ppdu *ppdu);
void radio_cpu_hand(struct radio_phy *phy, struct radio_mpdu *mpdu);
bool radio_cpu_hands(const struct radio_phy *phy);
void radio_cpu_setup(struct radio_phy *phy);
void radio_cpu_stop(struct radio_phy *phy);

/* radio_stats.c */
void radio_stats_try(struct radio_queue *queue, u64 air_ns);
void radio_stats_sent(struct radio_queue *queue, const struct radio_mpdu *mpdu);
void radio_stats_failed(struct radio_queue *queue, bool collision);
void radio_sample(void);
void radio_stats_gather(struct radio_phy *phy);
void radio_stats_print(struct seq_file *file, struct radio_phy *phy);
int radio_stats_count(struct ieee80211_hw *hw, struct ieee80211_vif *vif, int set);
void radio_stats_names(struct ieee80211_hw *hw, struct ieee80211_vif *vif, u32 set,
		       u8 *names);
void radio_stats_values(struct ieee80211_hw *hw, struct ieee80211_vif *vif,
			struct ethtool_stats *stats, u64 *values);

#endif

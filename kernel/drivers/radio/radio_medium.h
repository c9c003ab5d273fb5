/* SPDX-License-Identifier: GPL-2.0-only */
/* The medium's state, for radio_medium.c and radio_queue.c. */
#ifndef _RADIO_MEDIUM_H
#define _RADIO_MEDIUM_H

#include "radio.h"

enum radio_medium_state { RADIO_IDLE, RADIO_PPDU, RADIO_ANSWER };

struct radio_medium {
	struct list_head list;
	u64 number;
	struct list_head phys;
	struct hrtimer timer;
	enum radio_medium_state state;
	u64 idle_ns;			/* in RADIO_IDLE: since when */
	struct list_head senders;	/* queues whose first PPDU is on the air */
	struct radio_busy busy;
	bool collision;
	bool answered;
	bool keeps_medium;			/* the sender keeps the medium (TXOP) */
};

static inline struct radio_ppdu *radio_first(struct radio_queue *queue)
{
	return list_first_entry_or_null(&queue->ppdus, struct radio_ppdu, list);
}

/* radio_medium.c */
void radio_medium_contend(struct radio_medium *medium);

/* radio_queue.c */
struct radio_ppdu *radio_queue_remove(struct radio_queue *queue, u64 now);

#endif

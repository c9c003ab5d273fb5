/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For congestion controls of a user's own, `cc = "my_cc.c"`: what differs between kernels,
 * and how a control shows its private state. None of it is needed.
 *
 *	static const struct hourglass_column my_columns[] = {
 *		HOURGLASS_COLUMN(struct my_cc, acked),
 *		HOURGLASS_COLUMN(struct my_cc, losses),
 *	};
 *	HOURGLASS_STATE(my_ops, my_columns);
 *
 * At each instant of table tcp the fields of a socket's inet_csk_ca() are rows of table cc. To look
 * changes nothing: no time passes.
 */
#ifndef _HOURGLASS_CC_H
#define _HOURGLASS_CC_H

#include <linux/init.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/version.h>
#include <net/tcp.h>
#include "hourglass_column.h"

/* The window has functions to read and write it. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 18, 0)
#ifndef tcp_snd_cwnd
#define tcp_snd_cwnd(tp) ((tp)->snd_cwnd)
#endif
#define tcp_snd_cwnd_set(tp, value) ((tp)->snd_cwnd = (value))
#endif

/* cong_control() is told of the ACK. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
#define CONG_CONTROL_ARGS struct sock *sk, u32 ack, int flag, const struct rate_sample *rs
#else
#define CONG_CONTROL_ARGS struct sock *sk, const struct rate_sample *rs
#endif

/* What is sent while nothing is in flight is an event apart, or one of cwnd_event()'s. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 1, 0)
#define CWND_EVENT_TX_START cwnd_event_tx_start
#define TX_START_ARGS struct sock *sk
#define IS_TX_START true
#else
#define CWND_EVENT_TX_START cwnd_event
#define TX_START_ARGS struct sock *sk, enum tcp_ca_event event
#define IS_TX_START (event == CA_EVENT_TX_START)
#endif

struct hourglass_state {
	struct list_head list;
	const struct tcp_congestion_ops *ops;
	const struct hourglass_column *columns;
	unsigned int count;
};

/* Shows columns of the sockets whose control is @control. */
#define HOURGLASS_STATE(control, columns_of_it)					\
	static struct hourglass_state control##_state = {			\
		.ops = &(control),						\
		.columns = columns_of_it,					\
		.count = ARRAY_SIZE(columns_of_it),				\
	};									\
	static int __init control##_show(void)					\
	{									\
		hourglass_state_add(&control##_state);				\
		return 0;							\
	}									\
	device_initcall(control##_show)

#ifdef CONFIG_HOURGLASS_PROBE
void hourglass_state_add(struct hourglass_state *state);
#else
static inline void hourglass_state_add(struct hourglass_state *state)
{
}
#endif

#endif

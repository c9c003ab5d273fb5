/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For your own congestion control, `cc = "my_cc.c"`: the differences between kernels, and a way
 * to export its private state. All of it is optional.
 *
 *	static const struct hourglass_column my_columns[] = {
 *		HOURGLASS_COLUMN(struct my_cc, acked),
 *		HOURGLASS_COLUMN(struct my_cc, losses),
 *	};
 *	HOURGLASS_STATE(my_ops, my_columns);
 *
 * Each sample of table tcp adds the fields of the socket's inet_csk_ca() as rows of table cc.
 * Reading them changes nothing and takes no time.
 */
#ifndef _HOURGLASS_CC_H
#define _HOURGLASS_CC_H

#include <linux/init.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/version.h>
#include <net/tcp.h>
#include "hourglass_column.h"

/* Functions read and write the congestion window. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 18, 0)
#ifndef tcp_snd_cwnd
#define tcp_snd_cwnd(tp) ((tp)->snd_cwnd)
#endif
#define tcp_snd_cwnd_set(tp, value) ((tp)->snd_cwnd = (value))
#endif

/* cong_control() gets the ACK as an argument. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
#define CONG_CONTROL_ARGS struct sock *sk, u32 ack, int flag, const struct rate_sample *rs
#else
#define CONG_CONTROL_ARGS struct sock *sk, const struct rate_sample *rs
#endif

/* A transmission with nothing in flight has its own callback; before, it is an event of
 * cwnd_event().
 */
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

/* Exports columns of the sockets whose congestion control is @control. */
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

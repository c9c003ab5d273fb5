// SPDX-License-Identifier: GPL-2.0-only
/*
 * probe: sockets, and how long data waits in them for each cause.
 *
 * Sender: whenever tcp_write_xmit() stops with unsent data, one cause stopped it. Until the next
 * call this cause holds the socket. So the time of a socket consists of intervals with one cause
 * each, and their sums are kept per cause. The wait of a byte is the difference of the sums
 * between its write and its first transmission. The causes are checked in the order of
 * tcp_write_xmit() (net/ipv4/tcp_output.c): pacing, congestion window, receive window, then
 * Nagle and TSO deferral, then TCP Small Queues. If an skb is deferred because it exceeds the
 * rest of a window, that window is the cause. A retransmitted byte was held until its first
 * transmission; from then on its layer is `recovery`.
 *
 * Receiver: a byte is in order when all earlier bytes have arrived, and ends when recvmsg() has
 * passed it.
 */
#include <linux/slab.h>
#include <net/tcp.h>
#include <trace/events/tcp.h>
#include <net/hourglass_probe.h>
#include "probe.h"

#ifdef HOURGLASS_TSQ
#include <net/tcp_tsq.h>

static enum tcp_tsq_mode probe_tsq_mode(const struct sock *sk)
{
	return READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_tsq_mode);
}
#else	/* a kernel without the hook `tsq` */
enum tcp_tsq_mode { TCP_TSQ_DEFAULT, TCP_TSQ_TIME, TCP_TSQ_BYTES, TCP_TSQ_OFF };

static enum tcp_tsq_mode probe_tsq_mode(const struct sock *sk)
{
	return TCP_TSQ_DEFAULT;
}
#endif

/* Sets the cause that holds @end from @now_ns on. */
void probe_end_hold(struct probe_end *end, enum probe_hold hold, s64 now_ns)
{
	end->hold_ns[end->hold] += now_ns - end->hold_since_ns;
	end->hold_since_ns = now_ns;
	if (hold == PROBE_HOLD_TSQ && end->hold != PROBE_HOLD_TSQ)
		end->tsq_throttled++;
	end->hold = hold;
}

/* Records that data was written up to write_seq now. */
void __probe_tcp_written(struct sock *sk)
{
	struct probe_end *end = probe_end_of(sk);
	struct probe_written *last;
	s64 now = ktime_get_ns();

	if (!end)
		return;
	probe_program_meet(end->connection->watch, end == &end->connection->end[1]);
	probe_end_hold(end, end->hold, now);
	last = list_empty(&end->written) ?
		       NULL :
		       list_last_entry(&end->written, struct probe_written, list);
	if (!last || last->t_ns != now) {
		last = kmalloc(sizeof(*last), GFP_ATOMIC);
		if (!last)
			return;
		last->t_ns = now;
		memcpy(last->hold_ns, end->hold_ns, sizeof(last->hold_ns));
		list_add_tail(&last->list, &end->written);
	}
	last->end = tcp_sk(sk)->write_seq;
}

static enum probe_term probe_term(const struct sock *sk, const struct sk_buff *skb,
				  unsigned long limit)
{
	switch (probe_tsq_mode(sk)) {
	case TCP_TSQ_BYTES:
		return PROBE_TERM_BYTES;
	case TCP_TSQ_OFF:
		return PROBE_TERM_OFF;
	default:
		break;
	}
	if (limit == 2 * skb->truesize)
		return PROBE_TERM_FLOOR;
	if ((TSQ_CAPS_PACED || sk->sk_pacing_status == SK_PACING_NONE) &&
	    limit == READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_limit_output_bytes))
		return PROBE_TERM_CAP;
	return PROBE_TERM_RATE;
}

void __probe_tcp_limit(struct sock *sk, const struct sk_buff *skb, unsigned long limit)
{
	struct probe_end *end = probe_end_of(sk);

	if (!end)
		return;
	end->tsq_limit = limit;
	end->tsq_truesize = skb->truesize;
	end->tsq_rate = READ_ONCE(sk->sk_pacing_rate);
	end->tsq_shift = READ_ONCE(sk->sk_pacing_shift);
	end->tsq_term = probe_term(sk, skb, limit);
}

/* Returns the cause that stopped tcp_write_xmit() before @skb, the first unsent skb. */
static enum probe_hold probe_cause(const struct sock *sk, const struct probe_end *end,
				   const struct sk_buff *skb, unsigned int mss)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 in_flight = tcp_packets_in_flight(tp), cwnd = tcp_snd_cwnd(tp);
	u32 first = TCP_SKB_CB(skb)->seq + min_t(u32, skb->len, mss);

	if (tcp_needs_internal_pacing(sk) && tp->tcp_wstamp_ns > tp->tcp_clock_cache)
		return PROBE_HOLD_PACING;
	if (in_flight >= cwnd)
		return PROBE_HOLD_CWND;
	if (after(first, tcp_wnd_end(tp)))
		return PROBE_HOLD_RWND;
	if (test_bit(TSQ_THROTTLED, &sk->sk_tsq_flags) &&
	    refcount_read(&sk->sk_wmem_alloc) > end->tsq_limit)
		return PROBE_HOLD_TSQ;
	if (in_flight + DIV_ROUND_UP(skb->len, mss) > cwnd)
		return PROBE_HOLD_CWND;
	if (after(TCP_SKB_CB(skb)->end_seq, tcp_wnd_end(tp)))
		return PROBE_HOLD_RWND;
	return PROBE_HOLD_PUSH;
}

void __probe_tcp_held(struct sock *sk, unsigned int mss)
{
	struct probe_end *end = probe_end_of(sk);
	const struct sk_buff *skb = tcp_send_head(sk);

	if (end)
		probe_end_hold(end, skb ? probe_cause(sk, end, skb, mss) : PROBE_HOLD_NONE,
			       ktime_get_ns());
}

/* Books the wait of data at its first transmission, by cause. */
static void probe_first_sent(struct probe_end *end, struct probe_slot *slot, s64 now)
{
	struct probe_written *first;
	unsigned int hold;

	end->sent_end = slot->seq + slot->bytes;
	end->has_sent = true;
	probe_end_hold(end, end->hold, now);
	while ((first = list_first_entry_or_null(&end->written, struct probe_written, list)) &&
	       !before(slot->seq, first->end)) {
		list_del(&first->list);
		kfree(first);
	}
	if (!first)
		return; /* written before the probe was enabled */
	slot->begin_ns = first->t_ns;
	memset(slot->sender_ns, 0, sizeof(slot->sender_ns));
	slot->has_sender_ns = true;
	for (hold = PROBE_HOLD_CWND; hold < PROBE_HOLD_COUNT; hold++)
		slot->sender_ns[hold - PROBE_HOLD_CWND] = end->hold_ns[hold] - first->hold_ns[hold];
	slot->sender_ns[PROBE_PUSH - PROBE_CWND] +=
		end->hold_ns[PROBE_HOLD_NONE] - first->hold_ns[PROBE_HOLD_NONE];
}

/* Takes over the earlier times of retransmitted data. */
static void probe_sent_again(struct probe_slot *slot, s64 now)
{
	struct probe_slot *earlier;

	slot->state = 0; /* excludes the slot itself from the search */
	earlier = probe_slot_find(slot->owner, slot->ident, ~0, -1, S64_MAX);
	slot->state = PROBE_IN_QDISC;
	if (!earlier)
		return; /* the data has arrived: a spurious retransmission */
	slot->begin_ns = earlier->begin_ns;
	slot->sent_ns = earlier->sent_ns;
	if (earlier->has_sender_ns)
		memcpy(slot->sender_ns, earlier->sender_ns, sizeof(slot->sender_ns));
	else
		memset(slot->sender_ns, 0, sizeof(slot->sender_ns));
	slot->has_sender_ns = true;
	slot->sender_ns[PROBE_RECOVERY - PROBE_CWND] = now - slot->sent_ns;
	if (earlier->state == PROBE_LOST)
		probe_slot_free(earlier);
}

/* Handles the transmission of the packet of @slot by TCP. */
void probe_tcp_sent(const struct probe_packets *packets, struct sock *sk, struct probe_slot *slot,
		    s64 now)
{
	struct probe_connection *connection;
	struct probe_end *end = NULL;

	if (sk && sk_fullsock(sk) && sk->sk_protocol == IPPROTO_TCP)
		end = probe_end_of(sk);
	if (!end) { /* no socket any more, or not yet */
		connection = probe_connection(packets->watch, packets->port, false);
		end = connection ? &connection->end[packets->direction] : NULL;
	}
	if (!end)
		return;
	if (packets->content != PROBE_DATA)
		return;
	end->gso_bytes = packets->payload;
	if (end->has_sent && before(slot->seq, end->sent_end))
		probe_sent_again(slot, now);
	else
		probe_first_sent(end, slot, now);
}

/* Handles data that arrives at its destination. Returns false if it had arrived before. */
bool probe_tcp_received(const struct probe_packets *packets, struct probe_slot *slot)
{
	struct probe_connection *connection =
		probe_connection(packets->watch, packets->port, false);
	struct probe_end *end;
	struct probe_slot *earlier;

	if (packets->watch->program && packets->watch->program->mptcp)
		return false; /* MPTCP itself decides when data is read */
	if (!connection)
		return true; /* the sockets are closed, so the stack will drop it */
	end = &connection->end[!packets->direction];
	if (end->has_read && !after(slot->seq + slot->bytes, end->read_end))
		return false;
	list_for_each_entry_reverse(earlier, &end->received, received) {
		if (earlier->seq == slot->seq)
			return false;
		if (before(earlier->seq, slot->seq))
			break;
	}
	list_add(&slot->received, &earlier->received);
	return true;
}

/* Completes all data that has been read, up to copied_seq. */
static void probe_tcp_rcv_space_adjust(void *data, struct sock *sk)
{
	struct probe_end *end = probe_on ? probe_end_of(sk) : NULL;
	struct probe_slot *slot, *next;
	s64 now = ktime_get_ns();

	if (!end)
		return;
	probe_program_meet(end->connection->watch, end == &end->connection->end[1]);
	end->read_end = tcp_sk(sk)->copied_seq;
	end->has_read = true;
	list_for_each_entry_safe(slot, next, &end->received, received) {
		if (after(slot->seq + slot->bytes, end->read_end))
			break;
		end->in_order_ns = max(end->in_order_ns, slot->at_ns);
		slot->reorder_ns = end->in_order_ns - slot->at_ns;
		slot->read_ns = now - end->in_order_ns;
		slot->at_ns = now;
		probe_slot_finish(slot);
	}
}

static void probe_tcp_destroy_sock(void *data, struct sock *sk)
{
	probe_end_detach(sk);
}

int probe_tcp_start(void)
{
	return register_trace_tcp_rcv_space_adjust(probe_tcp_rcv_space_adjust, NULL) ?:
		       register_trace_tcp_destroy_sock(probe_tcp_destroy_sock, NULL);
}

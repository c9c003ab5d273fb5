// SPDX-License-Identifier: GPL-2.0-only
/*
 * probe: TCP connections, from the first data to the end of their sockets.
 *
 *	packets --(stream, client's port)--> connection <--(socket)-- TCP
 *
 * The state of an end belongs to one socket. The next socket with the same ports starts with an
 * empty state. The connection is freed when both sockets are destroyed, so memory and sampling
 * time depend only on existing connections.
 * Received and unread data stays in the kernel until the closed socket's last skb is dropped.
 * Such a connection stays for a while, and so does one whose other socket is not known yet.
 *
 * parameter	unit	value	why
 * LINGER	ns	10^10	longer than the last acknowledgment can be queued
 */
#include <linux/hashtable.h>
#include <linux/slab.h>
#include <net/tcp.h>
#include "probe.h"

#define LINGER (10 * NSEC_PER_SEC)

static DEFINE_HASHTABLE(connections, 10);
static DEFINE_HASHTABLE(sockets, 10);
LIST_HEAD(probe_connections); /* with a socket, by the time of their first data */
static LIST_HEAD(leaving); /* without a socket, by the time of their end */

static void probe_end_init(struct probe_end *end, struct probe_connection *connection)
{
	memset(end, 0, sizeof(*end));
	INIT_HLIST_NODE(&end->hash);
	INIT_LIST_HEAD(&end->written);
	INIT_LIST_HEAD(&end->received);
	INIT_LIST_HEAD(&end->lost);
	end->connection = connection;
	end->hold_since_ns = ktime_get_ns();
}

/* Frees the state of unsent and lost data: the socket sends nothing any more. */
static void probe_end_clear(struct probe_end *end)
{
	struct probe_written *written, *next_written;
	struct probe_slot *slot, *next_slot;

	list_for_each_entry_safe(written, next_written, &end->written, list)
		kfree(written);
	INIT_LIST_HEAD(&end->written);
	list_for_each_entry_safe(slot, next_slot, &end->lost, received)
		probe_slot_free(slot);
	hash_del(&end->hash);
	end->sk = NULL;
}

/* Frees an end and its unread data. These packets still count as in flight. */
static void probe_end_free(struct probe_end *end)
{
	struct probe_slot *slot, *next;

	probe_end_clear(end);
	list_for_each_entry_safe(slot, next, &end->received, received) {
		probe_slot_counts(slot)->unread++;
		probe_slot_free(slot);
	}
}

static void probe_connection_free(struct probe_connection *connection)
{
	probe_end_free(&connection->end[0]);
	probe_end_free(&connection->end[1]);
	hash_del(&connection->hash);
	list_del(&connection->list);
	if (connection->watch->last == connection)
		connection->watch->last = NULL;
	kfree(connection);
}

static struct probe_connection *probe_connection_new(struct probe_watch *watch, u16 port)
{
	struct probe_connection *connection = kzalloc(sizeof(*connection), GFP_ATOMIC);

	if (!connection)
		return NULL;
	connection->watch = watch;
	connection->port = port;
	probe_end_init(&connection->end[0], connection);
	probe_end_init(&connection->end[1], connection);
	hash_add(connections, &connection->hash, watch->id << 16 | port);
	list_add_tail(&connection->list, &probe_connections);
	return connection;
}

/* Returns the connection of @watch from the client's @port; creates it if @make. */
struct probe_connection *probe_connection(struct probe_watch *watch, u16 port, bool make)
{
	struct probe_connection *connection = watch->last;

	if (connection && connection->port == port)
		return connection;
	hash_for_each_possible(connections, connection, hash, watch->id << 16 | port)
		if (connection->watch == watch && connection->port == port)
			goto found;
	connection = make ? probe_connection_new(watch, port) : NULL;
	if (!connection)
		return NULL;
found:
	watch->last = connection;
	return connection;
}

/* Returns the end with the ports of @sk. If they belonged to another socket, its state is new. */
static struct probe_end *probe_end_assign(struct sock *sk)
{
	const struct inet_sock *inet = inet_sk(sk);
	u16 local = inet->inet_num, peer = ntohs(inet->inet_dport);
	struct probe_connection *connection;
	struct probe_watch *watch;
	struct probe_end *end;
	struct probe_key key;
	u16 port;
	u8 side;

	watch = probe_watch_of(IPPROTO_TCP, local, peer, &side);
	port = side ? peer : local;
	if (!watch && probe_programs) {
		probe_key_of_sock(sk, &key);
		watch = probe_program_of(&key, &side, &port);
	}
	if (!watch)
		return NULL;
	connection = probe_connection(watch, port, true);
	if (connection && (connection->end[side].gone || connection->end[side].sk)) {
		probe_connection_free(connection);
		connection = probe_connection(watch, port, true);
	}
	if (!connection)
		return NULL;
	end = &connection->end[side];
	end->sk = sk;
	hash_add(sockets, &end->hash, (unsigned long)sk);
	if (connection->gone_ns) {
		connection->gone_ns = 0;
		list_move_tail(&connection->list, &probe_connections);
	}
	return end;
}

/* Returns the end of @sk, or NULL if its stream is not watched. */
struct probe_end *probe_end_of(struct sock *sk)
{
	struct probe_end *end;

	hash_for_each_possible(sockets, end, hash, (unsigned long)sk)
		if (end->sk == sk)
			return end;
	if ((TCPF_LISTEN | TCPF_CLOSE) & (1 << sk->sk_state))
		return NULL;
	return probe_end_assign(sk);
}

/* Detaches @sk, which is destroyed. */
void probe_end_detach(struct sock *sk)
{
	struct probe_connection *connection, *next;
	struct probe_end *end, *other;
	s64 now = ktime_get_ns();

	hash_for_each_possible(sockets, end, hash, (unsigned long)sk)
		if (end->sk == sk)
			goto found;
	return;
found:
	connection = end->connection;
	other = &connection->end[end == &connection->end[0]];
	probe_end_clear(end);
	end->gone = true;
	if (other->sk)
		return;
	if (other->gone && list_empty(&end->received) && list_empty(&other->received)) {
		probe_connection_free(connection);
	} else {
		connection->gone_ns = now;
		list_move_tail(&connection->list, &leaving);
	}
	list_for_each_entry_safe(connection, next, &leaving, list) {
		if (now - connection->gone_ns < LINGER)
			break;
		probe_connection_free(connection);
	}
}

/*
 * Keeps the dropped data of @slot while the sender may retransmit it. Earlier data that is
 * acknowledged is freed.
 */
void probe_keep_lost(struct probe_slot *slot)
{
	struct probe_connection *connection = probe_connection(slot->watch, slot->owner, false);
	struct probe_end *end = connection ? &connection->end[slot->direction] : NULL;
	struct probe_slot *earlier;

	list_del_init(&slot->received);
	if (!end || !end->sk) {
		probe_slot_free(slot);
		return;
	}
	while ((earlier = list_first_entry_or_null(&end->lost, struct probe_slot, received)) &&
	       !after(earlier->seq + earlier->bytes, tcp_sk(end->sk)->snd_una))
		probe_slot_free(earlier);
	slot->state = PROBE_LOST;
	list_add_tail(&slot->received, &end->lost);
}

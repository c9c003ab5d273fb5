// SPDX-License-Identifier: GPL-2.0-only
/*
 * probe: streams that the plan does not name: what programs of nodes open.
 *
 * The first packet that a socket of a program's node sends to a new peer (TCP: its
 * SYN) begins a stream; what has its addresses and ports, or those that NAT made of
 * them, either way round, is the stream's. TCP ends with its sockets, and the next
 * SYN of the same ports is another stream; UDP does not end.
 *
 * A program is known by its control group, which the agent names app-N, and its
 * name. Who that is shows whenever the packet or the data of an end is handed over
 * by a process: TCP's client at its SYN or its first write, all others at their first
 * write or read, of UDP those that send.
 *
 * There may be many: so many connections of one program to one port of one address
 * are streams of their own, the later ones together are one more.
 *
 * Left out: loopback, multicast and broadcast, fragments, sockets of the kernel's own
 * (tunnels), whatever has no ports.
 *
 * parameter	unit		value	why
 * OWN		streams		64	of a program to one server: as many as one looks at
 * ALONE	streams		1024	in all; those of many connections may be as many again
 * NAMES	tuples		2^18	16 MiB; two a connection, four through NAT
 */
#include <linux/cgroup.h>
#include <linux/etherdevice.h>
#include <linux/hashtable.h>
#include <linux/if_arp.h>
#include <linux/jhash.h>
#include <linux/pid.h>
#include <linux/preempt.h>
#include <linux/slab.h>
#include <linux/tcp.h>
#include <net/ipv6.h>
#include <net/mptcp.h>
#include <net/sock.h>
#include "probe.h"

#define OWN 64
#define ALONE 1024
#define NAMES 262144

/* Packets with this key are one way of a stream. */
struct probe_name {
	struct hlist_node hash;
	struct probe_key key;
	struct probe_watch *watch;
	u32 isn; /* TCP's, of the client's SYN */
	u16 port; /* the client's, before NAT */
	u8 way;
};

/* A program and a server of its. */
struct probe_group {
	struct hlist_node hash;
	struct probe_key server; /* only that end of it */
	u16 node, app;
	unsigned int streams;
	struct probe_watch *rest; /* the stream of the later connections */
};

bool probe_programs;
static DEFINE_HASHTABLE(names, 12);
static DEFINE_HASHTABLE(groups, 8);
static unsigned int name_count, stream_count;
static u16 next_id;
static u32 left_out; /* connections */

static u32 probe_key_hash(const struct probe_key *key)
{
	BUILD_BUG_ON(sizeof(*key) % sizeof(u32));
	return jhash2((const u32 *)key, sizeof(*key) / sizeof(u32), 0);
}

static struct probe_name *probe_name_find(const struct probe_key *key)
{
	struct probe_name *name;

	hash_for_each_possible(names, name, hash, probe_key_hash(key))
		if (!memcmp(&name->key, key, sizeof(*key)))
			return name;
	return NULL;
}

/* Enters or changes what @key stands for. */
static struct probe_name *probe_name_set(const struct probe_key *key, struct probe_watch *watch,
					 u8 way, u16 port)
{
	struct probe_name *name = probe_name_find(key);

	if (!name) {
		name = name_count < NAMES ? kzalloc(sizeof(*name), GFP_ATOMIC) : NULL;
		if (!name)
			return NULL;
		name_count++;
		name->key = *key;
		hash_add(names, &name->hash, probe_key_hash(key));
	}
	name->watch = watch;
	name->way = way;
	name->port = port;
	return name;
}

/* Both ways; gives @key's. */
static struct probe_name *probe_name_both(const struct probe_key *key, struct probe_watch *watch,
					  u8 way, u16 port)
{
	struct probe_key turned = probe_key_turned(key);

	return probe_name_set(&turned, watch, !way, port) ? probe_name_set(key, watch, way, port) :
							    NULL;
}

/* Whose the packets with @key are; NULL: nobody's. */
struct probe_watch *probe_program_of(const struct probe_key *key, u8 *way, u16 *port)
{
	const struct probe_name *name = probe_programs ? probe_name_find(key) : NULL;

	if (!name)
		return NULL;
	*way = name->way;
	*port = name->port;
	return name->watch;
}

/* The agent's number of the program that runs, PROBE_NO_APP: none of its. */
static u16 probe_app(void)
{
	u16 app = PROBE_NO_APP;
#ifdef CONFIG_CGROUPS
	char group[16] = "";

	rcu_read_lock();
	cgroup_name(task_dfl_cgroup(current), group, sizeof(group));
	rcu_read_unlock();
	if (sscanf(group, "app-%hu", &app) != 1)
		app = PROBE_NO_APP;
#endif
	return app;
}

/* A process of a room, not the agent and not an interrupt in whatever process. */
static bool probe_is_program(void)
{
	return !in_serving_softirq() && current->mm && task_pid(current)->level;
}

/* Whoever runs is at the end of @watch that sends @way, if it is a program. */
void probe_program_meet(struct probe_watch *watch, u8 way)
{
	struct probe_program *program = watch->program;

	if (!program || program->comm[way][0] || !probe_is_program())
		return;
	program->app[way] = probe_app();
	/* without its lock, which is not for softirqs; nobody else runs meanwhile */
	strscpy(program->comm[way], current->group_leader->comm, sizeof(program->comm[way]));
}

static struct probe_watch *probe_stream_new(const struct probe_key *key, u16 node)
{
	struct probe_watch *watch;

	if (next_id == PROBE_NO_STREAM || probe_watch_count == PROBE_WATCHES)
		return NULL;
	watch = kzalloc(sizeof(*watch) + sizeof(*watch->program), GFP_ATOMIC);
	if (!watch)
		return NULL;
	watch->program = (struct probe_program *)(watch + 1);
	watch->program->key = *key;
	watch->program->node = node;
	watch->program->app[0] = PROBE_NO_APP;
	watch->program->app[1] = PROBE_NO_APP;
	watch->program->first_ns = ktime_get_ns();
	watch->program->last_ns = watch->program->first_ns;
	watch->id = next_id++;
	watch->protocol = key->protocol;
	watch->way[0].final = -1;
	watch->way[1].final = node; /* through NAT the address of another node's */
	probe_watches[probe_watch_count++] = watch;
	stream_count++;
	return watch;
}

static struct probe_group *probe_group(const struct probe_key *key, u16 node, u16 app)
{
	struct probe_key server = *key;
	struct probe_group *group;
	u32 hash;

	memset(&server.source, 0, sizeof(server.source));
	server.source_port = 0;
	hash = probe_key_hash(&server);
	hash_for_each_possible(groups, group, hash, hash)
		if (group->node == node && group->app == app &&
		    !memcmp(&group->server, &server, sizeof(server)))
			return group;
	group = kzalloc(sizeof(*group), GFP_ATOMIC);
	if (!group)
		return NULL;
	group->server = server;
	group->node = node;
	group->app = app;
	hash_add(groups, &group->hash, hash);
	return group;
}

/* The stream of a connection that begins; NULL: there are too many. */
static struct probe_watch *probe_stream_begin(const struct probe_key *key, u16 node)
{
	struct probe_group *group =
		probe_group(key, node, probe_is_program() ? probe_app() : PROBE_NO_APP);
	struct probe_watch *watch;

	if (!group)
		return NULL;
	if (group->streams < OWN && stream_count < ALONE && !group->rest) {
		group->streams++;
		watch = probe_stream_new(key, node);
	} else {
		if (!group->rest && stream_count < 2 * ALONE) {
			group->rest = probe_stream_new(&group->server, node);
			if (group->rest)
				group->rest->program->shared = true;
		}
		watch = group->rest;
	}
	if (watch)
		watch->program->connections++;
	return watch;
}

/* Whether @skb, of @key, begins a connection; @name is what is known of its key. */
static bool probe_begins(const struct sk_buff *skb, const struct probe_key *key, int next,
			 const struct probe_name *name, u32 *isn)
{
	const struct sock *sk = skb->sk;
	const struct tcphdr *tcp;
	struct tcphdr buffer;

	if (!sk || !sk_fullsock(sk) ||
	    (skb->dev->type == ARPHRD_ETHER && is_multicast_ether_addr(eth_hdr(skb)->h_dest)))
		return false;
	if (key->protocol == IPPROTO_UDP)
		return !name && sk->sk_protocol == IPPROTO_UDP && !sk->sk_kern_sock;
	tcp = skb_header_pointer(skb, next, sizeof(buffer), &buffer);
	if (!tcp || !tcp->syn || tcp->ack)
		return false;
	*isn = ntohl(tcp->seq);
	return !name || name->isn != *isn;
}

/*
 * A node gives the packets of @watch another destination than its own. Nobody knew it when
 * the first one came there, which seemed to be at its end: it begins once more.
 */
static void probe_sent_on(struct probe_watch *watch, const struct probe_key *before,
			  const struct probe_key *behind)
{
	if (watch->program->sent_on ||
	    ipv6_addr_equal(&before->destination, &behind->destination))
		return;
	watch->program->sent_on = true;
	watch->program->again = watch->way[0].final >= 0;
	watch->way[0].final = -1;
}

/* Whether the packet with its IP header at @offset still has the address that a node changes. */
bool probe_program_sent_on(const struct probe_watch *watch, const struct sk_buff *skb, int offset)
{
	struct probe_key key;
	int next;

	return watch->program && watch->program->sent_on &&
	       probe_key_of_packet(skb, offset, &key, &next) &&
	       ipv6_addr_equal(&key.destination, &watch->program->key.destination);
}

/* Before a packet is looked for that a node sends or sends on: it may be a new stream's. */
void probe_program_sends(const struct sk_buff *skb, int offset, int node)
{
	struct probe_key key, before, behind;
	struct probe_name *name;
	struct probe_watch *watch;
	bool nat;
	u32 isn = 0;
	int next;
	u8 way;

	if (!probe_key_of_packet(skb, offset, &key, &next) ||
	    probe_watch_of(key.protocol, ntohs(key.source_port), ntohs(key.destination_port),
			   &way))
		return;
	nat = probe_translated(skb, &before, &behind);
	name = probe_name_find(nat ? &before : &key);
	if (!skb->skb_iif && probe_begins(skb, &key, next, name, &isn)) {
		if (nat)
			key = before;
		watch = probe_stream_begin(&key, node);
		name = watch ? probe_name_both(&key, watch, 0, ntohs(key.source_port)) : NULL;
		if (!name) {
			left_out++;
			return;
		}
		name->isn = isn;
	}
	if (!name)
		return;
	if (nat) {
		probe_name_both(&behind, name->watch, name->way, name->port);
		probe_sent_on(name->watch, &before, &behind);
	}
	watch = name->watch;
	watch->program->last_ns = ktime_get_ns();
	if (skb->skb_iif)
		return;
	name = probe_name_find(&key) ?: name;
	probe_program_meet(watch, name->way);
	if (key.protocol == IPPROTO_TCP && skb->sk && sk_fullsock(skb->sk))
		watch->program->mptcp = sk_is_mptcp(skb->sk);
}

/* Streams of programs are numbered from @first on. */
void probe_program_start(u16 first)
{
	next_id = first;
	probe_programs = true;
}

static void probe_program_tell(const struct probe_watch *watch)
{
	const struct probe_program *program = watch->program;
	struct probe_socket *socket = probe_emit(PROBE_SOCKET, sizeof(*socket));
	unsigned int way;

	if (!socket)
		return;
	socket->t_ns = program->first_ns;
	socket->end_ns = program->last_ns;
	socket->stream.id = watch->id;
	socket->connections = program->connections;
	socket->node = program->node;
	socket->to_node = watch->way[0].final;
	socket->protocol = watch->protocol;
	socket->mptcp = program->mptcp;
	socket->port = program->shared ? 0 : ntohs(program->key.source_port);
	socket->to_port = ntohs(program->key.destination_port);
	memcpy(socket->address, &program->key.source, sizeof(socket->address));
	memcpy(socket->to_address, &program->key.destination, sizeof(socket->to_address));
	for (way = 0; way < 2; way++) {
		socket->app[way] = program->app[way];
		socket->bytes[way] = watch->way[way].bytes;
	}
	memcpy(socket->name, program->comm[0], sizeof(socket->name));
	memcpy(socket->to_name, program->comm[1], sizeof(socket->to_name));
}

/* At the end: what they were. */
void probe_program_stop(void)
{
	struct probe_socket *socket;
	unsigned int i;

	for (i = 0; i < probe_watch_count; i++)
		if (probe_watches[i]->program)
			probe_program_tell(probe_watches[i]);
	if (!left_out)
		return;
	socket = probe_emit(PROBE_SOCKET, sizeof(*socket));
	if (!socket)
		return;
	socket->stream.id = PROBE_NO_STREAM;
	socket->connections = left_out;
	socket->app[0] = PROBE_NO_APP;
	socket->app[1] = PROBE_NO_APP;
	socket->to_node = PROBE_NO_NODE;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * probe: streams that the plan does not list, because programs of nodes open them.
 *
 * The first packet of a program's socket to a new peer (TCP: its SYN) begins a stream. The
 * stream has the packets with its addresses and ports, or with their NAT translations, in both
 * directions. A TCP stream ends with its sockets, and the next SYN of the same ports begins
 * another one. A UDP stream does not end.
 *
 * A program is identified by its control group, which the agent names app-N, and its name. They
 * are read when a process sends a packet, or reads or writes data of an end: for a TCP client at
 * its SYN or first write, for other TCP ends at the first read or write, for UDP ends when they
 * send.
 *
 * A network namespace that a program makes is a node from its beginning on.
 *
 * A program may open many connections. The first OWN connections of a program to one port of one
 * address are separate streams. All later ones share one stream.
 *
 * Left out: loopback, multicast and broadcast, fragments, the kernel's own sockets
 * (tunnels), protocols without ports.
 *
 * parameter	unit		value	why
 * OWN		streams		64	of a program to one server: enough to inspect
 * ALONE	streams		1024	in total; shared streams may be as many again
 * NAMES	tuples		2^18	16 MiB; two per connection, four with NAT
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

/* Maps a key to one direction of a stream. */
struct probe_name {
	struct hlist_node hash;
	struct probe_key key;
	struct probe_watch *watch;
	u32 isn; /* of the client's SYN (TCP) */
	u16 port; /* of the client, before NAT */
	u8 direction;
};

/* The connections of a program to a server. */
struct probe_group {
	struct hlist_node hash;
	struct probe_key server; /* only the server's address and port */
	u16 node, app;
	unsigned int streams;
	struct probe_watch *rest; /* the stream of later connections */
};

bool probe_programs;
static DEFINE_HASHTABLE(names, 12);
static DEFINE_HASHTABLE(groups, 8);
static unsigned int name_count, stream_count;
static u16 next_id, next_node;
static u32 left_out; /* connections without a stream */

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

/* Adds or changes the entry of @key. */
static struct probe_name *probe_name_set(const struct probe_key *key, struct probe_watch *watch,
					 u8 direction, u16 port)
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
	name->direction = direction;
	name->port = port;
	return name;
}

/* Adds both directions and returns the entry of @key. */
static struct probe_name *probe_name_both(const struct probe_key *key, struct probe_watch *watch,
					  u8 direction, u16 port)
{
	struct probe_key turned = probe_key_turned(key);

	return probe_name_set(&turned, watch, !direction, port) ?
		       probe_name_set(key, watch, direction, port) : NULL;
}

/* Returns the watch of packets with @key, or NULL. */
struct probe_watch *probe_program_of(const struct probe_key *key, u8 *direction, u16 *port)
{
	const struct probe_name *name = probe_programs ? probe_name_find(key) : NULL;

	if (!name)
		return NULL;
	*direction = name->direction;
	*port = name->port;
	return name->watch;
}

/* Returns the agent's number of the running program, or PROBE_NO_APP. */
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

/* Returns whether a program of a node runs: not the agent, and no interrupt in any process. */
static bool probe_is_program(void)
{
	return !in_serving_softirq() && current->mm && task_pid(current)->level;
}

/* Assigns the running program to the end of @watch that sends in @direction. */
void probe_program_meet(struct probe_watch *watch, u8 direction)
{
	struct probe_program *program = watch->program;

	if (!program || program->comm[direction][0] || !probe_is_program())
		return;
	program->app[direction] = probe_app();
	/* without its lock, which a softirq must not take; no other task can run here */
	strscpy(program->comm[direction], current->group_leader->comm,
		sizeof(program->comm[direction]));
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
	watch->oneway[0].final = -1;
	watch->oneway[1].final = node; /* after NAT, the address belongs to another node */
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

/* Returns a stream for a new connection, or NULL if there are too many. */
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

/* Returns whether @skb with @key begins a connection. @name: the entry of its key. */
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
 * A node rewrites the destination of @watch. The first packet seemed to end at that node, so its
 * stream begins again.
 */
static void probe_redirected(struct probe_watch *watch, const struct probe_key *before,
			     const struct probe_key *behind)
{
	if (watch->program->redirected ||
	    ipv6_addr_equal(&before->destination, &behind->destination))
		return;
	watch->program->redirected = true;
	watch->program->recount = watch->oneway[0].final >= 0;
	watch->oneway[0].final = -1;
}

/* Returns whether the packet with its IP header at @offset has the address before the rewrite. */
bool probe_redirects(const struct probe_watch *watch, const struct sk_buff *skb, int offset)
{
	struct probe_key key;
	int next;

	return watch->program && watch->program->redirected &&
	       probe_key_of_packet(skb, offset, &key, &next) &&
	       ipv6_addr_equal(&key.destination, &watch->program->key.destination);
}

/* Prepares the lookup of a packet that a node sends or forwards: it may begin a new stream. */
void probe_program_sends(const struct sk_buff *skb, int offset, int node)
{
	struct probe_key key, before, behind;
	struct probe_name *name;
	struct probe_watch *watch;
	bool nat;
	u32 isn = 0;
	int next;
	u8 direction;

	if (!probe_key_of_packet(skb, offset, &key, &next) ||
	    probe_watch_of(key.protocol, ntohs(key.source_port), ntohs(key.destination_port),
			   &direction))
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
		probe_name_both(&behind, name->watch, name->direction, name->port);
		probe_redirected(name->watch, &before, &behind);
	}
	watch = name->watch;
	watch->program->last_ns = ktime_get_ns();
	if (skb->skb_iif)
		return;
	name = probe_name_find(&key) ?: name;
	probe_program_meet(watch, name->direction);
	if (key.protocol == IPPROTO_TCP && skb->sk && sk_fullsock(skb->sk))
		watch->program->mptcp = sk_is_mptcp(skb->sk);
}

/* Numbers the streams of programs from @stream on, and their namespaces from @node on. */
void probe_program_start(u16 stream, u16 node)
{
	next_id = stream;
	next_node = node;
	probe_programs = true;
}

/* Makes a new network namespace a node if a program in a node makes it. */
int probe_program_namespace(struct net *net)
{
	struct probe_namespace *record;
	int parent;

	if (!probe_on || !probe_programs || !probe_is_program() || next_node == PROBE_NO_NODE)
		return 0;
	parent = probe_node(current->nsproxy->net_ns);
	if (parent < 0)
		return 0;
	local_bh_disable();
	record = probe_emit(PROBE_NAMESPACE, sizeof(*record));
	if (record) {
		record->t_ns = ktime_get_ns();
		record->inode = net->ns.inum;
		record->node = next_node;
		record->parent = parent;
		probe_node_set(net, next_node++);
	}
	local_bh_enable();
	return 0;
}

static void probe_program_tell(const struct probe_watch *watch)
{
	const struct probe_program *program = watch->program;
	struct probe_socket *socket = probe_emit(PROBE_SOCKET, sizeof(*socket));
	unsigned int direction;

	if (!socket)
		return;
	socket->t_ns = program->first_ns;
	socket->end_ns = program->last_ns;
	socket->stream.id = watch->id;
	socket->connections = program->connections;
	socket->node = program->node;
	socket->to_node = watch->oneway[0].final;
	socket->protocol = watch->protocol;
	socket->mptcp = program->mptcp;
	socket->port = program->shared ? 0 : ntohs(program->key.source_port);
	socket->to_port = ntohs(program->key.destination_port);
	memcpy(socket->address, &program->key.source, sizeof(socket->address));
	memcpy(socket->to_address, &program->key.destination, sizeof(socket->to_address));
	for (direction = 0; direction < 2; direction++) {
		socket->app[direction] = program->app[direction];
		socket->bytes[direction] = watch->oneway[direction].bytes;
	}
	memcpy(socket->name, program->comm[0], sizeof(socket->name));
	memcpy(socket->to_name, program->comm[1], sizeof(socket->to_name));
}

/* Reports all streams at the end. */
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

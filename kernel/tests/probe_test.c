// SPDX-License-Identifier: GPL-2.0-only
/* KUnit: parsing of skbs, and the layers of a packet. */
#include <kunit/test.h>
#include <linux/icmp.h>
#include <linux/ip.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <net/tcp.h>
#include "probe.h"

#define SERVER	5000
#define CLIENT	40000
#define MSS	1448

static struct probe_watch tcp = { .id = 3, .protocol = IPPROTO_TCP, .key = SERVER };
static struct probe_watch udp = { .id = 4, .protocol = IPPROTO_UDP, .key = SERVER };
static struct probe_watch ping = { .id = 5, .protocol = IPPROTO_ICMP, .key = 77 };

/* Runs before each case. 5.10 has no initialization of a suite. */
static int watch_all(struct kunit *test)
{
	static bool watched;

	if (watched)
		return 0;
	watched = true;
	return probe_slot_start() ?: probe_watch(&tcp) ?: probe_watch(&udp) ?: probe_watch(&ping);
}

/* Returns an IPv4 packet of @protocol with @bytes of zeros after its header, then @padding. */
static struct sk_buff *packet(u8 protocol, u32 bytes, u32 padding, void **next)
{
	struct sk_buff *skb = alloc_skb(sizeof(struct iphdr) + bytes + padding, GFP_KERNEL);
	struct iphdr *ip = skb_put_zero(skb, sizeof(*ip));

	ip->version = 4;
	ip->ihl = 5;
	ip->protocol = protocol;
	ip->tot_len = htons(sizeof(*ip) + bytes);
	*next = skb_put_zero(skb, bytes);
	skb_put_zero(skb, padding);
	return skb;
}

static struct sk_buff *segment(u16 from, u16 to, u32 seq, u32 ack, u32 payload, u32 padding)
{
	struct tcphdr *head;
	struct sk_buff *skb = packet(IPPROTO_TCP, 32 + payload, padding, (void **)&head);

	head->doff = 8;
	head->source = htons(from);
	head->dest = htons(to);
	head->seq = htonl(seq);
	head->ack_seq = htonl(ack);
	return skb;
}

static void a_gso_skb_is_its_segments(struct kunit *test)
{
	struct sk_buff *skb = segment(CLIENT, SERVER, 1000, 1, 2 * MSS + 100, 0);
	struct probe_packets packets;

	skb_shinfo(skb)->gso_size = MSS;
	KUNIT_ASSERT_TRUE(test, probe_parse(skb, 0, &packets));
	KUNIT_EXPECT_PTR_EQ(test, packets.watch, &tcp);
	KUNIT_EXPECT_EQ(test, packets.direction, 0);
	KUNIT_EXPECT_EQ(test, packets.count, 3U);
	KUNIT_EXPECT_EQ(test, probe_ident(&packets, 2), 1000ULL + 2 * MSS);
	KUNIT_EXPECT_EQ(test, probe_bytes(&packets, 1), (u32)MSS);
	KUNIT_EXPECT_EQ(test, probe_bytes(&packets, 2), 100U);
	kfree_skb(skb);
}

static void padding_is_no_payload(struct kunit *test)
{
	struct sk_buff *skb = segment(SERVER, CLIENT, 1, 2448, 0, 6);
	struct probe_packets packets;

	KUNIT_ASSERT_TRUE(test, probe_parse(skb, 0, &packets));
	KUNIT_EXPECT_EQ(test, packets.direction, 1);
	KUNIT_EXPECT_EQ(test, (int)packets.content, (int)PROBE_ACK);
	KUNIT_EXPECT_EQ(test, packets.port, CLIENT);
	KUNIT_EXPECT_EQ(test, packets.ident, 2448ULL);
	KUNIT_EXPECT_EQ(test, packets.count, 1U);
	kfree_skb(skb);
}

static void datagrams_by_their_first_bytes(struct kunit *test)
{
	struct probe_packets packets;
	struct udphdr *head;
	struct sk_buff *skb = packet(IPPROTO_UDP, sizeof(*head) + 20, 0, (void **)&head);

	head->source = htons(SERVER);
	head->dest = htons(CLIENT);
	*(__be64 *)(head + 1) = cpu_to_be64(0x0102030405060708ULL);
	KUNIT_ASSERT_TRUE(test, probe_parse(skb, 0, &packets));
	KUNIT_EXPECT_PTR_EQ(test, packets.watch, &udp);
	KUNIT_EXPECT_EQ(test, packets.direction, 1);
	KUNIT_EXPECT_EQ(test, packets.payload, 20U);
	KUNIT_EXPECT_EQ(test, packets.ident, 0x0102030405060708ULL);
	kfree_skb(skb);
}

static void echoes_by_their_identifier(struct kunit *test)
{
	struct probe_packets packets;
	struct icmphdr *head;
	struct sk_buff *skb = packet(IPPROTO_ICMP, sizeof(*head) + 56, 0, (void **)&head);

	head->type = ICMP_ECHO;
	head->un.echo.id = htons(77);
	head->un.echo.sequence = htons(9);
	KUNIT_ASSERT_TRUE(test, probe_parse(skb, 0, &packets));
	KUNIT_EXPECT_PTR_EQ(test, packets.watch, &ping);
	KUNIT_EXPECT_EQ(test, packets.direction, 0);
	KUNIT_EXPECT_EQ(test, packets.ident, 9ULL);
	head->un.echo.id = htons(78);
	KUNIT_EXPECT_FALSE(test, probe_parse(skb, 0, &packets));
	kfree_skb(skb);
}

/* The first fragment has the headers. The others contain only payload. */
static void fragments_by_their_first(struct kunit *test)
{
	struct probe_packets packets;
	struct icmphdr *head;
	struct sk_buff *skb = packet(IPPROTO_ICMP, sizeof(*head) + 56, 0, (void **)&head);
	struct iphdr *ip = (struct iphdr *)skb->data;

	head->type = ICMP_ECHO;
	head->un.echo.id = htons(77);
	ip->frag_off = htons(IP_MF);
	KUNIT_EXPECT_TRUE(test, probe_parse(skb, 0, &packets));
	ip->frag_off = htons(IP_MF | 6);
	KUNIT_EXPECT_FALSE(test, probe_parse(skb, 0, &packets));
	ip->frag_off = htons(12);
	KUNIT_EXPECT_FALSE(test, probe_parse(skb, 0, &packets));
	ip->frag_off = htons(IP_DF);
	KUNIT_EXPECT_TRUE(test, probe_parse(skb, 0, &packets));
	kfree_skb(skb);
}

/* Returns the counts of Not-ECT packets in one direction of the stream. */
static struct probe_counts *counts(unsigned int direction)
{
	return &tcp.oneway[direction].of[PROBE_ECN_NOT_ECT];
}

/* Returns the number of these packets in flight. */
static u64 in_flight(unsigned int direction)
{
	counts(direction)->in_flight = counts(direction)->unread;
	probe_slots_count();
	return counts(direction)->in_flight;
}

/* A packet passes two nodes. Each interval is booked once, on its layer. */
static void layers_add_up(struct kunit *test)
{
	struct sk_buff *skb = segment(CLIENT, SERVER, 1000, 1, MSS, 0);
	struct probe_visit visit[PROBE_VISITS];
	struct probe_packets packets;
	struct probe_slot *slot;
	unsigned int i, layer;
	s64 total = 0;

	KUNIT_ASSERT_TRUE(test, probe_parse(skb, 0, &packets));
	slot = probe_slot_new(&packets, 0, 0, 100);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, slot);
	probe_slot_spend(slot, HOP_QDISC, 150);
	probe_slot_spend(slot, HOP_RING, 155);
	probe_slot_spend(slot, HOP_WIRE, 255);
	probe_slot_spend(slot, HOP_PROPAGATION, 1255);
	probe_slot_visit(slot, 1);
	probe_slot_spend(slot, HOP_RX, 1275);
	probe_slot_layers(slot, visit);
	KUNIT_EXPECT_EQ(test, visit[0].layer_ns[PROBE_QDISC], 50LL);
	KUNIT_EXPECT_EQ(test, visit[0].layer_ns[PROBE_RING], 5LL);
	KUNIT_EXPECT_EQ(test, visit[0].layer_ns[PROBE_WIRE], 100LL);
	KUNIT_EXPECT_EQ(test, visit[0].layer_ns[PROBE_PROPAGATION], 1000LL);
	KUNIT_EXPECT_EQ(test, visit[1].layer_ns[PROBE_RX], 20LL);
	for (i = 0; i < slot->visits; i++)
		for (layer = 0; layer < PROBE_LAYER_COUNT; layer++)
			total += visit[i].layer_ns[layer];
	KUNIT_EXPECT_EQ(test, total, slot->at_ns - slot->begin_ns);
	probe_slot_finish(slot);
	KUNIT_EXPECT_EQ(test, counts(0)->delivered, 1ULL);
	KUNIT_EXPECT_EQ(test, tcp.oneway[0].unmatched, 0ULL);
	KUNIT_EXPECT_EQ(test, in_flight(0), 0ULL);
	kfree_skb(skb);
}

/* A mark moves a packet once, from one codepoint's counts to another's. */
static void marked_packets_change_accounts(struct kunit *test)
{
	struct sk_buff *skb = segment(CLIENT, SERVER, 1000, 1, MSS, 0);
	struct probe_counts *ect = &tcp.oneway[0].of[PROBE_ECN_ECT1];
	struct probe_counts *ce = &tcp.oneway[0].of[PROBE_ECN_CE];
	struct probe_packets packets;
	struct probe_slot *slot;

	((struct iphdr *)skb->data)->tos = PROBE_ECN_ECT1;
	KUNIT_ASSERT_TRUE(test, probe_parse(skb, 0, &packets));
	slot = probe_slot_new(&packets, 0, 0, 100);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, slot);
	probe_slot_ecn(slot, PROBE_ECN_ECT1, NULL, 0);
	KUNIT_EXPECT_EQ(test, ce->became, 0LL);
	probe_slot_ecn(slot, PROBE_ECN_CE, NULL, 0);
	probe_slot_ecn(slot, PROBE_ECN_CE, NULL, 0);
	KUNIT_EXPECT_EQ(test, ect->sent, 1ULL);
	KUNIT_EXPECT_EQ(test, ect->became, -1LL);
	KUNIT_EXPECT_EQ(test, ce->became, 1LL);
	probe_slot_visit(slot, 1);
	probe_slot_finish(slot);
	KUNIT_EXPECT_EQ(test, ce->delivered, 1ULL);
	KUNIT_EXPECT_EQ(test, ect->delivered, 0ULL);
	kfree_skb(skb);
}

/* Equal packets are distinguished by state, position and age. */
static void the_oldest_of_equals(struct kunit *test)
{
	struct sk_buff *skb = segment(SERVER, CLIENT, 1, 5000, 0, 0);
	struct probe_slot *first, *second;
	struct probe_packets packets;
	u64 owner;

	KUNIT_ASSERT_TRUE(test, probe_parse(skb, 0, &packets));
	owner = probe_owner(&packets);
	first = probe_slot_new(&packets, 0, 2, 100);
	second = probe_slot_new(&packets, 0, 2, 200);
	KUNIT_EXPECT_PTR_EQ(test, probe_slot_find(owner, 5000, PROBE_IN_QDISC, 2, 300), first);
	first->state = PROBE_IN_RING;
	KUNIT_EXPECT_PTR_EQ(test, probe_slot_find(owner, 5000, PROBE_IN_QDISC, 2, 300), second);
	KUNIT_EXPECT_FALSE(test, probe_slot_find(owner, 5000, PROBE_IN_QDISC, 1, 300));
	KUNIT_EXPECT_FALSE(test, probe_slot_find(owner, 5000, PROBE_IN_QDISC, 2, 199));
	KUNIT_EXPECT_EQ(test, in_flight(1), 2ULL);
	probe_slot_free(first);
	probe_slot_free(second);
	kfree_skb(skb);
}

/* The cached slot of the last search equals the table's, until it ends or has an equal packet. */
static void the_latest_is_no_other(struct kunit *test)
{
	struct sk_buff *skb = segment(CLIENT, SERVER, 7000, 1, MSS, 0);
	struct probe_slot *slot, *again, *twin;
	struct probe_packets packets;
	u64 owner;

	KUNIT_ASSERT_TRUE(test, probe_parse(skb, 0, &packets));
	owner = probe_owner(&packets);
	slot = probe_slot_new(&packets, 0, 2, 100);
	KUNIT_EXPECT_PTR_EQ(test, probe_slot_find(owner, 7000, PROBE_IN_QDISC, 2, 100), slot);
	KUNIT_EXPECT_FALSE(test, probe_slot_find(owner, 7000, PROBE_IN_RING, 2, 100));
	KUNIT_EXPECT_FALSE(test, probe_slot_find(owner, 7000, PROBE_IN_QDISC, 1, 100));
	KUNIT_EXPECT_FALSE(test, probe_slot_find(owner, 7000, PROBE_IN_QDISC, 2, 99));
	KUNIT_EXPECT_FALSE(test, probe_slot_find(owner, 7001, PROBE_IN_QDISC, 2, 100));
	KUNIT_EXPECT_PTR_EQ(test, probe_slot_find(owner, 7000, ~0, -1, S64_MAX), slot);
	probe_slot_free(slot);
	KUNIT_EXPECT_FALSE(test, probe_slot_find(owner, 7000, ~0, -1, S64_MAX));
	again = probe_slot_new(&packets, 0, 2, 200);
	KUNIT_EXPECT_FALSE(test, again->equals);
	twin = probe_slot_duplicate(again);
	KUNIT_EXPECT_TRUE(test, again->equals && twin->equals);
	KUNIT_EXPECT_PTR_EQ(test, probe_slot_find(owner, 7000, ~0, -1, S64_MAX), again);
	probe_slot_free(again);
	KUNIT_EXPECT_PTR_EQ(test, probe_slot_find(owner, 7000, ~0, -1, S64_MAX), twin);
	probe_slot_free(twin);
	KUNIT_EXPECT_FALSE(test, probe_slot_find(owner, 7000, ~0, -1, S64_MAX));
	kfree_skb(skb);
}

/* Returns a connected socket with the fields that the probe reads. */
static struct sock *a_socket(struct kunit *test, u16 local, u16 peer)
{
	struct sock *sk = kunit_kzalloc(test, sizeof(struct tcp_sock), GFP_KERNEL);

	KUNIT_ASSERT_TRUE(test, !!sk);
	sk->sk_state = TCP_ESTABLISHED;
	inet_sk(sk)->inet_num = local;
	inet_sk(sk)->inet_dport = htons(peer);
	return sk;
}

static void a_connection_goes_with_its_sockets(struct kunit *test)
{
	struct sock *client = a_socket(test, CLIENT, SERVER);
	struct sock *server = a_socket(test, SERVER, CLIENT);
	unsigned int i;

	for (i = 0; i < 1000; i++) {
		struct probe_end *end = probe_end_of(client);

		KUNIT_ASSERT_TRUE(test, !!end);
		KUNIT_EXPECT_PTR_EQ(test, probe_end_of(client), end);
		KUNIT_EXPECT_PTR_EQ(test, probe_end_of(server), &end->connection->end[1]);
		KUNIT_EXPECT_FALSE(test, end->has_sent); /* nothing of the previous socket */
		end->has_sent = true;
		probe_end_detach(i % 2 ? client : server);
		KUNIT_EXPECT_FALSE(test, list_empty(&probe_connections));
		probe_end_detach(i % 2 ? server : client);
		KUNIT_EXPECT_TRUE(test, list_empty(&probe_connections));
		KUNIT_EXPECT_FALSE(test, !!probe_connection(&tcp, CLIENT, false));
	}
}

static void lost_data_go_with_their_sender(struct kunit *test)
{
	struct sock *client = a_socket(test, CLIENT, SERVER), *server;
	struct sk_buff *skb = segment(CLIENT, SERVER, 5000, 1, MSS, 0);
	struct probe_packets packets;
	struct probe_slot *slot;

	KUNIT_ASSERT_TRUE(test, probe_parse(skb, 0, &packets));
	KUNIT_ASSERT_TRUE(test, !!probe_end_of(client));
	tcp_sk(client)->snd_una = 5000;
	slot = probe_slot_new(&packets, 0, 0, 100);
	KUNIT_ASSERT_TRUE(test, !!slot);
	probe_keep_lost(slot);
	KUNIT_EXPECT_PTR_EQ(test, slot,
			    probe_slot_find(slot->owner, slot->ident, PROBE_LOST, -1, S64_MAX));
	probe_end_detach(client);
	KUNIT_EXPECT_FALSE(test, !!probe_slot_find(probe_owner(&packets), 5000, ~0, -1, S64_MAX));
	/* the server's socket is not known yet, so the connection waits for it */
	server = a_socket(test, SERVER, CLIENT);
	KUNIT_EXPECT_TRUE(test, !!probe_end_of(server));
	probe_end_detach(server);
	KUNIT_EXPECT_TRUE(test, list_empty(&probe_connections));
	kfree_skb(skb);
}

static struct kunit_case probe_cases[] = {
	KUNIT_CASE(a_gso_skb_is_its_segments),
	KUNIT_CASE(padding_is_no_payload),
	KUNIT_CASE(datagrams_by_their_first_bytes),
	KUNIT_CASE(echoes_by_their_identifier),
	KUNIT_CASE(fragments_by_their_first),
	KUNIT_CASE(layers_add_up),
	KUNIT_CASE(marked_packets_change_accounts),
	KUNIT_CASE(the_oldest_of_equals),
	KUNIT_CASE(the_latest_is_no_other),
	KUNIT_CASE(a_connection_goes_with_its_sockets),
	KUNIT_CASE(lost_data_go_with_their_sender),
	{}
};

static struct kunit_suite probe_suite = {
	.name = "probe",
	.init = watch_all,
	.test_cases = probe_cases,
};

kunit_test_suite(probe_suite);

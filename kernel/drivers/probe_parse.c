// SPDX-License-Identifier: GPL-2.0-only
/*
 * probe: from an skb's headers to the packets it stands for.
 *
 * A flow is known by the port its server listens on, a probe by that or by its
 * echo identifier; the plan makes them unique. A packet within it is known by
 * its sequence number, a bare acknowledgment by the number it acknowledges, a
 * datagram by the first eight bytes of its payload. Equal packets that follow
 * one another (duplicate acknowledgments) are told apart by where they are.
 *
 * Left out: IPv6 extension headers, IP fragments, tunnels.
 */
#include <linux/icmp.h>
#include <linux/icmpv6.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <linux/vmalloc.h>
#include <net/addrconf.h>
#include <net/route.h>
#include "probe.h"

#define PROBE_PORTS 65536

enum { TABLE_TCP, TABLE_UDP, TABLE_ICMP, TABLE_COUNT };

static struct probe_watch **tables[TABLE_COUNT];

static int probe_table(u8 protocol)
{
	switch (protocol) {
	case IPPROTO_TCP:
		return TABLE_TCP;
	case IPPROTO_UDP:
		return TABLE_UDP;
	default:
		return TABLE_ICMP;
	}
}

/* Enters @watch: -EEXIST if its key is taken. */
int probe_watch(struct probe_watch *watch)
{
	struct probe_watch ***table = &tables[probe_table(watch->protocol)];

	if (!*table)
		*table = vzalloc(PROBE_PORTS * sizeof(**table));
	if (!*table)
		return -ENOMEM;
	if ((*table)[watch->key])
		return -EEXIST;
	(*table)[watch->key] = watch;
	return 0;
}

/* The watch whose server has one of the ports, and which way a packet between them goes. */
struct probe_watch *probe_watch_of(u8 protocol, u16 source, u16 destination, u8 *way)
{
	struct probe_watch **table = tables[probe_table(protocol)];

	if (!table)
		return NULL;
	*way = !table[destination];
	return table[*way ? source : destination];
}

static bool probe_parse_tcp(const struct sk_buff *skb, int offset, int end,
			    struct probe_packets *packets)
{
	struct tcphdr buffer;
	const struct tcphdr *tcp = skb_header_pointer(skb, offset, sizeof(buffer), &buffer);
	u16 source, destination;

	if (!tcp)
		return false;
	source = ntohs(tcp->source);
	destination = ntohs(tcp->dest);
	packets->watch = probe_watch_of(IPPROTO_TCP, source, destination, &packets->way);
	if (!packets->watch)
		return false;
	packets->port = packets->way ? destination : source;
	packets->seq = ntohl(tcp->seq);
	packets->ack = ntohl(tcp->ack_seq);
	packets->payload = end - offset - tcp->doff * 4;
	packets->what = packets->seq;
	packets->content = PROBE_DATA;
	if (packets->payload)
		return true;
	packets->content = tcp->syn || tcp->fin || tcp->rst ? PROBE_CONTROL : PROBE_ACK;
	if (packets->content == PROBE_ACK)
		packets->what = packets->ack;
	return true;
}

static bool probe_parse_udp(const struct sk_buff *skb, int offset, int end,
			    struct probe_packets *packets)
{
	struct {
		struct udphdr head;
		__be64 first;
	} __packed buffer, *udp;
	u16 source, destination;

	memset(&buffer, 0, sizeof(buffer));
	udp = skb_header_pointer(skb, offset, min_t(int, sizeof(buffer), end - offset), &buffer);
	if (!udp)
		return false;
	source = ntohs(udp->head.source);
	destination = ntohs(udp->head.dest);
	packets->watch = probe_watch_of(IPPROTO_UDP, source, destination, &packets->way);
	if (!packets->watch)
		return false;
	packets->port = packets->way ? destination : source;
	packets->payload = end - offset - sizeof(struct udphdr);
	packets->what = packets->payload >= sizeof(udp->first) ? be64_to_cpu(udp->first) : 0;
	packets->content = PROBE_DATAGRAM;
	return true;
}

static bool probe_parse_icmp(const struct sk_buff *skb, int offset, int end, u8 request, u8 reply,
			     struct probe_packets *packets)
{
	struct icmphdr buffer; /* of an echo, ICMPv6's is the same */
	const struct icmphdr *icmp = skb_header_pointer(skb, offset, sizeof(buffer), &buffer);

	if (!icmp || (icmp->type != request && icmp->type != reply) || !tables[TABLE_ICMP])
		return false;
	packets->watch = tables[TABLE_ICMP][ntohs(icmp->un.echo.id)];
	if (!packets->watch)
		return false;
	packets->way = icmp->type == reply;
	packets->port = 0;
	packets->payload = end - offset - sizeof(*icmp);
	packets->what = ntohs(icmp->un.echo.sequence);
	packets->content = PROBE_DATAGRAM;
	return true;
}

static bool probe_parse_next(const struct sk_buff *skb, u8 protocol, int offset, int end,
			     struct probe_packets *packets)
{
	switch (protocol) {
	case IPPROTO_TCP:
		return probe_parse_tcp(skb, offset, end, packets);
	case IPPROTO_UDP:
		return probe_parse_udp(skb, offset, end, packets);
	case IPPROTO_ICMP:
		return probe_parse_icmp(skb, offset, end, ICMP_ECHO, ICMP_ECHOREPLY, packets);
	case IPPROTO_ICMPV6:
		return probe_parse_icmp(skb, offset, end, ICMPV6_ECHO_REQUEST, ICMPV6_ECHO_REPLY,
					packets);
	default:
		return false;
	}
}

/*
 * Reads the headers of @skb, whose IP header stands at @offset; false if nobody
 * watches. Frames may be padded and aggregates longer than IP can say, so the
 * end is IP's where there is one packet and the skb's where there are many.
 */
bool probe_parse(const struct sk_buff *skb, int offset, struct probe_packets *packets)
{
	union {
		struct iphdr v4;
		struct ipv6hdr v6;
	} buffer;
	const struct iphdr *ip = skb_header_pointer(skb, offset, sizeof(buffer.v4), &buffer);
	int next, end = skb->len;
	u8 protocol;

	if (!ip)
		return false;
	if (ip->version == 4) {
		protocol = ip->protocol;
		next = offset + ip->ihl * 4;
		if (!skb_is_gso(skb))
			end = offset + ntohs(ip->tot_len);
	} else if (ip->version == 6) {
		const struct ipv6hdr *ip6 =
			skb_header_pointer(skb, offset, sizeof(buffer.v6), &buffer);

		if (!ip6)
			return false;
		protocol = ip6->nexthdr;
		next = offset + sizeof(*ip6);
		if (!skb_is_gso(skb))
			end = next + ntohs(ip6->payload_len);
	} else {
		return false;
	}
	if (!probe_parse_next(skb, protocol, next, end, packets))
		return false;
	packets->step = packets->payload;
	packets->count = 1;
	if (skb_is_gso(skb) && packets->content == PROBE_DATA) {
		packets->step = skb_shinfo(skb)->gso_size;
		packets->count = DIV_ROUND_UP(packets->payload, packets->step);
	}
	return true;
}

/* Whether the packet with its IP header at @offset is for @net itself. */
bool probe_local(const struct sk_buff *skb, int offset, struct net *net)
{
	union {
		struct iphdr v4;
		struct ipv6hdr v6;
	} buffer;
	const struct iphdr *ip = skb_header_pointer(skb, offset, sizeof(buffer.v4), &buffer);

	if (!ip)
		return false;
	if (ip->version == 4)
		return inet_addr_type(net, ip->daddr) == RTN_LOCAL;
#if IS_ENABLED(CONFIG_IPV6)
	if (ip->version == 6) {
		const struct ipv6hdr *ip6 =
			skb_header_pointer(skb, offset, sizeof(buffer.v6), &buffer);

		return ip6 && ipv6_chk_addr(net, &ip6->daddr, NULL, 0);
	}
#endif
	return false;
}

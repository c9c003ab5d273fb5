// SPDX-License-Identifier: GPL-2.0-only
/*
 * probe: from an skb's headers to the packets it stands for.
 *
 * A stream is known by the port its server listens on, an ICMP ping by its echo
 * identifier; the plan makes them unique. Streams of programs (probe_program.c) are known
 * by addresses and ports. A packet within it is known by
 * its sequence number, a bare acknowledgment by the number it acknowledges, a
 * datagram by the first eight bytes of its payload, a program's by more. Equal packets that follow
 * one another (duplicate acknowledgments) are told apart by where they are.
 *
 * Of a packet in fragments the first one stands for all: it has the headers. Where
 * another one is dropped as they are made, the packet is lost, and the first goes on.
 *
 * Left out: IPv6 extension headers and fragments, tunnels.
 */
#include <linux/icmp.h>
#include <linux/icmpv6.h>
#include <linux/ieee80211.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <linux/vmalloc.h>
#include <net/addrconf.h>
#include <net/inet_ecn.h>
#include <net/ip.h>
#include <net/route.h>
#include "probe.h"

#define PROBE_PORTS 65536
#define PROBE_SNAP 8 /* LLC and SNAP headers between 802.11's and IP's */

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

/* The same where the IP header at @head tells it, too. */
static bool probe_parse_whose(const struct sk_buff *skb, int head, u8 protocol, u16 source,
			      u16 destination, struct probe_packets *packets)
{
	struct probe_key key;
	int next;

	packets->watch = probe_watch_of(protocol, source, destination, &packets->way);
	packets->port = packets->way ? destination : source;
	if (packets->watch || !probe_programs)
		return packets->watch;
	if (probe_key_of_packet(skb, head, &key, &next))
		packets->watch = probe_program_of(&key, &packets->way, &packets->port);
	return packets->watch;
}

static bool probe_parse_tcp(const struct sk_buff *skb, int head, int offset, int end,
			    struct probe_packets *packets)
{
	struct tcphdr buffer;
	const struct tcphdr *tcp = skb_header_pointer(skb, offset, sizeof(buffer), &buffer);
	u16 source, destination;

	if (!tcp)
		return false;
	source = ntohs(tcp->source);
	destination = ntohs(tcp->dest);
	if (!probe_parse_whose(skb, head, IPPROTO_TCP, source, destination, packets))
		return false;
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

static bool probe_parse_udp(const struct sk_buff *skb, int head, int offset, int end,
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
	if (!probe_parse_whose(skb, head, IPPROTO_UDP, source, destination, packets))
		return false;
	packets->payload = end - offset - sizeof(struct udphdr);
	packets->what = packets->payload >= sizeof(udp->first) ? be64_to_cpu(udp->first) : 0;
	packets->content = PROBE_DATAGRAM;
	if (packets->watch->program) {
		packets->skb = skb;
		packets->offset = offset + sizeof(struct udphdr);
	}
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

static bool probe_parse_next(const struct sk_buff *skb, int head, u8 protocol, int offset, int end,
			     struct probe_packets *packets)
{
	packets->skb = NULL;
	switch (protocol) {
	case IPPROTO_TCP:
		return probe_parse_tcp(skb, head, offset, end, packets);
	case IPPROTO_UDP:
		return probe_parse_udp(skb, head, offset, end, packets);
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
		if (ip->frag_off & htons(IP_OFFSET))
			return false;
		packets->fragment = ip->frag_off & htons(IP_MF);
		protocol = ip->protocol;
		packets->ecn = ip->tos & INET_ECN_MASK;
		next = offset + ip->ihl * 4;
		if (!skb_is_gso(skb))
			end = offset + ntohs(ip->tot_len);
	} else if (ip->version == 6) {
		const struct ipv6hdr *ip6 =
			skb_header_pointer(skb, offset, sizeof(buffer.v6), &buffer);

		if (!ip6)
			return false;
		packets->fragment = false;
		protocol = ip6->nexthdr;
		packets->ecn = ipv6_get_dsfield(ip6) & INET_ECN_MASK;
		next = offset + sizeof(*ip6);
		if (!skb_is_gso(skb))
			end = next + ntohs(ip6->payload_len);
	} else {
		return false;
	}
	if (!probe_parse_next(skb, offset, protocol, next, end, packets))
		return false;
	packets->step = packets->payload;
	packets->count = 1;
	if (skb_is_gso(skb) && (packets->content == PROBE_DATA || packets->skb)) {
		packets->step = skb_shinfo(skb)->gso_size;
		packets->count = DIV_ROUND_UP(packets->payload, packets->step);
	}
	return true;
}

/* Where the IP header of an 802.11 data frame is; -1: it is none, or has no payload. */
int probe_offset_80211(const struct sk_buff *skb)
{
	const struct ieee80211_hdr *header = (const void *)skb->data;
	int bytes = offsetof(struct ieee80211_hdr, addr4);

	if (skb_headlen(skb) < sizeof(header->frame_control) ||
	    !ieee80211_is_data_present(header->frame_control))
		return -1;
	if (ieee80211_has_a4(header->frame_control))
		bytes += ETH_ALEN;
	if (ieee80211_is_data_qos(header->frame_control))
		bytes += IEEE80211_QOS_CTL_LEN;
	return bytes + PROBE_SNAP;
}

/*
 * Where the IP header of @skb is that the stack gives to a device. What an access
 * point sends on from one of its stations to another has its network header where the
 * Ethernet header is, until mac80211 has made an 802.11 frame of it.
 */
int probe_offset(const struct sk_buff *skb)
{
	int offset;

	if (!probe_forwarded(skb))
		return skb_network_offset(skb);
	offset = probe_offset_80211(skb);
	return offset < 0 ? skb_network_offset(skb) + ETH_HLEN : offset;
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

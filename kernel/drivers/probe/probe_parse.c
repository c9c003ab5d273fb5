// SPDX-License-Identifier: GPL-2.0-only
/*
 * probe: parsing of an skb's headers into packets.
 *
 * A stream is identified by its server's port, an ICMP ping by its echo identifier. The plan
 * makes them unique. Streams of programs (probe_program.c) are identified by addresses and
 * ports.
 * A packet within its stream is identified by its sequence number, a bare acknowledgment by its
 * acknowledgment number, a datagram by the first eight bytes of its payload, and a program's
 * datagram by more bytes. Consecutive equal packets (duplicate acknowledgments) are
 * distinguished by their positions.
 *
 * The first fragment represents a fragmented packet, since it has the headers. If another
 * fragment is dropped during fragmentation, the packet is lost, and the first one continues.
 *
 * Left out: IPv6 extension headers and fragments, tunnels, VLANs within VLANs.
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
#define PROBE_SNAP 8 /* LLC and SNAP headers between the 802.11 and IP headers */

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

/* Adds @watch. Returns -EEXIST if its key is in use. */
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

/* Returns the watch whose server has one of the ports, and the direction of a packet between
 * them.
 */
struct probe_watch *probe_watch_of(u8 protocol, u16 source, u16 destination, u8 *direction)
{
	struct probe_watch **table = tables[probe_table(protocol)];

	if (!table)
		return NULL;
	*direction = !table[destination];
	return table[*direction ? source : destination];
}

/* Does the same for a packet with its IP header at @head. */
static bool probe_parse_stream(const struct sk_buff *skb, int head, u8 protocol, u16 source,
			       u16 destination, struct probe_packets *packets)
{
	struct probe_key key;
	int next;

	packets->watch = probe_watch_of(protocol, source, destination, &packets->direction);
	packets->port = packets->direction ? destination : source;
	if (packets->watch || !probe_programs)
		return packets->watch;
	if (probe_key_of_packet(skb, head, &key, &next))
		packets->watch = probe_program_of(&key, &packets->direction, &packets->port);
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
	if (!probe_parse_stream(skb, head, IPPROTO_TCP, source, destination, packets))
		return false;
	packets->seq = ntohl(tcp->seq);
	packets->ack = ntohl(tcp->ack_seq);
	packets->payload = end - offset - tcp->doff * 4;
	packets->ident = packets->seq;
	packets->content = PROBE_DATA;
	if (packets->payload)
		return true;
	packets->content = tcp->syn || tcp->fin || tcp->rst ? PROBE_CONTROL : PROBE_ACK;
	if (packets->content == PROBE_ACK)
		packets->ident = packets->ack;
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
	if (!probe_parse_stream(skb, head, IPPROTO_UDP, source, destination, packets))
		return false;
	packets->payload = end - offset - sizeof(struct udphdr);
	packets->ident = packets->payload >= sizeof(udp->first) ? be64_to_cpu(udp->first) : 0;
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
	struct icmphdr buffer; /* of an echo; ICMPv6's is the same */
	const struct icmphdr *icmp = skb_header_pointer(skb, offset, sizeof(buffer), &buffer);

	if (!icmp || (icmp->type != request && icmp->type != reply) || !tables[TABLE_ICMP])
		return false;
	packets->watch = tables[TABLE_ICMP][ntohs(icmp->un.echo.id)];
	if (!packets->watch)
		return false;
	packets->direction = icmp->type == reply;
	packets->port = 0;
	packets->payload = end - offset - sizeof(*icmp);
	packets->ident = ntohs(icmp->un.echo.sequence);
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
 * Parses the headers of @skb, whose IP header is at @offset. Returns false if no stream is
 * watched. Frames may be padded, and aggregates longer than IP's length field. So the end is
 * IP's for one packet and the skb's for many.
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

/* Returns the offset of the IP header in an 802.11 data frame; -1 if it is none, or has no
 * payload.
 */
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
 * Returns the offset of the IP header in an skb for a device. When an access point forwards a
 * frame between stations, the skb's network header is at the Ethernet header, until mac80211 has
 * built an 802.11 frame.
 */
int probe_offset(const struct sk_buff *skb)
{
	int offset;

	if (!probe_forwarded(skb))
		return skb_network_offset(skb);
	offset = probe_offset_80211(skb);
	return offset < 0 ? skb_network_offset(skb) + ETH_HLEN : offset;
}

/* Returns whether the packet with its IP header at @offset has an address of @net. */
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

// SPDX-License-Identifier: GPL-2.0-only
/*
 * probe: keys that identify packets of programs. Packets of a stream have its addresses and
 * ports: those of the socket, or after NAT. A datagram within its stream is identified by its
 * payload.
 */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/jhash.h>
#include <net/inet_sock.h>
#include <net/ip.h>
#include <net/ipv6.h>
#if IS_ENABLED(CONFIG_NF_CONNTRACK)
#include <net/netfilter/nf_conntrack.h>
#endif
#include "probe.h"

/* Returns the key of the opposite direction. */
struct probe_key probe_key_turned(const struct probe_key *key)
{
	return (struct probe_key){ .source = key->destination,
				   .destination = key->source,
				   .source_port = key->destination_port,
				   .destination_port = key->source_port,
				   .protocol = key->protocol };
}

/* Sets @key to that of packets from @sk, without NAT. */
void probe_key_of_sock(const struct sock *sk, struct probe_key *key)
{
	const struct inet_sock *inet = inet_sk(sk);

	memset(key, 0, sizeof(*key));
	key->protocol = sk->sk_protocol;
	key->source_port = inet->inet_sport;
	key->destination_port = inet->inet_dport;
#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6) {
		key->source = sk->sk_v6_rcv_saddr;
		key->destination = sk->sk_v6_daddr;
		return;
	}
#endif
	ipv6_addr_set_v4mapped(inet->inet_saddr, &key->source);
	ipv6_addr_set_v4mapped(inet->inet_daddr, &key->destination);
}

/*
 * Sets @key to that of the packet whose IP header is at @offset, and the offset of the transport
 * header. Returns false if the packet has no key.
 */
bool probe_key_of_packet(const struct sk_buff *skb, int offset, struct probe_key *key, int *next)
{
	union {
		struct iphdr v4;
		struct ipv6hdr v6;
	} buffer;
	const struct iphdr *ip = skb_header_pointer(skb, offset, sizeof(buffer.v4), &buffer);
	const struct ipv6hdr *ip6;
	const __be16 *ports;
	__be16 copied[2];

	memset(key, 0, sizeof(*key));
	if (!ip)
		return false;
	if (ip->version == 4) {
		if (ip_is_fragment(ip) || ipv4_is_multicast(ip->daddr) ||
		    ipv4_is_lbcast(ip->daddr) || ipv4_is_loopback(ip->daddr))
			return false;
		ipv6_addr_set_v4mapped(ip->saddr, &key->source);
		ipv6_addr_set_v4mapped(ip->daddr, &key->destination);
		key->protocol = ip->protocol;
		*next = offset + ip->ihl * 4;
	} else {
		ip6 = skb_header_pointer(skb, offset, sizeof(buffer.v6), &buffer);
		if (!ip6 || ip6->version != 6 || ipv6_addr_is_multicast(&ip6->daddr) ||
		    ipv6_addr_loopback(&ip6->daddr))
			return false;
		key->source = ip6->saddr;
		key->destination = ip6->daddr;
		key->protocol = ip6->nexthdr;
		*next = offset + sizeof(*ip6);
	}
	if (key->protocol != IPPROTO_TCP && key->protocol != IPPROTO_UDP)
		return false;
	ports = skb_header_pointer(skb, *next, sizeof(copied), copied);
	if (!ports)
		return false;
	key->source_port = ports[0];
	key->destination_port = ports[1];
	return true;
}

/*
 * Returns a number that identifies a datagram within its stream. QUIC packets are random after a
 * common beginning; those of other protocols have a number near their beginning.
 */
u64 probe_datagram(const struct sk_buff *skb, int offset, u32 bytes)
{
	u32 payload[20] = {}, length = min_t(u32, bytes, sizeof(payload)), low;
	const u32 *header;

	header = skb_header_pointer(skb, offset, length, payload);
	if (!header)
		return bytes;
	if (header != payload)
		memcpy(payload, header, length);
	low = jhash2(payload, ARRAY_SIZE(payload), bytes);
	return (u64)jhash2(payload, ARRAY_SIZE(payload), ~bytes) << 32 | low;
}

#if IS_ENABLED(CONFIG_NF_CONNTRACK)
static struct probe_key probe_key_of_tuple(const struct nf_conntrack_tuple *tuple)
{
	struct probe_key key = { .source_port = tuple->src.u.all,
				 .destination_port = tuple->dst.u.all,
				 .protocol = tuple->dst.protonum };

	if (tuple->src.l3num == AF_INET) {
		ipv6_addr_set_v4mapped(tuple->src.u3.ip, &key.source);
		ipv6_addr_set_v4mapped(tuple->dst.u3.ip, &key.destination);
	} else {
		key.source = tuple->src.u3.in6;
		key.destination = tuple->dst.u3.in6;
	}
	return key;
}

/* Sets the keys of the skb's connection before and after NAT. Returns false without NAT. */
bool probe_translated(const struct sk_buff *skb, struct probe_key *before,
		      struct probe_key *behind)
{
	enum ip_conntrack_info info;
	const struct nf_conn *ct = nf_ct_get(skb, &info);
	struct probe_key answer;

	if (!ct || !(ct->status & IPS_NAT_MASK))
		return false;
	*before = probe_key_of_tuple(&ct->tuplehash[IP_CT_DIR_ORIGINAL].tuple);
	answer = probe_key_of_tuple(&ct->tuplehash[IP_CT_DIR_REPLY].tuple);
	*behind = probe_key_turned(&answer);
	return true;
}
#else
bool probe_translated(const struct sk_buff *skb, struct probe_key *before,
		      struct probe_key *behind)
{
	return false;
}
#endif

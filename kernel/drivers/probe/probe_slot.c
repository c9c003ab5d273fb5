// SPDX-License-Identifier: GPL-2.0-only
/*
 * probe: slots, the state of packets on their path.
 *
 *	         new                                      visit
 *	socket ------> qdisc -> ring -> wire -> received ------> qdisc ...
 *	                                            |
 *	                                            +--> in order -> read: finish
 *
 * The time `at_ns` of a slot is the end of the booked time. Every event books the time since
 * then on one layer and advances `at_ns`. So the layers add up to the packet's total time by
 * construction. The only possible error is an event at a place where the packet cannot be. Such
 * events are counted (`unmatched`).
 */
#include <linux/hashtable.h>
#include <linux/slab.h>
#include "probe.h"

#define PROBE_HASH_BITS 14

static DEFINE_HASHTABLE(slots, PROBE_HASH_BITS);
static struct kmem_cache *slot_cache;
static struct hlist_head spare; /* free slots, the last used first */
static struct probe_slot *latest; /* the last match: most events of a packet are consecutive */

static const enum probe_layer layer_of[HOP_COUNT] = {
	[HOP_RX] = PROBE_RX,
	[HOP_RESEQUENCE] = PROBE_RESEQUENCE,
	[HOP_STACK] = PROBE_STACK,
	[HOP_QDISC] = PROBE_QDISC,
	[HOP_TXQ] = PROBE_TXQ,
	[HOP_RING] = PROBE_RING,
	[HOP_CONTENTION] = PROBE_CONTENTION,
	[HOP_RETRY] = PROBE_RETRY,
	[HOP_AIR] = PROBE_AIR,
	[HOP_WIRE] = PROBE_WIRE,
	[HOP_SHAPER] = PROBE_SHAPER,
	[HOP_PROPAGATION] = PROBE_PROPAGATION,
};

/*
 * Returns the hash bucket of a packet. Adjacent segments of TCP are in adjacent buckets, within
 * a few cache lines per stream, since most searches are for the next segment.
 */
static struct hlist_head *probe_bucket(u64 owner, u64 ident)
{
	u8 content = owner >> 16;
	u64 offset = content == PROBE_DATA || content == PROBE_ACK ? ident >> 10 :
								    hash_64(ident, PROBE_HASH_BITS);

	return &slots[(hash_64(owner, PROBE_HASH_BITS) + offset) % ARRAY_SIZE(slots)];
}

/*
 * Returns the number of a packet: a counter, except for pings. A ping's sequence number (UDP:
 * the first 32 bits; ICMP: 16 bits, extended) identifies both the request and its reply.
 */
static u32 probe_number(const struct probe_packets *packets, struct probe_oneway *oneway)
{
	u32 next = oneway->number;

	if (!probe_numbered(packets->watch))
		return oneway->number++;
	if (packets->watch->protocol == IPPROTO_UDP)
		next = packets->ident >> 32;
	else
		next += (s16)(packets->ident - next);
	oneway->number = next + 1;
	return next;
}

int probe_slot_start(void)
{
	if (!slot_cache)
		slot_cache = KMEM_CACHE(probe_slot, SLAB_HWCACHE_ALIGN);
	return slot_cache ? 0 : -ENOMEM;
}

static struct probe_slot *probe_slot_alloc(void)
{
	struct probe_slot *slot;

	if (hlist_empty(&spare))
		return kmem_cache_alloc(slot_cache, GFP_ATOMIC);
	slot = hlist_entry(spare.first, struct probe_slot, hash);
	hlist_del(&slot->hash);
	return slot;
}

/* Adds the slot to the hash table. */
static void probe_slot_enter(struct probe_slot *slot)
{
	struct hlist_head *bucket = probe_bucket(slot->owner, slot->ident);
	struct probe_slot *other;

	slot->equals = false;
	hlist_for_each_entry(other, bucket, hash) {
		if (other->ident == slot->ident && other->owner == slot->owner) {
			other->equals = true;
			slot->equals = true;
		}
	}
	hlist_add_head(&slot->hash, bucket);
	latest = slot;
}

/* Returns a slot for a packet that leaves its first socket at @now_ns. */
struct probe_slot *probe_slot_new(const struct probe_packets *packets, u32 index, int node,
				  s64 now_ns)
{
	struct probe_oneway *oneway = &packets->watch->oneway[packets->direction];
	struct probe_slot *slot = probe_slot_alloc();

	if (!slot)
		return NULL;
	memset(slot, 0, offsetof(struct probe_slot, sender_ns));
	INIT_LIST_HEAD(&slot->received);
	slot->owner = probe_owner(packets);
	slot->ident = probe_ident(packets, index);
	slot->watch = packets->watch;
	slot->direction = packets->direction;
	slot->content = packets->content;
	slot->ecn = packets->ecn;
	slot->state = PROBE_IN_QDISC;
	slot->number = probe_number(packets, oneway);
	slot->bytes = probe_bytes(packets, index);
	slot->seq = slot->ident;
	slot->begin_ns = now_ns;
	slot->sent_ns = now_ns;
	slot->at_ns = now_ns;
	probe_slot_visit(slot, node);
	oneway->of[slot->ecn].sent++;
	probe_slot_enter(slot);
	/* a second reply to a duplicated request */
	slot->twin = slot->equals && probe_numbered(packets->watch);
	return slot;
}

static bool probe_slot_is(const struct probe_slot *slot, int states, int node, int device,
			  s64 now_ns)
{
	if (device > 0 ? slot->device != device : device < 0 && slot->device == -device)
		return false;
	return (slot->state & states) && (node < 0 || slot->node == node) &&
	       slot->at_ns <= now_ns;
}

/*
 * Returns the oldest slot of the packet in one of @states at @node (-1: anywhere) and at @device
 * (0: any, negative: any but this one) whose time is not after @now_ns.
 */
struct probe_slot *probe_slot_at(u64 owner, u64 ident, int states, int node, int device,
				 s64 now_ns)
{
	struct probe_slot *slot = latest, *match = NULL;

	if (slot && slot->ident == ident && slot->owner == owner && !slot->equals)
		return probe_slot_is(slot, states, node, device, now_ns) ? slot : NULL;
	hlist_for_each_entry(slot, probe_bucket(owner, ident), hash)
		if (slot->ident == ident && slot->owner == owner &&
		    probe_slot_is(slot, states, node, device, now_ns))
			match = slot;
	if (match)
		latest = match;
	return match;
}

/* Duplicates the packet at its current position. */
struct probe_slot *probe_slot_duplicate(const struct probe_slot *slot)
{
	struct probe_slot *twin = probe_slot_alloc();

	if (!twin)
		return NULL;
	*twin = *slot;
	twin->twin = true;
	INIT_LIST_HEAD(&twin->received);
	if (!probe_numbered(slot->watch))
		twin->number = slot->watch->oneway[slot->direction].number++;
	probe_slot_counts(slot)->duplicated++;
	probe_slot_enter(twin);
	return twin;
}

/* Moves the packet to the next node. */
void probe_slot_visit(struct probe_slot *slot, int node)
{
	if (slot->visits < PROBE_VISITS)
		slot->visit[slot->visits++].took = 0;
	slot->visit[slot->visits - 1].node = node;
	slot->visit[slot->visits - 1].ecn = slot->ecn;
	slot->node = node;
}

/*
 * Compares the codepoint in the packet's IP header, as it leaves @place, with that of the slot.
 * If they differ, the packet was marked (or bleached) there.
 */
void probe_slot_ecn(struct probe_slot *slot, u8 ecn, const struct net_device *dev,
		    enum probe_place place)
{
	struct probe_mark *mark;

	if (likely(slot->ecn == ecn))
		return;
	mark = probe_emit(PROBE_MARK, sizeof(*mark));
	if (mark) {
		mark->t_ns = slot->at_ns;
		mark->stream = probe_slot_stream(slot);
		mark->number = slot->number;
		mark->bytes = slot->bytes;
		mark->data = probe_slot_data(slot);
		mark->node = slot->node;
		mark->place = place;
		mark->was = slot->ecn;
		mark->ecn = ecn;
		if (dev)
			strscpy(mark->device, dev->name, sizeof(mark->device));
	}
	probe_slot_counts(slot)->became--;
	slot->ecn = ecn;
	probe_slot_counts(slot)->became++;
	slot->visit[slot->visits - 1].ecn = ecn;
}

/* Writes the layers of each visit. */
void probe_slot_layers(const struct probe_slot *slot, struct probe_visit *visit)
{
	unsigned int i, hop;

	memset(visit, 0, slot->visits * sizeof(*visit));
	for (i = 0; i < slot->visits; i++) {
		const struct probe_visited *at = &slot->visit[i];
		unsigned int took = at->took;

		visit[i].node = at->node;
		visit[i].ecn = at->ecn;
		for (; took; took &= took - 1) {
			hop = __ffs(took);
			visit[i].layer_ns[layer_of[hop]] = at->ns[hop];
		}
	}
	for (i = 0; slot->has_sender_ns && i < PROBE_SENDER_LAYERS; i++)
		visit[0].layer_ns[PROBE_CWND + i] = slot->sender_ns[i];
	visit[slot->visits - 1].layer_ns[PROBE_REORDER] = slot->reorder_ns;
	visit[slot->visits - 1].layer_ns[PROBE_READ] = slot->read_ns;
}

/* Returns the sums of @node, or of the last node in the table. */
static struct probe_sums *probe_sums(struct probe_oneway *oneway, bool data, u16 node)
{
	struct probe_sums **sums = &oneway->sums[data];
	unsigned int i;

	if (!*sums)
		*sums = kcalloc(PROBE_VISITS, sizeof(**sums), GFP_ATOMIC);
	if (!*sums)
		return NULL;
	for (i = 0; i < PROBE_VISITS - 1; i++)
		if (!(*sums)[i].packets || (*sums)[i].node == node)
			break;
	(*sums)[i].node = node;
	return &(*sums)[i];
}

/* Adds the packet's layers to the sums of its stream. */
static void probe_slot_add(const struct probe_slot *slot)
{
	struct probe_oneway *oneway = &slot->watch->oneway[slot->direction];
	bool data = probe_slot_data(slot);
	s64 total = slot->reorder_ns + slot->read_ns;
	struct probe_sums *sums = NULL;
	unsigned int i, j, took;

	for (i = 0; i < slot->visits; i++) {
		const struct probe_visited *visit = &slot->visit[i];

		sums = probe_sums(oneway, data, visit->node);
		if (!sums)
			return;
		sums->packets++;
		for (took = visit->took; took; took &= took - 1) {
			j = __ffs(took);
			sums->ns[layer_of[j]] += visit->ns[j];
			total += visit->ns[j];
		}
		for (j = 0; slot->has_sender_ns && !i && j < PROBE_SENDER_LAYERS; j++) {
			sums->ns[PROBE_CWND + j] += slot->sender_ns[j];
			total += slot->sender_ns[j];
		}
	}
	sums->ns[PROBE_REORDER] += slot->reorder_ns;
	sums->ns[PROBE_READ] += slot->read_ns;
	if (WARN_ON_ONCE(total != slot->at_ns - slot->begin_ns))
		oneway->unmatched++;
}

/* Completes the packet: adds it to the sums, and emits a record if it is selected. */
void probe_slot_finish(struct probe_slot *slot)
{
	struct probe_packet *packet;

	probe_slot_counts(slot)->delivered++;
	if (probe_slot_data(slot))
		slot->watch->oneway[slot->direction].bytes += slot->bytes;
	if (slot->twin && probe_numbered(slot->watch)) {
		/* a ping's sequence number identifies one packet */
		probe_slot_free(slot);
		return;
	}
	probe_slot_add(slot);
	if (probe_is_recorded(slot)) {
		packet = probe_emit(PROBE_PACKET, struct_size(packet, visit, slot->visits));
		if (packet) {
			packet->t_ns = slot->begin_ns;
			packet->end_ns = slot->at_ns;
			packet->stream = probe_slot_stream(slot);
			packet->number = slot->number;
			packet->bytes = slot->bytes;
			packet->data = probe_slot_data(slot);
			packet->visits = slot->visits;
			probe_slot_layers(slot, packet->visit);
		}
	}
	probe_slot_free(slot);
}

void probe_slot_free(struct probe_slot *slot)
{
	list_del(&slot->received);
	hash_del(&slot->hash);
	if (latest == slot)
		latest = NULL;
	if (IS_ENABLED(CONFIG_KASAN)) /* KASAN then detects uses of the freed slot */
		kmem_cache_free(slot_cache, slot);
	else
		hlist_add_head(&slot->hash, &spare);
}

/* Counts the packets of each direction that are in flight, by their slots. */
void probe_slots_count(void)
{
	struct probe_counts *of;
	struct probe_slot *slot;
	unsigned int i, ecn;

	for (i = 0; i < probe_watch_count; i++) {
		for (ecn = 0; ecn < PROBE_ECN_COUNT; ecn++) {
			of = &probe_watches[i]->oneway[0].of[ecn];
			of->in_flight = of->unread;
			of = &probe_watches[i]->oneway[1].of[ecn];
			of->in_flight = of->unread;
		}
	}
	hash_for_each(slots, i, slot, hash)
		if (slot->state != PROBE_LOST)
			probe_slot_counts(slot)->in_flight++;
}

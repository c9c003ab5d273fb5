// SPDX-License-Identifier: GPL-2.0-only
/*
 * probe: what is known of a packet on its way.
 *
 *	         new                                      visit
 *	socket ------> qdisc -> ring -> wire -> received ------> qdisc ...
 *	                                            |
 *	                                            +--> in order -> read: finish
 *
 * A slot's clock `at_ns` says where its account ends; every event spends the
 * time since then on one layer and moves the clock, so that the layers add up
 * to the packet's life by construction. What could still be wrong is an event
 * that comes in a place where the packet cannot be: those are counted
 * (`unmatched`).
 */
#include <linux/hashtable.h>
#include <linux/slab.h>
#include "probe.h"

#define PROBE_HASH_BITS 14

static DEFINE_HASHTABLE(slots, PROBE_HASH_BITS);
static struct kmem_cache *slot_cache;
static struct hlist_head spare; /* slots of none, the last used first */
static struct probe_slot *latest; /* that was looked for: most events of a packet follow another */

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
 * Where the slots of a packet are. TCP's neighbours are neighbours here too, within a few cache
 * lines a stream: most searches are for the next segment.
 */
static struct hlist_head *probe_bucket(u64 who, u64 what)
{
	u8 content = who >> 16;
	u64 place = content == PROBE_DATA || content == PROBE_ACK ? what >> 10 :
								    hash_64(what, PROBE_HASH_BITS);

	return &slots[(hash_64(who, PROBE_HASH_BITS) + place) % ARRAY_SIZE(slots)];
}

/*
 * The number of a packet: they are counted, but for a ping's, whose sequence
 * numbers (UDP's first 32 bits; ICMP's 16 are continued) name both the question
 * and its answer.
 */
static u32 probe_number(const struct probe_packets *packets, struct probe_way *way)
{
	u32 next = way->number;

	if (!probe_numbered(packets->watch))
		return way->number++;
	if (packets->watch->protocol == IPPROTO_UDP)
		next = packets->what >> 32;
	else
		next += (s16)(packets->what - next);
	way->number = next + 1;
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

/* From now on it is found. */
static void probe_slot_enter(struct probe_slot *slot)
{
	struct hlist_head *bucket = probe_bucket(slot->who, slot->what);
	struct probe_slot *other;

	slot->equals = false;
	hlist_for_each_entry(other, bucket, hash) {
		if (other->what == slot->what && other->who == slot->who) {
			other->equals = true;
			slot->equals = true;
		}
	}
	hlist_add_head(&slot->hash, bucket);
	latest = slot;
}

/* A packet that leaves its first socket at @now_ns. */
struct probe_slot *probe_slot_new(const struct probe_packets *packets, u32 index, int node,
				  s64 now_ns)
{
	struct probe_way *way = &packets->watch->way[packets->way];
	struct probe_slot *slot = probe_slot_alloc();

	if (!slot)
		return NULL;
	memset(slot, 0, offsetof(struct probe_slot, sender_ns));
	INIT_LIST_HEAD(&slot->received);
	slot->who = probe_who(packets);
	slot->what = probe_what(packets, index);
	slot->watch = packets->watch;
	slot->way = packets->way;
	slot->content = packets->content;
	slot->ecn = packets->ecn;
	slot->state = PROBE_IN_QDISC;
	slot->number = probe_number(packets, way);
	slot->bytes = probe_bytes(packets, index);
	slot->seq = slot->what;
	slot->begin_ns = now_ns;
	slot->sent_ns = now_ns;
	slot->at_ns = now_ns;
	probe_slot_visit(slot, node);
	way->of[slot->ecn].sent++;
	probe_slot_enter(slot);
	/* a second answer to a question that came twice */
	slot->twin = slot->equals && probe_numbered(packets->watch);
	return slot;
}

static bool probe_slot_is(const struct probe_slot *slot, int states, int node, s64 now_ns)
{
	return (slot->state & states) && (node < 0 || slot->node == node) &&
	       slot->at_ns <= now_ns;
}

/*
 * The oldest slot of the packet that is in one of @states at @node (-1:
 * anywhere), and not further in time than @now_ns.
 */
struct probe_slot *probe_slot_find(u64 who, u64 what, int states, int node, s64 now_ns)
{
	struct probe_slot *slot = latest, *found = NULL;

	if (slot && slot->what == what && slot->who == who && !slot->equals)
		return probe_slot_is(slot, states, node, now_ns) ? slot : NULL;
	hlist_for_each_entry(slot, probe_bucket(who, what), hash)
		if (slot->what == what && slot->who == who &&
		    probe_slot_is(slot, states, node, now_ns))
			found = slot;
	if (found)
		latest = found;
	return found;
}

/* The packet once more, where it is. */
struct probe_slot *probe_slot_twin(const struct probe_slot *slot)
{
	struct probe_slot *twin = probe_slot_alloc();

	if (!twin)
		return NULL;
	*twin = *slot;
	twin->twin = true;
	INIT_LIST_HEAD(&twin->received);
	if (!probe_numbered(slot->watch))
		twin->number = slot->watch->way[slot->way].number++;
	probe_slot_counts(slot)->duplicated++;
	probe_slot_enter(twin);
	return twin;
}

/* The packet is at the next node. */
void probe_slot_visit(struct probe_slot *slot, int node)
{
	if (slot->visits < PROBE_VISITS)
		slot->visit[slot->visits++].took = 0;
	slot->visit[slot->visits - 1].node = node;
	slot->visit[slot->visits - 1].ecn = slot->ecn;
	slot->node = node;
}

/*
 * @ecn is in the packet's IP header where it leaves @place, which is behind it in its
 * account: if something else was before, that was marked there (or bleached).
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

/* Writes out the layers of each visit. */
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
	for (i = 0; slot->held && i < PROBE_SENDER_LAYERS; i++)
		visit[0].layer_ns[PROBE_CWND + i] = slot->sender_ns[i];
	visit[slot->visits - 1].layer_ns[PROBE_REORDER] = slot->reorder_ns;
	visit[slot->visits - 1].layer_ns[PROBE_READ] = slot->read_ns;
}

/* The sums of @node, or of the last node there is room for. */
static struct probe_sums *probe_sums(struct probe_way *way, bool data, u16 node)
{
	struct probe_sums **sums = &way->sums[data];
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

/* Adds the packet's layers to its stream's sums. */
static void probe_slot_add(const struct probe_slot *slot)
{
	struct probe_way *way = &slot->watch->way[slot->way];
	bool data = probe_slot_data(slot);
	s64 total = slot->reorder_ns + slot->read_ns;
	struct probe_sums *sums = NULL;
	unsigned int i, j, took;

	for (i = 0; i < slot->visits; i++) {
		const struct probe_visited *visit = &slot->visit[i];

		sums = probe_sums(way, data, visit->node);
		if (!sums)
			return;
		sums->packets++;
		for (took = visit->took; took; took &= took - 1) {
			j = __ffs(took);
			sums->ns[layer_of[j]] += visit->ns[j];
			total += visit->ns[j];
		}
		for (j = 0; slot->held && !i && j < PROBE_SENDER_LAYERS; j++) {
			sums->ns[PROBE_CWND + j] += slot->sender_ns[j];
			total += slot->sender_ns[j];
		}
	}
	sums->ns[PROBE_REORDER] += slot->reorder_ns;
	sums->ns[PROBE_READ] += slot->read_ns;
	if (WARN_ON_ONCE(total != slot->at_ns - slot->begin_ns))
		way->unmatched++;
}

/*
 * The packet has come to its end: into the sums, and into a record if it is
 * one of those that are kept.
 */
void probe_slot_finish(struct probe_slot *slot)
{
	struct probe_packet *packet;

	probe_slot_counts(slot)->delivered++;
	if (probe_slot_data(slot))
		slot->watch->way[slot->way].bytes += slot->bytes;
	if (slot->twin && probe_numbered(slot->watch)) {
		/* a ping's sequence number stands for one packet */
		probe_slot_free(slot);
		return;
	}
	probe_slot_add(slot);
	if (probe_kept(slot)) {
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
	if (IS_ENABLED(CONFIG_KASAN)) /* which sees who still uses it */
		kmem_cache_free(slot_cache, slot);
	else
		hlist_add_head(&slot->hash, &spare);
}

/* The packets of each way that are somewhere; counted, not computed. */
void probe_slots_count(void)
{
	struct probe_counts *of;
	struct probe_slot *slot;
	unsigned int i, ecn;

	for (i = 0; i < probe_watch_count; i++) {
		for (ecn = 0; ecn < PROBE_ECN_COUNT; ecn++) {
			of = &probe_watches[i]->way[0].of[ecn];
			of->in_flight = of->unread;
			of = &probe_watches[i]->way[1].of[ecn];
			of->in_flight = of->unread;
		}
	}
	hash_for_each(slots, i, slot, hash)
		if (slot->state != PROBE_LOST)
			probe_slot_counts(slot)->in_flight++;
}

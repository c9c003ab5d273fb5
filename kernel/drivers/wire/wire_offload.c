// SPDX-License-Identifier: GPL-2.0-only
/*
 * wire: what tc moves into the chip: the schedule of taprio, the launch times of etf, the
 * priorities of mqprio. wire_fetch.c applies them.
 *
 * igc (I225, I226) has all three, igb (I210) launch times. igb's driver allows these for queues 0
 * and 1 only, igc's a window per queue and cycle: both limits are left out.
 */
#include <linux/netdevice.h>
#include <linux/slab.h>
#include <net/pkt_cls.h>
#include <net/pkt_sched.h>
#include "wire.h"

/* Returns the schedule in force at @now_ns, alone. Frees those that are not. */
static struct wire_schedule *wire_schedule_prune(struct wire_schedule *schedule, u64 now_ns)
{
	struct wire_schedule *before;

	if (!schedule)
		return NULL;
	before = schedule->before;
	schedule->before = NULL;
	if (schedule->base_ns <= now_ns) {
		kfree(before);
		return schedule;
	}
	kfree(schedule);
	return before;
}

void wire_schedule_free(struct wire_nic *nic)
{
	if (nic->schedule)
		kfree(nic->schedule->before);
	kfree(nic->schedule);
	nic->schedule = NULL;
}

static struct wire_schedule *wire_schedule_copy(const struct tc_taprio_qopt_offload *offload)
{
	struct wire_schedule *schedule;
	u64 end_ns = 0;
	size_t i;

	if (!offload->num_entries || !offload->cycle_time || offload->cycle_time > S32_MAX ||
	    offload->base_time < 0)
		return ERR_PTR(-ERANGE);
	schedule = kzalloc(struct_size(schedule, entries, offload->num_entries), GFP_KERNEL);
	if (!schedule)
		return ERR_PTR(-ENOMEM);
	schedule->base_ns = offload->base_time;
	schedule->cycle_ns = offload->cycle_time;
	schedule->count = offload->num_entries;
	for (i = 0; i < offload->num_entries; i++) {
		const struct tc_taprio_sched_entry *entry = &offload->entries[i];

		if (entry->command != TC_TAPRIO_CMD_SET_GATES) {
			kfree(schedule);
			return ERR_PTR(-EOPNOTSUPP);
		}
		end_ns += entry->interval;
		schedule->entries[i] = (struct wire_gates){ end_ns, entry->gate_mask };
	}
	return schedule;
}

static int wire_offload_taprio(struct wire_nic *nic, const struct tc_taprio_qopt_offload *offload)
{
	struct wire_schedule *schedule;
	u64 now_ns;

	if (!nic->gates)
		return -EOPNOTSUPP;
	if (TAPRIO_ENDS(offload)) {
		local_bh_disable();
		wire_schedule_free(nic);
		return wire_fetch_changed(nic);
	}
	if (!TAPRIO_BEGINS(offload))
		return -EOPNOTSUPP;
	schedule = wire_schedule_copy(offload);
	if (IS_ERR(schedule))
		return PTR_ERR(schedule);
	local_bh_disable();
	now_ns = wire_clock_read(&nic->clock, ktime_get_ns());
	wire_schedule_begin(schedule, now_ns);
	schedule->before = wire_schedule_prune(nic->schedule, now_ns);
	nic->schedule = schedule;
	return wire_fetch_changed(nic);
}

static int wire_offload_etf(struct wire_nic *nic, const struct tc_etf_qopt_offload *offload)
{
	struct wire_queue *queue;

	if (!nic->launch_time)
		return -EOPNOTSUPP;
	if (offload->queue < 0 || offload->queue >= nic->queue_count)
		return -EINVAL;
	queue = &nic->queues[offload->queue];
	local_bh_disable();
	nic->timed += !!offload->enable - queue->timed;
	queue->timed = offload->enable;
	return wire_fetch_changed(nic);
}

/* Gives each traffic class its queue, and the highest class the first turn. */
static int wire_offload_mqprio(struct wire_nic *nic, struct tc_mqprio_qopt_offload *offload)
{
	const struct tc_mqprio_qopt *classes = &offload->qopt;
	struct wire_queue *queue;
	u64 queues = 0;
	u32 tc;

	if (!nic->gates || offload->shaper != TC_MQPRIO_SHAPER_DCB)
		return -EOPNOTSUPP;
	/* with `hw 1` the kernel checks neither */
	for (tc = 0; tc < classes->num_tc; tc++) {
		u32 index = classes->offset[tc];

		if (classes->count[tc] != 1 || index >= nic->queue_count || queues & BIT_ULL(index))
			return -EINVAL;
		queues |= BIT_ULL(index);
	}
	local_bh_disable();
	nic->classes = classes->num_tc;
	wire_for_each_queue(queue, nic)
		queue->rank = queue->index;
	netdev_set_num_tc(nic->dev, classes->num_tc);
	for (tc = 0; tc < classes->num_tc; tc++) {
		netdev_set_tc_queue(nic->dev, tc, 1, classes->offset[tc]);
		nic->queues[classes->offset[tc]].rank = classes->num_tc - 1 - tc;
	}
	offload->qopt.hw = TC_MQPRIO_HW_OFFLOAD_TCS;
	return wire_fetch_changed(nic);
}

#if TAPRIO_ASKS_FOR_CAPS
/* Older kernels always give a schedule the gates of queues, not of traffic classes. */
static int wire_query_caps(const struct wire_nic *nic, const struct tc_query_caps_base *query)
{
	struct tc_taprio_caps *caps = query->caps;

	if (query->type != TC_SETUP_QDISC_TAPRIO || !nic->gates)
		return -EOPNOTSUPP;
	caps->gate_mask_per_txq = true;
	caps->broken_mqprio = true;	/* the first queue has priority, whatever its class */
	return 0;
}
#endif

int wire_setup_tc(struct net_device *dev, enum tc_setup_type type, void *data)
{
	struct wire_nic *nic = netdev_priv(dev);

	if (nic->queue_count == 1)
		return -EOPNOTSUPP;
	switch (type) {
	case TC_SETUP_QDISC_TAPRIO:
		return wire_offload_taprio(nic, data);
	case TC_SETUP_QDISC_ETF:
		return wire_offload_etf(nic, data);
	case TC_SETUP_QDISC_MQPRIO:
		return wire_offload_mqprio(nic, data);
#if TAPRIO_ASKS_FOR_CAPS
	case TC_QUERY_CAPS:
		return wire_query_caps(nic, data);
#endif
	default:
		return -EOPNOTSUPP;
	}
}

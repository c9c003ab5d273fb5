/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Exports the private state of a custom qdisc, `qdisc = "my_qdisc.c"`.
 *
 *	static const struct hourglass_column my_columns[] = {
 *		HOURGLASS_COLUMN(struct my_sched, marked),
 *		HOURGLASS_COLUMN(struct my_sched, longest_ns),
 *	};
 *	HOURGLASS_STATS(my, my_columns)
 *
 * The macro defines my_dump_stats() for .dump_stats of struct Qdisc_ops. Each sample of table
 * qdisc adds the listed fields as rows of table qdisc_stat. Reading them changes nothing and
 * takes no virtual time.
 */
#ifndef _HOURGLASS_QDISC_H
#define _HOURGLASS_QDISC_H

#include <linux/slab.h>
#include <linux/string.h>
#include <net/gen_stats.h>
#include <net/pkt_sched.h>
#include "hourglass_column.h"
#include "probe_abi.h"

#define HOURGLASS_STATS(prefix, column_list)					\
	static int prefix##_dump_stats(struct Qdisc *sch, struct gnet_dump *d)	\
	{									\
		return hourglass_stats(sch, d, column_list, ARRAY_SIZE(column_list)); \
	}

/* Adds a struct probe_stat that announces the columns, then one for each column. */
static inline int hourglass_stats(struct Qdisc *sch, struct gnet_dump *d,
				  const struct hourglass_column *columns, unsigned int count)
{
	struct probe_stat *stats;
	unsigned int i;
	int err;

	stats = kcalloc(count + 1, sizeof(*stats), GFP_ATOMIC);
	if (!stats)
		return -ENOMEM;
	stats[0].value = PROBE_STATS;
	for (i = 0; i < count; i++) {
		stats[i + 1].value = hourglass_column_value(qdisc_priv(sch), &columns[i]);
		strscpy(stats[i + 1].name, columns[i].name, sizeof(stats[i + 1].name));
	}
	err = gnet_stats_copy_app(d, stats, (count + 1) * sizeof(*stats));
	kfree(stats);
	return err;
}

#endif

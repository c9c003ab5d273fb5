/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For your own qdisc, `qdisc = "my_qdisc.c"`: a way to export its private state.
 *
 *	static const struct hourglass_column my_columns[] = {
 *		HOURGLASS_COLUMN(struct my_sched, marked),
 *		HOURGLASS_COLUMN(struct my_sched, longest_ns),
 *	};
 *	HOURGLASS_STATS(my, my_columns)
 *
 * The macro defines my_dump_stats() for .dump_stats of struct Qdisc_ops. Each sample of table
 * qdisc adds the fields of qdisc_priv() as rows of table qdisc_stat. Reading them changes
 * nothing and takes no time.
 */
#ifndef _HOURGLASS_QDISC_H
#define _HOURGLASS_QDISC_H

#include <linux/slab.h>
#include <linux/string.h>
#include <net/gen_stats.h>
#include <net/pkt_sched.h>
#include "hourglass_column.h"
#include "probe_abi.h"

#define HOURGLASS_STATS(prefix, columns_of_it)					\
	static int prefix##_dump_stats(struct Qdisc *sch, struct gnet_dump *d)	\
	{									\
		return hourglass_stats(sch, d, columns_of_it, ARRAY_SIZE(columns_of_it)); \
	}

/* A struct probe_stat that announces the columns, then one for each column. */
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

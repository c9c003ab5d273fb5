// SPDX-License-Identifier: Apache-2.0
/* Draws random numbers of all kinds at the kernel's start and in each namespace. */
#include <linux/module.h>
#include <linux/random.h>
#include <net/neighbour.h>
#include <net/net_namespace.h>

static void draw(void)
{
	u64 buffer[5];

	get_random_bytes(buffer, sizeof(buffer));
	get_random_u64();
	get_random_u32();
	neigh_rand_reach_time(30 * HZ);	/* prandom_u32() in 5.10, a bounded draw in newer kernels */
}

static int __net_init draw_for_namespace(struct net *net)
{
	draw();
	return 0;
}

static struct pernet_operations operations = { .init = draw_for_namespace };

static int __init draw_at_start(void)
{
	draw();
	return register_pernet_subsys(&operations);
}
module_init(draw_at_start);

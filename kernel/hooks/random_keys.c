// SPDX-License-Identifier: GPL-2.0-only
/*
 * The keys of random numbers; see hooks/determinism.toml.
 *
 * Programs have one key. The kernel has one for all its work after its start, and a separate key
 * for each function that starts a part of it (an initcall) or of a network namespace (the init()
 * of pernet_operations). A separate key depends on the seed, the function's name and the
 * namespace. So the draws of one part do not depend on which other parts the configuration has,
 * and a part that a scenario does not use changes no record.
 */
#include <linux/hourglass_random_keys.h>
#include <linux/init.h>
#include <linux/jhash.h>
#include <linux/kallsyms.h>
#include <linux/kernel.h>
#include <linux/preempt.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/string.h>

u8 random_user_key[CHACHA_KEY_SIZE] = "hourglass, user";

static u8 common_key[CHACHA_KEY_SIZE] = "hourglass";
static const u8 separate_key[CHACHA_KEY_SIZE] = "hourglass, part";
static u64 random_seed;
static LIST_HEAD(scopes);

/*
 * These functions draw from the kernel's common key, as they did before separate keys existed. All
 * records depend on this list, so nothing is added to it.
 */
static const char *const common_functions[] = {
	"bpf_offload_init",
	"dummy_init_module",
	"ieee80211_init",
	"ifb_init_module",
	"inet6_init",
	"inet_blackhole_dev_init",
	"inet_init",
	"init_oops_id",
	"initialize_ptr_random",
	"ioam6_net_init",
	"ipc_init",
	"ipc_ns_init",
	"ipv4_frags_init_net",
	"ipv6_frags_init_net",
	"loopback_net_init",
	"net_dev_init",
	"net_ns_init",
	"netlink_proto_init",
	"nf_ct_net_init",
	"nf_tables_module_init",
	"ping_v4_proc_init_net",
	"rt_genid_init",
	"teql_init",
	"vsprintf_init_hashval",
	"vxlan_init_module",
};

static int __init set_random_seed(char *arg)
{
	if (kstrtou64(arg, 0, &random_seed))
		return -EINVAL;
	memcpy(common_key + 16, &random_seed, sizeof(random_seed));
	memcpy(random_user_key + 16, &random_seed, sizeof(random_seed));
	return 0;
}
early_param("hourglass.seed", set_random_seed);

void random_scope_enter(struct random_scope *scope, void *function, u32 instance)
{
	scope->task = current;
	scope->function = function;
	scope->instance = instance;
	scope->devices = false;
	scope->key = NULL;
	list_add(&scope->list, &scopes);
}

void random_scope_leave(struct random_scope *scope)
{
	list_del(&scope->list);
}

/* The innermost scope of the code that runs; an interrupt is in none. */
static struct random_scope *current_scope(void)
{
	struct random_scope *scope;

	if (!in_task())
		return NULL;
	list_for_each_entry(scope, &scopes, list)
		if (scope->task == current ||
		    (scope->devices && !strcmp(current->comm, "kdevtmpfs")))
			return scope;
	return NULL;
}

static u8 *choose_key(struct random_scope *scope)
{
	char name[KSYM_SYMBOL_LEN];
	u32 hash;

	sprint_symbol_no_offset(name, (unsigned long)scope->function);
	if (match_string(common_functions, ARRAY_SIZE(common_functions), name) >= 0)
		return common_key;
	hash = jhash(name, strlen(name), 0);
	memcpy(scope->separate_key, separate_key, sizeof(separate_key));
	memcpy(scope->separate_key + 16, &random_seed, sizeof(random_seed));
	memcpy(scope->separate_key + 24, &hash, sizeof(hash));
	memcpy(scope->separate_key + 28, &scope->instance, sizeof(scope->instance));
	return scope->separate_key;
}

/* Returns the key of the kernel's next draw. */
u8 *random_kernel_key(void)
{
	struct random_scope *scope = current_scope();

	if (!scope)
		return common_key;
	if (!scope->key)
		scope->key = choose_key(scope);
	return scope->key;
}

/* Returns whether the next draw has a separate key, and takes nothing from the common batches. */
bool random_key_is_separate(void)
{
	return random_kernel_key() != common_key;
}

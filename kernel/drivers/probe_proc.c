// SPDX-License-Identifier: GPL-2.0-only
/*
 * probe: /proc/hourglass/probe. Commands in, records out; probe_abi.h says
 * which.
 *
 * Records are gathered in chunks and handed over whole. Samples are taken by a
 * timer's softirq, before any process runs at their instant. The reader must be
 * one that waits for all others (SCHED_IDLE): it would change the order in which
 * they run.
 *
 * parameter		unit	value	why
 * PROBE_CHUNK		bytes	65536	what kmalloc() gives without searching
 * PROBE_PATIENCE	ns	2*10^8	a reader's: Flent's step; bounds what waits here
 */
#include <linux/hash.h>
#include <linux/inet.h>
#include <linux/interrupt.h>
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/slab.h>
#include <linux/time-internal.h>
#include <linux/uaccess.h>
#include <linux/wait.h>
#include "hourglass_proc.h"
#include "probe.h"

#define PROBE_CHUNK 65536
#define PROBE_PATIENCE (200 * NSEC_PER_MSEC)
#define PROBE_CAPTURES 64
#define PROBE_LINE 128

bool probe_on;
struct probe_watch *probe_watches[PROBE_WATCHES];
unsigned int probe_watch_count;

struct probe_chunk {
	struct list_head list;
	u32 filled, taken;
	u8 data[] __aligned(8);
};

static LIST_HEAD(chunks);
static u64 waiting; /* bytes in them */
static u64 wanted; /* by a reader */
static DECLARE_WAIT_QUEUE_HEAD(readers);

static struct {
	const struct net_device *dev;
	u32 snaplen;
} captures[PROBE_CAPTURES];
static unsigned int capture_count;

static u32 kept_of; /* one packet in so many becomes a record; 0: none */
static s64 sample_ns, totals_ns, next_sample, next_totals;
static bool started, stopped;

unsigned int probe_net_id __read_mostly;

u32 probe_snaplen(const struct net_device *dev, bool *captured)
{
	unsigned int i;

	for (i = 0; i < capture_count; i++) {
		if (captures[i].dev == dev) {
			*captured = true;
			return captures[i].snaplen;
		}
	}
	*captured = false;
	return 0;
}

/*
 * Whether the packet is one of those that become records: all of a ping's, one
 * in @kept_of of a flow's.
 */
bool probe_kept(const struct probe_slot *slot)
{
	if (!kept_of)
		return false;
	if (probe_numbered(slot->watch) || kept_of == 1)
		return true;
	return hash_64((u64)slot->watch->id << 40 | (u64)slot->way << 32 | slot->number, 32) %
		       kept_of ==
	       0;
}

/* Room for a record with a body of @bytes, zeroed; NULL: no memory. */
void *probe_emit(enum probe_record type, u32 bytes)
{
	u32 size = ALIGN(sizeof(struct probe_head) + bytes, 8);
	struct probe_chunk *chunk =
		list_empty(&chunks) ? NULL : list_last_entry(&chunks, struct probe_chunk, list);
	struct probe_head *head;

	if (!chunk || chunk->filled + size > PROBE_CHUNK - sizeof(*chunk)) {
		chunk = kmalloc(PROBE_CHUNK, GFP_ATOMIC);
		if (WARN_ON_ONCE(!chunk || size > PROBE_CHUNK - sizeof(*chunk)))
			return NULL;
		chunk->filled = 0;
		chunk->taken = 0;
		list_add_tail(&chunk->list, &chunks);
	}
	head = (struct probe_head *)(chunk->data + chunk->filled);
	memset(head, 0, size);
	head->size = size;
	head->type = type;
	chunk->filled += size;
	waiting += size;
	if (wanted && waiting >= wanted)
		wake_up(&readers);
	return head + 1;
}

static int probe_command_node(const char *words)
{
	struct probe_net *probe = net_generic(current->nsproxy->net_ns, probe_net_id);
	u16 node;

	if (kstrtou16(words, 10, &node))
		return -EINVAL;
	probe->node = node + 1;
	return 0;
}

static int probe_command_watch(const char *words)
{
	struct probe_watch *watch;
	unsigned int id, key;
	char protocol[8];
	int error;

	if (sscanf(words, "%u %7s %u", &id, protocol, &key) != 3 || id >= PROBE_NO_STREAM ||
	    key > U16_MAX)
		return -EINVAL;
	if (probe_watch_count == PROBE_WATCHES)
		return -ENOSPC;
	watch = kzalloc(sizeof(*watch), GFP_KERNEL);
	if (!watch)
		return -ENOMEM;
	watch->id = id;
	watch->key = key;
	watch->protocol = !strcmp(protocol, "tcp")  ? IPPROTO_TCP :
			  !strcmp(protocol, "udp")  ? IPPROTO_UDP :
			  !strcmp(protocol, "icmp") ? IPPROTO_ICMP :
						      0;
	watch->way[0].final = -1;
	watch->way[1].final = -1;
	error = watch->protocol ? probe_watch(watch) : -EINVAL;
	if (error)
		kfree(watch);
	else
		probe_watches[probe_watch_count++] = watch;
	return error;
}

static int probe_command_programs(const char *words)
{
	u16 first;

	if (kstrtou16(words, 10, &first))
		return -EINVAL;
	probe_program_start(first);
	return 0;
}

static int probe_command_capture(const char *words)
{
	struct net_device *dev;
	char name[IFNAMSIZ];
	unsigned int snaplen;

	if (sscanf(words, "%15s %u", name, &snaplen) != 2)
		return -EINVAL;
	if (capture_count == PROBE_CAPTURES)
		return -ENOSPC;
	dev = dev_get_by_name(current->nsproxy->net_ns, name);
	if (!dev)
		return -ENODEV;
	captures[capture_count].snaplen = snaplen;
	captures[capture_count].dev = dev;
	dev_put(dev); /* a capture lasts as long as the guest */
	return capture_count++ ? 0 : probe_path_capture();
}

/* When something is due next. */
static s64 probe_due(void)
{
	return min(next_sample, next_totals);
}

/*
 * The clock of the samples is an event as a device's, not a timer: whenever any hrtimer fires,
 * the kernel fires those with it whose slack has begun (TCP's compressed ACKs have 100 us), so
 * that a timer that only measures would send packets earlier.
 */
static struct time_travel_event clock_event;

static void probe_clock_set(void)
{
	hourglass_event_set(&clock_event, max_t(s64, probe_due() - ktime_get_ns(), 0));
}

/* Does what is due by now, in softirq, where no socket is in the middle of its work. */
static void probe_tick(struct tasklet_struct *tasklet)
{
	s64 now = ktime_get_ns();

	if (!probe_on)
		return;
	while (next_sample <= now) {
		probe_sample(next_sample);
		next_sample += sample_ns;
	}
	while (next_totals <= now) {
		probe_totals(next_totals);
		next_totals += totals_ns;
	}
	probe_clock_set();
}

static DECLARE_TASKLET(clock_tasklet, probe_tick);

static void probe_clock_event(struct time_travel_event *event)
{
	tasklet_schedule(&clock_tasklet);
}

static void probe_clock_start(void)
{
	if (probe_due() == S64_MAX)
		return;
	time_travel_set_event_fn(&clock_event, probe_clock_event);
	probe_clock_set();
}

static int probe_command_start(const char *words)
{
	int error;
	s64 epoch;

	if (kstrtos64(words, 10, &epoch))
		return -EINVAL;
	if (started)
		return -EBUSY;
	started = true;
	error = probe_slot_start() ?: probe_path_start() ?: probe_radio_start() ?:
		probe_drop_start() ?: probe_tcp_start() ?: probe_sample_start();
	if (error)
		return error;
	next_sample = sample_ns ? epoch : S64_MAX;
	next_totals = totals_ns ? epoch + totals_ns : S64_MAX;
	probe_on = true;
	probe_clock_start();
	return 0;
}

static int probe_command_stop(const char *words)
{
	s64 now = ktime_get_ns();

	local_bh_disable();
	probe_totals(now);
	probe_balance(now);
	probe_program_stop();
	probe_on = false;
	stopped = true;
	local_bh_enable();
	wake_up(&readers);
	return 0;
}

static int probe_command_number(const char *words, s64 *number)
{
	return kstrtos64(words, 10, number) || *number < 0 ? -EINVAL : 0;
}

static int probe_command_packets(const char *words)
{
	return kstrtou32(words, 10, &kept_of);
}

static int probe_command_totals(const char *words)
{
	return probe_command_number(words, &totals_ns);
}

static int probe_command_sample(const char *words)
{
	return probe_command_number(words, &sample_ns);
}

static const struct {
	const char *name;
	int (*run)(const char *words);
} commands[] = {
	{ "node", probe_command_node },	      { "watch", probe_command_watch },
	{ "capture", probe_command_capture }, { "packets", probe_command_packets },
	{ "totals", probe_command_totals },   { "sample", probe_command_sample },
	{ "start", probe_command_start },     { "stop", probe_command_stop },
	{ "programs", probe_command_programs },
};

static int probe_command(char *line)
{
	char *name = strsep(&line, " ");
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(commands); i++)
		if (!strcmp(name, commands[i].name))
			return commands[i].run(line ?: "");
	return -EINVAL;
}

/* Runs the commands of a write; one line that fails ends it. */
static ssize_t probe_write(struct file *file, const char __user *text, size_t size, loff_t *offset)
{
	char *lines = memdup_user_nul(text, size), *rest, *line;
	int error = 0;

	if (IS_ERR(lines))
		return PTR_ERR(lines);
	rest = lines;
	while (!error && (line = strsep(&rest, "\n")))
		if (*line)
			error = probe_command(line);
	kfree(lines);
	return error ?: size;
}

/* Sleeps until @until_ns, or until a reader has what it wants. False: a signal came. */
static bool probe_sleep(s64 until_ns)
{
	ktime_t expires = ns_to_ktime(until_ns);
	DEFINE_WAIT(wait);

	prepare_to_wait(&readers, &wait, TASK_INTERRUPTIBLE);
	if (!stopped && waiting < wanted)
		schedule_hrtimeout(&expires, HRTIMER_MODE_ABS);
	finish_wait(&readers, &wait);
	return !signal_pending(current);
}

/* Copies whole records out. */
static ssize_t probe_take(char __user *to, size_t size)
{
	struct probe_chunk *chunk;
	size_t taken = 0;

	while ((chunk = list_first_entry_or_null(&chunks, struct probe_chunk, list))) {
		u32 end = chunk->taken;

		while (end < chunk->filled &&
		       taken + end - chunk->taken +
				       ((struct probe_head *)(chunk->data + end))->size <=
			       size)
			end += ((struct probe_head *)(chunk->data + end))->size;
		if (end == chunk->taken && end < chunk->filled)
			break;
		if (copy_to_user(to + taken, chunk->data + chunk->taken, end - chunk->taken))
			return -EFAULT;
		taken += end - chunk->taken;
		chunk->taken = end;
		if (end < chunk->filled)
			break;
		list_del(&chunk->list);
		kfree(chunk);
	}
	waiting -= taken;
	return taken ?: waiting ? -EINVAL : 0; /* a buffer too small for one record */
}

static ssize_t probe_read(struct file *file, char __user *to, size_t size, loff_t *offset)
{
	s64 patience = ktime_get_ns() + PROBE_PATIENCE;

	wanted = size / 2;
	while (!stopped && waiting < wanted) {
		s64 now = ktime_get_ns();

		if (now >= patience) {
			if (waiting)
				break;
			patience = now + PROBE_PATIENCE;
		}
		if (!probe_sleep(patience))
			return -EINTR;
	}
	wanted = 0;
	return probe_take(to, size);
}

/* A reader that waits does not keep a writer out: there is no position to share. */
static int probe_open(struct inode *inode, struct file *file)
{
	return stream_open(inode, file);
}

static const struct proc_ops probe_ops = {
	.proc_open = probe_open,
	.proc_write = probe_write,
	.proc_read = probe_read,
	.proc_lseek = noop_llseek,
};

static struct pernet_operations probe_net_ops = {
	.id = &probe_net_id,
	.size = sizeof(struct probe_net),
};

static int __init probe_init(void)
{
	int error = register_pernet_subsys(&probe_net_ops);

	if (error)
		return error;
	return proc_create("probe", 0600, hourglass_proc(), &probe_ops) ? 0 : -ENOMEM;
}
module_init(probe_init);

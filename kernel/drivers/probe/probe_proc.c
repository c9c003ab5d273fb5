// SPDX-License-Identifier: GPL-2.0-only
/*
 * probe: /proc/hourglass/probe, for commands and records. probe_abi.h describes both.
 * /proc/hourglass/node has the number of the reader's network namespace.
 *
 * Records are collected in chunks, and a read returns whole records. Samples are taken in a
 * timer's softirq, before any process runs at their instant. The reader needs the lowest
 * priority (SCHED_IDLE). Otherwise it would change the order in which other processes run.
 *
 * parameter		unit	value	why
 * PROBE_CHUNK		bytes	65536	the largest size that kmalloc() gives without searching
 * PROBE_PATIENCE	ns	2*10^8	maximum wait of a read: Flent's step; bounds the backlog
 */
#include <linux/hash.h>
#include <linux/inet.h>
#include <linux/interrupt.h>
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
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
	u32 filled, consumed;
	u8 data[] __aligned(8);
};

static LIST_HEAD(chunks);
static u64 waiting; /* bytes in the chunks */
static u64 wakeup_bytes; /* bytes that wake a reader */
static DECLARE_WAIT_QUEUE_HEAD(readers);

static struct {
	const struct net_device *dev;
	u32 snaplen;
} captures[PROBE_CAPTURES];
static unsigned int capture_count;

static u32 packet_ratio; /* one packet in N becomes a record; 0: none */
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

/* Returns whether the packet becomes a record: each of a ping, one in packet_ratio of a flow. */
bool probe_is_recorded(const struct probe_slot *slot)
{
	if (!packet_ratio)
		return false;
	if (probe_numbered(slot->watch) || packet_ratio == 1)
		return true;
	return hash_64((u64)slot->watch->id << 40 | (u64)slot->direction << 32 | slot->number, 32) %
		       packet_ratio ==
	       0;
}

/* Returns memory for a record with a zeroed body of @bytes; NULL if memory is short. */
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
		chunk->consumed = 0;
		list_add_tail(&chunk->list, &chunks);
	}
	head = (struct probe_head *)(chunk->data + chunk->filled);
	memset(head, 0, size);
	head->size = size;
	head->type = type;
	chunk->filled += size;
	waiting += size;
	if (wakeup_bytes && waiting >= wakeup_bytes)
		wake_up(&readers);
	return head + 1;
}

static int probe_command_node(const char *arguments)
{
	u16 node;

	if (kstrtou16(arguments, 10, &node))
		return -EINVAL;
	probe_node_set(current->nsproxy->net_ns, node);
	return 0;
}

static int probe_command_watch(const char *arguments)
{
	struct probe_watch *watch;
	unsigned int id, key;
	char protocol[8];
	int error;

	if (sscanf(arguments, "%u %7s %u", &id, protocol, &key) != 3 || id >= PROBE_NO_STREAM ||
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
	watch->oneway[0].final = -1;
	watch->oneway[1].final = -1;
	error = watch->protocol ? probe_watch(watch) : -EINVAL;
	if (error)
		kfree(watch);
	else
		probe_watches[probe_watch_count++] = watch;
	return error;
}

static int probe_command_programs(const char *arguments)
{
	u16 stream, node;

	if (sscanf(arguments, "%hu %hu", &stream, &node) != 2)
		return -EINVAL;
	probe_program_start(stream, node);
	return 0;
}

static int probe_command_capture(const char *arguments)
{
	struct net_device *dev;
	char name[IFNAMSIZ];
	unsigned int snaplen;

	if (sscanf(arguments, "%15s %u", name, &snaplen) != 2)
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

/* Returns the time of the next sample. */
static s64 probe_due(void)
{
	return min(next_sample, next_totals);
}

/*
 * The sampling clock is an event like a device's, not a timer. Whenever an hrtimer fires, the
 * kernel also fires hrtimers whose slack has begun (100 us for TCP's compressed ACKs). So a
 * timer that only measures would make TCP send packets earlier.
 */
static struct time_travel_event clock_event;

static void probe_clock_set(void)
{
	hourglass_event_set(&clock_event, max_t(s64, probe_due() - ktime_get_ns(), 0));
}

/* Takes the samples that are due, in softirq, when no socket is inside a system call. */
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

static int probe_command_start(const char *arguments)
{
	int error;
	s64 epoch;

	if (kstrtos64(arguments, 10, &epoch))
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

static int probe_command_stop(const char *arguments)
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

static int probe_command_number(const char *arguments, s64 *number)
{
	return kstrtos64(arguments, 10, number) || *number < 0 ? -EINVAL : 0;
}

static int probe_command_packets(const char *arguments)
{
	return kstrtou32(arguments, 10, &packet_ratio);
}

static int probe_command_totals(const char *arguments)
{
	return probe_command_number(arguments, &totals_ns);
}

static int probe_command_sample(const char *arguments)
{
	return probe_command_number(arguments, &sample_ns);
}

static const struct {
	const char *name;
	int (*run)(const char *arguments);
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

/* Executes the commands of a write, up to the first one that fails. */
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

/* Sleeps until @until_ns, or until enough bytes are collected. Returns false after a signal. */
static bool probe_sleep(s64 until_ns)
{
	ktime_t expires = ns_to_ktime(until_ns);
	DEFINE_WAIT(wait);

	prepare_to_wait(&readers, &wait, TASK_INTERRUPTIBLE);
	if (!stopped && waiting < wakeup_bytes)
		schedule_hrtimeout(&expires, HRTIMER_MODE_ABS);
	finish_wait(&readers, &wait);
	return !signal_pending(current);
}

/* Copies whole records out. */
static ssize_t probe_take(char __user *to, size_t size)
{
	struct probe_chunk *chunk;
	size_t copied = 0;

	while ((chunk = list_first_entry_or_null(&chunks, struct probe_chunk, list))) {
		u32 end = chunk->consumed;

		while (end < chunk->filled &&
		       copied + end - chunk->consumed +
				       ((struct probe_head *)(chunk->data + end))->size <=
			       size)
			end += ((struct probe_head *)(chunk->data + end))->size;
		if (end == chunk->consumed && end < chunk->filled)
			break;
		if (copy_to_user(to + copied, chunk->data + chunk->consumed, end - chunk->consumed))
			return -EFAULT;
		copied += end - chunk->consumed;
		chunk->consumed = end;
		if (end < chunk->filled)
			break;
		list_del(&chunk->list);
		kfree(chunk);
	}
	waiting -= copied;
	return copied ?: waiting ? -EINVAL : 0; /* the buffer is too small for one record */
}

static ssize_t probe_read(struct file *file, char __user *to, size_t size, loff_t *offset)
{
	s64 patience = ktime_get_ns() + PROBE_PATIENCE;

	wakeup_bytes = size / 2;
	while (!stopped && waiting < wakeup_bytes) {
		s64 now = ktime_get_ns();

		if (now >= patience) {
			if (waiting)
				break;
			patience = now + PROBE_PATIENCE;
		}
		if (!probe_sleep(patience))
			return -EINTR;
	}
	wakeup_bytes = 0;
	return probe_take(to, size);
}

/* A waiting reader does not block a writer, since the file has no position. */
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

static int probe_node_show(struct seq_file *file, void *data)
{
	seq_printf(file, "%d\n", probe_node(current->nsproxy->net_ns));
	return 0;
}

static struct pernet_operations probe_net_ops = {
	.init = probe_program_namespace,
	.id = &probe_net_id,
	.size = sizeof(struct probe_net),
};

static int __init probe_init(void)
{
	int error = register_pernet_subsys(&probe_net_ops);

	if (error)
		return error;
	return proc_create("probe", 0600, hourglass_proc(), &probe_ops) &&
			       proc_create_single("node", 0400, hourglass_proc(), probe_node_show) ?
		       0 : -ENOMEM;
}
module_init(probe_init);

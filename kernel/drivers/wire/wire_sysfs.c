// SPDX-License-Identifier: GPL-2.0-only
/*
 * wire: the parameters of cable and NIC, as files of /sys/class/net/X/wire/.
 *
 * They describe the direction away from X and apply to frames that enter the ring later. `cable`
 * connects two NICs. `trace` makes the rate change over time. It is text, one statement per
 * line, with times in ns after `epoch_ns`:
 *
 *	rate PERIOD		then lines "TIME BPS": from TIME on, BPS bit/s
 *	opportunity PERIOD BYTES	then lines "TIME": up to BYTES may leave then;
 *				a time on two lines is two opportunities
 *
 * PERIOD 0: no repetition. The trace takes effect when epoch_ns is written
 * (CLOCK_MONOTONIC, the test's time 0); before the epoch the rate is rate_bps.
 *
 * Only the agent writes them. Programs of nodes cannot, not even as root.
 *
 * The type of the chip can be set only while it is down: moderation (delay, interval, igb,
 * ixgbe), vectors, tx_fifo, tx_context, bql_headers, launch_time, gates, rx_copy, rx_buffer,
 * rx_large. tx_wake and phc can be set at any time. `phc` 1 makes the NIC's clock.
 */
#include <linux/capability.h>
#include <linux/kernel.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>
#include "hourglass_proc.h"
#include "wire.h"

#define WIRE_RATE_MAX	1000000000000ULL	/* 1 Tbit/s */
#define WIRE_TIME_MAX	(3600ULL * NSEC_PER_SEC)
#define WIRE_BURST_MAX	(1000000ULL * WIRE_MILLI)
#define WIRE_TRACE_MAX	(16U << 20)
#define WIRE_LAUNCH_MAX	1000
#define WIRE_FIFO_MAX	(16U << 20)
#define WIRE_BUFFER_MIN	1024
#define WIRE_LARGE_MIN	9600	/* holds the largest frame */
#define WIRE_LARGE_MAX	32768
#define WIRE_BYTES_MAX	1000000000ULL

static struct wire_nic *wire_of(struct device *device)
{
	return netdev_priv(to_net_dev(device));
}

static ssize_t cable_show(struct device *device, struct device_attribute *attr,
			  char *text)
{
	return sprintf(text, "%d\n", wire_of(device)->cable);
}

static ssize_t cable_store(struct device *device, struct device_attribute *attr,
			   const char *text, size_t length)
{
	int cable, err = kstrtoint(text, 10, &cable);

	if (!hourglass_is_agent())
		return -EPERM;
	if (err)
		return err;
	if (cable < WIRE_NO_CABLE)
		return -ERANGE;
	if (!rtnl_trylock())
		return restart_syscall();
	err = wire_plug(wire_of(device), cable);
	rtnl_unlock();
	return err ?: length;
}
static DEVICE_ATTR_RW(cable);

static ssize_t medium_show(struct device *device, struct device_attribute *attr,
			   char *text)
{
	return sprintf(text, "%d\n", wire_medium_number(wire_of(device)));
}

static ssize_t medium_store(struct device *device, struct device_attribute *attr,
			    const char *text, size_t length)
{
	int number, err = kstrtoint(text, 10, &number);

	if (!hourglass_is_agent())
		return -EPERM;
	if (err)
		return err;
	if (number < WIRE_NO_MEDIUM)
		return -ERANGE;
	if (!rtnl_trylock())
		return restart_syscall();
	err = wire_medium_join(wire_of(device), number);
	rtnl_unlock();
	return err ?: length;
}
static DEVICE_ATTR_RW(medium);

static ssize_t phc_show(struct device *device, struct device_attribute *attr, char *text)
{
	return sprintf(text, "%d\n", !!wire_of(device)->phc);
}

static ssize_t phc_store(struct device *device, struct device_attribute *attr,
			 const char *text, size_t length)
{
	bool present;
	int err = kstrtobool(text, &present);

	if (!hourglass_is_agent())
		return -EPERM;
	if (err)
		return err;
	if (!rtnl_trylock())
		return restart_syscall();
	if (present)
		err = wire_phc_open(wire_of(device));
	else
		wire_phc_close(wire_of(device));
	rtnl_unlock();
	return err ?: length;
}
static DEVICE_ATTR_RW(phc);

/* A u64 of struct wire_nic with a range of values. */
struct wire_attribute {
	struct device_attribute attr;
	size_t offset;
	u64 low, high;
	bool zero;	/* 0 is allowed too */
	bool down_only;	/* can be set only while the NIC is down */
};

static struct wire_attribute *wire_attribute(struct device_attribute *attr)
{
	return container_of(attr, struct wire_attribute, attr);
}

static ssize_t wire_show(struct device *device, struct device_attribute *attr,
			 char *text)
{
	const struct wire_attribute *number = wire_attribute(attr);

	return sprintf(text, "%llu\n",
		       *(u64 *)((char *)wire_of(device) + number->offset));
}

static ssize_t wire_store(struct device *device, struct device_attribute *attr,
			  const char *text, size_t length)
{
	const struct wire_attribute *number = wire_attribute(attr);
	u64 value;
	int err = kstrtou64(text, 10, &value);

	if (!hourglass_is_agent())
		return -EPERM;
	if (err)
		return err;
	if ((value < number->low || value > number->high) && (value || !number->zero))
		return -ERANGE;
	if (number->down_only && netif_running(to_net_dev(device)))
		return -EBUSY;
	*(u64 *)((char *)wire_of(device) + number->offset) = value;
	local_bh_disable();
	wire_fetch_changed(wire_of(device));	/* of a rate */
	return length;
}

#define WIRE_NUMBER(_name, _field, _low, _high, ...) {			\
	.attr = __ATTR(_name, 0644, wire_show, wire_store),		\
	.offset = offsetof(struct wire_nic, _field),			\
	.low = (_low),							\
	.high = (_high),						\
	__VA_ARGS__							\
}

static struct wire_attribute wire_numbers[] = {
	WIRE_NUMBER(rate_bps, line.rate_bps, 1, WIRE_RATE_MAX),
	WIRE_NUMBER(delay_ns, delay_ns, 0, WIRE_TIME_MAX),
	WIRE_NUMBER(seed, faults.seed, 0, U64_MAX),
	WIRE_NUMBER(loss_ppb, faults.loss_ppb, 0, WIRE_PPB),
	WIRE_NUMBER(loss_burst_milli, faults.loss_burst_milli, 0, WIRE_BURST_MAX),
	WIRE_NUMBER(corrupt_ppb, faults.corrupt_ppb, 0, WIRE_PPB),
	WIRE_NUMBER(duplicate_ppb, faults.duplicate_ppb, 0, WIRE_PPB),
	WIRE_NUMBER(reorder_ppb, faults.reorder_ppb, 0, WIRE_PPB),
	WIRE_NUMBER(reorder_ns, faults.reorder_ns, 0, WIRE_TIME_MAX),
	WIRE_NUMBER(jitter_ns, faults.jitter_ns, 0, WIRE_TIME_MAX),
	WIRE_NUMBER(tx_wake, tx_wake, 1, U32_MAX),
	WIRE_NUMBER(vectors, vectors, 1, 2, .down_only = true),
	WIRE_NUMBER(tx_context, tx_context, 0, 1, .down_only = true),
	WIRE_NUMBER(bql_headers, bql_headers, 0, 1, .down_only = true),
	WIRE_NUMBER(launch_time, launch_time, 0, WIRE_LAUNCH_MAX, .down_only = true),
	WIRE_NUMBER(gates, gates, 0, 1, .down_only = true),
	WIRE_NUMBER(tx_fifo, tx_fifo, 0, WIRE_FIFO_MAX, .down_only = true),
	WIRE_NUMBER(rx_copy, rx_copy, 0, WIRE_COPY_MAX, .down_only = true),
	WIRE_NUMBER(rx_buffer, rx_buffer, WIRE_BUFFER_MIN, PAGE_SIZE, .zero = true,
		    .down_only = true),
	WIRE_NUMBER(rx_large, rx_large, WIRE_LARGE_MIN, WIRE_LARGE_MAX, .zero = true,
		    .down_only = true),
	WIRE_NUMBER(shaper_grant_cycle_ns, shaper.grant.cycle_ns, 0, WIRE_TIME_MAX),
	WIRE_NUMBER(shaper_grant_delay_ns, shaper.grant.delay_ns, 0, WIRE_TIME_MAX),
	WIRE_NUMBER(shaper_grant_epoch_ns, shaper.grant.epoch_ns, 0, U64_MAX),
	WIRE_NUMBER(policer_bps, policer.rate_bps, 0, WIRE_RATE_MAX),
	WIRE_NUMBER(policer_burst, policer.burst_bytes, 1, WIRE_BYTES_MAX),
	WIRE_NUMBER(shaper_bps, shaper.sustained.rate_bps, 0, WIRE_RATE_MAX),
	WIRE_NUMBER(shaper_burst, shaper.sustained.burst_bytes, 1, WIRE_BYTES_MAX),
	WIRE_NUMBER(shaper_peak_bps, shaper.peak.rate_bps, 0, WIRE_RATE_MAX),
	WIRE_NUMBER(shaper_mtu, shaper.peak.burst_bytes, 1, WIRE_BYTES_MAX),
	WIRE_NUMBER(shaper_limit, shaper.limit_bytes, 0, WIRE_BYTES_MAX),
	WIRE_NUMBER(shaper_latency_ns, shaper.latency_ns, 0, WIRE_TIME_MAX),
	WIRE_NUMBER(shaper_ce_threshold_ns, shaper.ce_threshold_ns, 0, WIRE_TIME_MAX),
};

static const char * const wire_laws[WIRE_LAWS] = {
	[WIRE_DELAY] = "delay",
	[WIRE_INTERVAL] = "interval",
	[WIRE_IGB] = "igb",
	[WIRE_IXGBE] = "ixgbe",
};

static ssize_t moderation_show(struct device *device, struct device_attribute *attr,
			       char *text)
{
	return sprintf(text, "%s\n", wire_laws[wire_of(device)->law]);
}

static ssize_t moderation_store(struct device *device, struct device_attribute *attr,
				const char *text, size_t length)
{
	int law = sysfs_match_string(wire_laws, text);

	if (!hourglass_is_agent())
		return -EPERM;
	if (law < 0)
		return law;
	if (netif_running(to_net_dev(device)))
		return -EBUSY;
	wire_of(device)->law = law;
	return length;
}
static DEVICE_ATTR_RW(moderation);

void wire_trace_free(struct wire_nic *nic)
{
	kvfree(nic->trace_text);
	kvfree(nic->line.trace.steps);
	nic->trace_text = NULL;
	nic->trace_length = 0;
	memset(&nic->line.trace, 0, sizeof(nic->line.trace));
	wire_tx_revive(nic, ktime_get_ns());
}

/* Appends to the text of the trace. A write at offset 0 replaces the text. */
static ssize_t trace_write(BIN_ATTRIBUTE_ARGS)
{
	struct wire_nic *nic = wire_of(kobj_to_dev(kobject));
	char *longer;

	if (!hourglass_is_agent())
		return -EPERM;
	if (!at)
		wire_trace_free(nic);
	if (at != nic->trace_length || at + length > WIRE_TRACE_MAX)
		return -EINVAL;
	longer = kvmalloc(at + length + 1, GFP_KERNEL);
	if (!longer)
		return -ENOMEM;
	if (at)
		memcpy(longer, nic->trace_text, at);
	memcpy(longer + at, text, length);
	longer[at + length] = 0;
	kvfree(nic->trace_text);
	nic->trace_text = longer;
	nic->trace_length = at + length;
	return length;
}
static BIN_ATTR_WO(trace, 0);

/* Parses the first line. Returns the @bytes of an opportunity. */
static int wire_trace_head(struct wire_trace *trace, const char *line,
			   u32 *bytes)
{
	if (sscanf(line, "rate %llu", &trace->period_ns) == 1)
		trace->kind = WIRE_RATE;
	else if (sscanf(line, "opportunity %llu %u", &trace->period_ns, bytes) == 2 &&
		 *bytes)
		trace->kind = WIRE_OPPORTUNITY;
	else
		return -EINVAL;
	return trace->period_ns > WIRE_TIME_MAX ? -ERANGE : 0;
}

static int wire_trace_step(struct wire_trace *trace, const char *line, u32 bytes)
{
	struct wire_step *step = &trace->steps[trace->count];
	int fields = trace->kind == WIRE_RATE ? 2 : 1;

	if (sscanf(line, "%llu %llu", &step->at_ns, &step->amount) != fields ||
	    step->at_ns > WIRE_TIME_MAX)
		return -EINVAL;
	if (trace->kind == WIRE_RATE && step->amount > WIRE_RATE_MAX)
		return -ERANGE;
	if (trace->count && step->at_ns < step[-1].at_ns)
		return -EINVAL;
	if (trace->period_ns && step->at_ns > trace->period_ns)
		return -ERANGE;
	if (trace->kind == WIRE_OPPORTUNITY) {
		if (trace->count && step->at_ns == step[-1].at_ns) {
			step[-1].amount += bytes;
			return 0;
		}
		step->amount = bytes;
	}
	trace->count++;
	return 0;
}

/* Parses the text of the trace and destroys it. */
static int wire_trace_parse(struct wire_nic *nic, struct wire_trace *trace)
{
	char *rest = nic->trace_text, *line;
	size_t lines = 1, i;
	u32 bytes = 0;
	int err;

	for (i = 0; i < nic->trace_length; i++)
		lines += rest[i] == '\n';
	trace->steps = kvcalloc(lines, sizeof(*trace->steps), GFP_KERNEL);
	if (!trace->steps)
		return -ENOMEM;
	line = strsep(&rest, "\n");
	err = wire_trace_head(trace, line, &bytes);
	while (!err && (line = strsep(&rest, "\n")))
		if (*line)
			err = wire_trace_step(trace, line, bytes);
	if (!err && !trace->count)
		err = -EINVAL;
	if (err)
		kvfree(trace->steps);
	return err;
}

static ssize_t epoch_ns_show(struct device *device,
			     struct device_attribute *attr, char *text)
{
	return sprintf(text, "%llu\n", wire_of(device)->line.trace.epoch_ns);
}

static ssize_t epoch_ns_store(struct device *device,
			      struct device_attribute *attr, const char *text,
			      size_t length)
{
	struct wire_nic *nic = wire_of(device);
	struct wire_trace trace = { };
	int err = kstrtou64(text, 10, &trace.epoch_ns);

	if (!hourglass_is_agent())
		return -EPERM;
	if (err)
		return err;
	if (!nic->trace_text)
		return -ENODATA;
	err = wire_trace_parse(nic, &trace);
	wire_trace_free(nic);
	if (!err)
		nic->line.trace = trace;
	local_bh_disable();
	wire_fetch_changed(nic);	/* an outage may have ended */
	return err ?: length;
}
static DEVICE_ATTR_RW(epoch_ns);

static struct attribute *wire_attribute_list[] = {
	&dev_attr_cable.attr,
	&dev_attr_epoch_ns.attr,
	&dev_attr_medium.attr,
	&dev_attr_phc.attr,
	&dev_attr_moderation.attr,
	&wire_numbers[0].attr.attr,
	&wire_numbers[1].attr.attr,
	&wire_numbers[2].attr.attr,
	&wire_numbers[3].attr.attr,
	&wire_numbers[4].attr.attr,
	&wire_numbers[5].attr.attr,
	&wire_numbers[6].attr.attr,
	&wire_numbers[7].attr.attr,
	&wire_numbers[8].attr.attr,
	&wire_numbers[9].attr.attr,
	&wire_numbers[10].attr.attr,
	&wire_numbers[11].attr.attr,
	&wire_numbers[12].attr.attr,
	&wire_numbers[13].attr.attr,
	&wire_numbers[14].attr.attr,
	&wire_numbers[15].attr.attr,
	&wire_numbers[16].attr.attr,
	&wire_numbers[17].attr.attr,
	&wire_numbers[18].attr.attr,
	&wire_numbers[19].attr.attr,
	&wire_numbers[20].attr.attr,
	&wire_numbers[21].attr.attr,
	&wire_numbers[22].attr.attr,
	&wire_numbers[23].attr.attr,
	&wire_numbers[24].attr.attr,
	&wire_numbers[25].attr.attr,
	&wire_numbers[26].attr.attr,
	&wire_numbers[27].attr.attr,
	&wire_numbers[28].attr.attr,
	&wire_numbers[29].attr.attr,
	&wire_numbers[30].attr.attr,
	&wire_numbers[31].attr.attr,
	NULL
};

static_assert(ARRAY_SIZE(wire_attribute_list) == ARRAY_SIZE(wire_numbers) + 6);

static BIN_ATTRIBUTE_LIST wire_bin_attribute_list[] = {
	&bin_attr_trace,
	NULL
};

const struct attribute_group wire_attributes = {
	.name = "wire",
	.attrs = wire_attribute_list,
	.bin_attrs = wire_bin_attribute_list,
};

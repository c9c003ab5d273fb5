// SPDX-License-Identifier: GPL-2.0-only
/*
 * wire: the NIC's PTP hardware clock, /dev/ptpN. Programs such as ptp4l and phc2sys set and tune
 * it. It starts with CLOCK_REALTIME, as igb and igc do (igc_ptp_reset()).
 */
#include <linux/hourglass_random_keys.h>
#include <linux/ptp_clock_kernel.h>
#include "wire.h"

/* max_adj of igb (82580 and later) and igc */
#define WIRE_PHC_MAX_PPB	62499999
#define WIRE_PHC_MAX_TUNING	((WIRE_PHC_MAX_PPB * 65536LL) / 1000)

static struct wire_nic *wire_phc_nic(struct ptp_clock_info *info)
{
	return container_of(info, struct wire_nic, phc_info);
}

/* Begins a change: frames that have arrived get the stamp of the clock as it was. Returns now. */
static u64 wire_phc_change(struct wire_nic *nic)
{
	u64 now_ns = ktime_get_ns();

	local_bh_disable();
	wire_stamp_arrived(nic, now_ns);
	return now_ns;
}

static int wire_phc_adjfine(struct ptp_clock_info *info, long scaled_ppm)
{
	struct wire_nic *nic = wire_phc_nic(info);
	u64 now_ns;

	/* the kernel's check overflows before 7.0 */
	if (scaled_ppm > WIRE_PHC_MAX_TUNING || scaled_ppm < -WIRE_PHC_MAX_TUNING)
		return -ERANGE;
	now_ns = wire_phc_change(nic);
	wire_clock_tune(&nic->clock, now_ns, scaled_ppm);
	return wire_fetch_changed(nic);
}

static int wire_phc_adjtime(struct ptp_clock_info *info, s64 delta_ns)
{
	struct wire_nic *nic = wire_phc_nic(info);
	u64 now_ns = wire_phc_change(nic);

	wire_clock_set(&nic->clock, now_ns, wire_clock_read(&nic->clock, now_ns) + delta_ns);
	return wire_fetch_changed(nic);
}

static int wire_phc_settime(struct ptp_clock_info *info, const struct timespec64 *time)
{
	struct wire_nic *nic = wire_phc_nic(info);
	u64 now_ns;

	if (time->tv_sec < 0)
		return -EINVAL;
	now_ns = wire_phc_change(nic);
	wire_clock_set(&nic->clock, now_ns, timespec64_to_ns(time));
	return wire_fetch_changed(nic);
}

static int wire_phc_gettime(struct ptp_clock_info *info, struct timespec64 *time)
{
	*time = ns_to_timespec64(wire_clock_read(&wire_phc_nic(info)->clock, ktime_get_ns()));
	return 0;
}

/* The clock has no pins and no pulses. */
static int wire_phc_enable(struct ptp_clock_info *info, struct ptp_clock_request *request, int on)
{
	return -EOPNOTSUPP;
}

static const struct ptp_clock_info wire_phc_info = {
	.owner = THIS_MODULE,
	.name = "wire",
	.max_adj = WIRE_PHC_MAX_PPB,
	.adjfine = wire_phc_adjfine,
	.adjtime = wire_phc_adjtime,
	.gettime64 = wire_phc_gettime,
	.settime64 = wire_phc_settime,
	.enable = wire_phc_enable,
};

/*
 * Makes the NIC's clock. Its random numbers are separate: a clock that no program uses changes no
 * record.
 */
int wire_phc_open(struct wire_nic *nic)
{
	struct random_scope scope;
	struct ptp_clock *phc;

	if (nic->phc)
		return 0;
	nic->phc_info = wire_phc_info;
	nic->clock = (struct wire_clock){ .mono_ns = ktime_get_ns(), .ns = ktime_get_real_ns() };
	random_scope_enter(&scope, wire_phc_open, 0);
	scope.devices = true;
	phc = ptp_clock_register(&nic->phc_info, NULL);
	random_scope_leave(&scope);
	if (IS_ERR(phc))
		return PTR_ERR(phc);
	nic->phc = phc;
	return 0;
}

void wire_phc_close(struct wire_nic *nic)
{
	if (nic->phc)
		ptp_clock_unregister(nic->phc);
	nic->phc = NULL;
}

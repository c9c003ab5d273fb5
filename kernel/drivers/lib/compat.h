/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The differences between kernel versions. The drivers are written for the newest
 * kernel. This file gives the older ones its names.
 *
 * A new version needs a few lines here. A function that was renamed or has one more
 * argument gets its new form for the old kernels. If the arguments of a driver's callback
 * changed, a macro ..._ARGS lists them, once for the old and once for the new kernels.
 */
#ifndef _HOURGLASS_COMPAT_H
#define _HOURGLASS_COMPAT_H

#include <linux/bitfield.h>
#include <linux/hrtimer.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/tracepoint.h>
#include <linux/version.h>
#include <net/mac80211.h>
#include <trace/events/skb.h>
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 18, 0)
#include <linux/hex.h>
#endif
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
#include <linux/skbuff_ref.h>
#endif
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
#include <net/gso.h>
#endif
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
#include <net/dropreason.h>
#endif

/* Tracepoints without an event: their names end in _tp if declared by DECLARE_TRACE() */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 16, 0)
#define DECLARE_TRACE_EVENT DECLARE_TRACE
#endif

/* sysfs: attributes are constant */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 16, 0)
#define BIN_ATTRIBUTE_ARGS	struct file *file, struct kobject *kobject, \
				const struct bin_attribute *attr, char *text, \
				loff_t at, size_t length
#define BIN_ATTRIBUTE_LIST const struct bin_attribute *const
#else
#define BIN_ATTRIBUTE_ARGS	struct file *file, struct kobject *kobject, \
				struct bin_attribute *attr, char *text, \
				loff_t at, size_t length
#define BIN_ATTRIBUTE_LIST struct bin_attribute *
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *timer),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}
#endif

/* TSO: with Accurate ECN, all segments of an skb have the same CWR bit */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 18, 0)
#define NETIF_F_GSO_ACCECN 0
#endif

/* NAPI: the kernel chooses the weight */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0)
#define netif_napi_add(dev, napi, poll) netif_napi_add(dev, napi, poll, NAPI_POLL_WEIGHT)
#define netif_napi_add_tx(dev, napi, poll) netif_tx_napi_add(dev, napi, poll, NAPI_POLL_WEIGHT)
#endif

/* ethtool: the kernel's additional parameters of ring and coalescing callbacks */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 17, 0)
#define RINGPARAM_ARGS	struct net_device *dev, struct ethtool_ringparam *ring, \
			struct kernel_ethtool_ringparam *kernel_ring, \
			struct netlink_ext_ack *extack
#else
#define RINGPARAM_ARGS	struct net_device *dev, struct ethtool_ringparam *ring
#endif
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 15, 0)
#define COALESCE_ARGS	struct net_device *dev, struct ethtool_coalesce *coalesce, \
			struct kernel_ethtool_coalesce *kernel_coalesce, \
			struct netlink_ext_ack *extack
#else
#define COALESCE_ARGS	struct net_device *dev, struct ethtool_coalesce *coalesce
#endif

/* ethtool: time stamps */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
#define kernel_ethtool_ts_info ethtool_ts_info
#endif

/* Time stamps of a NIC: before 6.6, an ioctl sets them */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 6, 0)
#define HWTSTAMP_BY_IOCTL 0
#else
#define HWTSTAMP_BY_IOCTL 1
#define kernel_hwtstamp_config hwtstamp_config
#endif
#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 15, 0)
#define ndo_eth_ioctl ndo_do_ioctl
#endif

/* tc: requests of taprio to the driver, and its questions about the chip */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 4, 0)
#define TAPRIO_BEGINS(offload) ((offload)->cmd == TAPRIO_CMD_REPLACE)
#define TAPRIO_ENDS(offload) ((offload)->cmd == TAPRIO_CMD_DESTROY)
#define TAPRIO_ASKS_FOR_CAPS 1
#else
#define TAPRIO_BEGINS(offload) ((offload)->enable)
#define TAPRIO_ENDS(offload) (!(offload)->enable)
#define TAPRIO_ASKS_FOR_CAPS 0
#endif

/* Build an skb around a buffer of kmalloc(); allocate one from NAPI's cache */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#define slab_build_skb(data) build_skb(data, 0)
#endif
#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 12, 0)
#define napi_build_skb build_skb
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 18, 0)
#define tcp_snd_cwnd(tp) ((tp)->snd_cwnd)
#endif

/* TCP Small Queues: tcp_limit_output_bytes applies to paced sockets */
#define TSQ_CAPS_PACED (LINUX_VERSION_CODE >= KERNEL_VERSION(6, 18, 0))

/* The reason for which an skb was dropped. Before 5.17 the kernel reports none, and a function's
 * name would depend on inlining. Until 5.19 only the tracepoint has the names. Distributions
 * have backported the reasons to older kernels.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 0, 0) || defined(TRACE_SKB_DROP_REASON)
#define HAS_DROP_REASONS 1
#else
#define HAS_DROP_REASONS 0
#endif
#define NO_REASON "NOT_SPECIFIED"
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
static inline const char *drop_reason_name(enum skb_drop_reason reason)
{
	unsigned int subsystem = u32_get_bits(reason, SKB_DROP_REASON_SUBSYS_MASK);
	unsigned int number = reason & ~SKB_DROP_REASON_SUBSYS_MASK;
	const struct drop_reason_list *list;

	if (reason == SKB_DROP_REASON_NOT_SPECIFIED || subsystem >= SKB_DROP_REASON_SUBSYS_NUM)
		return NO_REASON;
	list = rcu_dereference_check(drop_reasons_by_subsys[subsystem], true);
	return list && number < list->n_reasons ? list->reasons[number] ?: NO_REASON : NO_REASON;
}
#elif LINUX_VERSION_CODE >= KERNEL_VERSION(6, 0, 0)
static inline const char *drop_reason_name(enum skb_drop_reason reason)
{
	if (reason == SKB_DROP_REASON_NOT_SPECIFIED || reason >= SKB_DROP_REASON_MAX)
		return NO_REASON;
	return drop_reasons[reason] ?: NO_REASON;
}
#elif defined(TRACE_SKB_DROP_REASON)
#undef EM
#undef EMe
#define EM(number, word) \
	[number] = #word,
#define EMe(number, word)
static inline const char *drop_reason_name(enum skb_drop_reason reason)
{
	static const char *const names[SKB_DROP_REASON_MAX] = { TRACE_SKB_DROP_REASON };

	return reason < SKB_DROP_REASON_MAX ? names[reason] ?: NO_REASON : NO_REASON;
}
#else
#define drop_reason_name(reason) NO_REASON
#endif
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 18, 0)
#define KFREE_SKB_ARGS	void *data, struct sk_buff *skb, void *location, \
			enum skb_drop_reason reason, const struct sock *rx_sk
#elif LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
#define KFREE_SKB_ARGS	void *data, struct sk_buff *skb, void *location, \
			enum skb_drop_reason reason, struct sock *rx_sk
#elif HAS_DROP_REASONS
#define KFREE_SKB_ARGS	void *data, struct sk_buff *skb, void *location, \
			enum skb_drop_reason reason
#else
#define KFREE_SKB_ARGS	void *data, struct sk_buff *skb, void *location
#endif

/* ... a qdisc reports drops by its own tracepoint and frees the skbs with one common reason */
#define QDISC_REPORTS_DROPS (LINUX_VERSION_CODE >= KERNEL_VERSION(7, 0, 0))

/* mac80211: the index of the radio, for wiphys with several radios */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 17, 0)
#define RADIO_CONFIG_ARGS	struct ieee80211_hw *hw, int radio, u32 changed
#define RADIO_RTS_ARGS		struct ieee80211_hw *hw, int radio, u32 value
#else
#define RADIO_CONFIG_ARGS	struct ieee80211_hw *hw, u32 changed
#define RADIO_RTS_ARGS		struct ieee80211_hw *hw, u32 value
#endif

/* ... the callback for stop has an argument: whether the device suspends */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
#define RADIO_STOP_ARGS	struct ieee80211_hw *hw, bool suspend
#else
#define RADIO_STOP_ARGS	struct ieee80211_hw *hw
#endif

/* ... drivers declare that they use no channel contexts */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 9, 0)
#define RADIO_CHANNEL_OPS					\
	.add_chanctx = ieee80211_emulate_add_chanctx,		\
	.remove_chanctx = ieee80211_emulate_remove_chanctx,	\
	.change_chanctx = ieee80211_emulate_change_chanctx,	\
	.switch_vif_chanctx = ieee80211_emulate_switch_vif_chanctx
#else
#define RADIO_CHANNEL_OPS
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 7, 0)
#define ieee80211_tx_status_skb ieee80211_tx_status
#endif

/* ... a status report has the rates of a frame as a list with the tries of each */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 19, 0)
struct radio_reported {
	struct ieee80211_rate_status rate;
};

static inline struct rate_info *radio_rate_status(struct ieee80211_tx_status *status,
						  struct radio_reported *reported)
{
	reported->rate.try_count = 1;
	status->rates = &reported->rate;
	status->n_rates = 1;
	return &reported->rate.rate_idx;
}
#else
struct radio_reported {
	struct rate_info rate;
};

static inline struct rate_info *radio_rate_status(struct ieee80211_tx_status *status,
						  struct radio_reported *reported)
{
	status->rate = &reported->rate;
	return &reported->rate;
}
#endif

/* ... drivers may have their own queues instead of mac80211's TXQs */
#define RADIO_DRIVER_QUEUES (LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0))

/* ... an interface and a station may have several links */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 0, 0)
#define RADIO_CONF_TX_ARGS	struct ieee80211_hw *hw, struct ieee80211_vif *vif, \
				unsigned int link, u16 ac, \
				const struct ieee80211_tx_queue_params *params
#define RADIO_BSS_CHANGED_ARGS	struct ieee80211_hw *hw, struct ieee80211_vif *vif, \
				struct ieee80211_bss_conf *info, u64 changed
#else
#define RADIO_CONF_TX_ARGS	struct ieee80211_hw *hw, struct ieee80211_vif *vif, u16 ac, \
				const struct ieee80211_tx_queue_params *params
#define RADIO_BSS_CHANGED_ARGS	struct ieee80211_hw *hw, struct ieee80211_vif *vif, \
				struct ieee80211_bss_conf *info, u32 changed
#define ieee80211_beacon_get(hw, vif, link) ieee80211_beacon_get(hw, vif)
#endif
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 19, 0)
#define radio_link(sta) (&(sta)->deflink)
#else
#define radio_link(sta) (sta)
#define ieee80211_link_sta ieee80211_sta
#endif

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 9, 0)
#define radio_csa_due(vif) ieee80211_beacon_cntdwn_is_complete(vif, 0)
#define radio_csa_finish(vif) ieee80211_csa_finish(vif, 0)
#else
#define radio_csa_due(vif) ieee80211_beacon_cntdwn_is_complete(vif)
#define radio_csa_finish(vif) ieee80211_csa_finish(vif)
#endif
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 19, 0)
#define radio_csa_active(vif) ((vif)->bss_conf.csa_active)
#else
#define radio_csa_active(vif) ((vif)->csa_active)
#endif

/* Returns whether tc filters see received packets: @dev has an ingress qdisc with filters. */
static inline bool filters_ingress(const struct net_device *dev)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 6, 0)
	return rcu_access_pointer(dev->tcx_ingress);
#else
	return rcu_access_pointer(dev->miniq_ingress);
#endif
}

/* User Mode Linux: system calls of programs stop by ptrace, or since 6.16 by seccomp */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 16, 0)
#define using_seccomp 0
#endif

/* The running task in cpu_tasks. Until 6.13 it is a member of a structure. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
#define CPU_TASKS_CURRENT offsetof(struct cpu_task, task)
#else
#define CPU_TASKS_CURRENT 0
#endif

#endif

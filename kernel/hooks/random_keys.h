/* SPDX-License-Identifier: GPL-2.0-only */
/* Keys of random numbers; see hooks/determinism.toml and drivers/char/hourglass_random_keys.c. */
#ifndef _LINUX_HOURGLASS_RANDOM_KEYS_H
#define _LINUX_HOURGLASS_RANDOM_KEYS_H

#include <linux/list.h>
#include <linux/types.h>
#include <crypto/chacha.h>

struct task_struct;

/* A function of the kernel's start, or of a namespace's, while it runs. */
struct random_scope {
	struct list_head list;
	struct task_struct *task;
	void *function;
	u32 instance;
	bool devices;	/* also the nodes that kdevtmpfs makes meanwhile */
	u8 *key;	/* NULL before the first draw */
	u8 separate_key[CHACHA_KEY_SIZE];
};

void random_scope_enter(struct random_scope *scope, void *function, u32 instance);
void random_scope_leave(struct random_scope *scope);

u8 *random_kernel_key(void);
bool random_key_is_separate(void);
extern u8 random_user_key[CHACHA_KEY_SIZE];

#endif

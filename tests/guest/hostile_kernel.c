// SPDX-License-Identifier: Apache-2.0
/*
 * A congestion control that attacks the host when the guest starts, for tests/guest/test_hostile_kernel.py. The guest's
 * kernel is code of a process of the host, so a `syscall` in it is a system call of that process. Attack 0 makes all
 * calls that fail with an error. Attack 7 makes none: it does from the first namespaces what programs of nodes try.
 * Each of the others is a call that ends the process.
 */
#include <linux/fcntl.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <linux/umh.h>
#include <linux/workqueue.h>
#include <asm/unistd.h>
#include <net/tcp.h>

#define AF_UNIX_STREAM	1, 1, 0
#define ATTACH		16

static int attack;
module_param(attack, int, 0444);

static long call(long number, long a, long b, long c)
{
	register long d asm("r10") = 0;
	long result;

	asm volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(d)
		     : "rcx", "r11", "memory");
	return result;
}

static long open(const char *path, long flags)
{
	return call(__NR_open, (long)path, flags, 0600);
}

static long parent(void)
{
	return call(__NR_getppid, 0, 0, 0);
}

/* Make a call in a new process, which is not the leader of its group. Return its error, or 0. */
static long call_in_child(long number, long a, long b, long c)
{
	long child = call(__NR_fork, 0, 0, 0);
	int status = 0;

	if (!child)
		call(__NR_exit_group, -min(call(number, a, b, c), 0L), 0, 0);
	call(__NR_wait4, child, (long)&status, 0);
	return -(status >> 8 & 0xff);
}

static long execute(const char *path)
{
	const char *argv[] = { path, NULL };

	return call_in_child(__NR_execve, (long)path, (long)argv, (long)(argv + 1));
}

static void tell(const char *what, long result)
{
	pr_err("attack %s: %ld\n", what, min(result, 0L));
}

static void all_that_fail(void)
{
	tell("own", open("own", O_CREAT | O_RDWR));
	tell("read", open("../secret", O_RDONLY));
	tell("list", open("..", O_RDONLY | O_DIRECTORY));
	tell("write", open("../secret", O_WRONLY));
	tell("create", open("../new", O_CREAT | O_WRONLY));
	tell("mkdir", call(__NR_mkdir, (long)"../folder", 0700, 0));
	tell("unlink", call(__NR_unlink, (long)"../victim", 0, 0));
	tell("chmod", call(__NR_chmod, (long)"../secret", 0666, 0));
	tell("symlink", call(__NR_symlink, (long)"../secret", (long)"run.json", 0));
	tell("passwd", open("/etc/passwd", O_RDONLY));
	tell("exec", execute("/bin/true"));
	tell("session", call_in_child(__NR_setsid, 0, 0, 0));
	tell("process-group", call_in_child(__NR_setpgid, 0, 0, 0));
	tell("signal", call(__NR_kill, parent(), 0, 0));
}

static long one_that_kills(int number)
{
	switch (number) {
	case 1:
		return call(__NR_socket, AF_UNIX_STREAM);
	case 2:
		return call(__NR_unshare, CLONE_NEWUSER, 0, 0);
	case 3:
		return call(__NR_ptrace, ATTACH, parent(), 0);
	case 4:
		return call(__NR_io_uring_setup, 1, 0, 0);
	case 6:
		return call(__NR_ftruncate, open("own", O_CREAT | O_RDWR), 1L << 44, 0);
	default:
		return call(__NR_bpf, 0, 0, 0);
	}
}

static void tell_mount(const char *what, const char *kind, char *options)
{
	tell(what, PTR_ERR_OR_ZERO(vfs_kern_mount(get_fs_type(kind), 0, "none", options)));
}

static int note_helper(struct subprocess_info *info, struct cred *new)
{
	tell("helper", 0);
	return -EPERM;
}

/* After the agent has mounted hostfs. */
static void second_layers(struct work_struct *work)
{
	static char *argv[] = { "/init", NULL }, *envp[] = { NULL };

	tell_mount("hostfs-again", "hostfs", NULL);
	tell_mount("cgroup", "cgroup", "none,name=x");
	tell_mount("cgroup-controller", "cgroup", "pids");
	call_usermodehelper_exec(call_usermodehelper_setup(argv[0], argv, envp, GFP_KERNEL, note_helper, NULL, NULL),
				 UMH_WAIT_EXEC);
}
static DECLARE_DELAYED_WORK(later, second_layers);

static u32 plain_ssthresh(struct sock *sk)
{
	return max(tcp_snd_cwnd(tcp_sk(sk)) >> 1U, 2U);
}

static struct tcp_congestion_ops hostile __read_mostly = {
	.ssthresh	= plain_ssthresh,
	.cong_avoid	= tcp_reno_cong_avoid,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.owner		= THIS_MODULE,
	.name		= "hostile",
};

static int __init hostile_register(void)
{
	if (attack == 7) {
		tell_mount("hostfs-option", "hostfs", "/..");
		schedule_delayed_work(&later, HZ / 2);
	} else if (attack) {
		tell("kill", one_that_kills(attack));
	} else {
		all_that_fail();
	}
	return tcp_register_congestion_control(&hostile);
}
module_init(hostile_register);
MODULE_LICENSE("GPL");

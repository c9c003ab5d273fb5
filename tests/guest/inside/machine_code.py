# SPDX-License-Identifier: Apache-2.0
"""Attempts to make a system call that User Mode Linux does not see, so that the host executes it (attempts.py). The
call is uname: the host's kernel would return the host's name."""

import ctypes
import itertools
import mmap
import os
import signal
import struct

from attempts import LIBC, attempt, call

CODE = 0x10000000
"""Addresses of the machine code: below 4 GiB, so that 32-bit code reaches it."""
BUFFER = CODE + 0x1000
UNAME, UNAME_32 = 63, 122
TRACEME, PEEKUSER, POKEUSER, CONT, SINGLESTEP, GETREGS, SETREGS, SYSCALL = 0, 3, 6, 7, 9, 12, 13, 24
OFFSET_CS, OFFSET_ORIG_RAX, OFFSET_RDI = 17 * 8, 15 * 8, 14 * 8
SIZE_OF_USER = 928
STUB_PAGES = [*range(0x7FC0000000, 0x7FC0004000, 0x1000), *range(0x7FFFFFFBF000, 0x7FFFFFFFF000, 0x1000)]
"""Addresses of the pages by which a kernel changes a process: up to 6.12, and later."""


def put_code(code: bytes) -> None:
    """Map `code` and a buffer at fixed addresses."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x10
    call(9, CODE, 0x2000, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC, flags, -1, 0)
    ctypes.memmove(CODE, code, len(code))


def execute(code: bytes) -> None:
    put_code(code)
    ctypes.CFUNCTYPE(ctypes.c_long)(CODE)()


def stranger() -> str | None:
    """Return the host's name if the buffer has a name that is not the node's."""
    names = ctypes.string_at(BUFFER, 6 * 65)
    host = names[65:130].rstrip(b"\0").split(b"\0")[0].decode("latin1")
    return f"a kernel answers as {host}" if host not in ("", os.uname().nodename) else None


def uname(number: int = UNAME) -> bytes:
    """Return code that calls uname by `syscall`."""
    return b"\x48\xc7\xc0" + struct.pack("<I", number) + b"\x48\xc7\xc7" + struct.pack("<I", BUFFER) + b"\x0f\x05\xc3"


INT80 = b"\xb8" + struct.pack("<I", UNAME_32) + b"\xbb" + struct.pack("<I", BUFFER) + b"\xcd\x80"


@attempt
def calls_by_interrupt() -> str | None:
    """Call int 0x80 with the 32-bit numbers."""
    execute(b"\x53" + INT80 + b"\x5b\xc3")
    return stranger()


@attempt
def calls_in_the_mode_of_32_bits() -> str | None:
    """Jump to the 32-bit segment, call int 0x80, and return."""
    start, end = CODE + 0x80, CODE + 0x100
    enter = b"\x53\x6a\x23\x68" + struct.pack("<I", start) + b"\x48\xcb"
    narrow = INT80 + b"\xea" + struct.pack("<IH", end, 0x33)
    execute(enter.ljust(0x80, b"\x90") + narrow.ljust(0x80, b"\x90") + b"\x5b\xc3")
    return stranger()


@attempt
def calls_of_the_x32_abi() -> str | None:
    execute(uname(0x40000000 | UNAME))
    return stranger()


@attempt
def calls_by_sysenter() -> str | None:
    execute(b"\xb8" + struct.pack("<I", UNAME_32) + b"\xbb" + struct.pack("<I", BUFFER) + b"\x0f\x34\xc3")
    return stranger()


def traced(code: bytes) -> int:
    """Start a process that stops, executes `code` and ends with 1 if another kernel answered. Return its number."""
    child = os.fork()
    if child == 0:
        put_code(code)
        LIBC.ptrace(TRACEME, 0, 0, 0)
        os.kill(os.getpid(), signal.SIGSTOP)
        ctypes.CFUNCTYPE(ctypes.c_long)(CODE)()
        os._exit(1 if stranger() else 0)
    os.waitpid(child, 0)
    return child


def trace(request: int, child: int, address: int = 0, data: object = 0) -> int:
    return call(101, request, child, address, data)


def user_word(child: int, offset: int) -> int:
    word = ctypes.c_uint64()
    trace(PEEKUSER, child, offset, ctypes.byref(word))
    return word.value


def next_status(request: int, child: int) -> int:
    """Let a traced process continue to its next stop or its end, and return its status."""
    trace(request, child)
    return os.waitpid(child, 0)[1]


def verdict(status: int) -> str | None:
    """Return the evidence in the end of a traced process."""
    return "another kernel answered the traced process" if status == 1 << 8 else None


def end_of(child: int) -> str | None:
    """Let a traced process continue to its end."""
    while os.WIFSTOPPED(status := next_status(CONT, child)):
        pass
    return verdict(status)


@attempt
def calls_in_single_steps() -> str | None:
    child = traced(uname())
    for _ in range(3000):
        if not os.WIFSTOPPED(status := next_status(SINGLESTEP, child)):
            return verdict(status)
    return end_of(child)


@attempt
def another_call_at_the_entry() -> str | None:
    """The tracer changes the number while User Mode Linux executes the call, at its entry and at its end."""
    child = traced(uname(39))  # getpid
    for _ in range(400):
        if not os.WIFSTOPPED(status := next_status(SYSCALL, child)):
            return verdict(status)
        if user_word(child, OFFSET_ORIG_RAX) == 39:
            trace(POKEUSER, child, OFFSET_ORIG_RAX, UNAME)
    return end_of(child)


@attempt
def registers_beyond_their_end() -> str | None:
    """The kernel has to refuse these offsets."""
    child = traced(uname())
    for offset in (-8, -(2**40), SIZE_OF_USER, SIZE_OF_USER + 8, 2**20, 2**47, 2**63 - 8, 3):
        for request in (PEEKUSER, POKEUSER):
            word = ctypes.c_uint64()
            try:
                trace(request, child, offset, ctypes.byref(word) if request == PEEKUSER else 0)
            except OSError:
                continue
            if request == POKEUSER or word.value:
                return f"offset {offset} of the registers is {word.value:#x}"
    return end_of(child)


@attempt
def segments_of_the_kernel() -> str | None:
    child = traced(uname())
    for segment in (0x08, 0x10, 0x18, 0xFFF8):
        try:
            trace(POKEUSER, child, OFFSET_CS, segment)
        except OSError:
            continue
        if user_word(child, OFFSET_CS) == segment:
            return f"the code segment is {segment:#x}"
    return end_of(child)


@attempt
def an_instruction_pointer_of_the_kernel() -> str | None:
    """A process that begins in the memory of the guest's kernel is killed."""
    child = traced(uname())
    registers = ctypes.create_string_buffer(27 * 8)
    trace(GETREGS, child, 0, registers)
    for address in (0x60000000, 0xFFFFFFFFFF600000, 0x7FFFFFFFF000, 2**63):
        struct.pack_into("Q", registers, 16 * 8, address)
        trace(SETREGS, child, 0, registers)
    status = next_status(CONT, child)
    os.kill(child, signal.SIGKILL)
    return None if os.WIFSTOPPED(status) or os.WIFSIGNALED(status) else "it runs"


def overwritten(page: int) -> bool:
    """Write to a page in another process, then change the memory of that process."""
    if (child := os.fork()) == 0:
        ctypes.memset(page, 0xCC, 4096)
        mmap.mmap(-1, 1 << 16).write(b"x" * 4096)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


@attempt
def the_pages_of_user_mode_linux() -> str | None:
    """Each process has pages by which the kernel changes its memory. A process that writes them hurts only itself."""
    pages = [page for page in STUB_PAGES if overwritten(page)]
    changes = {10: (4096, 7), 11: (4096,), 9: (4096, 7, 0x32, -1, 0)}  # mprotect, munmap, mmap
    for page, (number, arguments) in itertools.product(pages, changes.items()):
        try:
            call(number, page, *arguments)
        except OSError:
            continue
        return f"the page at {page:#x} belongs to the program"
    return None

// SPDX-License-Identifier: Apache-2.0
//! The system calls that no safe wrapper offers. All `unsafe` of the agent is in this file, in `mailbox.rs`,
//! `container_channel.rs` and `self_check.rs`.

use std::ffi::CString;
use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::ptr;
use std::sync::{Mutex, OnceLock, PoisonError};

use nix::errno::Errno;
use nix::mount::{mount, MsFlags};
use nix::sys::mman::{mmap_anonymous, MapFlags, ProtFlags};
use nix::unistd::{ForkResult, Pid};

/// The maximum number of bytes that one system call sends or discards, so that bulk data need few system calls.
const CHUNK_BYTES: usize = 1 << 20;
const CHUNK_COUNT: usize = 1024;
/// The bytes that an application reads in one system call: netperf's length, the default of `tcp_rmem`.
const READ_BYTES: usize = 128 << 10;

fn check(result: libc::c_int) -> Result<libc::c_int> {
    if result < 0 {
        Err(Error::last_os_error())
    } else {
        Ok(result)
    }
}

fn check_size(result: libc::ssize_t) -> Result<usize> {
    usize::try_from(result).map_err(|_| Error::last_os_error())
}

/// Does nothing without glibc.
#[cfg(not(target_env = "gnu"))]
pub fn keep_freed_memory() {}

/// If page faults are expensive, freed memory is cached instead of returned, and all threads share one heap.
#[cfg(target_env = "gnu")]
pub fn keep_freed_memory() {
    const FOREVER: libc::c_int = 1 << 30;
    // SAFETY: mallopt only sets numbers in the allocator; no other thread runs yet.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
        libc::mallopt(libc::M_MMAP_THRESHOLD, FOREVER);
        libc::mallopt(libc::M_TRIM_THRESHOLD, FOREVER);
        libc::mallopt(libc::M_TOP_PAD, 1 << 20);
    }
}

/// Extends the heap by a number of bytes and maps their pages, so that they cause no page faults one by one.
pub fn grow_heap(bytes: usize) {
    let memory = Vec::<u8>::with_capacity(bytes);
    // SAFETY: the range belongs to the vector. mlock only maps its pages; nothing reads or writes their content.
    unsafe {
        libc::mlock(memory.as_ptr().cast(), bytes);
        libc::munlock(memory.as_ptr().cast(), bytes);
    }
}

/// Returns zeroed memory that is never freed. Pages are allocated at first use, without a fault if the kernel writes.
pub fn pages(bytes: usize) -> Result<&'static mut [u8]> {
    let start = map(bytes, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, MapFlags::empty())?;
    // SAFETY: the mapping is as long, is never unmapped, and nothing else refers to it.
    Ok(unsafe { std::slice::from_raw_parts_mut(start as *mut u8, bytes) })
}

/// Returns the address of new private memory, which is never unmapped.
fn map(bytes: usize, protection: ProtFlags, extra_flags: MapFlags) -> Result<usize> {
    let length = bytes.try_into().map_err(|_| Error::from(ErrorKind::InvalidInput))?;
    // SAFETY: a new private mapping at an address of the kernel's choice; nothing else refers to it.
    let start = unsafe { mmap_anonymous(None, length, protection, MapFlags::MAP_PRIVATE | extra_flags) }?;
    Ok(start.as_ptr() as usize)
}

/// Raises the limit of open files for the sockets of many flows, to the desired or at least to the permitted number.
pub fn raise_file_limit() {
    let mut limit = libc::rlimit { rlim_cur: 1 << 16, rlim_max: 1 << 16 };
    // SAFETY: the pointers are to a live value.
    unsafe {
        if libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) < 0 {
            libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}

fn scheduling(priority: libc::c_int) -> libc::sched_param {
    // SAFETY: all zeros are valid parameters; some C libraries have more of them.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = priority;
    parameters
}

/// Sets the lowest priority for the calling thread: it runs only when all others sleep, so it does not affect them.
pub fn set_idle_priority() {
    let parameters = scheduling(0);
    // SAFETY: the pointer is to a live value; the call changes only the scheduling of this thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) };
}

/// Sets real-time priority for the calling thread only; without the privilege its priority does not change. Its sleeps
/// end on time, not up to `timer_slack_ns` (50 µs) late, and its actions at an instant precede those of threads that it
/// wakes.
pub fn set_realtime_priority() {
    let parameters = scheduling(1);
    // SAFETY: the pointer is to a live value; the call changes only the scheduling of this thread.
    unsafe {
        libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &raw const parameters)
    };
}

/// The stack of a thread of `start_thread`: the minimum of C libraries, which use some 3 KB of it themselves.
const STACK_BYTES: usize = 16 << 10;
/// The number of stacks in one mapping.
const STACK_COUNT: usize = 16;

/// Starts a permanent thread that does little except call the kernel. Thousands of them may exist. Its stack is a part
/// of memory that is mapped for many threads, with its pages, and never freed. It has no guard page. [`std::thread`]
/// would make three times as many system calls.
pub fn start_thread(body: impl FnOnce() + Send + 'static) -> Result<()> {
    type Body = Box<dyn FnOnce() + Send>;

    extern "C" fn run(body: *mut libc::c_void) -> *mut libc::c_void {
        // SAFETY: the pointer is that of the box below, and this runs once.
        let body = unsafe { Box::from_raw(body.cast::<Body>()) };
        body();
        ptr::null_mut()
    }

    static FREE: Mutex<(usize, usize)> = Mutex::new((0, 0));
    let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
    let (stack, remaining) = &mut *free;
    if *remaining == 0 {
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        *stack = map(STACK_COUNT * STACK_BYTES, protection, MapFlags::MAP_POPULATE)?;
        *remaining = STACK_COUNT;
    }
    let body = Box::into_raw(Box::new(Box::new(body) as Body));
    // SAFETY: init fills the zeros before their use. The stack is never unmapped and belongs to this thread only.
    let error = unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        let mut thread: libc::pthread_t = std::mem::zeroed();
        let steps = [
            libc::pthread_attr_init(&raw mut attributes),
            libc::pthread_attr_setstack(&raw mut attributes, *stack as *mut libc::c_void, STACK_BYTES),
            libc::pthread_attr_setdetachstate(&raw mut attributes, libc::PTHREAD_CREATE_DETACHED),
            libc::pthread_create(&raw mut thread, &raw const attributes, run, body.cast()),
        ];
        libc::pthread_attr_destroy(&raw mut attributes);
        steps.into_iter().find(|error| *error != 0)
    };
    match error {
        None => {
            *stack += STACK_BYTES;
            *remaining -= 1;
            Ok(())
        }
        Some(error) => {
            // SAFETY: no thread was started, so nothing else owns the box.
            drop(unsafe { Box::from_raw(body) });
            Err(Error::from_raw_os_error(error))
        }
    }
}

/// Forks this process. Refused if the process has other threads, since the copy would have their locks.
pub fn fork() -> Result<ForkResult> {
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(Error::other("a process with several threads cannot be forked"));
    }
    // SAFETY: there is no other thread, so no lock is held that the copy could wait for.
    Ok(unsafe { nix::unistd::fork() }?)
}

/// Mounts a file system; the error names it.
pub fn attach(kind: &str, at: &Path, flags: MsFlags, options: Option<&str>) -> Result<()> {
    mount(Some("none"), at, Some(kind), flags, options)
        .map_err(|error| Error::other(format!("mounting {kind} on {}: {}", at.display(), error.desc())))
}

/// Returns the number of a process in its innermost namespace.
pub fn inner_pid(pid: Pid) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("NSpid:"))?.split_whitespace().last()?.parse().ok()
}

/// Ends a copy of the agent without flushing or reporting anything.
pub fn exit_at_once() -> ! {
    // SAFETY: ends the process.
    unsafe { libc::_exit(1) }
}

/// Ends the process at once with an exit status.
pub fn exit(status: i32) -> ! {
    // SAFETY: ends the process.
    unsafe { libc::_exit(status) }
}

/// Returns a file that becomes readable when the process has ended.
pub fn process_file(process: Pid) -> Result<OwnedFd> {
    // SAFETY: plain integers.
    owned_fd(unsafe { libc::syscall(libc::SYS_pidfd_open, process.as_raw(), 0) })
}

/// Ignores signals by which a user, a terminal or a closed pipe would end the calling process.
pub fn ignore_signals() {
    const SENT: [libc::c_int; 9] = [
        libc::SIGHUP,
        libc::SIGINT,
        libc::SIGQUIT,
        libc::SIGTERM,
        libc::SIGPIPE,
        libc::SIGUSR1,
        libc::SIGUSR2,
        libc::SIGALRM,
        libc::SIGTSTP,
    ];
    for signal in SENT {
        // SAFETY: no handler is installed.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Waits until a child process has ended.
pub fn wait(child: Pid) -> Result<()> {
    loop {
        match nix::sys::wait::waitpid(child, None) {
            Err(Errno::EINTR) => {}
            result => return Ok(result.map(drop)?),
        }
    }
}

/// A child that ended: its exit status, or the signal that killed it.
pub struct EndedChild {
    pub pid: Pid,
    pub exit: Option<u8>,
    pub signal: Option<u8>,
}

/// Reaps a child that has ended, if one exists. Its signal may be a real-time signal, for which `nix` has no name.
pub fn ended_child() -> Result<Option<EndedChild>> {
    let mut status = 0;
    // SAFETY: the pointer is to a live value.
    let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
    match pid {
        0 => Ok(None),
        1.. => {
            let exit = libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status).to_le_bytes()[0]);
            let signal = libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status).to_le_bytes()[0]);
            Ok(Some(EndedChild { pid: Pid::from_raw(pid), exit, signal }))
        }
        _ => match Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::ECHILD) => Ok(None),
            error => Err(error),
        },
    }
}

/// Resets a copy of the agent's process as a login would: default signals, usual limits, no withheld capabilities.
/// Until it executes another program, no process can trace it: it has the agent's files.
pub fn reset_process(withheld: &[libc::c_ulong]) -> Result<()> {
    const USUAL_FILES: libc::rlim_t = 1024;
    // SAFETY: plain integers.
    check(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) })?;
    for capability in withheld {
        // SAFETY: plain integers.
        check(unsafe { libc::prctl(libc::PR_CAPBSET_DROP, *capability, 0, 0, 0) })?;
    }
    let limit = libc::rlimit { rlim_cur: USUAL_FILES, rlim_max: 1 << 16 };
    // SAFETY: the pointers are to live values; the new program sets its handlers.
    unsafe {
        check(libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit))?;
        for signal in 1..32 {
            libc::signal(signal, libc::SIG_DFL); // fails for KILL and STOP
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        check(libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut()))?;
    }
    Ok(())
}

/// Makes stdin the terminal of the calling process's session, which leads it and has none yet.
pub fn take_terminal() -> Result<()> {
    // SAFETY: no pointer is passed.
    check(unsafe { libc::ioctl(libc::STDIN_FILENO, libc::TIOCSCTTY, 0) }).map(drop)
}

/// Writes dirty pages to the file system below, without the flush of the disk's cache that `fsync` adds.
pub fn write_back(file: &File) -> Result<()> {
    let all =
        libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: plain integers and an open descriptor.
    check(unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, all) }).map(drop)
}

pub fn set_option<T: Copy>(fd: BorrowedFd, level: libc::c_int, name: libc::c_int, value: T) -> Result<()> {
    let length = libc::socklen_t::try_from(size_of::<T>()).expect("options are small");
    // SAFETY: pointer and length are those of `value`, which outlives the call.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, (&raw const value).cast(), length) })
        .map(drop)
}

/// Ends a TCP connection at once: queued data are dropped, a RST is sent, and blocked calls of threads fail.
/// (`connect` to no address; `close` would not wake them and `shutdown` would send a FIN first.)
pub fn abort(fd: BorrowedFd) -> Result<()> {
    let nowhere = libc::sockaddr {
        sa_family: libc::sa_family_t::try_from(libc::AF_UNSPEC).expect("is 0"),
        sa_data: [0; 14],
    };
    let length = libc::socklen_t::try_from(size_of::<libc::sockaddr>()).expect("is 16");
    // SAFETY: pointer and length are those of `nowhere`, which outlives the call.
    check(unsafe { libc::connect(fd.as_raw_fd(), &raw const nowhere, length) }).map(drop)
}

/// Zeros to send. Nothing writes to them, so the kernel maps all of them to one page, which stays in the CPU's cache.
pub struct Zeros {
    start: usize,
    /// The same chunk many times: 16 KB, shared by all threads that send without end.
    chunks: OnceLock<Chunks>,
}

struct Chunks(Vec<libc::iovec>);

// SAFETY: only the kernel reads the memory that they point to, and it is never unmapped.
unsafe impl Send for Chunks {}
// SAFETY: as above.
unsafe impl Sync for Chunks {}

impl Zeros {
    pub fn new() -> Result<Self> {
        let start = map(CHUNK_BYTES, ProtFlags::PROT_READ, MapFlags::empty())?;
        Ok(Self { start, chunks: OnceLock::new() })
    }

    /// Sends `bytes` bytes.
    pub fn send(&self, fd: BorrowedFd, bytes: u64) -> Result<()> {
        let mut remaining = usize::try_from(bytes).map_err(|_| Error::from(ErrorKind::InvalidInput))?;
        while remaining > 0 {
            let start = self.start as *const libc::c_void;
            // SAFETY: at most the whole mapping, which is never unmapped; send only reads it.
            let sent =
                unsafe { libc::send(fd.as_raw_fd(), start, remaining.min(CHUNK_BYTES), libc::MSG_NOSIGNAL) };
            remaining -= check_size(sent)?;
        }
        Ok(())
    }

    /// Sends until the connection ends. The error is the cause of its end.
    pub fn send_forever(&self, fd: BorrowedFd) -> Result<()> {
        let chunk = libc::iovec { iov_base: self.start as *mut libc::c_void, iov_len: CHUNK_BYTES };
        let chunks = &self.chunks.get_or_init(|| Chunks(vec![chunk; CHUNK_COUNT])).0;
        let count = libc::c_int::try_from(CHUNK_COUNT).expect("is 1024");
        loop {
            // SAFETY: every element is the mapping, which is never unmapped, and writev only reads it.
            check_size(unsafe { libc::writev(fd.as_raw_fd(), chunks.as_ptr(), count) })?;
        }
    }
}

/// Receives at most `limit` bytes of TCP data and discards them inside the kernel. The end of the connection is an
/// error.
pub fn discard(fd: BorrowedFd, limit: u64) -> Result<u64> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX).min(CHUNK_BYTES * CHUNK_COUNT);
    // SAFETY: with MSG_TRUNC, TCP drops the data and does not write to the buffer.
    let received =
        unsafe { libc::recv(fd.as_raw_fd(), ptr::null_mut(), limit, libc::MSG_TRUNC | libc::MSG_WAITALL) };
    match check_size(received)? {
        0 => Err(ErrorKind::UnexpectedEof.into()),
        received => Ok(u64::try_from(received).expect("is at most 1 GiB")),
    }
}

/// Discards exactly `bytes` bytes.
pub fn discard_all(fd: BorrowedFd, bytes: u64) -> Result<()> {
    let mut remaining = bytes;
    while remaining > 0 {
        remaining -= discard(fd, remaining)?;
    }
    Ok(())
}

/// Receives until the connection ends, part by part, as an application does.
pub fn read_forever(fd: BorrowedFd) -> Result<()> {
    let mut chunk = vec![0; READ_BYTES];
    while nix::unistd::read(fd, &mut chunk)? > 0 {}
    Ok(())
}

/// Receives and discards inside the kernel until the connection ends.
pub fn discard_forever(fd: BorrowedFd) -> Result<()> {
    let flags = libc::MSG_TRUNC | libc::MSG_WAITALL;
    loop {
        // SAFETY: with MSG_TRUNC, TCP drops the data and does not write to the buffer.
        let received =
            unsafe { libc::recv(fd.as_raw_fd(), ptr::null_mut(), CHUNK_BYTES * CHUNK_COUNT, flags) };
        if check_size(received)? == 0 {
            return Ok(());
        }
    }
}

/// Receives up to two datagrams in one call: waits for the first, takes the second if it has arrived. Returns their
/// lengths.
pub fn receive_two(fd: BorrowedFd, buffers: &mut [&mut [u8]; 2]) -> Result<[usize; 2]> {
    let mut parts = buffers
        .each_mut()
        .map(|buffer| libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() });
    let mut headers = parts.each_mut().map(|part| {
        // SAFETY: zeros are a valid msghdr: no name, no control data.
        let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
        header.msg_hdr.msg_iov = part;
        header.msg_hdr.msg_iovlen = 1;
        header
    });
    // SAFETY: two headers, each with one part that is a live buffer of that length.
    let received = unsafe {
        libc::recvmmsg(fd.as_raw_fd(), headers.as_mut_ptr(), 2, libc::MSG_WAITFORONE as _, ptr::null_mut())
    };
    let received = usize::try_from(check(received)?).expect("is not negative");
    let mut lengths = [0; 2];
    for (length, header) in lengths.iter_mut().zip(&headers[..received]) {
        *length = usize::try_from(header.msg_len).expect("fits");
    }
    Ok(lengths)
}

pub fn accept(listener: BorrowedFd) -> Result<OwnedFd> {
    let none = ptr::null_mut();
    // SAFETY: the peer's address is not requested.
    let fd = unsafe { libc::accept4(listener.as_raw_fd(), none, none.cast(), libc::SOCK_CLOEXEC) };
    owned_fd(fd.into())
}

/// Mounts sysfs without a path. The mount shows the network namespace of the calling thread and vanishes with the
/// descriptor. The descriptor is a directory from which paths can be opened.
pub fn mount_detached_sysfs() -> Result<OwnedFd> {
    const FSOPEN_CLOEXEC: libc::c_long = 1;
    const FSMOUNT_CLOEXEC: libc::c_long = 1;
    const FSCONFIG_CMD_CREATE: libc::c_long = 6;
    let none = ptr::null::<libc::c_void>();
    // SAFETY: the name is a C string; the numbers are those of fsopen(2).
    let context = owned_fd(unsafe { libc::syscall(libc::SYS_fsopen, c"sysfs".as_ptr(), FSOPEN_CLOEXEC) })?;
    let raw = context.as_raw_fd();
    // SAFETY: FSCONFIG_CMD_CREATE takes no key, no value and no number.
    let created = unsafe { libc::syscall(libc::SYS_fsconfig, raw, FSCONFIG_CMD_CREATE, none, none, 0) };
    if created < 0 {
        return Err(Error::last_os_error());
    }
    // SAFETY: a configured context, no attributes.
    owned_fd(unsafe { libc::syscall(libc::SYS_fsmount, raw, FSMOUNT_CLOEXEC, 0) })
}

fn owned_fd(result: libc::c_long) -> Result<OwnedFd> {
    match libc::c_int::try_from(result) {
        // SAFETY: the kernel just returned this descriptor, so nothing else owns it.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(Error::last_os_error()),
    }
}

/// Executes an ioctl on the network device `name`: `setup` fills the request, `read` reads the kernel's answer.
fn interface_ioctl(
    control: BorrowedFd,
    name: &str,
    request: libc::Ioctl,
    content: libc::__c_anonymous_ifr_ifru,
) -> Result<()> {
    let text = CString::new(name)?;
    let mut ifreq = libc::ifreq { ifr_name: [0; libc::IFNAMSIZ], ifr_ifru: content };
    let bytes = text.as_bytes_with_nul();
    if bytes.len() > ifreq.ifr_name.len() {
        return Err(Errno::ENODEV.into());
    }
    for (to, from) in ifreq.ifr_name.iter_mut().zip(bytes) {
        *to = libc::c_char::from_ne_bytes([*from]);
    }
    // SAFETY: every request used here takes a `struct ifreq`, whose content the caller made valid.
    check(unsafe { libc::ioctl(control.as_raw_fd(), request, &raw mut ifreq) }).map(drop)
}

pub fn set_up(control: BorrowedFd, device: &str) -> Result<()> {
    let flags = libc::c_short::try_from(libc::IFF_UP | libc::IFF_RUNNING).expect("is 0x41");
    let content = libc::__c_anonymous_ifr_ifru { ifru_flags: flags };
    interface_ioctl(control, device, libc::SIOCSIFFLAGS as libc::Ioctl, content)
}

/// Executes an ethtool command. `buffer` has its structure, and must be as large as the kernel's answer.
pub fn ethtool(control: BorrowedFd, device: &str, buffer: &mut [u64]) -> Result<()> {
    const SIOCETHTOOL: libc::Ioctl = 0x8946;
    let content = libc::__c_anonymous_ifr_ifru { ifru_data: buffer.as_mut_ptr().cast() };
    interface_ioctl(control, device, SIOCETHTOOL, content)
}

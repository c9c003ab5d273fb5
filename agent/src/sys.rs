// SPDX-License-Identifier: Apache-2.0
//! The system calls that no safe wrapper offers. All `unsafe` of the agent is in this file, in `mailbox.rs` and in
//! `room_post.rs`.

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

/// What one system call sends or discards at most: large, so that bulk data costs hardly any system calls.
const CHUNK: usize = 1 << 20;
const CHUNKS: usize = 1024;
/// What an application takes in one system call: netperf's length, the default of `tcp_rmem`.
const TAKEN: usize = 128 << 10;

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

/// Where page faults are dear, freed memory is kept and not given back, and there is one heap for all threads. That is where
/// the C library is glibc.
#[cfg(not(target_env = "gnu"))]
pub fn keep_freed_memory() {}

/// Where page faults are dear, freed memory is kept and not given back, and there is one heap for all threads.
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

/// Gives the heap so many bytes more, whose pages it has: where page faults are dear, one is enough for all that are there.
pub fn grow_heap(bytes: usize) {
    let room = Vec::<u8>::with_capacity(bytes);
    // SAFETY: the range is that of the vector, of which nothing is read or written; mlock has the kernel make its pages.
    unsafe {
        libc::mlock(room.as_ptr().cast(), bytes);
        libc::munlock(room.as_ptr().cast(), bytes);
    }
}

/// Zeros to write to, for good: each page is made when it is first used. Where the kernel is the one to write, without a
/// fault.
pub fn pages(bytes: usize) -> Result<&'static mut [u8]> {
    let start = map(bytes, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, MapFlags::empty())?;
    // SAFETY: the mapping is as long, is never unmapped, and nothing else refers to it.
    Ok(unsafe { std::slice::from_raw_parts_mut(start as *mut u8, bytes) })
}

/// The address of new private memory, for good: nobody unmaps it.
fn map(bytes: usize, protection: ProtFlags, further: MapFlags) -> Result<usize> {
    let length = bytes.try_into().map_err(|_| Error::from(ErrorKind::InvalidInput))?;
    // SAFETY: a new private mapping at an address of the kernel's choice; nothing else refers to it.
    let start = unsafe { mmap_anonymous(None, length, protection, MapFlags::MAP_PRIVATE | further) }?;
    Ok(start.as_ptr() as usize)
}

/// Room for the sockets of many flows: what we would like, or else what we may. Too little shows when they are opened.
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

/// The lowest priority for the calling thread: it runs when all others sleep, and so changes nothing for them.
pub fn become_last() {
    let parameters = scheduling(0);
    // SAFETY: the pointer is to a live value; the call changes only the scheduling of this thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) };
}

/// Real-time priority for the calling thread. Sleeps of an ordinary thread end up to `timer_slack_ns` (50 µs) late,
/// those of a real-time thread on the dot, and what it does at an instant comes before what it wakes.
/// Threads made later have to ask for themselves; without the privilege it stays an ordinary thread.
pub fn become_exact() {
    let parameters = scheduling(1);
    // SAFETY: the pointer is to a live value; the call changes only the scheduling of this thread.
    unsafe {
        libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &raw const parameters)
    };
}

/// What a thread of `start_thread` has: C libraries demand no less, and keep some 3 KB of it for themselves.
const STACK: usize = 16 << 10;
/// How many stacks are mapped at once.
const STACKS: usize = 16;

/// A thread that does little but call the kernel, of which there may be thousands, for good: its stack comes from memory
/// that is mapped for many, with its pages, and is not given back; nothing guards its end. One by
/// [`std::thread`] asks the kernel for three times as much.
pub fn start_thread(body: impl FnOnce() + Send + 'static) -> Result<()> {
    type Body = Box<dyn FnOnce() + Send>;

    extern "C" fn run(body: *mut libc::c_void) -> *mut libc::c_void {
        // SAFETY: the pointer is that of the box below, and comes here once.
        let body = unsafe { Box::from_raw(body.cast::<Body>()) };
        body();
        ptr::null_mut()
    }

    static FREE: Mutex<(usize, usize)> = Mutex::new((0, 0));
    let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
    let (place, left) = &mut *free;
    if *left == 0 {
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        *place = map(STACKS * STACK, protection, MapFlags::MAP_POPULATE)?;
        *left = STACKS;
    }
    let body = Box::into_raw(Box::new(Box::new(body) as Body));
    // SAFETY: all zeros are memory like any other, and init fills it; the others get it as that left it. The stack is part
    // of a mapping that is never unmapped, and of no other thread.
    let error = unsafe {
        let mut about: libc::pthread_attr_t = std::mem::zeroed();
        let mut thread: libc::pthread_t = std::mem::zeroed();
        let steps = [
            libc::pthread_attr_init(&raw mut about),
            libc::pthread_attr_setstack(&raw mut about, *place as *mut libc::c_void, STACK),
            libc::pthread_attr_setdetachstate(&raw mut about, libc::PTHREAD_CREATE_DETACHED),
            libc::pthread_create(&raw mut thread, &raw const about, run, body.cast()),
        ];
        libc::pthread_attr_destroy(&raw mut about);
        steps.into_iter().find(|error| *error != 0)
    };
    match error {
        None => {
            *place += STACK;
            *left -= 1;
            Ok(())
        }
        Some(error) => {
            // SAFETY: no thread has come to have it.
            drop(unsafe { Box::from_raw(body) });
            Err(Error::from_raw_os_error(error))
        }
    }
}

/// A copy of this process. Refused where the process has more than this one thread, whose locks the copy would have.
pub fn fork() -> Result<ForkResult> {
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(Error::other("a process with several threads is not copied"));
    }
    // SAFETY: there is no other thread, so no lock is held that the copy could wait for.
    Ok(unsafe { nix::unistd::fork() }?)
}

/// Mounts, and names what failed.
pub fn attach(kind: &str, at: &Path, flags: MsFlags, options: Option<&str>) -> Result<()> {
    mount(Some("none"), at, Some(kind), flags, options)
        .map_err(|error| Error::other(format!("mounting {kind} on {}: {}", at.display(), error.desc())))
}

/// The number of a process in the innermost namespace that it is in.
pub fn inner_pid(pid: Pid) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("NSpid:"))?.split_whitespace().last()?.parse().ok()
}

/// Ends a copy of the agent: nothing is flushed, nothing is told to the console.
pub fn leave_at_once() -> ! {
    // SAFETY: ends the process.
    unsafe { libc::_exit(1) }
}

/// The same of a copy that has something to say by how it ends.
pub fn leave(status: i32) -> ! {
    // SAFETY: ends the process.
    unsafe { libc::_exit(status) }
}

/// A file that can be read when the process has ended.
pub fn process_file(process: Pid) -> Result<OwnedFd> {
    // SAFETY: plain integers.
    owned(unsafe { libc::syscall(libc::SYS_pidfd_open, process.as_raw(), 0) })
}

/// For the calling process: what somebody may send who wants it to end, or a terminal, or a closed pipe.
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

/// Until a child of ours has ended.
pub fn wait(child: Pid) -> Result<()> {
    loop {
        match nix::sys::wait::waitpid(child, None) {
            Err(Errno::EINTR) => {}
            result => return Ok(result.map(drop)?),
        }
    }
}

/// From a copy of the agent's process to one as a login would give: signals at their defaults, usual limits, and no
/// way to the capabilities that are withheld.
pub fn become_plain(withheld: &[libc::c_ulong]) -> Result<()> {
    const USUAL_FILES: libc::rlim_t = 1024;
    for capability in withheld {
        // SAFETY: plain integers.
        check(unsafe { libc::prctl(libc::PR_CAPBSET_DROP, *capability, 0, 0, 0) })?;
    }
    let limit = libc::rlimit { rlim_cur: USUAL_FILES, rlim_max: 1 << 16 };
    // SAFETY: the pointers are to live values; the program that comes has handlers of its own.
    unsafe {
        check(libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit))?;
        for signal in 1..32 {
            libc::signal(signal, libc::SIG_DFL); // KILL and STOP refuse
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

/// Dirty pages to the file system below, without the flush of the disk's own cache that `fsync` adds.
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

/// Ends a TCP connection at once: what is queued is dropped, a RST leaves, and threads blocked in it return an error.
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

/// Zeros to send: never written to, so the kernel backs all of it by one page that stays in the processor's cache.
pub struct Zeros {
    start: usize,
    /// The same chunk many times over: 16 KB, which all who send without end share.
    chunks: OnceLock<Chunks>,
}

struct Chunks(Vec<libc::iovec>);

// SAFETY: what they point to is read by the kernel alone, and is never unmapped.
unsafe impl Send for Chunks {}
// SAFETY: as above.
unsafe impl Sync for Chunks {}

impl Zeros {
    pub fn new() -> Result<Self> {
        let start = map(CHUNK, ProtFlags::PROT_READ, MapFlags::empty())?;
        Ok(Self { start, chunks: OnceLock::new() })
    }

    /// Sends so many bytes.
    pub fn send(&self, fd: BorrowedFd, bytes: u64) -> Result<()> {
        let mut left = usize::try_from(bytes).map_err(|_| Error::from(ErrorKind::InvalidInput))?;
        while left > 0 {
            let start = self.start as *const libc::c_void;
            // SAFETY: at most the whole mapping, which is never unmapped; send only reads it.
            let sent = unsafe { libc::send(fd.as_raw_fd(), start, left.min(CHUNK), libc::MSG_NOSIGNAL) };
            left -= check_size(sent)?;
        }
        Ok(())
    }

    /// Sends for as long as the connection lives; the error is why it ended.
    pub fn send_forever(&self, fd: BorrowedFd) -> Result<()> {
        let chunk = libc::iovec { iov_base: self.start as *mut libc::c_void, iov_len: CHUNK };
        let chunks = &self.chunks.get_or_init(|| Chunks(vec![chunk; CHUNKS])).0;
        let count = libc::c_int::try_from(CHUNKS).expect("is 1024");
        loop {
            // SAFETY: every element is the mapping, which is never unmapped, and writev only reads it.
            check_size(unsafe { libc::writev(fd.as_raw_fd(), chunks.as_ptr(), count) })?;
        }
    }
}

/// Receives at most so many bytes of TCP data, and discards them inside the kernel. An end of the connection is an error.
pub fn discard(fd: BorrowedFd, most: u64) -> Result<u64> {
    let most = usize::try_from(most).unwrap_or(usize::MAX).min(CHUNK * CHUNKS);
    // SAFETY: with MSG_TRUNC, TCP drops the data and does not write to the buffer.
    let received =
        unsafe { libc::recv(fd.as_raw_fd(), ptr::null_mut(), most, libc::MSG_TRUNC | libc::MSG_WAITALL) };
    match check_size(received)? {
        0 => Err(ErrorKind::UnexpectedEof.into()),
        received => Ok(u64::try_from(received).expect("is at most 1 GiB")),
    }
}

/// The same of exactly so many bytes.
pub fn discard_all(fd: BorrowedFd, bytes: u64) -> Result<()> {
    let mut left = bytes;
    while left > 0 {
        left -= discard(fd, left)?;
    }
    Ok(())
}

/// Receives for as long as the connection lives, piece by piece, as an application does.
pub fn read_forever(fd: BorrowedFd) -> Result<()> {
    let mut piece = vec![0; TAKEN];
    while nix::unistd::read(fd, &mut piece)? > 0 {}
    Ok(())
}

/// Receives and discards inside the kernel for as long as the connection lives.
pub fn discard_forever(fd: BorrowedFd) -> Result<()> {
    let flags = libc::MSG_TRUNC | libc::MSG_WAITALL;
    loop {
        // SAFETY: with MSG_TRUNC, TCP drops the data and does not write to the buffer.
        let received = unsafe { libc::recv(fd.as_raw_fd(), ptr::null_mut(), CHUNK * CHUNKS, flags) };
        if check_size(received)? == 0 {
            return Ok(());
        }
    }
}

/// Up to two datagrams in one call: waits for the first, takes the second if it is there. Gives their lengths.
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
    // SAFETY: nobody asks for the peer's address.
    let fd = unsafe { libc::accept4(listener.as_raw_fd(), none, none.cast(), libc::SOCK_CLOEXEC) };
    owned(fd.into())
}

/// A mount of sysfs that is attached to no path: it shows the network namespace of the calling thread and vanishes
/// with the descriptor, which is a directory to open paths from.
pub fn mount_detached_sysfs() -> Result<OwnedFd> {
    const FSOPEN_CLOEXEC: libc::c_long = 1;
    const FSMOUNT_CLOEXEC: libc::c_long = 1;
    const FSCONFIG_CMD_CREATE: libc::c_long = 6;
    let none = ptr::null::<libc::c_void>();
    // SAFETY: the name is a C string; the numbers are those of fsopen(2).
    let context = owned(unsafe { libc::syscall(libc::SYS_fsopen, c"sysfs".as_ptr(), FSOPEN_CLOEXEC) })?;
    let raw = context.as_raw_fd();
    // SAFETY: FSCONFIG_CMD_CREATE takes no key, no value and no number.
    let created = unsafe { libc::syscall(libc::SYS_fsconfig, raw, FSCONFIG_CMD_CREATE, none, none, 0) };
    if created < 0 {
        return Err(Error::last_os_error());
    }
    // SAFETY: a configured context, no attributes.
    owned(unsafe { libc::syscall(libc::SYS_fsmount, raw, FSMOUNT_CLOEXEC, 0) })
}

fn owned(result: libc::c_long) -> Result<OwnedFd> {
    match libc::c_int::try_from(result) {
        // SAFETY: the kernel just gave us this descriptor and nobody else knows it.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(Error::last_os_error()),
    }
}

/// An ioctl on the network device `name`: `setup` fills the request, `read` looks at the kernel's answer.
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

/// An ethtool command. `buffer` holds its structure, and must be as large as the kernel's answer to it.
pub fn ethtool(control: BorrowedFd, device: &str, buffer: &mut [u64]) -> Result<()> {
    const SIOCETHTOOL: libc::Ioctl = 0x8946;
    let content = libc::__c_anonymous_ifr_ifru { ifru_data: buffer.as_mut_ptr().cast() };
    interface_ioctl(control, device, SIOCETHTOOL, content)
}

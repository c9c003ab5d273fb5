// SPDX-License-Identifier: Apache-2.0
//! Letters between the agent and the first process of a room: a JSON object each, and the descriptors that go with it.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::cmsg_space;
use nix::sys::socket::{recvmsg, sendmsg, ControlMessage, ControlMessageOwned, MsgFlags};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

const LETTER_MAX: usize = 4096;
const DESCRIPTORS_MAX: usize = 3;

/// What the agent wants of a room.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "lowercase")]
pub enum Order {
    /// Its stdin, stdout and stderr go with it.
    Start { app: u16 },
}

/// What a room has to say.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "news", rename_all = "lowercase")]
pub enum News {
    /// Its first process, as the agent sees it.
    Init {
        pid: i32,
    },
    Ready {},
    /// It could not be made.
    Failed {
        message: String,
    },
    /// `pid`: as the room sees it.
    Started {
        app: u16,
        pid: u32,
    },
    Refused {
        app: u16,
        message: String,
    },
    Ended {
        app: u16,
        exit: Option<u8>,
        signal: Option<u8>,
    },
}

pub fn send(post: BorrowedFd, letter: &impl Serialize, fds: &[RawFd]) -> io::Result<()> {
    let text = serde_json::to_vec(letter).expect("a letter has only string keys");
    let rights = [ControlMessage::ScmRights(fds)];
    let rights = if fds.is_empty() { &rights[..0] } else { &rights[..] };
    let parts = [IoSlice::new(&text)];
    Ok(sendmsg::<()>(post.as_raw_fd(), &parts, rights, MsgFlags::MSG_NOSIGNAL, None).map(drop)?)
}

/// None: the other end is gone.
pub fn receive<L: DeserializeOwned>(post: BorrowedFd) -> io::Result<Option<(L, Vec<OwnedFd>)>> {
    let mut text = [0; LETTER_MAX];
    let mut space = cmsg_space!([RawFd; DESCRIPTORS_MAX]);
    let (length, fds) = {
        let mut parts = [IoSliceMut::new(&mut text)];
        let flags = MsgFlags::MSG_CMSG_CLOEXEC;
        let message = recvmsg::<()>(post.as_raw_fd(), &mut parts, Some(&mut space), flags)?;
        let mut fds = Vec::new();
        for part in message.cmsgs()? {
            if let ControlMessageOwned::ScmRights(raw) = part {
                // SAFETY: the kernel just made these descriptors for us.
                fds.extend(raw.into_iter().map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }));
            }
        }
        (message.bytes, fds)
    };
    if length == 0 {
        return Ok(None);
    }
    let letter = serde_json::from_slice(&text[..length]).map_err(io::Error::other)?;
    Ok(Some((letter, fds)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::fcntl::OFlag;
    use nix::sys::socket::{socketpair, AddressFamily, SockFlag, SockType};
    use std::fs::File;
    use std::io::{Read, Write};
    use std::os::fd::AsFd;

    #[test]
    fn a_letter_arrives_whole_with_what_goes_with_it() {
        let (ours, theirs) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)
                .expect("a pair");
        let (from, to) = nix::unistd::pipe2(OFlag::O_CLOEXEC).expect("a pipe");
        send(ours.as_fd(), &Order::Start { app: 7 }, &[to.as_raw_fd()]).expect("sends");
        send(ours.as_fd(), &Order::Start { app: 8 }, &[]).expect("sends");
        drop((ours, to));
        let (order, fds) = receive::<Order>(theirs.as_fd()).expect("receives").expect("is there");
        assert!(matches!(order, Order::Start { app: 7 }));
        let mut word = String::new();
        let [end] = <[OwnedFd; 1]>::try_from(fds).expect("one descriptor");
        File::from(end).write_all(b"word").expect("writes");
        File::from(from).read_to_string(&mut word).expect("reads");
        assert_eq!(word, "word");
        let (order, fds) = receive::<Order>(theirs.as_fd()).expect("receives").expect("is there");
        assert!(matches!(order, Order::Start { app: 8 }) && fds.is_empty());
        assert!(receive::<Order>(theirs.as_fd()).expect("receives").is_none());
    }
}

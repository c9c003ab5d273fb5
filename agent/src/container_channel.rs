// SPDX-License-Identifier: Apache-2.0
//! Messages between the agent and the first process of a container. Each is a JSON object with file descriptors.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::cmsg_space;
use nix::sys::socket::{recvmsg, sendmsg, ControlMessage, ControlMessageOwned, MsgFlags};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::cause::Cause;

const MESSAGE_MAX: usize = 4096;
const DESCRIPTORS_MAX: usize = 3;

/// An order of the agent to a container.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "lowercase")]
pub enum Order {
    /// The message carries the program's stdin, stdout and stderr.
    Start { app: u16 },
}

/// A notice of a container.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "notice", rename_all = "lowercase")]
pub enum Notice {
    /// The container's first process, as the agent sees it.
    Init {
        pid: i32,
    },
    Ready {},
    /// The container could not be made.
    Failed {
        cause: Cause,
    },
    /// A program was started. `pid`: its process id in the container.
    Started {
        app: u16,
        pid: u32,
    },
    Refused {
        app: u16,
        cause: Cause,
    },
    Ended {
        app: u16,
        exit: Option<u8>,
        signal: Option<u8>,
    },
}

pub fn send(channel: BorrowedFd, message: &impl Serialize, fds: &[RawFd]) -> io::Result<()> {
    let text = serde_json::to_vec(message).expect("a message has only string keys");
    let rights = [ControlMessage::ScmRights(fds)];
    let rights = if fds.is_empty() { &rights[..0] } else { &rights[..] };
    let parts = [IoSlice::new(&text)];
    Ok(sendmsg::<()>(channel.as_raw_fd(), &parts, rights, MsgFlags::MSG_NOSIGNAL, None).map(drop)?)
}

/// Receives a message; None if the other end has closed.
pub fn receive<L: DeserializeOwned>(channel: BorrowedFd) -> io::Result<Option<(L, Vec<OwnedFd>)>> {
    let mut text = [0; MESSAGE_MAX];
    let mut space = cmsg_space!([RawFd; DESCRIPTORS_MAX]);
    let (length, fds) = {
        let mut parts = [IoSliceMut::new(&mut text)];
        let flags = MsgFlags::MSG_CMSG_CLOEXEC;
        let message = recvmsg::<()>(channel.as_raw_fd(), &mut parts, Some(&mut space), flags)?;
        let mut fds = Vec::new();
        for part in message.cmsgs()? {
            if let ControlMessageOwned::ScmRights(descriptors) = part {
                // SAFETY: the kernel just made these descriptors for us.
                fds.extend(descriptors.into_iter().map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }));
            }
        }
        (message.bytes, fds)
    };
    if length == 0 {
        return Ok(None);
    }
    let message = serde_json::from_slice(&text[..length]).map_err(io::Error::other)?;
    Ok(Some((message, fds)))
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
    fn a_message_arrives_with_its_file_descriptors() {
        let (agent_end, init_end) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)
                .expect("a pair");
        let (from, to) = nix::unistd::pipe2(OFlag::O_CLOEXEC).expect("a pipe");
        send(agent_end.as_fd(), &Order::Start { app: 7 }, &[to.as_raw_fd()]).expect("sends");
        send(agent_end.as_fd(), &Order::Start { app: 8 }, &[]).expect("sends");
        drop((agent_end, to));
        let (order, fds) = receive::<Order>(init_end.as_fd()).expect("receives").expect("is there");
        assert!(matches!(order, Order::Start { app: 7 }));
        let mut text = String::new();
        let [end] = <[OwnedFd; 1]>::try_from(fds).expect("one descriptor");
        File::from(end).write_all(b"word").expect("writes");
        File::from(from).read_to_string(&mut text).expect("reads");
        assert_eq!(text, "word");
        let (order, fds) = receive::<Order>(init_end.as_fd()).expect("receives").expect("is there");
        assert!(matches!(order, Order::Start { app: 8 }) && fds.is_empty());
        assert!(receive::<Order>(init_end.as_fd()).expect("receives").is_none());
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Copies files of a room into the run directory, by globs: `*`, `?` and `[…]` within one part of a path.
//!
//! Paths are opened as the room's programs would open them, so no link leads out of the room; a link at the end of a path
//! is left, as is all that is not a regular file.

use std::fs::{create_dir_all, File};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::{fstat, SFlag};

use crate::room::{open_in, Room};
use crate::sys;

/// Of one program, in all.
const MOST: u64 = 256 << 20;

/// Below `to`, each under its own path.
pub fn collect(room: &Room, globs: &[String], to: &Path) -> io::Result<()> {
    if globs.is_empty() {
        return Ok(());
    }
    let top = room.root()?;
    let mut left = MOST;
    for glob in globs {
        for path in expand(top.as_fd(), glob) {
            left -= copy(top.as_fd(), &path, &to.join(&path[1..]), left)?;
        }
    }
    Ok(())
}

/// The paths that a glob stands for, in order.
fn expand(root: BorrowedFd, glob: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    for part in glob.split('/').filter(|part| !part.is_empty() && *part != "." && *part != "..") {
        found = found.iter().flat_map(|folder| matches(root, folder, part)).collect();
    }
    found.retain(|path| !path.is_empty());
    found
}

fn matches(root: BorrowedFd, folder: &str, part: &str) -> Vec<String> {
    if !part.contains(['*', '?', '[']) {
        return vec![format!("{folder}/{part}")];
    }
    let path = if folder.is_empty() { "/" } else { folder };
    let opened = open_in(root, path, OFlag::O_RDONLY | OFlag::O_DIRECTORY).and_then(Dir::from_fd);
    let Ok(mut entries) = opened else { return Vec::new() };
    let names =
        entries.iter().flatten().filter_map(|entry| Some(entry.file_name().to_str().ok()?.to_owned()));
    let hidden = part.starts_with('.');
    let mut names: Vec<String> = names.filter(|name| hidden || !name.starts_with('.')).collect();
    names.retain(|name| fits(part.as_bytes(), name.as_bytes()));
    names.sort_unstable();
    names.into_iter().map(|name| format!("{folder}/{name}")).collect()
}

/// Whether a name is one of those that a part of a glob stands for.
fn fits(glob: &[u8], name: &[u8]) -> bool {
    match (glob.first(), name.first()) {
        (None, None) => true,
        (Some(b'*'), _) => (0..=name.len()).any(|skipped| fits(&glob[1..], &name[skipped..])),
        (Some(b'?'), Some(_)) => fits(&glob[1..], &name[1..]),
        (Some(b'['), Some(letter)) => match class(&glob[1..], *letter) {
            Some((true, rest)) => fits(rest, &name[1..]),
            Some((false, _)) => false,
            None => *letter == b'[' && fits(&glob[1..], &name[1..]),
        },
        (Some(plain), Some(letter)) => plain == letter && fits(&glob[1..], &name[1..]),
        _ => false,
    }
}

/// Whether `…]`, perhaps with a `!` before it, has a letter, and what comes behind it; none without a `]`.
fn class(text: &[u8], letter: u8) -> Option<(bool, &[u8])> {
    let (negated, text) = match text.strip_prefix(b"!") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let end = 1 + text.get(1..)?.iter().position(|byte| *byte == b']')?;
    let (mut inside, mut has) = (&text[..end], false);
    while let Some((first, rest)) = inside.split_first() {
        inside = if let [b'-', last, rest @ ..] = rest {
            has |= (*first..=*last).contains(&letter);
            rest
        } else {
            has |= *first == letter;
            rest
        };
    }
    Some((has != negated, &text[end + 1..]))
}

/// How much of a file was copied. What is no regular file, or not there, is nothing.
fn copy(root: BorrowedFd, path: &str, to: &Path, most: u64) -> io::Result<u64> {
    let from = match open_in(root, path, OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK) {
        Err(Errno::ENOENT | Errno::ELOOP | Errno::ENOTDIR | Errno::ENXIO) => return Ok(0),
        result => result?,
    };
    let kind = SFlag::from_bits_truncate(fstat(&from)?.st_mode) & SFlag::S_IFMT;
    if kind != SFlag::S_IFREG {
        return Ok(0);
    }
    if let Some(folder) = to.parent() {
        create_dir_all(folder)?;
    }
    let mut made = File::create(to)?;
    let copied = io::copy(&mut File::from(from).take(most), &mut made)?;
    sys::write_back(&made)?;
    Ok(copied)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(glob: &str, name: &str) -> bool {
        fits(glob.as_bytes(), name.as_bytes())
    }

    #[test]
    fn globs_are_those_of_a_shell() {
        for (glob, name) in
            [("*", "a"), ("*.log", ".log"), ("a*b*c", "aXbYbc"), ("?", "x"), ("[a-c]1", "b1"), ("[!a]", "b")]
        {
            assert!(fit(glob, name), "{glob} {name}");
        }
        for (glob, name) in
            [("*.log", "a.txt"), ("?", ""), ("?", "ab"), ("[a-c]", "d"), ("[!a]", "a"), ("a", "ab")]
        {
            assert!(!fit(glob, name), "{glob} {name}");
        }
        assert!(fit("[", "["), "a bracket that is not closed is itself");
        assert!(fit("[]]", "]"));
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Copies files of a container into the run directory, by globs: `*`, `?` and `[…]` within one part of a path.
//!
//! A folder is copied with all files below it. Paths are opened as the container's programs would open them, so no link
//! leads out of the container. A link at the end of a path is skipped, like everything that is not a regular file.

use std::fs::{create_dir_all, File};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::{fstat, SFlag};

use crate::app_plan::App;
use crate::container::{open_in, Container};
use crate::report::Omitted;
use crate::sys;

/// The maximum total size of a program's files.
const LIMIT_BYTES: u64 = 256 << 20;
/// The maximum number of parts of a path.
const DEPTH_MAX: usize = 64;

/// Copies a program's files below `to`, each under its path. Returns what the limits left out.
pub fn collect(container: &Container, program: &App, to: &Path) -> io::Result<Omitted> {
    let mut omitted = Omitted {
        app: program.name.clone(),
        count: 0,
        first: String::new(),
        limit_bytes: LIMIT_BYTES,
        depth_max: DEPTH_MAX,
    };
    if program.collect.is_empty() {
        return Ok(omitted);
    }
    let root = container.root()?;
    let mut remaining = LIMIT_BYTES;
    for glob in &program.collect {
        let mut paths = expand(root.as_fd(), glob);
        paths.reverse();
        while let Some(path) = paths.pop() {
            match copy(root.as_fd(), &path, &to.join(&path[1..]), remaining)? {
                Copied::File { bytes, complete } => {
                    remaining -= bytes;
                    if !complete {
                        add(&mut omitted, &path);
                    }
                }
                Copied::Folder if path.matches('/').count() < DEPTH_MAX => {
                    paths.extend(entries(root.as_fd(), &path).rev());
                }
                Copied::Folder => add(&mut omitted, &path),
                Copied::Nothing => {}
            }
        }
    }
    Ok(omitted)
}

fn add(omitted: &mut Omitted, path: &str) {
    if omitted.count == 0 {
        path.clone_into(&mut omitted.first);
    }
    omitted.count += 1;
}

/// The kind of a copied path. `Nothing`: a missing file, or one of another kind.
enum Copied {
    File { bytes: u64, complete: bool },
    Folder,
    Nothing,
}

/// Returns the paths that match a glob, in order.
fn expand(root: BorrowedFd, glob: &str) -> Vec<String> {
    let mut paths = vec![String::new()];
    for part in glob.split('/').filter(|part| !part.is_empty() && *part != "." && *part != "..") {
        paths = paths.iter().flat_map(|folder| expand_part(root, folder, part)).collect();
    }
    paths.retain(|path| !path.is_empty());
    paths
}

fn expand_part(root: BorrowedFd, folder: &str, part: &str) -> Vec<String> {
    if !part.contains(['*', '?', '[']) {
        return vec![format!("{folder}/{part}")];
    }
    let hidden = part.starts_with('.');
    let fits = |path: &String| {
        let name = &path[folder.len() + 1..];
        (hidden || !name.starts_with('.')) && matches_glob(part.as_bytes(), name.as_bytes())
    };
    entries(root, folder).filter(fits).collect()
}

/// Returns the paths of all entries of a folder, in order. None if it is not readable.
fn entries(root: BorrowedFd, folder: &str) -> std::vec::IntoIter<String> {
    let path = if folder.is_empty() { "/" } else { folder };
    let opened = open_in(root, path, OFlag::O_RDONLY | OFlag::O_DIRECTORY).and_then(Dir::from_fd);
    let mut names: Vec<String> = match opened {
        Ok(mut entries) => entries
            .iter()
            .flatten()
            .filter_map(|entry| Some(entry.file_name().to_str().ok()?.to_owned()))
            .collect(),
        Err(_) => Vec::new(),
    };
    names.retain(|name| name != "." && name != "..");
    names.sort_unstable();
    names.into_iter().map(|name| format!("{folder}/{name}")).collect::<Vec<_>>().into_iter()
}

/// Returns whether a name matches one part of a glob.
fn matches_glob(glob: &[u8], name: &[u8]) -> bool {
    match (glob.first(), name.first()) {
        (None, None) => true,
        (Some(b'*'), _) => (0..=name.len()).any(|skipped| matches_glob(&glob[1..], &name[skipped..])),
        (Some(b'?'), Some(_)) => matches_glob(&glob[1..], &name[1..]),
        (Some(b'['), Some(byte)) => match match_class(&glob[1..], *byte) {
            Some((true, rest)) => matches_glob(rest, &name[1..]),
            Some((false, _)) => false,
            None => *byte == b'[' && matches_glob(&glob[1..], &name[1..]),
        },
        (Some(plain), Some(byte)) => plain == byte && matches_glob(&glob[1..], &name[1..]),
        _ => false,
    }
}

/// Parses `…]` or `!…]`; returns whether the class contains a byte, and the text after it. None without a `]`.
fn match_class(text: &[u8], byte: u8) -> Option<(bool, &[u8])> {
    let (negated, text) = match text.strip_prefix(b"!") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let end = 1 + text.get(1..)?.iter().position(|byte| *byte == b']')?;
    let (mut inside, mut matched) = (&text[..end], false);
    while let Some((first, rest)) = inside.split_first() {
        inside = if let [b'-', last, rest @ ..] = rest {
            matched |= (*first..=*last).contains(&byte);
            rest
        } else {
            matched |= *first == byte;
            rest
        };
    }
    Some((matched != negated, &text[end + 1..]))
}

/// Copies at most `limit` bytes of a file, and creates none without bytes to copy. An empty file is complete.
fn copy(root: BorrowedFd, path: &str, to: &Path, limit: u64) -> io::Result<Copied> {
    let from = match open_in(root, path, OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK) {
        Err(Errno::ENOENT | Errno::ELOOP | Errno::ENOTDIR | Errno::ENXIO) => return Ok(Copied::Nothing),
        result => result?,
    };
    let state = fstat(&from)?;
    let kind = SFlag::from_bits_truncate(state.st_mode) & SFlag::S_IFMT;
    if kind != SFlag::S_IFREG {
        return Ok(if kind == SFlag::S_IFDIR { Copied::Folder } else { Copied::Nothing });
    }
    if limit == 0 && state.st_size > 0 {
        return Ok(Copied::File { bytes: 0, complete: false });
    }
    if let Some(folder) = to.parent() {
        create_dir_all(folder)?;
    }
    let mut target = File::create(to)?;
    let mut from = File::from(from);
    let bytes = io::copy(&mut (&from).take(limit), &mut target)?;
    sys::write_back(&target)?;
    Ok(Copied::File { bytes, complete: from.read(&mut [0])? == 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(glob: &str, name: &str) -> bool {
        matches_glob(glob.as_bytes(), name.as_bytes())
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

// SPDX-License-Identifier: Apache-2.0
//! The user of a program: a name of the container's /etc/passwd, or numbers.

use std::fs;
use std::os::fd::BorrowedFd;

use nix::unistd::{fchown, setgid, setgroups, setuid, Gid, Uid};

#[derive(Debug, PartialEq, Eq)]
pub struct User {
    uid: u32,
    gid: u32,
    /// Supplementary groups.
    groups: Vec<u32>,
    /// The home folder; empty if the user has no entry.
    home: String,
}

impl User {
    /// Parses "name", "uid" or "uid:gid"; None if the root has no such user.
    pub fn find(text: &str) -> Option<Self> {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        Self::parse(text, &read("/etc/passwd"), &read("/etc/group"))
    }

    fn parse(text: &str, passwd: &str, group: &str) -> Option<Self> {
        if let Some((uid, gid)) = text.split_once(':') {
            return Some(Self::without_entry(uid.parse().ok()?, gid.parse().ok()?));
        }
        let number = text.parse::<u32>().ok();
        let entry = entries(passwd).find(|entry| match number {
            Some(number) => entry[2].parse() == Ok(number),
            None => entry[0] == text,
        });
        match (entry, number) {
            (Some(entry), _) => {
                let memberships =
                    entries(group).filter(|group| group[3].split(',').any(|member| member == entry[0]));
                let groups = memberships.filter_map(|group| group[2].parse().ok()).collect();
                let home = entry.get(5).map_or_else(String::new, |home| (*home).to_owned());
                Some(Self { uid: entry[2].parse().ok()?, gid: entry[3].parse().ok()?, groups, home })
            }
            (None, Some(uid)) => Some(Self::without_entry(uid, uid)),
            (None, None) => (text == "root").then(|| Self::without_entry(0, 0)),
        }
    }

    const fn without_entry(uid: u32, gid: u32) -> Self {
        Self { uid, gid, groups: Vec::new(), home: String::new() }
    }

    /// Returns the value of HOME.
    pub fn home(&self) -> &str {
        if self.home.is_empty() {
            "/"
        } else {
            &self.home
        }
    }

    /// Gives the user a file, which only its owner may open again.
    pub fn take_over(&self, file: BorrowedFd) -> nix::Result<()> {
        fchown(file, Some(Uid::from_raw(self.uid)), Some(Gid::from_raw(self.gid)))
    }

    pub fn assume(&self) -> nix::Result<()> {
        let groups: Vec<Gid> = self.groups.iter().copied().map(Gid::from_raw).collect();
        setgroups(&groups)?;
        setgid(Gid::from_raw(self.gid))?;
        setuid(Uid::from_raw(self.uid))
    }
}

/// Returns the lines of such a file that have at least four fields.
fn entries(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().map(|line| line.split(':').collect::<Vec<_>>()).filter(|fields| fields.len() >= 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\nwww:x:33:34::/:/bin/false\nbroken\n";
    const GROUP: &str = "www:x:34:\nssl:x:40:a,www\nadm:x:4:a\n";

    fn ids(text: &str) -> Option<(u32, u32, Vec<u32>)> {
        User::parse(text, PASSWD, GROUP).map(|user| (user.uid, user.gid, user.groups))
    }

    #[test]
    fn a_user_is_a_name_or_numbers() {
        assert_eq!(ids("www"), Some((33, 34, vec![40])));
        assert_eq!(ids("33"), Some((33, 34, vec![40])));
        assert_eq!(ids("1000"), Some((1000, 1000, vec![])));
        assert_eq!(ids("5:6"), Some((5, 6, vec![])));
        assert_eq!(ids("nobody"), None);
        assert_eq!(ids("5:users"), None);
    }

    #[test]
    fn root_needs_no_file() {
        assert_eq!(User::parse("root", "", ""), Some(User::without_entry(0, 0)));
    }

    #[test]
    fn the_home_is_that_of_the_entry() {
        let home = |text| User::parse(text, PASSWD, GROUP).map(|user| user.home().to_owned());
        assert_eq!(home("root").as_deref(), Some("/root"));
        assert_eq!(home("www").as_deref(), Some("/"));
    }
}

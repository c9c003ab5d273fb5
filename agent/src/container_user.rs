// SPDX-License-Identifier: Apache-2.0
//! The user of a program: a name of the container's /etc/passwd, or numbers.

use std::fs;

use nix::unistd::{setgid, setgroups, setuid, Gid, Uid};

#[derive(Debug, PartialEq, Eq)]
pub struct User {
    uid: u32,
    gid: u32,
    /// Supplementary groups.
    groups: Vec<u32>,
}

impl User {
    /// Parses "name", "uid" or "uid:gid"; None if the root has no such user.
    pub fn find(text: &str) -> Option<Self> {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        Self::parse(text, &read("/etc/passwd"), &read("/etc/group"))
    }

    fn parse(text: &str, passwd: &str, group: &str) -> Option<Self> {
        if let Some((uid, gid)) = text.split_once(':') {
            return Some(Self { uid: uid.parse().ok()?, gid: gid.parse().ok()?, groups: Vec::new() });
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
                Some(Self { uid: entry[2].parse().ok()?, gid: entry[3].parse().ok()?, groups })
            }
            (None, Some(uid)) => Some(Self { uid, gid: uid, groups: Vec::new() }),
            (None, None) => (text == "root").then(|| Self { uid: 0, gid: 0, groups: Vec::new() }),
        }
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
        assert_eq!(User::parse("root", "", ""), Some(User { uid: 0, gid: 0, groups: vec![] }));
    }
}

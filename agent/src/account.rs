// SPDX-License-Identifier: Apache-2.0
//! What programs did so far, as the guest's kernel counts it (`kernel/hooks/program_account.c`).

use std::collections::BTreeMap;
use std::fs;

const COUNTED: &str = "/proc/hourglass/programs";

/// What virtual time went by with: one of the words of the table `app_wait`, and the number of a call.
pub type What = (String, Option<u16>);

/// Of all tasks of a program.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Account {
    /// System calls.
    pub calls: u64,
    /// Time of the host's CPU: no two runs have the same.
    pub host_ns: u64,
    pub waits_ns: BTreeMap<What, u64>,
}

impl Account {
    /// None where nobody counts.
    pub fn of(app: u16) -> Option<Self> {
        fs::read_to_string(COUNTED).ok().map(|counted| Self::among(&counted, app))
    }

    /// In lines of `APP WORD [CALL] VALUE`.
    fn among(counted: &str, app: u16) -> Self {
        let mut account = Self::default();
        for line in counted.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let [number, word, rest @ .., value] = words.as_slice() else { continue };
            let (Ok(number), Ok(value)) = (number.parse::<u16>(), value.parse()) else { continue };
            match (*word, rest) {
                _ if number != app => {}
                ("calls", []) => account.calls = value,
                ("host", []) => account.host_ns = value,
                (word, rest) => {
                    let call = rest.first().and_then(|call| call.parse().ok());
                    account.waits_ns.insert((word.to_owned(), call), value);
                }
            }
        }
        account
    }

    /// What came to it since.
    pub fn since(&self, before: &Self) -> Self {
        let waits_ns = self.waits_ns.iter().map(|(what, ns)| {
            (what.clone(), ns - before.waits_ns.get(what).unwrap_or(&0)) //
        });
        Self {
            calls: self.calls - before.calls,
            host_ns: self.host_ns - before.host_ns,
            waits_ns: waits_ns.filter(|(_, ns)| *ns > 0).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTED: &str = "1 calls 7\n1 host 900\n1 call 35 5000\n1 cpu 70\n10 calls 99\n10 host 1\n";

    #[test]
    fn an_account_is_that_of_the_program() {
        let calls = ["1", "10", "2"].map(|app| Account::among(COUNTED, app.parse().expect("a number")).calls);
        assert_eq!(calls, [7, 99, 0]);
        let one = Account::among(COUNTED, 1);
        let waits = [(("call".to_owned(), Some(35)), 5000), (("cpu".to_owned(), None), 70)];
        assert_eq!((one.host_ns, one.waits_ns), (900, BTreeMap::from(waits)));
    }

    #[test]
    fn a_start_has_what_came_since_the_one_before() {
        let before = Account::among(COUNTED, 1);
        let after = Account::among("1 calls 9\n1 host 950\n1 call 35 5000\n1 cpu 71\n1 spun 3\n", 1);
        let waits = [(("cpu".to_owned(), None), 1), (("spun".to_owned(), None), 3)];
        let expected = Account { calls: 2, host_ns: 50, waits_ns: BTreeMap::from(waits) };
        assert_eq!(after.since(&before), expected);
    }
}

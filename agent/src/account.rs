// SPDX-License-Identifier: Apache-2.0
//! Counters of the programs' activity so far, from the guest's kernel (`kernel/hooks/program_account.c`).

use std::collections::BTreeMap;
use std::fs;

const PATH: &str = "/proc/hourglass/programs";

/// A kind of wait in virtual time: a word of the table `app_wait`, and the number of a call.
pub type WaitKey = (String, Option<u16>);

/// The counters of all tasks of a program.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Account {
    /// System calls.
    pub calls: u64,
    /// The host's CPU time, which differs between runs.
    pub host_ns: u64,
    pub waits_ns: BTreeMap<WaitKey, u64>,
}

impl Account {
    /// Reads the counters of a program; None if the kernel has none.
    pub fn of(app: u16) -> Option<Self> {
        fs::read_to_string(PATH).ok().map(|text| Self::parse(&text, app))
    }

    /// Parses the lines `APP WORD [CALL] VALUE` of a program.
    fn parse(text: &str, app: u16) -> Self {
        let mut account = Self::default();
        for line in text.lines() {
            let fields: Vec<&str> = line.split(' ').collect();
            let [number, kind, rest @ .., value] = fields.as_slice() else { continue };
            let (Ok(number), Ok(value)) = (number.parse::<u16>(), value.parse()) else { continue };
            match (*kind, rest) {
                _ if number != app => {}
                ("calls", []) => account.calls = value,
                ("host", []) => account.host_ns = value,
                (kind, rest) => {
                    let call = rest.first().and_then(|call| call.parse().ok());
                    account.waits_ns.insert((kind.to_owned(), call), value);
                }
            }
        }
        account
    }

    /// Returns the counters that were added since `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        let waits_ns = self.waits_ns.iter().map(|(key, ns)| {
            (key.clone(), ns - earlier.waits_ns.get(key).unwrap_or(&0)) //
        });
        Self {
            calls: self.calls - earlier.calls,
            host_ns: self.host_ns - earlier.host_ns,
            waits_ns: waits_ns.filter(|(_, ns)| *ns > 0).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "1 calls 7\n1 host 900\n1 call 35 5000\n1 cpu 70\n10 calls 99\n10 host 1\n";

    #[test]
    fn an_account_has_the_lines_of_its_program() {
        let calls = ["1", "10", "2"].map(|app| Account::parse(SAMPLE, app.parse().expect("a number")).calls);
        assert_eq!(calls, [7, 99, 0]);
        let account = Account::parse(SAMPLE, 1);
        let waits = [(("call".to_owned(), Some(35)), 5000), (("cpu".to_owned(), None), 70)];
        assert_eq!((account.host_ns, account.waits_ns), (900, BTreeMap::from(waits)));
    }

    #[test]
    fn a_start_has_the_growth_since_the_previous_start() {
        let earlier = Account::parse(SAMPLE, 1);
        let after = Account::parse("1 calls 9\n1 host 950\n1 call 35 5000\n1 cpu 71\n1 spun 3\n", 1);
        let waits = [(("cpu".to_owned(), None), 1), (("spun".to_owned(), None), 3)];
        let expected = Account { calls: 2, host_ns: 50, waits_ns: BTreeMap::from(waits) };
        assert_eq!(after.since(&earlier), expected);
    }
}

// SPDX-License-Identifier: Apache-2.0
//! A qdisc's options that decide its rate, its delay and its length, in words that `tc` reads
//! (`include/uapi/linux/pkt_sched.h` of Linux 7.3).

use std::fmt::{Display, Write};

use crate::netlink::{content_of, u16_at, u32_at, u64_at};

/// The unit in which the kernel has a value.
#[derive(Clone, Copy)]
enum Unit {
    /// Packets, or bytes.
    Number,
    Signed,
    /// Bytes per second; 0 and the largest number mean none.
    Rate,
    /// The same with 64 bits.
    Rate64,
    /// Microseconds.
    Time,
    /// Nanoseconds, 64 bits.
    Time64,
}

use Unit::{Number, Rate, Rate64, Signed, Time, Time64};

/// Options that are attributes: number, word, unit.
type Attribute = (u16, &'static str, Unit);
/// Options that are parts of a structure: offset, word, unit.
type Field = (usize, &'static str, Unit);

const TCA_STAB_BASE: u16 = 1;
/// `TCA_TBF_PARMS`, `TCA_HTB_PARMS` and `TCA_RED_PARMS`
const PARAMETERS: u16 = 1;
const NETEM_OPTIONS: usize = 24;
const CAKE_ATM: u16 = 4;
/// The packet counts as it is, without an overhead.
const CAKE_RAW: u16 = 12;
/// Words by the number of a link layer (`TC_LINKLAYER_…`, `CAKE_ATM_…`).
const STAB_LINK_LAYERS: [&str; 3] = ["", " linklayer ethernet", " linklayer atm"];
const CAKE_LINK_LAYERS: [&str; 3] = ["", " atm", " ptm"];

const TARGET_FIRST: &[Attribute] = &[(1, "target", Time), (2, "limit", Number)];
const FQ_PIE: &[Attribute] = &[(1, "limit", Number), (3, "target", Time)];
const FQ: &[Attribute] = &[(1, "limit", Number), (7, "maxrate", Rate)];
const CAKE: &[Attribute] = &[(2, "bandwidth", Rate64), (14, "mpu", Number)];
const NETEM: &[Attribute] =
    &[(10, "delay", Time64), (6, "rate", Rate), (8, "rate", Rate64), (12, "slot", Time64)];

/// Returns the words of a qdisc of this kind, or of a class. `options` and `stab` are the contents of `TCA_OPTIONS` and
/// `TCA_STAB`.
pub fn words(kind: &str, options: &[u8], stab: &[u8]) -> String {
    let mut line = String::new();
    if let Some(sizes) = content_of(stab, 0, TCA_STAB_BASE) {
        line.push_str("stab");
        push_link_layer(&mut line, &STAB_LINK_LAYERS, u32_at(sizes, 8));
        push_fields(&mut line, sizes, &[(4, "overhead", Signed), (12, "mpu", Number)]);
        push_fields(&mut line, sizes, &[(16, "mtu", Number), (20, "tsize", Number)]);
        line.push(' ');
    }
    line.push_str(kind);
    let parameters = content_of(options, 0, PARAMETERS).unwrap_or_default();
    match kind {
        "pfifo" | "bfifo" | "pfifo_head_drop" => push_fields(&mut line, options, &[(0, "limit", Number)]),
        "sfq" => push_fields(&mut line, options, &[(8, "limit", Number)]),
        "codel" | "fq_codel" | "pie" => push_attributes(&mut line, options, TARGET_FIRST),
        "fq_pie" => push_attributes(&mut line, options, FQ_PIE),
        "fq" => push_attributes(&mut line, options, FQ),
        "cake" => {
            push_attributes(&mut line, options, CAKE);
            if content_of(options, 0, CAKE_RAW).is_none() {
                push_attributes(&mut line, options, &[(6, "overhead", Signed)]);
            }
            push_link_layer(
                &mut line,
                &CAKE_LINK_LAYERS,
                content_of(options, 0, CAKE_ATM).and_then(|w| u32_at(w, 0)),
            );
        }
        "netem" => {
            push_fields(&mut line, options, &[(4, "limit", Number)]);
            push_attributes(&mut line, options.get(NETEM_OPTIONS..).unwrap_or_default(), NETEM);
        }
        "red" => push_fields(&mut line, parameters, &[(0, "limit", Number)]),
        "tbf" => {
            push_fields(&mut line, parameters, &[(8, "rate", Rate), (24, "limit", Number)]);
            push_attributes(&mut line, options, &[(4, "rate", Rate64)]);
            push_rate_sizes(&mut line, parameters.get(..12));
        }
        "htb class" => {
            push_fields(&mut line, parameters, &[(20, "ceil", Rate)]);
            push_attributes(&mut line, options, &[(7, "ceil", Rate64)]);
            push_rate_sizes(&mut line, parameters.get(12..24));
        }
        _ => {}
    }
    line
}

/// Appends the sizes with which a rate counts packets, of `struct tc_ratespec`.
fn push_rate_sizes(line: &mut String, rate: Option<&[u8]>) {
    let Some(rate) = rate else { return };
    for (at, word) in [(2, "overhead"), (6, "mpu")] {
        if let Some(value) = u16_at(rate, at).filter(|value| *value > 0) {
            push(line, word, value);
        }
    }
    push_link_layer(
        line,
        &STAB_LINK_LAYERS,
        rate.get(1).map(|layer| u32::from(layer & 0xf)).filter(|l| *l > 1),
    );
}

fn push_link_layer(line: &mut String, words: &[&str], layer: Option<u32>) {
    let layer = layer.and_then(|layer| usize::try_from(layer).ok());
    line.push_str(layer.and_then(|layer| words.get(layer)).copied().unwrap_or_default());
}

fn push_fields(line: &mut String, bytes: &[u8], fields: &[Field]) {
    for (at, word, unit) in fields {
        push_value(line, word, *unit, bytes.get(*at..).unwrap_or_default());
    }
}

fn push_attributes(line: &mut String, options: &[u8], attributes: &[Attribute]) {
    for (number, word, unit) in attributes {
        if let Some(content) = content_of(options, 0, *number) {
            push_value(line, word, *unit, content);
        }
    }
}

fn push_value(line: &mut String, word: &str, unit: Unit, bytes: &[u8]) {
    let (short, long) = (u32_at(bytes, 0), u64_at(bytes, 0));
    let value = match unit {
        Number => short.map(|value| value.to_string()),
        Signed => short.map(|value| i32::from_ne_bytes(value.to_ne_bytes()).to_string()),
        Time => short.map(|us| time(u64::from(us) * 1000)),
        Time64 => long.map(time),
        Rate => short.filter(|rate| *rate != u32::MAX).map(u64::from).and_then(rate),
        Rate64 => long.and_then(rate),
    };
    if let Some(value) = value {
        push(line, word, value);
    }
}

/// Returns a rate in bit/s; None for 0, no rate.
fn rate(bytes_per_s: u64) -> Option<String> {
    let bits = u128::from(bytes_per_s) * 8;
    let units = [(1_000_000_000, "gbit"), (1_000_000, "mbit"), (1000, "kbit"), (1, "bit")];
    let (factor, unit) = units.into_iter().find(|(factor, _)| bits % factor == 0)?;
    (bits > 0).then(|| format!("{}{unit}", bits / factor))
}

/// Returns a time in milliseconds or microseconds: `tc` has no smaller unit.
fn time(ns: u64) -> String {
    match (ns % 1_000_000, ns % 1000) {
        (0, _) => format!("{}ms", ns / 1_000_000),
        (_, 0) => format!("{}us", ns / 1000),
        (_, fraction) => format!("{}.{fraction:03}us", ns / 1000),
    }
}

fn push(line: &mut String, word: &str, value: impl Display) {
    write!(line, " {word} {value}").expect("a string takes everything");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::attribute;

    fn numbers(values: &[u32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_ne_bytes()).collect()
    }

    #[test]
    fn each_qdisc_has_its_limit() {
        assert_eq!(words("pfifo", &numbers(&[102]), &[]), "pfifo limit 102");
        assert_eq!(words("sfq", &numbers(&[1514, 10, 127, 1024, 128]), &[]), "sfq limit 127");
        let codel = [attribute(1, &numbers(&[5000])), attribute(2, &numbers(&[1000]))].concat();
        assert_eq!(words("codel", &codel, &[]), "codel target 5ms limit 1000");
        let pie = [attribute(1, &numbers(&[10240])), attribute(3, &numbers(&[14999]))].concat();
        assert_eq!(words("fq_pie", &pie, &[]), "fq_pie limit 10240 target 14999us");
        assert_eq!(words("red", &attribute(1, &numbers(&[60_000, 0, 0, 0])), &[]), "red limit 60000");
    }

    #[test]
    fn netem_has_its_delay_in_ns() {
        let fixed = numbers(&[3_125_000, 131_072_000, 0, 0, 0, 0]);
        let rate = attribute(6, &numbers(&[125_000, 0, 0, 0]));
        let delay = attribute(10, &200_000_960u64.to_ne_bytes());
        assert_eq!(
            words("netem", &[fixed, rate, delay].concat(), &[]),
            "netem limit 131072000 delay 200000.960us rate 1mbit"
        );
    }

    #[test]
    fn a_rate_includes_the_overhead_of_the_link_layer() {
        let spec = |rate: u32| [&[0, 2, 10, 0, 0, 0, 64, 0][..], &rate.to_ne_bytes()].concat();
        let tbf = [spec(105_000), vec![0; 12], numbers(&[30_000, 1, 2])].concat();
        assert_eq!(
            words("tbf", &attribute(1, &tbf), &[]),
            "tbf rate 840kbit limit 30000 overhead 10 mpu 64 linklayer atm"
        );
        let fast = [attribute(1, &tbf), attribute(4, &5_000_000_000u64.to_ne_bytes())].concat();
        assert!(words("tbf", &fast, &[]).contains("rate 40gbit"));
        let class = [vec![0; 12], spec(125_000_001), numbers(&[1, 2, 3, 0, 0])].concat();
        assert_eq!(
            words("htb class", &attribute(1, &class), &[]),
            "htb class ceil 1000000008bit overhead 10 mpu 64 linklayer atm"
        );
    }

    #[test]
    fn a_size_table_comes_before_the_kind() {
        let sizes = [numbers(&[0xffff_0002]), (-4i32).to_ne_bytes().to_vec(), numbers(&[2, 0, 2047, 512])];
        assert_eq!(
            words("bfifo", &numbers(&[3000]), &attribute(1, &sizes.concat())),
            "stab linklayer atm overhead -4 mpu 0 mtu 2047 tsize 512 bfifo limit 3000"
        );
    }

    #[test]
    fn unlimited_rates_have_no_word() {
        let fq = [attribute(1, &numbers(&[10_000])), attribute(7, &numbers(&[u32::MAX]))].concat();
        assert_eq!(words("fq", &fq, &[]), "fq limit 10000");
        let cake =
            [attribute(2, &[0; 8]), attribute(6, &numbers(&[10])), attribute(4, &numbers(&[1]))].concat();
        assert_eq!(words("cake", &cake, &[]), "cake overhead 10 atm");
        let raw = [attribute(6, &numbers(&[0])), attribute(12, &numbers(&[0]))].concat();
        assert_eq!(words("cake", &raw, &[]), "cake");
        assert_eq!(words("pfifo_fast", &[1, 2, 3], &[]), "pfifo_fast");
    }
}

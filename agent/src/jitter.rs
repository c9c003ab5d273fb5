// SPDX-License-Identifier: Apache-2.0
//! The seeded displacement of a ping's packets.
//!
//! Packets on an exact grid see periodic states (a round of pacing, a timer) always at the same phase. The displacement
//! is a hash of the ping's seed and the packet, so it does not depend on the order in which packets are sent. The hash
//! is splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).

fn mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Returns nanoseconds in [0, `limit_ns`), or 0 if `limit_ns` is not positive.
pub fn jitter(seed: u64, seq: u32, limit_ns: i64) -> i64 {
    let hash = mix(seed ^ u64::from(seq));
    let limit = limit_ns.max(1).unsigned_abs();
    i64::try_from(hash % limit).expect("is below an i64")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_splitmix64() {
        assert_eq!(mix(0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(mix(1_234_567), 6_457_827_717_110_365_317);
    }

    #[test]
    fn it_stays_in_its_range_and_differs_by_seed_and_packet() {
        assert!((0..1000).all(|seq| (0..500).contains(&jitter(1, seq, 500))));
        let displacement = jitter(1, 3, 1 << 40);
        assert_ne!(displacement, jitter(2, 3, 1 << 40));
        assert_ne!(displacement, jitter(1, 4, 1 << 40));
        assert_eq!(jitter(1, 3, 0), 0);
    }
}

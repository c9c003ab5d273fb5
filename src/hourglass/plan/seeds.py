# SPDX-License-Identifier: Apache-2.0
"""Seeds of links and radios: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), a bijection of 64 bits."""

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15


def splitmix64(value: int) -> int:
    """Return the generator's output after a state of `value`; both are 64 bits."""
    value = (value + GOLDEN) & MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)


def link_seed(seed: int, link: int, side: int) -> int:
    """Return the seed of the direction away from `side` (0 or 1) of a link: no two directions of a run share one."""
    return splitmix64(splitmix64(seed) ^ (2 * link + side + 1))


def radio_seed(seed: int, segment: int, side: int) -> int:
    """Return the seed of a cell's radio, for its backoffs and losses; `segment` counts links, then cells."""
    return splitmix64(link_seed(seed, segment, 0) + side & MASK)

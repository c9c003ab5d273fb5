# SPDX-License-Identifier: Apache-2.0
"""What links share and how they are sold: that it fits the links' rates, traces and frames. Fills in bursts."""

from hourglass.scenario.blame import refusal
from hourglass.scenario.edge import LinkShaper, LinkShapers, away
from hourglass.scenario.stack import Stack
from hourglass.scenario.testbed import Link, Testbed
from hourglass.scenario.units import SIZE, show

ETHERNET_BYTES = 14
WAYS = ("there", "back")


def medium(link: Link, index: int, side: int) -> str | None:
    """The name of the medium on which frames leave that end of a link; of one in half duplex none that can be given."""
    if link.duplex == "half":
        return f"link {index}"
    return link.medium[side] if link.medium else None


def frame_bytes(link: Link, stack: Stack) -> int:
    """The largest frame of either end, as buckets count it."""
    own = (stack.at(end).mtu for end in link.ends)
    return max(link.mtu, *(mtu or 0 for mtu in own)) + ETHERNET_BYTES


def resolve(testbed: Testbed, stack: Stack) -> tuple[Link, ...]:
    """The links with bursts spelled out. Raises InputError."""
    _check_media(testbed)
    return tuple(_resolve(index, link, frame_bytes(link, stack)) for index, link in enumerate(testbed.link))


def _resolve(index: int, link: Link, frame: int) -> Link:
    """A bucket that does not hold a frame would never let one pass."""
    for name in ("policer", "shaper"):
        for side, way in enumerate(WAYS):
            one = away(getattr(link, name), side)
            for key in ("burst", "limit"):
                size = getattr(one, key, None)
                if size is not None and size < frame:
                    place = f"testbed.link.{index}.{name}.{way}.{key}"
                    raise refusal(
                        place, show(size, SIZE), f"at least a whole frame, MTU + {ETHERNET_BYTES} B: {frame}B"
                    )
    if not link.shaper:
        return link
    there, back = (_with_burst(away(link.shaper, side), frame) for side in (0, 1))
    return link.model_copy(update={"shaper": LinkShapers.model_construct(there=there, back=back)})


def _with_burst(shaper: LinkShaper | None, frame: int) -> LinkShaper | None:
    return shaper if shaper is None or shaper.burst else shaper.model_copy(update={"burst": frame})


def _check_media(testbed: Testbed) -> None:
    """One line has one rate, and one scheduler; a rate that changes would change for all."""
    first: dict[str, tuple[int, int]] = {}
    for index, link in enumerate(testbed.link):
        key = f"testbed.link.{index}"
        if link.duplex == "half" and link.medium:
            raise refusal(
                f"{key}.medium", link.model_dump()["medium"], 'goes with duplex = "full": a medium is shared both ways'
            )
        names = [medium(link, index, side) for side in (0, 1)]
        if any(names) and (link.trace or link.outage):
            shared = "duplex" if link.duplex == "half" else "medium"
            raise refusal(f"{key}.{shared}", getattr(link, shared), "does not go with trace or outage")
        for side, name in enumerate(names):
            if name is None:
                continue
            other, at = first.setdefault(name, (index, side))
            if testbed.link[other].rate[at] != link.rate[side]:
                what = "both directions" if link.duplex == "half" else f"all that share {name}"
                raise refusal(f"{key}.rate", link.model_dump()["rate"], f"one rate for {what}: they share a line")

# SPDX-License-Identifier: Apache-2.0
"""docs/scenario.md, made from the models: `python -m hourglass.scenario.reference > docs/scenario.md`."""

import sys
from typing import Any, get_args

from pydantic.fields import FieldInfo

from hourglass.scenario.blame import table_of
from hourglass.scenario.kinds import Kind
from hourglass.scenario.load import builtin, presets
from hourglass.scenario.model import Capture, Measure, Scenario
from hourglass.scenario.stack import Pacing, Stack
from hourglass.scenario.table import Table
from hourglass.scenario.test import Competing, Flow, Test
from hourglass.scenario.testbed import Link, Netem, Node, Shaper, Testbed
from hourglass.scenario.testkinds import TESTS
from hourglass.scenario.trace import Trace, Traces
from hourglass.scenario.vocabulary import CONGESTION_CONTROLS, OWNED_SYSCTLS, QDISCS
from hourglass.scenario.wifi import Others, Station, Wifi

HEAD = """<!-- SPDX-License-Identifier: Apache-2.0 -->
<!-- Made by `python -m hourglass.scenario.reference > docs/scenario.md`; change the models instead. -->
# The scenario

A scenario is a TOML file: a testbed, the nodes' stack, a test. `hourglass run` takes a file or the name of a built-in
one, and `--set KEY=VALUE` changes a value: the key is dotted, items of lists are numbers
(`testbed.link.0.delay=10ms`), and a preset is written out first. From Python, `hourglass.scenario.load` takes the same
as a dict.

```toml
name = "L100M"
kernel = "6.1"
seed = 1

[testbed]
preset = "L100M"

[stack]
cc = "cubic"
tsq = "3ms"
qdisc = "fq_codel target 2ms interval 20ms"
sysctl = { "net.ipv4.tcp_ecn" = 1 }

[stack.client]
pacing = { ca = 140 }

[test]
name = "tcp_nup"
upload_streams = 4
```

## Values

| kind | written | notes |
|---|---|---|
| rate | `"100mbit"`, `"2.5gbit"` | bit, kbit, mbit, gbit, tbit; factors of 1000; a plain integer is bit/s |
| time | `"10ms"`, `"3us"` | ns, us, ms, s |
| size | `"64KiB"`, `"128KB"` | B, KB (1000), KiB (1024), MB, MiB |
| percentage | `"0.1%"` | exact to a part per billion |
| number of seconds | `30`, `0.2`, `"200ms"` | keys whose unit is s |

Values are exact: what is no whole number of ns, bit/s, bytes or parts per billion is refused. Where a link has two
directions, one value holds for both, and a list of two is [first end to second, second to first].
"""

SECTIONS: tuple[tuple[str, str, type[Table], str], ...] = (
    ("", "Top level", Scenario, ""),
    ("testbed", "`[testbed]`", Testbed, "Either `preset = NAME`, or nodes and links spelled out; `ip` goes with both."),
    ("testbed.node.N", "`[[testbed.node]]`", Node, ""),
    ("testbed.link.N", "`[[testbed.link]]`", Link, "NIC settings hold for both ends."),
    ("testbed.link.N.trace", "`trace` of a link", Traces, ""),
    ("testbed.link.N.trace.there", "One direction's trace", Trace, ""),
    (
        "testbed.wifi.N",
        "`[[testbed.wifi]]`",
        Wifi,
        "A cell: one access point, its stations, one channel. Cells do not hear each other.",
    ),
    ("testbed.wifi.N.station.N", "`[[testbed.wifi.station]]`", Station, ""),
    ("testbed.wifi.N.others", "`others` of a cell", Others, "Written out as nodes, stations and `test.competing`."),
    ("testbed.shaper.N", "`[[testbed.shaper]]`", Shaper, ""),
    ("testbed.netem.N", "`[[testbed.netem]]`", Netem, "For the base RTT. A cable's `delay` needs no queue."),
    (
        "stack",
        "`[stack]`, and `[stack.NODE]` for what differs on a node",
        Stack,
        "Holds for hosts and routers. A node's `pacing` and `sysctl` add to those of all nodes.",
    ),
    ("stack.pacing", "`pacing`", Pacing, ""),
    ("test", "`[test]`", Test, "Pings run from the first to the last moment."),
    ("test.competing.N", "`[[test.competing]]`", Competing, ""),
    ("flow", "`[flow]`", Flow, "Of all bulk flows."),
    ("measure", "`[measure]`", Measure, ""),
    (
        "capture",
        "`[capture]`",
        Capture,
        "Each device becomes NODE-DEVICE.pcapng: times in ns of test time, layer times as packet comments.",
    ),
)

NOTES = """## Notes

* **Shaper.** HTB with one class, `rate` = `ceil`; the stack's qdisc is its leaf.
  Without a shaper the qdisc is the device's root. `pfifo_fast` holds 1000 packets, the device's `txqueuelen`.
* **NIC.** The defaults are those of a BCM5761 (tg3) at Gigabit: interrupts are moderated, so frames arrive in small
  batches.
* **Trace.** Times count from test time 0, when the pings begin. An opportunity of a Mahimahi trace lets one 1500-byte
  packet pass. A trace's file is looked for beside the scenario's file, or in the current folder when there is none.
* **Wi-Fi.** The access point routes between the cell and its other devices. Cells come behind the L links: cell K has
  the subnet 10.0.(L + K).0, the access point .1, the stations .2 and on. Where mac80211 queues by itself (not with
  ath9k_htc) a device has no qdisc unless `qdisc` is another than pfifo_fast: then it is put above mac80211's queues.
  ath9k_htc has the kernel's mq over four pfifo_fast, or the one `qdisc` asks for.
* **Probes.** Each is up to a tenth of its interval late, at random: round intervals would meet periodic states in one
  phase.
* **IPv4 tests** run without IPv6, and IPv6 tests without duplicate address detection and router solicitations.
* **Changing the test** with `--set test.name=…` forgets the stream parameters that the new test does not have.
"""


def reference() -> str:
    """The whole page."""
    parts = [HEAD]
    for place, title, table, note in SECTIONS:
        parts.append(_section(place, title, table, note))
    parts.append(_list("Tests", "test", {name: kind.description for name, kind in TESTS.items()}))
    parts.append(_list("Built-in scenarios", "name", dict(builtin())))
    parts.append(_list("Presets", "name", dict(presets())))
    parts.append(f"## Congestion controls\n\n{_names(CONGESTION_CONTROLS)}\n")
    parts.append(
        f"## Qdiscs\n\nThe first word of `qdisc` is one of {_names(QDISCS)}; the rest is checked by `tc` itself.\n"
    )
    parts.append(_list("Sysctls that other keys decide", "sysctl", OWNED_SYSCTLS))
    return "\n".join([*parts, NOTES])


def _section(place: str, title: str, table: type[Table], note: str) -> str:
    rows = ["| key | type | unit | default | meaning |", "|---|---|---|---|---|"]
    rows += [_row(place, name, field) for name, field in table.model_fields.items() if not field.exclude]
    return "\n".join([f"## {title}\n", *([note, ""] if note else []), *rows, ""])


def _row(place: str, name: str, field: FieldInfo) -> str:
    kind = _kind(field)
    key = f"{place}.{name}" if place else name
    return f"| `{key}` | {kind.type} | {kind.unit} | {_default(name, field)} | {field.description} |".replace(
        "|  |", "| |"
    )


def _kind(field: FieldInfo) -> Kind:
    found = _find_kind(field.annotation) or next((one for one in field.metadata if isinstance(one, Kind)), None)
    if found:
        return found
    assert table_of(field.annotation), field
    return Kind("tables" if "tuple" in str(field.annotation) else "table")


def _find_kind(annotation: Any) -> Kind | None:
    """The Kind inside `Annotated[…, Kind] | None`."""
    for one in get_args(annotation):
        if isinstance(one, Kind):
            return one
        if (found := _find_kind(one)) is not None:
            return found
    return None


def _default(name: str, field: FieldInfo) -> str:
    """As one would write it."""
    if field.is_required():
        return "required"
    if field.default in (None, "", (), {}) or isinstance(field.default, Table):
        return ""
    owner = next(table for _, _, table, _ in SECTIONS if table.model_fields.get(name) is field)
    example = owner.model_construct()
    shown = example.model_dump(include={name}, warnings=False)[name]
    return f"`{str(shown).lower() if isinstance(shown, bool) else shown}`"


def _list(title: str, head: str, rows: dict[str, str]) -> str:
    lines = [f"| `{name}` | {text} |" for name, text in rows.items()]
    return "\n".join([f"## {title}\n", f"| {head} | |", "|---|---|", *lines, ""])


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    sys.stdout.write(reference())

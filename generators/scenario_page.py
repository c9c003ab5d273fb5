# SPDX-License-Identifier: Apache-2.0
"""docs/reference/scenario.md, from the models of `src/hourglass/scenario/`."""

import textwrap
from typing import Any, get_args

from pydantic.fields import FieldInfo

from hourglass.scenario import nics
from hourglass.scenario.apps import App, Apps, Ready
from hourglass.scenario.datagrams import ExtraDatagrams
from hourglass.scenario.device import DeviceStack
from hourglass.scenario.edge import LinkShaper, Policer
from hourglass.scenario.event import Event, LinkChange
from hourglass.scenario.load import builtin, presets
from hourglass.scenario.loss import Loss
from hourglass.scenario.mistakes import table_of
from hourglass.scenario.module import Module
from hourglass.scenario.quantities import TIME, show
from hourglass.scenario.scenario_model import Capture, Measure, Scenario
from hourglass.scenario.stack import Pacing, Stack
from hourglass.scenario.test import Competing, FlowSettings, Test
from hourglass.scenario.testbed import Cpu, Link, Netem, Node, Shaper, Testbed
from hourglass.scenario.testkinds import TESTS
from hourglass.scenario.toml_table import TomlTable
from hourglass.scenario.trace import Trace, Traces
from hourglass.scenario.value_kinds import ValueKind
from hourglass.scenario.vocabulary import CONGESTION_CONTROLS, MULTIQUEUE_QDISCS, OWNED_SYSCTLS, QDISCS, QDISCS_SINCE
from hourglass.scenario.wifi import Others, Station, Wifi

HEAD = """<!-- SPDX-License-Identifier: Apache-2.0 -->
<!-- generated: by `python -m hourglass.contract` from the models in src/hourglass/scenario/: do not edit. -->
# The scenario

A scenario is a TOML file: a testbed, the nodes' stack, a test. `hourglass run` takes a file or the name of a built-in
scenario. `--set KEY=VALUE` changes a value. Keys are dotted, list items are numbered
(`testbed.link.0.delay=10ms`), and presets are expanded first. From Python, `hourglass.scenario.load` takes the same
keys as a dictionary.

The files that a scenario names (programs' files, mounts, traces, C files) are at or below the folder of the scenario
file. Absolute paths, `..`, hidden files and links that lead out of it are refused. So a stranger's scenario reads none
of your other files, except in roots, which may be anywhere: `hourglass show` lists them. The same holds for study
files. Names that you write with `--set` or in Python can be any file.

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

An editor with TOML support can complete and check a scenario while you write it. Add a line `#:schema PATH` to the
file, with the path of `scenario.schema.json`, or of `study.schema.json` for a study's file.
`python -m hourglass.schema FOLDER` writes both to a folder. In a checkout `make setup` has written them to
`src/hourglass/schema/`, which the repository's own scenarios name.

## Values

| kind | written | notes |
|---|---|---|
| rate | `"100mbit"`, `"2.5gbit"` | bit, kbit, mbit, gbit, tbit; factors of 1000; a plain integer is bit/s |
| time | `"10ms"`, `"3us"` | ns, us, ms, s; `per_byte`: ns, ps |
| size | `"64KiB"`, `"128KB"` | B, KB (1000), KiB (1024), MB, MiB. In a `tc` line, `250KB` is 256,000 B |
| percentage | `"0.1%"` | exact to a part per billion |
| number of seconds | `30`, `0.2`, `"200ms"` | keys whose unit is s |

Values are exact: a value that is too fine for its key is refused. If a key of a link has two
directions, one value applies to both. A list of two is [first end to second, second to first].
"""

EITHER = (
    "`forward`: from the first end to the second. `reverse`: from the second to the first. Without"
    " these keys, the table applies to both directions."
)

LINK = (
    "NIC keys apply to both ends. A switch's port to a host or router has the profile `switch`: there, `nic` and the"
    " profile's keys apply to the other end alone."
)

SECTIONS: tuple[tuple[str, str, type[TomlTable], str], ...] = (
    ("", "Top level", Scenario, ""),
    (
        "testbed",
        "`[testbed]`",
        Testbed,
        "Either `preset = NAME`, or nodes and links spelled out. `ip` works with both.",
    ),
    ("testbed.node.N", "`[[testbed.node]]`", Node, ""),
    ("testbed.node.N.cpu", "`cpu` of a node", Cpu, ""),
    ("testbed.link.N", "`[[testbed.link]]`", Link, LINK),
    ("testbed.link.N.loss", "`loss` of a link", Loss, "For one direction, or for both."),
    ("testbed.link.N.trace", "`trace` of a link", Traces, ""),
    ("testbed.link.N.trace.forward", "One direction's trace", Trace, ""),
    ("testbed.link.N.policer.forward", "`policer` of a link", Policer, EITHER),
    ("testbed.link.N.shaper.forward", "`shaper` of a link", LinkShaper, EITHER),
    (
        "testbed.wifi.N",
        "`[[testbed.wifi]]`",
        Wifi,
        "A cell: one access point, its stations, one channel. Cells do not interfere.",
    ),
    ("testbed.wifi.N.station.N", "`[[testbed.wifi.station]]`", Station, ""),
    ("testbed.wifi.N.others", "`others` of a cell", Others, "These become nodes, stations and `test.competing`."),
    ("testbed.shaper.N", "`[[testbed.shaper]]`", Shaper, ""),
    ("testbed.netem.N", "`[[testbed.netem]]`", Netem, "Sets the base RTT. A cable's `delay` needs no queue."),
    (
        "stack",
        "`[stack]`, and `[stack.NODE]` for one node",
        Stack,
        "Applies to hosts and routers. A node's `pacing` and `sysctl` add to those of all nodes.",
    ),
    ("stack.pacing", "`pacing`", Pacing, ""),
    (
        "stack.NODE.device.DEVICE",
        "`[stack.NODE.device.DEVICE]`: one device",
        DeviceStack,
        (
            "Overrides the node's, the common stack's and the link's settings. A radio has only `qdisc`,"
            " `ingress`, `mtu` and `gso_max_segs`."
        ),
    ),
    ("test", "`[test]`", Test, "Pings run during the whole test."),
    ("test.competing.N", "`[[test.competing]]`", Competing, ""),
    (
        "test.datagrams.N",
        "`[[test.datagrams]]`",
        ExtraDatagrams,
        (
            "Either `rate` or `interval`. Each step of `rate` begins with a packet; the others follow at equal"
            " intervals."
        ),
    ),
    (
        "event.N",
        "`[[event]]`",
        Event,
        (
            "Exactly one action: a key from `tc` down. At one instant the order is: samples, ends of streams, events"
            " in the file's order, starts and packets."
        ),
    ),
    ("event.N.set", "`set` of an event", LinkChange, "One value for both directions, or two, as in the link."),
    ("flow", "`[flow]`", FlowSettings, "For all bulk flows."),
    ("apps", "`[apps]`", Apps, "[Run your own programs](../how-to/programs.md) explains how programs run."),
    (
        "app.N",
        "`[[app]]`",
        App,
        "A program in a node. Without `test.name`, the test of a scenario with programs is `none`.",
    ),
    ("app.N.ready", "`ready` of a program", Ready, ""),
    (
        "module.N",
        "`[[module]]`",
        Module,
        (
            "If `cc` or `qdisc` is a file, its content goes into this list ([your own congestion"
            " control](../how-to/congestion-control-files.md)). `scenario.json` of a run contains it."
        ),
    ),
    ("measure", "`[measure]`", Measure, ""),
    (
        "capture",
        "`[capture]`",
        Capture,
        ("Each device becomes NODE-DEVICE.pcapng. Times are in ns of test time, and layer times are packet comments."),
    ),
)

NOTES = """## Notes

* **Shaper.** HTB with one class, `rate` = `ceil`; the stack's qdisc is its leaf.
  Without a shaper the qdisc is the device's root. `pfifo_fast` holds 1000 packets, the device's `txqueuelen`.
* **NIC.** Most NICs moderate interrupts, so frames arrive in small batches. `nic` is a profile: the defaults of the
  keys of a NIC and its driver, for both ends of a link. An interval in the scenario (`rx_usecs`) is not adapted unless
  `moderation` says so, as with `ethtool -C`. A profile does not change the link's rate.
* **Trace.** Times count from test time 0, when the pings begin. An opportunity of a Mahimahi trace lets one 1500-byte
  packet pass. A trace's file is at or below the scenario's folder.
* **Wi-Fi.** The access point routes between the cell and its other devices. After L links, cell K has
  the subnet 10.0.(L + K).0. The access point has .1, and the stations have .2 and on. With mac80211's queues
  (all chips except ath9k_htc), a device has a qdisc only if `qdisc` is not pfifo_fast. The qdisc is then above
  mac80211's queues. ath9k_htc has the kernel's mq over four pfifo_fast, or the `qdisc` of the scenario.
* **Check.** A bound is a comparison (`"< 20ms"`, `">= 90mbit"`, `"== 0"`) or a range with its ends
  (`"10ms..20ms"`), in a unit that fits the figure's. [Test with pytest](../how-to/pytest.md) lists the figures' names.
  Bounds do not change the run: other bounds give the same run.
* **Pings.** Each is up to a tenth of its interval late, at random. Fixed intervals would sample periodic states at one
  phase.
* **IPv4 tests** run without IPv6, and IPv6 tests without duplicate address detection and router solicitations.
* **Changing the test** with `--set test.name=…` removes stream parameters that the new test lacks.
"""


def reference() -> str:
    """Return the whole page."""
    parts = [HEAD]
    for prefix, title, table, note in SECTIONS:
        parts.append(_section(prefix, title, table, note))
    parts.append(_list("Tests", "test", {name: kind.description for name, kind in TESTS.items()}))
    parts.append(_list("Built-in scenarios", "name", dict(builtin())))
    parts.append(_list("Presets", "name", dict(presets())))
    parts.append(_nics())
    parts.append(
        f"## Congestion controls\n\n{_names(CONGESTION_CONTROLS)}\n"
        "Your own can be a file `my_cc.c`, a folder `my_cc/` or a table"
        ' `{ file = "my_cc.c", name = "NAME", parameters = { KEY = VALUE } }`'
        " ([your own congestion control](../how-to/congestion-control-files.md)).\n"
    )
    parts.append(
        f"## Qdiscs\n\n`tc` checks what follows the kind in `qdisc`. {_since()}\n\n{_names(QDISCS)}\n"
        "NICs with [several queues](../how-to/queues.md) also have these. `mq QDISC` is a qdisc on each queue; where a"
        f" device has one queue or a shaper, it is this qdisc.\n\n{_names(MULTIQUEUE_QDISCS)}\n"
        "A custom qdisc works like a custom congestion control. Its options are its module's parameters.\n"
    )
    parts.append(_list("Sysctls that other keys decide", "sysctl", OWNED_SYSCTLS))
    return "\n".join([*parts, NOTES])


def _since() -> str:
    """Return the first kernel release of newer qdiscs."""
    return " ".join(f"`{name}` needs Linux {major}.{minor}." for name, (major, minor) in QDISCS_SINCE.items())


def _nics() -> str:
    """Return the profiles of NICs side by side, and the source of each value."""
    head = [
        "## NICs\n",
        (
            "The defaults that `nic` of a link sets. Some differ in later kernels. Sources: files and lines of"
            " Linux 6.1, below drivers/net/ethernet/.\n"
        ),
    ]
    rows = [f"| key | {' | '.join(f'`{name}`' for name in nics.PROFILES)} |", "|---" * (len(nics.PROFILES) + 1) + "|"]
    for key in nics.KEYS:
        cells = [_profile_value(profile, key) for profile in nics.PROFILES.values()]
        rows.append(f"| `{key}` | {' | '.join(cells)} |")
    parts = [*head, *rows, ""]
    for name, profile in nics.PROFILES.items():
        parts.append(f"* `{name}`: {profile.title}. {profile.unknown}".rstrip())
        parts += [
            f"  * `{key}` {_profile_value(profile, key)}: {source}" for key, (_, source) in profile.values.items()
        ]
        parts += [
            f"  * `{key}` {_nic_value(key, value)}, since Linux {major}.{minor}: {source}"
            for key, ((major, minor), value, source) in profile.since.items()
        ]
        parts += [f"  * `{key}` {value}, MTU above 1500: {source}" for key, (value, source) in profile.jumbo.items()]
    return "\n".join([*parts, ""])


def _profile_value(profile: nics.Profile, key: str) -> str:
    return _nic_value(key, profile.values[key][0])


def _nic_value(key: str, value: nics.Value) -> str:
    if key == "tx_wake" and value == nics.QUARTER:
        return "a quarter of the ring, plus 1"
    if key == "link_up":
        return show(int(value), TIME)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _section(prefix: str, title: str, table: type[TomlTable], note: str) -> str:
    rows = ["| key | type | unit | default | meaning |", "|---|---|---|---|---|"]
    rows += [_row(prefix, name, field) for name, field in table.model_fields.items() if not field.exclude]
    return "\n".join([f"## {title}\n", *([note, ""] if note else []), *rows, ""])


def _row(prefix: str, name: str, field: FieldInfo) -> str:
    kind = _kind(field)
    key = f"{prefix}.{name}" if prefix else name
    return f"| `{key}` | {kind.type} | {kind.unit} | {_default(name, field)} | {field.description} |".replace(
        "|  |", "| |"
    )


def _kind(field: FieldInfo) -> ValueKind:
    kind = _find_kind(field.annotation) or next((item for item in field.metadata if isinstance(item, ValueKind)), None)
    if kind:
        return kind
    assert table_of(field.annotation), field
    return ValueKind("tables" if "tuple" in str(field.annotation) else "table")


def _find_kind(annotation: Any) -> ValueKind | None:
    """Return the Kind inside `Annotated[…, Kind] | None`."""
    for argument in get_args(annotation):
        if isinstance(argument, ValueKind):
            return argument
        if (kind := _find_kind(argument)) is not None:
            return kind
    return None


def _default(name: str, field: FieldInfo) -> str:
    """Return a default as users write it."""
    if field.is_required():
        return "required"
    if field.default in (None, "", (), {}) or isinstance(field.default, TomlTable):
        return ""
    owner = next(table for _, _, table, _ in SECTIONS if table.model_fields.get(name) is field)
    example = owner.model_construct()
    value = example.model_dump(include={name}, warnings=False)[name]
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _list(title: str, head: str, rows: dict[str, str]) -> str:
    lines = [f"| `{name}` | {text} |" for name, text in rows.items()]
    return "\n".join([f"## {title}\n", f"| {head} | meaning |", "|---|---|", *lines, ""])


def _names(names: tuple[str, ...]) -> str:
    """Return names as a block."""
    lines = textwrap.wrap(" ".join(names), 100, break_on_hyphens=False)
    return "\n".join(["```", *lines, "```", ""])

# SPDX-License-Identifier: Apache-2.0
"""Congestion controls and qdiscs of one's own as files: they are compiled in, and do what their formulas say."""

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from hourglass.cli.kernel_new import TEMPLATES, new
from hourglass.errors import InputError
from hourglass.results.diff import diff
from hourglass.results.frames import of
from hourglass.results.recording import Recording
from hourglass.scenario import c_source

from .conftest import KERNELS, Simulate

pytestmark = pytest.mark.guest

AIMD, SOJOURN = TEMPLATES / "aimd.c", TEMPLATES / "sojourn.c"


def bottleneck(**stack: Any) -> dict[str, Any]:
    """client - router - server: 20 Mbit/s behind the router, 50 ms there and back, ten packets of room."""
    nodes = [{"name": "client"}, {"name": "router", "role": "router"}, {"name": "server"}]
    links = [
        {"ends": ["client:eth0", "router:eth0"], "rate": "1gbit", "delay": "5ms"},
        {"ends": ["router:eth1", "server:eth0"], "rate": "20mbit", "delay": "20ms", "gro": False},
    ]
    links[0]["gro"] = False  # a packet is a packet in the router's queue
    return {
        "name": "bottleneck",
        "testbed": {"node": nodes, "link": links},
        "stack": {"router": {"qdisc": "pfifo limit 10"}, **stack},
        "test": {"name": "tcp_nup", "length": 40, "delay": 1},
    }


def cycles(run: Recording) -> list[tuple[float, float, float]]:
    """Of each tooth of the sawtooth but the first three: the peak that it begins after, its mean window and its length,
    both in round trips: each sample counts for the time until the next, in units of its RTT."""
    losses = run.table("cc").filter(pl.col("sender")).pivot("name", index="t_ns", values="value")
    samples = run.tcp.filter(pl.col("sender")).join(losses, on="t_ns").sort("t_ns")
    trips = (pl.col("t_ns").shift(-1) - pl.col("t_ns")) / 1000 / pl.col("rtt")
    teeth = samples.with_columns(trips.alias("trips")).drop_nulls("trips").group_by("losses", maintain_order=True)
    mean = (pl.col("snd_cwnd") * pl.col("trips")).sum() / pl.col("trips").sum()
    found = teeth.agg(pl.col("peak").first(), mean.alias("mean"), pl.col("trips").sum())
    return [tuple(row[1:]) for row in found.sort("losses").rows()[3:-1]]


@pytest.mark.parametrize("share", [512, 768])
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_sawtooth_of_aimd_is_its_formula(simulate: Simulate, kernel: str, share: int) -> None:
    """From bW to W by one segment each round trip: its mean is W (1 + b) / 2, its length W (1 - b) round trips.

    Off by: a round trip of recovery at bW (of a tooth of 20 to 45), half a segment of rounding at either end (of about
    90), and an RTT that is smoothed. Two round trips and 2.5 % of the mean are more than these together.
    """
    own = {"file": str(AIMD), "parameters": {"share": share}}
    run = simulate(bottleneck(cc=own), kernel=kernel)
    teeth = cycles(run)
    left = share / 1024
    assert len(teeth) > 5
    for peak, mean, trips in teeth:
        assert 70 < peak < 120
        assert mean == pytest.approx(peak * (1 + left) / 2, rel=0.025)
        assert trips == pytest.approx(peak * (1 - left), abs=2 + 0.02 * peak)
    columns = {name for (name,) in run.table("cc").select("name").unique().rows()}
    assert columns == {"losses", "peak"}


def test_a_copy_of_the_kernels_cubic_is_that_cubic(simulate: Simulate, tmp_path: Path) -> None:
    """Under another name it sends the same packets at the same ns; with another beta it keeps this share of its window,
    in the same kernel, side by side."""
    new(tmp_path / "mine.c", "cubic", "6.12")
    plain = simulate(bottleneck(cc="cubic"), kernel="6.12")
    copied = simulate(bottleneck(cc=str(tmp_path / "mine.c")), kernel="6.12")
    found = diff(plain, copied)
    assert plain.info.kernel.key != copied.info.kernel.key
    assert copied.info.kernel.name == "6.12+mine.c"
    assert (found.packet, found.tables) == (None, ())
    gentle = {"file": str(tmp_path / "mine.c"), "name": "gentle", "parameters": {"beta": 922, "fast_convergence": 0}}
    both = {**bottleneck(), "test": {**bottleneck()["test"], "upload_streams": 2}}
    both["test"]["flow_cc"] = [{**gentle, "name": "usual", "parameters": {"fast_convergence": 0}}, gentle]
    run = simulate(both, kernel="6.12")
    for flow, beta in zip(run.flows, (717, 922), strict=True):
        rows = run.tcp.filter(pl.col("sender") & (pl.col("stream") == flow.name)).sort("t_ns")
        before = rows.with_columns(pl.col("snd_cwnd", "ca_state").shift(1).name.suffix("_before"))
        cuts = before.filter((pl.col("ca_state") == 3) & (pl.col("ca_state_before") < 3))
        assert cuts.height > 3
        ratio = (cuts["snd_ssthresh"] / (cuts["snd_cwnd_before"] * beta / 1024)).to_list()
        assert ratio == pytest.approx([1] * len(ratio), abs=0.06)  # one ACK's growth and rounding, of 20 and more


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_qdisc_marks_what_waited_longer_than_its_threshold(simulate: Simulate, kernel: str) -> None:
    """As many packets as waited longer, to the packet, but for those that come after the flow; a DCTCP sender hears
    of each of them. Its own statistics say the same."""
    threshold_us = 2000
    wanted = bottleneck(cc="dctcp", sysctl={"net.ipv4.tcp_ecn": 1})
    wanted["stack"]["router"] = {"qdisc": {"file": str(SOJOURN), "parameters": {"threshold": threshold_us}}}
    run = simulate({**wanted, "measure": {"packets": "all"}}, "test.length=10", kernel=kernel)
    own = run.qdisc.filter((pl.col("node") == "router") & (pl.col("device") == "eth1") & (pl.col("kind") == "sojourn"))
    marks = own["overlimits"].max()
    data = run.packets.filter(of(*run.flows) & (pl.col("node") == "router") & pl.col("data"))
    assert own["drops"].max() == 0
    waited = data.filter(pl.col("qdisc_ns") > threshold_us * 1000).height
    late = run.balance.filter(of(*run.flows) & (pl.col("way") == "up"))["dropped"].sum()
    assert waited > 100
    assert waited <= marks <= waited + late
    assert late < 100
    shown = run.qdisc_stats.filter((pl.col("kind") == "sojourn") & (pl.col("device") == "eth1")).sort("t_ns")
    last = dict(shown.group_by("name").last().select("name", "value").rows())
    up = run.packets.filter((pl.col("node") == "router") & (pl.col("way") == "up"))
    pings = up.filter(of(*run.pings) & (pl.col("qdisc_ns") > threshold_us * 1000)).height
    assert last == {"longest_ns": up["qdisc_ns"].max(), "marked": marks, "unmarked": pings}
    assert shown.height == 3 * own.height
    heard = run.tcp.filter(pl.col("sender")).sort("t_ns")["delivered_ce"].to_list()[-1]
    assert 0 <= marks - heard <= 100  # a window is under way at the last sample


PARTS = {
    AIMD: (
        "u32 left(u32 window, int share)", "return max((u32)((u64)window * share >> 10), 2U);",
        "max((u32)((u64)tcp_snd_cwnd(tp) * share >> 10), 2U)", "left(tcp_snd_cwnd(tp), share)",
    ),
    SOJOURN: (
        "bool late(u64 waited_ns, uint threshold)", "return waited_ns > (u64)threshold * NSEC_PER_USEC;",
        "ktime_get_ns() - sojourn_cb(skb)->since_ns > (u64)threshold * NSEC_PER_USEC",
        "late(ktime_get_ns() - sojourn_cb(skb)->since_ns, threshold)",
    ),
}  # fmt: skip
"""Of a template: a function, its body, what it stands for, how it is called."""


def in_two_files(place: Path, file: Path, **defaults: int) -> Path:
    """A folder with a template's code, a function of it in a file of its own, and another program's file; the defaults
    of its parameters are the Makefile's."""
    head, body, plain, call = PARTS[file]
    text = file.read_text().replace(plain, call).replace("#include", '#include "part.h"\n#include', 1)
    for name in defaults:
        text = re.sub(rf"(\b{name} __read_mostly = )\d+", rf"\1FIRST_{name}", text)
    place.mkdir()
    (place / "main.c").write_text(text)
    (place / "part.h").write_text(f"#include <linux/kernel.h>\n#include <linux/ktime.h>\n\n{head};\n")
    (place / "part.c").write_text(f'#include "part.h"\n\n{head}\n{{\n\t{body}\n}}\n')
    (place / "tool.c").write_text("#include <stdio.h>\nint main(void) { return puts(0); }\n")
    flags = " ".join(f"-DFIRST_{name}={value}" for name, value in defaults.items())
    (place / "Makefile").write_text(f"obj-m := both.o\nboth-y := main.o part.o\nccflags-y := {flags}\n")
    return place


@pytest.mark.parametrize("kernel", ["6.1", "6.12"])
def test_a_folder_with_a_makefile_is_the_same_code(simulate: Simulate, tmp_path: Path, kernel: str) -> None:
    """In two files it sends the same packets at the same ns as in one."""
    cc, qdisc = in_two_files(tmp_path / "cc", AIMD, share=768), in_two_files(tmp_path / "qdisc", SOJOURN, threshold=300)

    def made(cc: object, qdisc: object) -> Recording:
        wanted = bottleneck(cc=cc, sysctl={"net.ipv4.tcp_ecn": 1})
        wanted["stack"]["router"] = {"qdisc": qdisc}
        return simulate(wanted, "test.length=5", kernel=kernel)

    parts = made(f"{cc}/", f"{qdisc}/")
    whole = made(
        {"file": str(AIMD), "parameters": {"share": 768}}, {"file": str(SOJOURN), "parameters": {"threshold": 300}}
    )
    assert parts.info.kernel.key != whole.info.kernel.key
    assert parts.tcp["delivered_ce"].max() > 0
    found = diff(parts, whole)
    assert (found.packet, found.tables) == (None, ())


def test_what_the_compiler_says_of_a_folder_names_its_file(simulate: Simulate, tmp_path: Path) -> None:
    place = in_two_files(tmp_path / "cc", AIMD, share=768)
    (place / "part.c").write_text((place / "part.c").read_text().replace("window *", "windw *"))
    with pytest.raises(Exception, match=r"(?m)^part\.c:5:\d+: error: .*'windw'"):
        simulate(bottleneck(cc=f"{place}/"), kernel="6.12")
    (place / "Makefile").write_text("obj-m := main.o\nccflags-y := -DFIRST_share=1\n")
    with pytest.raises(Exception, match=r"undefined reference to .left'"):
        simulate(bottleneck(cc=f"{place}/"), kernel="6.12")


def test_what_the_compiler_says_is_the_message(simulate: Simulate, tmp_path: Path) -> None:
    broken = tmp_path / "broken.c"
    text = c_source.renamed({"broken.c": AIMD.read_text()}, "broken")["broken.c"]
    broken.write_text(text.replace("ca->losses = 0;", "ca->loses = 0;"))
    line = broken.read_text()[: broken.read_text().index("ca->loses")].count("\n") + 1
    with pytest.raises(Exception, match=rf"(?m)^broken\.c:{line}:\d+: error: .*'loses'") as caught:
        simulate(bottleneck(cc=str(broken)), kernel="6.12")
    assert caught.value.status == 2  # type: ignore[attr-defined]
    broken.write_text(
        text.replace("aimd_ssthresh,", "tcp_nothing,").replace("/* Each loss", "u32 tcp_nothing(struct sock *sk);\n/*")
    )
    with pytest.raises(Exception, match=r"undefined reference to .tcp_nothing'"):
        simulate(bottleneck(cc=str(broken)), kernel="6.12")


def test_a_name_that_the_kernels_tree_has_is_refused(simulate: Simulate, tmp_path: Path) -> None:
    mine = tmp_path / "mine.c"
    mine.write_text(SOJOURN.read_text().replace('"sojourn"', '"blackhole"'))
    with pytest.raises(InputError, match=r"this kernel has one in net/sched/sch_blackhole\.c"):
        simulate(bottleneck(qdisc=str(mine)), kernel="6.12")

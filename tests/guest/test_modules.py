# SPDX-License-Identifier: Apache-2.0
"""Custom congestion controls and qdiscs as files: they are compiled in, and behave like their formulas."""

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from hourglass.cli.kernel_new import TEMPLATES, new
from hourglass.errors import InputError
from hourglass.results.diff import diff
from hourglass.results.frames import belongs_to
from hourglass.results.recording import Recording
from hourglass.scenario import c_source

from .conftest import KERNELS, Simulate

pytestmark = pytest.mark.guest

AIMD, SOJOURN = TEMPLATES / "aimd.c", TEMPLATES / "sojourn.c"


def bottleneck(**stack: Any) -> dict[str, Any]:
    """Return client - router - server: 20 Mbit/s after the router, a round trip of 50 ms, a queue of ten packets."""
    nodes = [{"name": "client"}, {"name": "router", "role": "router"}, {"name": "server"}]
    links = [
        {"ends": ["client:eth0", "router:eth0"], "rate": "1gbit", "delay": "5ms"},
        {"ends": ["router:eth1", "server:eth0"], "rate": "20mbit", "delay": "20ms", "gro": False},
    ]
    links[0]["gro"] = False  # each skb in the router's queue is one packet
    return {
        "name": "bottleneck",
        "testbed": {"node": nodes, "link": links},
        "stack": {"router": {"qdisc": "pfifo limit 10"}, **stack},
        "test": {"name": "tcp_nup", "length": 40, "delay": 1},
    }


def cycles(run: Recording) -> list[tuple[float, float, float]]:
    """Return for each tooth of the sawtooth, without the first three, the peak before it, its mean window and its
    length in round trips. Each sample is weighted with the time until the next, in units of its RTT."""
    losses = run.table("cc").filter(pl.col("sender")).pivot("name", index="t_ns", values="value")
    samples = run.tcp.filter(pl.col("sender")).join(losses, on="t_ns").sort("t_ns")
    trips = (pl.col("t_ns").shift(-1) - pl.col("t_ns")) / 1000 / pl.col("rtt")
    teeth = samples.with_columns(trips.alias("trips")).drop_nulls("trips").group_by("losses", maintain_order=True)
    mean = (pl.col("snd_cwnd") * pl.col("trips")).sum() / pl.col("trips").sum()
    figures = teeth.agg(pl.col("peak").first(), mean.alias("mean"), pl.col("trips").sum())
    return [tuple(row[1:]) for row in figures.sort("losses").rows()[3:-1]]


@pytest.mark.parametrize("share", [512, 768])
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_sawtooth_of_aimd_is_its_formula(simulate: Simulate, kernel: str, share: int) -> None:
    """The window rises from bW to W by one segment per round trip. Its mean is W (1 + b) / 2, and the length of a tooth
    is W (1 - b) round trips.

    Recovery takes a round trip at bW (a tooth has 20 to 45). Rounding is half a segment at either end (of about 90).
    The RTT is smoothed. Two round trips and 2.5 % of the mean exceed the sum of these deviations.
    """
    cc = {"file": str(AIMD), "parameters": {"share": share}}
    run = simulate(bottleneck(cc=cc), kernel=kernel)
    teeth = cycles(run)
    left = share / 1024
    assert len(teeth) > 5
    for peak, mean, trips in teeth:
        assert 70 < peak < 120
        assert mean == pytest.approx(peak * (1 + left) / 2, rel=0.025)
        assert trips == pytest.approx(peak * (1 - left), abs=2 + 0.02 * peak)
    columns = {name for (name,) in run.table("cc").select("name").unique().rows()}
    assert columns == {"losses", "peak"}


@pytest.mark.kernels
def test_copies_of_the_kernels_cubic_and_pie_behave_like_them(simulate: Simulate, tmp_path: Path) -> None:
    """With another name CUBIC sends the same packets at the same ns; PIE, whose functions the kernel exports to fq_pie,
    drops the same. With another beta CUBIC retains this share of its window, in the same kernel, next to the
    original."""
    new(tmp_path / "mine.c", "cubic", "6.12")
    new(tmp_path / "pi.c", "pie", "6.12")
    plain = simulate(bottleneck(cc="cubic", router={"qdisc": "pie"}), kernel="6.12")
    router = {"qdisc": str(tmp_path / "pi.c")}
    copied = simulate(bottleneck(cc=str(tmp_path / "mine.c"), router=router), kernel="6.12")
    assert plain.info.kernel.key != copied.info.kernel.key
    assert copied.info.kernel.name == "6.12+mine.c+pi.c"
    assert diff(plain, copied).packet is None
    assert [run.qdisc.filter(kind=kind)["drops"].max() > 0 for run, kind in ((plain, "pie"), (copied, "pi"))] == [1, 1]
    gentle = {"file": str(tmp_path / "mine.c"), "name": "gentle", "parameters": {"beta": 922, "fast_convergence": 0}}
    two_flows = {**bottleneck(), "test": {**bottleneck()["test"], "upload_streams": 2}}
    two_flows["test"]["flow_cc"] = [{**gentle, "name": "usual", "parameters": {"fast_convergence": 0}}, gentle]
    run = simulate(two_flows, kernel="6.12")
    for flow, beta in zip(run.flows, (717, 922), strict=True):
        rows = run.tcp.filter(pl.col("sender") & (pl.col("stream") == flow.name)).sort("t_ns")
        before = rows.with_columns(pl.col("snd_cwnd", "ca_state").shift(1).name.suffix("_before"))
        cuts = before.filter((pl.col("ca_state") == 3) & (pl.col("ca_state_before") < 3))
        assert cuts.height > 3
        ratio = (cuts["snd_ssthresh"] / (cuts["snd_cwnd_before"] * beta / 1024)).to_list()
        assert ratio == pytest.approx([1] * len(ratio), abs=0.06)  # growth and rounding of one ACK, of at least 20


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_qdisc_marks_packets_that_waited_longer_than_its_threshold(simulate: Simulate, kernel: str) -> None:
    """The number of marks equals the packets that waited longer, apart from packets after the flow. A DCTCP sender gets
    a report of each mark. The qdisc's statistics agree."""
    threshold_us = 2000
    source = bottleneck(cc="dctcp", sysctl={"net.ipv4.tcp_ecn": 1})
    source["stack"]["router"] = {"qdisc": {"file": str(SOJOURN), "parameters": {"threshold": threshold_us}}}
    run = simulate({**source, "measure": {"packets": "all"}}, "test.length=10", kernel=kernel)
    samples = run.qdisc.filter(
        (pl.col("node") == "router") & (pl.col("device") == "eth1") & (pl.col("kind") == "sojourn")
    )
    marks = samples["overlimits"].max()
    data = run.packets.filter(belongs_to(*run.flows) & (pl.col("node") == "router") & pl.col("data"))
    assert samples["drops"].max() == 0
    waited = data.filter(pl.col("qdisc_ns") > threshold_us * 1000).height
    late = run.balance.filter(belongs_to(*run.flows) & (pl.col("way") == "up"))["dropped"].sum()
    assert waited > 100
    assert waited <= marks <= waited + late
    assert late < 100
    statistics = run.qdisc_stats.filter((pl.col("kind") == "sojourn") & (pl.col("device") == "eth1")).sort("t_ns")
    last = dict(statistics.group_by("name").last().select("name", "value").rows())
    up = run.packets.filter((pl.col("node") == "router") & (pl.col("way") == "up"))
    pings = up.filter(belongs_to(*run.pings) & (pl.col("qdisc_ns") > threshold_us * 1000)).height
    assert last == {"longest_ns": up["qdisc_ns"].max(), "marked": marks, "unmarked": pings}
    assert statistics.height == 3 * samples.height
    acknowledged_ce = run.tcp.filter(pl.col("sender")).sort("t_ns")["delivered_ce"].to_list()[-1]
    assert 0 <= marks - acknowledged_ce <= 100  # a window is in flight at the last sample


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
"""Parts of each template: a function, its body, the replaced code, and the call."""


def in_two_files(folder: Path, file: Path, **defaults: int) -> Path:
    """Write a folder with a template's code, one of its functions in a separate file, and a file of another program.
    The Makefile has the defaults of the parameters."""
    head, body, plain, call = PARTS[file]
    text = file.read_text().replace(plain, call).replace("#include", '#include "part.h"\n#include', 1)
    for name in defaults:
        text = re.sub(rf"(\b{name} __read_mostly = )\d+", rf"\1FIRST_{name}", text)
    folder.mkdir()
    (folder / "main.c").write_text(text)
    (folder / "part.h").write_text(f"#include <linux/kernel.h>\n#include <linux/ktime.h>\n\n{head};\n")
    (folder / "part.c").write_text(f'#include "part.h"\n\n{head}\n{{\n\t{body}\n}}\n')
    (folder / "tool.c").write_text("#include <stdio.h>\nint main(void) { return puts(0); }\n")
    flags = " ".join(f"-DFIRST_{name}={value}" for name, value in defaults.items())
    (folder / "Makefile").write_text(f"obj-m := both.o\nboth-y := main.o part.o\nccflags-y := {flags}\n")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["6.1", "6.12"])
def test_a_folder_with_a_makefile_is_the_same_code(simulate: Simulate, tmp_path: Path, kernel: str) -> None:
    """Code in two files sends the same packets at the same ns as in one file."""
    cc, qdisc = in_two_files(tmp_path / "cc", AIMD, share=768), in_two_files(tmp_path / "qdisc", SOJOURN, threshold=300)

    def run_with(cc: object, qdisc: object) -> Recording:
        source = bottleneck(cc=cc, sysctl={"net.ipv4.tcp_ecn": 1})
        source["stack"]["router"] = {"qdisc": qdisc}
        return simulate(source, "test.length=5", kernel=kernel)

    split = run_with(f"{cc}/", f"{qdisc}/")
    single = run_with(
        {"file": str(AIMD), "parameters": {"share": 768}}, {"file": str(SOJOURN), "parameters": {"threshold": 300}}
    )
    assert split.info.kernel.key != single.info.kernel.key
    assert split.tcp["delivered_ce"].max() > 0
    difference = diff(split, single)
    assert (difference.packet, difference.tables) == (None, ())


@pytest.mark.kernels
def test_a_compiler_error_in_a_folder_names_its_file(simulate: Simulate, tmp_path: Path) -> None:
    folder = in_two_files(tmp_path / "cc", AIMD, share=768)
    (folder / "part.c").write_text((folder / "part.c").read_text().replace("window *", "windw *"))
    with pytest.raises(Exception, match=r"(?m)^part\.c:5:\d+: error: .*'windw'"):
        simulate(bottleneck(cc=f"{folder}/"), kernel="6.12")
    (folder / "Makefile").write_text("obj-m := main.o\nccflags-y := -DFIRST_share=1\n")
    with pytest.raises(Exception, match=r"undefined reference to .left'"):
        simulate(bottleneck(cc=f"{folder}/"), kernel="6.12")


@pytest.mark.kernels
def test_a_compiler_error_is_the_message(simulate: Simulate, tmp_path: Path) -> None:
    broken = tmp_path / "broken.c"
    text = c_source.renamed({"broken.c": AIMD.read_text()}, "broken")["broken.c"]
    broken.write_text(text.replace("ca->losses = 0;", "ca->loses = 0;"))
    line = broken.read_text()[: broken.read_text().index("ca->loses")].count("\n") + 1
    with pytest.raises(Exception, match=rf"(?m)^broken\.c:{line}:\d+: error: .*'loses'") as caught:
        simulate(bottleneck(cc=str(broken)), kernel="6.12")
    assert caught.value.status == 2  # type: ignore[attr-defined]
    broken.write_text(
        text.replace("aimd_ssthresh,", "tcp_nothing,").replace(
            "static u32 aimd_ssth", "u32 tcp_nothing(struct sock *sk);\nstatic u32 aimd_ssth"
        )
    )
    with pytest.raises(Exception, match=r"undefined reference to .tcp_nothing'"):
        simulate(bottleneck(cc=str(broken)), kernel="6.12")


@pytest.mark.kernels
def test_a_name_in_the_kernels_tree_is_refused(simulate: Simulate, tmp_path: Path) -> None:
    file = tmp_path / "file.c"
    file.write_text(SOJOURN.read_text().replace('"sojourn"', '"blackhole"'))
    with pytest.raises(InputError, match=r"this kernel already has it, in net/sched/sch_blackhole\.c"):
        simulate(bottleneck(qdisc=str(file)), kernel="6.12")

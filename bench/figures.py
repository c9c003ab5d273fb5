# SPDX-License-Identifier: Apache-2.0
"""List the rows: each with its measurement and the computation of its figure.

Add a row here. A measurement that several rows share runs once in each round.
"""

import math
from collections.abc import Iterator
from functools import partial

from bench import cases, machine, measure, peers
from bench.cases import CASES, Case
from bench.rows import Measurement, Row, Samples, least, middle, most, over, slope_ms
from hourglass.contract.kernels import DEFAULT
from hourglass.engine.native import Native

CONFINED, PAIRS = cases.segments(cases.FLOWS[0]), 12
"""The case that runs with and without the sandbox, and the pairs of a round."""
AT_ONCE = 3
"""Runs of a case for each run of ns-3, which takes much longer."""

LOADED, LOADED_NS3, RATIO_NS3, PEAK = "ms_per_loaded_second", "ns3_ms_per_loaded_second", "ns3_ratio", "peak_mib"
WIDE = {LOADED: "Hourglass", LOADED_NS3: "ns-3", RATIO_NS3: "x ns-3", PEAK: "MiB"}
"""Groups that are the columns of one table. Its rows are the cases."""


def rows(build: bool = False) -> list[Row]:
    """Return all rows. `build`: also that of the kernel's build, which takes minutes."""
    result = [*of_cases(), *of_commands(), *of_segments(), *of_crowds(), *of_programs(), *of_the_machine()]
    return [*result, *of_a_build()] if build else result


def of_cases() -> Iterator[Row]:
    """Yield the rows about the cost of a loaded second."""
    for case in CASES:
        name, ns3_name = case.name, f"{case.name} in ns-3"
        measurement = Measurement(name, partial(run_case, case))
        ours, target = slope_ms(name, (case.short_s, case.long_s)), case.target_ms or math.inf
        yield Row(LOADED, name, "ms", "a second under load", measurement, ours, at_most=target)
        yield Row(PEAK, name, "MiB", "the most that its kernel had", measurement, most(f"{name} MiB"))
        if case.ns3:
            theirs, run = slope_ms(ns3_name, case.ns3_s), Measurement(ns3_name, partial(run_ns3, case), rounds=2)
            yield Row(LOADED_NS3, name, "ms", "the same in ns-3", run, theirs)
            yield Row(RATIO_NS3, name, "x", "ns-3's over ours", run, over(theirs, ours))


def run_case(case: Case, samples: Samples) -> None:
    for length_s in (case.short_s, case.long_s) * AT_ONCE:
        done = measure.run(case.scenario(length_s))
        samples.add(**{f"{case.name}, {length_s:g} s": done.wall_s, f"{case.name} MiB": done.peak_mib})


def run_ns3(case: Case, samples: Samples) -> None:
    for length_s in case.ns3_s:
        samples.add(**{f"{case.name} in ns-3, {length_s:g} s": peers.ns3_s(*case.ns3, length_s)[0]})


def of_commands() -> Iterator[Row]:
    """Yield the rows about the time of commands."""
    start, l100m = Measurement("commands: pings", pings), Measurement("commands: L100M", main_job)
    report = Measurement("report", lambda samples: samples.add(report=measure.report_s()), rounds=1)
    yield Row("start_ms", "ready", "ms", "boot and set-up of three nodes, to test time 0", start, least("ready", 1e3))
    yield Row("start_ms", "guest", "ms", "the guest for 1 s of pings", start, least("pings", 1e3))
    yield Row("start_ms", "command", "ms", "`hourglass run` for it, no picture", start, least("command", 1e3))
    yield Row("L100M_ms", "before", "ms", "`hourglass run L100M` until its guest begins", l100m, least("before", 1e3))
    yield Row("L100M_ms", "guest", "ms", "its guest", l100m, least("guest", 1e3))
    yield Row("L100M_ms", "table", "ms", "from there until the table is printed", l100m, least("table", 1e3))
    yield Row("L100M_ms", "picture", "ms", "from there to the end: the picture", l100m, least("picture", 1e3))
    yield Row("L100M_ms", "command", "ms", "all of it", l100m, least("whole", 1e3))
    yield Row("L100M_ms", "over guest", "x", "all of it over its guest", l100m, middle("over guest"))
    reported = f"`hourglass report` about {measure.REPORTED} such runs"
    yield Row("L100M_ms", "report", "ms", reported, report, least("report", 1e3))
    measured, bare = (slope_ms(name, ends) for name, ends in cases.MEASURED_AND_BARE)
    loaded = f"all measurements over none: a loaded second of {cases.SAMPLED_CASE}"
    yield Row("measurement_ratio", "loaded second", "x", loaded, l100m, over(measured, bare))
    all_of_it = "the same: `hourglass run L100M`"
    yield Row("measurement_ratio", "command", "x", all_of_it, l100m, over(least("whole"), least("bare")))
    confined = Measurement("sandbox", confine)
    about = "the guest's CPU time with the sandbox over that without"
    yield Row("sandbox_ratio", "cpu", "x", about, confined, middle("sandbox"), "sandbox")
    sweep = Measurement("sweep", swept, rounds=2)
    about = f"a sweep of {cases.SWEPT} runs of 2 s: of the CPUs' time it used"
    yield Row("sweep_percent", "used", "%", about, sweep, most("sweep used"), at_least=95)
    yield Row("sweep_percent", "guests", "%", "of the CPUs' time its guests had", sweep, most("sweep guests"))


def pings(samples: Samples) -> None:
    arguments = ["L100M", *cases.options(cases.PING), "--no-picture", "--json"]
    for _ in range(AT_ONCE):
        done, command = measure.run(cases.pings()), measure.command(arguments)
        samples.add(ready=done.ready_s, pings=done.wall_s, command=command.all_s)


def main_job(samples: Samples) -> None:
    """Time a command with all measurements, table and picture, and one without measurements."""
    for _ in range(AT_ONCE):
        cost = measure.command(["L100M"])
        parts = {"before": cost.before_s, "guest": cost.guest_s, "table": cost.output_s, "picture": cost.after_s}
        samples.add(**parts, **{"whole": cost.all_s, "over guest": cost.all_s / cost.guest_s})
        samples.add(bare=measure.command(["L100M", *cases.options(cases.BARE)]).all_s)


def confine(samples: Samples) -> None:
    for ratio in measure.sandbox_ratios(CONFINED.scenario(CONFINED.long_s), PAIRS):
        samples.add(sandbox=ratio)


def swept(samples: Samples) -> None:
    cores, guests = measure.swept()
    samples.add(**{"sweep used": cores * 100, "sweep guests": guests * 100})


def of_segments() -> Iterator[Row]:
    """Yield the rows about CPU time per delivered data segment: in a guest and on this machine's kernel, with four
    flows and 1,000."""
    guest = Measurement("segments", segments)
    host = Measurement("segments on this machine's kernel", host_segments, until="guest over host")
    uncut = Measurement("segments on this machine's kernel, uncut", uncut_segments, rounds=2)
    few, many = (f"{flows:,} flows" for flows in cases.FLOWS)
    us = "segment_us"
    yield Row(us, "guest", "us", "of CPU per data segment of L100M, three nodes", guest, middle(few, 1e6))
    yield Row(us, "guest bare", "us", "with nothing measured", guest, middle(f"{few}, bare", 1e6))
    yield Row(us, "host", "us", "this machine's kernel, packet by packet", host, middle("host", 1e6), "host")
    yield Row(us, "host uncut", "us", "with TCP's skbs never cut", uncut, middle("host uncut", 1e6))
    name = "guest over host"
    yield Row("segment_ratio", name, "x", "the guest over this machine's kernel", host, middle(name), name)
    name = "guest bare over host"
    yield Row("segment_ratio", name, "x", "with nothing measured", host, middle(name), name)
    cost = f"a segment of {many} over one of {few}"
    yield Row("segment_ratio", "many", "x", cost, guest, over(middle(many), middle(few)), at_most=1.3)
    bare = over(middle(f"{many}, bare"), middle(f"{few}, bare"))
    yield Row("segment_ratio", "many bare", "x", f"{cost}, nothing measured", guest, bare, at_most=1.3)
    yield Row("segment_ratio", "many host", "x", f"{cost}, this machine's kernel", host, middle("many"), "many")
    loaded_ms = over(middle("host"), lambda _: 1.0, 1e3 * cases.SEGMENTS_PER_S)
    about = "a loaded second of 4 CUBIC, 100M on this machine's kernel: so many segments"
    yield Row("host", "ms_per_loaded_second", "ms", about, host, loaded_ms)
    ns3 = slope_ms(f"{cases.SAMPLED_CASE} in ns-3", (1, 2))
    yield Row("host", "ns3_ratio", "x", "ns-3's over that", host, over(ns3, loaded_ms))


def segments(samples: Samples) -> None:
    for flows in cases.FLOWS:
        delivered: dict[float, int] = {}
        name = f"{flows:,} flows"
        samples.add(**{name: measure.segment_s(cases.segments(flows), delivered)})
        samples.add(**{f"{name}, bare": measure.segment_s(cases.segments(flows, *cases.BARE), delivered)})


def host_segments(samples: Samples) -> None:
    """Measure on this machine's kernel, and in guests at the same time."""
    host, (few, many) = Native.ready(), (cases.on_host(flows, *cases.FRAMES) for flows in cases.FLOWS)
    delivered: dict[float, int] = {}
    guest_s = measure.segment_s(cases.segments(cases.FLOWS[0]), delivered)
    bare_s = measure.segment_s(cases.segments(cases.FLOWS[0], *cases.BARE), delivered)
    few_s, many_s = (peers.host_segment_s(host, case, cases.HOST_BEGIN_S) for case in (few, many))
    samples.add(**{"host": few_s, "guest over host": guest_s / few_s, "guest bare over host": bare_s / few_s})
    samples.add(many=many_s / few_s)


def uncut_segments(samples: Samples) -> None:
    uncut = cases.on_host(cases.FLOWS[0])
    samples.add(**{"host uncut": peers.host_segment_s(Native.ready(), uncut, cases.HOST_BEGIN_S)})


def of_crowds() -> Iterator[Row]:
    """Thousands of flows, and of nodes."""
    connected = Measurement("1,000 flows connect", connect)
    crowd, nodes = Measurement("10,000 flows", crowded, rounds=1), Measurement("1,000 nodes", noded, rounds=1)
    about = "the guest until 1,000 flows are connected, its end included"
    yield Row("flows_1000", "connected_s", "s", about, connected, least("connected"), at_most=0.5)
    yield Row("flows_10000", "wall_s", "s", "10,000 flows for a second", crowd, least("crowd"))
    yield Row("flows_10000", "mib", "MiB", "the most that its kernel had", crowd, most("crowd MiB"))
    about = "1,000 nodes at two routers: set-up per node"
    yield Row("nodes_1000", "ms", "ms", about, nodes, least("nodes"), at_most=5)
    yield Row("nodes_1000", "kb", "KB", "memory of its kernel per node", nodes, most("nodes KB"), at_most=200)
    yield Row("nodes_1000", "plan_s", "s", "until there is a plan", nodes, least("nodes plan"))


def connect(samples: Samples) -> None:
    done = measure.run(cases.connected())
    assert done.flows == 1000
    samples.add(connected=done.wall_s)


def crowded(samples: Samples) -> None:
    done = measure.run(cases.crowd(10_000))
    samples.add(**{"crowd": done.wall_s, "crowd MiB": done.peak_mib})


def noded(samples: Samples) -> None:
    few, many = measure.run(cases.nodes(4)), measure.run(cases.nodes(1000))
    samples.add(nodes=(many.ready_s - few.ready_s) / 996 * 1e3)
    samples.add(**{"nodes KB": (many.peak_mib - few.peak_mib) / 996 * 1024, "nodes plan": many.plan_s})


def of_programs() -> Iterator[Row]:
    """Yield the rows about the cost of programs in nodes."""
    by = Measurement("programs", lambda samples: samples.add(**measure.programs_s()), rounds=2)
    us = "program_us"
    yield Row(us, "call", "us", "of CPU a system call of a program", by, middle("call", 1e6))
    yield Row(us, "clock", "us", "a look at a clock", by, middle("clock", 1e6))
    yield Row(us, "fault", "us", "mmap(), a fault, munmap()", by, middle("fault", 1e6))
    yield Row(us, "fork", "us", "fork() and exit", by, middle("fork", 1e6))
    yield Row(us, "exec", "us", "with an exec()", by, middle("exec", 1e6))
    yield Row("program_ratio", "iperf3", "x", "iperf3 over a built-in flow", by, over(middle("iperf3"), middle("flow")))


def of_the_machine() -> Iterator[Row]:
    """Yield the rows about the machine."""
    memory, counters = Measurement("memory", look_at_memory), Measurement("counters", count, rounds=1)
    for name in machine.WORKING_SETS:
        yield Row("latency_ns", name, "ns", f"a load that waits for the one before, of {name}", memory, least(name))
    yield Row("machine_gb_s", "copy", "GB/s", "memcpy() of blocks that fit no cache", memory, most("copy"))
    for name in machine.COUNTERS:
        about = f"{name} per data segment of L100M"
        yield Row("segment_counts", name, "", about, counters, middle(f"{name} a segment"))


def look_at_memory(samples: Samples) -> None:
    samples.add(**machine.latencies_ns(), copy=machine.copied_gb_s())


def count(samples: Samples) -> None:
    counts = measure.counted_per_segment(cases.segments(cases.FLOWS[0]))
    samples.add(**{f"{name} a segment": number for name, number in counts.items()})


def of_a_build() -> Iterator[Row]:
    """Yield the rows about the build of a kernel from its source."""
    by = Measurement("build of a kernel", build, rounds=1)
    about = f"`hourglass kernel build {DEFAULT}` from nothing but its source"
    yield Row("build_s", "wall", "s", about, by, least("build"))
    yield Row("build_s", "cpu", "s", "of CPU for it", by, least("build CPU"))


def build(samples: Samples) -> None:
    spent = measure.build()
    samples.add(**{"build": spent.wall_s, "build CPU": spent.cpu_s})

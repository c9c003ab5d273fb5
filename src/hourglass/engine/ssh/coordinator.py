# SPDX-License-Identifier: Apache-2.0
"""Coordinate all hosts of a run: set up, start together, compare clocks, fetch the records, end.

    set up      every agent executes its steps; then each waits for its neighbours (`reach`)
    before      clocks are compared; the test starts at one instant, sent to each host in its own time
    during      one clock request a second, which also detects a lost connection
    after       clocks are compared again; records are fetched; all settings are restored

If a host fails or disconnects, the coordinator closes all connections. Each agent then restores its host, and the
coordinator waits for it."""

import contextlib
import os
import selectors
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from hourglass.contract.plan import Plan
from hourglass.engine import supervise
from hourglass.engine.base import Report
from hourglass.engine.ssh import clocks, split
from hourglass.engine.ssh.channel import Channel, padded
from hourglass.engine.ssh.clocks import Clock
from hourglass.engine.ssh.one_way_delay import HostRecords
from hourglass.errors import GuestError

SILENCE_S = 20.0
"""Wall seconds after which a host without a message has failed. Its clock is requested every second."""
MAX_PENDING = 20
"""Clock requests without a reply, after which no more are sent."""
ALLOWANCE_S = 120.0
"""Wall seconds that each phase may take beyond its known duration."""
RESTORE_S = 20.0
"""Wall seconds in which a disconnected host must restore its settings."""
CLOCK_REQUESTS = 40
"""Clock requests to each host before and after the test."""
PAUSE_S = 0.005
"""The pause between clock requests, so that they do not share a queue."""
LEAD_NS = 300_000_000
"""The time from the last message to the start of the test. Agents open sockets and files in it. It grows by 1 ms for
each stream."""


@dataclass
class Coordinator:
    """Coordinates the hosts of a plan; `agents`: the agent's file for each node."""

    plan: Plan
    directory: Path
    agents: Mapping[str, bytes]
    report: Report
    log: BinaryIO
    channels: list[Channel] = field(default_factory=list)
    _selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    _next_report_s: float = 0.0

    def run(self) -> tuple[list[HostRecords], int]:
        """Run the plan; return the hosts' records, and the test time of the end. Raises the errors of `Engine.run`."""
        with self._connected():
            self._await_all("set", ALLOWANCE_S + self._step_timeouts_s())
            self._send_all("reach")
            self._await_all("reached", ALLOWANCE_S + self._step_timeouts_s())
            clocks_before = self._compare_clocks()
            start_ns = time.monotonic_ns() + LEAD_NS + len(self.plan.streams) * 10**6
            starts = {channel.host.node: clocks_before[channel.host.node].theirs(start_ns) for channel in self.channels}
            exchanges_before = {channel.host.node: list(channel.exchanges) for channel in self.channels}
            for channel in self.channels:
                channel.exchanges.clear()
                channel.send(f"start {starts[channel.host.node]}")
            self._await_all("measured", self.plan.end_ns / 1e9 + ALLOWANCE_S)
            exchanges_during = {channel.host.node: list(channel.exchanges) for channel in self.channels}
            for channel in self.channels:
                channel.exchanges.clear()
            self._compare_clocks()
            exchanges_after = {channel.host.node: list(channel.exchanges) for channel in self.channels}
            self._send_all("records")
            self._await_all("records", ALLOWANCE_S + self.plan.end_ns / 1e9)  # they grow with the test
            self._send_all("end")
            self._await_all("done", ALLOWANCE_S)
            ends = [channel.end_ns or self.plan.end_ns for channel in self.channels]
            ahead_ns = time.time_ns() - time.monotonic_ns()
            host_records = [
                HostRecords(
                    node=(node := channel.host.node),
                    records=channel.records,
                    theirs_ns=starts[node],
                    ours_ns=start_ns,
                    clock=clocks.estimate_clock(exchanges_before[node], exchanges_during[node], exchanges_after[node]),
                    devices=channel.host.devices,
                    ours_ahead_ns=ahead_ns,
                )
                for channel in self.channels
            ]
            return host_records, max(ends)

    def _step_timeouts_s(self) -> float:
        """Return the sum of the time-outs of the set-up's steps."""
        waits = [getattr(step, "timeout_ns", 0) for step in self.plan.setup]
        return sum(waits) / 1e9

    @contextlib.contextmanager
    def _connected(self) -> Iterator[None]:
        """Connect all hosts and send them their parts of the plan. After an error, disconnect and wait until they have
        restored their settings. At the end, kill all ssh."""
        try:
            for host in split.hosts(self.plan):
                agent = padded(self.agents[host.node])
                channel = Channel(host, self.log, self.directory / f".{host.node}.arrows", agent)
                channel.start()
                self.channels.append(channel)
                for pipe in (channel.child.stdout, channel.child.stderr):
                    assert pipe is not None
                    os.set_blocking(pipe.fileno(), False)
                    self._selector.register(pipe, selectors.EVENT_READ, channel)
            with ThreadPoolExecutor(len(self.channels)) as pool:
                plans = [split.part(self.plan, channel.host).to_json() for channel in self.channels]
                list(pool.map(Channel.feed, self.channels, plans))
            yield
        except BaseException:
            self._restore()
            raise
        finally:
            for channel in self.channels:
                channel.kill()
            self._selector.close()

    def _restore(self) -> None:
        """Disconnect all hosts, and wait until each has ended, at most `RESTORE_S`."""
        for channel in self.channels:
            channel.hang_up()
        deadline = time.monotonic() + RESTORE_S
        while not all(channel.closed for channel in self.channels) and time.monotonic() < deadline:
            self._receive(0.2)

    def _send_all(self, order: str) -> None:
        for channel in self.channels:
            channel.send(order)

    def _compare_clocks(self) -> dict[str, Clock]:
        """Request each host's clock many times, one request at a time. Return the estimates."""
        for _ in range(CLOCK_REQUESTS):
            for channel in self.channels:
                channel.query_clock()
                self._wait(lambda channel=channel: [channel] if channel.pending else [], SILENCE_S)  # type: ignore[misc]
            time.sleep(PAUSE_S)
        return {channel.host.node: clocks.estimate_clock(channel.exchanges, [], []) for channel in self.channels}

    def _await_all(self, message: str, longest_s: float) -> None:
        """Wait until all hosts have sent a message."""
        self._wait(lambda: [channel for channel in self.channels if message not in channel.reached], longest_s)

    def _wait(self, slow: Callable[[], list[Channel]], longest_s: float) -> None:
        """Receive messages until no host is slow. Raises the error of a host, also if `longest_s` is over."""
        deadline = time.monotonic() + longest_s
        while awaited := slow():
            now = time.monotonic()
            self._raise_failures(now, awaited if now > deadline else [])
            if now >= self._next_report_s:
                self._next_report_s = now + 1
                for channel in self.channels:
                    if "set" in channel.reached and len(channel.pending) < MAX_PENDING:
                        channel.query_clock()
                slowest_ns = min(channel.test_ns for channel in self.channels)
                if slowest_ns:
                    self.report(min(slowest_ns, self.plan.end_ns) / 1e9, self.plan.end_ns / 1e9)
            self._receive(min(0.5, max(0.0, self._next_report_s - now)))

    def _receive(self, longest_s: float) -> None:
        for key, _ in self._selector.select(longest_s):
            channel: Channel = key.data
            data = os.read(key.fd, 1 << 20)
            if not data:
                self._selector.unregister(key.fileobj)
                channel.closed = channel.closed or key.fileobj is channel.child.stdout
            elif key.fileobj is channel.child.stdout:
                channel.receive(data)
            else:
                for line in data.splitlines():
                    channel.write(line)

    def _raise_failures(self, now: float, overdue: list[Channel]) -> None:
        """Raise the error of a host that failed, ended, sends nothing or is overdue."""
        for channel in self.channels:
            if channel.error is not None:
                raise supervise.step_error(
                    {"node": channel.host.node, **_without_nulls(channel.error)}, self.directory, channel.tail
                )
        for channel in self.channels:
            label = f"{channel.host.node} ({channel.host.destination})"
            when = f"at {channel.test_ns / 1e9:g} s of test time" if "ready" in channel.reached else "during the set-up"
            if channel.closed and "done" not in channel.reached:
                with contextlib.suppress(Exception):
                    channel.child.wait(1)
                self._receive(0.1)
                status = channel.child.returncode
                how = "" if status is None else f" (ssh: exit status {status})"
                problem = f"the connection to {label} ended {when}{how}"
                raise GuestError(problem, self.directory / "console.log", channel.tail, code="host-lost")
            silent = (
                now - channel.last_message_s > SILENCE_S and "set" in channel.reached and "done" not in channel.reached
            )
            if silent or channel in overdue:
                code, problem = (
                    ("host-silent", f"{label} sent nothing for {SILENCE_S:g} s {when}")
                    if silent
                    else ("host-overdue", f"{label} exceeded its time {when}")
                )
                raise GuestError(problem, self.directory / "console.log", channel.tail, code=code)


def _without_nulls(event: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in event.items() if value is not None}

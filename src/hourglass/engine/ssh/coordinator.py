# SPDX-License-Identifier: Apache-2.0
"""Coordinate all hosts of a run: set up, start together, compare clocks, fetch the records, end.

    set up      every agent executes its steps; then each waits for its neighbours (`reach`)
    before      clocks are compared; the test starts at one instant, sent to each host in its own time
    during      one request a second, which also detects a lost connection
    after       clocks are compared again; records are fetched; all settings are restored

If a host fails or disconnects, the other connections are closed, which makes the agents restore their hosts; then they
are waited for."""

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
"""Wall seconds without a message after which a host is lost: its clock is requested every second."""
SET_UP_S = 120.0
"""For the set-up, which sends no messages, beyond the time-outs of its steps."""
RESTORE_S = 20.0
"""For a disconnected host to restore its settings."""
QUESTIONS = 40
"""Clock requests to each host before and after the test."""
PAUSE_S = 0.005
"""Between them, so that they do not share a queue."""
LEAD_NS = 300_000_000
"""From the last message before the test to its start: agents open their sockets and files."""


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
    _tick: float = 0.0

    def run(self) -> tuple[list[HostRecords], int]:
        """Run the plan; return the hosts' records, and the test time of the end. Raises as `Engine.run`."""
        with self._connected():
            self._until("set", SET_UP_S + self._patience_s())
            self._send_all("reach")
            self._until("reached", SET_UP_S + self._patience_s())
            before = self._compare_clocks()
            start_ns = time.monotonic_ns() + LEAD_NS + len(self.plan.streams) * 10**6
            starts = {channel.host.node: before[channel.host.node].theirs(start_ns) for channel in self.channels}
            first = {channel.host.node: list(channel.exchanges) for channel in self.channels}
            for channel in self.channels:
                channel.exchanges.clear()
                channel.send(f"start {starts[channel.host.node]}")
            self._until("measured", self.plan.end_ns / 1e9 + SET_UP_S)
            during = {channel.host.node: list(channel.exchanges) for channel in self.channels}
            for channel in self.channels:
                channel.exchanges.clear()
            self._compare_clocks()
            after = {channel.host.node: list(channel.exchanges) for channel in self.channels}
            self._send_all("records")
            self._until("records", SET_UP_S + self.plan.end_ns / 1e9)  # the longer the test, the more they are
            self._send_all("end")
            self._until("done", SET_UP_S)
            ends = [channel.end_ns or self.plan.end_ns for channel in self.channels]
            ahead_ns = time.time_ns() - time.monotonic_ns()
            parts = [
                HostRecords(
                    node=(node := channel.host.node),
                    records=channel.records,
                    theirs_ns=starts[node],
                    ours_ns=start_ns,
                    clock=clocks.estimate_clock(first[node], during[node], after[node]),
                    devices=channel.host.devices,
                    ours_ahead_ns=ahead_ns,
                )
                for channel in self.channels
            ]
            return parts, max(ends)

    def _patience_s(self) -> float:
        """Return the sum of the time-outs of the set-up's steps."""
        waits = [getattr(step, "timeout_ns", 0) for step in self.plan.setup]
        return sum(waits) / 1e9

    @contextlib.contextmanager
    def _connected(self) -> Iterator[None]:
        """Connect all hosts and send them their parts of the plan. At the end, for any reason, disconnect and wait for
        them."""
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
                parts = [split.part(self.plan, channel_.host).to_json() for channel_ in self.channels]
                list(pool.map(Channel.feed, self.channels, parts))
            yield
        except BaseException:
            self._restore()
            raise
        finally:
            for channel_ in self.channels:
                channel_.kill()
            self._selector.close()

    def _restore(self) -> None:
        """Disconnect all hosts; wait until each has ended."""
        for channel in self.channels:
            channel.hang_up()
        deadline = time.monotonic() + RESTORE_S
        while not all(channel.closed for channel in self.channels) and time.monotonic() < deadline:
            self._receive(0.2)

    def _send_all(self, order: str) -> None:
        for channel in self.channels:
            channel.send(order)

    def _compare_clocks(self) -> dict[str, Clock]:
        """Request the clock of each host many times, one request at a time."""
        for _ in range(QUESTIONS):
            for channel in self.channels:
                channel.query_clock()
                self._wait(lambda channel=channel: not channel.pending, SILENCE_S)  # type: ignore[misc]
            time.sleep(PAUSE_S)
        return {channel.host.node: clocks.estimate_clock(channel.exchanges, [], []) for channel in self.channels}

    def _until(self, message: str, longest_s: float) -> None:
        """Wait until all hosts have sent a message."""
        self._wait(lambda: all(message in channel.reached for channel in self.channels), longest_s)

    def _wait(self, condition: Callable[[], bool], longest_s: float) -> None:
        deadline = time.monotonic() + longest_s
        while not condition():
            now = time.monotonic()
            self._check(now, deadline)
            if now >= self._tick:
                self._tick = now + 1
                for channel in self.channels:
                    if "set" in channel.reached and len(channel.pending) < SILENCE_S:
                        channel.query_clock()
                reached_ns = min(channel.test_ns for channel in self.channels)
                if reached_ns:
                    self.report(min(reached_ns, self.plan.end_ns) / 1e9, self.plan.end_ns / 1e9)
            self._receive(min(0.5, max(0.0, self._tick - now)))

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

    def _check(self, now: float, deadline: float) -> None:
        """Raise the error of a host that failed, ended or sends nothing."""
        for channel in self.channels:
            if channel.error is not None:
                raise supervise.step_error(
                    {"node": channel.host.node, **_without_nulls(channel.error)}, self.directory, channel.tail
                )
        for channel in self.channels:
            name = f"{channel.host.node} ({channel.host.destination})"
            when = f"at {channel.test_ns / 1e9:g} s of test time" if "ready" in channel.reached else "during the set-up"
            if channel.closed and "done" not in channel.reached:
                with contextlib.suppress(Exception):
                    channel.child.wait(1)
                self._receive(0.1)
                status = channel.child.returncode
                how = "" if status is None else f" (ssh: exit status {status})"
                problem = f"the connection to {name} ended {when}{how}"
                raise GuestError(problem, self.directory / "console.log", channel.tail, code="host-lost")
            silent = (
                now - channel.last_message_s > SILENCE_S and "set" in channel.reached and "done" not in channel.reached
            )
            if silent or now > deadline:
                code, problem = (
                    ("host-silent", f"{name} sent nothing for {SILENCE_S:g} s {when}")
                    if silent
                    else ("host-overdue", f"{name} exceeded its time {when}")
                )
                raise GuestError(problem, self.directory / "console.log", channel.tail, code=code)


def _without_nulls(event: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in event.items() if value is not None}

# SPDX-License-Identifier: Apache-2.0
"""Coordinate all hosts of a run: set up, start together, compare clocks, fetch the records, end.

    set up      every agent executes its steps; then each waits for its neighbours (`reach`)
    before      clocks are compared; all hosts start the test at one instant, each by its own clock
    during      one clock request a second, which also detects a lost connection
    after       clocks are compared again; records are fetched; all settings are restored

If a host fails or disconnects, the coordinator closes all connections. Each agent then restores its host's settings.
The coordinator waits for this."""

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
from hourglass.engine.ssh.clocks import Clock, Exchange
from hourglass.engine.ssh.one_way_delay import HostRecords
from hourglass.errors import GuestError

SILENCE_S = 20.0
"""A host that sends nothing for this many wall seconds has failed. It should answer a clock request every second."""
MAX_PENDING = 20
"""At most this many clock requests wait for a reply."""
GRACE_S = 120.0
"""Wall seconds that each phase may take beyond its known duration."""
RESTORE_S = 20.0
"""Wall seconds in which a disconnected host must restore its settings."""
CLOCK_REQUESTS = 40
"""Clock requests to each host before the test, and again after it."""
CLOCK_PAUSE_S = 0.005
"""The pause after a clock request to each host, so that requests do not wait in the same queue."""
LEAD_NS = 300_000_000
"""The time between sending the start to the hosts and the start of the test. Agents open sockets and files meanwhile.
Each stream adds 1 ms."""


@dataclass
class Coordinator:
    """Coordinates the hosts of a plan. `agents`: the agent's executable file for each node."""

    plan: Plan
    directory: Path
    agents: Mapping[str, bytes]
    report: Report
    log: BinaryIO
    channels: list[Channel] = field(default_factory=list)
    _selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    _next_tick_s: float = 0.0

    def run(self) -> tuple[list[HostRecords], int]:
        """Run the plan. Return the hosts' records, and the test time at which the last host ended. Raises the errors of
        `Engine.run`."""
        with self._connected():
            self._await_all("set", GRACE_S + self._step_timeouts_s())
            self._send_all("reach")
            self._await_all("reached", GRACE_S + self._step_timeouts_s())
            clocks_before = self._compare_clocks()
            start_ns = time.monotonic_ns() + LEAD_NS + len(self.plan.streams) * 10**6
            host_starts_ns = {
                channel.host.node: clocks_before[channel.host.node].host_ns(start_ns) for channel in self.channels
            }
            exchanges_before = self._take_exchanges()
            for channel in self.channels:
                channel.send(f"start {host_starts_ns[channel.host.node]}")
            self._await_all("measured", self.plan.end_ns / 1e9 + GRACE_S)
            exchanges_during = self._take_exchanges()
            self._compare_clocks()
            exchanges_after = self._take_exchanges()
            self._send_all("records")
            self._await_all("records", GRACE_S + self.plan.end_ns / 1e9)  # the records grow with the test
            self._send_all("end")
            self._await_all("done", GRACE_S)
            ends_ns = [channel.end_ns or self.plan.end_ns for channel in self.channels]
            local_ahead_ns = time.time_ns() - time.monotonic_ns()
            host_records = [
                HostRecords(
                    node=(node := channel.host.node),
                    records=channel.records,
                    host_start_ns=host_starts_ns[node],
                    local_start_ns=start_ns,
                    clock=clocks.estimate_clock(exchanges_before[node], exchanges_during[node], exchanges_after[node]),
                    devices=channel.host.devices,
                    local_ahead_ns=local_ahead_ns,
                )
                for channel in self.channels
            ]
            return host_records, max(ends_ns)

    def _step_timeouts_s(self) -> float:
        """Return the sum of the time-outs of the set-up's steps."""
        timeouts_ns = [getattr(step, "timeout_ns", 0) for step in self.plan.setup]
        return sum(timeouts_ns) / 1e9

    @contextlib.contextmanager
    def _connected(self) -> Iterator[None]:
        """Connect all hosts and send them their parts of the plan. After an error, disconnect and wait until they have
        restored their settings. At the end, kill all ssh processes."""
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
            self._disconnect()
            raise
        finally:
            for channel in self.channels:
                channel.kill()
            self._selector.close()

    def _disconnect(self) -> None:
        """Disconnect all hosts. Wait at most `RESTORE_S` until each has restored its settings and ended."""
        for channel in self.channels:
            channel.hang_up()
        deadline_s = time.monotonic() + RESTORE_S
        while not all(channel.closed for channel in self.channels) and time.monotonic() < deadline_s:
            self._receive(0.2)

    def _send_all(self, order: str) -> None:
        for channel in self.channels:
            channel.send(order)

    def _compare_clocks(self) -> dict[str, Clock]:
        """Request each host's clock many times, one request at a time. Return the estimated clocks by node."""
        for _ in range(CLOCK_REQUESTS):
            for channel in self.channels:
                channel.query_clock()
                self._wait(lambda channel=channel: [channel] if channel.pending else [], SILENCE_S)  # type: ignore[misc]
            time.sleep(CLOCK_PAUSE_S)
        return {channel.host.node: clocks.estimate_clock(channel.exchanges, [], []) for channel in self.channels}

    def _take_exchanges(self) -> dict[str, list[Exchange]]:
        """Return the exchanges by node since the last call."""
        exchanges = {channel.host.node: list(channel.exchanges) for channel in self.channels}
        for channel in self.channels:
            channel.exchanges.clear()
        return exchanges

    def _await_all(self, message: str, timeout_s: float) -> None:
        """Wait until all hosts have sent this message."""
        self._wait(lambda: [channel for channel in self.channels if message not in channel.milestones], timeout_s)

    def _wait(self, awaited_channels: Callable[[], list[Channel]], timeout_s: float) -> None:
        """Receive messages until no channel is awaited. Raises an error if a host fails or `timeout_s` has passed."""
        deadline_s = time.monotonic() + timeout_s
        while awaited := awaited_channels():
            now_s = time.monotonic()
            self._raise_failures(now_s, awaited if now_s > deadline_s else [])
            if now_s >= self._next_tick_s:
                self._next_tick_s = now_s + 1
                for channel in self.channels:
                    if "set" in channel.milestones and len(channel.pending) < MAX_PENDING:
                        channel.query_clock()
                least_ns = min(channel.test_ns for channel in self.channels)
                if least_ns:
                    self.report(min(least_ns, self.plan.end_ns) / 1e9, self.plan.end_ns / 1e9)
            self._receive(min(0.5, max(0.0, self._next_tick_s - now_s)))

    def _receive(self, timeout_s: float) -> None:
        """Receive what the hosts send within this time."""
        for key, _ in self._selector.select(timeout_s):
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

    def _raise_failures(self, now_s: float, overdue: list[Channel]) -> None:
        """Raise an error if a host failed, disconnected, is silent or is overdue."""
        for channel in self.channels:
            if channel.error is not None:
                raise supervise.step_error(
                    {"node": channel.host.node, **_without_nulls(channel.error)}, self.directory, channel.tail
                )
        for channel in self.channels:
            label = f"{channel.host.node} ({channel.host.destination})"
            when = (
                f"at {channel.test_ns / 1e9:g} s of test time" if "ready" in channel.milestones else "during the set-up"
            )
            if channel.closed and "done" not in channel.milestones:
                with contextlib.suppress(Exception):
                    channel.child.wait(1)
                self._receive(0.1)
                status = channel.child.returncode
                how = "" if status is None else f" (ssh: exit status {status})"
                problem = f"the connection to {label} ended {when}{how}"
                raise GuestError(problem, self.directory / "console.log", channel.tail, code="host-lost")
            silent = (
                now_s - channel.last_message_s > SILENCE_S
                and "set" in channel.milestones
                and "done" not in channel.milestones
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

# SPDX-License-Identifier: Apache-2.0
"""All machines of a run: set up, begin together, answer for their clocks, hand over their records, end.

    set up      every agent carries out its steps; when all have, the neighbours are waited for (`reach`)
    before      clocks are compared; the test begins at one instant, told to each machine by its own clock
    during      a question a second, which is also how either side knows that the other is there
    after       clocks are compared again; records are fetched; everything is given back

When a machine fails or is gone the others are hung up on, which makes them give everything back, and waited for.
"""

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
from hourglass.engine import follow
from hourglass.engine.base import Report
from hourglass.engine.ssh import clocks, split
from hourglass.engine.ssh.channel import Channel, padded
from hourglass.engine.ssh.clocks import Clock
from hourglass.engine.ssh.ways import Part
from hourglass.errors import GuestError

SILENCE_S = 20.0
"""Wall seconds without a word after which a machine counts as gone: it is asked for the time once a second."""
SET_UP_S = 120.0
"""For the set-up, in which nobody speaks, beyond what its own steps may wait."""
GIVING_BACK_S = 20.0
"""For a machine that was hung up on to give everything back."""
QUESTIONS = 40
"""Before and after the test, of each machine."""
PAUSE_S = 0.005
"""Between them, so that they do not meet in one queue."""
LEAD_NS = 300_000_000
"""From the last word before the test to its begin: for the agents to open what they need."""


@dataclass
class Conductor:
    """Conducts a plan; `agents`: the agent's file for each node."""

    plan: Plan
    place: Path
    agents: Mapping[str, bytes]
    report: Report
    log: BinaryIO
    channels: list[Channel] = field(default_factory=list)
    _selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    _tick: float = 0.0

    def run(self) -> tuple[list[Part], int]:
        """The parts, and the test time of the end. Raises as `Engine.run`."""
        with self._connected():
            self._until("set", SET_UP_S + self._patience_s())
            self._all("reach")
            self._until("reached", SET_UP_S + self._patience_s())
            before = self._compare()
            start_ns = time.monotonic_ns() + LEAD_NS + len(self.plan.streams) * 10**6
            starts = {one.host.node: before[one.host.node].theirs(start_ns) for one in self.channels}
            first = {one.host.node: list(one.exchanges) for one in self.channels}
            for one in self.channels:
                one.exchanges.clear()
                one.tell(f"start {starts[one.host.node]}")
            self._until("measured", self.plan.end_ns / 1e9 + SET_UP_S)
            during = {one.host.node: list(one.exchanges) for one in self.channels}
            for one in self.channels:
                one.exchanges.clear()
            self._compare()
            after = {one.host.node: list(one.exchanges) for one in self.channels}
            self._all("records")
            self._until("records", SET_UP_S + self.plan.end_ns / 1e9)  # the longer the test, the more they are
            self._all("end")
            self._until("done", SET_UP_S)
            ends = [one.end_ns or self.plan.end_ns for one in self.channels]
            ahead_ns = time.time_ns() - time.monotonic_ns()
            parts = [
                Part(
                    node=(node := one.host.node),
                    records=one.records,
                    theirs_ns=starts[node],
                    ours_ns=start_ns,
                    clock=clocks.compare(first[node], during[node], after[node]),
                    devices=one.host.devices,
                    ours_ahead_ns=ahead_ns,
                )
                for one in self.channels
            ]
            return parts, max(ends)

    def _patience_s(self) -> float:
        """What the set-up's own steps may wait."""
        waits = [getattr(step, "timeout_ns", 0) for step in self.plan.setup]
        return sum(waits) / 1e9

    @contextlib.contextmanager
    def _connected(self) -> Iterator[None]:
        """All machines with their parts of the plan; hung up on and waited for at the end, however that comes."""
        try:
            for host in split.hosts(self.plan):
                agent = padded(self.agents[host.node])
                channel = Channel(host, self.log, self.place / f".{host.node}.arrows", agent)
                channel.start()
                self.channels.append(channel)
                for pipe in (channel.child.stdout, channel.child.stderr):
                    assert pipe is not None
                    os.set_blocking(pipe.fileno(), False)
                    self._selector.register(pipe, selectors.EVENT_READ, channel)
            with ThreadPoolExecutor(len(self.channels)) as pool:
                parts = [split.part(self.plan, one.host).to_json() for one in self.channels]
                list(pool.map(Channel.feed, self.channels, parts))
            yield
        except BaseException:
            self._give_back()
            raise
        finally:
            for one in self.channels:
                one.kill()
            self._selector.close()

    def _give_back(self) -> None:
        """Hangs up on all; waits until each has ended."""
        for one in self.channels:
            one.hang_up()
        deadline = time.monotonic() + GIVING_BACK_S
        while not all(one.closed for one in self.channels) and time.monotonic() < deadline:
            self._hear(0.2)

    def _all(self, order: str) -> None:
        for one in self.channels:
            one.tell(order)

    def _compare(self) -> dict[str, Clock]:
        """Many questions to each, one at a time."""
        for _ in range(QUESTIONS):
            for one in self.channels:
                one.ask()
                self._wait(lambda one=one: not one.asked, SILENCE_S)  # type: ignore[misc]
            time.sleep(PAUSE_S)
        return {one.host.node: clocks.compare(one.exchanges, [], []) for one in self.channels}

    def _until(self, word: str, longest_s: float) -> None:
        """Until all have said the word."""
        self._wait(lambda: all(word in one.said for one in self.channels), longest_s)

    def _wait(self, met: Callable[[], bool], longest_s: float) -> None:
        deadline = time.monotonic() + longest_s
        while not met():
            now = time.monotonic()
            self._check(now, deadline)
            if now >= self._tick:
                self._tick = now + 1
                for one in self.channels:
                    if "set" in one.said and len(one.asked) < SILENCE_S:
                        one.ask()
                reached_ns = min(one.test_ns for one in self.channels)
                if reached_ns:
                    self.report(min(reached_ns, self.plan.end_ns) / 1e9, self.plan.end_ns / 1e9)
            self._hear(min(0.5, max(0.0, self._tick - now)))

    def _hear(self, longest_s: float) -> None:
        for key, _ in self._selector.select(longest_s):
            channel: Channel = key.data
            data = os.read(key.fd, 1 << 20)
            if not data:
                self._selector.unregister(key.fileobj)
                channel.closed = channel.closed or key.fileobj is channel.child.stdout
            elif key.fileobj is channel.child.stdout:
                channel.take(data)
            else:
                for line in data.splitlines():
                    channel.write(line)

    def _check(self, now: float, deadline: float) -> None:
        """Raises what a machine's failure, end or silence stands for."""
        for one in self.channels:
            if one.error is not None:
                raise follow.step_error({"node": one.host.node, **_known(one.error)}, self.place, one.tail)
        for one in self.channels:
            name = f"{one.host.node} ({one.host.destination})"
            when = f"at {one.test_ns / 1e9:g} s of test time" if "ready" in one.said else "during the set-up"
            if one.closed and "done" not in one.said:
                with contextlib.suppress(Exception):
                    one.child.wait(1)
                self._hear(0.1)
                status = one.child.returncode
                how = "" if status is None else f" (ssh: exit status {status})"
                raise GuestError(f"the connection to {name} ended {when}{how}", self.place / "console.log", one.tail)
            silent = now - one.heard > SILENCE_S and "set" in one.said and "done" not in one.said
            if silent or now > deadline:
                what = f"{name} said nothing for {SILENCE_S:g} s {when}" if silent else f"{name} was not done {when}"
                raise GuestError(what, self.place / "console.log", one.tail)


def _known(event: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in event.items() if value is not None}

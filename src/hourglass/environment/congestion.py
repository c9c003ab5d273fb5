# SPDX-License-Identifier: Apache-2.0
"""The environment: an agent decides for each slice of time with which window and pacing rate a flow sends.

The kernel does the rest: it detects losses, resends, and paces. Observations are the kernel's own counters of the
socket (table `tcp`), read while the clock stands. Equal actions and seeds give equal records.

    action        OBSERVATION and ACTION declare the parts, in this order
    start         the flow starts with the first action
    reward        of a slice, by default its power (Giessler et al. 1978; Kleinrock 1979): goodput * base RTT / RTT
"""

import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hourglass import runner, scenario
from hourglass.contract.plan import EventStep, FlowStream, WriteStep
from hourglass.engine.console import Event
from hourglass.engine.virtual import Virtual
from hourglass.environment.episode import Episode
from hourglass.errors import HourglassError, InputError, MissingError, installing
from hourglass.results.recording import Recording
from hourglass.scenario import Scenario
from hourglass.scenario.source_files import UserText

try:
    import gymnasium
except ImportError:
    raise MissingError("the environment needs Gymnasium", installing("hourglass-net[gymnasium]")) from None

STEERED = Path(__file__).with_name("steered.c")
"""The congestion control that takes the actions."""
PARAMETERS = "/sys/module/steered/parameters"
STEP_S = 0.1
UNPLANNED = "the guest did not follow the plan"
"""A guest whose kernel contains a C file may send any event."""
BYTES_PER_MBIT = 125_000

ACTION = {"cwnd": ("segments", 1, 20_000), "pacing": ("Mbit/s, 0: no pacing", 0, 10_000)}
"""The parts of an action: unit, least, most."""
OBSERVATION = {
    "goodput": "Mbit/s, acknowledged in the slice",
    "rtt": "ms, smoothed",
    "base_rtt": "ms, the least of the connection",
    "cwnd": "segments",
    "inflight": "segments",
    "resent": "segments, in the slice",
    "pacing": "Mbit/s, 0: no pacing",
}
"""The parts of an observation, with their units."""


@dataclass(frozen=True)
class Slice:
    """A slice as the socket's counters show it at its end, in the units of `OBSERVATION`. All are 0 before the
    connection. Raises ValueError for a value that is not finite."""

    goodput: float = 0.0
    rtt: float = 0.0
    base_rtt: float = 0.0
    cwnd: float = 0.0
    inflight: float = 0.0
    resent: float = 0.0
    pacing: float = 0.0

    def __post_init__(self) -> None:
        if not all(map(math.isfinite, astuple(self))):
            raise ValueError("a value is not finite")


Reward = Callable[[Slice], float]


def power(part: Slice) -> float:
    """Return the power of a slice in Mbit/s: goodput * base RTT / RTT."""
    return part.goodput * part.base_rtt / part.rtt if part.rtt else 0.0


class CongestionEnv(gymnasium.Env[Any, Any]):
    """A flow of a scenario that an agent steers.

    `source`, `overrides` and `kernel` are those of `hourglass.run`. `key` is set to the steered congestion control, and
    must decide exactly one flow. `step_s`: the length of a slice. `out`: the directory of the last run. Raises
    `InputError`.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  # as gymnasium declares it

    def __init__(
        self,
        source: str | Path | Mapping[str, Any] | Scenario,
        *,
        step_s: float = STEP_S,
        key: str = "stack.cc",
        reward: Reward = power,
        overrides: Mapping[str, Any] | Sequence[str | tuple[str, Any]] = (),
        kernel: str | None = None,
        out: Path | None = None,
    ) -> None:
        if not 0.001 <= step_s <= 3600:
            raise InputError("step_s", step_s, "must be seconds from 0.001 to 3600")
        changes = [*(overrides.items() if isinstance(overrides, Mapping) else overrides), (key, UserText(STEERED))]
        self._base = scenario.load(source, changes, kernel=kernel)
        self._step_ns, self._reward, self._out = round(step_s * 1e9), reward, out
        limits = np.array([(least, most) for _, least, most in ACTION.values()], dtype=np.float64)
        self.action_space = gymnasium.spaces.Box(limits[:, 0], limits[:, 1], dtype=np.float64)
        self.observation_space = gymnasium.spaces.Box(0, math.inf, (len(OBSERVATION),), dtype=np.float64)
        self._flow = self._steered_flow(key)
        self._seed = self._base.seed - 1
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._episode: Episode | None = None
        self._state: Mapping[str, Any] = {}
        self._actions: list[tuple[int, Mapping[str, str]]] = []
        self.recording: Recording | None = None
        """The complete run of an episode that has ended."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray[Any, Any], dict[str, Any]]:
        """Start an episode. `seed`: of the run; without one, that of the last episode plus 1."""
        super().reset(seed=seed)
        self._abandon()
        self._seed = self._seed + 1 if seed is None else seed
        prepared = runner.prepare(self._scenario(), Virtual.name, runner.SilentRunProgress())
        self._folder = tempfile.TemporaryDirectory(prefix="hourglass-") if self._out is None else None
        directory = Path(self._folder.name) / "run" if self._folder else Path(str(self._out))
        self._episode = Episode(prepared, self._flow.sender, self._times_ns(), directory)
        self._state, self._actions, self.recording = {}, [], None
        return self._observed(self._episode.start())

    def step(self, action: Any) -> tuple[np.ndarray[Any, Any], float, bool, bool, dict[str, Any]]:
        """Send a slice with the action's window and pacing rate. The episode is truncated at the flow's end."""
        if self._episode is None or self.recording is not None:
            raise InputError("step", None, "needs an episode; call reset()")
        cwnd, pacing = self._checked(action)
        writes = {f"{PARAMETERS}/cwnd": str(cwnd), f"{PARAMETERS}/pacing": str(pacing)}
        self._actions.append((self._times_ns()[len(self._actions)], writes))
        steps: list[EventStep] = [
            WriteStep(do="write", node=self._flow.sender, path=path, value=value, origin=None)
            for path, value in writes.items()
        ]
        observation, info = self._observed(self._episode.decide(steps))
        is_last = len(self._actions) == len(self._times_ns()) - 1
        if is_last:
            recording = self._episode.decide([])
            if not isinstance(recording, Recording):
                raise HourglassError(f"decision {len(self._actions)}: {UNPLANNED}")
            self.recording = recording
        return observation, self._reward(Slice(*map(float, observation))), False, is_last, info

    def close(self) -> None:
        """End the episode and delete its temporary directory."""
        self._abandon()

    def scenario(self) -> Scenario:
        """Return the scenario of this episode, with its actions as events: its run needs no agent."""
        events = [
            {"at": at_ns / 1e9, "node": self._flow.sender, "write": dict(writes)} for at_ns, writes in self._actions
        ]
        present = [event.model_dump(mode="json") for event in self._base.event]
        return scenario.load(self._scenario(), [("event", [*present, *events])])

    def _scenario(self) -> Scenario:
        return scenario.load(self._base, seed=self._seed)

    def _steered_flow(self, key: str) -> FlowStream:
        streams = runner.planned(self._base, Virtual.name).streams
        flows = [stream for stream in streams if isinstance(stream, FlowStream) and stream.cc == STEERED.stem]
        if len(flows) != 1:
            raise InputError("key", key, f"decides {len(flows)} flows of this scenario; it must decide one")
        return flows[0]

    def _times_ns(self) -> list[int]:
        """Return the times of decisions: at the start of each slice, and just before the flow's end."""
        return [*range(self._flow.start_ns, self._flow.stop_ns - 1, self._step_ns), self._flow.stop_ns - 1]

    def _checked(self, action: Any) -> tuple[int, int]:
        """Return the window in segments and the pacing rate in bytes per second."""
        values = np.asarray(action, dtype=np.float64)
        if values.shape != self.action_space.shape or not self.action_space.contains(values):
            parts = ", ".join(f"{name} ({unit}) {least} to {most}" for name, (unit, least, most) in ACTION.items())
            raise InputError("action", action, f"must be {parts}")
        return round(values[0]), round(values[1] * BYTES_PER_MBIT)

    def _observed(self, event: Event | Recording) -> tuple[np.ndarray[Any, Any], dict[str, Any]]:
        """Return the observation and the information of a decision."""
        number = len(self._actions)
        if isinstance(event, Recording) or event["number"] != number:
            raise HourglassError(f"decision {number}: {UNPLANNED}")
        before, now = self._state, {}
        for sender in event["senders"]:
            if sender.get("stream") == self._flow.id:
                now = sender
        self._state = now
        times_ns = self._times_ns()
        elapsed_ns = event["ns"] - times_ns[number - 1] if number else self._step_ns
        try:
            part = slice_of(before, now, elapsed_ns) if now else Slice()
        except (KeyError, TypeError, ValueError, ArithmeticError):
            raise HourglassError(f"decision {number}: the guest reported no valid state of the flow") from None
        info = {"time_s": event["ns"] / 1e9, "state": dict(now), "slice": asdict(part)}
        return np.array(astuple(part), dtype=np.float64), info

    def _abandon(self) -> None:
        if self._episode is not None:
            self._episode.abandon()
        if self._folder is not None:
            self._folder.cleanup()
        self._episode = self._folder = None


def slice_of(before: Mapping[str, Any], now: Mapping[str, Any], elapsed_ns: int) -> Slice:
    """Return the slice between two states of a socket (columns of the table `tcp`); `before` may be empty."""

    def grown(column: str) -> float:
        return float(now[column] - before.get(column, 0))

    inflight = now["unacked"] - now["sacked"] - now["lost"] + now["retrans"]
    pacing = now["pacing_rate"]
    return Slice(
        goodput=grown("bytes_acked") * 8e3 / elapsed_ns,
        rtt=now["rtt"] / 1e3,
        base_rtt=0.0 if now["min_rtt"] == 2**32 - 1 else now["min_rtt"] / 1e3,
        cwnd=float(now["snd_cwnd"]),
        inflight=float(inflight),
        resent=grown("total_retrans"),
        pacing=0.0 if pacing == 2**64 - 1 else pacing / BYTES_PER_MBIT,
    )

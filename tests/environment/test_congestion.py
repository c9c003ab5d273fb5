# SPDX-License-Identifier: Apache-2.0
"""The environment of Gymnasium on a real guest: determinism, the effect of actions, the equal scenario."""

import contextlib
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from hourglass import runner
from hourglass.errors import HourglassError, InputError
from hourglass.results.recording import Recording

gymnasium = pytest.importorskip("gymnasium")
checker = pytest.importorskip("gymnasium.utils.env_checker")

from hourglass.environment import OBSERVATION, CongestionEnv, Slice, power  # noqa: E402  # it needs gymnasium
from hourglass.environment.congestion import slice_of  # noqa: E402

LINK = {
    "name": "steered",
    "testbed": {
        "node": [{"name": "client"}, {"name": "server"}],
        "link": [
            {"ends": ["client:eth0", "server:eth0"], "delay": "10ms",
             "shaper": {"forward": {"rate": "10mbit", "limit": "100KB"}}}
        ],
    },
    "test": {"name": "tcp_upload", "length": 1, "delay": 0.2},
    "measure": {"packets": 0},
}  # fmt: skip
ACTIONS = [(10, 0), (40, 0), (40, 5), (5, 0), (100, 0), (20, 9), (20, 9), (20, 9), (20, 9), (20, 9)]
NAMES = list(OBSERVATION)

pytestmark = pytest.mark.guest


def episode(out: Path, wait_s: float = 0.0) -> tuple[Recording, list[np.ndarray[Any, Any]], runner.Scenario]:
    """Return the run of `ACTIONS`, the observations, and the scenario with the actions as events."""
    env = CongestionEnv(LINK, step_s=0.1, out=out)
    first, _ = env.reset(seed=3)
    observations = [first]
    for action in ACTIONS:
        time.sleep(wait_s)
        observation, reward, terminated, truncated, info = env.step(action)
        observations.append(observation)
        assert not terminated
        assert reward == power(Slice(**info["slice"]))
    assert truncated
    assert env.recording is not None
    recording, scenario = env.recording, env.scenario()
    env.close()
    return recording, observations, scenario


def play(env: CongestionEnv) -> None:
    for action in ACTIONS:
        env.step(action)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return episode(tmp_path_factory.mktemp("steered") / "run")


def test_equal_actions_give_equal_bytes_however_long_they_take(played: Any, tmp_path: Path) -> None:
    repeated, observations, _ = episode(tmp_path / "run", wait_s=0.03)
    assert repeated.info.digest == played[0].info.digest
    assert np.array_equal(observations, played[1])


FORGED_STATES: list[dict[str, Any]] = [
    {}, {"unacked": "x"}, {"rtt": None}, {"pacing_rate": []}, {"bytes_acked": 10**400}, {"total_retrans": {}},
    {"snd_cwnd": "abc"}, {"snd_cwnd": math.nan},
]  # fmt: skip


@pytest.mark.parametrize("state", FORGED_STATES, ids=str)
def test_a_forged_state_is_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: dict[str, Any]
) -> None:
    """A C file of the scenario, as part of the guest's kernel, can write the agent's events."""
    problem = r"^decision \d: the guest reported no valid state of the flow$"
    with contextlib.closing(CongestionEnv(LINK, step_s=0.1, out=tmp_path / "run")) as env:
        env.reset(seed=3)
        assert env._episode is not None
        decide = env._episode.decide

        def forged(steps: Any) -> Any:
            event: Any = decide(steps)
            return event | {"senders": [(sender | state if state else {"stream": 0}) for sender in event["senders"]]}

        monkeypatch.setattr(env._episode, "decide", forged)
        with pytest.raises(HourglassError, match=problem):
            play(env)


@pytest.mark.parametrize("report", [{"number": 7}, None])
def test_an_unplanned_decision_is_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, played: Any, report: dict[str, Any] | None
) -> None:
    with contextlib.closing(CongestionEnv(LINK, step_s=0.1, out=tmp_path / "run")) as env:
        env.reset(seed=3)
        assert env._episode is not None
        decide = env._episode.decide
        monkeypatch.setattr(
            env._episode, "decide", lambda steps: played[0] if report is None else decide(steps) | report
        )
        with pytest.raises(HourglassError, match=r"^decision 1: the guest did not follow the plan$"):
            play(env)


def test_actions_have_their_effect(played: Any) -> None:
    observed = np.array(played[1])
    cwnd, inflight, goodput = (observed[:, NAMES.index(name)] for name in ("cwnd", "inflight", "goodput"))
    assert not observed[0].any()
    assert cwnd[1:].tolist() == [window for window, _ in ACTIONS]
    assert (inflight[1:] <= cwnd[1:] + 40).all()  # a smaller window sends nothing until the flight has shrunk
    assert inflight[2] == 40  # the queue holds what the line does not carry
    assert 4 < goodput[3] < 9.6  # between the pacing rate and the rate of the line, whose queue drains
    assert goodput[10] == pytest.approx(9, rel=0.02)  # paced below the line's rate, without a queue
    assert observed[10, NAMES.index("rtt")] < 23


def test_an_episode_is_a_scenario(played: Any, tmp_path: Path) -> None:
    recording, _, scenario = played
    run = runner.run(scenario, tmp_path / "run")
    assert run.tcp.equals(recording.tcp)
    assert run.table("event")["node"].unique().to_list() == ["client"]


def test_observations_are_the_records_of_the_socket(played: Any) -> None:
    recording, observed, _ = played
    sender = recording.tcp.filter(pl.col("sender"))
    at_ns = sender.filter(pl.col("t_ns") == 700_000_000).row(0, named=True)
    assert (at_ns["snd_cwnd"], at_ns["rtt"] / 1e3) == (observed[5][NAMES.index("cwnd")], observed[5][1])


def test_an_episode_that_is_abandoned_leaves_nothing(tmp_path: Path) -> None:
    env = CongestionEnv(LINK, out=tmp_path / "run")
    env.reset()
    env.step((10, 0))
    env.close()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match=r"call reset\(\)"):
        env.step((10, 0))


def test_the_interface_is_gymnasiums() -> None:
    short = LINK | {"test": {"name": "tcp_upload", "length": 0.3, "delay": 0.2}}
    env = CongestionEnv(short)
    checker.check_env(env, skip_render_check=True)
    env.close()


def test_wrong_input_is_refused() -> None:
    with pytest.raises(InputError, match="decides 2 flows"):
        CongestionEnv(LINK | {"test": {"name": "tcp_nup", "upload_streams": 2, "length": 1}})
    with pytest.raises(InputError, match="step_s"):
        CongestionEnv(LINK, step_s=0)
    with pytest.raises(InputError, match="1 to 20000"):
        CongestionEnv(LINK)._checked((0, 0))


def test_a_slice_is_the_growth_of_counters() -> None:
    state = {
        "bytes_acked": 125_000, "unacked": 10, "sacked": 3, "lost": 2, "retrans": 1, "pacing_rate": 1_250_000,
        "rtt": 20_000, "min_rtt": 10_000, "snd_cwnd": 12, "total_retrans": 5,
    }  # fmt: skip
    part = slice_of(state | {"bytes_acked": 0, "total_retrans": 4}, state, 100_000_000)
    assert part == Slice(goodput=10.0, rtt=20.0, base_rtt=10.0, cwnd=12, inflight=6, resent=1, pacing=10)
    assert power(part) == 5.0
    assert power(Slice()) == 0.0

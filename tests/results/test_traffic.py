# SPDX-License-Identifier: Apache-2.0
"""Floods, telephony and web traffic with known figures; the E-model with those of the ITU."""

from typing import get_args

import numpy as np
import pytest

from hourglass.contract import plan
from hourglass.contract.record_tables import SCHEMAS
from hourglass.results import emodel, traffic


def test_the_default_connection_has_the_rating_of_the_standard():
    """G.107, 7.7: with all defaults R = 93.2, MOS 4.41 (Annex B)."""
    assert emodel.rating(0, 0) == pytest.approx(93.2, abs=0.05)
    assert emodel.mos(0, 0) == pytest.approx(4.41, abs=0.005)


@pytest.mark.parametrize(
    ("delay_ms", "loss", "r"),
    # R over delay alone is curve TELR = 65 of G.107 / G.131; loss alone: Ie,eff = 95 * Ppl / (Ppl + 4.3)
    [(0, 0.043, 93.206 - 95 / 2), (0, 0.01, 93.206 - 95 / 5.3)],
)
def test_loss_lowers_the_rating_by_the_formula(delay_ms, loss, r):
    assert emodel.rating(delay_ms, loss) == pytest.approx(r, abs=0.01)


def test_a_call_gets_worse_with_delay_and_loss_and_stays_on_the_scale():
    delays = [emodel.mos(ms, 0) for ms in (0, 50, 100, 150, 200, 400, 1000, 10_000)]
    losses = [emodel.mos(20, share) for share in (0, 0.01, 0.05, 0.2, 1)]
    assert delays == sorted(delays, reverse=True)
    assert losses == sorted(losses, reverse=True)
    assert emodel.rating(400, 0) < emodel.rating(150, 0) - 10  # G.114: 150 ms is fine, 400 ms is not
    assert min(*delays, *losses) == 1.0


def test_jitter_leaves_lost_packets_out():
    assert traffic.jitter_ms(np.array([1.0, 3.0, np.nan, 2.0])) == 1.5
    assert traffic.jitter_ms(np.array([1.0, np.nan])) is None


def test_every_kind_of_stream_has_a_section():
    union, _ = get_args(plan.Stream)
    models = {plan.FlowStream, plan.PingStream, *(kind.model for kind in traffic.KINDS.values())}
    assert models == set(get_args(union))
    assert all({"t_ns", "stream"} <= set(SCHEMAS[model.table]) for model in models)

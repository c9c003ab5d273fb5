# SPDX-License-Identifier: Apache-2.0
"""Runs as tests: bounds judged by `hourglass check` and by pytest.

judge.py     `check`: runs, or scenarios whose runs are made on the spot, against bounds
junit.py     verdicts as JUnit XML
units.py     `20 * ms`: quantities that figures are compared with
measured.py  `run.ping.p99`: a run's figures as attributes
lab.py       the fixture `lab`: makes runs, each once a session, and keeps those of failed tests
plugin.py    the pytest plugin: options, the marker, failure messages

    from hourglass.testing import ms

    def test_latency(lab):
        run = lab.run("L100M", "test.length=5")
        assert run.ping.p99 < 50 * ms
"""

from hourglass.testing.units import Gbit, Mbit, Quantity, kbit, ms, ns, percent, s, us

__all__ = ["Gbit", "Mbit", "Quantity", "kbit", "ms", "ns", "percent", "s", "us"]

# SPDX-License-Identifier: Apache-2.0
"""Use runs as tests in pytest: their figures are compared with bounds.

units.py      `20 * ms`: quantities to compare figures with
measured.py   `run.ping.p99`: a run's figures as attributes
lab.py        the fixture `lab`: makes each run once a session, and stores those of failed tests
plugin.py     the pytest plugin: options, the marker, failure messages

    from hourglass.testing import ms

    def test_latency(lab):
        run = lab.run("L100M", "test.length=5")
        assert run.ping.p99 < 50 * ms
"""

from hourglass.testing.units import Gbit, Mbit, Quantity, kbit, ms, ns, percent, s, us

__all__ = ["Gbit", "Mbit", "Quantity", "kbit", "ms", "ns", "percent", "s", "us"]

# SPDX-License-Identifier: Apache-2.0
"""Wi-Fi cells: each mistake is one line, short forms are resolved, and rates are those of the standard."""

import pytest

from hourglass.errors import InputError
from hourglass.scenario import load
from hourglass.scenario.wifi import radio_bps

CELL = "testbed.wifi.0"
TABLE = [
    (f"{CELL}.width=80", f"{CELL}.width = 80", "ath9k has 20, 40"),
    (f"{CELL}.width=30", f"{CELL}.width = 30", "20, 40 or 80"),
    (f"{CELL}.streams=4", f"{CELL}.streams = 4", "ath9k has 1, 2, 3"),
    (f"{CELL}.standard=ax", f"{CELL}.standard = 'ax'", "ath9k has n"),
    (f"{CELL}.chip=ath10k", f"{CELL}.chip = 'ath10k'", 'Did you mean "ath9k"?'),
    (f"{CELL}.band=6GHz", f"{CELL}.band = '6GHz'", "2.4GHz, 5GHz"),
    (f"{CELL}.guard=3200ns", f"{CELL}.guard = '3200ns'", "802.11n has 400ns, 800ns"),
    (f"{CELL}.mcs=8", f"{CELL}.mcs = 8", "must be 0 to 7 per stream in 802.11n"),
    (f"{CELL}.mcs=best", f"{CELL}.mcs = 'best'", '"minstrel"'),
    (f"{CELL}.station.0.mcs=9", f"{CELL}.station.0.mcs = 9", "0 to 7"),
    (f"{CELL}.error=0.00001%", f"{CELL}.error = '0.00001%'", "whole parts per million"),
    (f"{CELL}.snr=loud", f"{CELL}.snr = 'loud'", "dB from 0 to 100"),
    (f"{CELL}.pacing_shift=1", f"{CELL}.pacing_shift = 1", "from 5 to 15 (10: the papers' 1 ms)"),
    (f"{CELL}.collisions=1", f"{CELL}.collisions = 1", "true or false"),
    (f"{CELL}.station=[]", f"{CELL}.station = []", "1 to 50 stations"),
    (f"{CELL}.station.0.at=ap:wlan1", f"{CELL}.station.0.at = 'ap:wlan1'", "already has a station in this cell"),
    (f"{CELL}.station.0.at=server:eth0", f"{CELL}.station.0.at = 'server:eth0'", "already has a cable"),
    (f"{CELL}.ap=app:wlan0", f"{CELL}.ap = 'app'", 'no such node. Did you mean "ap"?'),
    (f"{CELL}.beacon_interval=10001", f"{CELL}.beacon_interval = 10001", "from 15 to 10000"),  # as cfg80211
    (f"{CELL}.others.count=60", f"{CELL}.others.count = 60", "from 0 to 50"),
    (f"{CELL}.others.count=50", f"{CELL}.others.count = 50", "at most 50 stations"),
    ("testbed.netem.0.at=ap:eth9", "testbed.netem.0.at = 'ap:eth9'", 'Did you mean "ap:eth0"?'),
    ("testbed.netem.0.delay=1", "testbed.netem.0.delay = 1", 'a time like "10ms"'),
    ("testbed.netem.0.delay=1500ns", "testbed.netem.0.delay = '1500ns'", "a time in whole microseconds"),
    ('capture.pcap=["client:wlan9"]', "capture.pcap.0 = 'client:wlan9'", 'Did you mean "client:wlan0"?'),
    ('test.competing=[{client="ap", server="ap"}]', "test.competing.0.server = 'ap'", "give two different nodes"),
    ('test.competing=[{client="x"}]', "test.competing.0.client = 'x'", "no such node"),
]


@pytest.mark.parametrize(("change", "start", "allowed"), TABLE)
def test_a_mistake_is_one_clear_line(change: str, start: str, allowed: str) -> None:
    with pytest.raises(InputError) as caught:
        load("wifi-ath9k", [change])
    text = str(caught.value)
    assert text.startswith(start), text
    assert allowed in text


@pytest.mark.parametrize("kernel", ["6.12", "6.2-mine"])
def test_a_radio_below_a_qdisc_needs_an_old_kernel(kernel: str) -> None:
    with pytest.raises(InputError, match=r"chip = 'ath9k_htc': does not exist on kernel 6\..*since 6\.2 mac80211"):
        load("wifi-ath9k-htc", kernel=kernel)
    assert load("wifi-ath9k-htc", kernel="6.1").testbed.wifi[0].chip == "ath9k_htc"


def test_snr_and_error_exclude_each_other_at_each_station() -> None:
    with pytest.raises(InputError, match=r"wifi\.0\.error = .* cannot be combined with snr"):
        load("wifi-ath9k", [f"{CELL}.snr=30", f"{CELL}.error=1%"])
    assert load("wifi-ath9k", [f"{CELL}.snr=30", f"{CELL}.station.0.error=1%"])


def test_some_rates_of_802_11ac_do_not_exist() -> None:
    ac = [f"{CELL}.chip=generic", f"{CELL}.standard=ac", f"{CELL}.mcs=9"]
    with pytest.raises(InputError, match=r"mcs = 9: is not a rate of 802\.11ac at 20 MHz with 2 streams"):
        load("wifi-ath9k", ac)
    assert load("wifi-ath9k", [*ac, f"{CELL}.streams=3"])


def test_other_stations_have_separate_errors() -> None:
    scenario = load("wifi-ath9k", [f"{CELL}.others.count=2", f"{CELL}.others.error=30%"])
    assert [station.error for station in scenario.testbed.wifi[0].station] == [None, 300_000_000, 300_000_000]


def test_other_stations_are_resolved_once() -> None:
    scenario = load("wifi-ath9k", [f"{CELL}.others.count=2", f"{CELL}.others.traffic=both", f"{CELL}.others.mcs=0"])
    assert [node.name for node in scenario.testbed.node] == ["client", "ap", "server", "other1", "other2"]
    assert [(str(station.at), station.mcs) for station in scenario.testbed.wifi[0].station] == [
        ("client:wlan0", None), ("other1:wlan0", 0), ("other2:wlan0", 0),
    ]  # fmt: skip
    competing = [
        (group.client, group.server, group.upload_streams, group.download_streams) for group in scenario.test.competing
    ]
    assert competing == [("other1", "server", 1, 1), ("other2", "server", 1, 1)]
    assert load(scenario) == scenario


@pytest.mark.parametrize(
    ("standard", "width", "streams", "guard", "mcs", "bps"),
    [
        ("n", 20, 1, "800ns", 0, 6_500_000),
        ("n", 40, 1, "400ns", 7, 150_000_000),
        ("n", 40, 3, "400ns", 7, 450_000_000),
        ("ac", 80, 1, "400ns", 9, 433_333_333),
        ("ax", 80, 2, "800ns", 11, 1_200_980_392),
        ("ax", 20, 1, "3200ns", 0, 7_312_500),
    ],
)
def test_rates_are_those_of_the_standard(
    standard: str, width: int, streams: int, guard: str, mcs: int, bps: int
) -> None:
    """Compare with the rate tables of 802.11-2020, 19.5 and 21.5, and 802.11ax-2021, 27.5."""
    keys = {"chip": "generic", "standard": standard, "width": width, "streams": streams, "guard": guard, "mcs": mcs}
    scenario = load("wifi-ath9k", [f"{CELL}.{key}={value}" for key, value in keys.items()])
    assert radio_bps(scenario.testbed.wifi[0]) == bps

# SPDX-License-Identifier: Apache-2.0
import json
import tomllib
from pathlib import Path

import pytest

from hourglass import scenario
from hourglass.errors import InputError
from hourglass.resources import SCENARIOS
from hourglass.scenario import Scenario, builtin, load, presets
from hourglass.scenario.trace import RateStep

PAIR = {
    "node": [{"name": "a"}, {"name": "b"}],
    "link": [{"ends": ["a:eth0", "b:eth0"]}],
}


@pytest.mark.parametrize("name", [name for name, _ in builtin()])
def test_every_built_in_survives_a_round_trip_through_json(name: str) -> None:
    loaded = load(name)
    reloaded = load(json.loads(loaded.to_json()))
    assert reloaded == loaded
    assert reloaded.to_json() == loaded.to_json()
    assert load(loaded) == loaded
    assert loaded.name == name
    assert loaded.description


@pytest.mark.parametrize("name", [name for name, _ in builtin()])
def test_toml_python_and_json_make_the_same_object(name: str, tmp_path: Path) -> None:
    file = SCENARIOS / f"{name}.toml"
    resolved = tmp_path / "scenario.json"
    resolved.write_bytes(load(name).to_json())
    assert load(file) == load(str(file)) == load(tomllib.loads(file.read_text())) == load(resolved) == load(name)


WIFI = ["wifi-ath9k", "wifi-ath9k-htc", "wifi-ax"]


def test_presets_are_listed_with_descriptions() -> None:
    assert [name for name, text in presets() if text] == [
        "L100M",
        "L10M",
        "LR1000M",
        "R100M",
        "R10M",
        "home",
        "rtt-fair",
        *WIFI,
    ]


def test_overrides_apply_to_the_resolved_preset() -> None:
    loaded = load("L100M", ["testbed.link.0.delay=10ms", 'testbed.link.1.rate=["1gbit", 5]', "test.length=10"])
    assert loaded.testbed.link[0].delay == (10_000_000, 10_000_000)
    assert loaded.testbed.link[1].rate == (10**9, 5)
    assert loaded.test.length == 10


def test_an_override_is_a_toml_value_or_else_text() -> None:
    changes = [
        "stack.tsq=off",
        'stack.cc = "bbr"',
        "stack.sysctl.net.ipv4.tcp_ecn=1",
        'stack.sysctl."net.ipv4.tcp_sack"=0',
    ]
    stack = load("L100M", changes).stack
    assert (stack.tsq.mode, stack.cc) == ("off", "bbr")
    assert stack.sysctl == {"net.ipv4.tcp_ecn": "1", "net.ipv4.tcp_sack": "0"}


def test_a_kernel_is_text_even_if_it_looks_like_a_number() -> None:
    assert load("L100M", ["kernel=5.10"]).kernel == "5.10"
    assert load("L100M", ["kernel=5.10", "seed=3"], seed=7, kernel="6.12").model_dump(include={"kernel", "seed"}) == {
        "kernel": "6.12",
        "seed": 7,
    }


def test_another_preset_keeps_the_rest_of_the_file() -> None:
    loaded = load("L100M", ["stack.cc=bbr", "testbed.preset=R10M", "testbed.link.0.mtu=9000"])
    assert [str(shaper.at) for shaper in loaded.testbed.shaper] == ["router:eth1", "server:eth0"]
    assert loaded.testbed.link[0].mtu == 9000
    assert loaded.stack.cc == "bbr"


def test_another_test_drops_keys_that_it_lacks() -> None:
    down = load("L100M", ["test.download_streams=2", "test.name=tcp_ndown"]).test
    assert (down.upload_streams, down.download_streams) == (None, 2)
    assert load("L100M", ["test.name=ping"]).test.delay == 0


def test_nodes_override_the_stack_key_by_key() -> None:
    stack = load(
        {
            "testbed": {"preset": "L100M"},
            "stack": {
                "pacing": {"ss": 150},
                "sysctl": {"net.ipv4.tcp_ecn": 1},
                "client": {"gso": "1ms", "pacing": {"ca": 140}, "sysctl": {"net.ipv4.tcp_sack": 0}},
            },
        }
    ).stack
    client, server = stack.of("client"), stack.of("server")
    assert (client.pacing.ss, client.pacing.ca, client.gso) == (150, 140, 1_000_000)
    assert client.sysctl == {"net.ipv4.tcp_ecn": "1", "net.ipv4.tcp_sack": "0"}
    assert (server.pacing.ca, server.gso, server.sysctl) == (120, 0, {"net.ipv4.tcp_ecn": "1"})
    assert stack.origin("client", "pacing", "ca") == "stack.client.pacing.ca"
    assert stack.origin("client", "pacing", "ss") == "stack.pacing.ss"
    assert stack.origin("client", "sysctl", "net.ipv4.tcp_ecn") == "stack.sysctl.net.ipv4.tcp_ecn"
    assert stack.origin("server", "gso") == "stack.gso"


def test_client_and_server_are_the_first_and_last_host_if_none_has_that_name() -> None:
    loaded = load({"testbed": PAIR})
    assert (loaded.test.client, loaded.test.server, loaded.test.upload_streams) == ("a", "b", 1)


def test_a_trace_of_an_override_is_read_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "line.trace").write_text("0\n4\n")
    monkeypatch.chdir(tmp_path)
    trace = load("L100M", ["testbed.link.1.trace=line.trace"]).testbed.link[1].trace
    assert trace
    assert trace.forward
    assert trace.forward.opportunity_ms == (0, 4)


def test_a_trace_file_becomes_part_of_the_scenario(tmp_path: Path) -> None:
    (tmp_path / "line.trace").write_text("0\n4\n4\n12\n")
    file = tmp_path / "mine.toml"
    file.write_text(
        '[testbed]\nnode = [{name = "a"}, {name = "b"}]\n[[testbed.link]]\nends = ["a:eth0", "b:eth0"]\n'
        'trace = { forward = "line.trace", reverse = [[0, "1mbit"], [2.5, 0]] }\n'
    )
    loaded = load(file)
    trace = loaded.testbed.link[0].trace
    assert trace
    assert trace.forward
    assert trace.forward.opportunity_ms == (0, 4, 4, 12)
    assert trace.reverse
    assert trace.reverse.rate == (RateStep(0, 10**6), RateStep(2.5, 0))
    assert loaded.name == "mine"
    (tmp_path / "line.trace").unlink()
    assert load(json.loads(loaded.to_json())) == loaded


def test_scenarios_are_immutable() -> None:
    loaded = load("L100M")
    with pytest.raises(ValueError, match="frozen"):
        loaded.seed = 2
    assert isinstance(loaded, Scenario)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'name = "a"\n\n\xff', "is not UTF-8: byte 0xff in line 3"),
        (b'name = "a"\nseed = = 1\n', "is not valid TOML: Invalid value (at line 2, column 8)"),
        (b"a = " + b"[" * 5000, "is nested too deeply"),
        (b"seed = " + b"9" * 5000, "too large"),
        (b"seed = 0x" + b"f" * 5000, "a whole number from 0"),
        (b"seed = 1979-05-27", "a whole number from 0"),
        (b"[test]\nlength = nan", "a number of seconds"),
        (b"", "testbed = (nothing): is missing"),
        (b"name", "is not valid TOML"),
        (b"\xef\xbb\xbfname = 'a'", "is not valid TOML"),
        (b"\0", "is not valid TOML"),
    ],
)
def test_a_file_that_is_no_scenario_is_refused(content: bytes, message: str, tmp_path: Path) -> None:
    file = tmp_path / "case.toml"
    file.write_bytes(content)
    with pytest.raises(InputError) as caught:
        load(file, ["testbed.preset=L100M"] if content else [])
    assert message in str(caught.value)
    assert str(caught.value).isprintable()


def test_paths_without_a_scenario_are_refused(tmp_path: Path) -> None:
    secret = tmp_path / "secret.toml"
    secret.write_text("")
    for source, message in [
        (tmp_path, "is a directory"),
        (tmp_path / "none.toml", "no such file"),
        ("/dev/zero", "not a regular file"),
        ("L10", 'Did you mean "L10M"?'),
        ("a\0b", "no such file"),
        ("x" * 5000, "no such file"),
        ("", "is a directory"),
        (secret / "deeper", "no such file"),
        ({1: 2}, "keys that are not text"),
        (3, "a built-in name, a file or a table"),
    ]:
        with pytest.raises(InputError, match="scenario = ") as caught:
            load(source)  # type: ignore[arg-type]
        assert message in str(caught.value)


def test_a_table_within_itself_is_refused() -> None:
    table: dict[str, object] = {"testbed": {"preset": "L100M"}}
    table["stack"] = table
    with pytest.raises(InputError, match="nested"):
        scenario.load(table)


BURSTS = {"model": "gilbert-elliott", "rate": "0.1%", "burst": 2.5}


@pytest.mark.parametrize(
    ("loss", "short"),
    [
        ("1%", "1%"),
        ({"rate": "1%"}, "1%"),
        (BURSTS, BURSTS),
        ([BURSTS, BURSTS], BURSTS),
        (["0.10%", BURSTS | {"burst": 5.0}], ["0.1%", BURSTS | {"burst": 5}]),
    ],
    ids=str,
)
def test_resolved_loss_has_its_shortest_form(loss: object, short: object) -> None:
    loaded = load("L100M", [("testbed.link.0.loss", loss)])
    resolved = json.loads(loaded.to_json())
    assert resolved["testbed"]["link"][0]["loss"] == short
    assert load(resolved) == loaded


def test_a_null_of_an_older_scenario_json_counts_as_absent(tmp_path: Path) -> None:
    """Older versions wrote null into `scenario.json` for the driver's default."""
    current = load("L100M").to_json()
    older = json.loads(current)
    older["testbed"]["link"][0] |= {"tx_ring": None, "reorder_delay": None, "tso": None}
    (tmp_path / "scenario.json").write_text(json.dumps(older))
    assert load(str(tmp_path / "scenario.json")).to_json() == current


@pytest.mark.parametrize(
    "changes",
    [
        ["testbed.link.0.shaper.there.rate=20mbit", "testbed.link.0.shaper.there.limit=64KB"],
        ['testbed.link.0.shaper={there={rate="20mbit",limit="64KB"}}'],
    ],
)
def test_the_old_names_of_directions_are_read(changes: list[str]) -> None:
    current = load("L100M", ['testbed.link.0.shaper={forward={rate="20mbit",limit="64KB"}}'])
    assert load("L100M", changes) == current
    stored = json.loads(current.to_json())
    shaper = stored["testbed"]["link"][0]["shaper"]
    shaper["there"], shaper["back"] = shaper.pop("forward"), shaper.pop("reverse")
    assert load(stored) == current
    shaper["there"]["rate"] = "1mbit"
    assert load(stored, ["testbed.link.0.shaper.forward.rate=20mbit"]) == current


def test_an_old_name_next_to_the_current_one_is_refused() -> None:
    with pytest.raises(InputError, match=r"testbed\.link\.0\.trace\.back"):
        load("L100M", ['testbed.link.0.trace={reverse=[[0,"1mbit"]],back=[[0,"1mbit"]]}'])

# SPDX-License-Identifier: Apache-2.0
"""Programs in a scenario: defaults, errors, files and roots next to the scenario's file."""

import json
from pathlib import Path
from typing import Any

import pytest

from hourglass.errors import InputError
from hourglass.resources import SCENARIOS
from hourglass.scenario import load
from hourglass.scenario.app_roots import roots

BASE: dict[str, Any] = {"testbed": {"preset": "L100M"}}
SERVER = {"node": "server", "name": "nginx", "command": ["nginx"], "ready": {"listen": "tcp:80"}}
CLIENT = {"node": "client", "command": ["curl", "http://{server.address}/"], "after": ["nginx"]}


def load_with(*apps: dict[str, Any], **tables: Any) -> Any:
    return load(BASE | {"app": list(apps)} | tables)


def test_names_and_expectations_are_filled_in() -> None:
    loaded = load_with(SERVER, CLIENT, {"node": "client", "command": ["/usr/bin/curl", "x"]})
    assert [app.name for app in loaded.app] == ["nginx", "curl", "curl-2"]
    assert [app.expect for app in loaded.app] == ["running", 0, 0]
    assert [app.background for app in loaded.app] == [True, False, False]


def test_without_a_test_the_programs_are_the_test() -> None:
    assert (load_with(SERVER).test.name, load_with(SERVER).test.length) == ("none", 600)
    assert load_with(SERVER, test={"length": 5}).test.name == "none"
    assert load_with(SERVER, test={"length": 5}).test.length == 5
    assert load_with(SERVER, test={"name": "ping"}).test.name == "ping"
    assert load(BASE).test.name == "tcp_nup"


def test_the_server_is_the_last_host_other_than_the_client() -> None:
    def server(*names: str) -> str:
        app = {"node": names[0], "command": ["x"]}
        link = [{"ends": [f"{names[0]}:eth0", f"{names[1]}:eth0"]}]
        return load({"testbed": {"node": [{"name": name} for name in names], "link": link}, "app": [app]}).test.server

    assert server("printer", "client") == "printer"
    assert server("client", "printer") == "printer"


def test_a_scenario_without_programs_has_no_keys_of_them() -> None:
    assert not {"app", "apps"} & json.loads(load(BASE).to_json()).keys()


EXAMPLES = sorted(file for folder in ("apps", "debian") for file in (SCENARIOS / folder).rglob("*.toml"))


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_resolved_examples_load_as_the_same_scenario(file: Path) -> None:
    loaded = load(file)
    assert load(json.loads(loaded.to_json())).to_json() == loaded.to_json()
    assert not (file.parent / "nothing").exists()


def test_files_next_to_the_scenario_become_part_of_it(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("words\n")
    (tmp_path / "bytes").write_bytes(b"\xff\x00")
    (tmp_path / "bytes").chmod(0o755)
    path = tmp_path / "one.toml"
    path.write_text(
        '[testbed]\npreset = "L100M"\n[apps]\nroot = "root"\n[[app]]\nnode = "client"\ncommand = ["x"]\n'
        'files = { "/a" = "text", "/b" = "bytes", "/c" = { text = "own" } }\n'
    )
    loaded = load(path)
    files = loaded.app[0].files
    assert {path: (file.content, file.executable) for path, file in files.items()} == {
        "/a": (b"words\n", False),
        "/b": (b"\xff\x00", True),
        "/c": (b"own", False),
    }
    assert loaded.apps.root == str(tmp_path / "root")
    assert [(root.kind, root.place) for root in roots(loaded)] == [("folder", str(tmp_path / "root"))]


def test_roots_are_named_once_and_by_their_kind(tmp_path: Path) -> None:
    loaded = load_with(
        SERVER, CLIENT | {"root": str(tmp_path / "i.tar")}, CLIENT | {"root": "/"}, apps={"packages": ["curl"]}
    )
    assert [(root.kind, root.packages) for root in roots(loaded)] == [
        ("debian", ["curl"]),
        ("archive", []),
        ("host", ["curl"]),
    ]


REFUSED: list[tuple[list[dict[str, Any]], dict[str, Any], str]] = [
    ([SERVER | {"node": "sever"}], {}, "app.0.node = 'sever': no such node. Did you mean \"server\"?"),
    ([SERVER | {"command": "nginx"}], {}, "app.0.command = 'nginx': must be a list of the program and its arguments"),
    ([SERVER | {"command": []}], {}, "app.0.command = []: must be a list of the program"),
    ([SERVER, SERVER], {}, "app.1.name = 'nginx': is already the name of another program"),
    (
        [SERVER, CLIENT | {"after": ["ngin"]}],
        {},
        "app.1.after = 'ngin': no other program has this name. Did you mean \"nginx\"?",
    ),
    (
        [SERVER | {"after": ["curl"]}, CLIENT],
        {},
        "app.0.after = ['curl']: these programs wait for each other: nginx, curl",
    ),
    ([CLIENT | {"command": ["x", "{sever.address}"], "after": []}], {}, "no such node"),
    ([CLIENT | {"command": ["{server.eth9}"], "after": []}], {}, "followed by address, address6 or one of its devices"),
    ([CLIENT | {"command": ["{server.address6}"], "after": []}], {}, "the testbed has IPv4"),
    ([SERVER | {"ready": {"listen": "80"}}], {}, "app.0.ready.listen = '80': must be a port like \"tcp:80\""),
    ([SERVER | {"ready": {"listen": "tcp:80", "exit": True}}], {}, "one of listen ="),
    ([SERVER | {"files": {"etc": {"text": ""}}}], {}, "an absolute path"),
    ([SERVER | {"files": {"/etc": "no-such-file"}}], {}, "app.0.files./etc = 'no-such-file': no such file"),
    ([SERVER | {"files": {"/a": {"text": "", "base64": ""}}}], {}, "the name of a file next to the scenario"),
    ([SERVER | {"expect": 256}], {}, "an exit status from 0 to 255"),
    ([SERVER | {"signal": "TERM"}], {}, "a signal like"),
    ([SERVER | {"start": 2, "stop": 1}], {}, "app.0.stop = 1: must be after its start, 2 s"),
    ([SERVER | {"collect": ["var/log/*"]}], {}, "an absolute path"),
    ([SERVER | {"env": {"A B": "1"}}], {}, "is not a name of a variable"),
    ([SERVER | {"user": "-x"}], {}, "a user of the root's /etc/passwd"),
    ([SERVER], {"apps": {"root": "debian:9"}}, "apps.root = 'debian:9': must be \"debian:11\""),
    (
        [SERVER],
        {"apps": {"root": "/srv", "packages": ["curl"]}},
        "apps.packages = ['curl']: needs a root of Debian",
    ),
    ([SERVER], {"apps": {"packages": ["Curl!"]}}, "a list of Debian packages"),
    ([SERVER | {"comand": 1}], {}, 'unknown key. Did you mean "command"?'),
]


@pytest.mark.parametrize(
    ("apps", "tables", "message"), REFUSED, ids=lambda value: value[:40] if isinstance(value, str) else ""
)
def test_a_mistake_is_reported_in_one_line(apps: list[dict[str, Any]], tables: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        load_with(*apps, **tables)
    assert message in str(error.value)
    assert "\n" not in str(error.value)

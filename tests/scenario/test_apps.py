# SPDX-License-Identifier: Apache-2.0
"""Programs in a scenario: what is filled in, what is refused, files and roots beside the scenario's file."""

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


def of(*apps: dict[str, Any], **more: Any) -> Any:
    return load(BASE | {"app": list(apps)} | more)


def test_names_and_expectations_are_filled_in() -> None:
    made = of(SERVER, CLIENT, {"node": "client", "command": ["/usr/bin/curl", "x"]})
    assert [one.name for one in made.app] == ["nginx", "curl", "curl-2"]
    assert [one.expect for one in made.app] == ["running", 0, 0]
    assert [one.background for one in made.app] == [True, False, False]


def test_programs_are_the_test_where_none_is_named() -> None:
    assert (of(SERVER).test.name, of(SERVER).test.length) == ("none", 600)
    assert of(SERVER, test={"length": 5}).test.name == "none"
    assert of(SERVER, test={"length": 5}).test.length == 5
    assert of(SERVER, test={"name": "ping"}).test.name == "ping"
    assert load(BASE).test.name == "tcp_nup"


def test_a_scenario_without_programs_is_written_as_before() -> None:
    assert not {"app", "apps"} & json.loads(load(BASE).to_json()).keys()


@pytest.mark.parametrize("file", sorted((SCENARIOS / "apps").glob("*.toml")), ids=lambda file: file.stem)
def test_the_examples_are_the_same_when_they_are_loaded_again(file: Path) -> None:
    made = load(file)
    assert load(json.loads(made.to_json())).to_json() == made.to_json()
    assert not (file.parent / "nothing").exists()


def test_files_beside_the_scenario_are_read_into_it(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("words\n")
    (tmp_path / "bytes").write_bytes(b"\xff\x00")
    (tmp_path / "bytes").chmod(0o755)
    place = tmp_path / "one.toml"
    place.write_text(
        '[testbed]\npreset = "L100M"\n[apps]\nroot = "root"\n[[app]]\nnode = "client"\ncommand = ["x"]\n'
        'files = { "/a" = "text", "/b" = "bytes", "/c" = { text = "own" } }\n'
    )
    made = load(place)
    files = made.app[0].files
    assert {path: (one.content, one.executable) for path, one in files.items()} == {
        "/a": (b"words\n", False),
        "/b": (b"\xff\x00", True),
        "/c": (b"own", False),
    }
    assert made.apps.root == str(tmp_path / "root")
    assert [(one.kind, one.place) for one in roots(made)] == [("folder", str(tmp_path / "root"))]


def test_roots_are_named_once_and_by_their_kind(tmp_path: Path) -> None:
    made = of(SERVER, CLIENT | {"root": str(tmp_path / "i.tar")}, CLIENT | {"root": "/"}, apps={"packages": ["curl"]})
    assert [(one.kind, one.packages) for one in roots(made)] == [
        ("debian", ["curl"]),
        ("archive", []),
        ("host", ["curl"]),
    ]


REFUSED: list[tuple[list[dict[str, Any]], dict[str, Any], str]] = [
    ([SERVER | {"node": "sever"}], {}, "app.0.node = 'sever': no such node. Did you mean \"server\"?"),
    ([SERVER | {"command": "nginx"}], {}, "app.0.command = 'nginx': a list of the program and its arguments"),
    ([SERVER | {"command": []}], {}, "app.0.command = []: a list of the program"),
    ([SERVER, SERVER], {}, "app.1.name = 'nginx': is the name of another program"),
    ([SERVER, CLIENT | {"after": ["ngin"]}], {}, "app.1.after = 'ngin': no other program. Did you mean \"nginx\"?"),
    ([SERVER | {"after": ["curl"]}, CLIENT], {}, "app.0.after = ['curl']: programs wait for each other: nginx, curl"),
    ([CLIENT | {"command": ["x", "{sever.address}"], "after": []}], {}, "no such node"),
    ([CLIENT | {"command": ["{server.eth9}"], "after": []}], {}, "after the node address, address6 or a device"),
    ([CLIENT | {"command": ["{server.address6}"], "after": []}], {}, "the testbed has IPv4"),
    ([SERVER | {"ready": {"listen": "80"}}], {}, "app.0.ready.listen = '80': a port like \"tcp:80\""),
    ([SERVER | {"ready": {"listen": "tcp:80", "exit": True}}], {}, "one of listen ="),
    ([SERVER | {"files": {"etc": {"text": ""}}}], {}, "an absolute path"),
    ([SERVER | {"files": {"/etc": "no-such-file"}}], {}, "app.0.files./etc = 'no-such-file': no such file"),
    ([SERVER | {"files": {"/a": {"text": "", "base64": ""}}}], {}, "the name of a file beside the scenario"),
    ([SERVER | {"expect": 256}], {}, "an exit status from 0 to 255"),
    ([SERVER | {"signal": "TERM"}], {}, "a signal like"),
    ([SERVER | {"start": 2, "stop": 1}], {}, "app.0.stop = 1: after its start, 2 s"),
    ([SERVER | {"collect": ["var/log/*"]}], {}, "an absolute path"),
    ([SERVER | {"env": {"A B": "1"}}], {}, "is no name of a variable"),
    ([SERVER | {"user": "-x"}], {}, "a user of the root's /etc/passwd"),
    ([SERVER], {"apps": {"root": "debian:9"}}, "apps.root = 'debian:9': \"debian:11\""),
    (
        [SERVER],
        {"apps": {"root": "/srv", "packages": ["curl"]}},
        "apps.packages = ['curl']: goes with a root of Debian",
    ),
    ([SERVER], {"apps": {"packages": ["Curl!"]}}, "a list of Debian packages"),
    ([SERVER | {"comand": 1}], {}, 'unknown key. Did you mean "command"?'),
]


@pytest.mark.parametrize(("apps", "more", "message"), REFUSED, ids=lambda one: one[:40] if isinstance(one, str) else "")
def test_what_is_wrong_is_told_in_one_line(apps: list[dict[str, Any]], more: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        of(*apps, **more)
    assert message in str(error.value)
    assert "\n" not in str(error.value)

# SPDX-License-Identifier: Apache-2.0
"""`hourglass box` as the runner of Cargo's, Go's and pytest's tests: each connects over a delay, and takes exactly a
round trip."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.guest

DELAY = "ip link set lo up; tc qdisc add dev lo root netem delay 50ms"

RUST = {
    "Cargo.toml": '[package]\nname = "example"\nversion = "0.1.0"\nedition = "2021"\n',
    ".cargo/config.toml": '[target.x86_64-unknown-linux-gnu]\nrunner = "hourglass box --"\n',
    "src/lib.rs": f"""
#[test]
fn a_connect_takes_a_round_trip() {{
    assert!(std::process::Command::new("sh").args(["-c", "{DELAY}"]).status().unwrap().success());
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let begin = std::time::Instant::now();
    std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    assert_eq!(begin.elapsed().as_micros(), 100_000);
}}
""",
}

GO = {
    "go.mod": "module example\n\ngo 1.19\n",
    "delay_test.go": f"""
package example

import (
	"net"
	"os/exec"
	"testing"
	"time"
)

func TestConnectTakesARoundTrip(t *testing.T) {{
	if text, err := exec.Command("sh", "-c", "{DELAY}").CombinedOutput(); err != nil {{
		t.Fatal(string(text))
	}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {{
		t.Fatal(err)
	}}
	begin := time.Now()
	if _, err := net.Dial("tcp", listener.Addr().String()); err != nil {{
		t.Fatal(err)
	}}
	if took := time.Since(begin).Round(time.Microsecond); took != 100*time.Millisecond {{
		t.Fatal(took)
	}}
}}
""",
}

PYTHON = {
    "test_delay.py": f"""
import socket, subprocess, time

def test_a_connect_takes_a_round_trip():
    subprocess.run("{DELAY}", shell=True, check=True)
    server = socket.create_server(("127.0.0.1", 0))
    begin = time.monotonic()
    socket.create_connection(server.getsockname())
    assert round(time.monotonic() - begin, 6) == 0.1
"""
}

RUNNERS = {
    "cargo": (RUST, ["cargo", "test", "--lib"], "1 passed"),
    "go": (GO, ["go", "test", "-count=1", "-exec", "hourglass box --", "./..."], "ok  \texample"),
    "python3": (PYTHON, ["hourglass", "box", "--", "python3", "-m", "pytest", "-p", "no:cacheprovider"], "1 passed"),
}


@pytest.mark.parametrize("runner", RUNNERS)
def test_each_test_has_its_own_box(runner: str, tmp_path: Path) -> None:
    if shutil.which(runner) is None:
        pytest.skip(f"{runner} is not installed")
    files, command, passed = RUNNERS[runner]
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    result = subprocess.run(
        command, cwd=tmp_path, env=os.environ | {"PATH": path}, text=True, capture_output=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert passed in result.stdout

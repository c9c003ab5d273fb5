# SPDX-License-Identifier: Apache-2.0
"""Fetch a small and a large page from a server beyond a tunnel, with two MTUs."""

import http.client
import subprocess
import sys
import time

PATIENCE_S = 5


def fetch(server: str, path: str) -> None:
    """Print the number of received bytes and the time."""
    begun = time.monotonic()
    connection = http.client.HTTPConnection(server, timeout=PATIENCE_S)
    came = 0
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        while piece := answer.read1():
            came += len(piece)
        print(f"{path}: {came} bytes in {time.monotonic() - begun:.3f} s")
    except TimeoutError:
        print(f"{path}: {came} bytes, then nothing for {PATIENCE_S} s")
    finally:
        connection.close()


for mtu in (1420, 1320):  # 1,340 at both ends would do; the other end pads to whole 16 bytes
    subprocess.run(["ip", "link", "set", "wg0", "mtu", str(mtu)], check=True)
    print(f"MTU {mtu}")
    fetch(sys.argv[1], "/nothing")
    fetch(sys.argv[1], "/large")

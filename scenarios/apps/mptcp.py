# SPDX-License-Identifier: Apache-2.0
"""A server that prints the data received over MPTCP each quarter of a second. With an address: its client, for 7 s."""

import socket
import sys
import threading
import time

PORT = 8000
LENGTH_S = 7
STEP_S = 0.25


def serve() -> None:
    """Serve one client. The socket keeps listening, since more subflows connect to its port."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_MPTCP) as listening:
        listening.bind(("0.0.0.0", PORT))
        listening.listen()
        connection, _ = listening.accept()
        came, over = 0, threading.Event()

        def tell() -> None:
            before, begun = 0, time.monotonic()
            for step in range(1, round(LENGTH_S / STEP_S) + 1):
                time.sleep(max(0.0, begun + step * STEP_S - time.monotonic()))
                print(f"{step * STEP_S:4.2f} s: {8e-6 * (came - before) / STEP_S:5.1f} Mbit/s")
                before = came
            over.set()

        threading.Thread(target=tell, daemon=True).start()
        while data := connection.recv(1 << 20):
            came += len(data)
        over.wait()


def send(address: str) -> None:
    """Send as much as possible."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_MPTCP) as connection:
        connection.connect((address, PORT))
        end = time.monotonic() + LENGTH_S
        while time.monotonic() < end:
            connection.sendall(bytes(1 << 16))


send(sys.argv[1]) if len(sys.argv) > 1 else serve()

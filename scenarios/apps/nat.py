# SPDX-License-Identifier: Apache-2.0
"""A server that answers every line. With an address and seconds: a client that sends a line after each pause."""

import socket
import sys
import time

PORT = 9000
PATIENCE_S = 10


def serve() -> None:
    """Serve one client at a time."""
    with socket.create_server(("0.0.0.0", PORT)) as listening:
        while True:
            connection, address = listening.accept()
            print(f"a client from {address[0]}")
            with connection, connection.makefile("rwb") as lines:
                for line in lines:
                    lines.write(line)
                    lines.flush()


def ask(address: str, pauses: list[int]) -> None:
    """Print the pause after which no answer came."""
    with socket.create_connection((address, PORT)) as connection:
        connection.settimeout(PATIENCE_S)
        for pause in pauses:
            time.sleep(pause)
            connection.sendall(b"still there?\n")
            try:
                print(f"after {pause} s: {connection.recv(100).decode().strip()}")
            except TimeoutError:
                print(f"after {pause} s: no answer within {PATIENCE_S} s")


ask(sys.argv[1], [int(pause) for pause in sys.argv[2:]]) if len(sys.argv) > 1 else serve()

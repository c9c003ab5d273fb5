# SPDX-License-Identifier: Apache-2.0
"""Write to a Redis server. Print the time of a write, and the time until a replica has it."""

import socket
import sys
import time


class Server:
    """A connection with the parts of RESP that this program needs."""

    def __init__(self, address: str) -> None:
        self.lines = socket.create_connection((address, 6379)).makefile("rwb")

    def ask(self, *words: object) -> str:
        """Return the reply's first line, without its type."""
        parts = [str(word).encode() for word in words]
        self.lines.write(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts))
        self.lines.flush()
        return self.lines.readline().decode().strip()[1:]


server = Server(sys.argv[1])
begin = time.monotonic()
for number in range(10):
    time.sleep(max(0.0, begin + number - time.monotonic()))
    begun = time.monotonic_ns()
    server.ask("SET", "key", number)
    written = time.monotonic_ns()
    replicas = server.ask("WAIT", 1, 5000)
    replicated = time.monotonic_ns()
    print(
        f"{number}: written {(written - begun) / 1e6:.3f} ms, at {replicas} replica after"
        f" {(replicated - begun) / 1e6:.3f} ms"
    )

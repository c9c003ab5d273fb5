# SPDX-License-Identifier: Apache-2.0
"""Try the addresses of a name one after another, as programs did before RFC 6555."""

import socket
import sys
import time

begun = time.monotonic()
with socket.create_connection((sys.argv[1], 80), timeout=3) as connection:
    print(f"{connection.getpeername()[0]} connected {time.monotonic() - begun:.6f}")

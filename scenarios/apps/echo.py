# SPDX-License-Identifier: Apache-2.0
"""An echo server. With an address and a number N: a client that makes N round trips and prints their times."""

import asyncio
import sys
import time

PORT = 7


async def serve() -> None:
    """Echo all received data."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1000):
            writer.write(data)
        writer.close()

    await (await asyncio.start_server(answer, "0.0.0.0", PORT)).serve_forever()


async def ask(address: str, count: int) -> None:
    """Make the round trips one after another and print their times."""
    reader, writer = await asyncio.open_connection(address, PORT)
    times = []
    for number in range(count):
        begun = time.monotonic_ns()
        writer.write(b"%9d\n" % number)
        await reader.readexactly(10)
        times.append(time.monotonic_ns() - begun)
    print(f"round trips: {count}, least {min(times)} ns, most {max(times)} ns")
    writer.close()


asyncio.run(ask(sys.argv[1], int(sys.argv[2])) if len(sys.argv) > 1 else serve())

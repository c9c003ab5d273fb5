# SPDX-License-Identifier: Apache-2.0
"""A server of an object of two million bytes, over QUIC by aioquic or over TCP. With an address: its client."""

import asyncio
import ssl
import sys
import time

from aioquic.asyncio import connect, serve  # type: ignore[import-not-found]
from aioquic.quic.configuration import QuicConfiguration  # type: ignore[import-not-found]

SIZE = 2_000_000
PORTS = {"quic": 4434, "tcp": 4435}
PROTOCOL = "example"


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send the object after each line."""
    await reader.readline()
    writer.write(bytes(SIZE))
    writer.write_eof()


async def serve_quic() -> None:
    configuration = QuicConfiguration(is_client=False, alpn_protocols=[PROTOCOL])
    configuration.load_cert_chain("/srv/cert.pem", "/srv/key.pem")

    def stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.append(asyncio.ensure_future(answer(reader, writer)))

    tasks: list[asyncio.Future[None]] = []
    await serve("0.0.0.0", PORTS["quic"], configuration=configuration, stream_handler=stream)
    await asyncio.Event().wait()


async def serve_tcp() -> None:
    async with await asyncio.start_server(answer, "0.0.0.0", PORTS["tcp"]) as server:
        await server.serve_forever()


async def fetch(kind: str, address: str) -> int:
    """Return the number of received bytes."""
    if kind == "tcp":
        reader, writer = await asyncio.open_connection(address, PORTS[kind])
        writer.write(b"object\n")
        return len(await reader.read())
    configuration = QuicConfiguration(is_client=True, alpn_protocols=[PROTOCOL], verify_mode=ssl.CERT_NONE)
    async with connect(address, PORTS[kind], configuration=configuration) as connection:
        reader, writer = await connection.create_stream()
        writer.write(b"object\n")
        return len(await reader.read())


kind = sys.argv[1]
if len(sys.argv) > 2:
    begun = time.monotonic()
    came = asyncio.run(fetch(kind, sys.argv[2]))
    took = time.monotonic() - begun
    print(f"{came} bytes in {took:.3f} s, {8e-6 * came / took:.2f} Mbit/s")
else:
    asyncio.run(serve_quic() if kind == "quic" else serve_tcp())

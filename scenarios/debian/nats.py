# SPDX-License-Identifier: Apache-2.0
"""A client of NATS by its text protocol: answers questions about squares, or asks three of them."""

import socket
import sys

sock = socket.create_connection(("server", 4222))
lines = sock.makefile("rwb", 0)


def send(text: str) -> None:
    lines.write(text.replace("\n", "\r\n").encode())


def receive(kind: str) -> list[str]:
    while True:
        line = lines.readline().decode().split()
        if not line:
            sys.exit("The server closed the connection.")
        if line[0] == "PING":
            send("PONG\n")
        if line[0] == "-ERR":
            sys.exit(" ".join(line))
        if line[0] == kind:
            return line


def message() -> tuple[list[str], str]:
    head = receive("MSG")
    body = lines.read(int(head[-1]) + 2).decode().strip()
    return head, body


receive("INFO")
send('CONNECT {"verbose": false, "lang": "python", "version": "1"}\n')
if sys.argv[1] == "answer":
    send("SUB square 1\nPING\n")
    print(*receive("PONG"))
    while True:
        head, body = message()
        answer = str(int(body) ** 2)
        send(f"PUB {head[3]} {len(answer)}\n{answer}\n")

send("SUB reply 1\n")
for number in 3, 12, 1000:
    send(f"PUB square reply {len(str(number))}\n{number}\n")
    _, body = message()
    print(f"{number} squared is {body}")
    if int(body) != number * number:
        sys.exit("wrong answer")

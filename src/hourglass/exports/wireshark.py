# SPDX-License-Identifier: Apache-2.0
"""Write a configuration folder for Wireshark that shows the packet comments of captures as fields, columns and colours.

`wireshark.lua` makes fields of the comments. The profile `Hourglass` has columns of them, and colours packets by the
layer in which they spent most time.
"""

from importlib.resources import files as package_files
from pathlib import Path

from hourglass import files
from hourglass.contract.probe import LAYERS
from hourglass.errors import InputError
from hourglass.results.explain.latency import SOCKET, TRANSMISSION
from hourglass.results.explain.loads import QUEUES
from hourglass.results.recording import Recording

FOLDER, PROFILE, SCRIPT = "wireshark", "Hourglass", "hourglass.lua"
COLUMN_LAYERS = ("cwnd", "tsq", "qdisc", "ring")
COLUMNS = {
    "No.": "%m", "Time": "%t", "Source": "%s", "Destination": "%d", "Length": "%L",
    "Stream": "%Cus:hourglass.stream:0:R", "Packet": "%Cus:hourglass.packet:0:R",
    "Longest in": "%Cus:hourglass.longest:0:R", "Total us": "%Cus:hourglass.total:0:R",
    **{f"{layer} us": f"%Cus:hourglass.{layer}:0:R" for layer in COLUMN_LAYERS},
    "Info": "%i",
}  # fmt: skip
"""Wireshark's formats of columns, by title."""
COLOURS = {
    "waits in the socket": (SOCKET, (65535, 61166, 52428)),
    "waits in a queue": (QUEUES, (65535, 54998, 54998)),
    "on the medium": (TRANSMISSION, (56797, 60909, 65535)),
}
"""Rules: the layers, and the background in Wireshark's 16 bits per colour."""


def write(run: Recording, folder: Path) -> list[Path]:
    """Write the script and the profile below `folder`. Raises `InputError` for a run without captures."""
    if run.info.elsewhere:
        raise InputError("RUN", str(run.path), "is a Flent file, which has no captures for Wireshark")
    if not run.path.is_dir() or not any(run.path.glob("*.pcapng")):
        remedy = """make one with --set 'capture.pcap=["NODE:DEVICE"]'"""
        raise InputError("RUN", str(run.path), f"has no captures for Wireshark; {remedy}")
    script = (package_files("hourglass.exports") / "wireshark.lua").read_text()
    names = ", ".join(f'"{layer}"' for layer in LAYERS)
    profile = Path("profiles", PROFILE)
    texts = {
        Path(SCRIPT): script.replace("@LAYERS@", names),
        profile / "preferences": _preferences(),
        profile / "colorfilters": _colours(),
    }
    paths = []
    for name, text in texts.items():
        path = folder / FOLDER / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with files.output(path, "the configuration") as half:
            half.write_text(text)
        paths.append(path)
    return paths


def _preferences() -> str:
    listed = ",\n".join(f'\t"{title}", "{form}"' for title, form in COLUMNS.items())
    return f"gui.column.format:\n{listed}\n"


def _colours() -> str:
    """Return the rules: each is a name, a display filter, a background and a foreground."""
    lines = []
    for name, (layers, background) in COLOURS.items():
        members = ", ".join(f'"{layer}"' for layer in layers)
        shades = ",".join(str(shade) for shade in background)
        lines.append(f"@{name}@hourglass.longest in {{{members}}}@[{shades}][0,0,0]\n")
    return "".join(lines)

# SPDX-License-Identifier: Apache-2.0
"""The source distribution: what setuptools packs, with the commit's time, nobody's names and in order."""

import gzip
import sys
import tarfile
from io import BytesIO
from pathlib import Path

from release.command import called

BUILD = "import sys, setuptools.build_meta as b; b.build_sdist(sys.argv[1])"


def build(checkout: Path, folder: Path, epoch: int) -> Path:
    """Writes hourglass-VERSION.tar.gz; the same commit gives the same bytes."""
    for old in folder.glob("hourglass-[0-9]*.tar.gz"):
        old.unlink()
    called([sys.executable, "-c", BUILD, str(folder.resolve())], checkout)
    (made,) = folder.glob("hourglass-[0-9]*.tar.gz")
    made.write_bytes(normal(made.read_bytes(), epoch))
    return made


def normal(packed: bytes, epoch: int) -> bytes:
    """A tar.gz without what the day and the machine left in it."""
    out = BytesIO()
    with (
        tarfile.open(fileobj=BytesIO(packed)) as source,
        gzip.GzipFile("", "wb", 9, out, epoch) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as target,
    ):
        for member in sorted(source.getmembers(), key=lambda member: member.name):
            member.mtime, member.uid, member.gid, member.uname, member.gname = epoch, 0, 0, "", ""
            member.pax_headers = {}
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            target.addfile(member, source.extractfile(member) if member.isfile() else None)
    return out.getvalue()

# SPDX-License-Identifier: Apache-2.0
"""Build the source distribution: setuptools' archive, normalised to the commit's time, without owners and sorted."""

import gzip
import sys
import tarfile
from io import BytesIO
from pathlib import Path

from release.command import output_of

BUILD = "import sys, setuptools.build_meta as b; b.build_sdist(sys.argv[1])"


def build(checkout: Path, folder: Path, epoch: int) -> Path:
    """Write hourglass_net-VERSION.tar.gz. The same commit gives the same bytes."""
    for old in folder.glob("hourglass_net-[0-9]*.tar.gz"):
        old.unlink()
    output_of([sys.executable, "-c", BUILD, str(folder.resolve())], checkout)
    (archive,) = folder.glob("hourglass_net-[0-9]*.tar.gz")
    archive.write_bytes(normal(archive.read_bytes(), epoch))
    return archive


def normal(packed: bytes, epoch: int) -> bytes:
    """Return a tar.gz without traces of date and machine."""
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

# SPDX-License-Identifier: Apache-2.0
"""Build the roots of programs: folders that a guest's programs see as `/`, below their own writes.

ready.py    a plan's root → a folder and the digest of its content
debian.py   builds a root from Debian packages          image.py  builds one from an OCI image archive
folder.py   a folder that is never written outside; its digest

    approots/KEY/root/       the files
    approots/KEY/made.json   its sources, and its digest
    approots/apt-RELEASE/    apt's lists, and the downloaded packages

A root stays until it is deleted. Modes are those of packages and images, but the owner can read everything. Owners,
device nodes and times are omitted: in a guest, root owns all files, and all have one time."""

from hourglass.builders.approot.ready import ReadyRoot, ready

__all__ = ["ReadyRoot", "ready"]

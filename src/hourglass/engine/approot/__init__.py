# SPDX-License-Identifier: Apache-2.0
"""The roots of programs: folders that a guest's programs see as `/`, below what they write.

ready.py    a plan's root → a folder and the digest of what is in it
debian.py   made of Debian's packages          image.py  made of an OCI image archive
folder.py   a folder that is written to, and never outside it; its digest

    approots/KEY/root/       the files
    approots/KEY/made.json   what it was made of, and its digest
    approots/apt-RELEASE/    apt's lists, and the packages that were fetched

A root that was made stays until it is deleted. Modes are those of packages and images, but everything can be read by
its owner; owners, device nodes and times are left out: a guest sees them all as root's, and of one time.
"""

from hourglass.engine.approot.ready import Made, ready

__all__ = ["Made", "ready"]

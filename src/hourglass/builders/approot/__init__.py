# SPDX-License-Identifier: Apache-2.0
"""Build the roots of programs: folders that a guest's programs see as `/`, below their own writes.

ready.py             a plan's root → a folder and the digest of its content
debian.py            unpacks Debian packages
package_scripts.py   configures them in a guest
image.py             unpacks an OCI image archive
folder.py            a folder that is never written outside; its digest

    approots/KEY/root/       the files
    approots/KEY/owners      the files that do not belong to root, and their owners in a guest
    approots/KEY/made.json   its sources, and its digest
    approots/KEY.scripts/    the guest's output, if scripts of its packages failed
    approots/apt-RELEASE/    apt's lists, and the downloaded packages

A root stays until it is deleted. Modes are those of packages and images, but the owner can read everything. Device
nodes are omitted, and in a guest all files have one time."""

from hourglass.builders.approot.ready import ReadyRoot, ready

__all__ = ["ReadyRoot", "ready"]

# SPDX-License-Identifier: Apache-2.0
"""Makes a release and tries it: `python -m release` (`make release`).

`places` lists where Hourglass is installed: bare roots, made by `roots` (debootstrap) and `musl` (a CPython built for
musl). `wheels` downloads for each what Hourglass needs of others, `check` installs and runs it there, `image` makes the
OCI image, `changelog` the section of the CHANGELOG. It is not called "packaging": that is a module of PyPI's.
"""

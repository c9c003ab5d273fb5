# SPDX-License-Identifier: Apache-2.0
"""Build and test a release: `python -m release` (`make release`).

`bare_roots` lists the roots for the tests, built by `roots` (debootstrap) and `musl` (a CPython for musl). `wheels`
downloads Hourglass's dependencies for each. `check` installs and runs Hourglass there, `image` builds the OCI image,
`changelog` writes the CHANGELOG's section. The name is not "packaging", because that is a module on PyPI.
"""

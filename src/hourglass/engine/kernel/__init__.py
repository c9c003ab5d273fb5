# SPDX-License-Identifier: Apache-2.0
"""Guest kernels: from a source tree and the repository's kernel/ folder to a binary in the cache.

source      a pristine tree: a distribution's package, or a folder the user names
hooks       kernel/hooks, kernel/drivers and kernel/tests, laid over a tree
config      the merged configuration, and the check that nothing of it got lost
recipe      what goes into a kernel, and the key that stands for it
ccache      the environment in which make runs
build       make, and the finished kernels by name and by key
tune        the PGO build of a kernel
store       the kernels that are there
"""

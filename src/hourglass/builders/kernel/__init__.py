# SPDX-License-Identifier: Apache-2.0
"""Guest kernels: from a source tree and the repository's kernel/ folder to a binary in the cache.

source_tree      a pristine tree: a distribution's package, or a folder that the user names; obtain fetches it
tree_spec        parses the words that name a kernel tree: DIR@REVISION+FILE
hooks            applies kernel/hooks, kernel/drivers and kernel/tests to a tree
custom_modules   adds the user's congestion controls and qdiscs
config           merges the configuration, and checks that make accepted all of it
recipe           lists what determines a kernel, and computes its key
worktree         the tree in which make runs
ccache           the environment in which make runs
builder          runs make, and caches finished kernels by name and by key
tune             the PGO build of a kernel
registry         finds kernels by name
bisect           finds the commit from which on a check of its kernel fails
patch            the patch for real kernels; patch_check compiles it
static_checks    checkpatch and sparse
"""

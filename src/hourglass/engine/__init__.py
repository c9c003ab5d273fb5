# SPDX-License-Identifier: Apache-2.0
"""Below the engine seam: a plan goes in, records come out. Knows no scenario, no preset, no statistic.

kernel/     obtains kernel sources, applies kernel/hooks and kernel/drivers, builds and keeps guest kernels
agent       the program that executes plans: cargo builds it into the cache
root        the guest's own root file system: one small archive with the agent and the tools it drives
cpio        the format of that archive
base        what an engine is; engines lists those there are
virtual     runs a plan in a guest kernel in virtual time
native      runs a plan on this machine's own kernel in real time
follow      follows either from its start to a verdict on its end
console     the guest's console: the agent's events, the kernel's complaints
cpu         one CPU for each guest
process     a group of processes that outlives nobody
doctor      what this machine lacks, and the command that fixes it
paths       where the cache is
"""

# SPDX-License-Identifier: Apache-2.0
"""Build what engines start, or take it from the cache or a wheel: kernels, the agent, the roots of guests and programs.

kernel/          obtains kernel sources, applies kernel/hooks and kernel/drivers, builds and caches guest kernels
approot/         builds the roots of the programs that run in a guest
agent            builds the program that executes plans, with cargo
root             builds the guest's root file system: one small archive with the agent and the tools it calls
tool_packages    fetches those tools from Debian; elf, cpio and loader_cache know the formats
prebuilt         finds all of these in a released wheel; sources fetches their sources
digest_cache     stores derived digests in the cache
"""

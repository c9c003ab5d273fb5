# SPDX-License-Identifier: Apache-2.0
"""Below the engine seam: a plan goes in, records come out. Knows no scenario, no preset, no statistic.

ssh/             runs a plan on several hosts that ssh reaches
base             the protocol of an engine; engines lists the engines
virtual          runs a plan in a guest kernel in virtual time
native           runs a plan on this machine's kernel in real time
supervise        follows a run from its start to the verdict on its end
console          parses the guest's console: the agent's events, the kernel's complaints
watchdog         detects a guest that hangs; spin, guest_memory and symbols find out where
cpu              reserves one CPU for each guest
host_conditions  names what the host lacks, refused or did to a guest, with the remedy
doctor           lists what this machine lacks, and the command that fixes it; host_tools installs it
"""

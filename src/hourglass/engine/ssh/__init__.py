# SPDX-License-Identifier: Apache-2.0
"""Runs a plan on hosts that ssh reaches. Each host is a node.

split.py          a plan → each host's part of it
inspection.py     checks that a host can run its part
channel.py        one host: ssh, the agent, its messages
coordinator.py    all hosts: set up, start together, end
clocks.py         exchanges of timestamps → the offset of a clock, and its uncertainty
one_way_delay.py  one-way delays by the clocks of two hosts
merge.py          the hosts' records → one file, by one clock
engine.py         the engine
"""

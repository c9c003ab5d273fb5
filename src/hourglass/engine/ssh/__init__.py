# SPDX-License-Identifier: Apache-2.0
"""Runs a plan on machines that ssh reaches, each of them a node.

split.py     a plan → each machine's part of it      clocks.py   exchanges of times → how a clock stands, and how surely
check.py     what a machine lacks                    merge.py    the machines' records → one file, by one clock
channel.py   one machine: ssh, the agent, its words  conduct.py  all of them: set up, begin together, end
engine.py    the engine
"""

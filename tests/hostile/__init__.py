# SPDX-License-Identifier: Apache-2.0
"""Attacks on the Python side by files of a stranger: each test is an attack and its outcome."""

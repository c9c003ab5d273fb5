# SPDX-License-Identifier: Apache-2.0
"""Hourglass: the real Linux network stack in virtual time.

The way of the data, one folder each: `scenario` → `plan` → `engine` → `results` → `plots`; `cli` calls them in that order.
"""

# SPDX-License-Identifier: Apache-2.0
"""Runs as tests: figures that compare, and the pytest plugin."""

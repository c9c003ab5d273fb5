# SPDX-License-Identifier: Apache-2.0
"""Runs in the formats of other viewers: `perfetto`, with the encoding of its file in `trace_file`, and `qlog`. Flent's
format has its own package."""

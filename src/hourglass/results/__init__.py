# SPDX-License-Identifier: Apache-2.0
"""Compute figures from records. Knows files and records, never how a run was made.

`run_directory` opens a run directory as a `recording`: tables (`records` reads them, `frames` completes them), streams,
paths, the test. `run_files` has the file names, and `staging` creates a run directory safely. `series` cuts windows and
steps (`sockets`: TCP's samples as arrays), `gaps` finds missing samples, `phases` derives BBR's phase, `anatomy` splits
the time by layer, `wifi` reports radios, `traffic` everything but bulk data (`emodel`: call quality), `stats` has the
percentiles. `summarize` combines them into the summary, with the warnings of `lint`.

`compare` compares runs (`intervals`: significance; `groups`: over seeds), `labels` names them, `goodput_latency` pairs
goodput with latency.
"""

# SPDX-License-Identifier: Apache-2.0
"""What was measured → its figures. Knows files and records, never how a run was made.

`opening` opens a run directory (`files` has its names, `directory` makes one safely) as a `recording`: tables
(`records` reads them, `frames` completes them), streams, paths, the test. `series` cuts windows and steps out of it
(`sockets`: TCP's samples as arrays), `phases` derives what a socket's samples do not say, `anatomy` says in which layer
the time goes, `wifi` what the radios did, `traffic` what else was sent than bulk data (`emodel`: how a call sounds),
`stats` has the percentiles. `summarize` makes the summary of all that, with what `lint` finds.

`compare` holds runs against each other (`bootstrap`: what is significant; `groups`: over seeds), `labels` says what to
call them, `points` pairs goodput with latency.
"""

# SPDX-License-Identifier: Apache-2.0
"""A run directory → tables and the summary object. Knows files and records, never how the run was made.

`records` reads the Arrow streams, `run` is the directory as an object, `directory` makes one safely, `series` cuts
windows and steps out of the tables, `probe` names layers and streams, `sockets` derives what a socket's samples do not
say, `anatomy` says in which layer the time goes, `wifi` what the radios did, `traffic` what else was
sent than bulk data (`emodel`: how a call sounds), `stats` has the percentiles, `summary` is
the object that `--json` prints, `compare` holds runs against each other (`bootstrap`: what is significant; `groups`:
over seeds), `labels` says what to call them, `points` pairs goodput with latency, `lint` names known traps.
"""

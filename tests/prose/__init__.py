# SPDX-License-Identifier: Apache-2.0
"""Checks of names and prose against the writing guide (docs/contributing/style.md).

`rules` finds violations; `python -m tests.prose [FOLDER…]` lists them. `markdown` splits pages into sentences.
"""

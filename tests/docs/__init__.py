# SPDX-License-Identifier: Apache-2.0
"""Executes the documentation: every command, snippet, scenario and figure of its pages comes from a run of today.

`pages` finds the pieces of a page, `output` compares a command's output with the page, `figures` compares single
numbers, `play` executes pages; `python -m tests.docs --update` rewrites them.

| on the page | action |
|---|---|
| fence `console` | each `$` line is executed, its output is below it; it has to succeed unless an error is shown |
| fence `sh` | commands without output: options and arguments are parsed, `make` targets looked up; not executed |
| fence `python`, with `file=NAME` | written to NAME |
| fence `python` | executed, in one namespace a page; a fence `text` right after it is its output |
| fence `toml`, with `file=NAME` | written to NAME and loaded as a scenario or a sweep |

The bookkeeping of a page is in its sidecar, `pages/FOLDER/PAGE.toml`, so that nobody has to read it in the text:

| in the sidecar | action |
|---|---|
| `needs` | the pages whose files and runs this one uses, for `python -m tests.docs PAGE` |
| `commands` | executed after the page's fences; the page does not show them |
| `[[figure]]`: `text` with `{}` for each number, `from` | each number is `RUN FIGURE` of a summary, with as many digits; `FIGURE*100`: in % |
| `[[table]]`: `head`, `command`, `cell` | a run per row: `{0}` is the row's first cell, `cell` with `{figure}`s its last |
| `[[picture]]`: `file`, `from` | a picture that a command drew |

`text`, `head` and `file` have to occur exactly once on the page; otherwise the test fails. `pages/made-with.toml`
has the key of the guest's tools that made the pages.

All pages are played in one folder, in the order of `PAGES`. In an output the line `…` stands for any lines, `…` at the
end of a line for its rest. Not compared (`output.UNSTABLE`): wall times, which depend on the machine, and the hashes in
the names of run directories, which depend on the compiler. None of this covers prose about wall times.
"""  # noqa: E501

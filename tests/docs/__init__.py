# SPDX-License-Identifier: Apache-2.0
"""The README and the guide, executed: every command, snippet, scenario and figure on them comes from a run of today.

`pages` finds the pieces of a page, `output` compares what a command printed with what the page shows, `figures` does so
for single numbers, `play` executes a page; `python -m tests.docs --update` writes what it finds into the pages.

| on the page | what is done with it |
|---|---|
| fence `console` | each `$` line is executed, its output is below it; it has to end well unless an error is shown |
| fence `sh` | commands without output: options and arguments are parsed, `make` targets looked up; not executed |
| fence `python`, with `file=NAME` | written to NAME |
| fence `python` | executed, in one namespace a page; a fence `text` right after it is what it prints |
| fence `toml`, with `file=NAME` | written to NAME and loaded as the scenario or the sweep that it is |
| comment `console` and lines | as the fence, unseen by readers |
| comment `rows: COMMAND {0} / CELL`, a table | a run per row; `{0}`: its first cell; CELL, with `{figure}`s: its last |
| number, comment `=RUN FIGURE` | `FIGURE` of RUN's summary in as many significant digits; `FIGURE*100`: in % |
| picture, comment `=FILE` | a picture that the commands above drew |
| comment `tools KEY` | the tools of the guest's root that the pages were made with; records depend on them |

All pages are played in one folder, in the order of `PAGES`. In an output the line `…` stands for any lines, `…` at the
end of a line for its rest. Not compared (`output.UNSTABLE`): wall times, which depend on the machine, and the hashes in
the names of run directories, which depend on the compiler. Prose about wall times is not covered by any of this.
"""

# SPDX-License-Identifier: Apache-2.0
"""Writes runs as one self-contained HTML page that works offline. Knows figures of runs, never how a run was made.

`html_page` has the parts of the page about runs. `rendering` makes a page of a template (`page.html.j2`, `run.html.j2`,
and `verdicts.html.j2` of a study), `report.css` and scripts: `charts.js` draws, `report.js` has the page's behaviour,
`study.js` the pictures by axis. `data` has the thinned data of the charts, `window_figures` the data from which the
page computes the figures of a window, `journeys` single packets. `comparison_cells` has the comparison. `topology`
draws the testbed as SVG, with `path_figures`. `command` repeats a run. Same runs, same bytes.
"""

from hourglass.report.html_page import page, write

__all__ = ["page", "write"]

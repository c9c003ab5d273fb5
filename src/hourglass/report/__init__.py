# SPDX-License-Identifier: Apache-2.0
"""Runs → one self-contained HTML page that works offline. Knows figures of runs, never how a run was made.

`page` puts it together from `page.html.j2`, `report.css`, `report.js` and the charting library (Vega, inlined from
vl-convert). `data` is what the charts draw, thinned; `cells` the comparison; `topology` the testbed as SVG; `command`
the line that repeats a run. Same runs, same bytes.
"""

from hourglass.report.page import page, write

__all__ = ["page", "write"]

// SPDX-License-Identifier: Apache-2.0
// The charts of each setting of a study: a line for each run, in the look of its column.
"use strict";
for (const place of document.querySelectorAll(".compared")) {
  const run = JSON.parse(place.querySelector("script").textContent), state = charts.timeState(run.end);
  for (const chart of run.charts) charts.plot(place, state, chart.title, [[chart, run]], "h4");
}

// SPDX-License-Identifier: Apache-2.0
// The page's behaviour: charts drawn when their run is opened, series toggled, time zoomed in all charts of a run at
// once, tables sorted and filtered. Without script all figures are still there as tables.
"use strict";
(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const LOG_SPAN = 30;
  const json = (id) => JSON.parse(document.getElementById(id).textContent);
  const ink = (look) => look.c[dark.matches ? 1 : 0]; // looks are data: Python decides them, for pictures too
  const variable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }

  function config() {
    const ink = variable("--ink"), muted = variable("--muted"), line = variable("--line");
    const font = getComputedStyle(document.body).fontFamily;
    return {
      background: null, font,
      view: { stroke: null },
      axis: { labelColor: muted, titleColor: muted, gridColor: line, domainColor: line, tickColor: line,
              titleFontWeight: 400, labelFontSize: 11, titleFontSize: 11.5, labelFlush: true },
      line: { strokeWidth: 1.5 },
      text: { color: ink },
    };
  }

  const wantsLog = (values) => {
    const sample = values.filter((value) => value > 0);
    if (!sample.length) return false;
    return sample.reduce((a, b) => Math.max(a, b)) / sample.reduce((a, b) => Math.min(a, b)) > LOG_SPAN;
  };

  // A logarithmic scale with room above and below, and the few numbers on its axis that people read.
  function logScale(values, subs) {
    const sample = values.filter((value) => value > 0);
    const low = sample.reduce((a, b) => Math.min(a, b)) / 1.25, high = sample.reduce((a, b) => Math.max(a, b)) * 1.25;
    const ticks = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++)
      for (const sub of subs) ticks.push(Number((sub * 10 ** power).toPrecision(3)));
    return { scale: { type: "log", nice: false, domain: [low, high] },
             axis: { values: ticks.filter((tick) => tick >= low && tick <= high), format: "~g" } };
  }

  // A domain that leaves room around the values and does not blow up what hardly differs.
  function roomy(values) {
    const low = Math.min(...values), high = Math.max(...values), room = Math.max((high - low) * 0.15, high * 0.03, 0.01);
    return [Math.max(0, low - room), high + room];
  }

  const embed = (element, spec) =>
    vegaEmbed(element, { $schema: "https://vega.github.io/schema/vega-lite/v6.json", ...spec },
              { actions: false, renderer: "svg", config: config() });

  const SVG = "http://www.w3.org/2000/svg";

  // The line of a series, or the dot where `dots`, as it is drawn.
  function swatch({ look, width = 1.5 }, dots) {
    const svg = document.createElementNS(SVG, "svg"), mark = document.createElementNS(SVG, "path");
    const shape = dots ? { d: look.dot, fill: look.filled ? ink(look) : "none", transform: "translate(7 6) scale(5)" }
                       : { d: "M0,6H24", "stroke-dasharray": look.dash.join(" "), fill: "none" };
    const all = { ...shape, stroke: ink(look), "stroke-width": dots ? 0.3 : Math.min(width, 4) };
    for (const [name, value] of Object.entries(all)) mark.setAttribute(name, value);
    for (const [name, value] of Object.entries({ width: dots ? 14 : 24, height: 12, "aria-hidden": true }))
      svg.setAttribute(name, value);
    svg.append(mark);
    return svg;
  }

  // Buttons that show and hide series. `apply(hidden)` is called with the set of hidden names.
  function keys(place, series, apply, dots = false) {
    const hidden = new Set();
    place.replaceChildren(...series.map((one) => {
      const { name } = one;
      const button = make("button", { type: "button", "aria-pressed": "true" }, swatch(one, dots), name);
      button.addEventListener("click", () => {
        hidden.has(name) ? hidden.delete(name) : hidden.add(name);
        button.setAttribute("aria-pressed", String(!hidden.has(name)));
        apply(hidden);
      });
      return button;
    }));
  }

  const solid = (dash) => (dash.length ? dash : [1, 0]);
  const ROW = "(datum.datum || datum)"; // a point found by nearness wraps its row
  const HIDDEN = { name: "hidden", value: [] };
  const SHOWN = { filter: "indexof(hidden, datum.s) < 0" };
  const hide = (result) => (hidden) => result.view.signal("hidden", [...hidden]).runAsync();

  function timeSpec(chart, all) {
    const rows = chart.series.flatMap((s) => s.t.map((t, i) => ({ t, v: s.v[i], s: s.name })));
    const lost = chart.series.flatMap((s) => (s.lost || []).map((t) => ({ t, s: s.name })));
    const names = chart.series.map((s) => s.name);
    const log = chart.unit === "ms" && wantsLog(rows.map((row) => row.v));
    const { scale, axis } = log ? logScale(rows.map((row) => row.v), [1, 3]) : { scale: { zero: true }, axis: {} };
    const by = (range) => ({ field: "s", type: "nominal", legend: null, scale: { domain: names, range } });
    const wide = chart.series.filter((s) => s.width > 1.5), is = (s) => `datum.s === ${JSON.stringify(s.name)}`;
    const colour = by(chart.series.map((s) => ink(s.look)));
    const x = { field: "t", type: "quantitative", title: "test time (s)", scale: { domain: [0, all.end], nice: false },
                axis: { grid: false } };
    const y = { field: "v", type: "quantitative", title: log ? `${chart.unit}, logarithmic` : chart.unit, scale,
                axis: { ...axis, minExtent: 34, maxExtent: 34 } };
    const tooltip = { expr: `{series: ${ROW}.s, "time (s)": format(${ROW}.t, ".3f"), ` +
                            `"${chart.unit}": format(${ROW}.v, ".4~g")}` };
    const shade = all.window && {
      data: { values: [{ a: all.window[0], b: all.window[1] }] },
      mark: { type: "rect", color: variable("--shade"), clip: true },
      encoding: { x: { field: "a", type: "quantitative" }, x2: { field: "b" } },
    };
    const lines = {
      transform: [SHOWN],
      mark: { type: "line", clip: true, interpolate: chart.step ? "step-before" : "linear" },
      encoding: { x, y, color: colour, strokeDash: by(chart.series.map((s) => solid(s.look.dash))),
                  size: { condition: wide.map((s) => ({ test: is(s), value: s.width })), value: 1.5 },
                  strokeOpacity: { condition: wide.map((s) => ({ test: is(s), value: 0.6 })), value: 1 } },
    };
    const points = {
      transform: [SHOWN],
      params: [
        { name: "zoom", bind: "scales",
          select: { type: "interval", encodings: ["x"], zoom: "wheel![event.shiftKey]" } },
        { name: "near", select: { type: "point", on: "pointermove", nearest: true, clear: "pointerout" } },
      ],
      mark: { type: "point", filled: true, clip: true, size: 45, tooltip },
      encoding: { x, y, color: colour,
                  opacity: { condition: { param: "near", empty: false, value: 1 }, value: 0 } },
    };
    const crosses = {
      data: { values: lost }, transform: [SHOWN],
      mark: { type: "point", shape: "cross", angle: 45, size: 40, clip: true, filled: true },
      encoding: { x, y: { value: 172 }, color: colour,
                  tooltip: [{ field: "s", title: chart.without || "lost" }, { field: "t", title: "time (s)", format: ".3f" }] },
    };
    const changed = all.events.length && {
      data: { values: all.events },
      mark: { type: "rule", color: variable("--muted"), strokeDash: [4, 3], strokeWidth: 1.5, clip: true },
      encoding: { x: { field: "t", type: "quantitative" },
                  tooltip: [{ field: "s", title: "event" }, { field: "t", title: "time (s)", format: ".9~g" }] },
    };
    return { width: "container", height: 180, autosize: { type: "fit", contains: "padding" }, params: [HIDDEN],
             data: { values: rows }, layer: [shade, changed, lines, lost.length && crosses, points].filter(Boolean) };
  }

  const drawn = new Map();

  async function drawRun(details) {
    const place = details.querySelector(".charts"), number = details.dataset.run;
    if (drawn.has(details) || !place) return;
    drawn.set(details, true);
    const all = json(`data-${number}`);
    place.querySelectorAll(".plot").forEach((plot) => plot.remove());
    const tools = place.querySelector(".tools");
    tools.hidden = false;
    const results = [];
    for (const chart of all.charts) {
      const legend = make("div", { class: "keys", role: "group", "aria-label": "Series shown" });
      const area = make("div", { class: "chart" });
      const lostNote = chart.series.some((s) => s.lost) ? `crosses: ${chart.without || "lost"}` : "";
      const heading = make("h4", {}, chart.title, make("small", {}, [chart.note, lostNote].filter(Boolean).join(" ")));
      place.append(make("div", { class: "plot" }, heading, legend, area));
      const result = await embed(area, timeSpec(chart, all));
      keys(legend, chart.series, hide(result));
      results.push(result);
    }
    link(results, all, tools);
  }

  // One time axis for all charts of a run.
  function link(results, all, tools) {
    let busy = false;
    let shown = [0, all.end];
    const set = (domain, from) => {
      busy = true;
      shown = domain;
      for (const result of results) if (result !== from) result.view.signal("zoom_t", domain).run();
      busy = false;
    };
    for (const result of results) {
      result.view.addSignalListener("zoom_t", (_, domain) => {
        if (!busy && Array.isArray(domain)) set(domain, result);
      });
    }
    tools.onclick = (event) => {
      const way = event.target.dataset.zoom;
      if (!way) return;
      const middle = (shown[0] + shown[1]) / 2, half = ((shown[1] - shown[0]) / 2) * (way === "in" ? 0.5 : 2);
      const wide = way === "all" || half * 2 >= all.end;
      set(wide ? [0, all.end] : [Math.max(0, middle - half), Math.min(all.end, middle + half)]);
    };
  }

  async function drawOverview() {
    const scatter = document.querySelector('[data-chart="scatter"]');
    if (!scatter) return;
    const { points, groups, cdf, latency } = json("overview-data");
    scatter.closest("figure").hidden = !points.length; // both before either is drawn: they share a row
    document.getElementById("cdf").hidden = !cdf.length;
    const rows = points.map((point) => ({ ...point, s: point.group }));
    const by = (range) => ({ field: "s", type: "nominal", legend: null,
                             scale: { domain: groups.map((group) => group.name), range } });
    const log = wantsLog(points.map((point) => point.x));
    const near = log ? logScale(points.map((point) => point.x), [1, 3]) : { axis: {} };
    const result = await embed(scatter, {
      width: "container", height: 280, autosize: { type: "fit", contains: "padding" }, data: { values: rows },
      transform: [SHOWN],
      params: [HIDDEN, { name: "zoom", bind: "scales", select: { type: "interval", zoom: "wheel![event.shiftKey]" } }],
      mark: { type: "point", size: 70, opacity: 0.85, cursor: "pointer" },
      encoding: {
        x: { field: "x", type: "quantitative",
             title: [`${latency} p50 (ms${log ? ", logarithmic" : ""})`, "lower is better →"],
             scale: { ...(log ? near.scale : { zero: false }), reverse: true }, axis: near.axis },
        y: { field: "y", type: "quantitative", title: "goodput, all flows (Mbit/s)",
             scale: { zero: false, nice: false, domain: roomy(points.map((point) => point.y)) } },
        stroke: by(groups.map((group) => ink(group.look))),
        fill: by(groups.map((group) => (group.look.filled ? ink(group.look) : "transparent"))),
        shape: by(groups.map((group) => group.look.dot)),
        tooltip: [{ field: "name", title: "run" }, { field: "x", title: `${latency} p50 (ms)`, format: ".4~g" },
                  { field: "y", title: "goodput (Mbit/s)", format: ".4~g" }],
      },
    });
    result.view.addEventListener("click", (_, item) => {
      if (item?.datum?.run !== undefined) open(document.getElementById(`run-${item.datum.run}`));
    });
    if (groups.length > 1) keys(scatter.parentElement.querySelector(".keys"), groups, hide(result), true);
    await drawCdf(cdf, latency);
  }

  async function drawCdf(cdf, latency) {
    const place = document.querySelector('[data-chart="cdf"]');
    if (!cdf.length) return;
    const rows = cdf.flatMap(({ name, q }) => q.map((v, i) => ({ v, p: i / (q.length - 1), s: name })));
    const log = wantsLog(rows.map((row) => row.v));
    const encoding = {
      x: { field: "v", type: "quantitative", title: `${latency} (ms${log ? ", logarithmic" : ""})`,
           ...(log ? logScale(rows.map((row) => row.v), [1, 3]) : { scale: { zero: true } }) },
      y: { field: "p", type: "quantitative", title: null, axis: { format: "%" } },
      color: { field: "s", type: "nominal", legend: null,
               scale: { domain: cdf.map((s) => s.name), range: cdf.map((s) => ink(s.look)) } },
      strokeDash: { field: "s", type: "nominal", legend: null,
                    scale: { domain: cdf.map((s) => s.name), range: cdf.map((s) => solid(s.look.dash)) } },
    };
    const result = await embed(place, {
      width: "container", height: 250, autosize: { type: "fit", contains: "padding" }, params: [HIDDEN],
      data: { values: rows }, transform: [SHOWN],
      layer: [
        { mark: { type: "line" }, encoding: { ...encoding, order: { field: "p" } } },
        { params: [{ name: "near", select: { type: "point", on: "pointermove", nearest: true, clear: "pointerout" } }],
          mark: { type: "point", filled: true, size: 45,
                  tooltip: { expr: `{run: ${ROW}.s, ms: format(${ROW}.v, ".4~g"), share: format(${ROW}.p, ".1%")}` } },
          encoding: { ...encoding, strokeDash: undefined, opacity: { condition: { param: "near", empty: false, value: 1 }, value: 0 } } },
      ],
    });
    keys(place.parentElement.querySelector(".keys"), cdf, hide(result));
  }

  function open(details) {
    if (!details) return;
    details.open = true;
    details.scrollIntoView({ block: "start" });
  }

  function sortable(table) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      head.querySelector("button").addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        heads.forEach((other) => other.setAttribute("aria-sort", "none"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const value = (row) => row.cells[column].dataset.value ?? (column ? "" : row.cells[0].textContent.trim());
        const compare = (a, b) => {
          if (a === "" || b === "") return (a === "") - (b === ""); // nothing comes last, either way
          const order = a !== "" && b !== "" && !isNaN(a) && !isNaN(b) ? a - b : a.localeCompare(b, "en", { numeric: true });
          return up ? order : -order;
        };
        const body = table.tBodies[0];
        body.append(...[...body.rows].sort((a, b) => compare(value(a), value(b))));
      });
    });
  }

  const filter = document.querySelector(".filter input");
  filter?.addEventListener("input", () => {
    const wanted = filter.value.trim().toLowerCase().split(/\s+/);
    for (const row of document.getElementById("runs-table").tBodies[0].rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !wanted.every((word) => text.includes(word));
    }
  });

  for (const button of document.querySelectorAll(".copy")) {
    button.addEventListener("click", async () => {
      const code = button.previousElementSibling;
      getSelection().selectAllChildren(code);
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "copied";
      } catch {
        button.textContent = "selected"; // pages from a file may not write to the clipboard
      }
    });
  }

  // Says when there is more to the right of what is seen, and fades it out there.
  function hinted(place) {
    const hint = make("p", { class: "more-right", "aria-hidden": "true" });
    hint.append("more to the right \u2192");
    place.before(hint);
    const look = () => {
      const wider = place.scrollWidth > place.clientWidth + 1;
      hint.hidden = !wider;
      place.classList.toggle("faded", wider && place.scrollLeft + place.clientWidth < place.scrollWidth - 1);
    };
    place.addEventListener("scroll", look, { passive: true });
    new ResizeObserver(look).observe(place);
  }

  document.querySelectorAll(".scroll").forEach(hinted);
  document.querySelectorAll("table.sortable").forEach(sortable);
  const runs = [...document.querySelectorAll("details.run")];
  runs.forEach((run) => run.addEventListener("toggle", () => run.open && drawRun(run)));
  const followHash = () => location.hash.startsWith("#run-") && open(document.querySelector(location.hash));
  addEventListener("hashchange", followHash);
  function drawAll() {
    drawn.clear();
    drawOverview();
    runs.filter((run) => run.open).forEach(drawRun);
  }
  dark.addEventListener("change", drawAll);
  drawAll();
  followHash();
})();

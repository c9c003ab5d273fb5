// SPDX-License-Identifier: Apache-2.0
// The pictures of a study: a figure over an axis in small multiples, goodput against latency with the Pareto front, and
// parallel coordinates. Colours and shapes stand for the values of an axis. Runs that differ in the seed are one setting.
"use strict";
(() => {
  const { make, svg, painted, short } = charts;
  const overview = JSON.parse(document.getElementById("overview-data").textContent), study = overview.study;
  if (!study) return;
  const MOST_PANELS = 24;
  const seed = study.axes.find((axis) => axis.name === "seed");
  const axes = study.axes.filter((axis) => axis !== seed);
  const figure = (name) => study.figures.find((entry) => entry.name === name);
  const latency = figure(`${overview.latency.split(" / ")[0]} p50`) ?? study.figures.find((entry) => entry.unit === "ms") ?? study.figures[0];
  const plain = { c: ["#5b6675", "#98a4b3"], dash: [], dot: study.looks[0].dot, filled: true };
  const rows = [...(document.getElementById("runs-table")?.tBodies[0].rows ?? [])];
  const rowOf = new Map(rows.map((row) => [Number(row.querySelector(".choose input").value), row]));
  const mean = (values) => (values.length ? values.reduce((a, b) => a + b, 0) / values.length : null);

  // The settings: the runs with the same value on every axis.
  function settings() {
    const byKey = new Map();
    overview.names.forEach((_, run) => {
      const key = axes.map((axis) => axis.of[run]).join();
      if (!byKey.has(key)) byKey.set(key, { at: axes.map((axis) => axis.of[run]), runs: [] });
      byKey.get(key).runs.push(run);
    });
    return [...byKey.values()];
  }
  const all = settings();
  const valuesOf = (setting, { values }) => setting.runs.map((run) => values[run]).filter((value) => value !== null);
  const meanOf = (setting, entry) => mean(valuesOf(setting, entry));
  const at = (setting, axis) => setting.at[axes.indexOf(axis)];
  const nameOf = (setting, among = axes) => among.map((axis) => `${axis.name}=${axis.values[at(setting, axis)]}`).join(", ");

  // Goodput of a setting, both directions together.
  const goodputs = ["upload goodput", "download goodput"].map(figure).filter(Boolean);
  const goodputOf = (setting) => goodputs.reduce((sum, entry) => sum + (meanOf(setting, entry) ?? 0), 0);

  // ---- Controls ----

  const numeric = axes.filter((axis) => axis.numbers), choices = axes.filter((axis) => !axis.condition);
  const longest = (list) => list.reduce((best, axis) => (axis.values.length > (best?.values.length ?? 1) ? axis : best), null);
  const state = { figure: latency, x: longest(numeric) ?? axes.find((axis) => axis.condition) ?? axes[0] };
  state.colour = choices.find((axis) => axis !== state.x) ?? axes.find((axis) => axis !== state.x) ?? state.x;
  const only = new Map(); // axis → the one value that is shown

  function select(label, options, chosen, apply) {
    const element = make("select", {}, ...options.map((text, i) => make("option", { value: i }, text)));
    element.selectedIndex = chosen;
    element.addEventListener("change", () => { apply(element.selectedIndex); draw(); });
    return make("label", {}, `${label} `, element);
  }

  const place = document.getElementById("study");
  const controls = make("div", { class: "controls", role: "group", "aria-label": "Axes of the pictures" },
    select("Figure", study.figures.map((entry) => (entry.unit ? `${entry.name} (${entry.unit})` : entry.name)), study.figures.indexOf(state.figure), (i) => { state.figure = study.figures[i]; }),
    select("over", axes.map((axis) => axis.name), axes.indexOf(state.x), (i) => { state.x = axes[i]; }),
    select("colour", axes.map((axis) => axis.name), axes.indexOf(state.colour), (i) => { state.colour = axes[i]; }));
  const filters = make("div", { class: "controls", role: "group", "aria-label": "Settings shown" }, make("span", {}, "Show"),
    ...axes.map((axis) => select(axis.name, ["all", ...axis.values], 0, (i) => (i ? only.set(axis, i - 1) : only.delete(axis)))));
  const legend = make("div", { class: "study-legend" }), multiples = make("div", { class: "panels" });
  const fronts = make("div", { class: "panels" }), parallel = make("div", { class: "parallel" });
  const about = make("p", { class: "hint" }), frontAbout = make("p", { class: "hint" });
  const region = make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Parallel coordinates" }, parallel);
  place.append(controls, filters, legend, make("h3", {}, "By axis"), about, multiples, make("h3", {}, "Goodput against latency"), frontAbout, fronts,
               make("h3", {}, "Parallel coordinates"), make("p", { class: "hint" }, "A line is a setting. Its place on an axis is its value, or the mean of its seeds."), region);

  const colourOf = (setting) => (state.colour === null ? plain : study.looks[at(setting, state.colour)]);
  const shown = () => all.filter((setting) => [...only].every(([axis, value]) => at(setting, axis) === value));

  // The settings by their values on some axes, in the order of the axes.
  function byAxes(list, among) {
    const groups = new Map();
    const order = (setting) => among.map((axis) => at(setting, axis));
    for (const setting of [...list].sort((a, b) => order(a).reduce((sign, value, i) => sign || value - order(b)[i], 0))) {
      const key = nameOf(setting, among);
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(setting);
    }
    return [...groups];
  }

  function panel(into, title, label) {
    const box = make("div", { class: "chart", role: "img", "aria-label": label });
    into.append(make("div", { class: "panel" }, make("p", { class: "panel-title" }, title || "all runs"), box));
    return box;
  }

  function legendOf(axis, shape) {
    const entries = axis.values.map((value, i) => make("span", {}, charts.swatch({ look: shape ? { ...plain, dot: study.looks[i].dot } : { ...study.looks[i], dash: [] }, width: 4 }, shape), value));
    return make("p", {}, make("b", {}, axis.name), ...entries);
  }

  function drawMultiples(list) {
    const entry = state.figure, among = axes.filter((axis) => axis !== state.x && axis !== state.colour);
    const groups = byAxes(list, among), values = list.flatMap((setting) => valuesOf(setting, entry));
    const numbers = state.x.numbers, spread = numbers && numbers.at(-1) / numbers[0] > 30 && numbers[0] > 0;
    const xOf = (setting) => (numbers ? numbers[at(setting, state.x)] : at(setting, state.x));
    const xs = numbers ? { log: spread, range: spread ? [numbers[0] / 1.2, numbers.at(-1) * 1.2] : padded(numbers) } : { log: false, range: [-0.5, state.x.values.length - 0.5] };
    const y = charts.domain(values, { log: entry.unit === "ms" });
    about.textContent = `${entry.name}${entry.unit ? ` (${entry.unit}${y.log ? ", logarithmic" : ""})` : ""} over ${state.x.name}. All panels have the same axes. ` +
      `${seed ? "Dots are seeds, lines their means." : ""}${groups.length > MOST_PANELS ? ` The first ${MOST_PANELS} of ${groups.length} panels.` : ""}`;
    multiples.replaceChildren();
    for (const [title, members] of groups.slice(0, MOST_PANELS)) {
      const box = panel(multiples, title, `${entry.name} over ${state.x.name}, ${title}; the table has the figures`);
      const lines = byAxes(members, state.colour === state.x ? [] : [state.colour]).map(([, settings_]) => ({
        look: state.colour === state.x ? plain : { ...colourOf(settings_[0]), dash: [] },
        points: settings_.map((setting) => [xOf(setting), meanOf(setting, entry)]).filter(([, v]) => v !== null).sort((a, b) => a[0] - b[0]),
      }));
      const points = members.flatMap((setting) => setting.runs.filter((run) => entry.values[run] !== null).map((run) => ({
        x: xOf(setting), y: entry.values[run], run, look: { ...colourOf(setting), dot: plain.dot, filled: true }, size: 3.2,
        text: [nameOf(setting), `${short(entry.values[run])} ${entry.unit}`, ...(seed ? [`seed ${seed.values[seed.of[run]]}`] : [])] })));
      const ticks = numbers ?? state.x.values.map((_, i) => i);
      charts.scatter(box, { lines, points }, { x: xs, y, xTicks: ticks, height: 170, onPick: openRun,
        format: (tick) => state.x.values[ticks.indexOf(tick)] ?? short(tick) });
    }
  }

  function padded(numbers) {
    const room = (numbers.at(-1) - numbers[0]) * 0.08 || 1;
    return [numbers[0] - room, numbers.at(-1) + room];
  }

  // The settings that no other one beats in one figure without losing in the other.
  function front(points) {
    let best = -Infinity;
    return [...points].sort((a, b) => a.x - b.x || b.y - a.y).filter((point) => point.y > best && ((best = point.y), true));
  }

  function drawFronts(list) {
    const usable = list.filter((setting) => meanOf(setting, latency) !== null && goodputs.some((entry) => meanOf(setting, entry) !== null));
    const shape = choices.find((axis) => axis !== state.colour);
    const among = axes.filter((axis) => axis !== state.colour && axis !== shape);
    const groups = byAxes(usable, among);
    frontAbout.textContent = usable.length ? `Mean goodput of all flows (Mbit/s) over ${latency.name} (ms), lower to the right. Up and right is better. The line is the Pareto front of each panel.` : "No run has both goodput and latency.";
    fronts.replaceChildren();
    for (const [title, members] of groups.slice(0, MOST_PANELS)) {
      const box = panel(fronts, title, `Goodput against latency, ${title}; the table has the figures`);
      const points = members.map((setting) => ({ x: meanOf(setting, latency), y: goodputOf(setting), run: setting.runs[0],
        look: { ...colourOf(setting), dot: shape ? study.looks[at(setting, shape)].dot : plain.dot, filled: false },
        text: [nameOf(setting), `${short(goodputOf(setting))} Mbit/s`, `${latency.name} ${short(meanOf(setting, latency))} ms`] }));
      const best = front(points);
      for (const point of best) point.look.filled = true;
      const x = charts.domain(points.map((point) => point.x), { zero: false });
      charts.scatter(box, { points, lines: [{ look: plain, dash: [2, 3], points: best.map((point) => [point.x, point.y]) }] },
        { x, y: charts.domain(points.map((point) => point.y), { zero: false, log: false }), reverse: true, height: 190, onPick: openRun });
    }
    return shape;
  }

  function drawParallel(list) {
    const wanted = [...goodputs, latency, figure(latency.name.replace("p50", "p99")), figure("upload fairness"), figure("download fairness"), figure("retransmits"), state.figure];
    const columns = [...axes.map((axis) => ({ name: axis.name, axis })), ...[...new Set(wanted.filter(Boolean))].map((entry) => ({ name: entry.name, unit: entry.unit, entry }))];
    parallel.style.minWidth = `${columns.length * 92}px`;
    const width = Math.max(parallel.clientWidth, columns.length * 92), height = 260, top = 44, bottom = 24;
    const x = charts.linear([0, columns.length - 1 || 1], [60, width - 60]);
    for (const column of columns) {
      if (column.axis) {
        const last = column.axis.values.length - 1;
        column.scale = charts.linear([0, Math.max(last, 1)], [height - bottom, top]);
        column.ticks = column.axis.values.map((value, i) => [i, value]);
        column.value = (setting) => at(setting, column.axis);
      } else {
        const means = all.map((setting) => meanOf(setting, column.entry)).filter((value) => value !== null), [low, high] = charts.bounds(means);
        const log = column.unit === "ms" && low > 0 && high / low > 30;
        const equal = high - low < 0.005 * Math.abs(high) || high === low, room = Math.abs(high) * 0.01 || 1; // noise stays small
        column.scale = charts.scaleOf({ log, range: equal ? [low - room, high + room] : [low, high] }, [height - bottom, top]);
        column.ticks = (equal ? [high] : [low, high]).map((value) => [value, short(value, 3)]);
        column.value = (setting) => meanOf(setting, column.entry);
      }
    }
    const drawing = svg("svg", { width, height, class: "drawing", role: "img", "aria-label": `Parallel coordinates of ${list.length} settings; the table has the figures` });
    const lines = svg("g");
    for (const setting of list) {
      const points = columns.map((column, i) => [x(i), column.value(setting), column.scale]).filter(([, value]) => value !== null);
      const line = svg("path", { class: "setting", fill: "none", "stroke-width": 1.3, d: points.map(([px, value, scale], i) => `${i ? "L" : "M"}${px.toFixed(1)},${scale(value).toFixed(1)}`).join("") });
      painted(line, "stroke", colourOf(setting).c);
      line.addEventListener("pointermove", (event) => charts.showTip(event, nameOf(setting), columns.filter((column) => column.entry).map((column) => [null, `${column.name}: ${short(column.value(setting))} ${column.unit}`])));
      line.addEventListener("pointerleave", charts.hideTip);
      line.addEventListener("click", () => openRun({ run: setting.runs[0] }));
      lines.append(line);
    }
    drawing.append(lines);
    columns.forEach((column, i) => {
      drawing.append(svg("path", { class: "rail", d: `M${x(i)},${top}V${height - bottom}` }), svg("text", { class: "head", x: x(i), y: 14, "text-anchor": "middle" }, column.name),
                     svg("text", { x: x(i), y: 28, "text-anchor": "middle" }, column.unit ?? ""));
      for (const [value, text] of column.ticks) drawing.append(svg("text", { class: "tick", x: x(i), y: column.scale(value) + (value === column.ticks[0][0] ? 13 : -4), "text-anchor": "middle" }, text));
    });
    parallel.replaceChildren(drawing);
  }

  function openRun({ run }) {
    const details = document.getElementById(`run-${run}`);
    details.open = true;
    details.scrollIntoView({ block: "start" });
  }

  function draw() {
    const list = shown(), runs = new Set(list.flatMap((setting) => setting.runs));
    drawMultiples(list);
    const shape = drawFronts(list);
    drawParallel(list);
    legend.replaceChildren(legendOf(state.colour, false), ...(shape ? [legendOf(shape, true), make("p", {}, "filled: on the Pareto front")] : []));
    for (const [run, row] of rowOf) row.classList.toggle("left-out", !runs.has(run));
  }

  draw();
  charts.hinted(region);
  charts.watch(region, () => drawParallel(shown()));
})();

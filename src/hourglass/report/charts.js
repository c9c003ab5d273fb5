// SPDX-License-Identifier: Apache-2.0
// Draws charts as SVG: series over test time that share one window, points and curves. A colour is a pair (light, dark);
// the style sheet's colour scheme chooses. A chart is a slider of time for keyboards and screen readers.
"use strict";
const charts = (() => {
  const LOG_SPAN = 30, DRAG_PX = 4, LISTED = 14;
  const MARGIN = { left: 46, right: 10, top: 8, bottom: 20 };

  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }

  function svg(tag, attributes = {}, ...children) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }

  // Sets a paint of a look. Browsers without light-dark() show the colour of light pages.
  function painted(element, property, [light, dark]) {
    element.setAttribute(property, light);
    element.style.setProperty(property, `light-dark(${light}, ${dark})`);
    return element;
  }

  const short = (value, digits = 4) => (value === null || Number.isNaN(value) ? "–" : String(Number(value.toPrecision(digits))));
  const bounds = (values) => values.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, -Infinity]);

  function linear([a, b], [from, to]) {
    const slope = (to - from) / (b - a || 1), scale = (value) => from + (value - a) * slope;
    scale.invert = (place) => a + (place - from) / slope;
    scale.ticks = (count) => {
      const raw = (b - a || 1) / count, power = 10 ** Math.floor(Math.log10(raw));
      const step = [1, 2, 5, 10].find((multiple) => multiple * power >= raw * 0.999) * power, ticks = [];
      for (let i = Math.ceil(a / step - 1e-9); i * step <= b + step * 1e-9; i++) ticks.push(Number((i * step).toPrecision(12)));
      return ticks;
    };
    return scale;
  }

  function logarithmic([a, b], range) {
    const inner = linear([Math.log10(a), Math.log10(b)], range), scale = (value) => inner(Math.log10(Math.max(value, a / 10)));
    scale.invert = (place) => 10 ** inner.invert(place);
    scale.ticks = () => {
      const ticks = [];
      for (let power = Math.floor(Math.log10(a)); power <= Math.ceil(Math.log10(b)); power++)
        for (const sub of [1, 3]) ticks.push(Number((sub * 10 ** power).toPrecision(3)));
      return ticks.filter((tick) => tick >= a && tick <= b);
    };
    return scale;
  }

  // The domain of values: logarithmic where they span decades, otherwise from 0, or with room around them.
  function domain(values, { zero = true, log = true } = {}) {
    const positive = values.filter((value) => value > 0);
    const [low, high] = bounds(positive.length ? positive : [0, 1]);
    if (log && positive.length && high / low > LOG_SPAN) return { log: true, range: [low / 1.25, high * 1.25] };
    if (zero) return { log: false, range: [Math.min(0, ...bounds(values).filter(Number.isFinite)), high * 1.05] };
    const room = Math.max((high - low) * 0.15, high * 0.03, 0.01);
    return { log: false, range: [Math.max(0, low - room), high + room] };
  }

  const scaleOf = ({ log, range }, place) => (log ? logarithmic : linear)(range, place);

  // The line of a series, or the dot where `dots`, as it is drawn.
  function swatch({ look, width = 1.5 }, dots) {
    const mark = dots ? dot(look, 7, 6, 5) : painted(svg("path", { d: "M0,6H24", fill: "none", "stroke-width": Math.min(width, 4),
                                                                   "stroke-dasharray": look.dash.join(" ") }), "stroke", look.c);
    return svg("svg", { width: dots ? 14 : 24, height: 12, "aria-hidden": true }, mark);
  }

  function dot(look, x, y, size) {
    const mark = svg("path", { d: look.dot, transform: `translate(${x.toFixed(1)} ${y.toFixed(1)}) scale(${size})`, "stroke-width": 0.3 });
    painted(mark, "stroke", look.c);
    return look.filled ? painted(mark, "fill", look.c) : (mark.setAttribute("fill", "none"), mark);
  }

  // Buttons that show and hide series. `apply(hidden)` is called with the set of hidden names.
  function keys(place, series, apply, dots = false) {
    const hidden = new Set();
    place.replaceChildren(...series.map((entry) => {
      const button = make("button", { type: "button", "aria-pressed": "true" }, swatch(entry, dots), entry.name);
      button.addEventListener("click", () => {
        hidden.has(entry.name) ? hidden.delete(entry.name) : hidden.add(entry.name);
        button.setAttribute("aria-pressed", String(!hidden.has(entry.name)));
        apply(hidden);
      });
      return button;
    }));
  }

  const tip = make("div", { id: "tip", "aria-hidden": true, hidden: "" });

  function showTip(event, head, lines) {
    if (!tip.isConnected) document.body.append(tip);
    tip.replaceChildren(make("b", {}, head), ...lines.map(([look, text, strong]) =>
      make("div", strong ? { class: "near" } : {}, look ? swatch({ look }) : "", text)));
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect(), left = event.clientX + 16, top = event.clientY + 12;
    tip.style.left = `${Math.max(4, left + width > innerWidth - 4 ? event.clientX - width - 16 : left)}px`;
    tip.style.top = `${Math.max(4, Math.min(top, innerHeight - height - 4))}px`;
  }

  const hideTip = () => { tip.hidden = true; };

  // The axes, with horizontal lines of the grid. Returns the part that clips what is drawn in it.
  function frame(width, height, x, y, { xTitle, format = short, gridX = false, margin = MARGIN, xTicks, yTicks } = {}) {
    const inner = { w: Math.max(10, width - margin.left - margin.right), h: height - margin.top - margin.bottom };
    const clip = svg("svg", { x: margin.left, y: margin.top, width: inner.w, height: inner.h, class: "marks" });
    const grid = svg("g", { class: "axis" });
    const least = 8, taken = []; // px between labels
    for (const tick of yTicks ?? y.ticks(Math.max(2, Math.round(inner.h / 40)))) {
      const at = margin.top + y(tick);
      grid.append(svg("path", { d: `M${margin.left},${at.toFixed(1)}h${inner.w}` }),
                  svg("text", { x: margin.left - 6, y: at + 3.5, "text-anchor": "end" }, short(tick)));
    }
    for (const tick of xTicks ?? x.ticks(Math.max(2, Math.round(inner.w / 70)))) {
      const text = format(tick), at = margin.left + x(tick), half = text.length * 3.3;
      const place = Math.min(Math.max(at, half), width - half);
      if (taken.some((other) => Math.abs(other.place - place) < other.half + half + least)) continue;
      taken.push({ place, half });
      if (gridX) grid.append(svg("path", { d: `M${at.toFixed(1)},${margin.top}v${inner.h}` }));
      grid.append(svg("text", { x: place.toFixed(1), y: height - margin.bottom + 14, "text-anchor": "middle" }, text));
    }
    grid.append(svg("path", { class: "base", d: `M${margin.left},${margin.top + inner.h}h${inner.w}` }));
    if (xTitle) grid.append(svg("text", { class: "title", x: margin.left + inner.w / 2, y: height - 2, "text-anchor": "middle" }, xTitle));
    return { clip, grid, root: svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": true, class: "drawing" }, grid, clip) };
  }

  // The index of the sample that holds at a time: the next for steps, otherwise the nearest.
  function sampleAt(series, t, step) {
    let low = 0, high = series.t.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      series.t[middle] < t ? (low = middle + 1) : (high = middle);
    }
    if (low === series.t.length) return step ? -1 : low - 1;
    return !step && low > 0 && t - series.t[low - 1] < series.t[low] - t ? low - 1 : low;
  }

  // The window that all charts over time of a page share: `shown` is the span of the axes, `brush` the chosen part.
  function timeState(end) {
    const state = { end, shown: [0, end], brush: null, cursor: null, panels: new Set(), listeners: [], picks: [] };
    state.whole = () => state.shown[0] === 0 && state.shown[1] === end;
    state.set = (changes) => {
      Object.assign(state, changes);
      for (const panel of state.panels) "shown" in changes ? panel.draw() : panel.overlay();
      if ("shown" in changes || "brush" in changes) state.listeners.forEach((listener) => listener());
    };
    state.select = (a, b) => {
      const [from, to] = [Math.max(0, Math.min(a, b)), Math.min(end, Math.max(a, b))];
      state.set({ brush: to - from > end / 5000 ? [from, to] : null });
    };
    return state;
  }

  // A chart over time. `run`: its window under load, events and label; `y`: the domain, if charts share it.
  function timePanel(place, chart, run, state, y, height = 170) {
    const panel = { hidden: new Set(), chart, run, place };
    const values = chart.series.flatMap((series) => series.v);
    const span = y ?? domain(values, { log: chart.unit === "ms" });
    const box = make("div", { class: "chart", role: "slider", tabindex: 0, "aria-label": `${chart.title}, ${run.label}: test time`,
                              "aria-valuemin": 0, "aria-valuemax": state.end, "aria-valuenow": 0 });
    place.append(box);
    let x, scale, layer;

    const visible = () => chart.series.filter((series) => !panel.hidden.has(series.name));

    panel.draw = () => {
      const width = box.clientWidth;
      if (!width) return;
      x = linear(state.shown, [0, width - MARGIN.left - MARGIN.right]);
      scale = scaleOf(span, [height - MARGIN.top - MARGIN.bottom, 0]);
      const { clip, root } = frame(width, height, x, scale, chart.rows ? { yTicks: [] } : {});
      const inner = height - MARGIN.top - MARGIN.bottom;
      if (run.window) clip.append(svg("rect", { class: "load", x: x(run.window[0]), width: Math.max(0, x(run.window[1]) - x(run.window[0])), y: 0, height: inner }));
      for (const event of run.events) clip.append(svg("path", { class: "event", d: `M${x(event.t).toFixed(1)},0v${inner}` }));
      for (const rate of chart.lines ?? []) clip.append(svg("path", { class: "rate", d: `M0,${scale(rate).toFixed(1)}h${width}` }));
      for (const series of visible()) {
        const line = svg("path", { class: "series", d: path(series), fill: "none", "stroke-width": series.width ?? 1.5 });
        if (series.starts) line.setAttribute("stroke-linecap", "round"); // a sample between two gaps is a dot
        if (series.look.dash.length) line.setAttribute("stroke-dasharray", series.look.dash.join(" "));
        if (series.width > 1.5) line.setAttribute("stroke-opacity", 0.6);
        clip.append(painted(line, "stroke", series.look.c));
        for (const t of series.lost ?? []) {
          const at = x(t), cross = svg("path", { class: "lost", d: `M${(at - 4).toFixed(1)},${inner - 10}l8,8m0,-8l-8,8`, "stroke-width": 1.8 });
          clip.append(painted(cross, "stroke", series.look.c));
        }
        for (const [t] of series.marks ?? []) {
          clip.append(painted(svg("path", { class: "mark", d: `M${x(t).toFixed(1)},${series.row * 16 + 3}v10`, "stroke-width": 1.5 }), "stroke", series.look.c));
        }
      }
      layer = svg("g");
      clip.append(layer);
      box.replaceChildren(root);
      panel.overlay();
    };

    function path(series) {
      const parts = [], [from, to] = state.shown, { t, v } = series, starts = new Set(series.starts), dot = series.starts ? "h0" : "";
      let first = 0, last = t.length - 1;
      while (first < last && t[first + 1] < from) first++;
      while (last > first && t[last - 1] > to) last--;
      for (let i = first; i <= last && i < t.length; i++) {
        const px = x(t[i]).toFixed(1), py = scale(v[i]).toFixed(1);
        parts.push(i === first || starts.has(i) ? `M${px},${py}${dot}` : chart.step ? `V${py}H${px}` : `L${px},${py}`);
      }
      return parts.join("");
    }

    panel.overlay = () => {
      if (!layer) return;
      const inner = height - MARGIN.top - MARGIN.bottom, right = x(state.shown[1]);
      layer.replaceChildren();
      if (state.brush) {
        const [a, b] = state.brush.map(x);
        layer.append(svg("rect", { class: "outside", x: 0, y: 0, width: Math.max(0, a), height: inner }),
                     svg("rect", { class: "outside", x: b, y: 0, width: Math.max(0, right - b), height: inner }),
                     svg("path", { class: "edge", d: `M${a.toFixed(1)},0v${inner}M${b.toFixed(1)},0v${inner}` }));
      }
      if (state.cursor === null) return;
      layer.append(svg("path", { class: "cursor", d: `M${x(state.cursor).toFixed(1)},0v${inner}` }));
      for (const series of visible()) {
        const i = sampleAt(series, state.cursor, chart.step);
        if (i >= 0) layer.append(painted(svg("circle", { cx: x(series.t[i]), cy: scale(series.v[i]), r: 3 }), "fill", series.look.c));
      }
    };

    const timeAt = (event) => Math.min(state.shown[1], Math.max(state.shown[0], x.invert(event.clientX - box.getBoundingClientRect().left - MARGIN.left)));

    // The series and their values at a time, and the one next to a height.
    function listed(t, top) {
      const rows = visible().map((series) => {
        const marks = (series.marks ?? []).filter(([at]) => Math.abs(x(at) - x(t)) < 4).map(([, text]) => text);
        const i = sampleAt(series, t, chart.step);
        const text = series.marks ? marks.slice(0, 3).join(" ⏎ ") : i >= 0 ? `${short(series.v[i])} ${chart.unit}` : "–";
        return { series, text, gap: series.marks ? Math.abs(series.row * 16 + 8 - top) : i >= 0 ? Math.abs(scale(series.v[i]) - top) : Infinity };
      });
      const near = rows.reduce((best, row) => (row.gap < (best?.gap ?? Infinity) ? row : best), null);
      return { rows: rows.filter((row) => row.text), near };
    }

    const topOf = (event) => event.clientY - box.getBoundingClientRect().top - MARGIN.top;
    let start = null;
    box.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      start = { px: event.clientX, t: timeAt(event) };
    });
    box.addEventListener("pointermove", (event) => {
      if (!x) return;
      const t = timeAt(event);
      if (start && Math.abs(event.clientX - start.px) > DRAG_PX) {
        box.setPointerCapture(event.pointerId);
        state.select(start.t, t);
      }
      state.set({ cursor: t });
      const { rows, near } = listed(t, topOf(event));
      const happened = run.events.filter((entry) => Math.abs(x(entry.t) - x(t)) < 4).map((entry) => [null, entry.s, true]);
      showTip(event, `${t.toFixed(3)} s`, [...happened, ...rows.slice(0, LISTED).map((row) => [row.series.look, `${row.series.name}: ${row.text}`, row === near])]);
    });
    box.addEventListener("pointerup", (event) => {
      if (start && Math.abs(event.clientX - start.px) <= DRAG_PX) pick(timeAt(event), topOf(event));
      start = null;
    });
    box.addEventListener("pointerleave", () => { hideTip(); start || state.set({ cursor: null }); });
    box.addEventListener("pointercancel", () => { start = null; });

    function pick(t, top) {
      const { near } = listed(t, top);
      if (near) state.picks.forEach((listener) => listener(panel, near.series, t));
    }

    box.addEventListener("keydown", (event) => {
      const [a, b] = state.shown, stride = ((b - a) / 100) * (event.shiftKey ? 10 : 1);
      const at = state.cursor ?? (run.window?.[0] ?? a);
      const moves = { ArrowLeft: at - stride, ArrowRight: at + stride, ArrowDown: at - stride, ArrowUp: at + stride, Home: a, End: b };
      if (event.key in moves) {
        state.set({ cursor: Math.min(b, Math.max(a, moves[event.key])) });
        announce();
      } else if (event.key === "[") state.select(at, state.brush?.[1] ?? b);
      else if (event.key === "]") state.select(state.brush?.[0] ?? a, at);
      else if (event.key === "Escape") state.set({ brush: null });
      else if (event.key === "Enter") pick(at, 0);
      else return;
      event.preventDefault();
    });

    function announce() {
      const texts = listed(state.cursor, 0).rows.slice(0, LISTED).map((row) => `${row.series.name} ${row.text}`);
      box.setAttribute("aria-valuenow", state.cursor.toFixed(3));
      box.setAttribute("aria-valuetext", `${state.cursor.toFixed(2)} s: ${texts.join(", ")}`);
    }

    panel.hide = (hidden) => { panel.hidden = hidden; panel.draw(); };
    box.setAttribute("aria-valuetext", `0 s to ${state.end} s`);
    state.panels.add(panel);
    watch(box, panel.draw);
    return panel;
  }

  const heightOf = (chart) => (chart.rows ? chart.rows * 16 + 34 : undefined);

  function notesOf(chart) {
    const lost = chart.series.some((series) => series.lost) ? `Crosses: ${chart.without || "lost"}.` : "";
    const rate = chart.lines?.length ? `Dotted: the line, ${chart.lines.join(" and ")} Mbit/s.` : "";
    return [rate, chart.note, lost].filter(Boolean).join(" ");
  }

  // A heading with a legend, and a panel for each run that has the chart.
  function plot(place, state, title, entries, level) {
    const list = entries.map(([chart]) => chart), unit = list[0].unit;
    const span = domain(list.flatMap((chart) => chart.series.flatMap((series) => series.v)), { log: unit === "ms" });
    const notes = [...new Set(list.map(notesOf))].join(" ");
    const legend = make("div", { class: "keys", role: "group", "aria-label": `Series of ${title}` });
    const row = make("div", { class: entries.length > 1 ? "panels" : "panels single" });
    const about = [unit && `${unit}${span.log ? ", logarithmic" : ""}`, notes].filter(Boolean).join(". ");
    place.append(make("div", { class: "plot" }, make(level, {}, title, make("small", {}, about)), legend, row));
    const panels = entries.map(([chart, run]) => {
      const cell = make("div", { class: "panel" });
      if (entries.length > 1) cell.append(make("p", { class: "panel-title" }, run.label));
      row.append(cell);
      return timePanel(cell, chart, run, state, span, heightOf(chart));
    });
    const series = new Map(list.flatMap((chart) => chart.series.map((one) => [one.name, one])));
    keys(legend, [...series.values()], (hidden) => panels.forEach((panel) => panel.hide(hidden)));
  }

  // Draws now, and whenever the width changes.
  function watch(box, draw) {
    let width = box.clientWidth;
    draw();
    new ResizeObserver(() => {
      if (box.clientWidth !== width) { width = box.clientWidth; draw(); }
    }).observe(box);
  }

  // Points, and lines between points. `data`: {points: [{x, y, look, text, run}], lines: [{points, look}]}. Returns the
  // function that draws again.
  function scatter(box, data, { x: xs, y: ys, xTitle, reverse = false, height = 260, format, xTicks, onPick }) {
    const margin = { ...MARGIN, bottom: xTitle ? 36 : 20 };
    const draw = () => {
      const width = box.clientWidth;
      if (!width) return;
      const w = width - margin.left - margin.right;
      const x = scaleOf(xs, reverse ? [w, 0] : [0, w]), y = scaleOf(ys, [height - margin.top - margin.bottom, 0]);
      const { clip, root } = frame(width, height, x, y, { xTitle, gridX: true, margin, format, xTicks });
      clip.setAttribute("overflow", "visible");
      for (const line of data.lines ?? []) {
        const d = line.points.map(([a, b], i) => `${i ? "L" : "M"}${x(a).toFixed(1)},${y(b).toFixed(1)}`).join("");
        const mark = svg("path", { class: "curve", d, fill: "none", "stroke-width": line.width ?? 1.5, "stroke-dasharray": (line.dash ?? line.look.dash).join(" ") });
        clip.append(painted(mark, "stroke", line.look.c));
      }
      for (const point of data.points ?? []) {
        const mark = dot(point.look, x(point.x), y(point.y), point.size ?? 4.5);
        mark.classList.add("point");
        if (point.faint) mark.setAttribute("opacity", 0.45);
        mark.addEventListener("pointermove", (event) => showTip(event, point.text[0], point.text.slice(1).map((text) => [null, text])));
        mark.addEventListener("pointerleave", hideTip);
        if (onPick) mark.addEventListener("click", () => onPick(point));
        clip.append(mark);
      }
      box.replaceChildren(root);
    };
    watch(box, draw);
    return draw;
  }

  // Says when there is more to the right of the visible part, and fades it out there.
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

  return { make, svg, painted, hinted, short, bounds, domain, scaleOf, linear, keys, swatch, dot, showTip, hideTip, timeState, timePanel, plot, scatter, watch };
})();

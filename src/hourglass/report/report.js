// SPDX-License-Identifier: Apache-2.0
// The page's behaviour: runs side by side and in one window of time, packets' journeys, tables sorted and filtered.
// Without script the figures of the runs are still tables: of up to ten runs all of them, of more the comparison.
"use strict";
(() => {
  const { make, svg, short, hinted } = charts;
  const MOST_SHOWN = 10, BUCKETS_PER_E = 50, MOST_LINES = 400;
  const json = (id) => JSON.parse(document.getElementById(id).textContent);
  const overview = json("overview-data");
  const state = charts.timeState(overview.end);
  const timebar = document.querySelector(".timebar");
  const cached = new Map();

  // The data of a run, with its label; read on first use. In a page of many runs they are compressed.
  async function dataOf(number) {
    if (!cached.has(number)) {
      const { type, textContent } = document.getElementById(`data-${number}`);
      const text = type === "application/json" ? textContent : await unpacked(textContent);
      cached.set(number, { number, label: overview.names[number], ...JSON.parse(text) });
    }
    return cached.get(number);
  }

  function unpacked(base64) {
    const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  }

  const drawn = new Set();

  async function drawRun(details) {
    if (drawn.has(details)) return;
    drawn.add(details);
    timebar.hidden = false;
    const run = await dataOf(Number(details.dataset.run));
    if (run.body) {
      details.querySelector(".body").innerHTML = run.body;
      details.querySelectorAll(".scroll").forEach(hinted);
    }
    const place = details.querySelector(".charts");
    for (const chart of run.charts) charts.plot(place, state, chart.title, [[chart, run]], "h4");
    if (run.output?.length) place.append(outputOf(run));
    if (run.figures && overview.names.length === 1) windowTable([run]);
  }

  // The lines that programs wrote, those of the window.
  function outputOf(run) {
    const list = make("ol", { class: "log" }), note = make("p", { class: "hint" });
    const place = make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `Output of programs, ${run.label}` }, list);
    const rows = run.output.map(([t, program, pipe, text]) => [t, make("li", { class: pipe }, make("time", {}, t.toFixed(3)), make("b", {}, program), make("code", {}, text))]);
    const update = () => {
      const [from, to] = state.brush ?? [0, Infinity];
      const inside = rows.filter(([t]) => t >= from && t <= to).map(([, row]) => row);
      list.replaceChildren(...inside.slice(0, MOST_LINES));
      note.textContent = `${inside.length} of ${rows.length} lines${run.output_more ? ` (${run.output_more} more are not on this page)` : ""}. Choose a window to see its lines.`;
    };
    state.listeners.push(update);
    update();
    return make("div", { class: "output" }, make("h4", {}, "Lines of output"), note, place);
  }

  let choices = 0;

  // Runs side by side: a row of panels for each chart.
  async function sideBySide(numbers) {
    const place = document.getElementById("side-charts"), choice = ++choices;
    const runs = await Promise.all(numbers.map(dataOf));
    if (choice !== choices) return;
    state.panels.forEach((panel) => place.contains(panel.place) && state.panels.delete(panel));
    place.replaceChildren();
    document.getElementById("side").hidden = false;
    document.getElementById("side-hint").hidden = runs.length > 1;
    timebar.hidden = !runs.length && !drawn.size;
    const titles = [...new Set(runs.flatMap((run) => run.charts.map((chart) => chart.title)))];
    for (const title of titles) {
      const entries = runs.flatMap((run) => run.charts.filter((chart) => chart.title === title).map((chart) => [chart, run]));
      charts.plot(place, state, title, entries, "h3");
    }
    if (runs.some((run) => run.figures)) windowTable(runs);
  }

  // ---- Figures of a window ----

  const edge = (run, t) => Math.max(0, Math.min(Math.round(t / run.figures.step), run.sizes));
  const totals = (growth) => growth.reduce((sums, value) => (sums.push((sums.at(-1) ?? 0) + value), sums), []);

  function prepared(run) {
    if (run.sizes) return;
    for (const figure of run.figures.figures)
      for (const key of ["per_s", "count", "mean", "of"]) if (figure[key]) figure[key] = totals(figure[key]);
    run.sizes = Math.ceil(run.end / run.figures.step);
  }

  function quantiles(bins, shares) {
    const counts = new Map();
    for (const bin of bins) for (let i = 0; i < bin.length; i += 2) counts.set(bin[i], (counts.get(bin[i]) ?? 0) + bin[i + 1]);
    const sorted = [...counts].sort((a, b) => a[0] - b[0]), n = sorted.reduce((sum, [, count]) => sum + count, 0);
    return shares.map((share) => {
      let seen = 0;
      for (const [bucket, count] of sorted) if ((seen += count) > share * (n - 1)) return Math.exp(bucket / BUCKETS_PER_E);
      return null;
    });
  }

  // The figures of a run in the window: a map from the name to [unit, value].
  function windowFigures(run) {
    prepared(run);
    const [from, to] = state.brush ?? run.window ?? [0, run.end], a = edge(run, from), b = edge(run, to);
    const exact = !state.brush, values = new Map();
    for (const { name, unit, factor = 1, ...figure } of run.figures.figures) {
      const growth = (sums) => (sums[b] - sums[a]) * factor;
      if (figure.per_s) values.set(name, [unit, b > a ? growth(figure.per_s) / ((b - a) * run.figures.step) : null]);
      if (figure.count) values.set(name, [unit, b > a ? growth(figure.count) : null]);
      if (figure.mean) values.set(name, [unit, figure.of[b] > figure.of[a] ? growth(figure.mean) / (figure.of[b] - figure.of[a]) : null]);
      if (!figure.histogram) continue;
      const [p50, p99] = exact && figure.exact.length ? figure.exact : quantiles(figure.histogram.slice(a, b), [0.5, 0.99]);
      values.set(`${name} p50`, [unit, p50]).set(`${name} p99`, [unit, p99]);
    }
    return values;
  }

  function changeOf(value, first) {
    if (value === null || !first || value === first) return "";
    const percent = (100 * (value - first)) / first;
    return `${percent > -0.05 ? "+" : ""}${Math.abs(percent) < 1000 ? (Math.abs(percent) < 0.05 ? "0.0" : percent.toFixed(1)) : percent.toFixed(0)} %`;
  }

  let stopTable = () => {};

  function windowTable(runs) {
    const place = document.getElementById("window-figures");
    stopTable();
    const shown = runs.filter((run) => run.figures);
    const title = make("h3"), about = make("p", { class: "hint" }), body = make("tbody");
    const head = shown.map((run) => make("th", { scope: "col", class: "n" }, run.label));
    const table = make("table", { id: "window-table" }, make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "figure"), make("th", { scope: "col" }, "unit"), ...head)), body);
    place.replaceChildren(title, about, make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Figures of the window" }, table));
    hinted(place.querySelector(".scroll"));
    const update = () => {
      const columns = shown.map(windowFigures);
      const names = [...new Set(columns.flatMap((column) => [...column.keys()]))];
      const step = shown[0].figures.step, span = state.brush?.map((t) => (edge(shown[0], t) * step).toFixed(step < 1 ? 1 : 0));
      title.textContent = span ? `Figures from ${span[0]} to ${span[1]} s` : "Figures under load";
      about.textContent = `${shown.length > 1 ? "Compared with the first run. " : ""}` +
        (span ? `A window begins and ends at multiples of ${step} s. Percentiles are exact to 1 %.` : "Drag in a chart: the figures are those of your window. Layers: the mean of a packet.");
      body.replaceChildren(...names.map((name) => {
        const first = columns[0].get(name)?.[1] ?? null, unit = columns.find((column) => column.has(name)).get(name)[0];
        const cells = columns.map((column, i) => {
          const value = column.get(name)?.[1] ?? null, change = i ? changeOf(value, first) : "";
          return make("td", { class: "n" }, short(value, 3), ...(change ? [make("small", {}, change)] : []));
        });
        return make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, unit), ...cells);
      }));
    };
    state.listeners.push(update);
    stopTable = () => { state.listeners = state.listeners.filter((listener) => listener !== update); };
    update();
  }

  // ---- The bar of the window ----

  const [fromInput, toInput] = timebar.querySelectorAll("input");
  const text = (t) => String(Number(t.toFixed(3)));

  state.listeners.push(() => {
    const [from, to] = state.brush ?? [0, state.end];
    fromInput.value = text(from);
    toInput.value = text(to);
    timebar.classList.toggle("brushed", Boolean(state.brush));
    timebar.querySelector("[data-window=zoom]").disabled = !state.brush;
    timebar.querySelector("[data-window=all]").disabled = !state.brush && state.whole();
  });
  for (const input of [fromInput, toInput]) {
    input.max = state.end;
    input.addEventListener("change", () => state.select(Number(fromInput.value), Number(toInput.value)));
  }
  timebar.addEventListener("click", ({ target }) => {
    const loaded = [...cached.values()].find((run) => run.window)?.window;
    const actions = {
      load: () => state.set({ brush: loaded ? [...loaded] : null }),
      zoom: () => state.set({ shown: [...state.brush] }),
      all: () => state.set({ brush: null, shown: [0, state.end] }),
    };
    actions[target.dataset.window]?.();
  });
  state.set({ brush: null });

  // ---- A packet's journey ----

  const dialog = document.getElementById("journey");
  const streamOf = (series) => series.stream ?? series.name;

  // The followed packets that a series shows, by time: those of its stream, or of all streams if it is a sum.
  function journeysOf(run, series) {
    const all = run.journeys?.packets ?? [], number = run.journeys?.streams.indexOf(streamOf(series)) ?? -1;
    return number < 0 ? all : all.filter(([stream]) => stream === number);
  }

  const lengthOf = ([, , , start, , , parts]) => Math.max(...parts.map(([, , at, ns]) => at + ns)) - start;

  state.picks.push((panel, series, t) => {
    const packets = journeysOf(panel.run, series);
    if (!packets.length) return;
    const nearest = packets.reduce((best, packet) => (Math.abs(packet[3] / 1e9 - t) < Math.abs(best[3] / 1e9 - t) ? packet : best));
    showJourney(panel.run, packets, packets.indexOf(nearest));
  });

  const duration = (ns) => (ns >= 1e6 ? `${short(ns / 1e6)} ms` : ns >= 1e3 ? `${short(ns / 1e3)} µs` : `${ns} ns`);
  const many = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

  function showJourney(run, packets, index) {
    const [stream, down, number, start, data, bytes, parts] = packets[index], names = run.journeys;
    const total = lengthOf(packets[index]);
    const close = make("button", { type: "button", autofocus: "" }, "close");
    const move = (label, to) => {
      const button = make("button", { type: "button" }, label);
      button.disabled = to < 0 || to >= packets.length || to === index;
      button.addEventListener("click", () => showJourney(run, packets, to));
      return button;
    };
    const slowest = packets.reduce((best, packet, i) => (lengthOf(packet) > lengthOf(packets[best]) ? i : best), 0);
    close.addEventListener("click", () => dialog.close());
    const both = new Set(parts.map(([node]) => node)).size && parts.at(-1)[0] === parts[0][0] && parts.length > 1 && !down;
    const title = make("h2", { id: "journey-title" }, `Packet ${number} of ${names.streams[stream]}`);
    const about = `${run.label} · sent at ${(start / 1e9).toFixed(6)} s · ${both ? "there and back" : down ? "towards the client" : "towards the server"} · ` +
      `${bytes ? `${bytes} bytes${data ? " of data" : ""}` : "no data"} · ${duration(total)}`;
    const box = make("div", { class: "timeline" });
    dialog.replaceChildren(make("div", { class: "journey-head" }, title, close), make("p", { class: "hint" }, about), box,
                           make("h3", {}, "Layer by layer"), partsList(parts, names, total),
                           make("p", { class: "hint" }, `The probe follows about 1 packet in ${names.one_in}; the page has the slowest and the median one of each stretch. ` +
                             "A layer has one bar per node; several waits in it are one bar."),
                           make("div", { class: "journey-moves" }, move("← earlier", index - 1), move("later →", index + 1), move("slowest", slowest)));
    if (!dialog.open) dialog.showModal();
    timeline(box, parts, names, start, total);
    state.set({ cursor: Math.min(state.end, start / 1e9) });
  }

  // A row per visited node, and a bar per layer at its time.
  function timeline(box, parts, names, start, total) {
    const rows = [];
    for (const [node] of parts) if (rows.at(-1) !== node) rows.push(node);
    const width = box.clientWidth, left = Math.min(110, 14 + 7.5 * Math.max(...rows.map((node) => names.nodes[node].length)));
    const x = charts.linear([0, total / 1e6], [left, width - 12]), height = rows.length * 30 + 28;
    const drawing = svg("svg", { width, height, role: "img", "aria-label": `Timeline: ${many(rows.length, "visit")} of nodes` });
    for (const tick of x.ticks(Math.max(2, Math.round(width / 110)))) {
      drawing.append(svg("path", { class: "tick", d: `M${x(tick).toFixed(1)},0V${height - 20}` }), svg("text", { x: Math.min(x(tick), width - 30), y: height - 6, "text-anchor": "middle" }, `${short(tick)} ms`));
    }
    rows.forEach((node, row) => drawing.append(svg("text", { x: left - 8, y: row * 30 + 20, "text-anchor": "end", class: "node" }, names.nodes[node])));
    let row = -1, before = null;
    for (const [node, layer, at, ns] of parts) {
      if (node !== before) { row++; before = node; }
      const a = x((at - start) / 1e6), w = Math.max(1.5, x((at + ns - start) / 1e6) - a), name = names.layers[layer];
      const bar = svg("g", {}, svg("title", {}, `${names.nodes[node]} ${name}: ${duration(ns)}`), svg("rect", { class: `l-${name}`, x: a, y: row * 30 + 4, width: w, height: 22 }));
      if (w > name.length * 7 + 6) bar.append(svg("text", { class: "in-bar", x: a + w / 2, y: row * 30 + 19, "text-anchor": "middle" }, name));
      drawing.append(bar);
    }
    box.replaceChildren(drawing);
  }

  function partsList(parts, names, total) {
    return make("ul", { class: "parts" }, ...parts.filter(([, , , ns, ...queue]) => ns >= total / 1000 || queue.length).map(([node, layer, , ns, ahead, overtakers, sample]) => {
      const share = (100 * ns) / total, name = names.layers[layer];
      const row = make("li", {}, svg("svg", { width: 10, height: 10, "aria-hidden": true }, svg("rect", { width: 10, height: 10, class: `l-${name}` })),
                       ` ${names.nodes[node]} ${name}: `, make("b", {}, duration(ns)), ` (${share < 0.1 ? "< 0.1" : short(share, 3)} %)`);
      if (!ahead) return row;
      const count = ahead.reduce((sum, [, packets]) => sum + packets, 0);
      const who = ahead.map(([stream, packets]) => `${packets} of ${names.streams[stream]}`).join(", ");
      const texts = [count ? `Before it: ${many(count, "followed packet")} (${who}).` : "No followed packet before it."];
      if (overtakers) texts.push(`${many(overtakers, "packet")} overtook it.`);
      if (sample.length) texts.push(`At ${(sample[0] / 1e9).toFixed(3)} s the device's queue held ${many(sample[1], name === "ring" ? "skb" : "packet")}, ${short(sample[2] / 1000, 3)} KB.`);
      row.append(make("small", {}, texts.join(" ")));
      return row;
    }));
  }

  // ---- Tables, links ----

  function open(details) {
    if (!details) return;
    details.open = true;
    details.scrollIntoView({ block: "start" });
  }

  function sortable(table) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      head.querySelector("button")?.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        heads.forEach((other) => other.hasAttribute("aria-sort") && other.setAttribute("aria-sort", "none"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const value = (row) => row.cells[column].dataset.value ?? (column ? "" : row.cells[0].textContent.trim());
        const compare = (a, b) => {
          if (a === "" || b === "") return (a === "") - (b === ""); // nothing comes last, either way
          const order = !isNaN(a) && !isNaN(b) ? a - b : a.localeCompare(b, "en", { numeric: true });
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
      const content = row.textContent.toLowerCase();
      row.hidden = !wanted.every((word) => content.includes(word));
    }
  });

  addEventListener("click", async ({ target }) => {
    if (!target.matches?.(".copy")) return;
    const code = target.previousElementSibling;
    getSelection().selectAllChildren(code);
    try {
      await navigator.clipboard.writeText(code.textContent);
      target.textContent = "copied";
    } catch {
      target.textContent = "selected"; // pages from a file may not write to the clipboard
    }
  });

  // ---- The overview ----

  function drawTradeoff() {
    const figure = document.getElementById("tradeoff");
    if (!figure) return;
    const { points, groups, latency } = overview;
    figure.hidden = !points.length;
    if (!points.length) return;
    const looks = new Map(groups.map((group) => [group.name, group.look]));
    const marks = points.map((point) => ({ ...point, look: looks.get(point.group),
      text: [point.name, `${short(point.y)} Mbit/s`, `${latency} p50: ${short(point.x)} ms`] }));
    const data = { points: marks }, x = charts.domain(points.map((point) => point.x), { zero: false });
    const draw = charts.scatter(figure.querySelector(".chart"), data, {
      x, y: charts.domain(points.map((point) => point.y), { zero: false, log: false }), reverse: true, height: 280,
      xTitle: `${latency} p50 (ms${x.log ? ", logarithmic" : ""}), lower is better →`, onPick: (point) => open(document.getElementById(`run-${point.run}`)),
    });
    if (groups.length > 1) charts.keys(figure.querySelector(".keys"), groups, (hidden) => {
      data.points = marks.filter((point) => !hidden.has(point.group));
      draw();
    }, true);
  }

  function drawOverview() {
    drawTradeoff();
    const box = document.getElementById("cdf-chart");
    if (!box || !overview.cdf.length) return;
    document.getElementById("cdf").hidden = false;
    const xs = charts.domain(overview.cdf.flatMap((curve) => curve.q));
    const curves = overview.cdf.map(({ name, q, look }) => ({ name, look, points: q.map((v, i) => [v, (100 * i) / (q.length - 1)]) }));
    const data = { lines: curves };
    const draw = charts.scatter(box, data, { x: xs, y: { log: false, range: [0, 100] }, xTitle: `${overview.latency} (ms${xs.log ? ", logarithmic" : ""}); % of samples` });
    charts.keys(document.querySelector("#cdf .keys"), curves, (hidden) => {
      data.lines = curves.filter((curve) => !hidden.has(curve.name));
      draw();
    });
  }

  document.querySelectorAll(".scroll").forEach(hinted);
  document.querySelectorAll("table.sortable").forEach(sortable);
  const runs = [...document.querySelectorAll("details.run")];
  runs.forEach((run) => run.addEventListener("toggle", () => run.open && drawRun(run)));
  const followHash = () => location.hash.startsWith("#run-") && open(document.querySelector(location.hash));
  addEventListener("hashchange", followHash);
  const boxes = [...document.querySelectorAll("#runs-table .choose input")];
  const choose = () => {
    const chosen = boxes.filter((box) => box.checked);
    boxes.forEach((box) => { box.disabled = !box.checked && chosen.length >= MOST_SHOWN; });
    sideBySide(chosen.map((box) => Number(box.value)).sort((a, b) => a - b));
  };
  boxes.forEach((box) => box.addEventListener("change", choose));
  drawOverview();
  if (boxes.length) choose();
  runs.filter((run) => run.open).forEach(drawRun);
  followHash();
})();

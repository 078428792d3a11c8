// The sections of the page, and what ties them together.

// --- choosing -----------------------------------------------------------------------------------

function choose(layer, k) {
  Object.assign(state, { layer, k, lit: true });
  light();
  drawDetails();
  markComponents();
  bringIntoSight(layer, k);
}

// From elsewhere on the page: the choice, and the way to where it is shown.
function visit(layer, k) {
  choose(layer, k);
  byId("layers").scrollIntoView();
}

function chooseRun(index) {
  state.run = index;
  state.lit = false;
  state.layer = Math.min(state.layer, run().layers.length);
  state.tab = Math.min(state.tab, run().layers.length);
  state.k = Math.min(state.k, run().ranks[state.layer - 1] - 1);
  drawRun();
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && state.lit) {
    state.lit = false;
    light();
  }
});

// --- header -------------------------------------------------------------------------------------

function drawHeader() {
  const several = data.runs.length > 1 ? `${data.runs.length} runs are compared; shown is ${run().label}: ` : "";
  byId("summary").textContent = several + run().summary;
  replace(byId("tiles"), ...run().tiles.map(({ what, value, unit }) =>
    el("div", { class: "tile" },
      el("div", { class: "tile-value" }, value, unit ? el("small", {}, ` ${unit}`) : null),
      el("div", { class: "tile-what" }, what))));
  const notes = run().notes.slice();
  if (data.picture && data.picture.block > 1) {
    const { block, full } = data.picture;
    notes.push(`To keep this file small, maps show means over ${block} × ${block} of the ${full[0]} × ${full[1]} pixels.`);
  }
  byId("notes").hidden = notes.length === 0;
  replace(byId("notes"), ...notes.map((note) => el("p", {}, note)));
}

function drawRunTabs() {
  byId("runs").hidden = data.runs.length < 2;
  tabs(byId("runs"), data.runs.map((r) => r.label), state.run, chooseRun);
}

function drawSectionLinks() {
  const sections = [...document.querySelectorAll("main > section")].filter((s) => !s.hidden);
  replace(byId("sections"), ...sections.map((s) =>
    el("a", { href: `#${s.id}` }, s.querySelector("h2").textContent)));
}

// --- the chosen component -----------------------------------------------------------------------

function chips(heading, links) {
  if (!links.length) return null;
  return el("div", { class: "kin" }, el("h4", {}, heading),
    el("div", { class: "chips" }, ...links.map(({ layer, k, share }) =>
      el("button", { type: "button", class: "chip", on: { click: () => choose(layer, k) } },
        chipPicture(layer, k),
        el("span", { class: "chip-name", title: title(layer, k) }, chipName(layer, k)),
        el("b", {}, whole(share))))));
}

function chipPicture(layer, k) {
  const { maps } = layerOf(layer);
  return maps ? el("img", { src: pictureUrl(maps[k]), alt: "" }) : null;
}

// A number alone says little: its first words say more.
function chipName(layer, k) {
  const { top } = layerOf(layer);
  return top ? `${title(layer, k)}: ${top[k].slice(0, 3).map(([word]) => word).join(", ")}` : title(layer, k);
}

function drawDetails() {
  const { layer, k } = state;
  const content = layerOf(layer);
  const truth = truthOf(layer, k);
  const { up, down } = relatives(layer, k);
  const figure = el("div", { class: "detail-figure" });
  replace(byId("details"),
    el("header", {},
      el("p", { class: "kicker" }, `Layer ${layer} · component ${k + 1} of ${content.names.length}`),
      el("h3", {}, title(layer, k)),
      truth ? el("p", { class: "score" }, "MRSA to the truth ", el("b", {}, num(truth.mrsa))) : null),
    el("div", { class: "detail-body" },
      figure,
      content.maps ? bigPicture(content.maps[k], title(layer, k)) : null,
      el("div", { class: "detail-kin" },
        chips("Made of", up),
        chips("Part of", down),
        up.length + down.length ? el("p", { class: "hint" }, "Percentages are shares of the finer component.") : null,
        content.samples ? el("div", { class: "kin" }, el("h4", {}, "Strongest samples"), bars(content.samples[k])) : null)));
  if (content.curves) drawCurve(figure, layer, k, truth);
  else if (content.top) replace(figure, bars(content.top[k]));
  else figure.remove();
}

function drawCurve(host, layer, k, truth) {
  const { x, label, pieces, binned } = data.axis;
  const y = truth ? scaledCurve(layer, k) : layerOf(layer).curves[k];
  const series = [{ label: truth ? "fit" : "value", x, y, color: ACCENT }];
  if (truth) series.push({ label: `truth: ${truth.name}`, x, y: truth.curve, color: "#444", dash: true });
  lineChart(host, series, {
    xLabel: label,
    yLabel: truth ? "value / mean" : "value",
    pieces,
    zero: true,
    integers: label !== "wavelength (nm)",
    height: 210,
    name: `Curve of ${title(layer, k)}`,
  });
  if (binned > 1) host.append(el("p", { class: "hint" }, `Smallest and largest of every ${binned} rows.`));
}

function bigPicture(map, name) {
  const { rows, cols } = data.picture;
  const image = el("img", { class: "big-picture", src: pictureUrl(map), alt: `${data.kind === "scene" ? "Map" : "Picture"} of ${name}` });
  image.style.aspectRatio = `${cols} / ${rows}`;
  const figure = el("figure", { class: "big" }, image, colorBar(map));
  figure.style.maxWidth = `${Math.min(340, Math.max(140, (340 * cols) / rows))}px`;
  return figure;
}

// --- all components of a layer ------------------------------------------------------------------

const COMPONENT_WORDS = {
  scene: ["Maps", "How much of each component every pixel holds. All maps share one view; colours end at the 99th percentile of each. Rows and columns count from 0."],
  pictures: ["Pictures", "Components of a layer, each scaled to its own range; dark is large."],
  table: ["Components", "The largest features of each component."],
};

function drawComponents() {
  const [heading, caption] = COMPONENT_WORDS[data.kind];
  byId("components-title").textContent = heading;
  byId("components-caption").textContent =
    data.show === "curves" && data.kind === "table" ? "The components of a layer as curves." : caption;
  const draw = { scene: drawMapSection, pictures: drawPictures, table: drawColumns }[data.kind];
  const layers = run().layers.map((_, l) => `Layer ${l + 1}`);
  tabs(byId("components-tabs"), layers, state.tab - 1, (l) => {
    state.tab = l + 1;
    drawComponents();
  });
  byId("components-tabs").hidden = layers.length < 2;
  draw(state.tab);
  markComponents();
}

const componentButton = (layer, k, ...children) =>
  el("button", { type: "button", class: "component", "data-component": `${layer}/${k}`, on: { click: () => visit(layer, k) } },
    ...children, el("span", { class: "component-name", title: title(layer, k) }, title(layer, k)));

function markComponents() {
  for (const node of document.querySelectorAll("#components-body [data-component]")) {
    node.classList.toggle("chosen", node.dataset.component === `${state.layer}/${state.k}`);
  }
}

function drawPictures(layer) {
  const { order, maps } = layerOf(layer);
  const { rows, cols } = data.picture;
  replace(byId("components-body"), el("div", { class: "pictures" }, ...order.map((k) => {
    const image = el("img", { src: pictureUrl(maps[k]), alt: "" });
    image.style.aspectRatio = `${cols} / ${rows}`;
    return componentButton(layer, k, image);
  })));
}

function drawColumns(layer) {
  const content = layerOf(layer);
  replace(byId("components-body"), el("div", { class: "columns" }, ...content.order.map((k) => {
    const figure = content.top
      ? bars(content.top[k].slice(0, 10))
      : svg("svg", { width: 210, height: 110, "aria-hidden": true }, ...sparkline(content.curves[k], 210, 110));
    const heading = el("button", { type: "button", class: "plain", on: { click: () => visit(layer, k) } }, title(layer, k));
    return el("div", { class: "column", "data-component": `${layer}/${k}` }, el("h3", {}, heading), figure);
  })));
}

// --- errors -------------------------------------------------------------------------------------

let clock = "sweep"; // or "time"

const ERROR_KINDS = [
  ["data", "Relative data error", "‖X − W_l H_l ⋯ H_1‖ / ‖X‖"],
  ["layer", "Relative layer error", "‖W_{l−1} − W_l H_l‖ / ‖W_{l−1} at the start‖"],
];

function drawErrors() {
  tabs(byId("errors-tabs"), ["Sweeps", "Seconds"], clock === "sweep" ? 0 : 1, (i) => {
    clock = i ? "time" : "sweep";
    drawErrors();
  });
  const rows = data.runs.length > 1 ? comparedErrors() : [ownErrors()];
  const hosts = rows.map((charts) => charts.map(() => el("div", { class: "chart" })));
  replace(byId("errors-body"), ...hosts.map((row) => el("div", { class: "charts" }, ...row)));
  rows.forEach((charts, r) => charts.forEach(([series, options], c) => lineChart(hosts[r][c], series, options)));
}

const timeAxis = () => ({
  xLabel: clock === "sweep" ? "sweep" : "seconds",
  integers: clock === "sweep",
  restAtEnd: true,
});

// Objective, then each kind of error with one line per layer.
function ownErrors() {
  const { history, layers } = run();
  const kinds = ERROR_KINDS.map(([key, words, formula]) => [
    layers.map((_, l) => ({ label: `layer ${l + 1}`, x: history[clock], y: history[key][l], color: color(l) })),
    { ...timeAxis(), title: words, formula, yLabel: "error", log: true, format: percent, name: `${words} over the sweeps` },
  ]);
  return [objectiveChart(), ...kinds];
}

// A row for each kind of error, with a chart per layer and a line per run; then the chosen run's objective:
// objectives of different models do not compare.
function comparedErrors() {
  const depth = Math.max(...data.runs.map((r) => r.layers.length));
  const rows = ERROR_KINDS.map(([key, words, formula]) =>
    Array.from({ length: depth }, (_, l) => [
      data.runs.map((r, i) => ({ label: r.label, x: r.history[clock], y: r.history[key][l], color: color(i) })).filter((s) => s.y),
      { ...timeAxis(), title: `${words}, layer ${l + 1}`, formula, yLabel: "error", log: true, format: percent, name: `${words} of layer ${l + 1} by run` },
    ]));
  return [...rows, [objectiveChart()]];
}

function objectiveChart() {
  const { history, label } = run();
  const positive = history.objective.every((v) => v > 0);
  const several = data.runs.length > 1;
  return [
    [{ label: several ? label : "objective", x: history[clock], y: history.objective, color: several ? color(state.run) : "#333" }],
    { ...timeAxis(), title: several ? "Objective of the chosen run" : "Objective", formula: "what the fit lowers: the loss and the penalties", yLabel: "objective", log: positive, name: "Objective over the sweeps" },
  ];
}

// --- truth --------------------------------------------------------------------------------------

function drawTruth() {
  const known = run().layers.map((content, l) => ({ content, layer: l + 1 })).filter(({ content }) => content.truth);
  byId("truth").hidden = known.length === 0;
  replace(byId("truth-body"), ...known.map(({ content, layer }) => truthOfLayer(content.truth, layer)));
}

function truthOfLayer(truth, layer) {
  const rows = truth.names
    .map((name, i) => ({ name, k: truth.order[i], mrsa: truth.distances[i], curve: truth.curves[i] }))
    .sort((a, b) => a.mrsa - b.mrsa);
  const table = el("table", {},
    el("thead", {}, el("tr", {}, ...["truth", "component", "MRSA"].map((h) => el("th", { scope: "col" }, h)))),
    el("tbody", {}, ...rows.map(({ name, k, mrsa }) => el("tr", {},
      el("td", {}, name),
      el("td", {}, el("button", { type: "button", class: "plain", on: { click: () => visit(layer, k) } }, String(k + 1))),
      el("td", { class: "number" }, num(mrsa))))));
  const curves = data.show !== "curves" ? null : el("div", { class: "overlays" }, ...rows.map(({ name, k, curve, mrsa }) =>
    el("figure", {},
      svg("svg", { width: 190, height: 96, viewBox: "0 0 190 96", role: "img", "aria-label": `${name}: fit and truth, MRSA ${num(mrsa)}` },
        ...sparkline(scaledCurve(layer, k), 190, 96, ACCENT, curve)),
      el("figcaption", {}, name))));
  return el("div", { class: "truth-layer" },
    el("div", {}, el("h3", {}, `Layer ${layer}`), el("p", { class: "score" }, "mean MRSA ", el("b", {}, num(truth.mean))), table),
    curves);
}

// --- several runs -------------------------------------------------------------------------------

const sorting = { column: null, down: false };

function drawRanking() {
  if (!data.ranking) return;
  byId("ranking").hidden = false;
  const { columns, rows } = data.ranking;
  const shown = rows.slice();
  if (sorting.column !== null) {
    // missing values stay last whichever way the others run
    const order = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
    shown.sort((p, q) => {
      const [a, b] = [p[sorting.column], q[sorting.column]];
      if (a === null || b === null) return (a === null) - (b === null);
      return sorting.down ? order(b, a) : order(a, b);
    });
  }
  const numeric = columns.map((_, c) => rows.every((row) => typeof row[c] !== "string"));
  replace(byId("ranking-table"),
    el("thead", {}, el("tr", {}, ...columns.map((name, c) => rankingHeading(name, c, numeric[c])))),
    el("tbody", {}, ...shown.map((row) => {
      const index = data.runs.findIndex((r) => r.label === row[0]);
      return el("tr", { class: index === state.run ? "chosen" : null }, ...row.map((cell, c) =>
        el("td", { class: numeric[c] ? "number" : null },
          c === 0 && index >= 0 ? runButton(index) : num(cell, 4))));
    })));
}

function rankingHeading(name, c, isNumeric) {
  const on = sorting.column === c;
  return el("th", { scope: "col", class: isNumeric ? "number" : null, "aria-sort": on ? (sorting.down ? "descending" : "ascending") : "none" },
    el("button", { type: "button", class: "plain", on: { click: () => {
      Object.assign(sorting, { column: c, down: on && !sorting.down });
      drawRanking();
    } } }, name, el("span", { class: "arrow", "aria-hidden": true }, on ? (sorting.down ? " ↓" : " ↑") : "")));
}

const runButton = (index) => {
  const swatch = el("span", { class: "swatch", "aria-hidden": true });
  swatch.style.background = color(index);
  return el("button", { type: "button", class: "plain", on: { click: () => chooseRun(index) } }, swatch, data.runs[index].label);
};

let sideLayer = 0;

function drawSide() {
  if (!data.side.length) return;
  byId("side").hidden = false;
  tabs(byId("side-tabs"), data.side.map((_, l) => `Layer ${l + 1}`), sideLayer, (l) => {
    sideLayer = l;
    drawSide();
  });
  byId("side-tabs").hidden = data.side.length < 2;
  const { names, rows } = data.side[sideLayer];
  const most = Math.max(...rows.map((row) => row.length));
  const columns = Array.from({ length: most }, (_, c) => names[c] ?? "");
  const bests = columns.map((_, c) => bestOf(c, sideLayer + 1, rows));
  replace(byId("side-table"), el("table", { class: "side" },
    el("thead", {}, el("tr", {}, el("td", {}), ...columns.map((name) => el("th", { scope: "col", title: name }, clip(name, 18))))),
    el("tbody", {}, ...rows.map((row, i) => el("tr", {},
      el("th", { scope: "row" }, runButton(i)),
      ...columns.map((_, c) => el("td", {}, sideCell(i, sideLayer + 1, row[c], most, bests[c]))))))));
}

// The smallest MRSA of a column.
function bestOf(column, layer, rows) {
  const scores = rows.map((row, i) => {
    const { truth } = data.runs[i].layers[layer - 1];
    const place = truth ? truth.order.indexOf(row[column]) : -1;
    return place < 0 ? Infinity : truth.distances[place];
  });
  return Math.min(...scores);
}

function sideCell(index, layer, k, count, best) {
  if (k === null || k === undefined) return el("span", { class: "hint" }, "–");
  const r = data.runs[index];
  const { truth } = r.layers[layer - 1];
  const size = data.kind === "table" ? { w: 120, h: 66 } : fitted(count > WIDE ? 64 : 124);
  const i = truth ? truth.order.indexOf(k) : -1;
  return el("button", {
    type: "button", class: "side-cell", "aria-label": `${r.label}, layer ${layer}, component ${k + 1}`,
    on: { click: () => { chooseRun(index); visit(layer, k); } },
  },
  svg("svg", { width: size.w, height: size.h, "aria-hidden": true }, ...emblem(layer, k, 0, 0, size, r)),
  i >= 0 ? el("span", { class: truth.distances[i] === best ? "hint best" : "hint" }, `MRSA ${num(truth.distances[i])}`) : null);
}

// --- settings -----------------------------------------------------------------------------------

function copyButton(text) {
  const button = el("button", { type: "button", class: "copy" }, "Copy");
  button.addEventListener("click", async () => {
    button.textContent = (await copied(text)) ? "Copied" : "Select and copy by hand";
    setTimeout(() => { button.textContent = "Copy"; }, 1600);
  });
  return button;
}

// Pages opened from a file may have no clipboard API; a hidden field still works there.
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = el("textarea", { class: "offscreen", "aria-hidden": true });
    field.value = text;
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
  }
}

function drawSettings() {
  const { config, facts, model, ranks } = run();
  const rows = [["model", model], ["ranks", ranks.join(" > ")], ...facts];
  const command = "deepmf fit --config config.toml -o again/";
  replace(byId("settings-body"),
    el("div", {}, el("h3", {}, "Facts"),
      el("table", { class: "facts" }, el("tbody", {}, ...rows.map(([name, value]) =>
        el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, value)))))),
    config
      ? el("div", {},
        el("h3", {}, "To repeat it"),
        el("p", { class: "caption" }, "Save this as config.toml, then run the command below."),
        el("div", { class: "code" }, el("pre", {}, config), copyButton(config)),
        el("div", { class: "code" }, el("pre", {}, command), copyButton(command)))
      : null);
}

// --- all of it ----------------------------------------------------------------------------------

function drawRun() {
  const depth = run().layers.length;
  byId("layers-caption").textContent = depth > 1
    ? "Each layer's components are grouped by the next. Lines show how much of a component belongs to those below it (10 % or more; the wider, the more). Click a component, or use the arrow keys and Enter."
    : "One layer of components. Click one, or use the arrow keys and Enter.";
  drawHeader();
  drawRunTabs();
  drawRanking();
  drawSide();
  drawGraph();
  drawDetails();
  drawComponents();
  drawErrors();
  drawTruth();
  drawSettings();
  drawSectionLinks();
}

state.k = layerOf(1).order[0];
drawRun();

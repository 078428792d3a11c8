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
      truth ? el("p", { class: "score" }, `MRSA to ${truth.name} `, el("b", {}, digits(truth.mrsa))) : null),
    el("div", { class: "detail-body" },
      figure,
      content.maps ? bigPicture(content.maps[k], title(layer, k), amountOf(layer)) : null,
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
  const { x, label, pieces, binned, ticks } = data.axis;
  const y = truth ? scaledCurve(layer, k) : layerOf(layer).curves[k];
  const series = [{ label: truth ? "fit" : "value", x, y, color: ACCENT }];
  if (truth) series.push({ label: `truth: ${truth.name}`, x, y: truth.curve, color: "#444", dash: true });
  lineChart(host, series, {
    xLabel: label,
    yLabel: truth ? "value / mean" : valueLabel(layer),
    pieces,
    ticks,
    zero: true,
    integers: label !== "wavelength (nm)",
    height: 210,
    name: `Curve of ${title(layer, k)}`,
  });
  if (binned > 1) host.append(el("p", { class: "hint" }, `Smallest and largest of every ${binned} rows.`));
}

// What a curve's values are.
const valueLabel = (layer) => (layerOf(layer).fractions ? "in the data's units" : "value");

function bigPicture(map, name, format) {
  const { rows, cols } = data.picture;
  const alt = `${data.kind === "scene" ? "Map" : "Picture"} of ${name}`;
  const image = el("img", { class: "big-picture", src: pictureUrl(map), alt });
  image.style.aspectRatio = `${cols} / ${rows}`;
  const figure = el("figure", { class: "big" }, image, colorBar(map, "amount", format));
  figure.style.maxWidth = `${Math.min(340, Math.max(140, (340 * cols) / rows))}px`;
  return figure;
}

// --- all components of a layer ------------------------------------------------------------------

const COMPONENT_WORDS = {
  scene: [
    "Spectra and maps",
    "How much of each component every pixel holds. All maps share one view; colors end at the " +
      "99th percentile. Rows and columns count from 0.",
  ],
  pictures: ["Pictures", "Components of a layer, each scaled to its own range; dark is large."],
  table: ["Components", "The largest features of each component."],
};
const FRACTIONS =
  " Maps are fractions of the pixel, which sum to 1; spectra are in the data's units, as bright as the " +
  "pixels that hold them are on average: a pixel is its brightness × the sum of fraction × spectrum. The " +
  "file factors.npz has the factors as they were fitted.";

function drawComponents() {
  const [heading, caption] = COMPONENT_WORDS[data.kind];
  byId("components-title").textContent = heading;
  byId("components-caption").textContent =
    data.show === "curves" && data.kind === "table"
      ? "The components of a layer as curves."
      : caption + (layerOf(state.tab).fractions ? FRACTIONS : "");
  const draw = { scene: drawMapSection, pictures: drawPictures, table: drawColumns }[data.kind];
  const layers = run().layers.map((_, l) => `Layer ${l + 1}`);
  tabs(byId("components-tabs"), layers, state.tab - 1, (l) => {
    state.tab = l + 1;
    drawComponents();
  });
  byId("components-tabs").hidden = layers.length < 2;
  drawSpectra(state.tab);
  draw(state.tab);
  markComponents();
}

const CROWDED = 16; // curves that one chart can hold

// All spectra of a scene's layer in one chart, or side by side where they are many.
function drawSpectra(layer) {
  const host = byId("spectra");
  host.hidden = data.kind !== "scene";
  if (host.hidden) return;
  const { order, curves } = layerOf(layer);
  if (order.length > CROWDED) {
    replace(host, curveColumns(layer));
    return;
  }
  const { x, label, pieces, ticks } = data.axis;
  const series = order.map((k, i) => ({
    label: title(layer, k),
    x,
    y: curves[k],
    color: color(i),
    dash: i >= COLORS.length,
    click: () => visit(layer, k),
  }));
  lineChart(host, series, {
    xLabel: label,
    yLabel: valueLabel(layer),
    pieces,
    ticks,
    zero: true,
    integers: label !== "wavelength (nm)",
    height: 280,
    name: `Spectra of layer ${layer}`,
  });
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

function columns(layer, figure) {
  return el("div", { class: "columns" }, ...layerOf(layer).order.map((k) => {
    const heading = el("button", { type: "button", class: "plain", on: { click: () => visit(layer, k) } }, title(layer, k));
    return el("div", { class: "column", "data-component": `${layer}/${k}` }, el("h3", {}, heading), figure(k));
  }));
}

const curveColumns = (layer) =>
  columns(layer, (k) => svg("svg", { width: 210, height: 110, "aria-hidden": true }, ...sparkline(layerOf(layer).curves[k], 210, 110)));

function drawColumns(layer) {
  const { top } = layerOf(layer);
  replace(byId("components-body"), top ? columns(layer, (k) => bars(top[k].slice(0, 10))) : curveColumns(layer));
}

// --- measures -----------------------------------------------------------------------------------

function drawMeasures() {
  const { columns, rows, about } = run().measures;
  byId("measures").hidden = rows.length === 0;
  const formats = columns.map((_, c) => columnFormat(rows.map((row) => row[c])));
  const kind = (c) => (c === 0 ? null : "number");
  replace(byId("measures-table"),
    el("thead", {}, el("tr", {}, ...columns.map((name, c) => el("th", { scope: "col", class: kind(c) }, name)))),
    el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((cell, c) =>
      el("td", { class: kind(c) }, c === 0 ? cell : formats[c](cell)))))));
  drawTerms(byId("measures-terms"), about);
}

// --- truth --------------------------------------------------------------------------------------

function drawTruth() {
  const known = run().layers.map((content, l) => ({ content, layer: l + 1 })).filter(({ content }) => content.truth);
  byId("truth").hidden = known.length === 0;
  replace(byId("truth-body"), ...known.map(({ content, layer }) => truthOfLayer(content.truth, layer)));
}

function truthOfLayer(truth, layer) {
  const rows = truth.names
    .map((name, i) => ({ name, k: truth.order[i], mrsa: truth.distances[i], sad: truth.angles[i], rmse: truth.rmse?.[i], curve: truth.curves[i] }))
    .sort((a, b) => a.mrsa - b.mrsa);
  const table = el("table", {},
    el("thead", {}, el("tr", {}, ...["truth", "component"].map((h) => el("th", { scope: "col" }, h)),
      ...["MRSA", "SAD", ...(truth.rmse ? ["RMSE"] : [])].map((h) => el("th", { scope: "col", class: "number" }, h)))),
    el("tbody", {}, ...rows.map(({ name, k, mrsa, sad, rmse }) => el("tr", {},
      el("td", {}, name),
      el("td", {}, el("button", { type: "button", class: "plain", on: { click: () => visit(layer, k) } }, idOf(layer, k))),
      ...[mrsa, sad, ...(truth.rmse ? [rmse] : [])].map((v) => el("td", { class: "number" }, digits(v)))))));
  const curves = data.show !== "curves" ? null : el("div", { class: "overlays" }, ...rows.map(({ name, k, curve, mrsa }) =>
    el("figure", {},
      svg("svg", { width: 190, height: 96, role: "img", "aria-label": `${name}: fit and truth, MRSA ${digits(mrsa)}` },
        ...sparkline(scaledCurve(layer, k), 190, 96, ACCENT, curve)),
      el("figcaption", {}, `${title(layer, k)}, MRSA ${digits(mrsa)}`))));
  return el("div", { class: "truth-layer" },
    el("div", {}, el("h3", {}, `Layer ${layer}`), el("p", { class: "score" }, "mean MRSA ", el("b", {}, digits(truth.mean))), table),
    curves);
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
    ? "Each layer's components are grouped by the next. Lines show how much of a component belongs " +
      "to those below it (10 % or more; the wider, the more). Click a component, or use the arrow " +
      "keys and Enter."
    : "One layer of components. Click one, or use the arrow keys and Enter.";
  drawHeader();
  drawRunTabs();
  drawRanking();
  drawSide();
  drawGraph();
  drawDetails();
  drawComponents();
  drawErrors();
  drawMeasures();
  drawTruth();
  drawSettings();
  drawSectionLinks();
}

byId("same").hidden = data.kind !== "scene";
byId("same").querySelector("input").addEventListener("change", (event) => {
  shareScales(event.target.checked);
  drawSide();
  drawGraph();
  drawDetails();
  drawComponents();
});

state.k = layerOf(1).order[0];
drawRun();

// Several runs: their table, and their components side by side.


const sorting = { column: null, down: false };

function drawRanking() {
  if (!data.ranking) return;
  byId("ranking").hidden = false;
  const { columns, rows, about } = data.ranking;
  const numeric = columns.map((_, c) => rows.some((row) => typeof row[c] === "number"));
  const formats = columns.map((name, c) => (name === "sweeps" ? num : columnFormat(rows.map((row) => row[c]))));
  const shown = rows.slice();
  if (sorting.column !== null) {
    // missing values stay last whichever way the others run
    const order = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
    const words = (cell) => typeof cell === "string" && numeric[sorting.column]; // "diverged" is worst
    shown.sort((p, q) => {
      const [a, b] = [p[sorting.column], q[sorting.column]];
      if (a === null || b === null) return (a === null) - (b === null);
      if (words(a) || words(b)) return words(a) - words(b);
      return sorting.down ? order(b, a) : order(a, b);
    });
  }
  replace(byId("ranking-table"),
    el("thead", {}, el("tr", {}, ...columns.map((name, c) => rankingHeading(name, c, numeric[c])))),
    el("tbody", {}, ...shown.map((row) => {
      const index = data.runs.findIndex((r) => r.label === row[0]);
      return el("tr", { class: index === state.run ? "chosen" : null }, ...row.map((cell, c) =>
        el("td", { class: numeric[c] ? "number" : null },
          c === 0 && index >= 0 ? runButton(index) : formats[c](cell))));
    })));
  drawTerms(byId("ranking-terms"), about);
}

// What columns mean, each name once.
function drawTerms(host, about) {
  const terms = new Map(about.filter((pair) => pair));
  replace(host, ...[...terms].map(([name, meaning]) =>
    el("div", {}, el("dt", {}, name), el("dd", {}, ...subscripted(meaning)))));
}

function rankingHeading(name, c, isNumeric) {
  const on = sorting.column === c;
  const way = on ? (sorting.down ? "descending" : "ascending") : "none";
  const meaning = data.ranking.about[c]?.[1].replace(/[_{}]/g, "");
  return el("th", { scope: "col", class: isNumeric ? "number" : null, "aria-sort": way, title: meaning },
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
    type: "button", class: "side-cell", "aria-label": `${r.label}, ${idOf(layer, k)}`,
    on: { click: () => { chooseRun(index); visit(layer, k); } },
  },
  svg("svg", { width: size.w, height: size.h, "aria-hidden": true }, ...emblem(layer, k, 0, 0, size, r)),
  el("span", { class: "hint" }, idOf(layer, k)),
  i >= 0 ? el("span", { class: truth.distances[i] === best ? "hint best" : "hint" }, ` MRSA ${digits(truth.distances[i])}`) : null);
}

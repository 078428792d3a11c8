// Lines over axes, in SVG, with a cursor that reads them.

function linearTicks(lo, hi, about) {
  const rough = (hi - lo) / about;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= rough * 0.999);
  const ticks = [];
  for (let i = Math.ceil(lo / step - 1e-9); i * step <= hi + 1e-9 * step; i++) ticks.push(i * step);
  return ticks.map((t) => Number(t.toPrecision(12)));
}

function logTicks(lo, hi) {
  const [first, last] = [Math.floor(Math.log10(lo)), Math.ceil(Math.log10(hi))];
  const decades = Array.from({ length: last - first + 1 }, (_, i) => 10 ** (first + i));
  const inside = (ticks) => ticks.filter((t) => t >= lo * 0.999 && t <= hi * 1.001);
  // a short axis needs ticks within its decades, a long one only some of them
  if (inside(decades).length < 2) return inside(decades.flatMap((d) => [d, 2 * d, 3 * d, 5 * d]));
  if (inside(decades).length < 3) return inside(decades.flatMap((d) => [d, 2 * d, 5 * d]));
  const every = Math.ceil(decades.length / 6);
  return inside(decades.filter((_, i) => i % every === 0));
}

function extent(values) {
  let [lo, hi] = [Infinity, -Infinity];
  for (const v of values) {
    if (v === null) continue;
    if (v < lo) lo = v;
    if (v > hi) hi = v;
  }
  return lo <= hi ? [lo, hi] : [0, 1];
}

// An axis from values to pixels.
function axis(values, from, to, { log = false, zero = false, spacing = 40 } = {}) {
  let [lo, hi] = extent(log ? values.filter((v) => v > 0) : values);
  if (zero && lo > 0) lo = 0;
  if (log && lo > 0 && hi / lo >= 2) {
    const air = (hi / lo) ** 0.04;
    [lo, hi] = [lo / air, hi * air];
    const [a, b] = [Math.log10(lo), Math.log10(hi)];
    const at = (v) => (v > 0 ? from + ((Math.log10(v) - a) / (b - a)) * (to - from) : null);
    return Object.assign(at, { ticks: logTicks(lo, hi) });
  }
  const size = Math.abs(hi) || 1;
  if (hi - lo < 1e-6 * size) [lo, hi] = [lo - 0.1 * size, hi + 0.1 * size];
  else if (log) [lo, hi] = [lo - 0.05 * (hi - lo), hi + 0.05 * (hi - lo)]; // too short for logarithms
  const at = (v) => from + ((v - lo) / (hi - lo)) * (to - from);
  return Object.assign(at, { ticks: linearTicks(lo, hi, Math.max(2, Math.abs(to - from) / spacing)) });
}

// "M x y L x y ...", lifted at null values and between pieces.
function path(xs, ys, pieces = [[0, xs.length]]) {
  let text = "";
  for (const [start, stop] of pieces) {
    let down = false;
    for (let i = start; i < stop; i++) {
      if (ys[i] === null || xs[i] === null) {
        down = false;
        continue;
      }
      text += `${down ? "L" : "M"}${xs[i].toFixed(1)} ${ys[i].toFixed(1)}`;
      down = true;
    }
  }
  return text;
}

/* Draws lines into the host, and again whenever its width changes.
   series: [{label, x, y, color, dash, click, gaps (its line leaves out points of the others)}];
   options: title, formula, name (what it is, for screen readers), xLabel, yLabel, height, format,
   tickFormat, log, zero, integers (no ticks between them), ticks (names of the places along x),
   pieces, restAtEnd (show last values at rest). */
function lineChart(host, series, options) {
  const format = options.format ?? num;
  const tickFormat = options.tickFormat ?? format;
  const values = series.map(() => el("span", { class: "value" }));
  const where = el("span", { class: "where" });
  const entries = series.map((s, i) => {
    const name = s.click ? el("button", { type: "button", class: "plain", on: { click: s.click } }, s.label) : s.label;
    return el("span", { class: "entry" }, legendKey(s), name, values[i]);
  });
  const frame = el("div", { class: "plot" });
  replace(host,
    options.title ? el("h3", {}, options.title) : null,
    options.formula ? formula(options.formula) : null,
    el("div", { class: "legend" }, ...entries, where),
    frame);

  // The legend holds the values at x, or those at rest.
  function read(x) {
    const place = x === null ? "" : options.ticks?.[nearest(series[0].x, x)] ?? num(x, 5);
    where.textContent = x === null ? "" : `at ${options.xLabel} ${place}`;
    series.forEach((s, i) => {
      const rest = options.restAtEnd ? s.y.length - 1 : -1;
      const point = x === null ? rest : nearest(s.x, x);
      const known = !s.gaps || x === null || s.x[point] === x;
      values[i].textContent = point < 0 ? "" : known ? format(s.y[point]) : "–";
    });
  }

  fluid(frame, (width) => {
    const box = { top: 10, right: width - 20, bottom: (options.height ?? 220) - 40 };
    const Y = axis(series.flatMap((s) => s.y), box.bottom, box.top, options);
    box.left = 32 + 6.6 * Math.max(1, ...Y.ticks.map((tick) => tickFormat(tick).length));
    const X = axis(series.flatMap((s) => s.x), box.left, box.right, { spacing: 70 });
    const below = bandNames(options.ticks, (box.right - box.left) / series[0].x.length);
    const picture = svg("svg", { width, height: box.bottom + 22 + below.room, role: "img", tabindex: 0, "aria-label": options.name },
      ...axes(X, Y, box, tickFormat, { ...options, below, places: series[0].x }),
      ...series.flatMap((s) => line(s, X, Y, options.pieces)));
    addCursor(picture, series, X, box, read);
    replace(frame, picture);
    read(null);
  });
}

const legendKey = ({ color: stroke, dash }) =>
  svg("svg", { class: "key", width: 18, height: 8, "aria-hidden": true },
    svg("line", { x2: 18, y1: 4, y2: 4, stroke, "stroke-width": 2.2, "stroke-dasharray": dash ? "4 3" : null }));

// Names under an axis, turned where they are too long for their places; and their room below it.
function bandNames(names, place) {
  if (!names) return { names: null, room: 18 };
  const shown = names.map((name) => clip(name, 12));
  const longest = Math.max(...shown.map((name) => name.length));
  const turned = 6.8 * longest > place;
  return { names: shown, turned, room: 18 + (turned ? 6.4 * longest - 8 : 0) };
}

function axes(X, Y, { left, right, top, bottom }, format, { xLabel, yLabel, integers, below, places }) {
  const text = (name, x, y, anchor, words) =>
    svg("text", { class: name, x, y, "text-anchor": anchor }, words);
  const upright = svg("text", {
    class: "label",
    transform: `translate(11 ${(top + bottom) / 2}) rotate(-90)`,
    "text-anchor": "middle",
  }, yLabel);
  return [
    ...Y.ticks.flatMap((tick) => [
      svg("line", { class: "grid", x1: left, x2: right, y1: Y(tick), y2: Y(tick) }),
      text("tick", left - 8, Y(tick) + 4, "end", format(tick)),
    ]),
    ...(below.names ? places : X.ticks.filter((tick) => !integers || Number.isInteger(tick))).flatMap((tick, i) => [
      svg("line", { class: "axis", x1: X(tick), x2: X(tick), y1: bottom, y2: bottom + 4 }),
      below.turned
        ? svg("text", { class: "tick", "text-anchor": "end", transform: `translate(${X(tick) + 4} ${bottom + 8}) rotate(-90)` }, below.names[i])
        : text("tick", X(tick), bottom + 17, "middle", below.names ? below.names[i] : num(tick, 5)),
    ]),
    svg("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom }),
    text("label", (left + right) / 2, bottom + 17 + below.room, "middle", xLabel),
    upright,
  ];
}

function line({ x, y, color: stroke, dash }, X, Y, pieces) {
  const place = (values, at) => values.map((v) => (v === null ? null : at(v)));
  const [xs, ys] = [place(x, X), place(y, Y)];
  // a history of one row is a point
  if (xs.length === 1) return ys[0] === null ? [] : [svg("circle", { cx: xs[0], cy: ys[0], r: 3, fill: stroke })];
  return [svg("path", { class: "line", d: path(xs, ys, pieces), stroke, "stroke-dasharray": dash ? "5 4" : null })];
}

// A vertical rule that follows the pointer or the arrow keys, from point to point of the longest
// line; `read` gets its place, or null once it is gone.
function addCursor(picture, series, X, { top, bottom }, read) {
  const rule = svg("line", { class: "rule", y1: top, y2: bottom, visibility: "hidden" });
  const grid = series.reduce((most, s) => (s.x.length > most.length ? s.x : most), []);
  const places = grid.map(X);
  let cursor = null;
  picture.append(rule);

  function point(i) {
    cursor = i;
    rule.setAttribute("visibility", i === null ? "hidden" : "visible");
    if (i !== null) {
      rule.setAttribute("x1", places[i]);
      rule.setAttribute("x2", places[i]);
    }
    read(i === null ? null : grid[i]);
  }

  picture.addEventListener("pointermove", (event) => {
    point(nearest(places, event.clientX - picture.getBoundingClientRect().left));
  });
  picture.addEventListener("pointerleave", () => point(null));
  picture.addEventListener("blur", () => point(null));
  picture.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const from = cursor ?? (step > 0 ? -1 : grid.length);
    point(Math.min(Math.max(from + step, 0), grid.length - 1));
  });
}

// "W_l H_{l-1}" with real subscripts.
const subscripted = (text) =>
  text.split(/_(\{[^}]*\}|.)/).map((part, i) => (i % 2 ? el("sub", {}, part.replace(/[{}]/g, "")) : part));

const formula = (text) => el("p", { class: "formula" }, ...subscripted(text));

// Index of the value closest to x.
function nearest(values, x) {
  let best = 0;
  for (let i = 1; i < values.length; i++) {
    if (Math.abs(values[i] - x) < Math.abs(values[best] - x)) best = i;
  }
  return best;
}

// A curve without axes.
function sparkline(values, width, height, stroke = ACCENT, under = null) {
  const xs = data.axis.x;
  const all = under ? values.concat(under) : values;
  const X = axis(xs, 2, width - 2);
  const Y = axis(all, height - 3, 3, { zero: true });
  const draw = (y, look) => line({ x: xs, y, ...look }, X, Y, data.axis.pieces);
  return [...(under ? draw(under, { color: "#444", dash: true }) : []), ...draw(values, { color: stroke })];
}

// Horizontal bars [[name, value], ...], from zero; negative ones in another color.
function bars(entries, format = num) {
  const largest = Math.max(...entries.map(([, v]) => Math.abs(v ?? 0))) || 1;
  return el("ol", { class: "bars" },
    ...entries.map(([name, value]) => {
      const bar = el("span", { class: value < 0 ? "bar-fill negative" : "bar-fill" });
      bar.style.width = `${(100 * Math.abs(value ?? 0)) / largest}%`;
      return el("li", {},
        el("span", { class: "bar-name", title: name }, name),
        el("span", { class: "bar-track" }, bar),
        el("span", { class: "bar-value" }, format(value)));
    }));
}

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
  if (log && hi / lo >= 2) {
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

/* Draws lines into the host.
   series: [{label, x, y, color, dash, legend}], label and legend are optional;
   options: xLabel, yLabel, log, zero, pieces, height, format, name (what it is, for readers). */
function lineChart(host, series, options) {
  const format = options.format ?? num;
  const values = series.map((s) => el("span", { class: "value" }));
  const where = el("span", { class: "where" });
  const legend = el("div", { class: "legend" },
    ...series.map((s, i) => {
      const key = svg("svg", { class: "key", width: 18, height: 8, "aria-hidden": true },
        svg("line", { x1: 0, x2: 18, y1: 4, y2: 4, stroke: s.color, "stroke-width": 2.2, "stroke-dasharray": s.dash ? "4 3" : null }));
      return el("span", { class: "entry" }, key, s.label, values[i]);
    }), where);
  const frame = el("div", { class: "plot" });
  replace(host, options.title ? el("h3", {}, options.title) : null, options.formula ? formula(options.formula) : null, legend, frame);

  function read(points) {
    series.forEach((s, i) => {
      const p = points ? points[i] : options.restAtEnd ? s.y.length - 1 : -1;
      values[i].textContent = p >= 0 ? format(s.y[p]) : "";
    });
  }

  fluid(frame, (width) => {
    const height = options.height ?? 220;
    const margin = { left: 0, right: 20, top: 10, bottom: 40 };
    const right = width - margin.right;
    const bottom = height - margin.bottom;
    const Y = axis(series.flatMap((s) => s.y), bottom, margin.top, options);
    margin.left = 32 + 6.6 * Math.max(1, ...Y.ticks.map((tick) => format(tick).length));
    const X = axis(series.flatMap((s) => s.x), margin.left, right, { spacing: 70 });
    const picture = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", tabindex: 0, "aria-label": options.name });
    for (const tick of Y.ticks) {
      picture.append(
        svg("line", { class: "grid", x1: margin.left, x2: right, y1: Y(tick), y2: Y(tick) }),
        svg("text", { class: "tick", x: margin.left - 8, y: Y(tick) + 4, "text-anchor": "end" }, format(tick)));
    }
    for (const tick of X.ticks.filter((t) => !options.integers || Number.isInteger(t))) {
      picture.append(
        svg("line", { class: "axis", x1: X(tick), x2: X(tick), y1: bottom, y2: bottom + 4 }),
        svg("text", { class: "tick", x: X(tick), y: bottom + 17, "text-anchor": "middle" }, num(tick, 5)));
    }
    picture.append(
      svg("line", { class: "axis", x1: margin.left, x2: right, y1: bottom, y2: bottom }),
      svg("text", { class: "label", x: (margin.left + right) / 2, y: height - 5, "text-anchor": "middle" }, options.xLabel),
      svg("text", { class: "label", transform: `translate(11 ${(margin.top + bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, options.yLabel ?? ""));
    for (const s of series) {
      const [xs, ys] = [s.x.map((v) => (v === null ? null : X(v))), s.y.map((v) => (v === null ? null : Y(v)))];
      picture.append(svg("path", { class: "line", d: path(xs, ys, options.pieces), stroke: s.color, "stroke-dasharray": s.dash ? "5 4" : null }));
      // a history of one row is a point
      if (s.x.length === 1 && ys[0] !== null) picture.append(svg("circle", { cx: xs[0], cy: ys[0], r: 3, fill: s.color }));
    }
    const rule = svg("line", { class: "rule", y1: margin.top, y2: bottom, visibility: "hidden" });
    picture.append(rule);
    let cursor = null;
    const grid = series.reduce((most, s) => (s.x.length > most.length ? s.x : most), []);

    function point(i) {
      cursor = i;
      rule.setAttribute("visibility", i === null ? "hidden" : "visible");
      if (i === null) {
        where.textContent = "";
        read(null);
        return;
      }
      const x = grid[i];
      rule.setAttribute("x1", X(x));
      rule.setAttribute("x2", X(x));
      where.textContent = `at ${options.xLabel} ${num(x, 5)}`;
      read(series.map((s) => nearest(s.x, x)));
    }

    picture.addEventListener("pointermove", (event) => {
      const box = picture.getBoundingClientRect();
      const at = (event.clientX - box.left) * (width / box.width);
      point(nearest(grid.map(X), at));
    });
    picture.addEventListener("pointerleave", () => point(null));
    picture.addEventListener("blur", () => point(null));
    picture.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      point(Math.min(Math.max((cursor ?? (step > 0 ? -1 : grid.length)) + step, 0), grid.length - 1));
    });
    replace(frame, picture);
    read(null);
  });
}

// "W_l H_{l-1}" with real subscripts.
function formula(text) {
  const parts = text.split(/_(\{[^}]*\}|.)/);
  return el("p", { class: "formula" },
    ...parts.map((part, i) => (i % 2 ? el("sub", {}, part.replace(/[{}]/g, "")) : part)));
}

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
  const line = (ys, attributes) =>
    svg("path", { class: "line", d: path(xs.map(X), ys.map((v) => (v === null ? null : Y(v))), data.axis.pieces), ...attributes });
  return [under ? line(under, { stroke: "#444", "stroke-dasharray": "4 3" }) : null, line(values, { stroke })].filter(Boolean);
}

// Horizontal bars [[name, value], ...], from zero; negative ones in another colour.
function bars(entries) {
  const largest = Math.max(...entries.map(([, v]) => Math.abs(v ?? 0))) || 1;
  return el("ol", { class: "bars" },
    ...entries.map(([name, value]) => {
      const bar = el("span", { class: value < 0 ? "bar-fill negative" : "bar-fill" });
      bar.style.width = `${(100 * Math.abs(value ?? 0)) / largest}%`;
      return el("li", {},
        el("span", { class: "bar-name", title: name }, name),
        el("span", { class: "bar-track" }, bar),
        el("span", { class: "bar-value" }, num(value)));
    }));
}

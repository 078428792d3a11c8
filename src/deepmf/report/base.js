// What everything else stands on: data, choice, elements, numbers, colors.

const data = JSON.parse(document.getElementById("data").textContent);

const state = {
  run: 0,
  layer: 1, // the chosen component: its layer, from 1, and its number in the layer, from 0
  k: 0,
  lit: false, // dim the rest of the graph only once the reader has chosen something
  tab: 1, // the layer of the components' section
  same: false, // whether the maps of a layer share one color scale
};

const run = () => data.runs[state.run];
const layerOf = (layer) => run().layers[layer - 1];
const byId = (id) => document.getElementById(id);

// --- elements -----------------------------------------------------------------------------------
// Names and texts come from files nobody has checked: they reach the page as text nodes and
// attributes only, never as markup.

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
    } else if (value !== null && value !== undefined && value !== false) {
      node.setAttribute(name, value === true ? "" : value);
    }
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

const el = (tag, attributes = {}, ...children) =>
  fill(document.createElement(tag), attributes, children);

const svg = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

function replace(host, ...children) {
  host.replaceChildren(...children.filter((child) => child !== null && child !== undefined));
}

// Draws into the host, and again whenever its width changes.
const watchers = new WeakMap();
function fluid(host, draw) {
  watchers.get(host)?.disconnect();
  let width = 0;
  const observer = new ResizeObserver(() => {
    if (host.clientWidth > 0 && host.clientWidth !== width) {
      width = host.clientWidth;
      draw(width);
    }
  });
  width = host.clientWidth;
  if (width > 0) draw(width);
  observer.observe(host);
  watchers.set(host, observer);
}

// A row of buttons of which one is on; arrow keys move along it.
function tabs(host, labels, chosen, choose) {
  const buttons = labels.map((label, i) =>
    el("button", {
      type: "button",
      role: "tab",
      "aria-selected": String(i === chosen),
      tabindex: i === chosen ? 0 : -1,
      on: {
        click: () => choose(i),
        keydown: (event) => {
          const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
          if (!step) return;
          event.preventDefault();
          const next = (i + step + labels.length) % labels.length;
          choose(next);
          host.children[next].focus();
        },
      },
    }, label));
  replace(host, ...buttons);
}

// --- numbers ------------------------------------------------------------------------------------

function num(value, digits = 3) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number") return value;
  if (value === 0) return "0";
  const size = Math.abs(value);
  const text =
    size >= 1e6 || size < 1e-3
      ? value.toExponential(digits - 1).replace(/\.?0+e/, "e").replace("e+", "e")
      : String(Number(value.toPrecision(Math.max(digits, Math.ceil(Math.log10(size) + 1e-9)))));
  return text.replace(/-/g, "−");
}

// Numbers side by side have as many decimals: 1.90 and 12.34, 340; 0.00123.
function digits(value) {
  const size = Math.abs(value);
  if (typeof value !== "number" || size < 0.1) return num(value);
  return size < 100 ? value.toFixed(2).replace("-", "−") : num(value);
}

// How to write the numbers of a column: two decimals, more where all are small.
function columnFormat(values) {
  const largest = Math.max(0, ...values.filter((v) => typeof v === "number").map(Math.abs));
  if (largest === 0 || largest >= 1e4 || largest < 1e-3) return num;
  const decimals = Math.max(largest < 1000 ? 2 : 0, 2 - Math.floor(Math.log10(largest)));
  return (v) => (typeof v === "number" ? v.toFixed(decimals).replace("-", "−") : num(v));
}

const percent = (share) => (share === null ? "diverged" : `${digits(100 * share)} %`);
const percentTick = (share) => `${num(100 * share)} %`;
const whole = (share) => `${Math.round(100 * share)} %`;

const idOf = (layer, k) => `L${layer}-${k + 1}`;
const title = (layer, k) => layerOf(layer).names[k];

function clip(text, most) {
  return text.length <= most ? text : `${text.slice(0, Math.max(1, most - 1))}…`;
}

// --- colors ------------------------------------------------------------------------------------

const ACCENT = "#0072b2";
// Okabe and Ito's palette, told apart by color-blind readers
const COLORS = [ACCENT, "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#333333", "#8a7f00"];
const color = (i) => COLORS[i % COLORS.length];

const SCALES = {
  amount: ["#440154", "#46327e", "#365c8d", "#277f8e", "#1fa187", "#4ac16d", "#a0da39", "#fde725"],
  signed: ["#7f3b08", "#c5690f", "#fdc57f", "#f7f7f5", "#b9b8d8", "#6a5aa3", "#2d004b"],
  residual: ["#fffaf2", "#fddcae", "#fca55d", "#e0601f", "#a83703", "#5c1a02"],
  ink: ["#ffffff", "#c9d3dd", "#7f93a8", "#3d5570", "#10243e"],
};

const channels = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));

function ramp(anchors, t) {
  const place = Math.min(Math.max(t, 0), 1) * (anchors.length - 1);
  const low = Math.min(Math.floor(place), anchors.length - 2);
  const [a, b] = [channels(anchors[low]), channels(anchors[low + 1])];
  return a.map((c, i) => Math.round(c + (place - low) * (b[i] - c)));
}

const gradient = (anchors) => `linear-gradient(to right, ${anchors.join(", ")})`;

// --- maps ---------------------------------------------------------------------------------------

const NO_DATA = 255;

function bytes(map) {
  map.bytes ??= Uint8Array.from(atob(map.codes), (c) => c.charCodeAt(0));
  return map.bytes;
}

function valueAt(map, i) {
  const code = bytes(map)[i];
  return code === NO_DATA ? null : map.lo + (code * (map.hi - map.lo)) / (NO_DATA - 1);
}

// Which colors a map takes, and the values at their ends: its own, or those of all in its layer.
// Values of both signs get a scale with zero in its middle.
function scaleOf(map, kind) {
  const { lo, hi, top } = map.shared ?? map;
  if (lo < -0.02 * Math.abs(hi)) {
    const size = Math.max(-lo, hi);
    return { anchors: SCALES.signed, from: -size, to: size };
  }
  const anchors = kind === "residual" ? SCALES.residual : data.kind === "pictures" ? SCALES.ink : SCALES.amount;
  return { anchors, from: lo, to: top };
}

// One color scale for all maps of a layer, or one for each.
function shareScales(same) {
  state.same = same;
  for (const { maps } of data.runs.flatMap((r) => r.layers)) {
    const most = (key, of) => of(...maps.map((map) => map[key] ?? 0));
    const shared = same ? { lo: most("lo", Math.min), hi: most("hi", Math.max), top: most("top", Math.max) } : null;
    for (const map of maps) Object.assign(map, { shared, canvas: null, url: null });
  }
}

// The map at one canvas pixel per value; drawn once, then scaled by whoever shows it.
function painted(map, kind = "amount") {
  if (map.canvas) return map.canvas;
  const { rows, cols } = data.picture;
  const canvas = el("canvas", { width: cols, height: rows });
  const context = canvas.getContext("2d");
  const image = context.createImageData(cols, rows);
  const { anchors, from, to } = scaleOf(map, kind);
  const span = to - from || 1;
  const table = Array.from({ length: NO_DATA }, (_, code) =>
    ramp(anchors, (map.lo + (code * (map.hi - map.lo)) / (NO_DATA - 1) - from) / span));
  bytes(map).forEach((code, i) => {
    // no data: a light diagonal hatching
    const hatch = (Math.floor(i / cols) + (i % cols)) % 4 < 2 ? 226 : 240;
    image.data.set(code === NO_DATA ? [hatch, hatch, hatch] : table[code], 4 * i);
    image.data[4 * i + 3] = 255;
  });
  context.putImageData(image, 0, 0);
  map.canvas = canvas;
  return canvas;
}

// A picture in true color, three bytes a pixel; `like` is a map that tells where there are data.
function paintedColor(color, like) {
  if (color.canvas) return color.canvas;
  color.canvas = el("canvas", { width: painted(like).width, height: painted(like).height });
  const context = color.canvas.getContext("2d");
  context.drawImage(painted(like), 0, 0);
  const image = context.getImageData(0, 0, color.canvas.width, color.canvas.height);
  const rgb = bytes(color);
  bytes(like).forEach((code, i) => {
    if (code !== NO_DATA) image.data.set(rgb.subarray(3 * i, 3 * i + 3), 4 * i);
  });
  context.putImageData(image, 0, 0);
  return color.canvas;
}

function pictureUrl(map) {
  map.url ??= painted(map).toDataURL();
  return map.url;
}

// Colors end at the 99th percentile: the largest value may lie beyond the bar's end.
function colorBar(map, kind = "amount", format = num) {
  const { anchors, from, to } = scaleOf(map, kind);
  const strip = el("span", { class: "strip" });
  strip.style.background = gradient(anchors);
  return el("div", { class: "colorbar" },
    el("span", {}, format(from)), strip, el("span", {}, format(to)),
    el("span", { class: "largest" }, `max ${format(map.hi)}`));
}

// How a map's values are written.
const amountOf = (layer) => (layerOf(layer).fractions ? fraction : num);
const fraction = (value) => (value === null ? "–" : value.toFixed(2));

// --- what is linked to what ---------------------------------------------------------------------

const SMALLEST_LINK = 0.1; // shares below this are not drawn, as in the paper

// Links of a component: `up` to the finer ones it is made of, `down` to the coarser it is part of.
function relatives(layer, k) {
  const list = (shares, l) =>
    shares
      .map((share, i) => ({ layer: l, k: i, share }))
      .filter((link) => link.share >= SMALLEST_LINK)
      .sort((a, b) => b.share - a.share);
  const made = layer > 1 ? layerOf(layer).links[k] : [];
  const part = layer < run().layers.length ? layerOf(layer + 1).links.map((row) => row[k]) : [];
  return { up: list(made, layer - 1), down: list(part, layer + 1) };
}

// The true component that a component is paired with, if any.
function truthOf(layer, k) {
  const truth = layerOf(layer).truth;
  const i = truth ? truth.order.indexOf(k) : -1;
  return i < 0 ? null : { name: truth.names[i], mrsa: truth.distances[i], curve: truth.curves[i] };
}

// "MRSA 3.20" of a component that has a true one beside it.
function mrsaOf(layer, k) {
  const truth = truthOf(layer, k);
  return truth ? `MRSA ${digits(truth.mrsa)}` : layerOf(layer).truth ? "no true component" : "";
}

const scaledCurve = (layer, k) => {
  const { curves, means } = layerOf(layer);
  return curves[k].map((v) => (v === null ? null : v / (means[k] || 1)));
};

// Maps of a scene, side by side under one view: what zooms, moves or points at one does so at all.

const view = { zoom: 1, x: 0, y: 0, pixel: null }; // x, y: the center's offset, in pixels of the scene
const LARGEST_ZOOM = 64;

let panels = []; // {canvas, map, kind, name} of the maps on show
let showPixel = () => {};

function resetView() {
  Object.assign(view, { zoom: 1, x: 0, y: 0 });
  drawMaps();
}

// Scale and corner that place the scene in a canvas of w x h.
function placement(w, h) {
  const { rows, cols } = data.picture;
  const scale = Math.min(w / cols, h / rows) * view.zoom;
  return { scale, left: w / 2 - (cols / 2 + view.x) * scale, top: h / 2 - (rows / 2 + view.y) * scale };
}

function limitView() {
  const { rows, cols } = data.picture;
  view.zoom = Math.min(Math.max(view.zoom, 1), LARGEST_ZOOM);
  const slack = (side) => (side / 2) * (1 - 1 / view.zoom);
  view.x = Math.min(Math.max(view.x, -slack(cols)), slack(cols));
  view.y = Math.min(Math.max(view.y, -slack(rows)), slack(rows));
}

// Zoom that keeps the scene's point under (px, py) where it is.
function zoomAt(factor, canvas, px, py) {
  const { clientWidth: w, clientHeight: h } = canvas;
  const before = placement(w, h);
  const [sx, sy] = [(px - before.left) / before.scale, (py - before.top) / before.scale];
  view.zoom = Math.min(Math.max(view.zoom * factor, 1), LARGEST_ZOOM);
  const after = placement(w, h);
  view.x += sx - (px - after.left) / after.scale;
  view.y += sy - (py - after.top) / after.scale;
  limitView();
  drawMaps();
}

function drawMaps() {
  for (const panel of panels) drawMap(panel);
}

const paint = (map, kind) =>
  kind === "color" ? paintedColor(map, layerOf(1).maps[0]) : painted(map, kind);

function drawMap({ canvas, map, kind }) {
  const ratio = window.devicePixelRatio || 1;
  const [w, h] = [canvas.clientWidth, canvas.clientHeight];
  if (!w) return;
  if (canvas.width !== Math.round(w * ratio)) canvas.width = Math.round(w * ratio);
  if (canvas.height !== Math.round(h * ratio)) canvas.height = Math.round(h * ratio);
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.imageSmoothingEnabled = false;
  context.clearRect(0, 0, w, h);
  const { rows, cols } = data.picture;
  const { scale, left, top } = placement(w, h);
  context.drawImage(paint(map, kind), left, top, cols * scale, rows * scale);
  if (view.pixel) drawCross(context, view.pixel, scale, left, top, w, h);
}

// White under black: visible on every color.
function drawCross(context, [row, col], scale, left, top, w, h) {
  const [x, y] = [left + (col + 0.5) * scale, top + (row + 0.5) * scale];
  const half = Math.max(scale / 2, 4);
  for (const [style, width] of [["rgba(255,255,255,.85)", 3], ["rgba(0,0,0,.85)", 1]]) {
    context.strokeStyle = style;
    context.lineWidth = width;
    context.beginPath();
    context.moveTo(0, y); context.lineTo(x - half, y);
    context.moveTo(x + half, y); context.lineTo(w, y);
    context.moveTo(x, 0); context.lineTo(x, y - half);
    context.moveTo(x, y + half); context.lineTo(x, h);
    context.rect(x - half, y - half, 2 * half, 2 * half);
    context.stroke();
  }
}

function pixelAt(canvas, px, py) {
  const { scale, left, top } = placement(canvas.clientWidth, canvas.clientHeight);
  const [row, col] = [Math.floor((py - top) / scale), Math.floor((px - left) / scale)];
  const { rows, cols } = data.picture;
  return row >= 0 && row < rows && col >= 0 && col < cols ? [row, col] : null;
}

function pointAt(pixel) {
  view.pixel = pixel;
  drawMaps();
  showPixel(pixel);
}

// Scrolling the page over a map must not turn into zooming: a wheel that has just scrolled goes on
// scrolling.
let lastScroll = -Infinity;
window.addEventListener("scroll", () => { lastScroll = performance.now(); }, { passive: true });

function mapCanvas(map, kind, label) {
  const canvas = el("canvas", { class: "map", tabindex: 0, role: "img", "aria-label": label });
  const { rows, cols } = data.picture;
  canvas.style.aspectRatio = String(Math.min(Math.max(cols / rows, 0.5), 3));
  let grip = null;
  canvas.addEventListener("wheel", (event) => {
    const factor = Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0018));
    if (performance.now() - lastScroll < 250 || (view.zoom === 1 && factor <= 1)) return;
    event.preventDefault();
    zoomAt(factor, canvas, event.offsetX, event.offsetY);
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    grip = [event.offsetX, event.offsetY];
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (grip && event.buttons) {
      const { scale } = placement(canvas.clientWidth, canvas.clientHeight);
      view.x -= (event.offsetX - grip[0]) / scale;
      view.y -= (event.offsetY - grip[1]) / scale;
      grip = [event.offsetX, event.offsetY];
      limitView();
    }
    pointAt(pixelAt(canvas, event.offsetX, event.offsetY));
  });
  canvas.addEventListener("pointerup", () => { grip = null; });
  canvas.addEventListener("keydown", (event) => mapKey(event, canvas));
  return canvas;
}

function mapKey(event, canvas) {
  const { rows, cols } = data.picture;
  const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
  const [w, h] = [canvas.clientWidth, canvas.clientHeight];
  if (step) {
    const [row, col] = view.pixel ?? [Math.floor(rows / 2), Math.floor(cols / 2)];
    pointAt([
      Math.min(Math.max(row + step[0], 0), rows - 1),
      Math.min(Math.max(col + step[1], 0), cols - 1),
    ]);
  } else if (event.key === "+" || event.key === "=") zoomAt(1.5, canvas, w / 2, h / 2);
  else if (event.key === "-") zoomAt(1 / 1.5, canvas, w / 2, h / 2);
  else if (event.key === "0") resetView();
  else return;
  event.preventDefault();
}

function drawMapSection(layer) {
  const content = layerOf(layer);
  const grid = el("div", { class: "maps" });
  panels = [];
  const add = (map, kind, name, said, onClick) => {
    const canvas = mapCanvas(map, kind, `Map of ${name}`);
    panels.push({ canvas, map, kind, name });
    const heading = onClick
      ? el("button", { type: "button", class: "plain", title: name, on: { click: onClick } }, name)
      : el("span", {}, name);
    const format = { amount: amountOf(layer), residual: percent }[kind];
    const scale = kind === "color" ? el("div", { class: "colorbar" }, `as fitted at ${map.bands}`) : colorBar(map, kind, format);
    grid.append(el("figure", {}, el("figcaption", {}, heading, el("div", { class: "hint" }, said)), canvas, scale));
  };
  if (run().color) add(run().color, "color", "True color", "of the fit");
  content.order.forEach((k) => add(content.maps[k], "amount", title(layer, k), mrsaOf(layer, k), () => visit(layer, k)));
  if (run().residual) add(run().residual, "residual", "Residual", "of layer 1");
  const readout = el("aside", { class: "readout", "aria-live": "polite" });
  showPixel = (pixel) => replace(readout, ...pixelReadout(pixel));
  replace(byId("components-body"), el("div", { class: "map-room" }, grid, readout));
  const first = panels[0].canvas;
  const center = () => [first, first.clientWidth / 2, first.clientHeight / 2];
  const button = (label, words, act) =>
    el("button", { type: "button", "aria-label": words, title: words, on: { click: act } }, label);
  replace(byId("zoom"),
    button("−", "Zoom out", () => zoomAt(1 / 1.5, ...center())),
    button("+", "Zoom in", () => zoomAt(1.5, ...center())),
    button("Reset", "Reset the view", resetView));
  byId("zoom").hidden = false;
  showPixel(view.pixel);
  fluid(grid, drawMaps);
}

// "row 12, column 40", with the file's own coordinates where it has them.
function pixelName([row, col]) {
  const { block, x, y, full } = data.picture;
  const span = (i, side) =>
    block === 1 ? `${i}` : `${i * block}–${Math.min((i + 1) * block, side) - 1}`;
  const place = `row ${span(row, full[0])}, column ${span(col, full[1])}`;
  return x && y ? `${place} (y ${num(y[row], 8)}, x ${num(x[col], 8)})` : place;
}

function pixelReadout(pixel) {
  if (!pixel) {
    return [
      el("h3", {}, "A pixel"),
      el("p", { class: "hint" },
        "Point at a map to read all of them there. Wheel or + and − zoom, dragging moves, ",
        "arrow keys step from pixel to pixel."),
    ];
  }
  const index = pixel[0] * data.picture.cols + pixel[1];
  const parts = panels.filter((p) => p.kind === "amount").map((p) => [p.name, valueAt(p.map, index)]);
  const rest = panels.find((p) => p.kind === "residual");
  const residual = rest ? valueAt(rest.map, index) : null;
  return [
    el("h3", {}, "A pixel"),
    el("p", { class: "place" }, pixelName(pixel)),
    parts.every(([, v]) => v === null) ? el("p", { class: "hint" }, "no data") : bars(parts, amountOf(state.tab)),
    residual === null ? null : el("p", { class: "residual" }, `residual ${percent(residual)}`),
  ];
}

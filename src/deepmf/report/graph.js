// The layer graph: components as nodes, first layer on top, shares as lines.

const WIDE = 12; // a layer of more components than this gets the page's whole width

const CROWD = 24; // a layer of more word lists than this has them written upwards

const widest = () => Math.max(...run().ranks);
const holdsWords = () => data.kind === "table" && data.show === "bars";

// Size of a layer's nodes: as large as fits, within limits; a crowd of nodes scrolls instead.
function nodeSize(count, width) {
  const limits = holdsWords() ? [88, 132] : data.kind === "table" ? [64, 132] : [20, 132];
  const gap = count <= WIDE ? 16 : holdsWords() ? 12 : 5;
  const side = Math.min(Math.max(width / count - gap, limits[0]), limits[1]);
  if (holdsWords()) return count > CROWD ? { w: 32, h: 104, gap: 10, upright: true } : { w: side, h: 66, gap };
  if (data.kind === "table") return { w: side, h: side * 0.6, gap };
  return { ...fitted(side), gap };
}

// Width and height of a picture whose longer side is given.
function fitted(side) {
  const ratio = Math.min(Math.max(data.picture.rows / data.picture.cols, 0.4), 2.5);
  return ratio > 1 ? { w: side / ratio, h: side } : { w: side, h: side * ratio };
}

// Centers of the nodes: halfway between even spacing and the mean place of what each node is made
// of (a crowd just evenly), then pushed apart in the layer's order.
function nodeCenters(width) {
  const centers = [];
  run().layers.forEach((layer, l) => {
    const { order, links, names } = layer;
    const size = nodeSize(names.length, width);
    const room = size.w + size.gap;
    const wanted = order.map((k, place) => {
      const even = (width * (place + 0.5)) / order.length;
      if (l === 0 || order.length > WIDE) return even;
      const total = links[k].reduce((sum, share) => sum + share, 0);
      const mean = links[k].reduce((sum, share, j) => sum + share * centers[l - 1][j], 0);
      return total > 0 ? (even + mean / total) / 2 : even;
    });
    for (let i = 1; i < wanted.length; i++) wanted[i] = Math.max(wanted[i], wanted[i - 1] + room);
    let limit = width - room / 2;
    for (let i = wanted.length - 1; i >= 0; i--, limit -= room) wanted[i] = Math.min(wanted[i], limit);
    centers.push([]);
    order.forEach((k, place) => { centers[l][k] = Math.max(wanted[place], room * (place + 0.5)); });
  });
  return centers;
}

function drawGraph() {
  const host = byId("graph");
  byId("atlas").classList.toggle("wide", widest() > WIDE);
  fluid(host, (visible) => {
    const sizes = run().ranks.map((r) => nodeSize(r, visible));
    const width = Math.max(visible, ...sizes.map((s, l) => run().ranks[l] * (s.w + s.gap)));
    const centers = nodeCenters(width);
    const space = run().layers.length > 1 ? 96 : 0; // room for the links
    const tops = [];
    let y = 8;
    sizes.forEach((size) => {
      tops.push(y);
      y += size.h + 20 + space;
    });
    const height = y - space + 6;
    const picture = svg("svg", { width, height, role: "group", "aria-label": "Layer graph" });
    for (let layer = 2; layer <= sizes.length; layer++) picture.append(...linkLines(layer, centers, tops, sizes));
    run().layers.forEach((layer, l) => {
      layer.order.forEach((k) => picture.append(graphNode(l + 1, k, centers[l][k], tops[l], sizes[l])));
    });
    replace(host, picture);
    replace(byId("gutter"), ...sizes.map((size, l) => {
      const label = el("div", { class: "layer-label" }, el("b", {}, `Layer ${l + 1}`), `rank ${run().ranks[l]}`);
      label.style.top = `${tops[l]}px`;
      label.style.height = `${size.h}px`;
      return label;
    }));
    light();
  });
}

function linkLines(layer, centers, tops, sizes) {
  const from = tops[layer - 2] + sizes[layer - 2].h + 18;
  const to = tops[layer - 1] - 3;
  const thickest = widest() > WIDE ? 8 : 16;
  const lines = [];
  const labels = [];
  layerOf(layer).links.forEach((shares, i) => shares.forEach((share, j) => {
    if (share < SMALLEST_LINK) return;
    const [a, b, middle] = [centers[layer - 2][j], centers[layer - 1][i], (from + to) / 2];
    lines.push(svg("path", {
      class: "link",
      d: `M${a} ${from}C${a} ${middle} ${b} ${middle} ${b} ${to}`,
      "stroke-width": thickest * share,
      "data-from": `${layer - 1}/${j}`,
      "data-to": `${layer}/${i}`,
    }, svg("title", {}, `${title(layer - 1, j)} → ${title(layer, i)}: ${whole(share)}`)));
    labels.push(shareLabel(share, a, from + 15, `${layer}/${i}`), shareLabel(share, b, to - 7, `${layer - 1}/${j}`));
  }));
  return [...lines, ...labels];
}

// A link's share in words, at its far end: seen while the node at the other end is chosen.
const shareLabel = (share, x, y, of) =>
  svg("text", { class: "share", x, y, "text-anchor": "middle", "data-of": of }, `${Math.round(100 * share)}%`);

// What stands for a component: its picture, its curve or its first words.
function emblem(layer, k, x, y, size, r = run()) {
  const content = r.layers[layer - 1];
  if (content.maps) {
    return [svg("image", { href: pictureUrl(content.maps[k]), x, y, width: size.w, height: size.h, preserveAspectRatio: "none" })];
  }
  if (content.curves) {
    return [svg("g", { transform: `translate(${x} ${y})` }, ...sparkline(content.curves[k], size.w, size.h))];
  }
  if (size.upright) {
    return content.top[k].slice(0, 2).map(([word], i) =>
      svg("text", { class: "word", transform: `translate(${x + 13 + 13.5 * i} ${y + size.h - 5}) rotate(-90)` }, clip(word, 15)));
  }
  return content.top[k].slice(0, 4).map(([word], i) =>
    svg("text", { class: "word", x: x + 7, y: y + 15 + 14.5 * i }, clip(word, Math.floor((size.w - 12) / 6))));
}

function graphNode(layer, k, center, top, size) {
  const { up, down } = relatives(layer, k);
  const kin = (links, words) =>
    links.length ? `; ${words} ${links.map((r) => `${title(r.layer, r.k)} ${whole(r.share)}`).join(", ")}` : "";
  const x = center - size.w / 2;
  const room = Math.floor((size.w + size.gap) / 6.3);
  return svg("g", {
    class: "node",
    role: "button",
    tabindex: -1,
    "data-node": `${layer}/${k}`,
    "aria-label": `${title(layer, k)}, layer ${layer}${kin(up, "made of")}${kin(down, "part of")}`,
    on: {
      click: () => choose(layer, k),
      keydown: (event) => nodeKey(event, layer, k),
    },
  },
  svg("title", {}, title(layer, k)),
  svg("rect", { class: "card", x: x - 3, y: top - 3, width: size.w + 6, height: size.h + 6, rx: 4 }),
  ...emblem(layer, k, x, top, size),
  svg("text", { class: "name", x: center, y: top + size.h + 16, "text-anchor": "middle" }, clip(layerOf(layer).names[k], room)));
}

// Scrolls the graph, and not the page, until the node is in sight.
function bringIntoSight(layer, k) {
  const host = byId("graph").getBoundingClientRect();
  const node = nodeElement(layer, k).getBoundingClientRect();
  if (node.left < host.left || node.right > host.right) {
    byId("graph").scrollLeft += (node.left + node.right - host.left - host.right) / 2;
  }
}

const nodeElement = (layer, k) => byId("graph").querySelector(`[data-node="${layer}/${k}"]`);

// Left and right along a layer, up and down to the strongest relative.
function nodeKey(event, layer, k) {
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    choose(layer, k);
    return;
  }
  const { order } = layerOf(layer);
  const place = order.indexOf(k);
  const { up, down } = relatives(layer, k);
  const next = {
    ArrowLeft: place > 0 ? { layer, k: order[place - 1] } : null,
    ArrowRight: place < order.length - 1 ? { layer, k: order[place + 1] } : null,
    ArrowUp: up[0],
    ArrowDown: down[0],
  }[event.key];
  if (next) {
    event.preventDefault();
    nodeElement(next.layer, next.k).focus({ preventScroll: true });
    bringIntoSight(next.layer, next.k);
  }
}

// The chosen component stands out with its links and what they lead to.
function light() {
  const host = byId("graph");
  const chosen = `${state.layer}/${state.k}`;
  const near = new Set([chosen]);
  const { up, down } = relatives(state.layer, state.k);
  for (const link of up.concat(down)) near.add(`${link.layer}/${link.k}`);
  host.classList.toggle("lit", state.lit);
  for (const node of host.querySelectorAll(".node")) {
    const id = node.dataset.node;
    node.classList.toggle("chosen", id === chosen);
    node.classList.toggle("near", near.has(id));
    node.setAttribute("aria-pressed", String(id === chosen));
    node.setAttribute("tabindex", id === chosen ? 0 : -1);
  }
  for (const link of host.querySelectorAll(".link")) {
    const { from, to } = link.dataset;
    link.classList.toggle("near", from === chosen || to === chosen);
  }
  for (const label of host.querySelectorAll(".share")) label.classList.toggle("near", label.dataset.of === chosen);
}

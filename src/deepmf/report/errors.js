// Error curves: of one run by layer, or of several runs together.

let clock = "sweep"; // or "time"

const ERROR_KINDS = [
  ["data", "Error of the data", "‖X − W_l H_l ⋯ H_1‖ / ‖X‖"],
  ["layer", "Error of each layer", "‖W_{l−1} − W_l H_l‖ / ‖W_{l−1} at the start‖, with W_0 = X"],
];

const DEVIANCE_KINDS = [
  ["data", "Unexplained of the data", "share of the deviance left, or of the squares for squared errors"],
  ["layer", "Unexplained of each layer", "of the components or codes that it fits, at the start"],
];

const errorKinds = () => (data.deviance ? DEVIANCE_KINDS : ERROR_KINDS);

// A line of errors; of deviances, through the sweeps after which they were measured.
function errorLine(r, key, l, look) {
  const [x, y] = [r.history[clock], r.history[key][l]];
  if (!r.deviance || !y) return { ...look, x, y };
  const known = y.map((_, i) => i).filter((i) => y[i] !== null);
  return { ...look, x: known.map((i) => x[i]), y: known.map((i) => y[i]), gaps: known.length < y.length };
}

function drawErrors() {
  tabs(byId("errors-tabs"), ["Sweeps", "Seconds"], clock === "sweep" ? 0 : 1, (i) => {
    clock = i ? "time" : "sweep";
    drawErrors();
  });
  const rows = data.runs.length > 1 ? comparedErrors() : [ownErrors()];
  const hosts = rows.map((charts) => charts.map(() => el("div", { class: "chart" })));
  replace(byId("errors-body"), ...hosts.map((row) => el("div", { class: "charts" }, ...row)));
  rows.forEach((charts, r) => charts.forEach(({ series, options }, c) => lineChart(hosts[r][c], series, options)));
}

const clockOptions = () => ({
  xLabel: clock === "sweep" ? "sweep" : "seconds",
  integers: clock === "sweep",
  restAtEnd: true,
});

const errorOptions = (title, formula) =>
  ({ ...clockOptions(), title, formula, name: title, yLabel: data.deviance ? "unexplained" : "error", log: true, format: percent, tickFormat: percentTick });

// The objective, then each kind of error with a line per layer.
function ownErrors() {
  const kinds = errorKinds().map(([key, words, formula]) => ({
    series: run().layers.map((_, l) => errorLine(run(), key, l, { label: `layer ${l + 1}`, color: color(l) })),
    options: errorOptions(words, formula),
  }));
  return [objectiveChart(), ...kinds];
}

// A row for each kind of error, with a chart per layer and a line per run; then the objective of
// the chosen run alone, for objectives of different models do not compare.
function comparedErrors() {
  const depth = Math.max(...data.runs.map((r) => r.layers.length));
  const rows = errorKinds().map(([key, words, formula]) =>
    Array.from({ length: depth }, (_, l) => ({
      series: data.runs
        .map((r, i) => errorLine(r, key, l, { label: r.label, color: color(i) }))
        .filter((s) => s.y),
      options: errorOptions(`${words}, layer ${l + 1}`, formula),
    })));
  return [...rows, [objectiveChart()]];
}

function objectiveChart() {
  const { history, label } = run();
  const several = data.runs.length > 1;
  const title = several ? "Objective of the chosen run" : "Objective";
  return {
    series: [{
      label: several ? label : "objective",
      x: history[clock],
      y: history.objective,
      color: several ? color(state.run) : "#333",
    }],
    options: {
      ...clockOptions(),
      title,
      formula: "what the fit lowers: the loss and the penalties",
      name: title,
      yLabel: "objective",
      log: history.objective.every((v) => v > 0), // a volume's logarithm may be negative
    },
  };
}

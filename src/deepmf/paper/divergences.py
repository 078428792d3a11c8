"""The sequel's experiments: faces, topics and scenes by the Kullback-Leibler divergence.

Leplat, Hien, Onwunta and Gillis, "Deep nonnegative matrix factorization with beta-divergences",
arXiv 2309.08249.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from deepmf._factorize import factorize
from deepmf._utils.processes import Progress, in_parallel
from deepmf.core.divergence import BetaDivergence
from deepmf.core.quadratic import Array
from deepmf.datasets import Dataset, load_cbcl
from deepmf.datasets.matfiles import find, missing, read, root
from deepmf.factorization import Factorization
from deepmf.losses import LayerCentric
from deepmf.metrics import hoyer, match, nmi, npmi_coherence
from deepmf.paper.folder import write_configuration, write_table
from deepmf.paper.scenes import Source, draw_endmembers, open_scene
from deepmf.plots.style import new_figure, save_figure
from deepmf.regularizers import MinVolume

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KL = "kullback-leibler"
PARTS = ("faces", "topics", "scenes")
FACES, TOPICS = (80, 40, 20), (20, 10, 5)
PUBLISHED = (108.3, 26.8, 4.4)
"""Errors of the deep model on faces, in percent of the multilayer one's: layers 1 to 3, 35 runs."""
TOPIC_WEIGHTS = (4.0, 2.0, 1.0)
"""The sequel's weights of the layers of text."""
SCENES = {"jasper": (6, 4), "samson-deep": (6, 3)}
"""Ranks of scenes whose truth is at layer 2."""
VOLUMES = {"jasper": (4e-5, 1e-2), "samson-deep": (0.45, 0.45)}
"""Weights of the volume in the authors' public code, relative to the error at the start."""
MODELS = ("multilayer", "deep")
TEXTS = ("tdt2", "20news")


class Texts(NamedTuple):
    """Counts of some words, words x documents, the class of each document, and the words."""

    X: Any
    labels: Any
    words: list[str]


class Pair(NamedTuple):
    """The multilayer and the deep factorization from the same start."""

    multilayer: Factorization
    deep: Factorization

    def errors(self, X: Any) -> Array:
        """Divergence of each layer, models x layers."""
        return np.array([divergences(X, f) for f in self])


class Task(NamedTuple):
    """One pair of fits, or for scenes one fit."""

    part: str
    run: int
    sweeps: int
    folder: str | None
    multiplicative: bool
    model: str = ""


def divergences(X: Any, f: Factorization) -> Array:
    """D(W_{l-1}, W_l H_l) of each layer, with W_0 = X."""
    value = BetaDivergence(1).value
    return np.array([value(T, W, H) for T, W, H in zip([X, *f.W], f.W, f.H)])


def fit_pair(X: Any, ranks: Sequence[int], task: Task, model: LayerCentric) -> Pair:
    """Both models: the deep one takes over when half of the multilayer sweeps are done."""
    s, half = settings(task), task.sweeps // 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        flat = factorize(X, ranks, model="multilayer", max_iter=task.sweeps, **s)
        deep = factorize(X, ranks, model=model, augment=half, max_iter=task.sweeps - half, **s)
    return Pair(flat, deep)


def settings(task: Task) -> dict[str, Any]:
    """Random starts; the library's steps, or plain multiplicative ones as in the sequel."""
    common = {
        "beta_loss": KL,
        "constraint_W": "simplex",
        "init": "random",
        "random_state": task.run,
        "tol": 0,
    }
    plain = {"solver": "mu", "inner_iter": 1, "extrapolate": False}
    return {**common, **plain} if task.multiplicative else common


def fit_task(task: Task) -> Any:
    """A pair of fits, or for scenes one fit."""
    if task.part == "faces":
        X = load_cbcl(task.folder).X.T  # faces are rows, so that layers join their codes
        return fit_pair(X, FACES, task, LayerCentric(1.0))  # lambda_l = D_1 / D_l at the start
    if task.part == "topics":
        X = open_texts(task.model, task.folder).X
        return fit_pair(X, TOPICS, task, topic_model(X))
    return _fit_scene(task)


def topic_model(X: Any) -> LayerCentric:
    """The weights [4, 2, 1], for components of sum one instead of codes of sum one.

    With rows of H_l that sum to one, all entries of W_l add up to those of X. Divided by its sum,
    a component of layer l counts sum(X) / r_l times less, on average.
    """
    first, *deeper = TOPIC_WEIGHTS
    total = float(X.sum())
    weights = [w / first * total / r for w, r in zip(deeper, TOPICS)]
    return LayerCentric(weights, calibrate=False)


@lru_cache(maxsize=2)
def open_texts(name: str, folder: str | None) -> Texts:
    """Counts, restricted as in the sequel to the 30 largest words of each of 20 components."""
    where = root(folder)
    counts, meta = (find(where, f"{name}_{kind}.npz") for kind in ("counts", "meta"))
    if counts is None or meta is None:
        remedy = (
            "counts are words x documents, written by scipy.sparse.save_npz; meta is a NumPy "
            "archive with the label of each document and, where they are known, the terms"
        )
        raise missing(where, [f"{name}_counts.npz", f"{name}_meta.npz"], remedy)
    loaded: Any = sparse.load_npz(counts)
    X: Any = sparse.csc_array(loaded, dtype=np.float64)
    known = read(meta)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        flat = factorize(X, TOPICS[0], init="random", max_iter=30, random_state=0)
    largest = np.argsort(-flat.W[0], axis=0, kind="stable")[:30]
    kept = np.unique(largest)
    X = sparse.csc_array(X.tocsr()[kept])
    some = np.flatnonzero(X.sum(axis=0) > 0)
    words = [str(term) for term in known["terms"][kept]] if "terms" in known else []
    return Texts(sparse.csc_array(X[:, some]), known["label"][some], words)


def run(
    folder: Path,
    parts: Sequence[str] = PARTS,
    data_folder: str | None = None,
    runs: int = 3,
    sweeps: int = 100,
    multiplicative: bool = False,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> str:
    """The experiments asked for; returns their tables in Markdown."""
    if unknown := [part for part in parts if part not in PARTS]:
        raise ValueError(f"Unknown experiment {unknown[0]!r}: expected {', '.join(PARTS)}.")
    write_configuration(
        folder,
        "kl",
        {"parts": [*parts], "runs": runs, "sweeps": sweeps, "multiplicative": multiplicative},
    )
    tasks = [
        Task(part, k, sweeps, data_folder, multiplicative, model)
        for part in parts
        for model, count in fits_of(part, runs)
        for k in range(count)
    ]
    results = list(zip(tasks, in_parallel(fit_task, tasks, jobs, progress)))
    write: dict[str, Callable[[Path, Any], str]] = {
        "faces": _write_faces,
        "topics": _write_topics,
        "scenes": _write_scenes,
    }
    text = "\n".join(
        write[part](folder, [(t, f) for t, f in results if t.part == part]) for part in parts
    )
    (folder / "summary.md").write_text(text, encoding="utf-8")
    return text


def fits_of(part: str, runs: int) -> list[tuple[str, int]]:
    """Data sets or models of an experiment, each with its number of random starts."""
    if part == "scenes":
        return [(f"{scene} {model}", 1) for scene in SCENES for model in scene_models(scene)]
    return [(name, runs) for name in (TEXTS if part == "topics" else ("cbcl",))]


def _write_faces(folder: Path, results: list[tuple[Task, Pair]]) -> str:
    faces = load_cbcl(results[0][0].folder)
    pairs = [pair for _, pair in results]
    title = "### Faces: error of the deep model, percent of the multilayer one's"
    table = write_table(folder, "faces", *ratio_table(faces.X.T, pairs, PUBLISHED))
    rows: list[list[object]] = [
        [m, *(round(float(np.mean([hoyer(f.codes(k).T) for f in own])), 4) for k in (1, 2, 3))]
        for m, own in zip(MODELS, zip(*pairs))
    ]
    columns = ["model", "layer 1", "layer 2", "layer 3"]
    sparsity = write_table(folder, "faces-sparsity", columns, rows)
    for m, f in zip(MODELS, pairs[0]):
        save_figure(draw_features(f, faces, m), folder, f"faces-{m}")
    return f"{title}\n\n{table}\n### Faces: average Hoyer sparsity\n\n{sparsity}"


def draw_features(f: Factorization, faces: Dataset, title: str) -> Figure:
    """The first 20 features of each layer as pictures: its codes, where faces are rows."""
    fig = new_figure(7.2, 3.6)
    axes = fig.subplots(2 * f.depth, 10, squeeze=False)
    for k in range(f.depth):
        H = f.codes(k + 1)
        for ax, h in zip(axes[2 * k : 2 * k + 2].flat, H):
            ax.imshow(faces.image(h), cmap="gray_r")
        axes[2 * k, 0].set_title(f"layer {k + 1}", fontsize=8, loc="left")
    for ax in axes.flat:
        ax.set_axis_off()
    fig.suptitle(title, fontsize=10)
    return fig


def ratio_table(
    X: Any, pairs: Sequence[Pair], published: Sequence[float] = ()
) -> tuple[list[str], list[list[object]]]:
    """Divergences of both models and their ratio by layer, mean and spread over runs."""
    errors = np.array([pair.errors(X) for pair in pairs])  # runs x models x layers
    percent = 100 * errors[:, 1] / errors[:, 0]
    layers = range(errors.shape[2])
    rows: list[list[object]] = [
        [m, *(f"{errors[:, i, k].mean():.4g}" for k in layers)] for i, m in enumerate(MODELS)
    ]
    spread = [f"{percent[:, k].mean():.1f} ± {percent[:, k].std():.1f}" for k in layers]
    rows.append([f"deep, % of multilayer, {len(pairs)} runs", *spread])
    if published:
        rows.append(["published, 35 runs", *published])
    return ["divergence", *(f"layer {k + 1}" for k in layers)], rows


def _write_topics(folder: Path, results: list[tuple[Task, Pair]]) -> str:
    parts = []
    for name in TEXTS:
        own = [(task, pair) for task, pair in results if task.model == name]
        texts = open_texts(name, own[0][0].folder)
        parts.append(_write_texts(folder, name, texts, [pair for _, pair in own]))
    return "\n".join(parts)


def _write_texts(folder: Path, name: str, texts: Texts, pairs: list[Pair]) -> str:
    columns, rows = ratio_table(texts.X, pairs)
    for title, measure in (("coherence of 10 words", _coherence), ("NMI with classes", _nmi)):
        for m, fits in zip(MODELS, zip(*pairs)):
            means = [np.mean([measure(f, k, texts) for f in fits]) for k in (1, 2, 3)]
            rows.append([f"{m}, {title}", *(round(float(mean), 3) for mean in means)])
    table = write_table(folder, name, columns, rows)
    text = f"### Topics, {name}\n\n{table}"
    if texts.words:
        tree = topics_as_text(pairs[0].deep, texts.words)
        (folder / f"{name}-topics.txt").write_text(tree, encoding="utf-8")
        text += f"\nTopics and how they join:\n\n{tree}"
    return text


def _coherence(f: Factorization, layer: int, texts: Texts) -> float:
    return npmi_coherence(f.basis(layer), texts.X).mean


def _nmi(f: Factorization, layer: int, texts: Texts) -> float:
    """NMI of the classes with the topic that has most words of each document."""
    return float(nmi(texts.labels, np.argmax(f.codes(layer), axis=0)))


def topics_as_text(f: Factorization, words: Sequence[str], top: int = 8) -> str:
    """Topics of the last layer with those below that belong mostly to them, and top words."""
    parents = [np.argmax(f.links(k), axis=0) for k in range(2, f.depth + 1)]
    lines: list[str] = []

    def add(layer: int, number: int) -> None:
        best = np.argsort(-f.basis(layer)[:, number], kind="stable")[:top]
        own = " ".join(words[i] for i in best)
        lines.append(f"{'    ' * (f.depth - layer)}- {layer}.{number + 1}: {own}")
        for child in np.flatnonzero(parents[layer - 2] == number) if layer > 1 else ():
            add(layer - 1, int(child))

    for number in range(f.ranks[-1]):
        add(f.depth, number)
    return "\n".join(lines) + "\n"


def scene_models(scene: str) -> dict[str, dict[str, Any]]:
    """Settings of each model of a scene."""
    return {
        "squared errors": {},
        "KL": {"beta_loss": KL},
        "KL, minimum volume, authors' weights": {
            "beta_loss": KL,
            "regularizer_W": [MinVolume(2 * a, "paper", delta=1.0) for a in VOLUMES[scene]],
        },
        "KL, minimum volume, one weight": {
            "beta_loss": KL,
            "regularizer_W": MinVolume(0.9, "paper", delta=1.0),
        },
    }


def _fit_scene(task: Task) -> Factorization:
    name, _, model = task.model.partition(" ")
    scene = open_scene(Source(name, task.folder)).data
    half = task.sweeps // 2
    own = scene_models(name)[model]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return factorize(
            scene.X,
            SCENES[name],
            model=LayerCentric(1.0),
            init="hierarchical",
            augment=half,
            max_iter=task.sweeps - half,
            tol=0,
            **own,
        )


def _write_scenes(folder: Path, results: list[tuple[Task, Factorization]]) -> str:
    fits = {task.model: f for task, f in results}
    first = results[0][0]
    data = {name: open_scene(Source(name, first.folder)).data for name in SCENES}
    rows: list[list[object]] = []
    models = [task.model.partition(" ")[2] for task, _ in results]
    for model in dict.fromkeys(models):
        scores = [_mrsa(data[name], fits[f"{name} {model}"]) for name in SCENES]
        rows.append([model, *(round(score, 2) for score in scores)])
    columns = ["MRSA, layer 2", *(f"{name} {list(ranks)}" for name, ranks in SCENES.items())]
    for name, scene in data.items():
        W = {model: fits[f"{name} {model}"].W[1] for model in dict.fromkeys(models)}
        figure = draw_endmembers(scene, 0, W, f"{scene.name}, layer 2")
        save_figure(figure, folder, f"{name}-endmembers")
    return f"### Scenes\n\n{write_table(folder, 'scenes', columns, rows)}"


def _mrsa(scene: Dataset, f: Factorization) -> float:
    return match(scene.W[0], f.W[1]).mean

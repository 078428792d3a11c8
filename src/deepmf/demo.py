"""``python -m deepmf.demo``: fit the simulated scene with every model and leave a report."""

from __future__ import annotations

import argparse
import base64
import html
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from deepmf.datasets import Dataset, simulated_scene
from deepmf.factorization import Factorization
from deepmf.factorize import factorize
from deepmf.metrics import Matching, match
from deepmf.plots import plot_errors, plot_hierarchy, plot_spectra
from deepmf.plots.style import new_figure
from deepmf.regularizers import MinVolume

MODELS: dict[str, str] = {
    "LC-DMF (layer-centric)": "layer-centric",
    "DC-DMF (data-centric)": "data-centric",
    "MMF (multilayer)": "multilayer",
    "Tri-DMF (Trigeorgis)": "trigeorgis",
}
_SWEEPS = 200


def main(arguments: list[str] | None = None) -> int:
    """Run the demo."""
    parser = argparse.ArgumentParser(prog="python -m deepmf.demo", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder to write to")
    folder: Path = parser.parse_args(arguments).out
    try:
        new_figure(1, 1)  # before the work, not after it
        folder.mkdir(parents=True, exist_ok=True)
    except (ImportError, OSError) as error:
        sys.stderr.write(f"deepmf: {error}\n")
        return 2

    scene = simulated_scene()
    say(f"Simulated scene: {scene.X.shape[0]} bands, {scene.X.shape[1]} pixels;")
    say("truth known at every layer: " + " > ".join(str(len(names)) for names in scene.names))
    fits = {}
    for label, model in MODELS.items():
        began = time.perf_counter()
        fits[label] = fit_scene(scene, model)
        say(f"  {label}: {fits[label].n_iter} sweeps in {time.perf_counter() - began:.1f} s")

    best = next(iter(fits.values()))
    matches = [match(scene.W[k], best.W[k]) for k in range(best.depth)]
    summary = "\n".join([*table(scene, fits), "", *links_in_words(best, scene, matches)])
    say("\n" + summary)
    (folder / "summary.md").write_text(summary + "\n", encoding="utf-8")
    best.save(folder / "layer-centric.npz")
    pictures = draw(folder, scene, fits, best, matches)
    write_page(folder / "report.html", summary, pictures)
    say(f"\nWrote {folder / 'report.html'}, the figures and the factors beside it.")
    return 0


def fit_scene(scene: Dataset, model: str) -> Factorization:
    """Minimum-volume deep NMF of the scene, 6 > 4 > 2, from SNPA."""
    return factorize(
        scene.X,
        ranks=[6, 4, 2],
        model=model,
        regularizer_W=MinVolume(10),
        init="snpa",
        max_iter=_SWEEPS,
        tol=0,
    )


def table(scene: Dataset, fits: Mapping[str, Factorization]) -> list[str]:
    """MRSA against the truth and relative errors, per model and layer, in Markdown."""
    lines = [
        "| model | MRSA layer 1 | layer 2 | layer 3 | data error layer 1 | layer 2 | layer 3 |",
        "|---|---|---|---|---|---|---|",
    ]
    for label, f in fits.items():
        angles = [match(scene.W[k], f.W[k]).mean for k in range(f.depth)]
        numbers = [f"{a:.2f}" for a in angles] + [f"{e:.1e}" for e in f.history.data_errors[-1]]
        lines.append("| " + " | ".join([label, *numbers]) + " |")
    lines += ["", "MRSA: mean angle to the true spectra, 0 to 100, lower is better."]
    return lines


def links_in_words(f: Factorization, scene: Dataset, matches: list[Matching]) -> list[str]:
    """What each component of a layer is made of, one layer deeper."""
    lines = ["What LC-DMF found (shares of 10 % or more; names from the closest true spectra):", ""]
    names = ordered_names(scene, matches)
    for layer in range(2, f.depth + 1):
        shares = f.links(layer)
        for j, name in enumerate(names[layer - 2]):
            parts = [
                f"{shares[i, j]:.0%} {names[layer - 1][i]}"
                for i in np.argsort(-shares[:, j])
                if shares[i, j] >= 0.1
            ]
            lines.append(f"- layer {layer - 1} {name} = {' + '.join(parts)}")
    return lines


def ordered_names(scene: Dataset, matches: list[Matching]) -> list[list[str]]:
    """Names in the order of the estimated components."""
    out = []
    for names, matching in zip(scene.names, matches):
        listed = [""] * len(names)
        for truth, estimate in enumerate(matching.order):
            listed[estimate] = names[truth]
        out.append(listed)
    return out


def draw(
    folder: Path,
    scene: Dataset,
    fits: Mapping[str, Factorization],
    best: Factorization,
    matches: list[Matching],
) -> dict[str, Path]:
    """Save the figures; captions with their files."""
    names = ordered_names(scene, matches)
    figures = {
        "Abundance maps of the three layers and the links between them (line width = share)": (
            "hierarchy",
            plot_hierarchy(best, scene.image, names, "LC-DMF on the simulated scene"),
        )
    }
    for k in range(best.depth):
        truth = scene.W[k][:, np.argsort(matches[k].order)]
        figures[f"Spectra of layer {k + 1} against the truth"] = (
            f"spectra-layer-{k + 1}",
            plot_spectra(best, k + 1, scene.wavelengths, truth, names[k]),
        )
    figures["Errors over the sweeps, all models"] = ("errors", plot_errors(fits))
    files = {}
    for caption, (name, figure) in figures.items():
        figure.savefig(folder / f"{name}.pdf")
        files[caption] = folder / f"{name}.png"
        figure.savefig(files[caption], dpi=130)
    return files


def write_page(path: Path, summary: str, pictures: Mapping[str, Path]) -> None:
    """A page that stands alone: text and pictures in one file."""
    blocks = [
        f"<figure><img alt='{html.escape(caption)}' src='data:image/png;base64,"
        f"{base64.b64encode(file.read_bytes()).decode()}'><figcaption>{html.escape(caption)}"
        f"</figcaption></figure>"
        for caption, file in pictures.items()
    ]
    path.write_text(
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>deepmf demo</title><style>"
        "body{font:16px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem}"
        "img{max-width:100%}figure{margin:2.5rem 0}figcaption{color:#555}"
        "pre{background:#f6f6f6;padding:1rem;overflow-x:auto;font-size:13px}</style>"
        "<h1>deepmf: a scene in three layers</h1>"
        "<p>A simulated village of six materials that nest into four, then two. Every layer is "
        "fitted at once with one loss; the true spectra are used for scoring only.</p>"
        f"<pre>{html.escape(summary)}</pre>{''.join(blocks)}</html>",
        encoding="utf-8",
    )


def say(text: str) -> None:
    """One line to the terminal."""
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    sys.exit(main())

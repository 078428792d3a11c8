"""``deepmf datasets``: data to try things on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from deepmf._utils.atomic_files import write_whole
from deepmf.cli.console import error_messages, say, table


def datasets(
    name: Annotated[str | None, typer.Argument(help="One to save; default: list all.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The .npz file to save it to.")
    ] = None,
) -> None:
    """List the data sets that dataset:NAME stands for, or save one as a file.

    Published ones are read from files of yours, looked for under the folder $DEEPMF_DATA.
    """
    with error_messages():
        from deepmf.datasets.catalogue import CATALOGUE, load

        if name is None:
            rows = []
            for key, entry in CATALOGUE.items():
                where = "built in" if entry.built_in else "from your files"
                rows.append([key, entry.about, ",".join(map(str, entry.ranks)), where])
            table(["name", "what it is", "ranks", ""], rows)
            say("\nFor example: deepmf fit dataset:simulated --ranks 6,4,2")
            return
        target = out or Path(f"{name}.npz")
        if target.suffix != ".npz":
            raise ValueError(f"Data sets are saved as .npz files, got {str(target)!r}.")
        data = load(name)
        layout = data.layout.to_arrays()
        arrays = {"X": data.X, **{k: layout[k] for k in ("wavelengths",) if k in layout}}
        if data.layout.image_shape is not None:
            arrays["image_shape"] = np.array(data.layout.image_shape)
            arrays["order"] = np.array(data.layout.order)
            arrays["pixels"] = np.array(data.layout.pixels)
        for known in data.truths:
            count = len(known.names)
            arrays |= {f"M{count}": known.W, f"names{count}": np.array(known.names)}
            arrays |= {} if known.A is None else {f"A{count}": known.A}
        write_whole(target, lambda file: np.savez_compressed(file, **arrays))
        say(f"Wrote {target}: {data!r}.")

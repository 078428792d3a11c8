"""HDF5 files from anyone: nothing in other files, nothing that a few bytes blow up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from deepmf._utils.safe_archives import UnreadableError, check_room


def check_hdf5(path: Path, file: Any) -> None:
    """Refuse links to and data in other files, and lists and chunks too large for the file.

    Lists (names, coordinates, the parts of a sparse matrix) are read whole whatever is asked for;
    matrices and cubes are checked by those who read them.
    """

    def outside(name: str, link: Any) -> tuple[str, str] | None:
        return (name, str(link.filename)) if hasattr(link, "filename") else None

    def part(name: str, node: Any) -> None:
        if not hasattr(node, "dtype"):
            return
        if node.external or node.is_virtual:
            _refuse(path, name, str(node.external[0][0]) if node.external else "")
        if node.ndim <= 1 and node.shape:
            check_room(path, node.shape, node.dtype)
        if node.chunks:
            check_room(path, node.chunks, node.dtype)

    if (found := file.visititems_links(outside)) is not None:
        _refuse(path, *found)
    file.visititems(part)


def _refuse(path: Path, name: str, other: str) -> None:
    raise UnreadableError(
        f"{path} keeps {name} in another file{f' ({other})' if other else ''}, which deepmf does "
        f"not follow; copy it into one file."
    )

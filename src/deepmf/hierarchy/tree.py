"""The hierarchy as text: every component below the one that has its largest share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from deepmf.core.quadratic import Array

Families = list[list[tuple[int, float]]]
"""Per component, its parts: components of the layer before, each with its share."""

Texts = Sequence[Sequence[str]]
"""Per layer, one for each component."""


def families(links: Array) -> Families:
    """Each part j with the component i of the largest share ``links(i, j)``, largest first."""
    found: Families = [[] for _ in links]
    for j in np.argsort(-links.max(axis=0), kind="stable"):
        i = int(np.argmax(links[:, j]))
        found[i].append((int(j), float(links[i, j])))
    return found


def draw_tree(links: Sequence[Array], names: Texts, words: Texts) -> str:
    """One line per component, the last layer's at the left edge.

    Parameters
    ----------
    links : sequence of arrays
        Of layers 2, ..., L.
    names, words : Texts
        Of layers 1, ..., L: what is written before and after the share.
    """
    below = [families(shares) for shares in links]
    lines = []
    for k, name in enumerate(names[-1]):
        lines.append(f"{name}  {words[-1][k]}".rstrip())
        lines += _branches(below, names, words, k, "")
    return "\n".join(lines)


def _branches(
    below: Sequence[Families], names: Texts, words: Texts, k: int, indent: str
) -> Iterator[str]:
    """Lines of what component k of the last of these layers is made of."""
    if not below:
        return
    *lower, own = below
    layer, last = len(lower), len(own[k]) - 1
    for number, (j, share) in enumerate(own[k]):
        fork, stem = ("└── ", "    ") if number == last else ("├── ", "│   ")
        text = f"{names[layer][j]} ({share:.0%})  {words[layer][j]}"
        yield f"{indent}{fork}{text}".rstrip()
        yield from _branches(lower, names, words, j, indent + stem)

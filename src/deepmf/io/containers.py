"""Objects of other libraries: AnnData and xarray's arrays in, codes and components of a kind out.

No library is imported unless an object comes from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from deepmf.dataset import Dataset
from deepmf.io.base import Reading, need
from deepmf.layout import Layout

Kind = Literal["plain", "pandas", "anndata", "xarray", "deepmf"]


def kind_of(X: Any) -> Kind:
    """Which library an object comes from; ``"plain"`` for arrays, lists and all others."""
    if isinstance(X, Dataset):
        return "deepmf"
    for base in type(X).__mro__:
        match base.__module__.partition(".")[0], base.__name__:
            case "anndata", "AnnData":
                return "anndata"
            case "xarray", "DataArray":
                return "xarray"
            case "xarray", "Dataset":
                raise TypeError("X is an xarray Dataset; pass one of its arrays, X['name'].")
            case "pandas", "DataFrame":
                return "pandas"
    return "plain"


def as_dataset(X: Any) -> Dataset | None:
    """The data set that an object is; None for matrices and tables, whose rows are samples.

    So are those of a DataArray whose dimensions' names tell nothing.
    """
    match kind_of(X):
        case "deepmf":
            return X
        case "anndata":
            from deepmf.io.h5ad import from_anndata

            return from_anndata(X)
        case "xarray":
            from deepmf.io.dataarrays import from_dataarray

            return from_dataarray(X, Reading(rows="samples"))
    return None


def codes_as(kind: Kind, codes: NDArray, layout: Layout, names: Sequence[str]) -> Any:
    """Codes (samples x components): a table for AnnData, maps for cubes, else as they are."""
    if kind == "anndata":
        return _frame(codes, layout.samples, names)
    if kind == "xarray":
        from deepmf.io.dataarrays import codes_to_dataarray

        return codes_to_dataarray(codes.T, layout, names)
    return codes


def components_as(kind: Kind, components: NDArray, layout: Layout, names: Sequence[str]) -> Any:
    """Components (components x features): a table, or an array along the cube's own bands."""
    if kind in ("anndata", "pandas") and layout.features is not None:
        return _frame(components, names, layout.features)
    if kind == "xarray":
        header = layout.header
        (band,) = set(header["dims"]) - set(header["samples"])
        coords: dict[str, Any] = {"component": list(names)}
        if layout.features is not None:
            coords[band] = layout.features
        if layout.wavelengths is not None:
            coords["wavelength"] = (band, layout.wavelengths, {"units": "nm"})
        xr = need("xarray", "cubes", "Components as an array")
        return xr.DataArray(components, dims=("component", band), coords=coords, name="components")
    return components


def _frame(values: NDArray, index: Any, columns: Any) -> Any:
    pandas = need("pandas", "tables", "Codes of AnnData")
    return pandas.DataFrame(
        values,
        index=None if index is None else [str(name) for name in index],
        columns=[str(name) for name in columns],
    )


def check_same_features(new: Layout, fitted: Layout, shape: tuple[int, int], count: int) -> None:
    """Refuse data whose features are not those of the fit, saying what differs."""
    expected = "but the model was fitted to"
    if new.features is not None and fitted.features is not None:
        given, known = new.features.tolist(), fitted.features.tolist()
        if given == known:
            return
        order = "Put them in the order of factorization_.layout.features"
        if sorted(given) == sorted(known):
            raise ValueError(
                f"X has the features of the fit in another order. {order}; for AnnData, "
                f"adata[:, model.feature_names_in_]."
            )
        lost, extra = _less(known, given), _less(given, known)
        parts = [f"lacks {lost}" if lost else "", f"has {extra} beyond it" if extra else ""]
        differs = " and ".join(filter(None, parts)) or "repeats some"
        raise ValueError(
            f"X has other features than the fit, which had {count}: it {differs}. {order}."
        )
    if shape[0] != count:
        raise ValueError(f"X has {shape[0]} features, {expected} {count}.")
    if new.wavelengths is not None and fitted.wavelengths is not None:
        off = ~np.isclose(new.wavelengths, fitted.wavelengths, rtol=1e-3)
        if off.any():
            k = int(np.argmax(off))
            raise ValueError(
                f"X has other bands: {int(off.sum())} of {count} differ, first band {k + 1} at "
                f"{new.wavelengths[k]:g} nm, {expected} {fitted.wavelengths[k]:g} nm."
            )


def _less(these: list[str], those: list[str]) -> str:
    """Names that only the first list has, a few of them."""
    known = set(those)
    only = [name for name in these if name not in known]
    more = f" and {len(only) - 3} more" if len(only) > 3 else ""
    return ", ".join(map(repr, only[:3])) + more

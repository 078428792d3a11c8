"""AnnData and xarray objects in; codes and components of the same kind out.

No library is imported unless an object comes from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from deepmf._utils.messages import Message
from deepmf._utils.optional import need
from deepmf._utils.warnings import warn
from deepmf.data.assemble import Rows
from deepmf.data.dataset import Dataset
from deepmf.data.layout import Layout
from deepmf.data.matrix import as_numpy
from deepmf.data.reading import Reading

Kind = Literal["plain", "pandas", "anndata", "xarray", "deepmf"]


def kind_of(X: Any) -> Kind:
    """The library that an object comes from; ``"plain"`` for arrays, lists and all others."""
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


def as_dataset(X: Any, rows: Rows = "samples", weights: Any = None) -> Dataset | None:
    """The data set that an object is; None for matrices and tables.

    ``rows`` says what those of a DataArray are whose dimensions' names tell nothing. With
    weights, pixels of a cube that lack some of their bands are kept.
    """
    match kind_of(X):
        case "deepmf":
            return X
        case "anndata":
            from deepmf.data.anndata_objects import from_anndata

            return from_anndata(X)
        case "xarray":
            from deepmf.data.dataarrays import from_dataarray

            return from_dataarray(X, Reading(rows=rows, gaps=weights is not None))
    return None


def say_left_out(X: Any, data: Dataset) -> None:
    """Warn of pixels of a cube that were left out though a setting would keep them."""
    if kind_of(X) == "xarray":
        for note in data.notes:
            if isinstance(note, Message):
                warn(note)


def weights_within(data: Dataset, weights: Any, samples: Literal["columns", "rows"]) -> Any:
    """Weights of the bands and pixels that a data set has, where they are of its whole cube."""
    layout, shape = data.layout, np.shape(weights)
    if weights is None or isinstance(weights, str) or len(shape) != 2:
        return weights
    at = 1 if samples == "columns" else 0
    valid, bands = layout.valid, layout.bands
    if valid is not None and shape[at] == valid.size:
        kept = np.flatnonzero(valid.ravel(order=layout.order))
        weights = np.take(as_numpy(weights), kept, axis=at)
    if bands is not None and shape[1 - at] == layout.total_bands:
        weights = np.take(as_numpy(weights), bands - 1, axis=1 - at)
    return weights


def as_columns(X: Any, weights: Any = None) -> tuple[Any, Layout, Any]:
    """The matrix that an object is, its columns being samples, what is known of it, and weights."""
    if kind_of(X) == "pandas":
        check_table(X)
        rows, columns = X.shape
        warn(
            f"X is a DataFrame, and its {rows} rows are taken as features and its {columns} "
            f"columns as samples. If its rows are samples, use DeepMF or pass X.T.to_numpy(); if "
            f"not, pass X.to_numpy() to say so."
        )
        if not all(isinstance(dtype, np.dtype) and dtype.kind in "buif" for dtype in X.dtypes):
            return X.to_numpy(dtype=float, na_value=np.nan), Layout(), weights
    data = as_dataset(X, "features", weights)
    if data is None:
        return X, Layout(), weights
    say_left_out(X, data)
    return data.X, data.layout, weights_within(data, weights, "columns")


def check_table(X: Any) -> None:
    """Refuse a DataFrame that does not hold numbers alone, naming the columns."""
    names = [name for name, column in X.items() if not _holds_numbers(column)]
    if names:
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        raise ValueError(
            f"X has columns that do not hold numbers: {', '.join(map(repr, names[:3]))}{more}. "
            f"Leave them out, X.select_dtypes('number'), or turn them into numbers first, for "
            f"example with scikit-learn's OneHotEncoder."
        ) from None


def _holds_numbers(column: Any) -> bool:
    kind = getattr(column.dtype, "kind", "O")
    if kind in "buif":
        return True
    try:
        np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return kind == "O"


def codes_as(kind: Kind, codes: NDArray, layout: Layout, names: Sequence[str]) -> Any:
    """Codes (samples x components): a table for AnnData, maps for cubes, else as they are."""
    if kind == "anndata":
        return _frame(codes, layout.samples, names)
    if kind == "xarray":
        from deepmf.data.dataarrays import codes_to_dataarray

        return codes_to_dataarray(codes.T, layout, names)
    return codes


def components_as(kind: Kind, components: NDArray, layout: Layout, names: Sequence[str]) -> Any:
    """Components (components x features): a table, or an array along the cube's own bands."""
    if kind in ("anndata", "pandas") and layout.features is not None:
        return _frame(components, names, layout.features)
    if kind == "xarray" and layout.dimensions is not None:
        band = layout.dimensions.features
        band = "feature" if band == "component" else band  # of maps that a fit gave
        coords: dict[str, Any] = {"component": list(names)}
        if layout.features is not None:
            coords[band] = layout.features
        if layout.wavelengths is not None:
            coords["wavelength"] = (band, layout.wavelengths, {"units": "nm"})
        xr = need("xarray", "cubes", "Components as an array")
        return xr.DataArray(components, dims=("component", band), coords=coords, name="components")
    return components


def links_as(
    kind: Kind, links: NDArray, layout: Layout, names: Sequence[str], parts: Sequence[str]
) -> Any:
    """Links between components and those of the layer before, their parts, as components are."""
    if kind in ("anndata", "pandas") and layout.features is not None:
        return _frame(links, names, parts)
    if kind == "xarray":
        xr = need("xarray", "cubes", "Links as an array")
        coords = {"component": list(names), "part": list(parts)}
        return xr.DataArray(links, dims=("component", "part"), coords=coords, name="links")
    return links


def samples_as(kind: Kind, X: NDArray, codes: Any, layout: Layout) -> Any:
    """Samples (samples x features) made from codes: a table where the codes are one."""
    if kind == "pandas" and layout.features is not None:
        return type(codes)(X, index=codes.index, columns=layout.features.tolist())
    return X


def _frame(values: NDArray, index: Any, columns: Any) -> Any:
    pandas = need("pandas", "tables", "Codes of AnnData")
    return pandas.DataFrame(
        values,
        index=None if index is None else [str(name) for name in index],
        columns=[str(name) for name in columns],
    )


def check_same_features(new: Layout, fitted: Layout, shape: tuple[int, int], count: int) -> None:
    """Refuse data whose features are not those of the fit, saying what differs.

    Their number is ``count`` unless the fit kept some of the features, see `Layout.of_new`.
    """
    place = "layout"
    if fitted.kept is not None:
        enough = fitted.of_new(shape[0]) is fitted
        count = int(fitted.kept.sum()) if enough else fitted.kept.size
        fitted, place = fitted.of_new(shape[0]), "layout" if enough else "layout.whole"
    expected = "but the model was fitted to"
    if new.features is not None and fitted.features is not None:
        _check_names(new.features.tolist(), fitted.features.tolist(), count, place)
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


def _check_names(given: list[str], known: list[str], count: int, place: str) -> None:
    """Refuse names of features that are not those of the fit, in its order, that of a layout."""
    if given == known:
        return
    order = f"Put them in the order of factorization_.{place}.features"
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


def _less(these: list[str], those: list[str]) -> str:
    """Names that only the first list has, a few of them."""
    known = set(those)
    only = [name for name in these if name not in known]
    more = f" and {len(only) - 3} more" if len(only) > 3 else ""
    return ", ".join(map(repr, only[:3])) + more

"""Convert a pytree of arrays to one vector and back, for optimisers and solvers that need vectors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import numpy as fnp
from .core import FLOAT64, aval_of, check_supported, is_complex, promote
from .core.values import ArrayLike
from .errors import ArgumentError, DtypeError, ShapeError
from .frontend.checked import checked
from .frontend.pytree import PyTree, PyTreeDef, tree_flatten_with_path
from .frontend.pytree.nodes import keystr
from .runtime.module_getattr import module_attributes as _module_attributes
from .runtime.records import dataclass

__all__ = ["ravel_pytree"]
__getattr__, __dir__ = _module_attributes("functrans.flatten_util", globals())


@dataclass(frozen=True)
class _Unravel:
    """Converts a vector back to a pytree. Hashable, so that it may be a static argument of `jit`."""

    treedef: PyTreeDef
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[np.dtype, ...]
    dtype: np.dtype

    def __call__(self, flat: ArrayLike) -> PyTree:
        """The pytree whose leaves hold the elements of `flat`, shape (n,), in order."""
        flat = fnp.asarray(flat)
        sizes = [math.prod(shape) for shape in self.shapes]
        if flat.shape != (sum(sizes),):
            raise ShapeError(
                f"unravel: the argument has shape {flat.shape}, but the tree {self.treedef} holds"
                f" {sum(sizes)} elements; pass an array of shape ({sum(sizes)},)"
            )
        if flat.dtype != self.dtype and not np.can_cast(flat.dtype, self.dtype, "same_kind"):
            raise DtypeError(
                f"unravel: the argument has dtype {flat.dtype}, which cannot become the {self.dtype} of the"
                " vector that ravel_pytree returned; convert it with .astype"
            )
        flat = flat.astype(self.dtype)
        leaves, start = [], 0
        for shape, dtype, size in zip(self.shapes, self.dtypes, sizes):
            part = flat[start : start + size].reshape(shape)
            leaves.append((part if is_complex(dtype) else part.real).astype(dtype))
            start += size
        return self.treedef.unflatten(leaves)


@checked
def ravel_pytree(pytree: PyTree) -> tuple[Any, _Unravel]:
    """Flatten a pytree of arrays to one vector.

    Parameters
    ----------
    pytree : pytree of array_like
        Arrays and Python scalars, of any shapes and dtypes.

    Returns
    -------
    flat : Array, shape (n,)
        The leaves in order, each raveled, in their common dtype (float64 for a pytree without leaves).
    unravel : callable
        Converts an array of shape (n,) to a pytree with the structure, shapes and dtypes of `pytree`. It raises
        `ShapeError` for another shape, and `DtypeError` for a dtype that does not cast to that of `flat`
        within its kind.

    Raises
    ------
    ArgumentError
        If a leaf is not an array or a number; the message names its key path.
    UnsupportedDtypeError
        If a leaf has a dtype that is not supported.

    Notes
    -----
    Differentiable and traceable, as is `unravel`. If other leaves are floats, an integer leaf becomes a float in
    `flat`: above 2**53 it is not restored exactly. If other leaves are complex, a real leaf is restored as the real
    part.

    Examples
    --------
    >>> import numpy as np
    >>> flat, unravel = ravel_pytree({"b": np.array([1.0, 2.0]), "a": 3})
    >>> flat.tolist(), str(flat.dtype)
    ([3.0, 1.0, 2.0], 'float64')
    >>> back = unravel(2 * flat)
    >>> back["b"].tolist(), int(back["a"]), str(back["a"].dtype)
    ([2.0, 4.0], 6, 'int64')
    """
    pairs, treedef = tree_flatten_with_path(pytree)
    avals = []
    for path, leaf in pairs:
        place = f"ravel_pytree: the leaf at {keystr(path) or 'the root'}"
        if not isinstance(leaf, (np.ndarray, np.generic, bool, int, float, complex)) and not hasattr(
            leaf, "aval"
        ):
            raise ArgumentError(f"{place} is a {type(leaf).__name__}; all leaves must be arrays or numbers")
        aval = aval_of(leaf)
        check_supported(aval.dtype, place)
        avals.append(aval)
    dtypes = tuple(aval.dtype for aval in avals)
    dtype = promote([(leaf_dtype, False) for leaf_dtype in dtypes])[0] if dtypes else FLOAT64
    unravel = _Unravel(treedef, tuple(aval.shape for aval in avals), dtypes, dtype)
    if not pairs:
        return fnp.zeros((0,), dtype), unravel
    parts = [fnp.ravel(fnp.asarray(leaf)).astype(dtype) for _, leaf in pairs]
    return fnp.concatenate(parts), unravel

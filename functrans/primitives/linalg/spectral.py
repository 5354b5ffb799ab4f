"""Shared by the rules of eigh, svd, eig, pinv and lstsq: failures of single matrices, safe differences of eigenvalues,
column-major scratch matrices for LAPACK.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from ...core import (
    COMPLEX128,
    FLOAT64,
    Atom,
    Aval,
    BlockEmitter,
    Buffer,
    Effect,
    Eqn,
    Local,
    Scalar,
    is_inexact,
)
from ...core.values import Param, Value
from ...errors import LinAlgError
from ..elementwise.arithmetic import convert_element_type_p, div_p, le_p, mul_p, select_p, sub_p
from ..elementwise.complexes import abs_p, conj_p, real_p
from ..reductions.reduce import reduce_max_p
from ..structure.linear import add_p, broadcast_in_dim_p, dtype_of, reduce_sum_p, shape_of
from ..structure.shape import diagonal_mask
from .matrices import matrix_transpose, triangle


def may_raise(*, on_error: str, **params: Param) -> Effect:
    """Return the effects of a decomposition."""
    return Effect.RAISE if on_error == "raise" else Effect.NONE


def values_alone(place: int) -> Callable[[Eqn, Collection[Atom], bool], Eqn | None]:
    """Make the `narrow` rule of a decomposition with values at one output position and vectors at the others.

    Routines that compute values only use different algorithms, so results may differ in the last bits.
    """

    def narrow(eqn: Eqn, needed: Collection[Atom], strict: bool) -> Eqn | None:
        vectors = any(v in needed for i, v in enumerate(eqn.outvars) if i != place)
        if strict or vectors or not eqn.params["vectors"]:
            return None
        return eqn.replace(outvars=[eqn.outvars[place]], params=eqn.params | {"vectors": False})

    return narrow


# --- evaluation ---------------------------------------------------------------------------------------------


def matrix_by_matrix(
    name: str,
    problem: str,
    function: Callable[..., tuple[np.ndarray, ...]],
    arrays: Sequence[np.ndarray],
    avals: Sequence[Aval],
    on_error: str,
) -> tuple[np.ndarray, ...]:
    """Call NumPy's `function`; if it raises for a batch, return NaN for the matrices that fail.

    Parameters
    ----------
    name, problem : str
        For the message, ``"eigh: matrix 3 of the batch: the eigenvalues did not converge"``.
    function : callable
        Takes arrays with equal batch axes (those of the first), and returns several results.
    arrays : sequence of ndarray
    avals : sequence of Aval
        The types of the results.
    on_error : {'raise', 'nan'}

    Raises
    ------
    LinAlgError
        If `on_error` is ``"raise"``, for the first matrix that fails.
    """
    try:
        return function(*arrays)
    except np.linalg.LinAlgError:
        pass
    batch = arrays[0].shape[:-2]
    outs = tuple([np.full(a.shape, np.nan if is_inexact(a.dtype) else 0, a.dtype) for a in avals])
    for place in np.ndindex(batch):
        try:
            parts = function(*[a[place] for a in arrays])
        except np.linalg.LinAlgError:
            if on_error == "raise":
                raise LinAlgError(f"{name}: {_which(place)}: {problem}") from None
            continue
        for out, part in zip(outs, parts, strict=True):
            out[place] = part
    return outs


def _which(place: tuple[int, ...]) -> str:
    if not place:
        return "the matrix"
    return f"matrix {place if len(place) > 1 else place[0]} of the batch"


# --- small algebra ------------------------------------------------------------------------------------------


def hermitian(x: Value, lower: bool) -> Value:
    """Return the symmetric (Hermitian) matrix with this triangle; the imaginary part of the diagonal is dropped."""
    strict = triangle(x, lower, strict=True)
    diagonal = sub_p.bind(triangle(x, lower), strict)
    if dtype_of(x).kind == "c":
        diagonal = mul_p.bind(dtype_of(x).type(0.5), add_p.bind(diagonal, conj_p.bind(diagonal)))
    return add_p.bind(add_p.bind(strict, matrix_transpose(strict, conjugate=True)), diagonal)


def real_part(x: Value) -> Value:
    """Return the real part; real numbers are returned unchanged."""
    return real_p.bind(x) if dtype_of(x).kind == "c" else x


def cast(x: Value, dtype: np.dtype) -> Value:
    """Cast `x` to another dtype of the same precision (real to complex)."""
    return x if dtype_of(x) == dtype else convert_element_type_p.bind(x, dtype=dtype)


def as_row(x: Value) -> Value:
    """Return the vectors along the last axis as matrices of one row."""
    shape = shape_of(x)
    axes = (*range(len(shape) - 1), len(shape))
    return broadcast_in_dim_p.bind(x, shape=(*shape[:-1], 1, shape[-1]), broadcast_dimensions=axes)


def as_column(x: Value) -> Value:
    """Return the vectors along the last axis as matrices of one column."""
    shape = shape_of(x)
    return broadcast_in_dim_p.bind(x, shape=(*shape, 1), broadcast_dimensions=tuple(range(len(shape))))


def column_products(u: Value, v: Value) -> Value:
    """Return the inner products ``u[:, j]^H v[:, j]`` of columns."""
    u = conj_p.bind(u) if dtype_of(u).kind == "c" else u
    return reduce_sum_p.bind(mul_p.bind(u, v), axes=(len(shape_of(u)) - 2,))


def negligible(w: Value, order: int) -> Value:
    """Return the size below which LAPACK's eigenvalues or singular values are noise: ``order * eps * max |w|``.

    The last axis of the result has extent 1.
    """
    axis = len(shape_of(w)) - 1
    real = np.finfo(dtype_of(w)).dtype
    largest = reduce_max_p.bind(abs_p.bind(w), axes=(axis,))
    return as_column(mul_p.bind(real.type(order * np.finfo(real).eps), largest))


def safe_reciprocal(x: Value, least: Value, otherwise: Value) -> Value:
    """Return ``1 / x``, and `otherwise` where ``|x| <= least``."""
    one = dtype_of(x).type(1)
    small = le_p.bind(abs_p.bind(x), least)
    return select_p.bind(small, otherwise, div_p.bind(one, select_p.bind(small, one, x)))


def reciprocal_matrix(x: Value, w: Value, order: int) -> Value:
    """Return the reciprocals of sums or differences ``x[i, j]`` of the numbers `w`.

    Where these are zero up to rounding: 0 on the diagonal, else NaN. The vectors of equal numbers are not unique, so
    they have no derivative. A finite zero instead would be wrong for functions that do have one
    (``V @ diag(g(w)) @ V.T``).
    """
    size = shape_of(w)[-1]
    zero, nan = dtype_of(x).type(0), dtype_of(x).type(np.nan)
    otherwise = select_p.bind(diagonal_mask(size, size), zero, nan)
    return safe_reciprocal(x, as_column(negligible(w, order)), otherwise)


def reciprocal_gaps(w: Value, order: int) -> Value:
    """Return the matrix of ``1 / (w[j] - w[i])``; see `reciprocal_matrix`."""
    return reciprocal_matrix(sub_p.bind(as_row(w), as_column(w)), w, order)


# --- kernels ------------------------------------------------------------------------------------------------


def wide_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype that NumPy decomposes in: always double precision."""
    return COMPLEX128 if dtype.kind == "c" else FLOAT64


def load_columns(k: BlockEmitter, target: Buffer, source: Buffer, batch: Sequence[Scalar]) -> None:
    """Copy the matrix at a batch index into scratch memory of shape (columns, rows): Fortran order."""
    rows, columns = source.shape[-2:]
    with k.loop(columns) as j, k.loop(rows) as i:
        k.store(target, [j, i], k.cast(k.load(source, [*batch, i, j]), target.dtype))


def store_columns(
    k: BlockEmitter, target: Buffer, source: Buffer, batch: Sequence[Scalar], first: int = 0
) -> None:
    """Reverse `load_columns`, starting at column `first`."""
    rows, columns = target.shape[-2:]
    with k.loop(rows) as i, k.loop(columns) as j:
        value = k.load(source, [j + first if first else j, i])
        k.store(target, [*batch, i, j], k.cast(value, target.dtype))


def store_vector(k: BlockEmitter, target: Buffer, source: Buffer, batch: Sequence[Scalar]) -> None:
    """Copy a vector to a batch index."""
    with k.loop(target.shape[-1]) as i:
        k.store(target, [*batch, i], k.cast(k.load(source, [i]), target.dtype))


def settle(
    k: BlockEmitter, info: Local, results: Sequence[Buffer], batch: Sequence[Scalar], on_error: str
) -> None:
    """Handle a nonzero `info`: the kernel fails, or the results at a batch index become NaN."""
    failed = info.get().ne(0)
    if on_error == "raise":
        k.fail_if(failed)
        return
    with k.if_(failed):
        for out in results:
            filler = k.const(np.nan if is_inexact(out.dtype) else 0, out.dtype)
            _fill(k, out, list(batch), filler)


def _fill(k: BlockEmitter, out: Buffer, index: list[Any], value: Scalar) -> None:
    if len(index) == len(out.shape):
        k.store(out, index, value)
        return
    with k.loop(out.shape[len(index)]) as i:
        _fill(k, out, [*index, i], value)

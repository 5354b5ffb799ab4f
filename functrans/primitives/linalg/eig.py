"""Eigenvalues and eigenvectors of general square matrices, in batches; always complex."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core import Aval, Primitive, Zero, aval_of, complex_dtype, real_dtype
from ...core.values import ArrayLike, Param, Value
from ..elementwise.arithmetic import div_p, eq_p, le_p, mul_p, neg_p, select_p, stop_gradient_p
from ..elementwise.complexes import abs_p, complex_p, imag_p
from ..reductions.reduce import argmax_p, reduce_max_p
from ..structure.linear import add_p, batched_first, broadcast_in_dim_p, dtype_of, reduce_sum_p, shape_of
from ..structure.shape import diagonal_mask, iota
from . import spectral
from .lu import lu_p
from .matrices import (
    check_kind,
    check_square,
    diagonal_of,
    matrix_product,
    nan_instead,
    not_of_low,
    per_matrix,
)
from .solve import lu_solve


def _abstract(x: Aval, *, vectors: bool, on_error: str) -> tuple[Aval, ...]:
    check_square("eig", x)
    check_kind("eig", x.dtype)
    dtype = x.dtype if x.dtype.kind == "c" else complex_dtype(x.dtype)
    values = Aval(x.shape[:-1], dtype)
    return (values, Aval(x.shape, dtype)) if vectors else (values,)


@not_of_low("eig")
def _impl(x: ArrayLike, *, vectors: bool, on_error: str) -> tuple[np.ndarray, ...]:
    avals = _abstract(aval_of(x), vectors=vectors, on_error=on_error)

    def function(a: np.ndarray) -> tuple[np.ndarray, ...]:
        outs = np.linalg.eig(a) if vectors else (np.linalg.eigvals(a),)
        return tuple([out.astype(avals[0].dtype) for out in outs])

    problem = "the eigenvalues did not converge, or the matrix contains NaN or infinity"
    return spectral.matrix_by_matrix("eig", problem, function, (x,), avals, on_error)


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, vectors: bool, on_error: str) -> tuple[Any, Any]:
    x, t = primals[0], tangents[0]
    if type(t) is Zero or not shape_of(x)[-1]:
        outs = eig_p.bind(x, vectors=vectors, on_error=on_error)
        return outs, tuple([Zero(out) for out in outs])
    w, v = eig_p.bind(x, vectors=True, on_error=on_error)
    # A V = V W gives W' = diag(V^-1 A' V) and V' = V (F * V^-1 A' V), F[i, j] = 1 / (w[j] - w[i]) (Giles 2008).
    moved = matrix_product(spectral.cast(t, dtype_of(v)), v)
    lu, _, permutation = lu_p.bind(stop_gradient_p.bind(v))
    inner = lu_solve(v, lu, permutation, moved)
    n = shape_of(x)[-1]
    diagonal = select_p.bind(_spread(diagonal_mask(n, n), shape_of(x)), inner, dtype_of(v).type(0))
    gaps = spectral.reciprocal_gaps(w, n)
    slope = reduce_sum_p.bind(diagonal, axes=(len(shape_of(x)) - 1,))
    slope = mul_p.bind(slope, _certain(gaps, diagonal_of(lu)))
    if not vectors:
        return (w,), (slope,)
    turned = matrix_product(v, mul_p.bind(gaps, inner))
    return (w, v), (slope, _normalised(v, turned))


def _certain(gaps: Value, pivots: Value) -> Value:
    """Return 1, but NaN for multiple eigenvalues without a full set of eigenvectors.

    Their derivative is infinite. The inverse of the eigenvectors, singular up to rounding, would give arbitrary values.
    """
    axis = len(shape_of(pivots)) - 1
    zero, one, size = dtype_of(gaps).type(0), dtype_of(gaps).type(1), shape_of(pivots)[-1]
    real = np.finfo(dtype_of(gaps)).dtype
    least = neg_p.bind(reduce_max_p.bind(neg_p.bind(abs_p.bind(pivots)), axes=(axis,)))
    defective = le_p.bind(least, real.type(size * np.finfo(real).eps))
    # The reciprocal gap of equal eigenvalues is NaN.
    tied = reduce_sum_p.bind(mul_p.bind(gaps, zero), axes=(axis,))
    column = broadcast_in_dim_p.bind(defective, shape=shape_of(tied), broadcast_dimensions=tuple(range(axis)))
    return select_p.bind(column, add_p.bind(tied, one), one)


def _spread(x: ArrayLike, shape: tuple[int, ...]) -> Value:
    own = shape_of(x)
    axes = tuple(range(len(shape) - len(own), len(shape)))
    return broadcast_in_dim_p.bind(x, shape=shape, broadcast_dimensions=axes)


def _normalised(v: Value, t: Value) -> Value:
    """Return tangents that keep each column of `v` at norm 1 with its largest element real, LAPACK's normalization."""
    real = real_dtype(dtype_of(v))
    size = abs_p.bind(v)
    size = select_p.bind(eq_p.bind(imag_p.bind(v), real.type(0)), size, real.type(-1))
    shape = shape_of(v)
    axis = len(shape) - 2
    place = argmax_p.bind(size, axes=(axis,))
    chosen = eq_p.bind(iota((shape[-2], 1), 0), spectral.as_row(place))

    def largest(x: Value) -> Value:
        return reduce_sum_p.bind(select_p.bind(chosen, x, real.type(0)), axes=(axis,))

    phase = neg_p.bind(div_p.bind(largest(imag_p.bind(t)), largest(spectral.real_part(v))))
    growth = neg_p.bind(spectral.real_part(spectral.column_products(v, t)))
    factor = complex_p.bind(growth, phase)
    return add_p.bind(t, mul_p.bind(v, spectral.as_row(factor)))


def _batch(size: int, args: Sequence[Value], dims: Sequence[int], **params: Param) -> tuple[Any, Any]:
    outs = eig_p.bind(batched_first(size, args[0], dims[0]), **params)
    return outs, (0,) * len(outs)


eig_p: Primitive = Primitive(
    "eig",
    _abstract,
    _impl,
    jvp=_jvp,
    batch=_batch,
    effects=spectral.may_raise,
    guard=nan_instead,
    multiple_results=True,
    narrow=spectral.values_alone(0),
    cost=per_matrix(lambda m, n: 25 * n**3, values=lambda m, n: 10 * n**3),
)

"""Basic matrix algebra on the last two axes, for the rules of decompositions; triangular solves in place; explicit
formulas for the determinants and cofactors of small matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ...core import LOW, Aval, BlockEmitter, Buffer, DtypeError, LinAlgError, Workload, is_inexact, is_low
from ...core.values import ArrayLike, Param, Params, Value
from ..elementwise.arithmetic import ge_p, gt_p, mul_p, select_p
from ..elementwise.complexes import conj_p
from ..families import literal
from ..products.dot import dot_general_p
from ..structure.linear import Rule, add_p, dtype_of, reduce_sum_p, shape_of, transpose_p
from ..structure.shape import diagonal_mask, iota, slice_along


def matrix_transpose(x: Value, conjugate: bool = False) -> Value:
    """Exchange the last two axes, and conjugate if asked to."""
    n = len(shape_of(x))
    x = transpose_p.bind(x, permutation=(*range(n - 2), n - 1, n - 2))
    return conj_p.bind(x) if conjugate and dtype_of(x).kind == "c" else x


def symmetrized(x: Value) -> Value:
    """The mean of matrices and their conjugate transposes."""
    return mul_p.bind(literal(0.5, x), add_p.bind(x, matrix_transpose(x, conjugate=True)))


def matrix_product(x: ArrayLike, y: ArrayLike) -> Value:
    """Return ``x @ y`` for arrays with equal batch axes."""
    n = len(shape_of(x))
    batch = tuple(range(n - 2))
    return dot_general_p.bind(x, y, dimension_numbers=(((n - 1,), (n - 2,)), (batch, batch)))


def triangle(x: Value, lower: bool, strict: bool = False) -> Value:
    """Return `x` with zeros outside one triangle; `strict` zeroes the diagonal as well."""
    n, m = shape_of(x)[-2:]
    rows, columns = iota((n, 1), 0), iota((1, m), 1)
    first, second = (rows, columns) if lower else (columns, rows)
    inside = (gt_p if strict else ge_p).bind(first, second)
    return select_p.bind(inside, x, dtype_of(x).type(0))


def check_matrix(name: str, a: Any) -> None:
    """Refuse arrays with fewer than two axes."""
    if a.ndim < 2:
        raise LinAlgError(
            f"{name}: expected matrices (at least two axes), got shape {a.shape}; add an axis with x[:, None]"
        )


def nan_instead(categories: Sequence[str], args: Sequence[Value], params: Params) -> tuple[Any, Any]:
    """The slot ``guard`` of decompositions: where NaN is an error, they return it instead of raising."""
    if "nan" in categories and params["on_error"] == "raise":
        params = {**params, "on_error": "nan"}
    return [], params


def check_square(name: str, a: Any) -> None:
    """Refuse anything but square matrices or stacks of them."""
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise LinAlgError(f"{name}: expected square matrices, got shape {a.shape}")


def check_right_side(name: str, a: Any, b: Any, left_side: bool = True) -> None:
    """Refuse the `b` of ``a x = b`` (``x a = b`` without `left_side`) if its shape does not match that of `a`."""
    *batch, n = a.shape[:-1]
    if b.ndim != a.ndim or list(b.shape[:-2]) != batch or b.shape[-2 if left_side else -1] != n:
        expected = ", ".join(map(str, [*batch, n, "k"] if left_side else [*batch, "k", n]))
        raise LinAlgError(f"{name}: a has shape {a.shape}, so b must have shape ({expected}), got {b.shape}")


def check_kind(name: str, dtype: np.dtype) -> None:
    """Refuse integers and booleans, and as NumPy does, float16 and bfloat16."""
    if is_low(dtype):
        raise DtypeError(
            f"{name}: arrays of dtype {dtype} are unsupported in linear algebra; convert with .astype('float32')"
        )
    if not is_inexact(dtype):
        raise DtypeError(f"{name}: dtype {dtype} is not supported; convert to float with .astype(float)")


def not_of_low(name: str) -> Callable[[Rule], Rule]:
    """Let an implementation refuse float16 and bfloat16: NumPy would compute that of bfloat16 in float64."""

    def decorator(impl: Rule) -> Rule:
        def checked(*arrays: Value, **params: Param) -> Any:
            if arrays[0].dtype.char in LOW:
                check_kind(name, arrays[0].dtype)
            return impl(*arrays, **params)

        return checked

    return decorator


def offset_of(index: Sequence[Any], shape: Sequence[int]) -> Value:
    """Return the offset in elements of the matrix at a batch index."""
    total: Any = 0
    for d, i in enumerate(index):
        step = 1
        for n in shape[d + 1 :]:
            step *= n
        total = i * step + total
    return total


def columns_of(x: Value, start: int, stop: int) -> Value:
    """Return some columns of matrices."""
    shape = shape_of(x)
    return x if (start, stop) == (0, shape[-1]) else slice_along(x, len(shape) - 1, start, stop)


def rows_of(x: Value, start: int, stop: int) -> Value:
    """Return some rows of matrices."""
    shape = shape_of(x)
    return x if (start, stop) == (0, shape[-2]) else slice_along(x, len(shape) - 2, start, stop)


def adjoint(x: Value) -> Value:
    """Return the conjugate transpose."""
    return matrix_transpose(x, conjugate=True)


def diagonal_of(x: Value) -> Value:
    """Return the main diagonals of square matrices."""
    n = shape_of(x)[-1]
    chosen = select_p.bind(diagonal_mask(n, n), x, dtype_of(x).type(0))
    return reduce_sum_p.bind(chosen, axes=(len(shape_of(x)) - 1,))


#: Up to this size loops are faster than two BLAS calls.
SMALL = 8

Place = tuple[Buffer, Sequence[Any]]
"""A buffer, and the batch index of a matrix in it."""


def substitute(
    k: BlockEmitter, factor: Place, out: Place, *, lower: bool, transpose: bool = False, unit: bool = False
) -> None:
    """Solve ``op(factor) x = out`` for one matrix; `out` is overwritten.

    Parameters
    ----------
    factor : Place, shape (..., n, n)
        The solve reads only one triangle.
    out : Place, shape (..., n, m)
    lower, transpose, unit : bool
        Which triangle to read, whether to transpose it, whether to assume ones on its diagonal.
    """
    n, columns = out[0].shape[-2:]
    if n <= SMALL:
        _by_loops(k, factor, out, lower, transpose, unit)
        return
    matrix, target = [(x, offset_of(at, x.shape)) for x, at in (factor, out)]
    # BLAS is column-major: it sees both matrices transposed.
    uplo, diagonal = "U" if lower else "L", "U" if unit else "N"
    if columns == 1:
        k.extern("trsv", uplo, "N" if transpose else "T", diagonal, n, matrix, n, target, 1)
    else:
        trans = "T" if transpose else "N"
        k.extern("trsm", "R", uplo, trans, diagonal, columns, n, 1.0, matrix, n, target, max(columns, 1))


def _by_loops(k: BlockEmitter, factor: Place, out: Place, lower: bool, transpose: bool, unit: bool) -> None:
    (matrix, own), (x, at) = factor, out
    n, columns = x.shape[-2:]
    forward = lower != transpose
    with k.loop(n, reverse=not forward) as i:
        with k.loop(i if forward else n, 0 if forward else i + 1) as j:
            multiplier = k.load(matrix, [*own, j, i] if transpose else [*own, i, j])
            with k.loop(columns) as c:
                rest = k.load(x, [*at, i, c]) - multiplier * k.load(x, [*at, j, c])
                k.store(x, [*at, i, c], rest)
        if not unit:
            pivot = k.load(matrix, [*own, i, i])
            with k.loop(columns) as c:
                k.store(x, [*at, i, c], k.load(x, [*at, i, c]) / pivot)


# --- small matrices -----------------------------------------------------------------------------------------

# The formulas work for anything with ``+ - *``: scalars of a kernel, arrays, traced values. The cofactors of a matrix
# with four rows are sums of products with the six minors of its upper and of its lower two rows (Laplace expansion).

#: The largest size with explicit formulas: beyond it a factorization needs fewer operations.
LARGEST = 4

Rows = Sequence[Sequence[Any]]


def small_cofactors(a: Rows, one: Any) -> list[list[Any]]:
    """Return the cofactors of a matrix from its elements; `one` is the cofactor of a 1 x 1 matrix."""
    n = len(a)
    if n == 1:
        return [[one]]
    if n == 2:
        (p, q), (r, s) = a
        return [[s, -r], [-q, p]]
    if n == 3:
        # With indices modulo 3, the signs are right.
        return [
            [_minor(a[(i + 1) % 3], a[(i + 2) % 3], (j + 1) % 3, (j + 2) % 3) for j in range(3)]
            for i in range(3)
        ]
    upper, lower = _minors(a[0], a[1]), _minors(a[2], a[3])
    return [_row(a[1], lower, 1), _row(a[0], lower, -1), _row(a[3], upper, 1), _row(a[2], upper, -1)]


def small_determinant(a: Rows, one: Any) -> Any:
    """Return the determinant of a matrix from its elements, expanded along its first row."""
    if len(a) == 1:
        return a[0][0]
    if len(a) == LARGEST:
        upper, lower = _minors(a[0], a[1]), _minors(a[2], a[3])
        first = upper[0, 1] * lower[2, 3] - upper[0, 2] * lower[1, 3] + upper[0, 3] * lower[1, 2]
        return first + (upper[1, 2] * lower[0, 3] - upper[1, 3] * lower[0, 2] + upper[2, 3] * lower[0, 1])
    row, cofactors = a[0], small_cofactors(a, one)[0]
    total = row[0] * cofactors[0]
    for x, c in zip(row[1:], cofactors[1:]):
        total = total + x * c
    return total


def _minor(first: Sequence[Any], second: Sequence[Any], i: int, j: int) -> Value:
    return first[i] * second[j] - first[j] * second[i]


def _minors(first: Sequence[Any], second: Sequence[Any]) -> dict[tuple[int, int], Any]:
    return {(i, j): _minor(first, second, i, j) for i in range(4) for j in range(i + 1, 4)}


def _row(x: Sequence[Any], minors: dict[tuple[int, int], Any], sign: int) -> list[Any]:
    """Return the cofactors of a row of four, from the other row `x` of its pair, and the minors of the other pair."""
    row = []
    for j in range(4):
        p, q, r = (i for i in range(4) if i != j)
        value = x[p] * minors[q, r] - x[q] * minors[p, r] + x[r] * minors[p, q]
        row.append(-value if (sign < 0) != (j % 2 == 1) else value)
    return row


def elements(k: BlockEmitter, a: Buffer, batch: Sequence[Any]) -> list[list[Any]]:
    """Load the elements of the matrix at a batch index."""
    m, n = a.shape[-2:]
    return [[k.load(a, [*batch, i, j]) for j in range(n)] for i in range(m)]


# --- what a decomposition costs -----------------------------------------------------------------------------


def per_matrix(
    flops: Callable[[int, int], float], values: Callable[[int, int], float] | None = None
) -> Callable[..., Workload]:
    """The slot `cost` of what treats each matrix of the first operand: ``flops(rows, columns)`` for one.

    Without `vectors`, a parameter, it is `values`. Counts are those of LAPACK Working Note 41.
    """

    def cost(a: Aval, *others: Aval, **params: Param) -> Workload:
        *batch, m, n = a.shape
        count = flops if values is None or params.get("vectors", True) else values
        return Workload(prod(batch) * int(count(m, n)))

    return cost


def triangle_of(m: int, n: int) -> float:
    """The operations of a QR decomposition without its orthogonal factor."""
    k = min(m, n)
    return 2 * max(m, n) * k**2 - 2 * k**3 / 3


def singular_values(m: int, n: int) -> float:
    """The operations of a decomposition into singular values."""
    k = min(m, n)
    return 4 * max(m, n) * k**2 - 4 * k**3 / 3


def singular_vectors(m: int, n: int) -> float:
    """The operations of a decomposition into singular values and vectors."""
    k = min(m, n)
    return 6 * max(m, n) * k**2 + 20 * k**3

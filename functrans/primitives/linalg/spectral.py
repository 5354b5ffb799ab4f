"""What the rules of eigh, svd, eig, pinv and lstsq share: failures matrix by matrix, safe differences of
eigenvalues, column-major scratch matrices for LAPACK.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from ...core.aval import Aval
from ...core.dtypes import COMPLEX128, FLOAT64
from ...core.errors import LinAlgError
from ...core.ir import Atom, Eqn
from ...core.kernel import BlockEmitter, Buffer, Local, Scalar
from ...core.primitive import Effect
from ..elementwise.arithmetic import convert_element_type_p, div_p, le_p, mul_p, select_p, sub_p
from ..elementwise.complexes import abs_p, conj_p, real_p
from ..reductions.reduce import reduce_max_p
from ..structure.linear import add_p, broadcast_in_dim_p, dtype_of, reduce_sum_p, shape_of
from ..structure.shape import diagonal_mask
from .matrices import matrix_transpose, triangle


def may_raise(*, on_error: str, **params: Any) -> Effect:
    """The effects of a decomposition."""
    return Effect.RAISE if on_error == "raise" else Effect.NONE


def values_alone(place: int) -> Callable[[Eqn, Collection[Atom], bool], Eqn | None]:
    """The `narrow` rule of a decomposition whose output at that place is the values, and the others are vectors.

    The routines without vectors compute in other ways than those with: results may differ in their last bits.
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
    """The results of NumPy's `function`; where it raises for a batch, NaN for the matrices that fail.

    Parameters
    ----------
    name, problem : str
        For the message: ``"eigh: matrix 3 of the batch: the eigenvalues did not converge"``.
    function : callable
        Takes arrays with equal axes before the last two (the first decides how many), gives several results.
    arrays : sequence of ndarray
    avals : sequence of Aval
        Of the results.
    on_error : {'raise', 'nan'}

    Raises
    ------
    LinAlgError
        For the first matrix that fails, if `on_error` is ``"raise"``.
    """
    try:
        return function(*arrays)
    except np.linalg.LinAlgError:
        pass
    batch = arrays[0].shape[:-2]
    outs = tuple([np.full(a.shape, np.nan if a.dtype.kind in "fc" else 0, a.dtype) for a in avals])
    for place in np.ndindex(batch):
        try:
            found = function(*[a[place] for a in arrays])
        except np.linalg.LinAlgError:
            if on_error == "raise":
                raise LinAlgError(f"{name}: {_which(place)}: {problem}") from None
            continue
        for out, part in zip(outs, found, strict=True):
            out[place] = part
    return outs


def _which(place: tuple[int, ...]) -> str:
    if not place:
        return "the matrix"
    return f"matrix {place if len(place) > 1 else place[0]} of the batch"


# --- small algebra ------------------------------------------------------------------------------------------


def hermitian(x: Any, lower: bool) -> Any:
    """The symmetric (Hermitian) matrix of which one triangle is given; a diagonal loses its imaginary part."""
    strict = triangle(x, lower, strict=True)
    diagonal = sub_p.bind(triangle(x, lower), strict)
    if dtype_of(x).kind == "c":
        diagonal = mul_p.bind(dtype_of(x).type(0.5), add_p.bind(diagonal, conj_p.bind(diagonal)))
    return add_p.bind(add_p.bind(strict, matrix_transpose(strict, conjugate=True)), diagonal)


def real_part(x: Any) -> Any:
    """The real part, also of real numbers."""
    return real_p.bind(x) if dtype_of(x).kind == "c" else x


def cast(x: Any, dtype: np.dtype) -> Any:
    """`x` in another dtype of the same precision (real numbers as complex ones)."""
    return x if dtype_of(x) == dtype else convert_element_type_p.bind(x, dtype=dtype)


def as_row(x: Any) -> Any:
    """Numbers along the last axis as matrices of one row."""
    shape = shape_of(x)
    axes = (*range(len(shape) - 1), len(shape))
    return broadcast_in_dim_p.bind(x, shape=(*shape[:-1], 1, shape[-1]), broadcast_dimensions=axes)


def as_column(x: Any) -> Any:
    """Numbers along the last axis as matrices of one column."""
    shape = shape_of(x)
    return broadcast_in_dim_p.bind(x, shape=(*shape, 1), broadcast_dimensions=tuple(range(len(shape))))


def column_products(u: Any, v: Any) -> Any:
    """The products ``u[:, j]^H v[:, j]`` of columns."""
    u = conj_p.bind(u) if dtype_of(u).kind == "c" else u
    return reduce_sum_p.bind(mul_p.bind(u, v), axes=(len(shape_of(u)) - 2,))


def negligible(w: Any, order: int) -> Any:
    """What LAPACK cannot tell from zero among eigenvalues or singular values: ``order * eps * max |w|``.

    Its shape has an extent of one in the place of the last axis.
    """
    axis = len(shape_of(w)) - 1
    real = np.finfo(dtype_of(w)).dtype
    largest = reduce_max_p.bind(abs_p.bind(w), axes=(axis,))
    return as_column(mul_p.bind(real.type(order * np.finfo(real).eps), largest))


def safe_reciprocal(x: Any, least: Any, otherwise: Any) -> Any:
    """``1 / x``, and `otherwise` where ``|x| <= least``."""
    one = dtype_of(x).type(1)
    small = le_p.bind(abs_p.bind(x), least)
    return select_p.bind(small, otherwise, div_p.bind(one, select_p.bind(small, one, x)))


def reciprocal_matrix(x: Any, w: Any, order: int) -> Any:
    """The reciprocals of sums or differences ``x[i, j]`` of the numbers `w`.

    Where these are zero but for rounding: 0 on the diagonal, else NaN. The vectors of equal numbers are not
    determined, so they have no derivative. A zero in its place would be wrong, and finite, for functions that do
    have one (``V @ diag(g(w)) @ V.T``).
    """
    size = shape_of(w)[-1]
    zero, nan = dtype_of(x).type(0), dtype_of(x).type(np.nan)
    otherwise = select_p.bind(diagonal_mask(size, size), zero, nan)
    return safe_reciprocal(x, as_column(negligible(w, order)), otherwise)


def reciprocal_gaps(w: Any, order: int) -> Any:
    """The matrix of ``1 / (w[j] - w[i])``; see `reciprocal_matrix`."""
    return reciprocal_matrix(sub_p.bind(as_row(w), as_column(w)), w, order)


# --- kernels ------------------------------------------------------------------------------------------------


def wide_dtype(dtype: np.dtype) -> np.dtype:
    """What NumPy computes decompositions in: always double precision."""
    return COMPLEX128 if dtype.kind == "c" else FLOAT64


def load_columns(k: BlockEmitter, target: Buffer, source: Buffer, batch: Sequence[Scalar]) -> None:
    """Copy the matrix at a batch index into scratch memory of shape (columns, rows): Fortran order."""
    rows, columns = source.shape[-2:]
    with k.loop(columns) as j, k.loop(rows) as i:
        k.store(target, [j, i], k.cast(k.load(source, [*batch, i, j]), target.dtype))


def store_columns(
    k: BlockEmitter, target: Buffer, source: Buffer, batch: Sequence[Scalar], first: int = 0
) -> None:
    """The way back from `load_columns`, from the first of the columns on."""
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
    """What a non-zero `info` means: failure of the kernel, or NaN in the results at a batch index."""
    failed = info.get().ne(0)
    if on_error == "raise":
        k.fail_if(failed)
        return
    with k.if_(failed):
        for out in results:
            filler = k.const(np.nan if out.dtype.kind in "fc" else 0, out.dtype)
            _fill(k, out, list(batch), filler)


def _fill(k: BlockEmitter, out: Buffer, index: list[Any], value: Scalar) -> None:
    if len(index) == len(out.shape):
        k.store(out, index, value)
        return
    with k.loop(out.shape[len(index)]) as i:
        _fill(k, out, [*index, i], value)

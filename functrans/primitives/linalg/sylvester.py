"""The Sylvester equation ``a x + x b = q``, and matrix square roots, whose derivative solves one. Both call SciPy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from ...core import Aval, LinAlgError, Linear, Primitive, Workload, Zero, complex_dtype
from ...core.values import ArrayLike, Tangent, Value
from ...runtime.libraries import scipy
from ..axes import same_dtype
from ..elementwise.arithmetic import neg_p, sub_p
from ..structure.linear import batched_first, dtype_of, shape_of
from .matrices import check_kind, check_square, matrix_product, matrix_transpose, not_of_low, per_matrix
from .spectral import cast

# --- sylvester ----------------------------------------------------------------------------------------------


def _sylvester_abstract(a: Aval, b: Aval, q: Aval, *, rtol: float) -> Aval:
    check_square("solve_sylvester", a)
    check_square("solve_sylvester", b)
    check_kind("solve_sylvester", same_dtype("solve_sylvester", (a, b, q)))
    if q.shape != (*a.shape[:-1], b.shape[-1]) or b.shape[:-2] != a.shape[:-2]:
        raise LinAlgError(
            f"solve_sylvester: a has shape {a.shape} and b {b.shape}, so q must have shape "
            f"{(*a.shape[:-1], b.shape[-1])} (and a and b equal batch axes), got {q.shape}"
        )
    return q.strong()


@not_of_low("solve_sylvester")
def _sylvester_impl(a: Value, b: Value, q: Value, *, rtol: float) -> np.ndarray:
    out = np.full(q.shape, np.nan, q.dtype)
    for place in np.ndindex(q.shape[:-2]) if q.size else ():
        if all(np.isfinite(x[place]).all() for x in (a, b, q)) and _is_regular(a[place], b[place], rtol):
            out[place] = scipy.linalg.solve_sylvester(a[place], b[place], q[place])
    return out


def _is_regular(a: np.ndarray, b: np.ndarray, rtol: float) -> bool:
    """Return whether no sum of eigenvalues of `a` and `b` is zero up to rounding: LAPACK would perturb such a sum."""
    v, w = np.linalg.eigvals(a), np.linalg.eigvals(b)
    least = rtol * max(np.abs(v).max(), np.abs(w).max())
    return bool(np.abs(v[:, None] + w).min() > least)


def solve_sylvester(a: Value, b: Value, q: Value) -> Value:
    """Solve ``a x + x b = q``; NaN where the solution is not unique."""
    order = shape_of(a)[-1] + shape_of(b)[-1]
    return sylvester_p.bind(a, b, q, rtol=float(order * np.finfo(dtype_of(a)).eps))


def _sylvester_jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], *, rtol: float
) -> tuple[Value, Tangent]:
    a, b, q = primals
    t_a, t_b, t_q = tangents
    x = sylvester_p.bind(a, b, q, rtol=rtol)
    right = None if type(t_q) is Zero else t_q
    # a x' + x' b = q' - a' x - x b'.
    for moved in (
        None if type(t_a) is Zero else matrix_product(t_a, x),
        None if type(t_b) is Zero else matrix_product(x, t_b),
    ):
        if moved is not None:
            right = neg_p.bind(moved) if right is None else sub_p.bind(right, moved)
    return x, Zero(x) if right is None else sylvester_p.bind(a, b, right, rtol=rtol)


def _sylvester_transpose(ct: Value, a: ArrayLike, b: ArrayLike, q: Value, *, rtol: float) -> list[Tangent]:
    assert type(a) is not Linear, "the solution is not linear in a"
    assert type(b) is not Linear, "the solution is not linear in b"
    return [None, None, sylvester_p.bind(matrix_transpose(a), matrix_transpose(b), ct, rtol=rtol)]


sylvester_p: Primitive = Primitive(
    "sylvester",
    _sylvester_abstract,
    _sylvester_impl,
    jvp=_sylvester_jvp,
    transpose=_sylvester_transpose,
    batch=lambda size, args, dims, **params: (
        sylvester_p.bind(*[batched_first(size, x, d) for x, d in zip(args, dims)], **params),
        0,
    ),
    cost=lambda a, b, q, **params: Workload(25 * (a.size * a.shape[-1] + b.size * b.shape[-1])),
)

# --- sqrtm --------------------------------------------------------------------------------------------------


def _sqrtm_abstract(x: Aval) -> Aval:
    check_square("sqrtm", x)
    check_kind("sqrtm", x.dtype)
    return Aval(x.shape, x.dtype if x.dtype.kind == "c" else complex_dtype(x.dtype))


@not_of_low("sqrtm")
def _sqrtm_impl(x: Value) -> np.ndarray:
    dtype = np.result_type(x.dtype, np.complex64)
    if not x.size:
        return np.zeros(x.shape, dtype)
    try:
        if _takes_stacks():
            return np.asarray(scipy.linalg.sqrtm(x)).astype(dtype)
        return np.reshape([_root(y) for y in x.reshape(-1, *x.shape[-2:])], x.shape).astype(dtype)
    except np.linalg.LinAlgError as error:
        raise LinAlgError(
            f"sqrtm: SciPy finds no square root, also where the matrix has NaN: {error}"
        ) from None


def _root(matrix: np.ndarray) -> np.ndarray:
    return scipy.linalg.sqrtm(matrix) if np.isfinite(matrix).all() else np.full(matrix.shape, np.nan)


@cache
def _takes_stacks() -> bool:
    """Whether SciPy's `sqrtm` takes several matrices, and NaN, as it does since 1.16."""
    major, minor, *_ = scipy.__version__.split(".")
    return (int(major), int(minor)) >= (1, 16)


def _sqrtm_jvp(primals: Sequence[Value], tangents: Sequence[Tangent]) -> tuple[Value, Tangent]:
    root = sqrtm_p.bind(*primals)
    t = tangents[0]
    if type(t) is Zero:
        return root, Zero(root)
    # root root' + root' root = x' (Higham, Functions of Matrices, 2008, section 6.1). The root of a singular matrix has
    # an eigenvalue that is the square root of a rounding error.
    rtol = float(np.sqrt(shape_of(root)[-1] * np.finfo(dtype_of(root)).eps))
    return root, sylvester_p.bind(root, root, cast(t, dtype_of(root)), rtol=rtol)


sqrtm_p: Primitive = Primitive(
    "sqrtm",
    _sqrtm_abstract,
    _sqrtm_impl,
    jvp=_sqrtm_jvp,
    batch=lambda size, args, dims: (sqrtm_p.bind(batched_first(size, args[0], dims[0])), 0),
    cost=per_matrix(lambda m, n: 25 * n**3),
)

"""Condensed forms of square matrices: Schur, Hessenberg, tridiagonal. All call LAPACK through SciPy, matrix by matrix.

They have no derivative rules: which of many orthogonal bases LAPACK chooses is not a smooth function of the matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core import INT64, Aval, Primitive, Zero, aval_of, complex_dtype, is_float, is_inexact, real_dtype
from ...core.values import Param, Tangent, Value
from ...errors import LinAlgError, NoRuleError
from ...runtime.libraries import scipy
from ..structure.linear import batched_first
from . import spectral
from .matrices import check_kind, check_square, not_of_low, per_matrix

_NO_DERIVATIVE = (
    "{name} has no derivative: the basis that LAPACK chooses is not a smooth function of the matrix. Differentiate "
    "what does not depend on it (eig, eigh, expm, sqrtm, funm, solve), or hold the matrix constant with "
    "functrans.lax.stop_gradient"
)


def _decomposition(
    name: str,
    abstract: Callable[..., tuple[Aval, ...]],
    function: Callable[..., Any],
    flops: Callable[[int, int], float],
) -> Primitive:
    """A primitive that calls `function` for each matrix, in so many operations, and has no derivative."""
    this: list[Primitive] = []

    def impl(*arrays: Value, on_error: str, **params: Param) -> tuple[np.ndarray, ...]:
        avals = abstract(*map(aval_of, arrays), on_error=on_error, **params)
        outs = tuple([np.zeros(a.shape, a.dtype) for a in avals])
        for place in np.ndindex(arrays[0].shape[:-2]) if arrays[0].size else ():
            given = [np.ascontiguousarray(a[place]) for a in arrays]
            where = f"matrix {place} of the batch" if place else "the matrix"
            if not all(np.isfinite(a).all() for a in given):
                results: Any = None
                problem = "contains NaN or infinity"
            else:
                try:
                    results = function(*given, **params)
                except np.linalg.LinAlgError as error:
                    results, problem = None, str(error)
            if results is None and on_error == "raise":
                raise LinAlgError(f"{name}: {where}: {problem}")
            for out, part in zip(outs, [np.nan] * len(outs) if results is None else results, strict=True):
                out[place] = part if results is not None or is_inexact(out.dtype) else 0
        return outs

    def jvp(primals: Sequence[Value], tangents: Sequence[Tangent], **params: Param) -> tuple[Any, Any]:
        if any(type(t) is not Zero for t in tangents):
            raise NoRuleError(_NO_DERIVATIVE.format(name=name))
        outs = this[0].bind(*primals, **params)
        return outs, tuple([Zero(out) for out in outs])

    def batch(size: int, args: Sequence[Any], dims: Sequence[Any], **params: Param) -> tuple[Any, Any]:
        outs = this[0].bind(*[batched_first(size, x, d) for x, d in zip(args, dims)], **params)
        return outs, (0,) * len(outs)

    this.append(
        Primitive(
            name,
            abstract,
            not_of_low(name)(impl),
            jvp=jvp,
            batch=batch,
            effects=spectral.may_raise,
            multiple_results=True,
            cost=per_matrix(flops),
        )
    )
    return this[0]


def _square(name: str, x: Aval) -> Aval:
    check_square(name, x)
    check_kind(name, x.dtype)
    return x.strong()


# --- Schur --------------------------------------------------------------------------------------------------


def _schur_abstract(x: Aval, *, output: str, sort: Any, on_error: str) -> tuple[Aval, ...]:
    x = _square("schur", x)
    form = Aval(x.shape, complex_dtype(x.dtype)) if output == "complex" and is_float(x.dtype) else x
    return (form, form, Aval(x.shape[:-2], INT64))


def _schur(x: np.ndarray, *, output: str, sort: Any) -> tuple[Value, ...]:
    if sort is None:
        return (*scipy.linalg.schur(x, output=output, check_finite=False), 0)
    return tuple(scipy.linalg.schur(x, output=output, sort=sort, check_finite=False))


#: The form, the vectors, and how many eigenvalues `sort` moved to the front.
schur_p = _decomposition("schur", _schur_abstract, _schur, lambda m, n: 25 * n**3)


def _complex_form_abstract(t: Aval, z: Aval, *, on_error: str) -> tuple[Aval, Aval]:
    _square("rsf2csf", t)
    _square("rsf2csf", z)
    if t.shape != z.shape:
        raise LinAlgError(f"rsf2csf: T and Z must have one shape, got {t.shape} and {z.shape}")
    dtype = t.dtype if t.dtype.kind == "c" else complex_dtype(t.dtype)
    return Aval(t.shape, dtype), Aval(t.shape, dtype)


complex_schur_p = _decomposition(
    "rsf2csf",
    _complex_form_abstract,
    lambda t, z: scipy.linalg.rsf2csf(t, z, check_finite=False),
    lambda m, n: 10 * n**3,
)

# --- Hessenberg ---------------------------------------------------------------------------------------------


def _hessenberg_abstract(x: Aval, *, on_error: str) -> tuple[Aval, Aval]:
    x = _square("hessenberg", x)
    return x, Aval((*x.shape[:-2], max(x.shape[-1] - 1, 0)), x.dtype)


def _hessenberg(x: np.ndarray) -> tuple[Value, Value]:
    form, taus, _ = scipy.linalg.get_lapack_funcs("gehrd", (x,))(x, lo=0, hi=len(x) - 1)
    return form, taus[: len(x) - 1]


hessenberg_p = _decomposition("hessenberg", _hessenberg_abstract, _hessenberg, lambda m, n: 10 * n**3 / 3)

# --- tridiagonal --------------------------------------------------------------------------------------------


def _tridiagonal_abstract(x: Aval, *, lower: bool, on_error: str) -> tuple[Aval, ...]:
    x = _square("tridiagonal", x)
    *batch, n, _ = x.shape
    real = real_dtype(x.dtype)
    rest = (*batch, max(n - 1, 0))
    return x, Aval((*batch, n), real), Aval(rest, real), Aval(rest, x.dtype)


def _tridiagonal(x: np.ndarray, *, lower: bool) -> tuple[Any, ...]:
    name = "hetrd" if x.dtype.kind == "c" else "sytrd"
    form, d, e, taus, _ = scipy.linalg.get_lapack_funcs(name, (x,))(x, lower=int(lower))
    return form, d, e, taus


tridiagonal_p = _decomposition("tridiagonal", _tridiagonal_abstract, _tridiagonal, lambda m, n: 4 * n**3 / 3)

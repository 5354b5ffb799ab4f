"""``scipy.special``: erf and the normal distribution, and integrals of exp, sin and cos of squares."""

from __future__ import annotations

import math

from ...core.values import ArrayLike, Value
from ...frontend.checked import checked
from ...primitives import ops, special_ops
from ...primitives.ops import binary, dtype_of, finish, literal, unary
from ...primitives.ufunc_fronts import register_special
from ...runtime.libraries import special_ufuncs as sp
from .arguments import by_kind, real_float

__all__ = [
    "dawsn", "erf", "erfc", "erfcinv", "erfcx", "erfi", "erfinv", "fresnel", "log_ndtr", "ndtr", "ndtri", "ndtri_exp",
    "owens_t", "wofz",
]  # fmt: skip

erf = unary(sp.erf, by_kind(ops.erf_p, special_ops.erf_complex_p), "Error function.")
erfc = unary(
    sp.erfc,
    by_kind(ops.erfc_p, special_ops.erfc_complex_p),
    "Complementary error function ``1 - erf(x)``.",
)
erfinv = unary(sp.erfinv, special_ops.erfinv_p.bind, "The inverse of `erf`.")
erfcinv = unary(
    sp.erfcinv,
    special_ops.erfcinv_p.bind,
    "The inverse of `erfc`.",
    ("[0.5, 1.0]", "Array([ 0.47693628, -0.        ])"),
)


def _erfcx(x: Value) -> Value:
    if ops.dtype_of(x).kind == "c":
        return special_ops.erfcx_complex_p.bind(x)
    return special_ops.erfcx_p.bind(x, m=0)


def _dawsn(x: Value) -> Value:
    if ops.dtype_of(x).kind == "c":
        return special_ops.dawsn_complex_p.bind(x)
    return special_ops.dawsn_p.bind(x, m=0)


erfcx = unary(
    sp.erfcx,
    _erfcx,
    "Scaled complementary error function ``exp(x**2) * erfc(x)``.",
    ("[0.0, 30.0]", "Array([1.        , 0.01879589])"),
)
dawsn = unary(
    sp.dawsn,
    _dawsn,
    "Dawson's integral: ``exp(-x**2)`` times that of ``exp(t**2)`` from 0 to `x`.",
    ("[0.0, 1.0]", "Array([0.        , 0.53807951])"),
)
erfi = unary(
    sp.erfi,
    by_kind(special_ops.erfi_p, special_ops.erfi_complex_p),
    "``-1j * erf(1j * x)``.",
    ("[0.0, 1.0]", "Array([0.        , 1.65042576])"),
)
wofz = unary(
    sp.wofz,
    special_ops.wofz_p.bind,
    "Faddeeva's function ``exp(-x**2) * erfc(-1j * x)``.",
    ("1.0 + 1.0j", "Array(0.30474421+0.20821894j)"),
)


def _ndtr(x: Value) -> Value:
    if dtype_of(x).kind == "c":
        return special_ops.ndtr_complex_p.bind(x)
    half = literal(0.5, x)
    return ops.mul_p.bind(half, ops.erfc_p.bind(ops.mul_p.bind(literal(-math.sqrt(0.5), x), x)))


ndtr = unary(sp.ndtr, _ndtr, "Normal distribution function, ``erfc(-x / sqrt(2)) / 2``.")
ndtri = unary(sp.ndtri, special_ops.ndtri_p.bind, "The inverse of `ndtr`.")
log_ndtr = unary(
    sp.log_ndtr,
    by_kind(special_ops.log_ndtr_p, special_ops.log_ndtr_complex_p),
    "Logarithm of the normal distribution function, accurate in both tails.",
    ("[-30.0, 0.0]", "Array([-454.32124396,   -0.69314718])"),
)
ndtri_exp = unary(
    sp.ndtri_exp,
    special_ops.ndtri_exp_p.bind,
    "The inverse of `log_ndtr`.",
    ("[-500.0, -0.1]", "Array([-31.48429978,   1.3096178 ])"),
)
owens_t = binary(
    sp.owens_t,
    special_ops.owens_t_p.bind,
    "Owen's T: the probability of ``X > x``, ``0 < Y < y X`` for independent normal X, Y.",
    ("1.0, [0.5, 2.0]", "Array([0.04306469, 0.07846819])"),
)


@checked
def fresnel(z: ArrayLike) -> tuple[Value, Value]:
    """Fresnel's integrals: of ``sin(pi t**2 / 2)`` and ``cos(pi t**2 / 2)`` from 0 to `z`.

    Parameters
    ----------
    z : array_like
        Real.

    Returns
    -------
    tuple of Array
        S and C.

    References
    ----------
    DLMF 7.2.7, 7.2.8.

    Examples
    --------
    >>> from functrans.scipy.special import fresnel
    >>> fresnel([0.0, 1.0])
    (Array([0.        , 0.43825915]), Array([0.       , 0.7798934]))
    """
    x = real_float(z, "fresnel")
    return finish(special_ops.fresnel_s_p.bind(x)), finish(special_ops.fresnel_c_p.bind(x))


register_special("fresnel", fresnel)

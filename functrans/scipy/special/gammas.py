"""``scipy.special``: the gamma function and its kin, incomplete gamma and beta functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...arrays.arguments import shown
from ...arrays.array import Array
from ...core import concrete
from ...core.values import ArrayLike
from ...errors import ArgumentError, ArgumentValueError
from ...frontend.checked import checked
from ...numpy.dispatch import array_operand
from ...primitives import ops, special_ops
from ...primitives.ops import binary, common, dtype_of, finish, literal, shape_of, ternary, unary
from ...runtime.libraries import scipy
from ...runtime.libraries import special_ufuncs as sp
from .arguments import by_kind, count_of, of_parameters, real_float

__all__ = [
    "bernoulli", "beta", "betainc", "betaincc", "betainccinv", "betaincinv", "betaln", "binom", "comb", "digamma",
    "factorial", "gamma", "gammainc", "gammaincc", "gammainccinv", "gammaincinv", "gammaln", "gammasgn", "loggamma",
    "multigammaln", "poch", "polygamma", "psi", "rgamma", "zeta",
]  # fmt: skip

gamma = unary(
    sp.gamma,
    by_kind(special_ops.gamma_p, special_ops.gamma_complex_p),
    "Gamma function.",
    ("[0.5, 4.0]", "Array([1.77245385, 6.        ])"),
)
rgamma = unary(
    sp.rgamma,
    by_kind(special_ops.rgamma_p, special_ops.rgamma_complex_p),
    "``1 / gamma(x)``, and 0 at the poles of `gamma`.",
    ("[0.5, -1.0]", "Array([0.56418958, 0.        ])"),
)
gammaln = unary(sp.gammaln, ops.lgamma_p.bind, "Logarithm of the absolute value of the gamma function.")
loggamma = unary(
    sp.loggamma,
    by_kind(special_ops.loggamma_p, special_ops.loggamma_complex_p),
    "Principal branch of the logarithm of the gamma function; NaN for negative real numbers.",
    ("[0.5, 4.0]", "Array([0.57236494, 1.79175947])"),
)
gammasgn = unary(
    sp.gammasgn,
    special_ops.gammasgn_p.bind,
    "Sign of the gamma function, NaN at its poles.",
    ("[0.5, -0.5]", "Array([ 1., -1.])"),
)
digamma = psi = unary(
    sp.psi,
    by_kind(ops.digamma_p, special_ops.psi_complex_p),
    "Digamma function, the derivative of `gammaln`. For complex numbers it has no derivative.",
)
beta = binary(
    sp.beta, special_ops.beta_p.bind, "Beta function.", ("2.0, [1.0, 3.0]", "Array([0.5       , 0.08333333])")
)
betaln = binary(sp.betaln, ops.betaln_p.bind, "Logarithm of the absolute value of the beta function.")
poch = binary(
    sp.poch,
    special_ops.poch_p.bind,
    "Pochhammer's symbol ``gamma(x + y) / gamma(x)``.",
    ("2.0, [1.0, 3.0]", "Array([ 2., 24.])"),
)
binom = binary(
    sp.binom,
    special_ops.binom_p.bind,
    "Binomial coefficient of real numbers, `x` over `y`.",
    ("5.0, [2.0, 2.5]", "Array([10.        , 10.86497745])"),
)

_THRICE = "Differentiable at most three times in `x`."
_ONCE = "Differentiable at most once in `x`, `y`."
gammainc = binary(
    sp.gammainc,
    special_ops.gammainc_p.bind,
    f"Regularised lower incomplete gamma function, of a shape and an argument. {_THRICE}",
)
gammaincc = binary(
    sp.gammaincc,
    special_ops.gammaincc_p.bind,
    f"Regularised upper incomplete gamma function, of a shape and an argument. {_THRICE}",
)
gammaincinv = binary(
    sp.gammaincinv, special_ops.gammaincinv_p.bind, f"Inverse of ``gammainc(x, .)``. {_THRICE}"
)
gammainccinv = binary(
    sp.gammainccinv, special_ops.gammainccinv_p.bind, f"Inverse of ``gammaincc(x, .)``. {_THRICE}"
)
betainc = ternary(
    sp.betainc,
    special_ops.betainc_p.bind,
    f"Regularised incomplete beta function, of two shapes and an argument. {_ONCE}",
)
betaincc = ternary(sp.betaincc, special_ops.betaincc_p.bind, f"``1 - betainc(x, y, z)``. {_ONCE}")
betaincinv = ternary(
    sp.betaincinv, special_ops.betaincinv_p.bind, f"Inverse of ``betainc(x, y, .)``. {_ONCE}"
)
betainccinv = ternary(
    sp.betainccinv, special_ops.betainccinv_p.bind, f"Inverse of ``betaincc(x, y, .)``. {_ONCE}"
)


@checked
def polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    """Derivative of order `n` of the digamma function.

    Parameters
    ----------
    n : int, or array_like of int
        Not negative. 0 gives `digamma`. Arrays broadcast against `x`.
    x : array_like

    Returns
    -------
    Array

    Raises
    ------
    ArgumentError, ArgumentValueError
        If `n` is no integer, or is known to be negative. (Where a traced one is, the result is NaN.)

    Notes
    -----
    ``(-1)**(n + 1) * n! * zeta(n + 1, x)``; for negative `x` by reflection. If `n` is traced, or has more than 16
    different values, SciPy's zeta function computes the result, which kernels call through Python.

    References
    ----------
    DLMF 5.15.

    Examples
    --------
    >>> from functrans.scipy.special import polygamma
    >>> import numpy as np
    >>> bool(abs(polygamma(1, 1.0) - np.pi**2 / 6) < 1e-15)
    True
    >>> polygamma([0, 1, 2], 1.0)
    Array([-0.57721566,  1.64493407, -2.40411381])
    """
    orders = array_operand(n, "polygamma")
    value, known = real_float(x, "polygamma", 1), concrete(orders)
    if dtype_of(orders).kind not in "iu":
        raise ArgumentError(
            f"polygamma: the order must be a known integer or an array of integers, got {shown(n)}"
        )
    if known is not None and not shape_of(orders):
        order = count_of(known, "polygamma", "the order")
        return finish(ops.polygamma_p.bind(value, m=order) if order else ops.digamma_p.bind(value))
    if known is not None and (known < 0).any():
        raise ArgumentValueError(f"polygamma: orders must not be negative, got {np.min(known)}")
    shape = ops.broadcast_shapes("polygamma", shape_of(orders), shape_of(value))
    orders = ops.broadcast_to(ops.convert(orders, dtype_of(value)), shape)
    return finish(special_ops.polygamma_of(orders, ops.broadcast_to(value, shape)))


@checked
def zeta(x: ArrayLike, q: ArrayLike = 1.0) -> Any:
    """Hurwitz's zeta function, the sum of ``(n + q)**-x``; Riemann's for `q` = 1.

    Parameters
    ----------
    x, q : array_like
        They broadcast together.

    Returns
    -------
    Array

    Raises
    ------
    NoRuleError
        When differentiated in `x`.

    References
    ----------
    DLMF 25.11.

    Examples
    --------
    >>> from functrans.scipy.special import zeta
    >>> zeta(2.0)
    Array(1.64493407)
    """
    return of_parameters("zeta", special_ops.zeta_p, x, q)


@checked
def multigammaln(a: ArrayLike, d: int) -> Array:
    """Logarithm of the multivariate gamma function.

    Parameters
    ----------
    a : array_like
        Above ``(d - 1) / 2``.
    d : int
        The dimension: known, and at least 1.

    Returns
    -------
    Array

    Raises
    ------
    ArgumentError, ArgumentValueError
        If `d` is not such a number.

    Examples
    --------
    >>> from functrans.scipy.special import multigammaln
    >>> multigammaln(3.0, 2)
    Array(1.55019499)
    """
    dimension = count_of(d, "multigammaln", "d")
    if dimension == 0:
        raise ArgumentValueError("multigammaln: d must be at least 1, got 0")
    if dimension > 10_000:
        raise ArgumentValueError(
            f"multigammaln: d must be at most 10000, got {dimension}: it adds as many terms"
        )
    value = real_float(a, "multigammaln")
    total = literal(dimension * (dimension - 1) / 4 * math.log(math.pi), value)
    for j in range(dimension):
        total = ops.add_p.bind(ops.lgamma_p.bind(ops.sub_p.bind(value, literal(j / 2, value))), total)
    return finish(total)


@checked
def factorial(n: ArrayLike, exact: bool = False) -> Array:
    """``gamma(n + 1)``, and 0 for negative numbers.

    Parameters
    ----------
    n : array_like
        Real numbers.
    exact : bool
        Only False: arrays cannot hold Python integers of any size.

    Returns
    -------
    Array

    Raises
    ------
    ArgumentValueError
        If `exact` is True.

    Examples
    --------
    >>> from functrans.scipy.special import factorial
    >>> factorial([0, 3, 5])
    Array([  1.,   6., 120.])
    """
    if exact:
        raise ArgumentValueError("factorial: exact=True is not supported; call math.factorial")
    value = real_float(n, "factorial")
    zero = literal(0.0, value)
    negative = ops.lt_p.bind(value, zero)
    shifted = ops.add_p.bind(ops.select_p.bind(negative, zero, value), literal(1.0, value))
    return finish(ops.select_p.bind(negative, zero, special_ops.gamma_p.bind(shifted)))


@checked
def comb(N: Any, k: ArrayLike, *, exact: bool = False, repetition: bool = False) -> Array:
    """Number of ways to choose `k` of `N` things; 0 where `k` is above `N`, or one is negative.

    With repetition it is `binom` of ``N + k - 1`` and `k`, and 1 for ``k = 0`` of no things, as in SciPy.

    Parameters
    ----------
    N, k : array_like
        Real numbers.
    exact : bool
        Only False: arrays cannot hold Python integers of any size.
    repetition : bool
        Whether a thing may be chosen again.

    Returns
    -------
    Array
        A float: the derivative is that of `binom`.

    Raises
    ------
    ArgumentValueError
        If `exact` is True.

    Examples
    --------
    >>> from functrans.scipy.special import comb
    >>> comb(5, [2, 6])
    Array([10.,  0.])
    """
    if exact:
        raise ArgumentValueError("comb: exact=True is not supported; call math.comb")
    total, count = common(real_float(N, "comb"), real_float(k, "comb", 1))
    ops.broadcast_shapes("comb", shape_of(total), shape_of(count))
    zero = literal(0.0, total)
    if repetition:
        bags = special_ops.binom_p.bind(
            ops.add_p.bind(total, ops.sub_p.bind(count, literal(1.0, count))), count
        )
        none = ops.and_p.bind(ops.eq_p.bind(count, literal(0.0, count)), ops.ge_p.bind(total, zero))
        return finish(ops.select_p.bind(none, literal(1.0, total), bags))
    inside = ops.and_p.bind(ops.le_p.bind(count, total), ops.ge_p.bind(total, zero))
    inside = ops.and_p.bind(inside, ops.ge_p.bind(count, literal(0.0, count)))
    return finish(ops.select_p.bind(inside, special_ops.binom_p.bind(total, count), zero))


@checked
def bernoulli(n: int) -> Array:
    """The Bernoulli numbers from number 0 to number `n`, with B(1) = -1/2.

    Parameters
    ----------
    n : int
        Known, and not negative.

    Returns
    -------
    Array, shape (n + 1,)

    Raises
    ------
    ArgumentError, ArgumentValueError
        If `n` is not such a number.

    Examples
    --------
    >>> from functrans.scipy.special import bernoulli
    >>> bernoulli(4)
    Array([ 1.        , -0.5       ,  0.16666667,  0.        , -0.03333333])
    """
    count = count_of(n, "bernoulli", "n")
    return finish(scipy.special.bernoulli(count)[: count + 1])

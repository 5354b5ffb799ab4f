"""``scipy.special``: Bessel functions, hypergeometric functions, elliptic integrals, spherical harmonics."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays.array import Array
from ...core.values import ArrayLike, Value
from ...errors import ArgumentError, ArgumentValueError
from ...frontend.checked import checked
from ...primitives import ops, special_ops
from ...primitives.ops import binary, dtype_of, finish, quaternary, shape_of, ternary, unary
from ...runtime.libraries import special_ufuncs as sp
from .arguments import by_kind, count_of, of_floats, of_parameters, real_float

__all__ = [
    "bessel_jn", "ellipe", "ellipk", "hyp0f1", "hyp1f1", "hyp2f1", "hyperu", "i0", "i0e", "i1", "i1e", "iv", "ive",
    "j0", "j1", "jn", "jv", "k0", "k0e", "k1", "k1e", "kn", "kv", "kve", "sph_harm_y", "y0", "y1", "yn", "yv",
]  # fmt: skip

_X_ONLY = "Differentiable in `y` only."


def _bessel_i(n: int, scaled: bool) -> Any:
    return lambda x: ops.bessel_i_p.bind(x, n=n, scaled=scaled)


i0 = unary(sp.i0, _bessel_i(0, False), "Modified Bessel function of order 0.")
i1 = unary(sp.i1, _bessel_i(1, False), "Modified Bessel function of order 1.")
i0e = unary(sp.i0e, _bessel_i(0, True), "Modified Bessel function of order 0, times ``exp(-|x|)``.")
i1e = unary(sp.i1e, _bessel_i(1, True), "Modified Bessel function of order 1, times ``exp(-|x|)``.")
j0 = unary(
    sp.j0,
    special_ops.j0_p.bind,
    "Bessel function of the first kind, of order 0.",
    ("[0.0, 2.0]", "Array([1.        , 0.22389078])"),
)
j1 = unary(
    sp.j1,
    special_ops.j1_p.bind,
    "Bessel function of the first kind, of order 1.",
    ("[0.0, 2.0]", "Array([0.        , 0.57672481])"),
)
y0 = unary(
    sp.y0,
    special_ops.y0_p.bind,
    "Bessel function of the second kind, of order 0.",
    ("[1.0, 2.0]", "Array([0.08825696, 0.51037567])"),
)
y1 = unary(
    sp.y1,
    special_ops.y1_p.bind,
    "Bessel function of the second kind, of order 1.",
    ("[1.0, 2.0]", "Array([-0.78121282, -0.10703243])"),
)
k0 = unary(
    sp.k0,
    special_ops.k0_p.bind,
    "Modified Bessel function of the second kind, of order 0.",
    ("[1.0, 2.0]", "Array([0.42102444, 0.11389387])"),
)
k1 = unary(
    sp.k1,
    special_ops.k1_p.bind,
    "Modified Bessel function of the second kind, of order 1.",
    ("[1.0, 2.0]", "Array([0.60190723, 0.13986588])"),
)
k0e = unary(
    sp.k0e,
    special_ops.k0e_p.bind,
    "`k0` times ``exp(x)``.",
    ("[1.0, 2.0]", "Array([1.14446308, 0.84156822])"),
)
k1e = unary(
    sp.k1e,
    special_ops.k1e_p.bind,
    "`k1` times ``exp(x)``.",
    ("[1.0, 2.0]", "Array([1.63615349, 1.03347685])"),
)
jn = jv = binary(
    sp.jv,
    by_kind(special_ops.jv_p, special_ops.jv_complex_p),
    f"Bessel function of the first kind, of order `x` at `y`. {_X_ONLY}",
    ("2.0, [0.0, 2.0]", "Array([0.        , 0.35283403])"),
)
yv = binary(
    sp.yv,
    by_kind(special_ops.yv_p, special_ops.yv_complex_p),
    f"Bessel function of the second kind, of order `x` at `y`. {_X_ONLY}",
    ("2.0, [1.0, 2.0]", "Array([-1.65068261, -0.6174081 ])"),
)
iv = binary(
    sp.iv,
    by_kind(special_ops.iv_p, special_ops.iv_complex_p),
    f"Modified Bessel function of the first kind, of order `x` at `y`. {_X_ONLY}",
    ("2.0, [0.0, 2.0]", "Array([0.        , 0.68894845])"),
)
kv = binary(
    sp.kv,
    by_kind(special_ops.kv_p, special_ops.kv_complex_p),
    f"Modified Bessel function of the second kind, of order `x` at `y`. {_X_ONLY}",
    ("2.0, [1.0, 2.0]", "Array([1.6248389 , 0.25375975])"),
)
ive = binary(
    sp.ive,
    lambda v, x: special_ops.ive_p.bind(v, real_float(x, "ive", 1)),
    f"`iv` times ``exp(-abs(y))``, of real numbers. {_X_ONLY}",
    ("2.0, [0.0, 2.0]", "Array([0.        , 0.09323903])"),
)
kve = binary(
    sp.kve,
    by_kind(special_ops.kve_p, special_ops.kve_complex_p),
    f"`kv` times ``exp(y)``. {_X_ONLY}",
    ("2.0, [1.0, 2.0]", "Array([4.41677005, 1.87504506])"),
)


def _of_integer(body: Any) -> Any:
    """Cut the order off to an integer, as SciPy does."""
    return of_floats(lambda n, x: body(ops.trunc_p.bind(n), x))


yn = binary(
    sp.yn,
    _of_integer(special_ops.yn_p.bind),
    f"Bessel function of the second kind, of the integer order `x` at `y`. {_X_ONLY}",
    ("2, [1.0, 2.0]", "Array([-1.65068261, -0.6174081 ])"),
)
kn = binary(
    sp.kn,
    _of_integer(special_ops.kv_p.bind),
    f"Modified Bessel function of the second kind, of the integer order `x` at `y`. {_X_ONLY}",
    ("2, [1.0, 2.0]", "Array([1.6248389 , 0.25375975])"),
)


@checked
def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """Bessel functions of the first kind, of the orders from 0 to `v`.

    Parameters
    ----------
    z : array_like
        Real.
    v : int
        The last order: known, and not negative.
    n_iter : int
        Has no effect: each order is computed by itself. It is JAX's.

    Returns
    -------
    Array, shape (v + 1, ...)

    Raises
    ------
    ArgumentError, ArgumentValueError
        If `v` is not such a number.

    Examples
    --------
    >>> from functrans.scipy.special import bessel_jn
    >>> bessel_jn(2.0, v=2)
    Array([0.22389078, 0.57672481, 0.35283403])
    """
    count_of(n_iter, "bessel_jn", "n_iter")
    last, x = count_of(v, "bessel_jn", "v"), real_float(z, "bessel_jn")
    orders = np.arange(last + 1, dtype=dtype_of(x)).reshape(last + 1, *[1] * len(shape_of(x)))
    return finish(special_ops.jv_p.bind(orders, x))


# --- hypergeometric functions -----------------------------------------------------------------------------------

_LAST_ONLY = "Differentiable in the last argument only."


def _real(name: str, prim: Any) -> Any:
    def body(*operands: Value) -> Value:
        if dtype_of(operands[-1]).kind == "c":
            raise ArgumentError(f"{name}: complex arguments are not supported; take the real part")
        return prim.bind(*operands)

    return body


hyp0f1 = binary(
    sp.hyp0f1,
    _real("hyp0f1", special_ops.hyp0f1_p),
    f"Confluent hypergeometric limit function 0F1. {_LAST_ONLY}",
    ("1.5, [0.0, 2.0]", "Array([1.       , 2.9804061])"),
)
hyp1f1 = ternary(
    sp.hyp1f1,
    _real("hyp1f1", special_ops.hyp1f1_p),
    f"Kummer's confluent hypergeometric function 1F1. {_LAST_ONLY}",
    ("0.5, 1.5, [0.0, 2.0]", "Array([1.        , 2.36445389])"),
)
hyperu = ternary(
    sp.hyperu,
    special_ops.hyperu_p.bind,
    f"Tricomi's confluent hypergeometric function U. {_LAST_ONLY}",
    ("0.5, 1.5, [1.0, 2.0]", "Array([1.        , 0.70710678])"),
)
hyp2f1 = quaternary(
    sp.hyp2f1,
    _real("hyp2f1", special_ops.hyp2f1_p),
    f"Gauss's hypergeometric function 2F1. {_LAST_ONLY}",
    ("0.5, 1.0, 1.5, [0.0, 0.5]", "Array([1.        , 1.24645048])"),
)
ellipk = unary(
    sp.ellipk,
    special_ops.ellipk_p.bind,
    "Complete elliptic integral of the first kind.",
    ("[0.0, 0.5]", "Array([1.57079633, 1.85407468])"),
)
ellipe = unary(
    sp.ellipe,
    special_ops.ellipe_p.bind,
    "Complete elliptic integral of the second kind.",
    ("[0.0, 0.5]", "Array([1.57079633, 1.35064388])"),
)


@checked
def sph_harm_y(
    n: ArrayLike,
    m: ArrayLike,
    theta: ArrayLike,
    phi: ArrayLike,
    diff_n: int | None = None,
    n_max: int | None = None,
) -> Value:
    """Spherical harmonics.

    Parameters
    ----------
    n, m : array_like
        Integers: the degree, and the order from -n to n.
    theta, phi : array_like
        The polar angle from 0 to pi, and the azimuth.
    diff_n : None
        Only None: take derivatives by `functrans.jvp`.
    n_max : int, optional
        Has no effect. It is JAX's.

    Returns
    -------
    Array
        Complex, with the shape to which all four broadcast; 0 where `m` is beyond `n`.

    Raises
    ------
    ArgumentValueError
        If `diff_n` is not None.

    References
    ----------
    DLMF 14.30.1.

    Examples
    --------
    >>> from functrans.scipy.special import sph_harm_y
    >>> sph_harm_y(1, 0, 0.0, 0.0)
    Array(0.48860251+0.j)
    """
    if diff_n is not None:
        raise ArgumentValueError(f"sph_harm_y: diff_n must be None, got {diff_n!r}; call functrans.jvp")
    return of_parameters("sph_harm_y", special_ops.sph_harm_y_p, n, m, theta, phi)

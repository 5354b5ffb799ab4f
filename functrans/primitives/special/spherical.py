"""Spherical harmonics: DLMF 14.30. Their derivatives are the harmonics of neighbouring orders."""

from __future__ import annotations

import numpy as np

from ...core import FLOAT64, Primitive, complex_dtype, quietly
from ...core.values import Value
from ...runtime.libraries import scipy
from ..elementwise.arithmetic import convert, mul_p, neg_p, sub_p
from ..elementwise.complexes import complex_p
from ..elementwise.exp_log import sqrt_p
from ..elementwise.trig import cos_p, sin_p
from ..families import elementwise, literal
from ..structure.linear import add_p, dtype_of


@quietly
def _values(n: Value, m: Value, theta: Value, phi: Value) -> Value:
    dtype = complex_dtype(np.result_type(n, m, theta, phi))
    degree, order = [np.asarray(x).astype(np.int64) for x in (n, m)]
    polar, azimuth = [np.asarray(x, FLOAT64) for x in (theta, phi)]
    if hasattr(scipy.special, "sph_harm_y"):
        out = scipy.special.sph_harm_y(degree, order, polar, azimuth)
    else:  # before SciPy 1.15
        out = scipy.special.sph_harm(order, degree, azimuth, polar)
    return np.asarray(out).astype(dtype)[()]


def _neighbour(n: Value, m: Value, theta: Value, phi: Value, by: float) -> Value:
    """``exp(-i by phi)`` times the harmonic of order ``m + by``, and the root by which the ladder scales it."""
    step = literal(by, m)
    scaled = mul_p.bind(m, step)
    root = sqrt_p.bind(mul_p.bind(sub_p.bind(n, scaled), add_p.bind(n, add_p.bind(scaled, literal(1.0, n)))))
    turn = complex_p.bind(cos_p.bind(phi), neg_p.bind(mul_p.bind(step, sin_p.bind(phi))))
    harmonic = sph_harm_y_p.bind(n, add_p.bind(m, step), theta, phi)
    return mul_p.bind(convert(root, dtype_of(harmonic)), mul_p.bind(turn, harmonic))


def _in_theta(t: Value, ans: Value, n: Value, m: Value, theta: Value, phi: Value) -> Value:
    """Half the difference of what the two ladder operators give, which has no pole at the poles."""
    above, below = (_neighbour(n, m, theta, phi, by) for by in (1.0, -1.0))
    slope = mul_p.bind(convert(literal(0.5, theta), dtype_of(ans)), sub_p.bind(above, below))
    return mul_p.bind(convert(t, dtype_of(ans)), slope)


def _in_phi(t: Value, ans: Value, n: Value, m: Value, theta: Value, phi: Value) -> Value:
    return mul_p.bind(convert(t, dtype_of(ans)), mul_p.bind(complex_p.bind(literal(0.0, m), m), ans))


#: Of degree n and order m (integers, as floats), at the polar angle theta and the azimuth phi.
sph_harm_y_p: Primitive = elementwise(
    "sph_harm_y", _values, terms=(None, None, _in_theta, _in_phi), out=complex_dtype, kinds="f", weak=False
)

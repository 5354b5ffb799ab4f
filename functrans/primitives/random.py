"""Random bits: the Threefry-2x32 hash of a key and a counter.

J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3", Proceedings of SC11
(2011), https://doi.org/10.1145/2063384.2063405, with 20 rounds. All random numbers are functions of these bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core import FLOAT64, Aval, Indexed, Primitive, quietly
from ..core.kernel import IndexEmitter, ScalarEmitter
from ..core.values import ArrayLike, Index, Value
from ..runtime.libraries import scipy
from .elementwise.arithmetic import div_p, lt_p, mul_p, select_p, sub_p
from .elementwise.exp_log import exp_p, sqrt_p
from .families import elementwise, literal
from .special.functions import digamma_p
from .special.incomplete import gamma_quantile_slope_p
from .structure.linear import add_p

#: How far the second word rotates, in rounds 1 to 4 and 5 to 8; then again from the first.
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_U32 = np.dtype(np.uint32)
_U64 = np.dtype(np.uint64)


def _rounds(key: Sequence[Any], x: Any, y: Any, rotate: Any) -> tuple[Any, Any]:
    """The two words of the hash, from three words of the key and two of the counter, modulo 2**32."""
    x, y = x + key[0], y + key[1]
    for group in range(5):
        for distance in _ROTATIONS[group % 2]:
            x = x + y
            y = rotate(y, distance) ^ x
        x = x + key[(group + 1) % 3]
        y = y + key[(group + 2) % 3] + (group + 1)
    return x, y


@quietly
def _threefry(key: Value, counter: Any) -> Value:
    def rotate(y: ArrayLike, distance: int) -> Value:
        return (y << np.uint32(distance)) | (y >> np.uint32(32 - distance))

    (first, second), (high, low) = [
        ((z >> np.uint64(32)).astype(_U32), z.astype(_U32)) for z in map(np.asarray, (key, counter))
    ]
    x, y = _rounds((first, second, first ^ second ^ np.uint32(_PARITY)), high, low, rotate)
    return (x.astype(_U64) << np.uint64(32)) | y


def _threefry_kernel(k: ScalarEmitter, key: Any, counter: Any) -> Any:
    def rotate(y: Any, distance: int) -> Any:
        return (y << distance) | (y >> (32 - distance))

    (first, second), (high, low) = [(k.cast(z >> 32, _U32), k.cast(z, _U32)) for z in (key, counter)]
    x, y = _rounds((first, second, first ^ second ^ _PARITY), high, low, rotate)
    return (k.cast(x, _U64) << 32) | k.cast(y, _U64)


#: 64 random bits from a key and a counter, each of 64 bits; the first word of the pair is the upper half.
threefry_p = elementwise("threefry2x32", _threefry, kernel=_threefry_kernel, kinds="u")


def _counter_kernel(k: IndexEmitter, index: Index, *, out: Aval, shape: tuple[int, ...]) -> Any:
    place: Any = None
    for i, n in zip(index, shape):
        place = i if place is None else place * n + i
    if place is None:
        return k.const(0, _U64)
    # The first word of the hash is a sum of the index and of many other numbers.
    number = k.call("opaque", k.cast(place, _U32 if math.prod(shape) <= 2**32 else _U64))
    return k.cast(number, _U64)


#: The number of each element of an array of `shape`, in row-major order, as uint64.
counter_p = Primitive(
    "counter",
    lambda *, shape: Aval(shape, _U64),
    lambda *, shape: np.arange(np.prod(shape, dtype=np.int64), dtype=_U64).reshape(shape),
    kernel=Indexed(_counter_kernel),
)

# --- the derivatives of samples in their parameters ---------------------------------------------------------------

# A rejection sampler has no useful derivative: which numbers it rejects jumps with the parameter. The derivative of a
# sample at a fixed probability, -(dF/da) / (dF/dx), has the same expectation and follows the sample (M. Figurnov,
# S. Mohamed, A. Mnih, "Implicit reparameterization gradients", NeurIPS 2018, section 3).


def _sample_of(name: str, slope: Any) -> Primitive:
    """A primitive of a parameter and a sample: the sample, with its derivative ``slope(sample, parameter)``."""
    return elementwise(
        name,
        lambda a, x: np.broadcast_to(x, np.broadcast_shapes(np.shape(a), np.shape(x))).copy()[()],
        factors=(lambda ans, a, x: slope(ans, a), None),
        kernel=lambda k, a, x: x,
        kinds="f",
    )


def _log_gamma_slope(ans: Value, a: Value) -> Value:
    # Far below 1, log x is (log u + lgamma(a + 1)) / a up to a term of order x, also where x underflows.
    far = lt_p.bind(ans, literal(_FAR, ans))
    x = exp_p.bind(select_p.bind(far, literal(0.0, ans), ans))
    near = div_p.bind(gamma_quantile_slope_p.bind(a, x, order=0), x)
    shifted = digamma_p.bind(add_p.bind(a, literal(1.0, a)))
    return select_p.bind(far, div_p.bind(sub_p.bind(shifted, ans), a), near)


_FAR = -37.0


#: Coefficients of ``b**(-2 k)`` in ``b`` times Mills's ratio for large `b` (DLMF 7.12.1).
_MILLS = tuple([(-1.0) ** k * math.prod(range(1, 2 * k, 2)) for k in range(15)])


@quietly
def _mills_ratio(b: Value) -> Any:
    b = np.asarray(b)
    wide = scipy.special.erfcx(b.astype(np.float64) / math.sqrt(2))
    return np.where(b >= 0, math.sqrt(math.pi / 2) * wide, np.nan).astype(b.dtype)[()]


def _mills_ratio_kernel(k: IndexEmitter, b: ArrayLike) -> Any:
    wide = k.cast(b, FLOAT64)
    small = k.call("min", wide, k.const(12, FLOAT64))
    near = (
        k.call("exp", small * small * 0.5) * k.call("erfc", small * math.sqrt(0.5)) * math.sqrt(math.pi / 2)
    )
    y = k.const(1, FLOAT64) / (wide * wide)
    series = k.const(0, FLOAT64)
    for c in reversed(_MILLS):
        series = series * y + c
    value = k.where(wide < 12.0, near, series / wide)
    return k.cast(k.where(wide >= 0.0, value, k.const(math.nan, FLOAT64)), b.dtype)


#: The ratio of the normal distribution's tail beyond `b` to its density there, for positive `b`.
mills_ratio_p: Primitive = elementwise(
    "mills_ratio",
    _mills_ratio,
    factors=(lambda ans, b: sub_p.bind(mul_p.bind(b, ans), literal(1.0, b)),),
    kernel=_mills_ratio_kernel,
    kinds="f",
)


def _wald_slope(ans: Value, mean: Value) -> Value:
    """``2 x**1.5 / mean**2`` times Mills's ratio at ``(x / mean + 1) / sqrt(x)``: the rest of dF/dmean cancels."""
    root = sqrt_p.bind(ans)
    place = div_p.bind(add_p.bind(div_p.bind(ans, mean), literal(1.0, ans)), root)
    scale = div_p.bind(mul_p.bind(ans, root), mul_p.bind(mean, mean))
    return mul_p.bind(mul_p.bind(literal(2.0, ans), scale), mills_ratio_p.bind(place))


#: Samples of the gamma distribution, of its logarithm, and of Wald's distribution, with a parameter.
gamma_sample_p = _sample_of("gamma_sample", lambda ans, a: gamma_quantile_slope_p.bind(a, ans, order=0))
log_gamma_sample_p = _sample_of("log_gamma_sample", _log_gamma_slope)
wald_sample_p = _sample_of("wald_sample", _wald_slope)

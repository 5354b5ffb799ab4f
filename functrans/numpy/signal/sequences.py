"""Sequences: convolve, correlate, interp, unwrap."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from ...arrays.array import Array
from ...core import BOOL, INT64, ArgumentValueError, DtypeError, ShapeError, Tracer
from ...core.jax_dtypes import default_float
from ...core.values import ArrayLike, DTypeLike, Index, Value
from ...primitives import ops, ufuncs
from ...primitives.ops import dtype_of, finish, one_axis, operand, shape_of
from ..dispatch import array_operand, implements, in_one_dtype, staging

__all__ = ["convolve", "correlate", "interp", "unwrap"]

# --- convolve and correlate ---------------------------------------------------------------------------------


def _sequences(name: str, a: Value, v: Value) -> tuple[Any, Any, bool]:
    """Convert two vectors to their common dtype (int64 for booleans); also return whether they were booleans."""
    x, y = in_one_dtype([array_operand(a, name), array_operand(v, name, 1)], None, name)
    for which, value in (("a", x), ("v", y)):
        shape = shape_of(value)
        if len(shape) != 1:
            raise ShapeError(
                f"{name}: {which} has shape {shape}; expected one axis (for more, functrans.lax.conv)"
            )
        if not shape[0]:
            raise ArgumentValueError(f"{name}: {which} cannot be empty")
    boolean = dtype_of(x) == BOOL
    return (ops.convert(x, INT64), ops.convert(y, INT64), True) if boolean else (x, y, False)


def _vector(x: Value, name: str, position: int) -> Value:
    """Convert a number to a vector with one element."""
    value = array_operand(x, name, position)
    return value if shape_of(value) else ops.reshape_p.bind(value, shape=(1,))


def _slid(name: str, x: Value, y: Value, mode: str) -> Value:
    """``sum_k x[n + k] y[k]`` of a vector and one that is not longer."""
    n, m = shape_of(x)[0], shape_of(y)[0]
    if mode == "full":
        padding = (m - 1, m - 1)
    elif mode == "same":
        padding = (m // 2, m - m // 2 - 1)
    elif mode == "valid":
        padding = (0, 0)
    else:
        raise ArgumentValueError(f"{name}: mode must be 'full', 'same' or 'valid', got {mode!r}")
    out = ops.conv_p.bind(
        ops.reshape_p.bind(x, shape=(1, 1, 1, n)),
        ops.reshape_p.bind(y, shape=(1, 1, 1, m)),
        window_strides=(1,),
        padding=(padding,),
        lhs_dilation=(1,),
        rhs_dilation=(1,),
    )
    return ops.reshape_p.bind(out, shape=(n - m + 1 + builtins.sum(padding),))


def _reversed(x: ArrayLike) -> Any:
    return ops.rev_p.bind(x, dimensions=(0,))


def _conjugate(x: Value) -> Value:
    return ops.conj_p.bind(x) if dtype_of(x).kind == "c" else x


@implements(np.convolve)
def convolve(
    a: ArrayLike, v: ArrayLike, mode: str = "full", *, preferred_element_type: DTypeLike = None
) -> Array:
    """The convolution of two vectors: ``out[n] = sum_k a[k] v[n - k]``.

    Parameters
    ----------
    a, v : array_like, shape (n,), (m,)
    mode : {'full', 'same', 'valid'}
        'full' returns all positions at which the vectors overlap; 'same' the middle ones, as many as the longer vector
        has elements; 'valid' those at which they overlap entirely.
    preferred_element_type : dtype-like, optional
        The dtype to compute in.

    Returns
    -------
    Array
        With the common dtype.

    Raises
    ------
    ArgumentValueError
        If one is empty, or the mode is unknown.
    ShapeError
        If one is not one-dimensional.

    Notes
    -----
    Linear in each vector; the sums are computed directly, so the cost is the product of the lengths.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.convolve([1, 2, 3], [0, 1, 0.5])
    Array([0. , 1. , 2.5, 4. , 1.5])
    """
    a, v = (_vector(x, "convolve", i) for i, x in enumerate((a, v)))
    if preferred_element_type is not None:
        a, v = ops.pair(a, v, "convolve", preferred_element_type)
    x, y, boolean = _sequences("convolve", a, v)
    if shape_of(x)[0] < shape_of(y)[0]:
        x, y = y, x
    out = _slid("convolve", x, _reversed(y), mode)
    return finish(ops.convert(out, BOOL) if boolean else out)


@implements(np.correlate)
def correlate(
    a: ArrayLike, v: ArrayLike, mode: str = "valid", *, preferred_element_type: DTypeLike = None
) -> Any:
    """The cross-correlation of two vectors: ``out[k] = sum_n a[n + k] conj(v[n])``; see `convolve`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.correlate([1, 2, 3], [0, 1, 0.5], "full")
    Array([0.5, 2. , 3.5, 3. , 0. ])
    """
    if preferred_element_type is not None:
        a, v = ops.pair(a, v, "correlate", preferred_element_type)
    x, y, boolean = _sequences("correlate", a, v)
    if shape_of(x)[0] >= shape_of(y)[0]:
        out = _slid("correlate", x, _conjugate(y), mode)
    else:
        out = _reversed(_slid("correlate", _conjugate(y), x, mode))
    return finish(ops.convert(out, BOOL) if boolean else out)


# --- interp -------------------------------------------------------------------------------------------------


@implements(np.interp)
def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: ArrayLike = None,
    right: ArrayLike = None,
    period: Any = None,
) -> Array:
    """Linear interpolation between samples.

    Parameters
    ----------
    x : array_like
        The positions at which to interpolate.
    xp : array_like, shape (n,)
        The positions of the samples, increasing (in any order with `period`).
    fp : array_like, shape (n,)
        The samples, real or complex.
    left, right : number, optional
        The values left of the first and right of the last sample; by default these samples. Without effect with
        `period`.
    period : number, optional
        The period of `x` and `xp`.

    Returns
    -------
    Array
        With the shape of `x`, float64 or complex128.

    Raises
    ------
    ArgumentValueError
        If `xp` is empty, or the period is 0.
    ShapeError
        If `xp` and `fp` are not one-dimensional and of one length.

    Notes
    -----
    Differentiable in all arguments except `period`. At a sample, the slope in `x` is that of the interval after it;
    outside the samples it is 0.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.interp([0.5, 2.5, 9.0], [0.0, 1.0, 3.0], [0.0, 10.0, 20.0])
    Array([ 5. , 17.5, 20. ])
    """
    at, places = (ops.convert(_real(value, i), default_float()) for i, value in enumerate((x, xp)))
    samples = array_operand(fp, "interp", 2)
    to = np.dtype(np.complex128) if dtype_of(samples).kind == "c" else default_float()
    samples = ops.convert(samples, to)
    if len(shape_of(places)) != 1 or shape_of(places) != shape_of(samples):
        raise ShapeError(
            f"interp: fp and xp are not of the same length: xp has shape {shape_of(places)}, fp {shape_of(samples)}; "
            "expected one axis each"
        )
    if not shape_of(places)[0]:
        raise ArgumentValueError("interp: array of sample points is empty")
    if period is not None:
        at, places, samples = _periodic(at, places, samples, period)
        left = right = None
    elif not staging() and not any(isinstance(v, Tracer) for v in (at, places, samples, left, right)):
        return finish(np.asarray(np.interp(at, places, samples, left, right)))
    n = shape_of(places)[0]
    first, last = (ops.element_along(samples, 0, i) for i in (0, n - 1))
    start, stop = (ops.element_along(places, 0, i) for i in (0, n - 1))
    out = _between(at, places, samples, n) if n > 1 else ops.broadcast_to(first, shape_of(at))
    out = ops.select_p.bind(ops.gt_p.bind(at, stop), _outside(right, last, to), out)
    out = ops.select_p.bind(ops.eq_p.bind(at, stop), last, out)
    out = ops.select_p.bind(ops.lt_p.bind(at, start), _outside(left, first, to), out)
    if n > 1:
        out = ops.select_p.bind(ops.is_nan_p.bind(at), ops.convert(at, to), out)
    return finish(out)


def _real(x: Value, position: int) -> Any:
    value = array_operand(x, "interp", position)
    if dtype_of(value).kind == "c":
        raise DtypeError("interp: x and xp must be real; only fp may be complex")
    return value


def _outside(given: Any, sample: Any, to: np.dtype) -> Value:
    return sample if given is None else ops.convert(array_operand(given, "interp"), to)


def _between(at: Any, places: ArrayLike, samples: Value, n: int) -> Value:
    """Interpolate between the samples on either side; equal samples yield that number, also if infinite."""
    after = ops.searchsorted_p.bind(places, at, side="right")
    after = ops.clamp_p.bind(np.int64(1), after, np.int64(n - 1))
    before = ops.sub_p.bind(after, np.int64(1))

    def take(values: ArrayLike, index: Index) -> Value:
        return ops.gather_p.bind(values, index, axes=(0,), mode="promise_in_bounds")

    x0, x1, y0, y1 = take(places, before), take(places, after), take(samples, before), take(samples, after)
    # Two samples at one position are a jump, which belongs to the second one.
    width = ops.sub_p.bind(x1, x0)
    width = ops.select_p.bind(ops.eq_p.bind(width, 0.0), 1.0, width)
    slope = ops.div_p.bind(ops.sub_p.bind(y1, y0), ops.convert(width, dtype_of(y0)))

    def line(x: Value, y: Value) -> Value:
        return ops.add_p.bind(ops.mul_p.bind(slope, ops.convert(ops.sub_p.bind(at, x), dtype_of(y))), y)

    # Next to an infinite sample, the line may be finite from one side only.
    out = line(x0, y0)
    out = ops.select_p.bind(ops.is_nan_p.bind(out), line(x1, y1), out)
    settled = ops.or_p.bind(
        ops.eq_p.bind(y0, y1), ops.and_p.bind(ops.eq_p.bind(at, x0), ops.is_nan_p.bind(out))
    )
    return ops.select_p.bind(settled, y0, out)


def _periodic(at: Any, places: ArrayLike, samples: Any, period: Any) -> tuple[Any, Any, Any]:
    """Reduce all to one period, sort the samples, and repeat one at each end."""
    span = array_operand(period, "interp: period")
    if not isinstance(span, Tracer) and span == 0:
        raise ArgumentValueError("interp: period must be a non-zero value")
    span = operand(ufuncs.absolute(ops.convert(span, default_float(dtype_of(span)))), "interp")
    at, places = (operand(ufuncs.remainder(value, span), "interp") for value in (at, places))
    n = shape_of(places)[0]
    order = ops.sort_p.bind(ops.stop_gradient_p.bind(places), np.arange(n), dimension=0, num_keys=1)[1]
    places, samples = (
        ops.gather_p.bind(v, order, axes=(0,), mode="promise_in_bounds") for v in (places, samples)
    )

    def ends(values: ArrayLike, shift: Any) -> Value:
        first, last = ops.slice_along(values, 0, 0, 1), ops.slice_along(values, 0, n - 1, n)
        if shift is not None:
            first, last = ops.add_p.bind(first, shift), ops.sub_p.bind(last, shift)
        return ops.concatenate_p.bind(last, values, first, dimension=0)

    return at, ends(places, span), ends(samples, None)


# --- unwrap -------------------------------------------------------------------------------------------------


@implements(np.unwrap)
def unwrap(p: ArrayLike, discont: Any = None, axis: int = -1, *, period: Any = 2 * np.pi) -> Array:
    """Add whole periods so that no neighbours differ by more than half a period, as for phases.

    Parameters
    ----------
    p : array_like
    discont : number, optional
        Only differences of at least this size are changed; by default, and at least, half a period.
    axis : int
    period : number
        By default 2 pi.

    Returns
    -------
    Array
        With the shape of `p`; integers if `p` and `period` are.

    Raises
    ------
    AxisError
        If the axis is out of bounds.

    Notes
    -----
    The added periods are constant, so the derivative is the identity.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.unwrap([0, 1, 2, -1, 0], period=4)
    Array([0, 1, 2, 3, 4])
    """
    x = array_operand(p, "unwrap")
    shape = shape_of(x)
    d = one_axis(axis, len(shape), "unwrap")
    span = operand(period, "unwrap: period")
    if dtype_of(x).kind == "c":
        raise DtypeError("unwrap: complex numbers have no order; unwrap their angle")
    n = shape[d]
    fixed = ops.stop_gradient_p.bind(x)
    steps = ufuncs.subtract(*ops.neighbours(fixed, d))
    moved = _whole_periods(steps, span, discont)
    to = dtype_of(moved)
    config = tuple([(int(e == d and n > 0), 0, 0) for e in range(len(shape))])
    total = ops.cumsum_p.bind(operand(moved, "unwrap"), axis=d, reverse=False)
    return finish(
        ops.add_p.bind(ops.convert(x, to), ops.pad_p.bind(total, to.type(0), padding_config=config))
    )


def _whole_periods(steps: Any, span: Any, discont: Any) -> Value:
    """The periods to add to differences so that they are within half a period."""
    whole = dtype_of(steps).kind in "iu" and (type(span) is int or dtype_of(span).kind in "iu")
    # Operators, not functions: with Python numbers they return Python numbers, which do not change a dtype.
    high, half, odd = (span // 2 if whole else span / 2), span / 2, (span % 2 if whole else 0)
    low = -high
    within = ufuncs.add(ufuncs.remainder(ufuncs.subtract(steps, low), span), low)
    edge = ufuncs.logical_and(ufuncs.equal(within, low), ufuncs.greater(steps, 0))
    within = _where(ufuncs.logical_and(edge, ufuncs.equal(odd, 0)), high, within)
    near = ufuncs.less(ufuncs.absolute(steps), half if discont is None else discont)
    return _where(near, 0, ufuncs.subtract(within, steps))


def _where(condition: Any, number: ArrayLike, otherwise: Any) -> Value:
    """Select a number (cast to the dtype of `otherwise`) where the condition is true."""
    value = operand(otherwise, "unwrap")
    number = ops.convert_element_type_p.bind(operand(number, "unwrap"), dtype=dtype_of(value))
    return ops.select_p.bind(operand(condition, "unwrap"), number, value)

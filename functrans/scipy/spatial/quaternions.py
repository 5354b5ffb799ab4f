"""Formulas for unit quaternions, with the scalar part last, as arrays of shape (..., 4).

Each is smooth where its result is: near a half turn of zero angle, series replace quotients, so that derivatives of any
order exist there.
"""

from __future__ import annotations

from typing import Any

from ... import numpy as fnp
from ...arrays.array import Array
from ...core.values import ArrayLike, Value

#: Squared angles (or sines) below which four terms of a series are exact to rounding.
_SMALL = 1e-3


def parts(q: Value) -> tuple[Value, ...]:
    """The elements along the last axis."""
    return tuple([q[..., i] for i in range(q.shape[-1])])


def joined(*elements: ArrayLike) -> Value:
    """The inverse of `parts`."""
    return fnp.stack(fnp.broadcast_arrays(*elements), -1)


def normalized(q: Value) -> Value:
    """A unit quaternion in the same direction."""
    return q / fnp.sqrt(fnp.sum(q * q, -1, keepdims=True))


def product(p: ArrayLike, q: ArrayLike) -> tuple[Any, ...]:
    """The parts of the quaternion of the rotation by `q`, then by `p`, both in parts."""
    a, b, c, d = p
    x, y, z, w = q
    return (
        d * x + w * a + b * z - c * y,
        d * y + w * b + c * x - a * z,
        d * z + w * c + a * y - b * x,
        d * w - a * x - b * y - c * z,
    )


def inverse(q: ArrayLike) -> Any:
    """The conjugate."""
    return q * fnp.asarray([-1.0, -1.0, -1.0, 1.0], q.dtype)


def canonical(q: Value) -> Value:
    """Of `q` and ``-q``, the one whose last element that is not zero (in the order w, x, y, z, first) is positive."""
    x, y, z, w = parts(q)
    negative = w < 0
    zero = fnp.equal(w, 0)
    for element in (x, y, z):
        negative = negative | (zero & (element < 0))
        zero = zero & fnp.equal(element, 0)
    return fnp.where(negative[..., None], -q, q)


def rows(q: Value) -> tuple[tuple[Any, ...], ...]:
    """The elements of the orthogonal matrix."""
    x, y, z, w = parts(q)
    return (
        (x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)),
        (2 * (x * y + z * w), -x * x + y * y - z * z + w * w, 2 * (y * z - x * w)),
        (2 * (x * z - y * w), 2 * (y * z + x * w), -x * x - y * y + z * z + w * w),
    )


def matrix(q: Value) -> Value:
    """The orthogonal matrix, shape (..., 3, 3)."""
    elements = joined(*[e for row in rows(q) for e in row])
    return fnp.reshape(elements, (*elements.shape[:-1], 3, 3))


def of_matrix(m: ArrayLike) -> Value:
    """The quaternion of an orthogonal matrix, from its largest part (Shepperd, J. Guidance 1, 1978)."""
    e = [[m[..., i, j] for j in range(3)] for i in range(3)]
    a, b, c = e[0][0], e[1][1], e[2][2]
    trace = a + b + c
    chosen: Any = (e[2][1] - e[1][2], e[0][2] - e[2][0], e[1][0] - e[0][1], 1 + trace)
    # Of equal ones, the first of a, b, c and the trace: as SciPy chooses.
    largest = (
        (a >= b) & (a >= c) & (a >= trace),
        (b >= c) & (b >= trace) & (b > a),
        (c >= trace) & (c > a) & (c > b),
    )
    for i, condition in enumerate(largest):
        j, k = (i + 1) % 3, (i + 2) % 3
        other: list[Any] = [None] * 4
        other[i] = 1 - trace + 2 * e[i][i]
        other[j] = e[j][i] + e[i][j]
        other[k] = e[k][i] + e[i][k]
        other[3] = e[k][j] - e[j][k]
        chosen = [fnp.where(condition, new, old) for new, old in zip(other, chosen)]
    x, y, z, w = chosen
    length = fnp.sqrt(x * x + y * y + z * z + w * w)
    return joined(x / length, y / length, z / length, w / length)


def of_rotvec(v: Value) -> Value:
    """The quaternion of the rotation about an axis by an angle, the length of the vector."""
    square = fnp.sum(v * v, -1)
    small = square < _SMALL
    s = fnp.where(small, square, 0.0)
    angle = fnp.sqrt(fnp.where(small, 1.0, square))
    sine = fnp.where(small, 0.5 - s / 48 + s**2 / 3840 - s**3 / 645120, fnp.sin(angle / 2) / angle)
    cosine = fnp.where(small, 1 - s / 8 + s**2 / 384 - s**3 / 46080, fnp.cos(angle / 2))
    x, y, z = parts(v)
    return joined(sine * x, sine * y, sine * z, cosine)


def rotvec(q: Value) -> Value:
    """The inverse of `of_rotvec`, of a length of at most pi."""
    q = fnp.where(q[..., 3:] < 0, -q, q)
    v, w = q[..., :3], q[..., 3]
    square = fnp.sum(v * v, -1)
    small = square < _SMALL
    s = fnp.where(small, square, 0.0)
    sine = fnp.sqrt(fnp.where(small, 1.0, square))
    # angle / sine, where the angle is 2 asin(sine).
    series = 2 + s / 3 + 3 * s**2 / 20 + 5 * s**3 / 56 + 35 * s**4 / 576
    scale = fnp.where(small, series, 2 * fnp.arctan2(sine, w) / sine)
    return scale[..., None] * v


def magnitude(q: Value) -> Array:
    """The angle, from 0 to pi."""
    return 2.0 * fnp.arctan2(fnp.linalg.norm(q[..., :3], axis=-1), fnp.absolute(q[..., 3]))


def of_mrp(p: ArrayLike) -> Value:
    """The quaternion of modified Rodrigues parameters: the axis times the tangent of a quarter of the angle."""
    square = fnp.sum(p * p, -1, keepdims=True) + 1
    return fnp.concatenate([2 * p, 2 - square], -1) / square


def mrp(q: ArrayLike) -> Value:
    """The inverse of `of_mrp`, of a length of at most 1."""
    w = q[..., 3:]
    return q[..., :3] * (fnp.where(w < 0, -1.0, 1.0) / (1 + fnp.absolute(w))).astype(q.dtype)


def of_euler(axes: tuple[int, ...], intrinsic: bool, angles: Any) -> Value:
    """The quaternion of rotations about axes, one after the other."""
    out: Any = None
    for i, axis in enumerate(axes):
        half = angles[..., i] / 2
        sine, cosine = fnp.sin(half), fnp.cos(half)
        q = (*[sine if k == axis else fnp.zeros_like(sine) for k in range(3)], cosine)
        out = q if out is None else product(out, q) if intrinsic else product(q, out)
    return joined(*out)


def euler(axes: tuple[int, ...], intrinsic: bool, q: Value) -> Any:
    """The angles of `of_euler` for three axes; where they are not unique, the third (the first, if intrinsic) is 0.

    E. Bernardes and S. Viollet, "Quaternion to Euler angles conversion", PLoS ONE 17 (2022).
    """
    i, j, k = axes[::-1] if intrinsic else axes
    symmetric = i == k
    if symmetric:
        k = 3 - i - j
    sign = (i - j) * (j - k) * (k - i) // 2
    e = parts(q)
    a, b, c, d = (
        (e[3], e[i], e[j], e[k] * sign)
        if symmetric
        else (e[3] - e[j], e[i] + e[k] * sign, e[j] + e[3], e[k] * sign - e[i])
    )
    middle = 2 * fnp.arctan2(fnp.hypot(c, d), fnp.hypot(a, b))
    at_zero, at_half = fnp.absolute(middle) <= 1e-7, fnp.absolute(middle - fnp.pi) <= 1e-7
    total, difference = fnp.arctan2(b, a), fnp.arctan2(d, c)
    first = fnp.where(at_zero, 2 * total, 2 * difference * (1 if intrinsic else -1))
    degenerate = at_zero | at_half
    zero = fnp.zeros_like(first)
    # In the order of extrinsic rotations; the intrinsic ones come in the opposite order.
    one = fnp.where(degenerate, zero if intrinsic else first, total - difference)
    three = fnp.where(degenerate, first if intrinsic else zero, total + difference)
    if not symmetric:
        three, middle = three * sign, middle - fnp.pi / 2
    angles = joined(three, middle, one) if intrinsic else joined(one, middle, three)
    turn = fnp.where(angles < -fnp.pi, 2 * fnp.pi, fnp.where(angles > fnp.pi, -2 * fnp.pi, 0.0))
    return angles + fnp.astype(turn, angles.dtype)

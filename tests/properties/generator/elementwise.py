"""Kinds of statements: functions of elements, between numbers, integers and truth values."""

from __future__ import annotations

import numpy as np

import functrans as ft
import functrans.numpy as fnp

from .records import boolean, both, broadcast, filled, integer, kind, number, real

NUMBERS = both(number, broadcast)


def pointwise(name, f, slope=None, fits=number, **more):
    """A function of one array, with its derivative as a function of the argument, the value and the number."""
    if slope is not None:
        more["pull"] = lambda xs, y, ct, n: (ct * slope(xs[0], y, n),)
        more["push"] = lambda xs, y, ts, n: ts[0] * slope(xs[0], y, n)
    kind(name, lambda lib, n, x: f(lib.np, x, n), fits, **more)


def shrunk(ct, x):
    """A cotangent summed to the shape of `x`, in its dtype."""
    ct = fnp.sum(ct, axis=tuple(range(ct.ndim - x.ndim)))
    ones = tuple(i for i, n in enumerate(x.shape) if n == 1 and ct.shape[i] != 1)
    return fnp.asarray(fnp.sum(ct, axis=ones, keepdims=True), x.dtype)


def binary(name, f, pull=None, push=None, fits=NUMBERS, **more):
    """A function of two arrays; ``pull(x, y, out, ct)`` and ``push(x, y, out, s, t)``."""
    if pull is not None:
        more["pull"] = lambda xs, out, ct, n: tuple(shrunk(c, x) for c, x in zip(pull(*xs, out, ct), xs))
        more["push"] = lambda xs, out, ts, n: push(*xs, out, *ts)
    kind(name, lambda lib, n, x, y: f(lib.np, x, y), fits, 2, **more)


# --- smooth -------------------------------------------------------------------------------------------------------

pointwise("sin", lambda np_, x, n: np_.sin(x + n), lambda x, y, n: fnp.cos(x + n), flags="tame", weight=4)
pointwise("cos", lambda np_, x, n: np_.cos(x), lambda x, y, n: -fnp.sin(x), flags="tame")
pointwise("bell", lambda np_, x, n: np_.exp(-x * x), lambda x, y, n: -2.0 * x * y)
pointwise("witch", lambda np_, x, n: (n + 1) / (x * x + 9.0), lambda x, y, n: -2.0 * x * y / (x * x + 9.0))
pointwise("exp", lambda np_, x, n: np_.exp(0.3 * x), lambda x, y, n: 0.3 * y)
pointwise("cube", lambda np_, x, n: x**3 * 0.2, lambda x, y, n: 0.6 * x * x)
pointwise("scale", lambda np_, x, n: x * (n - 1.5), lambda x, y, n: n - 1.5)
pointwise("negative", lambda np_, x, n: -x, lambda x, y, n: -1.0, flags="tame")
pointwise(
    "tanh", lambda np_, x, n: np_.tanh(x) * (n + 1), lambda x, y, n: (n + 1) - y * y / (n + 1), fits=real
)
pointwise("tanh alone", lambda np_, x, n: np_.tanh(x), fits=real, flags="tame")
pointwise("half", lambda np_, x, n: x * 0.5, fits=real, flags="tame")
pointwise("sigmoid", lambda np_, x, n: 1 / (1 + np_.exp(-x)), fits=real, flags="tame")
pointwise("log", lambda np_, x, n: np_.log1p(x * x + n), fits=real)
pointwise("root", lambda np_, x, n: np_.sqrt(x * x + 0.5), fits=real)
pointwise("divide", lambda np_, x, n: (n + 1) / (x * x + 1.0), fits=real)
pointwise("power", lambda np_, x, n: np_.tanh(x) ** (n % 4), fits=real)
pointwise(
    "power of numbers", lambda np_, x, n: np_.power(np_.abs(x) + 0.5, 0.5 * n), fits=real, flags="jumps"
)
pointwise("arctan2", lambda np_, x, n: np_.arctan2(x, x * x + 1.0), fits=real)
pointwise("narrow", lambda np_, x, n: x * np_.float32(0.5), fits=real)
pointwise(
    "single", lambda np_, x, n: np_.sin(np_.asarray(x, dtype="f4")), fits=real, flags="single", weight=1
)
pointwise("double", lambda np_, x, n: np_.asarray(x, dtype="f8") * 0.7, fits=real, weight=1)
binary(
    "add",
    lambda np_, x, y: x + y,
    lambda x, y, o, ct: (ct, ct),
    lambda x, y, o, s, t: s + t,
    weight=3,
    flags="weak",
)
binary(
    "multiply",
    lambda np_, x, y: x * y,
    lambda x, y, o, ct: (ct * y, ct * x),
    lambda x, y, o, s, t: s * y + x * t,
    flags="weak",
    weight=3,
)
binary(
    "blend",
    lambda np_, x, y: x * np_.sin(y),
    lambda x, y, o, ct: (ct * fnp.sin(y), ct * x * fnp.cos(y)),
    lambda x, y, o, s, t: s * fnp.sin(y) + x * fnp.cos(y) * t,
    weight=3,
)
binary(
    "quotient",
    lambda np_, x, y: x / (y * y + 9.0),
    lambda x, y, o, ct: (ct / (y * y + 9.0), -2.0 * ct * y * o / (y * y + 9.0)),
    lambda x, y, o, s, t: (s - 2.0 * y * o * t) / (y * y + 9.0),
)
binary("subtract", lambda np_, x, y: 2 * x - y, flags="weak")
binary("mix", lambda np_, x, y: 1.5 * np_.sin(x) + x * np_.cos(y), weight=3, flags="weak")
binary("product", lambda np_, x, y: np_.tanh(x) * np_.sin(y), fits=both(real, broadcast))
binary("hypot", lambda np_, x, y: np_.hypot(x, y + 3.0), fits=both(real, broadcast))
binary("average", lambda np_, x, y: 0.5 * x + 0.5 * y, fits=both(real, broadcast), flags="tame")
binary("half product", lambda np_, x, y: 0.5 * x * y, fits=both(real, broadcast), flags="tame")

kind(
    "average in single",
    lambda lib, n, x, y: lib.np.asarray(0.5 * (lib.np.asarray(x, dtype="f4") + y), dtype=x.dtype),
    both(real, broadcast),
    2,
    flags="single tame",
    weight=0,
)

# --- with kinks and jumps -----------------------------------------------------------------------------------------

pointwise("abs", lambda np_, x, n: np_.abs(x), fits=real, flags="jumps")
pointwise("relu", lambda np_, x, n: np_.maximum(x, 0), fits=real, flags="jumps tame")
pointwise("clip", lambda np_, x, n: np_.clip(x, -0.5, 0.25 * n), fits=real, flags="jumps")
pointwise("floor", lambda np_, x, n: np_.floor(3 * x) + x, fits=real, flags="jumps")
pointwise("sign", lambda np_, x, n: np_.sign(x) * x * 0.5, fits=real, flags="jumps")
pointwise("remainder", lambda np_, x, n: x % 0.75, fits=real, flags="jumps finite")
binary("maximum", lambda np_, x, y: np_.maximum(x, y), fits=both(real, broadcast), flags="jumps tame weak")
binary("minimum", lambda np_, x, y: np_.minimum(x, y), fits=both(real, broadcast), flags="jumps tame")
binary("larger", lambda np_, x, y: np_.where(x > y, x, y), fits=both(real, broadcast), flags="jumps tame")
binary(
    "by parts",
    lambda np_, x, y: np_.where(x * y > 0.1, np_.sin(x), y * y),
    fits=both(real, broadcast),
    flags="jumps",
)


def _last(x, y):
    shape = np.broadcast_shapes(x.shape, y.shape)
    return shape[-1] if shape and shape[-1] in (2, 3) else 1


binary("where", lambda np_, x, y: np_.where(np.resize([True, False, True], (3,))[: _last(x, y)], x, y))

# --- integers and truth values ------------------------------------------------------------------------------------

binary(
    "integers",
    lambda np_, i, j: (i * 3 + j) % np.dtype(i.dtype).type(7),
    fits=lambda i, j: integer(i) and integer(j) and broadcast(i, j),
)
binary(
    "masks",
    lambda np_, a, b: a ^ np_.logical_not(b),
    fits=lambda a, b: boolean(a) and boolean(b) and broadcast(a, b),
)
binary("compare", lambda np_, x, y: x > y + 0.1, fits=both(real, broadcast), flags="jumps", weight=4)
binary(
    "compare integers",
    lambda np_, i, j: i <= j,
    fits=lambda i, j: integer(i) and integer(j) and broadcast(i, j),
)
kind(
    "choose",
    lambda lib, n, x, b: lib.np.where(b, x, 0.5 * x),
    lambda x, b: number(x) and boolean(b) and broadcast(x, b),
    2,
)
kind(
    "by number",
    lambda lib, n, x, i: x * (0.25 * i) + 0.1 * i,
    lambda x, i: number(x) and integer(i) and broadcast(x, i),
    2,
)
kind(
    "times",
    lambda lib, n, x, k: x * lib.np.sum(k) * 0.25,
    lambda x, k: number(x) and integer(k),
    2,
    pull=lambda xs, y, ct, n: (ct * fnp.sum(xs[1]) * 0.25, None),
    push=lambda xs, y, ts, n: ts[0] * fnp.sum(xs[1]) * 0.25,
)
kind(
    "round",
    lambda lib, n, x: lib.np.asarray(lib.np.floor(3 * lib.np.abs(x)), dtype="i8"),
    real,
    flags="jumps finite",
)
kind("as integer", lambda lib, n, x: lib.np.asarray(x, dtype="i4"), lambda b: boolean(b) or integer(b))
kind("constant", lambda lib, n: [0.5, 1.25, -0.75, 2.0][n], lambda: True, 0, weight=1)
kind("constant integer", lambda lib, n: n, lambda: True, 0, weight=1)
kind("truth", lambda lib, n: lib.np.asarray(n % 2 == 0), lambda: True, 0, weight=1)


def _noise(lib, n, x):
    """Random numbers of a fixed key."""
    return x + lib.np.asarray(ft.random.uniform(ft.random.key(n), x.shape, dtype=x.dtype))


kind("noise", _noise, real, weight=1)

# --- exact in low precision ---------------------------------------------------------------------------------------


def _flipped(lib, x):
    """Numbers whose last bit is the other one."""
    dtype = np.dtype(x.dtype)
    bits = np.dtype(f"i{dtype.itemsize}")
    if lib.np is np:
        return (np.asarray(x).view(bits) ^ bits.type(1)).view(dtype)
    return ft.lax.bitcast_convert_type(ft.lax.bitcast_convert_type(x, bits) ^ 1, dtype)


#: What NumPy rounds correctly, and functions with steps: the same numbers in strict mode.
for _name, _f in {
    "square": lambda lib, n, x: x * x,
    "affine": lambda lib, n, x: x * 1.7 - 0.3,
    "ratio": lambda lib, n, x: x / (x * x + 1),
    "root of size": lambda lib, n, x: lib.np.sqrt(lib.np.abs(x)),
    "steps": lambda lib, n, x: lib.np.floor(x * 7) / 7,
    "rest": lambda lib, n, x: x % 0.3,
    "signs": lambda lib, n, x: lib.np.where(
        x > 0.1, x, lib.np.sign(x) + 0.0
    ),  # ml_dtypes: sign(-0.0) is -0.0
    "small integers": lambda lib, n, x: lib.np.asarray(x * 9, dtype="i1") * x,
}.items():
    kind(_name, _f, real, flags="exact jumps", weight=0)
kind(
    "argmax of each",
    lambda lib, n, x: x - 0.1 * lib.np.argmax(x * 1.1, axis=-1, keepdims=True),
    lambda x: real(x) and filled(x),
    flags="exact jumps",
    weight=0,
)
kind(
    "equal to most",
    lambda lib, n, x: lib.np.where(x * 1.3 == lib.np.max(x * 1.3), 0.5, x),
    lambda x: real(x) and x.size > 0,
    flags="exact jumps",
    weight=0,
)
kind(
    "bits",
    lambda lib, n, x: _flipped(lib, x * 1.1),
    real,
    flags="exact jumps",
    weight=0,
)

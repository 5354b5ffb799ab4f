"""Kinds of statements: reading and writing elements, rows and slices, at places that are known or computed."""

from __future__ import annotations

import numpy as np

import functrans.numpy as fnp

from .records import boolean, filled, fitted, integer, kind, number, real


def _places(x):
    return np.arange(-1, 3) % max(len(x), 1)


def _indexed(x, i):
    """A real array with rows, and an integer."""
    return real(x) and filled(x) and integer(i) and i.ndim == 0


def _indexed_by_many(x, i):
    return number(x) and filled(x) and integer(i)


def place(lib, i, size, n):
    """A row's number from a computed integer: from the front, or from the end."""
    i = (lib.np.asarray(i, dtype="i8") + (n % 3 - 1)) % size
    return i - size if n % 2 else i


def region(lib, x, i, n):
    """An index of an element, a row, a column, a tail or a slice."""
    match n % 4 if x.ndim > 1 else 0:
        case 0 if x.ndim == 1:
            return place(lib, i, len(x), n)
        case 0:
            return (place(lib, i, len(x), n), place(lib, i, x.shape[1], n + 1))
        case 1:
            return place(lib, i, len(x), n)
        case 2:
            return (slice(None), place(lib, i, x.shape[1], n))
        case _:
            return (place(lib, i, len(x), n), slice(1, None))


# --- reading ------------------------------------------------------------------------------------------------------

kind("first", lambda lib, n, x: x[n % len(x)], lambda x: number(x) and filled(x))
kind(
    "gather",
    lambda lib, n, x: lib.np.take(x, _places(x), axis=0),
    lambda x: number(x) and filled(x),
    pull=lambda xs, y, ct, n: (fnp.zeros_like(xs[0]).at[_places(xs[0])].add(ct),),
    push=lambda xs, y, ts, n: fnp.take(ts[0], _places(xs[0]), axis=0),
)
kind(
    "pick",
    lambda lib, n, x, k: lib.np.take(x, k % len(x), axis=0),
    _indexed_by_many,
    2,
    pull=lambda xs, y, ct, n: (fnp.zeros_like(xs[0]).at[xs[1] % len(xs[0])].add(ct), None),
    push=lambda xs, y, ts, n: fnp.take(ts[0], xs[1] % len(xs[0]), axis=0),
    weight=3,
)
kind("element", lambda lib, n, x, i: lib.get(x, region(lib, x, i, n)), _indexed, 2, weight=4)
kind("rows", lambda lib, n, x: x[np.array([0, -1, 0])], lambda x: real(x) and filled(x), flags="tame")
kind("flat part", lambda lib, n, x: lib.np.ravel(x)[:10], number, flags="tame")
kind("slab", lambda lib, n, x, i: lib.slab(x, i - 1, min(n, len(x))), _indexed, 2)
kind(
    "beyond",
    lambda lib, n, x, i: lib.get(x, 2 * i - 3, ["clip", "wrap", "fill", "fill"][n]),
    lambda x, i: real(x) and filled(x) and integer(i) and i.ndim == 0,
    2,
)
kind(
    "along axis",
    lambda lib, n, x: lib.np.take_along_axis(x, lib.np.argsort(lib.np.cos(x), axis=-1, stable=True), axis=-1),
    lambda x: real(x) and filled(x),
    flags="jumps finite",
)
kind(
    "sorted order",
    lambda lib, n, x, i: lib.np.take(x, i % len(x), axis=0),
    lambda x, i: real(x) and filled(x) and integer(i) and i.ndim == 1,
    2,
)
kind(
    "checked index",
    lambda lib, n, x: (lib.np.ones(3) * x)[lib.np.asarray(0.0 * x, dtype="i8")],
    lambda x: real(x) and x.ndim == 0,
    flags="finite",
    weight=0,
)
kind(
    "masked",
    lambda lib, n, x, b: lib.np.where(b, lib.np.cos(x), 0.0),
    lambda x, b: real(x) and boolean(b) and x.shape == b.shape,
    2,
)

# --- writing ------------------------------------------------------------------------------------------------------

HOW = ("set", "add", "set", "multiply", "max", "set")


def _put(lib, n, x, v, i):
    """A region of an array with what another value makes of it."""
    at = region(lib, x, i, n)
    like = lib.get(x, at)
    value = fitted(lib, lib.np.sin(1.5 * v + 0.2), like)
    return lib.put(x, at, value, HOW[n % len(HOW)])


def _writable(x, v, i):
    return real(x, v) and filled(x) and x.ndim < 3 and integer(i) and i.ndim == 0


kind("put", _put, _writable, 3, weight=6, flags="jumps")  # a maximum has a kink


def _move(lib, n, x, i):
    """A region from another region of the same array."""
    to, origin = region(lib, x, i, n), region(lib, x, i + 1, n)
    value = lib.np.sin(1.5 * lib.get(x, origin) + 0.2)
    return lib.put(x, to, value, HOW[(n + 1) % 2])


def _movable(x, i):
    return real(x) and filled(x) and x.ndim < 3 and integer(i) and i.ndim == 0


kind("move", _move, _movable, 2, weight=4)


def _old(lib, n, x, v, i):
    """Reads what a write replaced, after the write."""
    at = region(lib, x, i, n)
    new = lib.put(x, at, fitted(lib, lib.np.cos(v), lib.get(x, at)))
    return new * 0.9 + lib.np.sum(lib.np.sin(lib.get(x, region(lib, x, i, n + 1))))


kind("old", _old, _writable, 3, weight=3)


def _exchange(lib, n, x, i):
    at, other = place(lib, i, len(x), n), place(lib, i * 2 + 1, len(x), n + 1)
    return lib.put(lib.put(x, at, lib.get(x, other)), other, lib.get(x, at))


kind("exchange", _exchange, _movable, 2, weight=3)


def _paste(lib, n, x, i):
    """A slice at places that are known late, and that may overlap the slice that is read."""
    size = min(n + 1, len(x))
    slab = lib.slab(x, i + n % 2 - 1, size)
    return lib.paste(x, lib.np.cos(slab), i % 3)


kind("paste", _paste, _movable, 2, weight=3)


def _scatter(lib, n, x, k):
    """Adds at places of which some are equal."""
    at = lib.np.concatenate([lib.np.ravel(k) % len(x), np.arange(len(x)) // 2])
    return lib.np.tanh(lib.put(x, at, lib.np.sin(lib.np.take(x, at, axis=0)), "add"))


kind("scatter", _scatter, lambda x, k: real(x) and filled(x) and integer(k), 2, weight=3)
kind(
    "fill slice",
    lambda lib, n, x: lib.put(x, slice(n % 2, None, 2), 0.25 * n, "add"),
    lambda x: real(x) and filled(x),
)
kind(
    "fill first", lambda lib, n, x: lib.put(x, (..., 0), 0.25), lambda x: real(x) and filled(x), flags="tame"
)
kind(
    "put beyond",
    lambda lib, n, x, i: lib.put(
        x, 2 * i - 3, 0.5, ["set", "add"][n % 2], ["drop", "clip", "wrap", "drop"][n]
    ),
    _movable,
    2,
)

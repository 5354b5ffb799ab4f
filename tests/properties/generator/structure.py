"""Kinds of statements: shapes, sums and other reductions, sorting, products, factorisations."""

from __future__ import annotations

import numpy as np

import functrans.numpy as fnp
from functrans import lax

from .records import boolean, both, broadcast, filled, integer, kind, number, ranked, real


def linear(name, f, transposed, fits=number, **more):
    """A linear function of one array, ``f(np, x, n)``, and its transpose ``transposed(x, ct, n)``."""
    kind(
        name,
        lambda lib, n, x: f(lib.np, x, n),
        fits,
        pull=lambda xs, y, ct, n: (transposed(xs[0], ct, n),),
        push=lambda xs, y, ts, n: f(fnp, ts[0], n),
        **more,
    )


def function(name, f, fits=number, count=1, **more):
    """``f(np, *arrays, n)``."""
    kind(name, lambda lib, n, *xs: f(lib.np, *xs, n), fits, count, **more)


def _spread(x, ct, axis):
    return fnp.broadcast_to(fnp.expand_dims(ct, axis), x.shape)


def matrix(np_, x):
    rows = x.shape[-1]
    return np_.asarray((np.cos(np.arange(rows * 2.0)).reshape(rows, 2) / max(1, rows)).astype(x.dtype))


some = both(number, lambda x: x.size > 0)
thin = both(number, lambda x: x.ndim < 3)
rows = ranked(1)

# --- shapes -------------------------------------------------------------------------------------------------------

linear("transpose", lambda np_, x, n: np_.transpose(x), lambda x, ct, n: fnp.transpose(ct))
linear("ravel", lambda np_, x, n: np_.reshape(x, (x.size,)), lambda x, ct, n: fnp.reshape(ct, x.shape))
linear("reverse", lambda np_, x, n: x[::-1], lambda x, ct, n: ct[::-1], rows)
linear(
    "broadcast",
    lambda np_, x, n: np_.broadcast_to(x, (2, *x.shape)),
    lambda x, ct, n: fnp.sum(ct, axis=0),
    thin,
)
linear(
    "slice",
    lambda np_, x, n: x[..., n % 2 :: 2],
    lambda x, ct, n: fnp.zeros_like(x).at[..., n % 2 :: 2].set(ct),
    rows,
)
linear(
    "concatenate",
    lambda np_, x, n: np_.concatenate([x, 2.0 * x]),
    lambda x, ct, n: ct[: len(x)] + 2.0 * ct[len(x) :],
    rows,
)
function("add axis", lambda np_, x, n: np_.expand_dims(x, n % (x.ndim + 1)), thin)
function("join", lambda np_, x, y, n: np_.concatenate([np_.ravel(x), np_.ravel(y)]), count=2)
function(
    "stack",
    lambda np_, x, y, n: np_.stack([x, y], axis=-1),
    lambda x, y: number(x, y) and x.shape == y.shape and x.ndim < 3,
    2,
)
function("pad", lambda np_, x, n: np_.pad(x, (n % 2, 1)), thin)
function("roll", lambda np_, x, n: np_.roll(x, n + 1, axis=-1), both(rows, some))
function("tile", lambda np_, x, n: np_.tile(x, 2), thin, weight=1)
function("flip", lambda np_, x, n: np_.flip(x), flags="tame")
function("backwards", lambda np_, x, n: x[::-2], rows, flags="tame")
function("diagonal", lambda np_, x, n: np_.diagonal(x, n % 2), both(number, lambda x: x.ndim == 2))
function("triangle", lambda np_, x, n: np_.tril(x, n % 3 - 1), both(number, lambda x: x.ndim == 2))

function("any order", lambda np_, x, n: np_.transpose(x, [(k + n) % x.ndim for k in range(x.ndim)]))
function(
    "any shape", lambda np_, x, n: np_.reshape(x, [(x.size, 1), (1, x.size), x.shape[::-1], (x.size,)][n])
)
function(
    "any slice",
    lambda np_, x, n: x[tuple([slice((n + k) % 2, None, 1 + (n + k) % 3) for k in range(x.ndim)])],
)
function(
    "both sides",
    lambda np_, x, y, n: x + np_.transpose(y),
    lambda x, y: number(x, y) and broadcast(x, y.T),
    2,
)
function("literal", lambda np_, x, n: x * [0.0, 1.0, -1.0, -0.0][n] + [3.7, 0.0, 1.0, -0.0][n])


def _spread_rows(np_, x, n):
    """A new axis anywhere, and copies along it."""
    axis = n % (x.ndim + 1)
    shape = list(x.shape)
    shape.insert(axis, 2 + n)
    return np_.broadcast_to(np_.expand_dims(x, axis), shape)


function("spread", _spread_rows, thin)


def _padded(lib, n, x):
    """Borders that are added or cut off, and gaps."""
    borders = [((n + k) % 3 - (1 if m > 2 else 0), n % 2, (n + k) % 2) for k, m in enumerate(x.shape)]
    if lib.np is not np:
        return lax.pad(lib.np.asarray(x), np.asarray(0.25, x.dtype), borders)
    for k, (low, high, gap) in enumerate(borders):
        m = x.shape[k]
        wide = np.full([*x.shape[:k], low + high + m + gap * max(m - 1, 0), *x.shape[k + 1 :]], 0.25, x.dtype)
        places = low + (1 + gap) * np.arange(m)
        kept = (places >= 0) & (places < wide.shape[k])
        wide[(slice(None),) * k + (places[kept],)] = x[(slice(None),) * k + (np.flatnonzero(kept),)]
        x = wide
    return x


kind("padded", _padded, both(number, lambda x: x.ndim < 3))

# --- sums and other reductions ------------------------------------------------------------------------------------

linear(
    "sum", lambda np_, x, n: np_.sum(x, axis=n % x.ndim), lambda x, ct, n: _spread(x, ct, n % x.ndim), rows
)
linear("total", lambda np_, x, n: np_.sum(x), lambda x, ct, n: fnp.broadcast_to(ct, x.shape))
function("mean", lambda np_, x, n: np_.sum(x, axis=n % x.ndim, keepdims=True) / (n + 2), rows)
function("prod", lambda np_, x, n: np_.prod(np_.cos(x), axis=n % x.ndim), rows)
function("count", lambda np_, x, n: x * np_.sum(np_.ones(x.shape, "i4") * n))
function("deviation", lambda np_, x, n: np_.sqrt(np_.var(x) + 0.5), both(real, some))
function("norm", lambda np_, x, n: np_.sqrt(np_.sum(np_.abs(x) ** 2, axis=-1) + 1.0), both(real, rows))
function("mean of rows", lambda np_, x, n: np_.mean(x, axis=0), both(real, filled), flags="tame")
function("cumulated", lambda np_, x, n: np_.cumsum(x, axis=n % x.ndim), rows)
function("cumulated product", lambda np_, x, n: np_.cumprod(np_.sin(x), axis=-1), rows)
function("most", lambda np_, x, n: np_.max(x, axis=n % x.ndim), both(real, filled), flags="jumps")
function("least", lambda np_, x, n: np_.min(x), both(real, some), flags="jumps")
function(
    "most of each",
    lambda np_, x, n: np_.max(x, axis=-1, keepdims=True),
    both(real, filled),
    flags="jumps tame",
)
function(
    "place of most",
    lambda np_, x, n: np_.argmax(x, axis=n % x.ndim),
    both(real, filled),
    flags="jumps finite",
)
function("any", lambda np_, b, n: np_.any(b, axis=-1) if n % 2 and b.ndim else np_.all(b), boolean)
function("number of", lambda np_, b, n: np_.sum(b), boolean)
function("sum of integers", lambda np_, i, n: np_.sum(i) % 5, integer)
function("softmax", lambda np_, x, n: _softmax(np_, x), both(real, filled))


def _softmax(np_, x):
    e = np_.exp(x - np_.max(x, axis=-1, keepdims=True))
    return e / np_.sum(e, axis=-1, keepdims=True)


# --- sorting ------------------------------------------------------------------------------------------------------

function("sort", lambda np_, x, n: np_.sort(x, axis=n % x.ndim), both(real, rows), flags="jumps")
function("sort each", lambda np_, x, n: np_.sort(x, axis=-1), both(real, rows), flags="jumps tame")
function(
    "order", lambda np_, x, n: np_.argsort(x, axis=-1, stable=True), both(real, rows), flags="jumps finite"
)
function("sort integers", lambda np_, i, n: np_.sort(i), lambda i: integer(i) and i.ndim > 0)
function(
    "among",
    lambda np_, x, y, n: np_.searchsorted(np_.sort(np_.ravel(x)), y),
    real,
    2,
    flags="jumps finite",
    weight=1,
)

# --- products and factorisations ----------------------------------------------------------------------------------

linear("matmul", lambda np_, x, n: x @ matrix(np_, x), lambda x, ct, n: ct @ matrix(fnp, x).T, rows)


def _multiply(np_, x, y, n):
    return np_.tanh(x @ y)


def _can_multiply(x, y):
    if not real(x, y) or not x.ndim or not y.ndim or max(x.ndim, y.ndim) > 2:
        return False
    return x.shape[-1] == y.shape[0]


def vectors(x, y):
    return x.ndim == y.ndim == 1 and real(x, y)


function("product of two", _multiply, _can_multiply, 2, weight=4)
function(
    "product with transpose",
    lambda np_, x, n: np_.sin(x @ np_.transpose(x) / (x.shape[-1] + 1)),
    both(real, lambda x: x.ndim == 2),
)
function(
    "gram",
    lambda np_, x, n: (np_.transpose(x) @ x) * (1 / max(len(x), 1)),
    both(real, lambda x: x.ndim == 2),
    flags="tame",
)
function(
    "inner",
    lambda np_, x, y, n: np_.tensordot(np_.sin(x), y, axes=x.ndim) / max(x.size, 1),
    lambda x, y: real(x, y) and x.shape == y.shape,
    2,
)
function(
    "outer", lambda np_, x, y, n: np_.sin(np_.ravel(x)[:3, None]) * np_.cos(np_.ravel(y)[None, :3]), count=2
)
function("einsum", lambda np_, x, y, n: np_.einsum("i,j->ij", x[:4], y[:4]), vectors, 2)
function(
    "einsum of rows",
    lambda np_, x, y, n: np_.einsum("ij,kj->ik", x, np_.cos(y)) / (x.shape[1] + 1),
    lambda x, y: real(x, y) and x.ndim == y.ndim == 2 and x.shape[1] == y.shape[1],
    2,
)
function(
    "dot", lambda np_, x, y, n: np_.dot(np_.ravel(x)[:2], np_.ravel(x)[:2]) + 0.0 * np_.sum(y), number, 2
)
function(
    "convolve",
    lambda np_, x, y, n: np_.tanh(np_.convolve(x, y[:3])),
    lambda x, y: vectors(x, y) and x.size and y.size,
    2,
    flags="finite",
)


def _definite(np_, x):
    """A matrix of 2 x 2 that can be factored, of any array."""
    s = np_.sin(np_.sum(x))
    return np_.reshape(np_.stack([2.0 + s, 0.3 * s, 0.3 * s, 1.5 + 0 * s]), (2, 2))


function("cholesky", lambda np_, x, n: np_.linalg.cholesky(_definite(np_, x)), real, flags="finite")
function(
    "solve",
    lambda np_, x, n: np_.linalg.solve(_definite(np_, x), np_.asarray([1.0, 0.5 * n])),
    real,
    flags="finite",
)
function("det", lambda np_, x, n: np_.linalg.det(_definite(np_, x)), real, flags="finite")
function(
    "eigenvalues", lambda np_, x, n: np_.linalg.eigvalsh(_definite(np_, x)), real, flags="finite", weight=1
)

"""Krylov methods for vectors, as loops that end independently in each lane.

Each returns the solution, the number of iterations, and the square of the residual's norm.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import numpy as fnp
from ...core.values import ArrayLike
from ...lax.control_flow.while_loops import fori_loop, while_loop

Product = Callable[[Any], Any]
Solved = tuple[Any, Any, Any]


def square(x: ArrayLike) -> Any:
    """The square of a vector's norm; real."""
    return fnp.sum(x.real * x.real + x.imag * x.imag) if x.dtype.kind == "c" else fnp.sum(x * x)


def cg(a: Product, m: Product, b: ArrayLike, x: ArrayLike, limit: Any, most: int) -> Solved:
    """Conjugate gradients.

    Parameters
    ----------
    a, m : callable
        The matrix, and an approximation of its inverse.
    b, x : Array, shape (n,)
        The right-hand side, and where to start.
    limit : scalar
        The square of the residual's norm at which to stop.
    most : int
        The largest number of iterations.
    """

    def step(state: Any) -> Any:
        x, r, p, gamma, _, k = state
        q = a(p)
        alpha = gamma / fnp.vdot(p, q)
        x, r = x + alpha * p, r - alpha * q
        z = m(r)
        new = fnp.vdot(r, z)
        return x, r, z + (new / gamma) * p, new, square(r), k + 1

    r = b - a(x)
    z = m(r)
    start = x, r, z, fnp.vdot(r, z), square(r), 0
    x, *_, rest, k = while_loop(lambda s: (s[4] > limit) & (s[5] < most), step, start)
    return x, k, rest


def bicgstab(a: Product, m: Product, b: ArrayLike, x: ArrayLike, limit: Any, most: int) -> Solved:
    """Stabilized biconjugate gradients; see `cg` for the arguments."""

    def step(state: Any) -> Any:
        x, r, p, q, (rho, alpha, omega), _, k = state
        new = fnp.vdot(shadow, r)
        p = r + (new / rho) * (alpha / omega) * (p - omega * q)
        p_hat = m(p)
        q = a(p_hat)
        alpha = new / fnp.vdot(shadow, q)
        s = r - alpha * q
        early = square(s) <= limit  # then the second half of the step would divide by 0
        s_hat = m(s)
        t = a(s_hat)
        size = square(t)
        omega = fnp.where(early | (size == 0), 0.0, fnp.vdot(t, s) / fnp.where(size == 0, 1.0, size))
        x, r = x + alpha * p_hat + omega * s_hat, s - omega * t
        rest = square(r)
        # Without progress in `omega` the method has broken down.
        return x, r, p, q, (new, alpha, omega), rest, fnp.where(~early & (omega == 0), most, k + 1)

    r = shadow = b - a(x)
    one, zero = fnp.ones((), r.dtype), fnp.zeros_like(r)
    start = x, r, zero, zero, (one, one, one), square(r), 0
    x, *_, rest, k = while_loop(lambda s: (s[5] > limit) & (s[6] < most), step, start)
    return x, k, rest


def gmres(a: Product, m: Product, b: ArrayLike, x: ArrayLike, limit: Any, most: int, restart: int) -> Solved:
    """Generalized minimal residuals with right preconditioning, restarted after `restart` steps.

    `most` counts starts.
    """

    def cycle(state: Any) -> Any:
        x, r, rest, k = state
        x = x + m(_minimal(a, m, r, rest, limit, restart))
        r = b - a(x)
        return x, r, square(r), k + 1

    r = b - a(x)
    start = x, r, square(r), 0
    x, _, rest, k = while_loop(lambda s: (s[2] > limit) & (s[3] < most), cycle, start)
    return x, k, rest


def _minimal(a: Product, m: Product, r: ArrayLike, rest: ArrayLike, limit: Any, size: int) -> Any:
    """The vector of a Krylov space whose image is nearest to `r`, before preconditioning."""
    dtype, beta = r.dtype, fnp.sqrt(rest)
    basis = fnp.zeros((size + 1, *r.shape), dtype).at[0].set(r / beta)
    right = fnp.zeros(size + 1, dtype).at[0].set(beta)
    triangle, turns = fnp.eye(size, dtype=dtype), (fnp.zeros(size, beta.dtype), fnp.zeros(size, dtype))

    def step(state: Any) -> Any:
        basis, triangle, (cosines, sines), right, k = state
        w, column = _orthogonalized(basis, a(m(basis[k])))
        length = fnp.sqrt(square(w))
        basis = basis.at[k + 1].set(fnp.where(length > 0, w / fnp.where(length > 0, length, 1.0), 0.0))

        def rotate(i: ArrayLike, h: ArrayLike) -> Any:
            top, below = h[i], h[i + 1]
            h = h.at[i].set(cosines[i] * top + sines[i] * below)
            return h.at[i + 1].set(-fnp.conj(sines[i]) * top + cosines[i] * below)

        column = fori_loop(0, k, rotate, column)
        cosine, sine, top = _rotation(column[k], length)
        column = column.at[k].set(top)[:size]
        column = fnp.where(fnp.arange(size) <= k, column, 0.0)
        right = right.at[k + 1].set(-fnp.conj(sine) * right[k]).at[k].set(cosine * right[k])
        turns = cosines.at[k].set(cosine), sines.at[k].set(sine)
        return basis, triangle.at[:, k].set(column), turns, right, k + 1

    def goes_on(state: Any) -> Any:
        *_, right, k = state
        return (k < size) & (square(right[fnp.minimum(k, size)]) > limit)

    basis, triangle, _, right, k = while_loop(goes_on, step, (basis, triangle, turns, right, 0))
    known = fnp.where(fnp.arange(size) < k, right[:size], 0.0)
    return _back_substituted(triangle, known) @ basis[:size]


def _orthogonalized(basis: Any, w: ArrayLike) -> tuple[Any, Any]:
    """`w` without its components in the basis (rows not yet set are zero), and these. Twice, for rounding errors."""
    total = fnp.zeros(basis.shape[0], basis.dtype)
    for _ in range(2):
        components = fnp.conj(basis) @ w
        w, total = w - components @ basis, total + components
    return w, total


def _rotation(x: ArrayLike, y: ArrayLike) -> tuple[Any, Any, Any]:
    """Cosine and sine of the rotation that turns (x, y), y >= 0 real, to (top, 0); and top."""
    size = fnp.abs(x)
    whole = fnp.hypot(size, y)
    safe = fnp.where(whole > 0, whole, 1.0)
    phase = fnp.where(size > 0, x / fnp.where(size > 0, size, 1.0), 1.0)
    return fnp.where(whole > 0, size / safe, 1.0), phase * (y / safe), phase * whole


def _back_substituted(triangle: Any, right: ArrayLike) -> Any:
    """The solution of an upper triangular system; zero where the diagonal is."""
    size = right.shape[0]

    def step(j: ArrayLike, y: ArrayLike) -> Any:
        i = size - 1 - j
        pivot = triangle[i, i]
        rest = right[i] - fnp.sum(triangle[i] * y)
        return y.at[i].set(fnp.where(pivot == 0, 0.0, rest / fnp.where(pivot == 0, 1.0, pivot)))

    return fori_loop(0, size, step, fnp.zeros_like(right))

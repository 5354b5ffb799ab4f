"""Published loop programs: translated results against the jitted ones, derivatives against finite differences."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp

from .njit_features import FEATURES
from .njit_programs import PROGRAMS
from .njit_slices import SLICES


def outputs(result):
    return [np.asarray(x) for x in (result if isinstance(result, tuple) else (result,))]


def weighted(f, weights):
    """The sum of the float results, with fixed weights."""

    def loss(*args):
        result = f(*args)
        parts = result if isinstance(result, tuple) else (result,)
        return sum(fnp.sum(w * x) for w, x in zip(weights, parts, strict=True) if w is not None)

    return loss


#: Those that need most of the translation.
QUICK = ("adaptive_heun", "heat", "swap_in_while", "cholesky_dot", "windows")
ALL = {**PROGRAMS, **FEATURES, **SLICES}


def is_float(x):
    return np.asarray(x).dtype.kind == "f"


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in ALL])
def test_program(name):
    f, args = ALL[name]
    before = [np.array(a) for a in args]
    expected = outputs(f(*args))
    whole = [k for k, a in enumerate(args) if isinstance(a, int)]
    moving = [k for k, a in enumerate(args) if is_float(a)]

    def of(places, *values):
        """The function of some of its arguments."""
        given = dict(zip(places, values, strict=True))
        return f(*[given.get(k, a) for k, a in enumerate(args)])

    # A batch of one lane is translated; it is what vmap runs.
    mapped = [k for k in range(len(args)) if k not in whole]
    lanes = ft.vmap(lambda *v: of(mapped, *v))(*[np.asarray(args[k])[None] for k in mapped])
    for want, got in zip(expected, outputs(lanes), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got[0], want, rtol=1e-12, atol=1e-13)
    if not moving:
        return
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=x.shape) if is_float(x) else None for x in expected]
    loss = weighted(lambda *v: of(moving, *v), weights)
    points = [args[k] for k in moving]
    directions = [rng.normal(size=np.shape(a)) if np.ndim(a) else rng.normal() for a in points]
    gradient = ft.grad(loss, argnums=tuple(range(len(points))))(*points)
    slope = sum(np.sum(g * d) for g, d in zip(gradient, directions, strict=True))
    h = 1e-6

    def at(step):
        return float(loss(*[a + step * d for a, d in zip(points, directions, strict=True)]))

    np.testing.assert_allclose((at(h) - at(-h)) / (2 * h), slope, rtol=1e-5, atol=1e-7)
    _, pushed = ft.jvp(loss, tuple(points), tuple(directions))
    np.testing.assert_allclose(pushed, slope, rtol=1e-9, atol=1e-12)
    for a, b in zip(args, before, strict=True):
        np.testing.assert_array_equal(a, b)

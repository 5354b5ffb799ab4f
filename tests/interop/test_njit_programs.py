"""Published loop programs: translated results against the jitted ones, derivatives against finite differences."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp

from .njit_programs import PROGRAMS


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
QUICK = ("adaptive_heun", "heat")


@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in PROGRAMS]
)
def test_program(name):
    f, args = PROGRAMS[name]
    before = [np.array(a) for a in args]
    expected = outputs(f(*args))
    # A batch of one lane is translated; it is what vmap runs.
    lanes = ft.vmap(f)(*[np.asarray(a)[None] for a in args])
    for want, got in zip(expected, outputs(lanes), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got[0], want, rtol=1e-12, atol=1e-13)
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=x.shape) if x.dtype.kind == "f" else None for x in expected]
    loss = weighted(f, weights)
    directions = [rng.normal(size=np.shape(a)) for a in args]
    gradient = ft.grad(loss, argnums=tuple(range(len(args))))(*args)
    slope = sum(np.sum(g * d) for g, d in zip(gradient, directions, strict=True))
    h = 1e-6

    def at(step):
        moved = [a + step * d for a, d in zip(args, directions, strict=True)]
        return float(loss(*[x if np.ndim(x) else float(x) for x in moved]))

    np.testing.assert_allclose((at(h) - at(-h)) / (2 * h), slope, rtol=1e-5, atol=1e-7)
    tangents = tuple([d if np.ndim(a) else float(d) for a, d in zip(args, directions, strict=True)])
    _, pushed = ft.jvp(loss, tuple(args), tangents)
    np.testing.assert_allclose(pushed, slope, rtol=1e-9, atol=1e-12)
    for a, b in zip(args, before, strict=True):
        np.testing.assert_array_equal(a, b)

"""Minima and maxima that wait for the iteration before leave NaN to a branch; they propagate it all the same."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.lowering.run.executable import compile_jaxpr

N = 34


def alignment(h):
    def row(i, h):
        def cell(j, h):
            shifted = fnp.maximum(h[i - 1, j], h[i, j - 1]) - 0.5
            return h.at[i, j].set(fnp.maximum(h[i - 1, j - 1] + h[i, j], shifted))

        return lax.fori_loop(1, N, cell, h)

    return lax.fori_loop(1, N, row, h)


def least_path(h):
    def row(i, h):
        return lax.fori_loop(1, N, lambda j, h: h.at[i, j].add(fnp.minimum(h[i, j - 1], h[i - 1, j])), h)

    return lax.fori_loop(1, N, row, h)


def running(h):
    def step(carry, x):
        low, high = carry
        low, high = fnp.minimum(x, low), fnp.maximum(high - 1.0, x)
        return (low, high), (low, high)

    return fnp.stack(lax.scan(step, (fnp.inf, -fnp.inf), h.reshape(-1))[1])


def folded(h):
    return lax.scan(lambda s, x: (fnp.maximum(s, x), None), -np.inf, h.reshape(-1))[0]


def until_large(h):
    def step(s):
        i, y = s
        return i + 1, y.at[i].set(fnp.minimum(fnp.maximum(y[i - 1], y[i]) * 1.5, 50.0))

    h = h.reshape(-1)
    return lax.while_loop(lambda s: (s[0] < h.shape[0]) & ~(s[1][s[0] - 1] >= 20.0), step, (1, h))[1]


@pytest.mark.parametrize(
    ("f", "branches"), [(alignment, 2), (least_path, 1), (running, 2), (folded, 0), (until_large, 2)]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nan_and_infinities(f, branches, dtype):
    rng = np.random.default_rng(3)
    compiled = ft.jit(f)
    for special in ([], [np.nan], [np.inf, -np.inf], [np.nan, np.inf, -np.nan, -np.inf]):
        h = rng.normal(size=(N, N)).astype(dtype)
        for x in special * 2:
            h[tuple(rng.integers(0, N, 2))] = x
        with ft.disable_jit():
            expected = f(fnp.asarray(h))
        np.testing.assert_allclose(compiled(h), expected, rtol=1e-6 if dtype == np.float32 else 1e-14)
    text = compile_jaxpr(ft.make_jaxpr(f)(h)).compile().kernels[0].llvm
    assert text.count("\nrare") == branches

"""Gradients of several convolutions after each other, whose sums over windows run in parts of any length."""

import itertools

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("images", "pixels"), [(16, 32), (5, 27)])
def test_gradients_of_layers(images, pixels, threads):
    rng = np.random.default_rng(0)
    channels = (3, 16, 32, 32)
    filters = [
        (rng.normal(size=(n, m, 3, 3)) / (3 * m**0.5)).astype("f4") for m, n in itertools.pairwise(channels)
    ]
    x = rng.normal(size=(images, 3, pixels, pixels)).astype("f4")

    def loss(filters):
        y = x
        for n, w in enumerate(filters):
            y = fnp.maximum(lax.conv(y, w, (1, 1) if n == 0 else (2, 2), "SAME"), 0)
        return (fnp.mean(y, axis=(2, 3)) ** 2).sum()

    with ft.config.patch(num_threads=threads):
        compiled = ft.jit(ft.grad(loss))(filters)
    for a, b in zip(compiled, ft.grad(loss)(filters)):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4 * np.abs(b).max())

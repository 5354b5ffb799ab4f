"""LAPACK's workspaces: too small a one makes a kernel fail, and NumPy's answer would hide it; NaN does not."""

import numpy as np
import pytest

import functrans as ft
from functrans.primitives.linalg.eigh import eigh_p
from functrans.primitives.linalg.least_squares import lstsq_p, pinv_p
from functrans.primitives.linalg.svd import svd_p

SHAPES = (
    (1, 1),
    (1, 2),
    (3, 2),
    (2, 9),
    (30, 3),
    (17, 16),
    (11, 6),
    (40, 70),
    (129, 64),
    (5, 130),
    (70, 66),
)


def draw(shape, dtype):
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape)
    return x + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else x


@pytest.mark.wide(3)
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("shape", SHAPES)
def test_kernels_of_many_sizes(shape, dtype):
    x, b, rtol = draw(shape, dtype), draw((shape[0], 3), dtype), np.float64(1e-12)
    square = x @ x.conj().T

    @ft.jit
    def run(x, b, square):
        every = []
        for vectors in (True, False):
            for full in (True, False):
                every += svd_p.bind(x, full_matrices=full, vectors=vectors, on_error="nan")
            for lower in (True, False):
                every += eigh_p.bind(square, lower=lower, vectors=vectors, on_error="nan")
        return every, pinv_p.bind(x, rtol, on_error="nan"), lstsq_p.bind(x, b, rtol, on_error="nan")

    every, inverse, (solution, _, rank) = run(x, b, square)
    assert all(np.isfinite(y).all() for y in every)
    np.testing.assert_allclose(every[0][:, : min(shape)] * every[1] @ every[2][: min(shape)], x, atol=1e-11)
    np.testing.assert_allclose(inverse, np.linalg.pinv(x), atol=1e-10)
    np.testing.assert_allclose(solution, np.linalg.pinv(x) @ b, atol=1e-9)
    assert rank == min(shape)

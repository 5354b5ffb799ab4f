"""gradient and ediff1d, compared with NumPy, and their derivatives."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.testing import check

RNG = np.random.default_rng(0)
CUBE = RNG.standard_normal((3, 4, 5))
PLACES = np.array([0.0, 1.0, 1.5, 3.5, 4.0])


@pytest.mark.parametrize("edge_order", [1, 2, 3])
def test_gradient(same, edge_order):
    for x in (CUBE, CUBE.astype(np.float32), (9 * CUBE).astype(int), CUBE * 1j, (9 * CUBE).astype(np.uint8)):
        same("gradient", x, edge_order=edge_order)
        same("gradient", x, 0.5, edge_order=edge_order)
        same("gradient", x, 2, axis=1, edge_order=edge_order)
        same("gradient", x, PLACES, axis=-1, edge_order=edge_order)
        same("gradient", x, 1.5, [1, 2, 4, 8], axis=(0, 1), edge_order=edge_order)
        same("gradient", x, 1.5, np.arange(4), PLACES, edge_order=edge_order)
    same("gradient", CUBE[0, 0], edge_order=edge_order)
    same("gradient", CUBE[::-1, ::2, ::-2], edge_order=edge_order)
    same("gradient", [1.0, 4.0], edge_order=edge_order)


def test_gradient_refuses(same):
    same("gradient", CUBE, 1.0, 2.0)
    same("gradient", CUBE, PLACES)
    same("gradient", CUBE, PLACES, axis=0)
    same("gradient", CUBE, axis=3)
    same("gradient", CUBE, axis=(0, 0))
    same("gradient", CUBE, np.ones((2, 2)), axis=0)
    same("gradient", [1.0])
    same("gradient", np.zeros((0, 3)))
    same("gradient", CUBE > 0)


@pytest.mark.parametrize("edge_order", [1, 2])
def test_gradient_transformed(edge_order):
    x = CUBE[0, 0]

    def f(x, places):
        return fnp.gradient(x, places, edge_order=edge_order)

    np.testing.assert_allclose(
        ft.jit(f)(x, PLACES), np.gradient(x, PLACES, edge_order=edge_order), rtol=1e-12
    )
    even = np.arange(5) * 0.25
    np.testing.assert_allclose(ft.jit(f)(x, even), np.gradient(x, even, edge_order=edge_order), rtol=1e-12)
    check(f, x, PLACES, order=2)
    check(lambda x, h: fnp.gradient(x, h, edge_order=edge_order)[1], CUBE[:, :, :3], 0.3, order=1)
    mapped = ft.vmap(f, (0, None))(CUBE[0], PLACES)
    np.testing.assert_allclose(
        mapped, np.gradient(CUBE[0], PLACES, axis=1, edge_order=edge_order), rtol=1e-12
    )
    out = ft.jit(lambda x: np.gradient(x))(CUBE)
    assert isinstance(out, tuple)
    assert len(out) == 3


def test_ediff1d(same):
    for x in (CUBE, CUBE[0, 0, :1], CUBE[0, 0, :0], np.arange(4, dtype=np.uint8), 3.0, CUBE * 1j, [1, 4, 2]):
        same("ediff1d", x)
        same("ediff1d", x, to_end=[7, 8], to_begin=0)
    same("ediff1d", np.arange(3), to_end=[1.5])
    same("ediff1d", np.arange(3.0), to_begin=[[1, 2], [3, 4]])
    same("ediff1d", CUBE > 0)
    check(lambda x, e: fnp.ediff1d(x, to_end=e), CUBE[0], CUBE[0, 0, :2], order=2)
    np.testing.assert_array_equal(ft.jit(lambda x: np.ediff1d(x))(PLACES), np.ediff1d(PLACES))

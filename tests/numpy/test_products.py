"""Products: NumPy's functions, compared with NumPy."""

import itertools

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.errors import ArgumentValueError, ShapeError

RNG = np.random.default_rng(0)
A1, A2, A3 = RNG.standard_normal(4), RNG.standard_normal((3, 4)), RNG.standard_normal((2, 3, 4))
S2, C2 = RNG.standard_normal((3, 3)), A2 + 1j * RNG.standard_normal((3, 4))
I2 = RNG.integers(-5, 5, (3, 4)).astype(np.int32)
ARRAYS = [A1, A2, A2.T, A3, S2, C2, I2, A2.astype(np.float32), A2 > 0, np.zeros((0, 3)), 2.5, 3]


@pytest.mark.parametrize("name", ["dot", "inner", "outer", "vdot", "kron"])
def test_pairs(same, name):
    for x, y in itertools.product(ARRAYS, ARRAYS):
        same(name, x, y)


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_more_axes_than_the_32_of_some_functions_of_numpy(wrap):
    x, v = RNG.standard_normal((1,) * 33 + (2, 3)), RNG.standard_normal(3)
    np.testing.assert_allclose(wrap(lambda x, v: x @ v)(x, v), x @ v, rtol=1e-14)
    np.testing.assert_allclose(wrap(fnp.vecdot)(x, v), (x * v).sum(-1), rtol=1e-14)
    slope = wrap(ft.grad(lambda x, v: fnp.sum(fnp.matmul(x, v))))(x, v)
    np.testing.assert_array_equal(slope, np.broadcast_to(v, x.shape))
    np.testing.assert_array_equal(wrap(lambda x: fnp.array_equiv(x, x[..., :1]))(x), False)
    np.testing.assert_array_equal(wrap(lambda x: lax.complex(x, x + 1.0))(x), x + 1j * (x + 1))
    with pytest.raises(ShapeError, match="matmul: batch axes: shapes"):
        wrap(fnp.matmul)(np.ones((2, *(1,) * 33, 3)), np.ones((3, *(1,) * 32, 3, 1)))


def test_tensordot(same):
    for axes in (0, 1, 2, ([0, 1], [1, 0]), ([0, 1], [0, 1]), (0, 0), (-1, -1), 3, (5, 0)):
        same("tensordot", A3, A3.swapaxes(0, 1), axes)
        same("tensordot", A3, A3, axes)


EINSUMS = [
    ("ij,jk->ik", A2, A2.T),
    ("ij,jk", A2, A2.T),
    ("ij->ji", A2),
    ("ij->", A2),
    ("ii", S2),
    ("ii->i", S2),
    ("ij,ij->i", A2, A2),
    ("i,j->ij", A1, A1),
    ("ij,j", A2, A1),
    ("...ij,...jk->...ik", A3, A3.swapaxes(1, 2)),
    ("...ij,jk", A3, A2.T),
    ("i...->...i", A3),
    ("i...->...", A3),
    ("ij,jk,kl->il", A2, A2.T, A2),
    ("ij,ik,il->jkl", A2, A2, A2),
    ("bij,bj->bi", A3, A3[:, 0]),
    ("ij,kl->ijkl", S2, A2),
    (",ij", 2.0, A2),
    ("ijk,ijk->", A3, A3),
    ("ij,ij", I2, A2),
    ("ij,jk->ik", C2, C2.T),
    ("iij->ij", np.ones((3, 3, 2))),
    ("iij->j", RNG.standard_normal((3, 3, 2))),
    ("ij,k->i", A2, A1),
    ("ij , jk -> k i", A2, A2.T),
    ("a...b,b...->a...", A3, A3.transpose(2, 1, 0)),
    ("ij,jk->ik", A2[:, :1], A2.T),
    ("i,i,i->i", A1, A1, A1),
    ("i,i,i", A1, A1, A1),
    ("ij,jk,kl,lm->im", A2, A2.T, A2, A2.T),
    # refused by both
    ("ij,jk->ik", A2, A2),
    ("ij->ik", A2),
    ("ij,jk->iik", A2, A2.T),
    ("ij,jk", A2),
    ("ijk", A2),
]


@pytest.mark.parametrize("case", EINSUMS, ids=lambda c: c[0])
def test_einsum(same, case):
    same("einsum", *case)
    same("einsum", *case, optimize="optimal")
    same("einsum", *case, optimize=False)


def test_einsum_by_labels(same):
    same("einsum", A2, [0, 1], A2.T, [1, 2])
    same("einsum", A2, [0, 1], A2.T, [1, 2], [2, 0])
    same("einsum", A3, [0, ...], [..., 0])


def test_cross(same):
    v = RNG.standard_normal((5, 3))
    same("cross", v, v[0])
    same("cross", v[0], v[1])
    same("cross", v.T, v.T, axis=0)
    same("cross", v, v[::-1], axisc=0)
    same("cross", np.arange(3), np.arange(3)[::-1])
    with pytest.raises(ShapeError, match="3 elements"):
        fnp.cross([1, 2], [3, 4])


@pytest.mark.parametrize("ord", [None, "fro", 2, 1, -1, 0, 3, 2.5, np.inf, -np.inf])
def test_norms(same, ord):
    for x in (A1, C2[0], I2[0], A1.astype(np.float32)):
        if ord != "fro":
            same("linalg.norm", x, ord)
            same("linalg.vector_norm", x, ord=2 if ord is None else ord)
    if ord in (None, "fro", 1, -1, np.inf, -np.inf):
        for x in (A2, C2, I2):
            same("linalg.norm", x, ord)
            same("linalg.norm", x, ord, keepdims=True)
        for axis in ((0, 1), (2, 0), (-1, 1)):
            same("linalg.norm", A3, ord, axis)
    if ord != "fro":
        same("linalg.norm", A3, ord, 1)
        same("linalg.norm", A3, ord, -1, keepdims=True)
    same("linalg.norm", A3)


def test_linalg(same):
    spd = S2 @ S2.T + 3 * np.eye(3)
    same("linalg.cholesky", spd)
    same("linalg.cholesky", np.stack([spd, 2 * spd]), upper=True)
    same("linalg.cholesky", np.array([[4, 2], [2, 5]]))
    same("linalg.cholesky", -spd)
    same("linalg.cholesky", A2)
    for n in (0, 1, 2, 5):
        same("linalg.matrix_power", S2, n)
        same("linalg.matrix_power", np.array([[1, 1], [0, 1]]), n)
    same("linalg.multi_dot", [A2, A2.T, A2, A1])
    same("linalg.multi_dot", [A1, A2.T, S2])
    same("linalg.trace", A3)
    same("linalg.diagonal", A3, offset=1)


def test_messages():
    with pytest.raises(
        ShapeError, match=r"dot: shapes \(3, 4\) and \(3, 4\) do not match: extent 4 \(axis 1\) meets 3"
    ):
        fnp.dot(A2, A2)
    with pytest.raises(ArgumentValueError, match="has 1 operands, got 2"):
        fnp.einsum("ij", A2, A2)


@pytest.mark.parametrize("axis", [0, 1, -1, -2, 2])
def test_vecdot_along_an_axis(axis):
    rng = np.random.default_rng(1)
    x, y = (rng.normal(size=(3, 3, 4)) + 1j * rng.normal(size=(3, 3, 4)) for _ in range(2))
    expected = np.vecdot(x, y, axis=axis)
    np.testing.assert_allclose(fnp.vecdot(x, y, axis=axis), expected)
    np.testing.assert_allclose(fnp.linalg.vecdot(x, y, axis=axis), np.linalg.vecdot(x, y, axis=axis))
    np.testing.assert_allclose(ft.jit(lambda x: np.vecdot(x, y, axis=axis))(x), expected)
    single = fnp.vecdot(x, y, axis=axis, preferred_element_type=np.complex64)
    np.testing.assert_allclose(single, expected, rtol=1e-5)
    assert single.dtype == np.complex64
    with pytest.raises(ft.errors.AxisError):
        fnp.vecdot(x, y, axis=3)

"""block, r_, c_, mgrid, ogrid against NumPy's."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import errors
from functrans.testing import check

A, V = np.arange(6.0).reshape(2, 3), np.array([1.0, 2.0, 3.0])


def test_block(same):
    for arrays in (
        [A, A], [[A], [V]], [[A, A[:, :1]], [np.ones((1, 4))]], A, 3, [1, 2], [[[A]]], [V, 1.5],
        [[A], A], [], [[], []], [[A], [V[:2]]], (A, A),
    ):  # fmt: skip
        same("block", arrays)
    np.testing.assert_array_equal(ft.jit(lambda a, v: np.block([[a], [v]]))(A, V), np.block([[A], [V]]))
    check(lambda a, v: fnp.block([[a], [v]]) ** 2, A, V)


@pytest.mark.parametrize(
    "key",
    [
        np.s_[1:4, 0, V],
        np.s_[0:1:5j],
        np.s_[:3],
        np.s_[V],
        np.s_[A, A],
        np.s_["-1", A, A],
        np.s_["0,2", V, V],
        np.s_["0,2,0", V, V],
        np.s_["1,2,0", V, V],
        np.s_["0,3,1", V, V],
        np.s_["r", V],
        np.s_[1:2:0.25, 3],
    ],
    ids=str,
)
def test_joiners(key):
    for name in ("r_", "c_"):
        ours, theirs = getattr(fnp, name), getattr(np, name)
        if isinstance(key, tuple) and isinstance(key[0], str) and key[0] == "r":
            with pytest.raises(errors.ArgumentValueError, match="directive"):
                ours[key]
            continue
        try:
            expected = theirs[key]
        except ValueError:
            with pytest.raises(ValueError):
                ours[key]
            continue
        got = ours[key]
        assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(got, expected, rtol=1e-15)


def test_joiners_of_traced_values():
    np.testing.assert_array_equal(ft.jit(lambda v: fnp.r_[v, 1.0, v[::-1]])(V), np.r_[V, 1.0, V[::-1]])
    np.testing.assert_array_equal(ft.jit(lambda v: fnp.c_[v, v])(V), np.c_[V, V])
    assert repr(fnp.r_) == "functrans.numpy.r_"


@pytest.mark.parametrize("key", [np.s_[0:3], np.s_[0:3, 1:2:0.25], np.s_[-1:1:5j, 0:2]], ids=str)
def test_meshes(key):
    for name in ("mgrid", "ogrid"):
        got, expected = getattr(fnp, name)[key], getattr(np, name)[key]
        assert type(got) is (tuple if isinstance(expected, tuple) else ft.Array)
        for g, e in zip(got, expected):
            np.testing.assert_array_equal(g, e)
    with pytest.raises(errors.ArgumentError, match="linspace"):
        ft.jit(lambda n: fnp.mgrid[0:n])(3)

"""cov and corrcoef against NumPy's."""

import warnings

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.testing import check

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((3, 6)), RNG.standard_normal((2, 6))
F, W = np.array([1, 2, 0, 3, 1, 1]), RNG.uniform(0.5, 2, 6)
CASES = {
    "matrix": ((X,), {}),
    "columns": ((X.T,), {"rowvar": False}),
    "two": ((X, Y), {}),
    "two columns": ((X.T, Y.T), {"rowvar": False}),
    "vector": ((X[0],), {}),
    "two vectors": ((X[0], Y[0]), {}),
    "one row": ((X[:1],), {"rowvar": False}),
    "one observation": ((X[:, :1],), {}),
    "int": ((np.arange(6).reshape(2, 3) ** 2,), {}),
    "float32": ((X.astype(np.float32),), {}),
    "to float32": ((X,), {"dtype": np.float32}),
    "complex": ((X + 1j * X[::-1],), {}),
    "cube": ((X[None],), {}),
}
WEIGHTED = [
    {"bias": True},
    {"ddof": 0},
    {"ddof": 2},
    {"ddof": 1.5},
    {"ddof": 9},
    {"fweights": F},
    {"aweights": W},
    {"fweights": F, "aweights": W},
    {"fweights": F, "aweights": W, "bias": True},
    {"aweights": W, "ddof": 0},
    {"aweights": W[:2]},
    {"aweights": -W},
    {"fweights": W},
    {"fweights": F[None]},
]


ONE_ROW = pytest.param("one row", marks=pytest.mark.needs("numpy>=2.2", reason="one row is not transposed"))


@pytest.mark.parametrize("case", [ONE_ROW if case == "one row" else case for case in CASES])
def test_values(same, case):
    args, kwargs = CASES[case]
    same("cov", *args, **kwargs)
    same("corrcoef", *args, **kwargs)


@pytest.mark.parametrize("options", WEIGHTED, ids=str)
def test_weights(same, options):
    same("cov", X, **options)
    same("cov", X[0], **options)


def test_empty(same):
    same("cov", np.zeros((2, 0)))
    same("cov", np.zeros((0, 3)))


@pytest.mark.slow
def test_derivatives():
    check(fnp.cov, X, Y)
    check(fnp.corrcoef, X)
    check(lambda x, w: fnp.cov(x, aweights=w), X, W)
    check(lambda x: fnp.cov(x, rowvar=False, fweights=F), X.T)
    np.testing.assert_allclose(
        ft.jit(lambda x: np.cov(x, aweights=W) + np.corrcoef(x))(X), np.cov(X, aweights=W) + np.corrcoef(X)
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128, np.int64])
@pytest.mark.parametrize("shape", [(1, 1), (7, 1), (1, 5), (5, 3), (3, 5), (0, 3)])
@pytest.mark.parametrize("weighted", [False, True])
def test_variables_in_columns(dtype, shape, weighted):
    if weighted and not shape[0]:
        pytest.skip("weights without observations have no mean")
    x = np.random.default_rng(0).normal(size=shape) * 4
    x = (x + 1j * x[::-1]).astype(dtype) if dtype == np.complex128 else x.astype(dtype)
    weights = (
        {"fweights": np.arange(1, shape[0] + 1), "aweights": np.linspace(0.5, 2.0, shape[0])}
        if weighted
        else {}
    )
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = np.cov(x, rowvar=False, bias=True, **weights)
        for compute in (fnp.cov, ft.jit(fnp.cov, static_argnames=("rowvar", "bias"))):
            result = compute(x, rowvar=False, bias=True, **weights)
            np.testing.assert_allclose(result, expected, rtol=1e-10, atol=1e-12)
    if dtype == np.float64 and x.size:
        check(lambda x: fnp.cov(x, rowvar=False, bias=True, **weights), x)

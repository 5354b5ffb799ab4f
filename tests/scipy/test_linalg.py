"""functrans.scipy.linalg against SciPy."""

import itertools

import numpy as np
import pytest
import scipy.linalg

import functrans as ft
from functrans.errors import ArgumentValueError, LinAlgError, ShapeError
from functrans.runtime.config import config
from functrans.scipy.linalg import cho_factor, cho_solve, cholesky, solve_sylvester, solve_triangular
from functrans.testing import check

RNG = np.random.default_rng(0)
A = RNG.standard_normal((4, 4))
C = A + 1j * RNG.standard_normal((4, 4))
VECTOR, COLUMNS = RNG.standard_normal(4), RNG.standard_normal((4, 3))


def definite(a):
    return a @ a.conj().T + len(a) * np.eye(len(a))


@pytest.mark.parametrize(
    "a", [definite(A), definite(C), definite(A).astype(np.float32), definite(np.eye(3, dtype=int))]
)
@pytest.mark.parametrize("lower", [True, False])
def test_cholesky(a, lower):
    got, expected = cholesky(a, lower=lower), scipy.linalg.cholesky(a, lower=lower)
    assert got.dtype == expected.dtype
    np.testing.assert_allclose(got, expected, rtol=1e-5 if got.dtype == np.float32 else 1e-12)
    c, flag = cho_factor(a, lower)
    assert flag is lower
    b = COLUMNS[: len(a)]
    for right in (b, b[:, 0]):
        np.testing.assert_allclose(
            cho_solve((c, flag), right),
            scipy.linalg.cho_solve(scipy.linalg.cho_factor(a, lower), right),
            rtol=1e-5,
        )


@pytest.mark.parametrize("lower", [True, False])
def test_the_triangle_that_is_read(lower):
    a = definite(A)
    garbled = (
        (np.tril(a) + np.triu(np.full((4, 4), 7.0), 1))
        if lower
        else (np.triu(a) + np.tril(np.ones((4, 4)), -1))
    )
    np.testing.assert_allclose(cholesky(garbled, lower=lower), scipy.linalg.cholesky(garbled, lower=lower))


def test_solve_triangular():
    for a, b in itertools.product((A + 4 * np.eye(4), C + 4 * np.eye(4)), (VECTOR, COLUMNS)):
        for trans, lower, unit in itertools.product((0, 1, 2, "N", "T", "C"), (True, False), (True, False)):
            got = solve_triangular(a, b, trans, lower, unit)
            np.testing.assert_allclose(
                got, scipy.linalg.solve_triangular(a, b, trans, lower, unit), rtol=1e-10
            )


def test_batches():
    a = np.stack([definite(A), 2 * definite(A)])
    b = np.stack([COLUMNS, COLUMNS + 1])
    np.testing.assert_allclose(cholesky(a, lower=True), np.linalg.cholesky(a))
    for right in (VECTOR, COLUMNS, b):
        expected = [np.linalg.solve(m, right[i] if right.ndim == 3 else right) for i, m in enumerate(a)]
        np.testing.assert_allclose(cho_solve(cho_factor(a), right), expected, rtol=1e-10)
    low = np.tril(a)
    np.testing.assert_allclose(low @ solve_triangular(low, b, lower=True), b)


def test_failures():
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        cholesky(-np.eye(2))
    with pytest.raises(LinAlgError, match="diagonal element 1 is zero"):
        solve_triangular(np.diag([1.0, 0.0]), np.ones(2))
    with pytest.raises(ValueError, match=r"square matrices, got shape \(2, 3\)"):
        cholesky(np.ones((2, 3)))
    with pytest.raises(ValueError, match=r"shapes \(2, 2\) and \(3,\) are incompatible"):
        solve_triangular(np.eye(2), np.ones(3))
    with pytest.raises(ArgumentValueError, match="argument 0 must not contain infs or NaNs"):
        cholesky(np.full((2, 2), np.nan))
    with pytest.raises(ArgumentValueError, match="trans must be"):
        solve_triangular(np.eye(2), np.ones(2), trans=3)
    with config.patch(linalg_errors="nan"):
        assert np.isnan(cholesky(-np.eye(2))).all()
        assert not np.isfinite(solve_triangular(np.diag([1.0, 0.0]), np.ones(2))).all()


@pytest.mark.slow
def test_solve_sylvester_of_batches():
    rng = np.random.default_rng(3)
    a, b, q = rng.normal(size=(3, 2, 2)), rng.normal(size=(3, 3)), rng.normal(size=(2, 1, 2, 3))
    x = solve_sylvester(a, b, q)
    assert x.shape == (2, 3, 2, 3)
    for i, j in itertools.product(range(2), range(3)):
        np.testing.assert_allclose(x[i, j], scipy.linalg.solve_sylvester(a[j], b, q[i, 0]), rtol=1e-10)
    np.testing.assert_allclose(ft.jit(solve_sylvester)(a, b, q), x)
    check(lambda a, b, q: solve_sylvester(a, b, q), a, b, q[0], rtol=1e-4)
    with pytest.raises(ShapeError):
        solve_sylvester(a, np.stack([b, b]), q[0])
    with pytest.raises(LinAlgError, match="do not match"):
        solve_sylvester(a, b, q[..., :2])

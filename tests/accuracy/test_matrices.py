"""Gradients of functions of matrices at special matrices: right or NaN, never another finite number."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
import functrans.scipy.linalg as fsl
from functrans.errors import LinAlgError

linalg = fnp.linalg
STEP = 1e-5


def symmetric(a):
    return (a + a.T) / 2


def of_eigenvalues(g):
    def f(a):
        w, v = linalg.eigh(symmetric(a))
        return (v * g(w)) @ v.T

    return f


def of_singular_values(a):
    u, s, vh = linalg.svd(a)
    return (u * s**2) @ vh


MATRICES = {
    "identity": np.eye(3),
    "zero": np.zeros((3, 3)),
    "two equal": np.diag([1.0, 1.0, 2.0]),
    "two pairs": np.diag([1.0, 1.0, 2.0, 2.0]),
    "equal but for rounding": (lambda q: (q * [1.0, 1.0, 3.0]) @ q.T)(
        np.linalg.qr(np.arange(9.0).reshape(3, 3) ** 2 + np.eye(3))[0]
    ),
    "rank 1": np.outer([1.0, 2.0, 2.0], [1.0, 2.0, 2.0]),
    "rank 2": np.diag([2.0, 1.0, 0.0]),
    "1 x 1": np.array([[2.0]]),
    "1 x 1, zero": np.zeros((1, 1)),
    "empty": np.zeros((0, 0)),
    "lower": np.tril(np.arange(1.0, 10.0).reshape(3, 3)),
    "diagonal": np.diag([3.0, -1.0, 2.0]),
    "Jordan": np.eye(3) + np.eye(3, k=1),
    "nilpotent": np.eye(3, k=1),
    "exchange": np.array([[0.0, 1.0], [1.0, 0.0]]),
}
FUNCTIONS = {
    "det": linalg.det,
    "slogdet": lambda a: linalg.slogdet(a)[1],
    "inv": linalg.inv,
    "solve": lambda a: linalg.solve(a, np.arange(1.0, len(a) + 1)),
    "matrix_power 3": lambda a: linalg.matrix_power(a, 3),
    "matrix_power -2": lambda a: linalg.matrix_power(a, -2),
    "expm": fsl.expm,
    "sqrtm": lambda a: fsl.sqrtm(a).real,
    "cholesky": lambda a: linalg.cholesky(symmetric(a)),
    "qr": lambda a: linalg.qr(a)[1],
    "norm": linalg.norm,
    "norm nuc": lambda a: linalg.norm(a, "nuc"),
    "norm 2": lambda a: linalg.norm(a, 2),
    "eigvalsh": lambda a: linalg.eigvalsh(symmetric(a)) ** 2,
    "svdvals": lambda a: fnp.sum(linalg.svdvals(a) ** 2),
    "eigvals": lambda a: fnp.sum(linalg.eigvals(a) ** 2).real,
    "eigh, square": of_eigenvalues(fnp.square),
    "eigh, exp": of_eigenvalues(fnp.exp),
    "svd": of_singular_values,
    "polar": lambda a: fsl.polar(a)[0],
    "lu": lambda a: fsl.lu(a)[2],
}


def slopes(f, a):
    """Both one-sided differences in each element."""
    found = np.full((2, *a.shape), np.nan)
    scale = STEP * (np.abs(a).max(initial=0) or 1.0)
    for place in np.ndindex(a.shape):
        step = np.zeros_like(a)
        step[place] = scale
        found[(slice(None), *place)] = [(f(a + step) - f(a)) / scale, (f(a) - f(a - step)) / scale]
    return found


@pytest.mark.parametrize(
    "run", [lambda f: f, pytest.param(ft.jit, marks=pytest.mark.slow)], ids=["eager", "jit"]
)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients(name, run):
    compared = 0
    for a in MATRICES.values():
        weights = np.random.default_rng(0).uniform(0.5, 1.5, (4, 4))

        def f(a, weights=weights):
            out = FUNCTIONS[name](a)
            return (
                fnp.sum(out * weights[tuple(slice(n) for n in np.shape(out))[:2]])
                if np.ndim(out) == 2
                else fnp.sum(out)
            )

        with np.errstate(all="ignore"):
            try:
                right, left = slopes(f, a)
                got = [run(ft.grad(f))(a), run(ft.jacfwd(f))(a)]
            except LinAlgError:
                continue
        middle = (right + left) / 2
        largest = np.abs(middle).max(initial=0)
        if not np.isfinite(middle).all() or np.abs(right - left).max(initial=0) > 1e-3 * largest + 1e-8:
            continue  # no derivative there
        for slope in got:
            if np.isfinite(slope).all():
                np.testing.assert_allclose(slope, middle, atol=1e-4 * largest + 3e-5, rtol=0)
                compared += 1
    assert compared >= 6, "nearly everything is NaN"

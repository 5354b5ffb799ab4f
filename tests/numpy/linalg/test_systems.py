"""solve, inv, det, slogdet, qr, tensorsolve, tensorinv, matrix_power against NumPy."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import functrans as ft
import functrans.numpy as fnp
from functrans.errors import LinAlgError
from functrans.runtime.config import config
from functrans.testing import check

RNG = np.random.default_rng(0)
A = RNG.standard_normal((4, 4))
C = A + 1j * RNG.standard_normal((4, 4))
BATCH = RNG.standard_normal((2, 3, 4, 4))
V, COLUMNS = RNG.standard_normal(4), RNG.standard_normal((4, 2))
WHOLE = np.array([[2, 1], [1, 3]])
LARGE = RNG.standard_normal((30, 30))

MATRICES = {
    "square": A,
    "complex": C,
    "single": A.astype(np.float32),
    "complex single": C.astype(np.complex64),
    "batch": BATCH,
    "integers": WHOLE,
    "booleans": np.array([[True, False], [True, True]]),
    "list": [[2.0, 1.0], [1.0, 3.0]],
    "one": np.array([[5.0]]),
    "empty": np.zeros((0, 0)),
    "empty batch": np.zeros((0, 2, 2)),
    "batch of empty": np.zeros((2, 0, 0)),
    "transposed": A.T,
    "reversed": A[::-1, ::-1],
    "strided": LARGE[::3, ::3],
    "large": LARGE,
    "NaN": np.full((2, 2), np.nan),
    "infinite": np.diag([np.inf, 1.0]),
    "triangle": np.triu(A),
    "vector": V,
    "number": np.array(2.0),
    "wide": A[:2],
    "tall": A[:, :2],
}
RUNS = {"eager": lambda f: f, "jit": ft.jit}


def agree(f, reference, *args, tolerance=None):
    """The same values, or the same kind of error."""
    with np.errstate(all="ignore"):
        try:
            expected = reference(*args)
        except ValueError as error:  # LinAlgError is one
            kind = np.linalg.LinAlgError if isinstance(error, np.linalg.LinAlgError) else ValueError
            with pytest.raises(kind):
                f(*args)
            return
        got = f(*args)
    pairs = zip(got, expected, strict=True) if isinstance(expected, tuple) else [(got, expected)]
    for g, e in pairs:
        e = np.asarray(e)
        assert (g.shape, g.dtype) == (e.shape, e.dtype)
        close = tolerance or (2e-4 if e.dtype in (np.float32, np.complex64) else 1e-10)
        np.testing.assert_allclose(g, e, rtol=close, atol=close)


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("name", ["inv", "det", "slogdet", "qr"])
def test_one_matrix(name, run):
    function, reference = getattr(fnp.linalg, name), getattr(np.linalg, name)
    for x in MATRICES.values():
        agree(RUNS[run](function), reference, x)


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("mode", ["reduced", "complete", "r", "raw"])
def test_modes_of_qr(mode, run):
    for x in (
        A,
        A[:2],
        A[:, :3],
        C[:, :2],
        C[:2],
        BATCH[..., :2],
        np.zeros((3, 0)),
        np.zeros((0, 3)),
        WHOLE,
        V,
    ):
        agree(RUNS[run](lambda x: fnp.linalg.qr(x, mode)), lambda x: np.linalg.qr(x, mode), x)
    with pytest.raises(ValueError, match="'bogus'"):
        fnp.linalg.qr(A, "bogus")
    assert fnp.linalg.qr(A).Q.shape == (4, 4)
    assert fnp.linalg.slogdet(A).logabsdet.shape == ()


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize(
    ("a", "b"),
    [
        (A, V),
        (A, COLUMNS),
        (A, COLUMNS[:, ::-1]),
        (C, V),
        (A, V.astype(np.complex64)),
        (A.astype(np.float32), V.astype(np.float32)),
        (A.astype(np.float32), np.arange(4)),
        (WHOLE, np.array([1, 2])),
        (WHOLE.tolist(), [1, 2]),
        (BATCH, V),
        (BATCH, COLUMNS),
        (A, RNG.standard_normal((2, 3, 4, 1))),
        (A, RNG.standard_normal((0, 4, 1))),
        (BATCH[0], RNG.standard_normal((2, 1, 4, 2))),
        (BATCH[0], RNG.standard_normal((3, 4, 2))),
        (BATCH[0], RNG.standard_normal((2, 4, 2))),
        (BATCH[0], RNG.standard_normal((3, 4))),
        (A, RNG.standard_normal((4, 0))),
        (np.zeros((0, 0)), np.zeros((0, 2))),
        (np.zeros((0, 0)), np.zeros(0)),
        (np.zeros((0, 2, 2)), np.zeros((0, 2, 1))),
        (A, V[:3]),
        (A, np.array(1.0)),
        (A, 1.0),
        (A[:3], V),
        (V, V),
        (LARGE, LARGE[0]),
        (LARGE, LARGE[:, 3:7]),
        (np.full((2, 2), np.nan), np.ones(2)),
    ],
)
def test_solve(run, a, b):
    agree(RUNS[run](fnp.linalg.solve), np.linalg.solve, a, b)


SINGULAR = [
    np.zeros((2, 2)),
    np.ones((3, 3)),
    np.diag([1.0, 0.0]),
    np.arange(16.0).reshape(4, 4),
    np.arange(9).reshape(3, 3),
    np.diag([1.0 + 1j, 0.0]),
    np.zeros((10, 10), np.float32),
    np.stack([np.eye(2), np.eye(2), np.ones((2, 2))]),
]


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("i", range(len(SINGULAR)))
def test_singular(i, run):
    a = SINGULAR[i]
    b = np.ones(a.shape[-1])
    for f, reference in ((fnp.linalg.inv, np.linalg.inv), (lambda a: fnp.linalg.matrix_power(a, -2), None)):
        agree(RUNS[run](f), reference or (lambda a: np.linalg.matrix_power(a, -2)), a)
    agree(RUNS[run](fnp.linalg.solve), np.linalg.solve, a, b)
    agree(RUNS[run](fnp.linalg.det), np.linalg.det, a)
    agree(RUNS[run](fnp.linalg.slogdet), np.linalg.slogdet, a)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 5), st.integers(0, 10**6))
def test_raises_where_numpy_does(n, seed):
    a = np.random.default_rng(seed).integers(-2, 3, (20, n, n))
    for x in a:
        for run in RUNS.values():
            try:
                np.linalg.inv(x)
            except np.linalg.LinAlgError:
                with pytest.raises(LinAlgError, match="inv: singular matrix"):
                    run(fnp.linalg.inv)(x)
            else:
                run(fnp.linalg.inv)(x)


@pytest.mark.parametrize("run", RUNS)
def test_the_error_names_the_matrix_and_the_line(run):
    a = np.stack([np.eye(2), np.ones((2, 2))])
    for f in (
        lambda a: fnp.linalg.solve(a, np.ones(2)),
        lambda a: ft.vmap(lambda m: fnp.linalg.solve(m, np.ones(2)))(a),
    ):
        with pytest.raises(LinAlgError, match="solve: singular matrix: matrix 1 of the batch"):
            RUNS[run](f)(a)
    with pytest.raises(LinAlgError, match=r"fnp\.linalg\.inv"):
        ft.jit(lambda a: fnp.linalg.inv(a))(a)
    with pytest.raises(LinAlgError, match="singular"):
        RUNS[run](ft.grad(lambda a: fnp.linalg.inv(a).sum()))(a)
    with config.patch(linalg_errors="nan"):
        got = RUNS[run](lambda a: fnp.linalg.solve(a, np.ones(2)))(a)
        np.testing.assert_array_equal(got, [[1.0, 1.0], [np.nan, np.nan]])
        gradient = RUNS[run](ft.grad(lambda a: fnp.linalg.solve(a, np.ones(2)).sum()))(a)
        assert np.isfinite(gradient[0]).all()


def test_tensors(same):
    a = RNG.standard_normal((2, 3, 6))
    same("linalg.tensorsolve", a, np.ones((2, 3)))
    same("linalg.tensorsolve", np.moveaxis(a, 0, -1), np.ones((3, 2)), axes=(1,))
    same("linalg.tensorsolve", RNG.standard_normal((2, 3, 3, 2)), np.ones((2, 3)), axes=(0, -1))
    same("linalg.tensorsolve", np.ones((2, 3)), np.ones(2))
    same("linalg.tensorsolve", a, np.ones((2, 2)))
    same("linalg.tensorsolve", np.zeros((2, 3, 6)), np.ones((2, 3)))
    same("linalg.tensorinv", a)
    same("linalg.tensorinv", RNG.standard_normal((6, 3, 2)), 1)
    same("linalg.tensorinv", a, 0)
    same("linalg.tensorinv", np.ones((2, 3)))
    for n in (-3, -1, 0):
        same("linalg.matrix_power", A, n)
        same("linalg.matrix_power", BATCH, n)
        same("linalg.matrix_power", WHOLE, n)


FUNCTIONS = {
    "solve": (lambda a, b: np.linalg.solve(a, b), A, COLUMNS),
    "solve of a vector": (lambda a, b: np.linalg.solve(a, b), A, V),
    "solve, broadcast": (lambda a, b: np.linalg.solve(a, b), BATCH[0], COLUMNS),
    "solve, one matrix": (lambda a, b: np.linalg.solve(a, b), A, BATCH[0]),
    "solve, complex": (lambda a, b: np.linalg.solve(a, b), C, V + 1j),
    "inv": (np.linalg.inv, A),
    "inv, complex": (np.linalg.inv, C),
    "det": (np.linalg.det, A),
    "det, complex": (np.linalg.det, C),
    "det, batch": (np.linalg.det, BATCH[0]),
    "slogdet": (lambda a: np.linalg.slogdet(a)[1], A),
    "slogdet, complex": (lambda a: tuple(np.linalg.slogdet(a)), C),
    "qr": (lambda a: tuple(np.linalg.qr(a)), A[:, :3]),
    "qr, complex": (lambda a: tuple(np.linalg.qr(a)), C),
    "qr, complete": (lambda a: tuple(np.linalg.qr(a, "complete")), A[:, :2]),
    "qr, raw": (lambda a: tuple(np.linalg.qr(a, "raw")), A[:, :2]),
    "qr, wide": (lambda a: np.linalg.qr(a, "r"), A[1:3] + 2 * np.eye(2, 4)),
    "matrix_power": (lambda a: np.linalg.matrix_power(a, -2), A),
    "tensorinv": (lambda a: np.linalg.tensorinv(a.reshape(2, 2, 2, 2)), A),
    "tensorsolve": (lambda a, b: np.linalg.tensorsolve(a.reshape(2, 2, 4), b.reshape(2, 2)), A, V),
}


@pytest.mark.wide(3)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_transformations(name):
    f, *args = FUNCTIONS[name]
    check(f, *args)


def test_one_factorisation_for_value_and_gradient():
    jaxpr = str(
        ft.make_jaxpr(ft.value_and_grad(lambda a, b: fnp.linalg.solve(a, b).sum(), argnums=(0, 1)))(A, V)
    )
    assert jaxpr.count("= lu ") == 1
    assert "solve[" in jaxpr

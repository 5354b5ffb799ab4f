"""Systems, factors and functions of matrices in functrans.scipy.linalg against SciPy."""

import itertools
import warnings

import numpy as np
import pytest
import scipy.linalg
from versions import has

import functrans as ft
import functrans.scipy.linalg as fsl
from functrans.errors import ArgumentValueError
from functrans.runtime.config import config
from functrans.testing import check

RNG = np.random.default_rng(0)
A = RNG.standard_normal((4, 4))
C = A + 1j * RNG.standard_normal((4, 4))
TALL, WIDE = A[:, :3], A[1:3] + 2 * np.eye(2, 4)
SINGLE = A.astype(np.float32)
WHOLE = np.array([[2, 1], [1, 3]])
V, COLUMNS = RNG.standard_normal(4), RNG.standard_normal((4, 3))
BATCH = np.stack([A, A[::-1], A + np.eye(4)])
RUNS = {"eager": lambda f: f, "jit": ft.jit}


def flat(x):
    return [leaf for part in x for leaf in flat(part)] if isinstance(x, tuple) else [x]


def agree(got, expected, dtypes=True):
    for g, e in zip(flat(got), flat(expected), strict=True):
        e = np.asarray(e)
        assert g.shape == e.shape
        if dtypes:
            assert g.dtype == e.dtype
        close = 2e-4 if e.dtype in (np.float32, np.complex64) else 1e-10
        np.testing.assert_allclose(g, e, rtol=close, atol=close)


@pytest.fixture(params=RUNS)
def run(request):
    return RUNS[request.param]


@pytest.mark.parametrize("options", [{}, {"permute_l": True}, {"p_indices": True}], ids=str)
def test_lu(run, options):
    for x in (A, C, TALL, WIDE, SINGLE, WHOLE, BATCH, np.zeros((2, 2))):
        agree(run(lambda x: fsl.lu(x, **options))(x), scipy.linalg.lu(x, **options))
    with pytest.raises(ValueError, match="matrices"):
        fsl.lu(V)


@pytest.mark.parametrize("trans", [0, 1, 2])
def test_lu_solve(run, trans):
    for x, b in itertools.product((A, C, SINGLE), (V, COLUMNS, V + 1j)):
        factors = run(fsl.lu_factor)(x)
        reference = scipy.linalg.lu_factor(x)
        agree(factors, reference)
        agree(
            run(lambda f, b: fsl.lu_solve(f, b, trans))(factors, b),
            scipy.linalg.lu_solve(reference, b, trans),
        )
    batched = run(lambda a, b: fsl.lu_solve(fsl.lu_factor(a), b, trans))(BATCH, COLUMNS)
    agree(
        batched, np.stack([scipy.linalg.lu_solve(scipy.linalg.lu_factor(x), COLUMNS, trans) for x in BATCH])
    )
    with pytest.raises(ValueError, match="trans must be"):
        fsl.lu_solve(fsl.lu_factor(A), V, 3)
    with pytest.raises(ValueError, match="incompatible"):
        fsl.lu_solve(fsl.lu_factor(A), V[:3])


DEFINITE, HERMITIAN = A @ A.T + 4 * np.eye(4), C @ C.conj().T + 4 * np.eye(4)


#: What SciPy solves before 1.15; for the others the general solver is the reference.
STRUCTURES = {"gen", "sym", "her", "pos"}


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(
    ("assume_a", "a"),
    [
        (None, A),
        ("general", C),
        ("gen", SINGLE),
        ("sym", A + A.T),
        ("symmetric", C + C.T),
        ("her", C + C.conj().T),
        ("pos", DEFINITE),
        ("positive definite", HERMITIAN),
        ("diagonal", np.diag(V)),
        ("upper triangular", np.triu(A)),
        ("lower triangular", np.tril(C)),
        ("tridiagonal", np.triu(np.tril(A, 1), -1)),
        ("banded", np.triu(np.tril(A, 1), -2)),
    ],
)
def test_solve(run, assume_a, a, lower, transposed):
    for b in (V, COLUMNS):
        # SciPy has no transposed systems of complex matrices.
        wanted = {"transposed": transposed} if a.dtype.kind == "f" or not transposed else {}
        if wanted and (assume_a in STRUCTURES or has("scipy>=1.15")):
            wanted["assume_a"] = assume_a
        expected = scipy.linalg.solve(a if wanted else a.T, b, lower, **wanted)
        got = run(lambda a, b: fsl.solve(a, b, lower, assume_a=assume_a, transposed=transposed))(a, b)
        agree(got, expected, dtypes=assume_a != "gen")
    if not transposed:
        inverse = run(lambda a: fsl.inv(a, assume_a=assume_a, lower=lower))(a)
        agree(inverse, scipy.linalg.inv(a))


@pytest.mark.parametrize(
    "assume_a", ["sym", "her", "pos", "upper triangular", "lower triangular", "diagonal"]
)
@pytest.mark.parametrize("lower", [False, True])
def test_what_is_assumed_is_not_read(assume_a, lower):
    a = {"sym": A + A.T, "her": HERMITIAN, "pos": HERMITIAN}.get(assume_a, A)
    keep = {
        "upper triangular": np.triu,
        "lower triangular": np.tril,
        "diagonal": lambda x: np.diag(np.diag(x)),
    }.get(assume_a, np.tril if lower else np.triu)
    given = np.where(keep(np.ones((4, 4))) > 0, a, 1e3)
    full = a if assume_a in ("sym", "her", "pos") else keep(a)
    agree(fsl.solve(given, V, lower, assume_a=assume_a), np.linalg.solve(full, V))


def test_failures(run):
    for assume_a in (None, "sym", "upper triangular", "diagonal"):
        with pytest.raises(np.linalg.LinAlgError, match="singular"):
            run(lambda a, kind=assume_a: fsl.solve(a, np.ones(2), assume_a=kind))(np.zeros((2, 2)))
    with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
        run(lambda a: fsl.solve(a, np.ones(2), assume_a="pos"))(-np.eye(2))
    with pytest.raises(np.linalg.LinAlgError, match="inv: singular"):
        run(fsl.inv)(np.zeros((2, 2)))
    with config.patch(linalg_errors="nan"):
        assert np.isnan(run(fsl.inv)(np.zeros((2, 2)))).all()
    with pytest.raises(ArgumentValueError, match="assume_a='round'"):
        run(lambda a: fsl.solve(a, V, assume_a="round"))(A)
    for f in (fsl.inv, fsl.det, fsl.expm, fsl.lu_factor, fsl.qr):
        with pytest.raises(ValueError, match=r"square|matrices"):
            run(f)(V)
    for f in (fsl.inv, fsl.det, fsl.lu, fsl.lu_factor, fsl.qr):
        with pytest.raises(ValueError, match="infs or NaNs"):
            f(np.full((2, 2), np.nan))
        f(np.full((2, 2), np.nan), check_finite=False)


def test_det(run):
    for x in (A, C, WHOLE, BATCH, np.zeros((3, 3)), np.zeros((0, 0))):
        agree(run(fsl.det)(x), scipy.linalg.det(x))
    agree(run(fsl.det)(SINGLE), scipy.linalg.det(SINGLE.astype(float)))


@pytest.mark.parametrize("pivoting", [False, True])
@pytest.mark.parametrize("mode", ["full", "r", "economic", "raw"])
def test_qr(run, mode, pivoting):
    for x in (A, C, TALL, WIDE, SINGLE, WHOLE):
        got = run(lambda x: fsl.qr(x, mode=mode, pivoting=pivoting))(x)
        agree(got, scipy.linalg.qr(x, mode=mode, pivoting=pivoting))
    with pytest.raises(ValueError, match="'bogus'"):
        fsl.qr(A, mode="bogus")


ROTATION = np.array([[0.0, 3.0], [-3.0, 0.0]])


def test_expm():
    zeros = [np.zeros((2, 2)), np.zeros((0, 0)), np.eye(3, k=1), np.array([[2.0]])]
    for x in (A, C, WHOLE, 20 * ROTATION, 1e-3 * A, BATCH, *zeros):
        agree(fsl.expm(x), scipy.linalg.expm(x))
    single = fsl.expm(SINGLE)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, scipy.linalg.expm(A), rtol=1e-4, atol=1e-4)
    assert np.isnan(fsl.expm(np.full((2, 2), np.nan))).all()


@pytest.mark.wide(3)
@pytest.mark.parametrize("norm", [1e-3, 0.1, 0.5, 1.5, 4.0, 20.0])
def test_derivatives_of_expm(norm):
    """Of each degree of the approximant, by SciPy's Frechet derivative."""
    a, t = np.random.default_rng(0).normal(size=(2, 5, 5))
    a *= norm / np.abs(a).sum(axis=0).max()
    forward, reverse = [scipy.linalg.expm_frechet(x, t, compute_expm=False) for x in (a, a.T)]
    for f in (fsl.expm, ft.jit(fsl.expm)):
        np.testing.assert_allclose(ft.jvp(f, (a,), (t,))[1], forward, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(ft.vjp(f, a)[1](t)[0], reverse, rtol=1e-10, atol=1e-10)


def test_expm_of_unknown_norm():
    compiled = ft.jit(fsl.expm)
    for x in (
        WHOLE,
        *(c * ROTATION for c in (1e4, 20, 0.5, 0.2, 0.05, 1e-3)),
        np.stack([ROTATION, 9 * ROTATION]),
    ):
        np.testing.assert_allclose(
            compiled(x), scipy.linalg.expm(x), rtol=1e-10, atol=1e-10 * np.abs(x).max()
        )
    assert np.isnan(compiled(np.full((2, 2), np.nan))).all()
    np.testing.assert_allclose(ft.vmap(fsl.expm)(BATCH), scipy.linalg.expm(BATCH), rtol=1e-10)


@pytest.mark.parametrize("name", RUNS)
def test_gradient_of_expm(name):
    gradient = RUNS[name](ft.grad(lambda t: fsl.expm(t * ROTATION)[0, 0]))
    for t in (0.1, 1.0, 50.0):
        np.testing.assert_allclose(gradient(t), -3 * np.sin(3 * t), rtol=1e-9)


def test_structured(run):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for args in ((), (1.0,), (A, V, 2), (WHOLE, np.float32(1)), (C, [[]], WHOLE), ([1, 2], [[3], [4]])):
            agree(run(lambda *a: fsl.block_diag(*a))(*args), scipy.linalg.block_diag(*args))
        for args in (
            (V,),
            (V, V[:2]),
            ([1, 2, 3],),
            ([1, 2, 3], [9, 5.0]),
            (V + 1j,),
            (V, C[0]),
            (3.0,),
            ([1, 2], [7]),
        ):
            agree(run(lambda *a: fsl.toeplitz(*a))(*args), scipy.linalg.toeplitz(*args))
    agree(run(fsl.block_diag)(BATCH, WHOLE), np.stack([scipy.linalg.block_diag(x, WHOLE) for x in BATCH]))
    agree(run(fsl.toeplitz)(COLUMNS, V), np.stack([scipy.linalg.toeplitz(c, V) for c in COLUMNS]))


FUNCTIONS = {
    "lu": (lambda a: fsl.lu(a)[1:], A),
    "lu_solve": (lambda a, b: fsl.lu_solve(fsl.lu_factor(a), b, 1), A, V),
    "solve": (lambda a, b: fsl.solve(a, b), A, COLUMNS),
    "solve, symmetric": (lambda a, b: fsl.solve(a, b, assume_a="sym"), A + A.T, V),
    "solve, Hermitian": (lambda a, b: fsl.solve(a, b, assume_a="her"), HERMITIAN, V),
    "solve, definite": (lambda a, b: fsl.solve(a, b, assume_a="pos"), DEFINITE, V),
    "solve, diagonal": (lambda a, b: fsl.solve(a, b, assume_a="diagonal"), A + 2 * np.eye(4), V),
    "inv": (fsl.inv, A),
    "det": (fsl.det, C),
    "qr": (lambda a: fsl.qr(a, mode="economic", pivoting=True)[:2], TALL),
    "qr, raw": (lambda a: fsl.qr(a, mode="raw"), WIDE),
    "expm": (fsl.expm, A[:2, :2]),
    "block_diag": (fsl.block_diag, A, V),
    "toeplitz": (fsl.toeplitz, V, V + 1),
}


@pytest.mark.wide(2)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_transformations(name):
    f, *args = FUNCTIONS[name]
    check(f, *args, order=2 if name in ("lu_solve", "solve, Hermitian") else 1)

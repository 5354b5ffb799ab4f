"""eigh, svd, eig and what follows from them, against NumPy; derivatives of what their free phases leave alone."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.errors import ArgumentValueError, LinAlgError
from functrans.testing import hessian_is_symmetric, jvp_is_slope, vjp_is_adjoint

DTYPES = (np.float64, np.complex128, np.float32, np.complex64, np.int64)


def draw(shape, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.uniform(-2, 2, shape)
    return (3 * x if np.dtype(dtype).kind == "i" else x).astype(dtype)


def adjoint(x):
    return np.swapaxes(x, -1, -2).conj()


def flat(out):
    return list(out) if isinstance(out, tuple) else [out]


def check_grads(f, args, order, **tolerances):
    """The laws of derivatives, to second order if asked for."""
    jvp_is_slope(f, *args, **tolerances)
    vjp_is_adjoint(f, *args)
    if order > 1:
        hessian_is_symmetric(f, *args)


def close(got, expected, tolerance=None):
    got, expected = flat(got), flat(expected)
    assert len(got) == len(expected)
    for x, y in zip(got, expected):
        x, y = np.asarray(x), np.asarray(y)
        assert x.dtype == y.dtype
        assert x.shape == y.shape
        eps = tolerance or (1e-4 if y.dtype in (np.float32, np.complex64) else 1e-11)
        np.testing.assert_allclose(x, y, rtol=eps, atol=eps)


SQUARES = ((3, 3), (2, 4, 4), (1, 1), (0, 0), (2, 0, 0), (2, 1, 2, 2), (0, 3, 3))
MATRICES = (*SQUARES, (4, 2), (2, 4), (3, 2, 5), (0, 3), (2, 3, 0), (1, 4))
OF_SQUARES = {
    "eigh": lambda m, x: m.linalg.eigh(x),
    "eigh U": lambda m, x: m.linalg.eigh(x, UPLO="u"),
    "eigvalsh": lambda m, x: m.linalg.eigvalsh(x),
    "eigvalsh U": lambda m, x: m.linalg.eigvalsh(x, "U"),
    "svd hermitian": lambda m, x: m.linalg.svd(x + adjoint(x), hermitian=True),
    "svdvals hermitian": lambda m, x: m.linalg.svd(x, compute_uv=False, hermitian=True),
    "pinv hermitian": lambda m, x: m.linalg.pinv(x + adjoint(x), hermitian=True),
    "matrix_rank hermitian": lambda m, x: m.linalg.matrix_rank(x, hermitian=True),
}
OF_MATRICES = {
    "svd": lambda m, x: m.linalg.svd(x),
    "thin svd": lambda m, x: m.linalg.svd(x, full_matrices=False),
    "values of svd": lambda m, x: m.linalg.svd(x, compute_uv=False),
    "svdvals": lambda m, x: m.linalg.svdvals(x),
    "pinv": lambda m, x: m.linalg.pinv(x),
    "pinv rtol": lambda m, x: m.linalg.pinv(x, rtol=None),
    "pinv rcond": lambda m, x: m.linalg.pinv(x, 0.5),
    "matrix_rank": lambda m, x: m.linalg.matrix_rank(x),
    "matrix_rank tol": lambda m, x: m.linalg.matrix_rank(x, tol=1.5),
    "matrix_rank rtol": lambda m, x: m.linalg.matrix_rank(x, rtol=0.4),
    "norm 2": lambda m, x: m.linalg.norm(x, 2, (-2, -1)),
    "norm nuc": lambda m, x: m.linalg.norm(x, "nuc", (-1, -2), keepdims=True),
    "matrix_norm nuc": lambda m, x: m.linalg.matrix_norm(x, ord="nuc"),
}
#: NumPy's functions that had no result for matrices without singular values.
OF_EMPTY_ONES = {
    **dict.fromkeys(("matrix_rank", "matrix_rank rtol", "matrix_rank hermitian"), "numpy>=2.4"),
    "norm 2": "numpy>=2.3",
}


def everywhere(name, shape):
    empty = name in OF_EMPTY_ONES and 0 in shape[-2:]
    marks = [pytest.mark.needs(OF_EMPTY_ONES[name], reason="empty matrices")] if empty else []
    return pytest.param(name, shape, marks=marks)


EVERYWHERE = [everywhere(n, s) for n in OF_SQUARES for s in SQUARES]
EVERYWHERE += [everywhere(n, s) for n in OF_MATRICES for s in MATRICES]


@pytest.mark.parametrize(("name", "shape"), EVERYWHERE)
def test_as_numpy(name, shape):
    f = {**OF_SQUARES, **OF_MATRICES}[name]
    for dtype in DTYPES if len(shape) == 2 else DTYPES[:2]:
        x = draw(shape, dtype)
        if "pinv" in name and np.dtype(dtype).kind == "i" and (0 in shape or "rtol" in name):
            continue  # NumPy's result has integers, or it takes eps of them
        expected = f(np, x)
        close(f(fnp, x), expected)
        if dtype == np.float64 and shape[0]:
            close(f(fnp, np.asfortranarray(x)[::-1]), f(np, x[::-1]))


@pytest.mark.parametrize("name", [*OF_SQUARES, *OF_MATRICES])
def test_compiled_and_mapped(name):
    f = {**OF_SQUARES, **OF_MATRICES}[name]
    for dtype in DTYPES[:2]:
        for shape in ((3, 3), (4, 3) if name in OF_MATRICES else (1, 1)):
            x = draw((2, *shape), dtype)
            expected = f(np, x)
            close(ft.jit(lambda x: f(fnp, x))(x), expected)
            close(ft.vmap(lambda x: f(fnp, x), in_axes=2)(np.moveaxis(x, 0, 2)), expected)
            # NumPy's functions of traced values are the same program.
            if "norm" not in name or name == "norm 2":
                close(ft.jit(lambda x: f(np, x))(x), expected)


def test_named_results():
    x = draw((3, 3))
    assert fnp.linalg.eigh(x)._fields == ("eigenvalues", "eigenvectors")
    assert fnp.linalg.eig(x)._fields == ("eigenvalues", "eigenvectors")
    assert fnp.linalg.svd(x)._fields == ("U", "S", "Vh")
    assert ft.jit(fnp.linalg.svd)(x).S.shape == (3,)


def test_only_one_triangle_is_read():
    x = draw((3, 3))
    x = x + x.T
    dirty = np.where(np.tri(3) > 0, x, np.nan)
    for run in (lambda f: f, ft.jit):
        close(run(fnp.linalg.eigh)(dirty), np.linalg.eigh(x))
        close(run(lambda a: fnp.linalg.eigvalsh(a, "U"))(dirty.T), np.linalg.eigvalsh(x))


# --- eig ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SQUARES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_eig_is_complex(shape, dtype):
    x = draw(shape, dtype)
    w, v = np.linalg.eig(x)
    wide = np.result_type(w.dtype, np.complex64)
    for run in (lambda f: f, ft.jit, lambda f: lambda x: ft.vmap(f)(x[None])):
        mapped = run(fnp.linalg.eig)(x)
        values = run(fnp.linalg.eigvals)(x)
        mapped = [np.asarray(y).reshape(z.shape) for y, z in zip(mapped, (w, v))]
        close(tuple(mapped), (w.astype(wide), v.astype(wide)))
        close(np.asarray(values).reshape(w.shape), np.linalg.eigvals(x).astype(wide))


def test_eig_of_real_and_of_complex_pairs():
    real, turned = np.diag([1.0, 2.0]), np.array([[0.0, 1.0], [-1.0, 0.0]])
    w = fnp.linalg.eigvals(np.stack([real, turned]))
    np.testing.assert_array_equal(w, [[1, 2], [1j, -1j]])


def test_derivative_of_eig_by_its_equation():
    x, t = draw((4, 4)), draw((4, 4), seed=1)
    (w, v), (t_w, t_v) = ft.jvp(fnp.linalg.eig, (x,), (t,))
    np.testing.assert_allclose(t @ v + x @ t_v, t_v * w + v * t_w, atol=1e-12)
    np.testing.assert_allclose((v.conj() * t_v).sum(0).real, 0, atol=1e-13)
    check_grads(lambda x: flat(fnp.linalg.eig(x)), (x,), order=2)
    check_grads(fnp.linalg.eigvals, (draw((3, 3), complex),), order=2)


# --- lstsq --------------------------------------------------------------------------------------------------

SYSTEMS = [((4, 3), (4,)), ((4, 3), (4, 2)), ((2, 3), (2,)), ((3, 3), (3, 1)), ((3, 2), (3, 0))]
EMPTY = [((0, 2), (0,)), ((2, 0), (2, 2)), ((0, 0), (0, 1))]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("a", "b"), SYSTEMS + EMPTY)
def test_lstsq_as_numpy(a, b, dtype):
    x, y = draw(a, dtype), draw(b, dtype, 1)
    expected = np.linalg.lstsq(x, y)
    close(fnp.linalg.lstsq(x, y), expected)
    close(ft.jit(fnp.linalg.lstsq)(x, y), expected)
    mapped = ft.vmap(fnp.linalg.lstsq, in_axes=(None, 0))(x, np.stack([y, 2 * y]))
    close(mapped[0][0], expected[0])
    close(mapped[3], np.stack([expected[3]] * 2))


def test_lstsq_of_less_than_full_rank():
    x, y = draw((4, 2)) @ draw((2, 3), seed=1), draw((4,), seed=2)
    expected = np.linalg.lstsq(x, y)
    out = fnp.linalg.lstsq(x, y)
    np.testing.assert_allclose(out[0], expected[0])
    assert out[1].shape == (0,)
    assert out[2] == 2
    compiled = ft.jit(fnp.linalg.lstsq)(x, y)  # where the rank is not known, there are residuals
    np.testing.assert_allclose(compiled[1], [((y - x @ expected[0]) ** 2).sum()])
    for rcond in (-1, 0.5, np.float32(0.1)):
        well = draw((4, 3))
        expected = np.linalg.lstsq(well, y, rcond)
        for got, want in zip(fnp.linalg.lstsq(well, y, rcond), expected):
            np.testing.assert_allclose(got, want)
        np.testing.assert_allclose(ft.jit(fnp.linalg.lstsq)(well, y, rcond)[0], expected[0])


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize(("a", "b"), SYSTEMS[:4])
def test_derivatives_of_lstsq(a, b, dtype):
    def f(x, y):
        out, residuals, _, s = fnp.linalg.lstsq(x, y)
        return out, residuals, s

    arguments = (draw(a, dtype), draw(b, dtype, 1))
    check_grads(f, arguments, order=1 + (dtype == np.float64 and len(b) == 1))
    if a == (4, 3):
        check_grads(ft.jit(f), arguments, order=1)


def test_derivatives_of_lstsq_at_constant_rank():
    def f(u, v, y):
        return fnp.linalg.lstsq(u @ v, y)[0]

    check_grads(f, (draw((4, 2)), draw((2, 3), seed=1), draw((4,), seed=2)), order=1)


# --- rank, cond, norms --------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [None, 2, -2, 1, -1, np.inf, -np.inf, "fro", "nuc"])
def test_cond(p):
    singular = np.array([[1.0, 2.0], [2.0, 4.0]])
    some = np.stack([draw((2, 2)), np.eye(2), singular, np.zeros((2, 2)), np.array([[np.nan, 1], [1, 1]])])
    for x in (draw((3, 3)), draw((3, 3), complex), draw((2, 2), np.float32), np.diag([1, 2]), np.eye(2)):
        expected = np.linalg.cond(x, p).real  # complex before NumPy 2.3
        close(fnp.linalg.cond(x, p), expected)
        close(ft.jit(lambda x: fnp.linalg.cond(x, p))(x), expected)
    with ft.config.patch(linalg_errors="nan"):
        for run in (lambda f: f, ft.jit):
            got = run(lambda x: fnp.linalg.cond(x, p))(some)
            np.testing.assert_allclose(got[:2], np.linalg.cond(some[:2], p))
            assert (got[2:4] > 1e15).all() if p != -2 else (got[2] < 1e-15 and got[3] == np.inf)
            assert np.isnan(got[4])


def test_rank_of_vectors_numbers_and_batches():
    for x in (0.0, 2.0, [0, 0], [0.0, np.nan], 3j):
        assert fnp.linalg.matrix_rank(x) == np.linalg.matrix_rank(x)
    x = np.stack([np.eye(3), np.ones((3, 3)), np.zeros((3, 3))])
    for tol in ([0.5, 0.5, 0.5], 2.0, None):
        close(fnp.linalg.matrix_rank(x, tol), np.linalg.matrix_rank(x, tol))
        close(fnp.linalg.matrix_rank(x, rtol=tol), np.linalg.matrix_rank(x, rtol=tol))


@pytest.mark.parametrize("ord", [2, -2, "nuc", "f", 1, np.inf])
def test_matrix_norms(ord):
    x = draw((2, 3, 4))
    for axis in ((0, 2), (2, 1), (-1, 0)):
        close(fnp.linalg.norm(x, ord, axis), np.linalg.norm(x, ord, axis))
        close(fnp.linalg.norm(x, ord, axis, keepdims=True), np.linalg.norm(x, ord, axis, keepdims=True))


@pytest.mark.needs("numpy>=2.3", reason="norms of empty matrices")
@pytest.mark.parametrize("ord", [2, "nuc", "f", 1, np.inf])
def test_norms_of_empty_matrices(ord):
    for shape in ((0, 3), (3, 0), (2, 0, 0)):
        close(
            fnp.linalg.norm(np.zeros(shape), ord, (-2, -1)),
            np.linalg.norm(np.zeros(shape), ord, (-2, -1)),
        )


# --- failures -----------------------------------------------------------------------------------------------

FAILING = {
    "eigh": (fnp.linalg.eigh, "did not converge"),
    "eigvalsh": (fnp.linalg.eigvalsh, "did not converge"),
    "svd": (fnp.linalg.svd, "did not converge"),
    "svdvals": (fnp.linalg.svdvals, "did not converge"),
    "pinv": (fnp.linalg.pinv, "did not converge"),
    "norm": (lambda x: fnp.linalg.norm(x, 2, (-2, -1)), "did not converge"),
    "eig": (fnp.linalg.eig, "NaN or infinity"),
}


@pytest.mark.parametrize("name", FAILING)
@pytest.mark.parametrize("run", [lambda f: f, ft.jit, ft.vmap], ids=["eager", "jit", "vmap"])
def test_nan_in_one_matrix_of_a_batch(name, run):
    f, problem = FAILING[name]
    x = np.stack([np.eye(3), np.full((3, 3), np.nan), np.eye(3)])
    with pytest.raises(np.linalg.LinAlgError, match=f"matrix 1 of the batch.*{problem}"):
        run(f)(x)
    with pytest.raises(LinAlgError, match=r"[a-z]+: the matrix: "):
        (f if run is ft.vmap else run(f))(x[1])
    with ft.config.patch(linalg_errors="nan"):
        for got, plain in zip(flat(run(f)(x)), flat(f(np.eye(3)))):
            assert np.isnan(got[1]).all()
            np.testing.assert_array_equal(got[0], plain)
            np.testing.assert_array_equal(got[2], plain)


def test_nan_in_lstsq():
    x = np.array([[np.nan, 1.0], [1.0, 1.0], [1.0, 2.0]])
    for run in (lambda f: f, ft.jit):
        with pytest.raises(LinAlgError, match="did not converge"):
            run(fnp.linalg.lstsq)(x, np.ones(3))
        with ft.config.patch(linalg_errors="nan"):
            assert np.isnan(run(fnp.linalg.lstsq)(x, np.ones(3))[0]).all()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: fnp.linalg.eigh(np.ones((2, 3))), LinAlgError, r"eigh.*shape \(2, 3\)"),
        (lambda: fnp.linalg.eigvals(np.ones(3)), LinAlgError, r"eigvals.*shape \(3,\)"),
        (lambda: fnp.linalg.eigh(np.eye(2), "X"), ArgumentValueError, "UPLO must be 'L' or 'U', got 'X'"),
        (lambda: fnp.linalg.svd(np.ones(3)), LinAlgError, r"svd.*shape \(3,\)"),
        (lambda: fnp.linalg.svd(np.ones((2, 3)), hermitian=True), LinAlgError, "square"),
        (lambda: fnp.linalg.pinv(np.eye(2), 1e-3, rtol=1e-3), ArgumentValueError, "give one"),
        (lambda: fnp.linalg.matrix_rank(np.eye(2), 1e-3, rtol=1e-3), ArgumentValueError, "can't be both"),
        (lambda: fnp.linalg.lstsq(np.eye(2), np.ones(3)), LinAlgError, r"\(2, 2\) and \(3,\)"),
        (lambda: fnp.linalg.lstsq(np.ones((2, 2, 2)), np.ones(2)), LinAlgError, "vmap"),
        (lambda: fnp.linalg.cond(np.zeros((0, 0))), LinAlgError, "empty"),
        (lambda: fnp.linalg.cond(np.ones((2, 3)), 1), LinAlgError, "square"),
    ],
)
def test_what_does_not_fit(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_lstsq_with_residuals_that_are_never_empty():
    vectors = np.array([1.0, 2.0, 4.0]), np.array([[1.0, 0.0], [2.0, 3.0], [4.0, 1.0]])
    for a in (np.ones((3, 2)), np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), np.ones((3, 4))):
        for b in vectors:
            for lstsq in (fnp.linalg.lstsq, ft.jit(fnp.linalg.lstsq, static_argnames="numpy_resid")):
                residuals = lstsq(a, b, numpy_resid=False)[1]
                expected = np.sum((b - a @ np.linalg.lstsq(a, b)[0]) ** 2, axis=0)
                np.testing.assert_allclose(residuals, np.atleast_1d(expected), atol=1e-14)
    assert fnp.linalg.lstsq(np.ones((3, 2)), vectors[0])[1].shape == (0,)

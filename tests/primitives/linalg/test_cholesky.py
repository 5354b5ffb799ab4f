"""cholesky and triangular_solve: batches, derivatives, failures, kernels."""

import itertools

import numpy as np
import pytest

from functrans.core.aval import aval_of
from functrans.core.ir import Eqn, Jaxpr, Var
from functrans.errors import DtypeError, LinAlgError
from functrans.lowering.run.executable import compile_jaxpr
from functrans.primitives.linalg.cholesky import cholesky_p, triangular_solve_p
from functrans.testing.finite_difference import directional_derivative

DTYPES = [np.float64, np.complex128, np.float32]


def values(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def definite(shape, dtype, seed=0):
    a = values(shape, dtype, seed)
    n = shape[-1]
    return (a @ a.conj().swapaxes(-1, -2) + n * np.eye(n)).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4), (0, 0), (1, 1), (2, 2, 3, 3), (2, 0, 0)])
def test_cholesky(check, shape, dtype):
    x = definite(shape, dtype)
    out = check(cholesky_p, x, jvp=False, on_error="raise", lanes=lambda operand, v, n: v * (1 + n))
    np.testing.assert_allclose(out @ out.conj().swapaxes(-1, -2), x, rtol=1e-5)
    if dtype != np.float32:  # any tangent: only its lower triangle counts
        t = values(shape, dtype, 1)
        _, slope = cholesky_p.jvp((x,), (t,), on_error="raise")
        expected, _ = directional_derivative(lambda xs: [np.linalg.cholesky(xs[0])], [x], [t])
        np.testing.assert_allclose(slope, expected[0], rtol=1e-6, atol=1e-8)


def test_cholesky_reads_the_lower_triangle(check):
    x = np.array([[4.0, 99.0], [2.0, 5.0]])
    np.testing.assert_allclose(check(cholesky_p, x, jvp=False, on_error="raise"), [[2, 0], [1, 2]])


def compiled(prim, *args, **params):
    invars = [Var(aval_of(a).strong()) for a in args]
    outvar = Var(prim.abstract(*[v.aval for v in invars], **params))
    return compile_jaxpr(Jaxpr(invars, [Eqn(prim, invars, [outvar], params)], [outvar]))(*args)[0]


def evaluated(prim, *args, **params):
    return prim.bind(*args, **params)


@pytest.mark.parametrize("run", [evaluated, compiled])
def test_a_matrix_that_is_not_positive_definite(run):
    bad = np.array([[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(LinAlgError, match="the matrix is not positive definite"):
        run(cholesky_p, bad, on_error="raise")
    with pytest.raises(np.linalg.LinAlgError, match="matrix 1 of the batch"):
        run(cholesky_p, np.stack([np.eye(2), bad]), on_error="raise")
    out = run(cholesky_p, np.stack([np.eye(2), bad]), on_error="nan")
    np.testing.assert_array_equal(out[0], np.eye(2))
    assert np.isnan(out[1]).all()


SYSTEMS = [((3, 3), (3, 2)), ((2, 4, 4), (2, 4, 4)), ((1, 1), (1, 5)), ((3, 3), (3, 0)), ((0, 0), (0, 2))]


@pytest.mark.wide(4)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("matrix", "right"), SYSTEMS)
@pytest.mark.parametrize("left_side", [True, False])
def test_triangular_solve(check, left_side, matrix, right, dtype):
    n = matrix[-1]
    a = (0.3 * values(matrix, dtype) + 3 * np.eye(n)).astype(dtype)
    b = values(right, dtype, 1)
    b = b if left_side else b.swapaxes(-1, -2)
    for lower, transpose_a, conjugate_a, unit in itertools.product(*[[True, False]] * 4):
        if conjugate_a and dtype != np.complex128:
            continue
        params = {
            "left_side": left_side, "lower": lower, "transpose_a": transpose_a, "conjugate_a": conjugate_a,
            "unit_diagonal": unit, "check": True,
        }  # fmt: skip
        x = check(triangular_solve_p, a, b, linear=[(1,)], backends=("llvm",), **params)
        op = np.tril(a) if lower else np.triu(a)
        if unit:
            op = op * (1 - np.eye(n)) + np.eye(n)
        op = op.swapaxes(-1, -2) if transpose_a else op
        op = op.conj() if conjugate_a else op
        np.testing.assert_allclose(op @ x if left_side else x @ op, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("run", [evaluated, compiled])
def test_a_singular_triangle(run):
    params = {
        "left_side": True, "lower": True, "transpose_a": False, "conjugate_a": False, "unit_diagonal": False,
    }  # fmt: skip
    a, b = np.array([[1.0, 0.0], [2.0, 0.0]]), np.ones((2, 1))
    with pytest.raises(LinAlgError, match="diagonal element 1 is zero"):
        run(triangular_solve_p, a, b, check=True, **params)
    np.testing.assert_array_equal(run(triangular_solve_p, a, b, check=False, **params), [[1], [-np.inf]])


def test_operands_that_do_not_fit():
    with pytest.raises(LinAlgError, match=r"square matrices, got shape \(2, 3\)"):
        cholesky_p.abstract(aval_of(np.zeros((2, 3))), on_error="raise")
    with pytest.raises(DtypeError, match="int64 is not supported"):
        cholesky_p.abstract(aval_of(np.zeros((2, 2), int)), on_error="raise")

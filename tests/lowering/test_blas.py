"""BLAS and LAPACK called from kernels, in every type, by both routes."""

import subprocess
import sys

import numpy as np
import pytest

from functrans.lowering import blas
from functrans.lowering.backend import Options
from functrans.lowering.loops.builder import StatementBuilder
from functrans.lowering.loops.check import verify
from functrans.lowering.run.compile import compile_kernel

rng = np.random.default_rng(1)
I4 = np.dtype("i4")


@pytest.fixture(params=["llvm", "python"])
def run(request):
    def call(b, *arrays):
        kernel = b.finish()
        verify(kernel)
        assert compile_kernel(kernel, Options(backend=request.param)).run(arrays) == 0

    return call


@pytest.fixture(params=["f4", "f8", "c8", "c16"])
def dtype(request):
    return np.dtype(request.param)


def random(dtype, *shape):
    a = rng.normal(size=shape) + (1j * rng.normal(size=shape) if dtype.kind == "c" else 0)
    return a.astype(dtype)


def close(actual, expected):
    eps = np.finfo(expected.dtype).eps
    np.testing.assert_allclose(actual, expected, rtol=200 * eps, atol=200 * eps)


def test_gemm_with_constant_and_computed_scalars(run, dtype):
    m, n, k = 5, 4, 3
    b = StatementBuilder("matmul")
    x, y = b.buffer("a", dtype, (m, k), "in"), b.buffer("b", dtype, (k, n), "in")
    z, s = b.buffer("c", dtype, (m, n), "out"), b.buffer("s", dtype, (), "in")
    # Row-major C = s A B is column-major C' = s B' A'.
    b.extern("gemm", "N", "N", n, m, k, b.load(s, ()), y, n, x, k, 0.0, z, n)
    b.extern("gemm", "N", "N", n, m, k, b.const(2, dtype), y, n, x, k, b.load(s, ()) * b.load(s, ()), z, n)
    A, B, C, S = random(dtype, m, k), random(dtype, k, n), np.full((m, n), np.nan, dtype), random(dtype)
    S = np.asarray(S)
    run(b, A, B, C, S)
    close(C, 2 * (A @ B) + S * S * (S * (A @ B)))


def test_batched_gemm_by_offsets(run, dtype):
    b = StatementBuilder("batched")
    x, y = b.buffer("a", dtype, (6, 3, 3), "in"), b.buffer("b", dtype, (6, 3, 3), "in")
    z = b.buffer("c", dtype, (6, 3, 3), "out")
    with b.loop(6) as i:
        b.extern("gemm", "T", "N", 3, 3, 3, 1.0, (y, i * 9), 3, (x, i * 9), 3, 0.0, (z, i * 9), 3)
    A, B, C = random(dtype, 6, 3, 3), random(dtype, 6, 3, 3), np.zeros((6, 3, 3), dtype)
    run(b, A, B, C)
    close(C, A @ B.transpose(0, 2, 1))


def test_gemv_and_ger(run, dtype):
    m, n = 4, 7
    b = StatementBuilder("vectors")
    a, x, y = (
        b.buffer("a", dtype, (m, n), "in"),
        b.buffer("x", dtype, (n,), "in"),
        b.buffer("y", dtype, (m,), "out"),
    )
    outer = b.buffer("outer", dtype, (m, n), "out")
    b.extern("gemv", "T", n, m, 1.0, a, n, x, 1, 0.0, y, 1)
    b.copy(outer, a)
    b.extern("ger" if dtype.kind == "f" else "geru", n, m, -1.0, x, 1, y, 1, outer, n)
    A, X, Y, out = random(dtype, m, n), random(dtype, n), np.zeros(m, dtype), np.zeros((m, n), dtype)
    run(b, A, X, Y, out)
    close(Y, A @ X)
    close(out, A - np.outer(Y, X))


def test_dot_products_and_norms(run, dtype):
    names = ["dot"] if dtype.kind == "f" else ["dotu", "dotc"]
    b = StatementBuilder("dots")
    x, y = b.buffer("x", dtype, (9,), "in"), b.buffer("y", dtype, (9,), "in")
    out = b.buffer("out", dtype, (2,), "out")
    real = np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype
    norm = b.buffer("norm", real, (2,), "out")
    for i, name in enumerate(names):
        b.store(out, (i,), b.extern(name, 9, x, 1, y, 1) * 2.0)
    b.store(norm, (0,), b.extern("nrm2", 9, x, 1))
    b.store(norm, (1,), b.extern("asum", 9, x, 1))
    X, Y, D, N = random(dtype, 9), random(dtype, 9), np.zeros(2, dtype), np.zeros(2, real)
    run(b, X, Y, D, N)
    close(D[: len(names)], np.array([2 * X @ Y, 2 * X.conj() @ Y], dtype)[: len(names)])
    close(N, np.array([np.linalg.norm(X), np.abs(X.real).sum() + np.abs(X.imag).sum()], real))


def test_cholesky_and_triangular_solve(run, dtype):
    n = 6
    b = StatementBuilder("cholesky")
    a, rhs = b.buffer("a", dtype, (n, n), "in"), b.buffer("rhs", dtype, (n, 2), "in")
    factor, x = b.buffer("factor", dtype, (n, n), "out"), b.buffer("x", dtype, (n, 2), "out")
    infos = b.buffer("infos", I4, (2,), "out")
    b.copy(factor, a)
    info = b.local(b.const(0, I4))
    b.extern("potrf", "U", n, factor, n, info)
    b.store(infos, (0,), info.get())
    # The row-major lower factor is the column-major upper one; solve X' L' = B' from the right.
    b.copy(x, rhs)
    b.extern("trsm", "R", "U", "N", "N", 2, n, 1.0, factor, n, x, 2)
    b.store(factor, (n - 1, n - 1), b.const(-1, dtype))
    b.extern("potrf", "U", n, factor, n, info)
    b.store(infos, (1,), info.get())
    m = random(dtype, n, n)
    A, B = m @ m.conj().T + n * np.eye(n, dtype=dtype), random(dtype, n, 2)
    F, X, status = np.zeros((n, n), dtype), np.zeros((n, 2), dtype), np.full(2, -9, I4)
    run(b, A, B, F, X, status)
    close(X, np.linalg.solve(np.linalg.cholesky(A), B).astype(dtype))
    assert status[0] == 0
    assert status[1] == n


def test_syrk(run, dtype):
    b = StatementBuilder("syrk")
    a, c = b.buffer("a", dtype, (4, 3), "in"), b.buffer("c", dtype, (4, 4), "out")
    b.extern("syrk", "L", "T", 4, 3, 1.0, a, 3, 0.0, c, 4)
    A, C = random(dtype, 4, 3), np.zeros((4, 4), dtype)
    run(b, A, C)
    close(np.triu(C), np.triu(A @ A.T))


def test_unknown_routine():
    with pytest.raises(blas.MissingRoutineError, match="dnothing"):
        blas.address("dnothing")


def test_kernels_need_no_import_of_scipys_packages():
    """And what is imported later is the same module, in its place."""
    code = """
import sys
import numpy as np
import functrans as ft, functrans.numpy as fnp
from functrans.lowering import blas
x = np.arange(9.0).reshape(3, 3)
low = ft.jit(lambda x: fnp.linalg.cholesky(x @ x.T + 3 * fnp.eye(3)))(x)
assert "scipy.linalg" not in sys.modules
import scipy.linalg, scipy.linalg.cython_blas, scipy.linalg.cython_lapack
for name in ("cython_blas", "cython_lapack"):
    assert getattr(scipy.linalg, name) is blas.extension(f"scipy.linalg.{name}")
np.testing.assert_allclose(scipy.linalg.cholesky(x @ x.T + 3 * np.eye(3), lower=True), low)
"""
    subprocess.run([sys.executable, "-c", code], check=True)

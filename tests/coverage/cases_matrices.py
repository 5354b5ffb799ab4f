"""Matrices of a structure, condensed forms, functions of matrices."""

import numpy as np
import scipy.linalg
from coverage_table import PD, Call, Drawn, Entry, M, R

import functrans.numpy as fnp

#: Its norm is known while tracing, which makes the program short.
KNOWN = np.array([[0.4, -0.3], [0.7, 0.1]])
NO_BASIS = "LAPACK's basis is not a smooth function of the matrix"
PROMOTED = {"int": "operands of functrans.lax are not promoted"}
SHAPES = {**PROMOTED, "0-d": "shapes", "empty": "shapes"}
#: Upper triangular matrices: Schur forms.
TRIANGULAR = Drawn(
    (3, 3), lambda random, s: np.triu(M().make(random, s)) if len(s) > 1 else M().make(random, s)
)


def gehrd(a):
    form, taus, _ = scipy.linalg.get_lapack_funcs("gehrd", (a,))(a)
    return form, taus


def sytrd(a):
    form, d, e, taus, _ = scipy.linalg.get_lapack_funcs("sytrd", (a,))(a, lower=1)
    return form, d, e, taus


def tridiagonal_solve(dl, d, du, b):
    return np.linalg.solve(np.diag(d) + np.diag(dl[1:], -1) + np.diag(du[:-1], 1), b)


def ormqr(a, taus, c):
    return _orthogonal(a, taus) @ c


def _orthogonal(a, taus):
    q = np.eye(len(a), dtype=a.dtype)
    for i, tau in enumerate(taus):
        v = np.where(np.arange(len(a)) > i, a[:, i], 0)
        v[i] = 1
        q = q - tau * np.outer(q @ v, v)
    return q


def qdwh(a):
    if a.ndim != 2 or a.shape[0] < a.shape[1]:
        raise np.linalg.LinAlgError("shape")
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    return u @ vh, (vh.T * s) @ vh, np.int64(0), np.bool_(True)


TABLES = {
    "functrans.scipy.linalg": [
        Entry("circulant fiedler companion", Call(R(4))),
        Entry(
            "fiedler_companion",
            Call(R(4)),
            needs={"0-d": ("scipy<1.18", "another shape")},
        ),
        Entry("hankel", Call(R(3), R(2)), Call(R(3)), skip={"empty": "SciPy fails", "0-d": "SciPy fails"}),
        Entry("leslie", Call(R(3), R(2)), skip={"int": "SciPy cuts off fractions"}),
        Entry(
            "convolution_matrix", Call(R(3), 4, "same"), Call(R(2), 3), skip={"0-d": "SciPy takes a number"}
        ),
        Entry("dft hadamard helmert hilbert invhilbert invpascal pascal", Call(4), differentiable=False),
        Entry("schur", Call(M(3, 3)), differentiable=NO_BASIS),
        Entry("hessenberg", Call(M(3, 3), True), differentiable=NO_BASIS),
        Entry("rsf2csf", Call(TRIANGULAR, np.eye(3)), differentiable=NO_BASIS, skip={"float32": "SciPy"}),
        Entry(
            "qr_multiply",
            Call(M(3, 2), R(2, 3)),
            Call(M(3, 3), R(3), pivoting=True),
            skip={"0-d": "SciPy takes a number"},
        ),
        Entry("eigh_tridiagonal", Call(R(3), R(2, high=2.0))),
        Entry("eigvalsh_tridiagonal", Call(R(3), R(2), "i", (0, 1)), order=1),
        Entry(
            "expm_frechet",
            Call(KNOWN, M(2, 2)),
            Call(M(2, 2), M(2, 2)),
            skip={"float32": "SciPy computes in double precision"},
            slow=True,
        ),
        Entry(
            "funm",
            Call(M(2, 2), fnp.exp),
            oracle=lambda a, f: scipy.linalg.expm(a) + 0j,
            skip={"0-d": "SciPy takes a number", "empty": "SciPy fails"},
        ),
    ],
    "functrans.lax.linalg": [
        Entry("hessenberg", Call(M(3, 3)), oracle=gehrd, differentiable=NO_BASIS, skip=SHAPES),
        Entry("tridiagonal", Call(PD(3, 3)), oracle=sytrd, differentiable=NO_BASIS, skip=SHAPES),
        Entry("schur", Call(M(3, 3)), oracle=scipy.linalg.schur, differentiable=NO_BASIS, skip=SHAPES),
        Entry(
            "tridiagonal_solve",
            Call(R(3), R(3, low=2.0, high=3.0), R(3), R(3, 2)),
            oracle=tridiagonal_solve,
            skip=SHAPES,
        ),
        Entry("ormqr", Call(M(3, 2), R(2), R(3, 2)), oracle=ormqr, skip=SHAPES),
        Entry("qdwh", Call(M(3, 2)), oracle=qdwh, skip=SHAPES),
    ],
}

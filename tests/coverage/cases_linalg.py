"""Linear algebra: NumPy's, SciPy's, and that of functrans.lax."""

import numpy as np
import scipy.linalg
from coverage_table import PD, Call, Entry, M, R, Z


def triangular_solve(
    a, b, *, left_side=False, lower=False, transpose_a=False, conjugate_a=False, unit_diagonal=False
):
    a = np.tril(a) if lower else np.triu(a)
    if unit_diagonal:
        a = a - np.diag(np.diag(a)) + np.eye(len(a))
    a = a.conj() if conjugate_a else a
    a = a.T if transpose_a else a
    return b @ np.linalg.inv(a) if not left_side else np.linalg.inv(a) @ b


def householder_product(a, taus):
    m, n = a.shape
    out = np.eye(m, dtype=a.dtype)
    for i, tau in enumerate(taus):
        v = np.concatenate([np.zeros(i), [1], a[i + 1 :, i]])
        out = out @ (np.eye(m) - tau * np.outer(v, v.conj()))
    return out[:, :n].astype(a.dtype)


def cho_solve(c_and_lower, b):
    c, lower = c_and_lower
    c = np.tril(c) if lower else np.triu(c)
    return np.linalg.solve(c @ c.T.conj() if lower else c.T.conj() @ c, b)


def as_complex(x):
    """NumPy's eigenvalues and eigenvectors, which are real where they can."""
    if isinstance(x, np.ndarray):
        return x.astype(np.result_type(x, np.complex64))
    return type(x)(*map(as_complex, x))


def upright(eigh, *args, **kwargs):
    """Eigenvectors whose first element is positive: their signs are the library's to choose."""
    out = eigh(*args, **kwargs)
    return (out[0], out[1] * np.sign(out[1][..., :1, :])) if isinstance(out, tuple) else out


TABLES = {
    "functrans.numpy.linalg": [
        Entry("cholesky", Call(PD(3, 3)), Call(PD(2, 2, 2, dtype=complex)), Call(PD(3, 3), upper=True)),
        Entry(
            "norm", Call(R(3)), Call(R(2, 3)), Call(R(2, 3), 1), Call(R(2, 3), np.inf, axis=1), Call(Z(3), 3)
        ),
        Entry("vector_norm", Call(R(2, 3)), Call(R(2, 3), axis=1, ord=3)),
        Entry("matrix_norm", Call(R(2, 2, 3)), Call(R(2, 3), ord=1), Call(M(2, 3), ord="nuc")),
        Entry("matrix_power", Call(M(3, 3), 3), Call(M(3, 3), 0), Call(M(3, 3), -2)),
        Entry("solve", Call(M(3, 3), R(3)), Call(M(2, 3, 3), R(3, 2)), Call(M(3, 3, dtype=complex), Z(3, 2))),
        Entry("inv det slogdet", Call(M(3, 3)), Call(M(2, 3, 3)), Call(M(3, 3, dtype=complex))),
        Entry("qr", Call(M(3, 3)), Call(M(4, 2), "complete"), Call(M(2, 4), "r"), Call(M(4, 2), "raw")),
        Entry(
            "tensorsolve",
            Call(M(2, 2, 2, 2), R(2, 2)),
            needs={"0-d": ("numpy>=2.2", "AttributeError")},
        ),
        Entry("tensorinv", Call(M(2, 2, 2, 2)), skip={"0-d": "another error"}),
        Entry("multi_dot", Call([R(2, 3), R(3, 4), R(4)])),
        Entry("eigh eigvalsh", Call(PD(3, 3)), Call(PD(2, 3, 3), UPLO="U")),
        Entry(
            "eig",
            Call(M(3, 3)),
            Call(M(2, 3, 3, dtype=complex)),
            oracle=lambda a: as_complex(np.linalg.eig(a)),
        ),
        Entry(
            "eigvals",
            Call(M(3, 3)),
            Call(M(2, 3, 3, dtype=complex)),
            oracle=lambda a: as_complex(np.linalg.eigvals(a)),
        ),
        Entry("svd", Call(M(3, 3)), Call(M(2, 3, 3), full_matrices=False), Call(M(3, 2), compute_uv=False)),
        Entry("svdvals", Call(M(3, 2)), Call(M(2, 3, 3, dtype=complex))),
        Entry(
            "pinv",
            Call(M(3, 2)),
            Call(M(2, 2, 3, dtype=complex), rtol=1e-3),
            Call(PD(3, 3), hermitian=True),
            skip={"empty": "NumPy's keeps integers"},
        ),
        Entry("lstsq", Call(M(3, 2), R(3)), Call(M(2, 3, dtype=complex), Z(2, 2))),
        Entry(
            "matrix_rank",
            Call(M(3, 2)),
            Call(M(2, 2, 2), tol=2.5),
            Call(PD(3, 3), hermitian=True),
            differentiable=False,
        ),
        Entry("cond", Call(M(3, 2)), Call(M(3, 3), "fro"), Call(M(2, 3, 3), -2)),
        Entry("outer", Call(R(3), R(2))),
        Entry("diagonal trace", Call(R(2, 3, 3)), Call(R(2, 3, 3), offset=1)),
    ],
    "functrans.lax.linalg": [
        Entry(
            "lu",
            Call(M(3, 3)),
            Call(M(4, 2)),
            oracle=lambda x: (
                *scipy.linalg.lu_factor(x),
                np.argsort(scipy.linalg.lu(x, p_indices=True)[0]).astype("i4"),
            ),
            skip={
                "0-d": "another error",
                "empty": "the oracle has other dtypes",
                "int": "operands are not promoted",
            },
        ),
        Entry(
            "lu_pivots_to_permutation",
            Call(np.array([2, 2, 2], np.int32), 4),
            oracle=lambda pivots, size: np.array([2, 0, 1, 3], np.int32),
            differentiable=False,
        ),
        Entry(
            "qr",
            Call(M(3, 3)),
            Call(M(4, 2), full_matrices=False),
            oracle=lambda x, full_matrices=True: tuple(
                np.linalg.qr(x, "complete" if full_matrices else "reduced")
            ),
            skip={"0-d": "another error", "int": "operands are not promoted"},
        ),
        Entry(
            "householder_product",
            Call(M(3, 2), R(2)),
            oracle=householder_product,
            skip=dict.fromkeys(("0-d", "empty", "int"), "the oracle cannot"),
        ),
        Entry(
            "cholesky_update",
            Call(np.triu(np.ones((3, 3))) + np.eye(3), R(3)),
            oracle=lambda r, w: np.linalg.cholesky(r.T @ r + np.outer(w, w)).T,
            skip=dict.fromkeys(("0-d", "empty", "int", "float32"), "operands are not promoted"),
        ),
        Entry(
            "cholesky",
            Call(PD(3, 3)),
            oracle=np.linalg.cholesky,
            skip={"0-d": "another error", "int": "operands are not promoted"},
        ),
        Entry(
            "eigh",
            Call(PD(3, 3)),
            Call(PD(3, 3), symmetrize_input=False),
            oracle=lambda x, symmetrize_input=True: np.linalg.eigh(x)[::-1],
            skip={"0-d": "another error", "int": "operands are not promoted"},
        ),
        Entry(
            "svd",
            Call(M(3, 2), full_matrices=False),
            Call(M(2, 3, dtype=complex), compute_uv=False),
            oracle=lambda x, **options: (
                tuple(y) if isinstance(y := np.linalg.svd(x, **options), tuple) else y
            ),
            skip={"0-d": "another error", "int": "operands are not promoted"},
        ),
        Entry(
            "eig",
            Call(M(3, 3), compute_left_eigenvectors=False),
            oracle=lambda x, **options: list(as_complex(np.linalg.eig(x))),
            skip=dict.fromkeys(("0-d", "empty", "int"), "the oracle differs"),
        ),
        Entry(
            "symmetric_product",
            Call(R(3, 2), R(3, 3)),
            Call(R(2, 3, 2), PD(2, 3, 3), alpha=0.5, beta=2.0, symmetrize_output=True),
            oracle=lambda a, c, alpha=1.0, beta=0.0, symmetrize_output=False: (
                alpha * a @ a.swapaxes(-1, -2) + beta * c
            ),
            skip=dict.fromkeys(("0-d", "empty", "int"), "the oracle differs"),
        ),
        Entry(
            "triangular_solve",
            Call(M(3, 3), R(2, 3)),
            Call(M(3, 3), R(3, 2), left_side=True, lower=True),
            Call(M(3, 3), R(3, 2), left_side=True, transpose_a=True, unit_diagonal=True),
            oracle=triangular_solve,
            skip=dict.fromkeys(("0-d", "empty", "int"), "the oracle cannot"),
        ),
    ],
    "functrans.scipy.linalg": [
        Entry("lu", Call(M(3, 3)), Call(M(4, 2), permute_l=True), Call(M(2, 4), p_indices=True)),
        Entry(
            "lu_factor",
            Call(M(3, 3)),
            Call(M(4, 2)),
            skip={"0-d": "another error"},
            needs={"empty": ("scipy>=1.14", "LAPACK's error")},
        ),
        Entry(
            "lu_solve",
            Call((M(3, 3), np.array([1, 1, 2], np.int32)), R(3)),
            Call((M(3, 3), np.array([1, 1, 2], np.int32)), R(3, 2), trans=1),
            skip=dict.fromkeys(("0-d", "empty"), "another error"),
        ),
        Entry(
            "solve",
            Call(M(3, 3), R(3)),
            Call(PD(3, 3), R(3, 2), assume_a="pos"),
            Call(M(3, 3), R(3), assume_a="lower triangular"),
            skip={"0-d": "another error"},
            needs={"value": ("scipy>=1.15", "triangular matrices")},
        ),
        Entry("inv", Call(M(3, 3)), Call(PD(3, 3), assume_a="pos")),
        Entry("det", Call(M(3, 3)), Call(M(3, 3, dtype=complex)), skip={"float32": "SciPy rounds later"}),
        Entry("qr", Call(M(3, 3)), Call(M(4, 2), mode="economic", pivoting=True), Call(M(2, 4), mode="r")),
        Entry("expm", Call(R(3, 3)), Call(Z(2, 2)), order=1, slow=True),
        Entry("block_diag", Call(R(2, 3), R(1, 2)), Call(R(3))),
        Entry("toeplitz", Call(R(3)), Call(R(3), R(2)), Call(Z(3))),
        Entry(
            "eigh",
            Call(PD(3, 3)),
            Call(PD(3, 3), PD(3, 3)),
            Call(PD(3, 3), eigvals_only=True),
            through=upright,
            needs={"empty": ("scipy>=1.14", "LAPACK's error")},
        ),
        Entry("eigvalsh", Call(PD(3, 3)), Call(PD(3, 3), PD(3, 3), type=3, subset_by_index=(0, 1))),
        Entry("svd", Call(M(3, 3)), Call(M(3, 2), full_matrices=False), Call(Z(3, 2), compute_uv=False)),
        Entry("svdvals", Call(M(3, 2))),
        Entry("pinv", Call(M(3, 2)), Call(M(2, 3, dtype=complex), atol=0.1)),
        Entry(
            "sqrtm",
            Call(PD(3, 3)),
            Call(M(2, 2, dtype=complex)),
            oracle=lambda a: as_complex(scipy.linalg.sqrtm(a)),
            skip={"0-d": "another error", "empty": "another dtype"},
            needs={"value": ("scipy>=1.15", "long doubles")},
        ),
        Entry(
            "solve_sylvester",
            Call(PD(3, 3), M(2, 2), R(3, 2)),
            Call(PD(2, 2), PD(2, 2), Z(2, 2)),
            skip={"empty": "SciPy takes an empty matrix that is not square"},
        ),
        Entry("polar", Call(M(3, 3)), Call(M(3, 2, dtype=complex)), Call(M(2, 3), side="left")),
        Entry(
            "cholesky",
            Call(PD(3, 3)),
            Call(PD(3, 3, dtype=complex), lower=True),
            skip={"0-d": "SciPy takes a number for a matrix"},
        ),
        Entry(
            "cho_factor",
            Call(PD(3, 3)),
            oracle=lambda a: (scipy.linalg.cholesky(a), False),
            skip={"0-d": "SciPy says ValueError"},
        ),
        Entry(
            "cho_solve",
            Call((M(3, 3), True), R(3, 2)),
            Call((M(3, 3), False), R(3)),
            oracle=cho_solve,
            skip=dict.fromkeys(("0-d", "empty"), "the oracle cannot"),
        ),
        Entry("solve_triangular", Call(M(3, 3), R(3, 2)), Call(M(3, 3), R(3), trans=1, lower=True)),
    ],
}

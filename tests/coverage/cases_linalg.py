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


def cho_solve(c_and_lower, b):
    c, lower = c_and_lower
    c = np.tril(c) if lower else np.triu(c)
    return np.linalg.solve(c @ c.T.conj() if lower else c.T.conj() @ c, b)


TABLES = {
    "functrans.numpy.linalg": [
        Entry("cholesky", Call(PD(3, 3)), Call(PD(2, 2, 2, dtype=complex)), Call(PD(3, 3), upper=True)),
        Entry(
            "norm", Call(R(3)), Call(R(2, 3)), Call(R(2, 3), 1), Call(R(2, 3), np.inf, axis=1), Call(Z(3), 3)
        ),
        Entry("vector_norm", Call(R(2, 3)), Call(R(2, 3), axis=1, ord=3)),
        Entry("matrix_norm", Call(R(2, 2, 3)), Call(R(2, 3), ord=1)),
        Entry("matrix_power", Call(M(3, 3), 3), Call(M(3, 3), 0)),
        Entry("multi_dot", Call([R(2, 3), R(3, 4), R(4)])),
        Entry("outer", Call(R(3), R(2))),
        Entry("diagonal trace", Call(R(2, 3, 3)), Call(R(2, 3, 3), offset=1)),
    ],
    "functrans.lax.linalg": [
        Entry(
            "cholesky",
            Call(PD(3, 3)),
            oracle=np.linalg.cholesky,
            skip={"0-d": "another error", "int": "operands are not promoted"},
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
        Entry("cholesky", Call(PD(3, 3)), Call(PD(3, 3, dtype=complex), lower=True)),
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

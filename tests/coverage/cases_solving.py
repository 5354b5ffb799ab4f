"""Coverage of functrans.lax: equations solved by solvers of the user's."""

import numpy as np
from coverage_table import Call, Entry, R, Z

import functrans.numpy as fnp
from functrans import lax


def matvec(x):
    """``(4 I + 1 1^T) x``."""
    return 4 * x + fnp.sum(x)


def solve(matvec, b):
    return (b - fnp.sum(b) / (4 + b.size)) / 4


def solved_by_numpy(matvec, b, *solvers):
    matrix = (4 * np.eye(b.size) + 1).astype(np.result_type(b, np.float32))
    return np.linalg.solve(matrix, b.ravel()).reshape(b.shape)


def newton(f, x):
    return lax.fori_loop(0, 20, lambda i, x: x - f(x) / (3 * x * x + 1), x)


def tangent_solve(g, y):
    return y / g(fnp.ones_like(y))


def root_at(f, a):
    """The root of ``x**3 + x = a``."""
    return f(lambda x: x * x * x + x - a, 0.5 * a, newton, tangent_solve)


def by_cardano(f, guess, *solvers):
    a = -f(0 * guess)
    return 2 / 3**0.5 * np.sinh(np.arcsinh(1.5 * 3**0.5 * a) / 3)


TABLES = {
    "functrans.lax": [
        Entry(
            "custom_linear_solve",
            Call(matvec, R(3), solve, solve),
            Call(matvec, Z(2, 2), solve, solve),
            oracle=solved_by_numpy,
        ),
        Entry(
            "custom_root",
            Call(R(2, 3)),
            oracle=by_cardano,
            through=root_at,
        ),
    ]
}

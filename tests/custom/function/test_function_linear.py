"""Functions with a transpose."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import errors, lax
from functrans.testing import check

A = np.array([[1.0, 2.0, 0.5], [-1.0, 0.3, 4.0]])
X = np.array([0.4, -1.0, 2.0])
CALLS = []


class Product(ft.Function):
    """A matrix product, linear in either operand; its transpose says that it was asked."""

    @staticmethod
    def forward(ctx, a, x):
        return a @ x

    @staticmethod
    def transpose(inputs, g):
        a, x = inputs
        CALLS.append((a is None, x is None))
        if a is None:
            return fnp.outer(g, x), None
        return None, a.T @ g


def energy(a, x):
    return fnp.sum(fnp.sin(Product.apply(a, x)))


def by_hand(a, x):
    slope = np.cos(a @ x)
    return np.outer(slope, x), a.T @ slope


@pytest.mark.parametrize("argnum", [0, 1])
def test_derivatives_in_either_argument(argnum):
    want = by_hand(A, X)[argnum]
    for g in (ft.grad(energy, argnum), ft.jit(ft.grad(energy, argnum)), ft.grad(ft.jit(energy), argnum)):
        CALLS.clear()
        assert np.allclose(g(A, X), want)
        assert [(argnum == 0, argnum == 1)] == CALLS
    assert np.allclose(ft.jacfwd(energy, argnum)(A, X), want)
    stacked = np.stack([X, 2.0 * X])
    found = ft.vmap(ft.grad(energy, argnum), (None, 0))(A, stacked)
    assert np.allclose(found, [by_hand(A, x)[argnum] for x in stacked])
    check(lambda x: energy(A, x) if argnum else energy(x, X), X if argnum else A)


def test_a_product_of_two_that_both_move_is_refused():
    for g in (ft.grad(energy, (0, 1)), ft.jit(ft.grad(energy, (0, 1))), ft.grad(ft.jit(energy), (0, 1))):
        with pytest.raises(
            errors.MissingRuleError, match=r"argument 0 \('a'\) and argument 1 \('x'\) together"
        ):
            g(A, X)
    with pytest.raises(errors.MissingRuleError, match="together"):
        ft.jvp(energy, (A, X), (A, X))


def test_a_transpose_that_knows_nothing_of_both():
    """It does not fail, but returns zeros: what the product gives for both tangents would be no derivative."""

    class Multiply(ft.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def transpose(inputs, g):
            x, y = inputs
            if x is None and y is None:
                return None, None
            return (g * y, None) if x is None else (None, g * x)

    assert ft.grad(Multiply.apply)(2.0, 3.0) == 3.0
    assert ft.jvp(lambda y: Multiply.apply(2.0, y), (3.0,), (1.0,))[1] == 2.0
    for derivative in (ft.jvp, ft.jit(lambda f, *xs: ft.jvp(f, *xs), static_argnums=0)):
        with pytest.raises(errors.MissingRuleError, match="together"):
            derivative(Multiply.apply, (2.0, 3.0), (1.0, 1.0))


def test_a_sum_of_two_that_both_move():
    class Sum(ft.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + 3.0 * y

        @staticmethod
        def transpose(inputs, g):
            x, y = inputs
            return None if x is not None else g, None if y is not None else 3.0 * g

    for f in (Sum.apply, ft.jit(Sum.apply)):
        assert ft.grad(f, (0, 1))(1.0, 2.0) == (1.0, 3.0)
        assert ft.grad(f, 1)(1.0, 2.0) == 3.0
        assert ft.jvp(f, (1.0, 2.0), (1.0, 10.0)) == (7.0, 31.0)


def test_linear_transpose_and_linearize():
    w = np.array([2.0, -1.0])
    assert np.allclose(ft.linear_transpose(lambda x: Product.apply(A, x), X)(w)[0], A.T @ w)
    assert np.allclose(ft.linearize(lambda x: Product.apply(A, x), X)[1](X), A @ X)


def test_shared_by_all_examples_and_in_loops():
    def loop(x):
        square = fnp.asarray(A[:, :2])
        return fnp.sum(lax.fori_loop(0, 3, lambda i, c: Product.apply(square, c), x))

    m = np.linalg.matrix_power(A[:, :2], 3)
    for f in (loop, ft.jit(loop)):
        assert np.allclose(ft.grad(f)(X[:2]), m.sum(0))
    total = lambda a: fnp.sum(ft.vmap(lambda x: Product.apply(a, x))(fnp.stack([X, X])))
    assert np.allclose(ft.grad(total)(A), 2.0 * np.ones((2, 1)) * X)


def test_complex_ones_are_adjoints():
    z = np.array([1.0 + 2.0j, 0.5 - 1.0j])

    class Turned(ft.Function):
        @staticmethod
        def forward(ctx, x):
            return z * x

        @staticmethod
        def transpose(inputs, g):
            return g * z.conj()

    x = np.array([0.3 - 0.2j, 1.0 + 0.1j])
    want = ft.vjp(lambda x: z * x, x)[1](x)[0]
    assert np.allclose(ft.vjp(Turned.apply, x)[1](x)[0], want)


def test_beside_backward_it_serves_linear_transpose_only():
    class Both(ft.Function):
        @staticmethod
        def forward(ctx, x):
            return 2.0 * x

        @staticmethod
        def backward(ctx, g):
            return 20.0 * g

        @staticmethod
        def transpose(inputs, g):
            return 200.0 * g

    assert ft.grad(Both.apply)(1.0) == 20.0
    assert ft.linear_transpose(Both.apply, 1.0)(1.0)[0] == 200.0


@pytest.mark.parametrize(
    ("returned", "error"),
    [
        (lambda g: g, errors.GradientCountError),
        (lambda g: (g[:1], None), errors.GradientShapeError),
        (lambda g: [g, None], TypeError),
    ],
)
def test_what_it_returns_is_checked(returned, error):
    class Scaled(ft.Function):
        @staticmethod
        def forward(ctx, x, n):
            return x * n

        @staticmethod
        def transpose(inputs, g):
            return returned(g * inputs[1])

    with pytest.raises(error, match=r"Scaled\.transpose"):
        ft.grad(lambda x: fnp.sum(Scaled.apply(x, 3.0)))(X)


def test_a_function_without_rules_says_so_in_linear_transpose():
    class Ruleless(ft.Function):
        @staticmethod
        def forward(ctx, x):
            return 2.0 * x

    for f in (Ruleless.apply, ft.jit(Ruleless.apply)):
        with pytest.raises(NotImplementedError, match="either the backward or vjp method"):
            ft.linear_transpose(f, 1.0)(1.0)

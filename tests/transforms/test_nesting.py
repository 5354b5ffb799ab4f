"""Transformations of transformations in all orders; values captured from outside; confused perturbations."""

import itertools

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.experimental import checkify
from functrans.experimental.jet import jet

X = np.array([0.4, -0.9, 1.7])

#: Each takes R^3 -> R^3 to R^3 -> R^3 and commutes with none of the others; NumPy's counterpart beside it.
STEPS = {
    "jit": lambda f: ft.jit(f),
    "grad": lambda f: ft.grad(lambda x: fnp.sum(f(x) * X)),
    "jvp": lambda f: lambda x: ft.jvp(f, (x,), (fnp.ones_like(x),))[1],
    "vmap": lambda f: lambda x: fnp.sum(ft.vmap(f)(fnp.stack([x, 2 * x])), 0),
    "linearize": lambda f: lambda x: ft.linearize(f, x)[1](x),
    "vjp": lambda f: lambda x: ft.vjp(f, x)[1](x)[0],
    "jacfwd": lambda f: lambda x: ft.jacfwd(f)(x) @ X,
    "jacrev": lambda f: lambda x: X @ ft.jacrev(f)(x),
}


class Poly:
    """A map of R^3 with its Jacobian, both of polynomials, so that derivatives of any order are known."""

    def __init__(self, terms):
        self.terms = terms  # for each output: {powers: coefficient}

    def __call__(self, x):
        return np.array([sum(c * np.prod(x**p) for p, c in t.items()) for t in self.terms])

    def partial(self, j):
        out = []
        for t in self.terms:
            actual = {}
            for p, c in t.items():
                if p[j]:
                    q = tuple(n - (i == j) for i, n in enumerate(p))
                    actual[q] = actual.get(q, 0) + c * p[j]
            out.append(actual)
        return out

    def combined(self, weights):
        """Sum of weights[i][j] (a dict of powers) times d f_i / d x_j; one output for each of the lists given."""
        parts = [self.partial(j) for j in range(3)]
        outs = []
        for w in weights:
            actual = {}
            for i, j in itertools.product(range(3), range(3)):
                for (p, c), (q, d) in itertools.product(parts[j][i].items(), w[i][j].items()):
                    r = tuple(a + b for a, b in zip(p, q))
                    actual[r] = actual.get(r, 0) + c * d
            outs.append(actual)
        return Poly(outs)


ONE = (0, 0, 0)
UNIT = [tuple(int(i == j) for i in range(3)) for j in range(3)]
ZERO = {}


def weights(entry):
    """entry(k, i, j): the factor of d f_i / d x_j in output k."""
    return [[[entry(k, i, j) for j in range(3)] for i in range(3)] for k in range(3)]


def forward(direction):
    return lambda f: f.combined(weights(lambda k, i, j: direction(j) if i == k else ZERO))


def reverse(covector):
    return lambda f: f.combined(weights(lambda k, i, j: covector(i) if j == k else ZERO))


def doubled(f):
    """f(x) + f(2 x)"""
    return Poly([{p: c * (1 + 2 ** sum(p)) for p, c in t.items()} for t in f.terms])


ORACLES = {
    "jit": lambda f: f,
    "grad": reverse(lambda i: {ONE: X[i]}),
    "jvp": forward(lambda j: {ONE: 1.0}),
    "vmap": doubled,
    "linearize": forward(lambda j: {UNIT[j]: 1.0}),
    "vjp": reverse(lambda i: {UNIT[i]: 1.0}),
    "jacfwd": forward(lambda j: {ONE: X[j]}),
    "jacrev": reverse(lambda i: {ONE: X[i]}),
}
BASE = Poly(
    [{(3, 1, 1): 1.0, (0, 2, 3): -0.5}, {(2, 2, 1): 0.7, (4, 0, 1): 1.0}, {(1, 1, 3): 2.0, (1, 4, 0): 0.3}]
)


def base(x):
    a, b, c = x[0], x[1], x[2]
    return fnp.stack(
        [
            a**3 * b * c - 0.5 * b**2 * c**3,
            0.7 * a**2 * b**2 * c + a**4 * c,
            2.0 * a * b * c**3 + 0.3 * a * b**4,
        ]
    )


@pytest.mark.parametrize("names", [*itertools.product(STEPS, STEPS)], ids="-".join)
def test_two_levels(names):
    f, oracle = base, BASE
    for name in reversed(names):
        f, oracle = STEPS[name](f), ORACLES[name](oracle)
    np.testing.assert_allclose(f(X), oracle(X), rtol=1e-10)


THREE = [*itertools.product(("jit", "grad", "jvp", "vmap"), repeat=3)]


@pytest.mark.parametrize("names", THREE, ids="-".join)
def test_three_levels(names):
    f, oracle = base, BASE
    for name in reversed(names):
        f, oracle = STEPS[name](f), ORACLES[name](oracle)
    np.testing.assert_allclose(f(X), oracle(X), rtol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("names", [*itertools.product(STEPS, repeat=3)][::3], ids="-".join)
def test_three_levels_of_all(names):
    f, oracle = base, BASE
    for name in reversed(names):
        f, oracle = STEPS[name](f), ORACLES[name](oracle)
    np.testing.assert_allclose(f(X), oracle(X), rtol=1e-10)


JITS = [lambda f: f, ft.jit]


def check_confusion(outer, inner, wrap):
    assert outer(lambda x: x * inner(wrap(lambda y: x + y))(1.0))(1.0) == 1.0
    assert outer(wrap(lambda x: x * inner(lambda y: x * y)(2.0)))(3.0) == 6.0
    assert outer(lambda x: inner(wrap(lambda y: x * y * y))(x))(3.0) == 12.0
    constant = outer(lambda x: x * inner(wrap(lambda y: x))(1.0))(1.0)
    assert constant == 0.0


@pytest.mark.parametrize("wrap", JITS, ids=["eager", "jit"])
def test_perturbations_are_not_confused(wrap):
    """Siskind and Pearlmutter (2005): d/dx (x d/dy (x + y)) = 1, not 2; and its kin in reverse and mixed mode."""
    one = lambda f: lambda x: ft.jvp(f, (x,), (1.0,))[1]
    for outer, inner in itertools.product((one, ft.grad), repeat=2):
        check_confusion(outer, inner, wrap)


def test_jit_inside_grad_captures_the_differentiated_value():
    def f(x):
        inner = ft.jit(lambda y: fnp.sum(x * y * y))
        return inner(x) + inner(2.0 * x)

    np.testing.assert_allclose(ft.grad(f)(X), 15 * X**2)
    np.testing.assert_allclose(ft.jit(ft.grad(f))(X), 15 * X**2)
    np.testing.assert_allclose(ft.hessian(f)(X), np.diag(30 * X))
    np.testing.assert_allclose(ft.vmap(ft.grad(f))(np.stack([X, -X])), 15 * np.stack([X, -X]) ** 2)


def test_vmap_in_jit_in_grad():
    def f(x):
        inner = ft.jit(lambda y: fnp.sum(ft.vmap(lambda a, b: fnp.sin(a) * b * x[0])(x, y)))
        return inner(x * 2)

    expected = 2 * X[0] * (np.cos(X) * X + np.sin(X))
    expected[0] += np.sum(2 * np.sin(X) * X)
    np.testing.assert_allclose(ft.grad(f)(X), expected)
    np.testing.assert_allclose(ft.grad(ft.jit(f))(X), expected)


def test_a_jitted_function_with_captures_is_used_at_several_levels():
    def outer(x):
        scale = ft.jit(lambda y: x * y)
        return scale(ft.grad(lambda y: scale(y) * y)(x)) + ft.vmap(scale)(fnp.stack([x, x]))[1]

    # scale(2 x^2) + x^2 = 2 x^3 + x^2
    np.testing.assert_allclose(ft.grad(outer)(1.5), 6 * 1.5**2 + 2 * 1.5)
    np.testing.assert_allclose(ft.grad(ft.grad(ft.jit(outer)))(1.5), 12 * 1.5 + 2)


@pytest.mark.parametrize("wrap", JITS, ids=["eager", "jit"])
def test_high_orders(wrap):
    f, expected = fnp.sin, [np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x), np.sin, np.cos]
    for derivative in expected:
        f = ft.grad(wrap(f))
        np.testing.assert_allclose(f(0.7), derivative(0.7), rtol=1e-13)
    forward = lambda g: lambda x: ft.jvp(wrap(g), (x,), (1.0,))[1]
    g = lambda x: x**5
    for k in range(1, 6):
        g = forward(g)
        np.testing.assert_allclose(g(1.3), np.prod(range(6 - k, 6)) * 1.3 ** (5 - k), rtol=1e-12)


def test_outputs_that_are_inputs_constants_or_equal():
    f = ft.jit(lambda x, y: (x, y, x, fnp.ones(3), x * 2))
    _, pull = ft.vjp(f, X, 2.0)
    dx, dy = pull((X, 3.0, X, X, X))
    np.testing.assert_allclose(dx, 4 * X)
    assert dy == 3.0
    _outs, ts = ft.jvp(f, (X, 2.0), (X, 1.0))
    np.testing.assert_allclose(ts[4], 2 * X)
    np.testing.assert_array_equal(ts[3], np.zeros(3))
    assert ts[1] == 1.0


def test_integers_inside_differentiated_jit():
    @ft.jit
    def f(x, n, mask):
        order = fnp.argsort(x) if hasattr(fnp, "argsort") else fnp.array([1, 0, 2])
        return fnp.sum(fnp.where(mask, x[order] * n, x)), order

    mask = np.array([True, False, True])
    d, order = ft.grad(f, has_aux=True)(X, 3, mask)
    expected = np.where(~mask, 1.0, 0.0)
    np.add.at(expected, np.array([1, 0, 2])[mask], 3.0)
    np.testing.assert_array_equal(order, [1, 0, 2])
    np.testing.assert_allclose(d, expected)


def test_eager_differentiation_leaves_user_loops_and_recursion_alone():
    def power(x, n):
        return 1.0 if n == 0 else x * power(x, n - 1)

    def newton(a):
        x = a
        while abs(x * x - a) > 1e-14:
            x = 0.5 * (x + a / x)
        return x

    np.testing.assert_allclose(ft.grad(power)(1.1, 7), 7 * 1.1**6)
    np.testing.assert_allclose(ft.grad(newton)(2.0), 0.5 / np.sqrt(2.0), rtol=1e-6)


@pytest.mark.parametrize(
    "of",
    [
        lambda f: ft.jvp(f, (1.0,), (1.0,)),
        lambda f: ft.vmap(f)(np.ones(2)),
        lambda f: checkify.checkify(f)(1.0),
        lambda f: jet(f, (1.0,), ((1.0, 0.0),)),
    ],
    ids=["jvp", "vmap", "checkify", "jet"],
)
def test_what_contains_a_tangent_of_reverse_mode_is_symbolic(of):
    seen = []

    def f(x):
        seen.append(x.is_symbolic)
        return x * x

    of(f)
    assert not any(seen)
    seen.clear()
    ft.vjp(lambda y: (of(lambda x: f(x * y)), y)[1], 2.0)
    assert all(seen)
    assert seen


INSIDE = {
    "linearize": lambda g, c, t: 0.5 * (ft.linearize(g, c)[0] + ft.linearize(g, c)[1](c)),
    "linearize a jit": lambda g, c, t: (
        0.5 * (ft.linearize(ft.jit(g), c)[0] + ft.linearize(ft.jit(g), c)[1](c))
    ),
    "grad": lambda g, c, t: c * ft.grad(g)(c),
    "grad of jit": lambda g, c, t: c * ft.grad(ft.jit(g))(c),
    "vjp": lambda g, c, t: ft.vjp(g, c)[1](c)[0],
    "jvp": lambda g, c, t: ft.jvp(g, (c,), (c,))[1],
    "vmap": lambda g, c, t: ft.vmap(g)(fnp.stack([c, c]))[1],
    "jit": lambda g, c, t: ft.jit(g)(c),
    "checkpoint": lambda g, c, t: ft.checkpoint(g)(c),
    "scan": lambda g, c, t: lax.scan(lambda s, _: (s + 0.25 * g(c), None), 0.0 * t, None, 4)[0],
    "cond": lambda g, c, t: lax.cond(c > -2.0, g, lambda u: u * t, c),
    "grad of a dot": lambda g, c, t: (
        c * ft.grad(lambda u: fnp.dot(fnp.stack([u, u]), fnp.stack([t, 0 * t])))(c)
    ),
}


@pytest.mark.parametrize("wrap", JITS, ids=["eager", "jit"])
@pytest.mark.parametrize("how", INSIDE)
def test_a_rule_that_transforms_a_function_of_its_tangent(how, wrap):
    """The rule of a sine, whose slope times the tangent is computed by another transformation of both."""

    @ft.custom_jvp
    def f(x):
        return fnp.sin(x)

    f.defjvp(lambda p, t: (f(*p), INSIDE[how](lambda u: u * t[0], fnp.cos(p[0]), t[0])))
    np.testing.assert_allclose(wrap(ft.grad(f))(0.4), np.cos(0.4), rtol=1e-14)
    np.testing.assert_allclose(wrap(ft.grad(wrap(f)))(0.4), np.cos(0.4), rtol=1e-14)
    np.testing.assert_allclose(wrap(lambda x: ft.jvp(f, (x,), (2.0,))[1])(0.4), 2 * np.cos(0.4), rtol=1e-14)

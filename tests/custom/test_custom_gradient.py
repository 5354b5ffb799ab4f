"""`custom_gradient`. Where a fact about JAX is tested, the number is the one that JAX 0.10 gives."""

import functools

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax

X = np.linspace(0.3, 1.2, 4)
Y = np.linspace(1.0, 2.0, 4)


@ft.custom_gradient
def product(x, y):
    """``sin(x) y``."""
    sin = fnp.sin(x)
    return sin * y, lambda ct: (ct * fnp.cos(x) * y, ct * sin)


@ft.custom_gradient
def square(x):
    return x**2, lambda ct: (ct * 5 * x,)


@ft.custom_gradient
def twice(x):
    return x, lambda ct: 2.0 * ct


FIRST = {
    "grad": lambda f: ft.grad(f, (0, 1)),
    "grad of jit": lambda f: ft.grad(ft.jit(f), (0, 1)),
    "jit of grad": lambda f: ft.jit(ft.grad(f, (0, 1))),
    "jacfwd": lambda f: ft.jacfwd(f, (0, 1)),
    "jacrev": lambda f: ft.jacrev(f, (0, 1)),
    "jit of jacfwd": lambda f: ft.jit(ft.jacfwd(f, (0, 1))),
    "vjp": lambda f: lambda x, y: ft.vjp(f, x, y)[1](1.0),
    "linearize": lambda f: lambda x, y: [ft.linearize(f, x, y)[1](*t) for t in ((1.0, 0.0), (0.0, 1.0))],
    "grad of checkpoint": lambda f: ft.grad(ft.checkpoint(f), (0, 1)),
}


def test_value():
    for g in (product, ft.jit(product), ft.vmap(product)):
        np.testing.assert_allclose(g(X, Y), np.sin(X) * Y, rtol=1e-15)
    assert product(y=2.0, x=0.5) == pytest.approx(2.0 * np.sin(0.5))


@pytest.mark.parametrize("stack", FIRST)
def test_first_derivatives(stack):
    np.testing.assert_allclose(FIRST[stack](product)(0.7, 1.3), [np.cos(0.7) * 1.3, np.sin(0.7)], rtol=1e-14)
    wanted = [np.cos(X) * Y, np.sin(X)]
    if stack != "linearize":
        found = ft.vmap(lambda x, y: tuple(FIRST[stack](product)(x, y)))(X, Y)
        np.testing.assert_allclose(found, wanted, rtol=1e-14)
    found = ft.grad(lambda x, y: fnp.sum(ft.vmap(product)(x, y)), (0, 1))(X, Y)
    np.testing.assert_allclose(found, wanted, rtol=1e-14)


def test_all_laws_to_third_order():
    ft.testing.check(product, X, Y, order=3)


def test_numbers_that_jax_gives():
    assert (square(2.0), ft.grad(square)(2.0), ft.grad(ft.grad(square))(2.0)) == (4.0, 10.0, 5.0)
    np.testing.assert_array_equal(ft.vmap(ft.grad(square))(np.arange(3.0)), [0.0, 5.0, 10.0])
    assert ft.jit(ft.grad(square))(2.0) == 10.0
    assert ft.jvp(square, (2.0,), (1.0,)) == (4.0, 10.0)  # JAX has no forward mode here

    @ft.custom_gradient
    def with_partial(x):
        return x**2, functools.partial(lambda a, ct: (ct * a,), x * 7)

    assert ft.grad(with_partial)(2.0) == 14.0

    @ft.custom_gradient
    def two(x):
        return (x, 2 * x), lambda cts: (cts[0] + 10 * cts[1],)

    assert ft.grad(lambda x: sum(two(x)))(2.0) == 11.0


@pytest.mark.parametrize("jit", [False, True])
def test_the_rule_keeps_what_it_read(jit):
    ran = []

    @ft.custom_gradient
    def f(x):
        ran.append(1)
        large = fnp.exp(x)
        return fnp.sum(x), lambda ct: ct * large

    value, pull = ft.vjp(ft.jit(f) if jit else f, X)
    ran.clear()
    np.testing.assert_allclose(pull(1.0)[0], np.exp(X), rtol=1e-14)
    np.testing.assert_allclose(pull(2.0)[0], 2 * np.exp(X), rtol=1e-14)
    assert not ran and value == pytest.approx(np.sum(X))  # noqa: PT018


def test_second_order_goes_through_what_was_kept():
    @ft.custom_gradient
    def f(x):
        kept = x * x
        return x**3, lambda ct: ct * 3.0 * kept

    g = f
    for wanted in (12.0, 12.0, 6.0):
        g = ft.grad(g)
        assert g(2.0) == pytest.approx(wanted)
        assert ft.jit(g)(2.0) == pytest.approx(wanted)


PROGRAMS = {
    "scan": (lambda x: lax.scan(lambda c, _: (twice(c), None), x, None, length=4)[0], 16.0),
    "fori_loop": (lambda x: lax.fori_loop(0, 4, lambda i, c: twice(c), x), 16.0),
    "while_loop": (
        lambda x: lax.while_loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, twice(c[1])), (0, x))[1],
        16.0,
    ),
    "cond": (lambda x: lax.cond(x > 0, twice, lambda x: x, x), 2.0),
    "checkpoint": (ft.checkpoint(lambda x: twice(twice(x))), 4.0),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_in_programs(program):
    f, factor = PROGRAMS[program]
    for g in (ft.grad(f), ft.jit(ft.grad(f)), ft.grad(ft.jit(f)), ft.jacfwd(f)):
        assert g(1.5) == factor
    np.testing.assert_array_equal(ft.vmap(ft.grad(f))(X), factor)


def test_trees():
    @ft.custom_gradient
    def f(p, n):
        out = {"o": p["a"] * p["b"], "n": n}
        return out, lambda ct: ({"a": ct["o"] * 2, "b": None}, None)

    assert ft.grad(lambda p: f(p, 3)["o"])({"a": 1.0, "b": 2.0}) == {"a": 2.0, "b": 0.0}
    assert ft.jit(ft.grad(lambda p: f(p, 3)["o"]))({"a": 1.0, "b": 2.0}) == {"a": 2.0, "b": 0.0}


def test_methods():
    class Scale:
        @ft.custom_gradient
        def plain(x):
            return x, lambda ct: 3.0 * ct

    assert ft.grad(Scale.plain)(1.0) == 3.0


def test_it_looks_like_the_function():
    assert (product.__name__, product.__doc__) == ("product", "``sin(x) y``.")
    assert repr(product) == "<custom_gradient of product>"


@pytest.mark.parametrize("wrong", [lambda x: x, lambda x: (x, 3.0), lambda x: (x, None, None)])
def test_the_function_must_return_a_pair(wrong):
    f = ft.custom_gradient(wrong)
    for call in (f, ft.grad(f), ft.jit(f)):
        with pytest.raises(ft.errors.FunctionDefinitionError, match=r"must return a pair \(result, vjp\)"):
            call(1.0)


@pytest.mark.parametrize(
    ("vjp", "error", "text"),
    [
        (
            lambda ct: 4.0 * ct,
            "GradientStructureError",
            r"must return a tuple with a gradient for each argument \(2\)",
        ),
        (lambda ct: (ct,), "GradientCountError", r"\(expected 2, got 1\)"),
        (
            lambda ct: (ct[:2], ct),
            "GradientShapeError",
            r"index 0 - got \[2\] but expected shape compatible with \[4\]",
        ),
        (lambda ct: (1j * ct, ct), "GradientDtypeError", "take .real"),
    ],
)
def test_wrong_gradients(vjp, error, text):
    @ft.custom_gradient
    def f(x, y):
        return x * y, vjp

    with pytest.raises(getattr(ft.errors, error), match=text) as caught:
        ft.grad(lambda x: fnp.sum(f(x, Y)))(X)
    assert "custom_gradient of f" in str(caught.value)
    assert "return x * y, vjp" in str(caught.value)


def test_a_captured_value_that_is_differentiated_is_an_error():
    def outer(w):
        return ft.custom_gradient(lambda x: (x * w, lambda ct: ct * w))(w)

    with pytest.raises(ft.errors.CapturedTracerError, match="'w' is being differentiated"):
        ft.grad(outer)(3.0)


def test_captured_values_that_are_not_differentiated():
    def slope(w, x):
        return ft.grad(ft.custom_gradient(lambda x: (x * w, lambda ct: ct * w)))(x)

    np.testing.assert_array_equal(ft.vmap(slope, (0, None))(X, 2.0), X)
    np.testing.assert_array_equal(ft.jit(ft.vmap(slope))(X, Y), X)


def test_no_function():
    with pytest.raises(ft.errors.ArgumentError, match="custom_gradient: expected a function"):
        ft.custom_gradient(3)

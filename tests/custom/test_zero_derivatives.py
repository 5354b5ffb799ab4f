"""Derivatives that are zero: rules get zeros for them or return zeros, in the place of nothing."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp

X = np.array([0.3, -0.7])


@ft.custom_jvp
def by_jvp(x, y):
    return fnp.sin(x), fnp.sin(y)


@by_jvp.defjvp
def _(primals, tangents):
    return by_jvp(*primals), tuple([fnp.cos(x) * t for x, t in zip(primals, tangents)])


class ByJvp(ft.Function):
    @staticmethod
    def forward(x, y):
        return fnp.sin(x), fnp.sin(y)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_forward(*inputs)

    @staticmethod
    def jvp(ctx, s, t):
        x, y = ctx.saved_tensors
        return fnp.cos(x) * s, fnp.cos(y) * t


class SecondFixed(ft.Function):
    @staticmethod
    def forward(ctx, x, y):
        fixed = fnp.sin(y)
        ctx.mark_non_differentiable(fixed)
        ctx.save_for_backward(x, y)
        return fnp.sin(x), fixed

    @staticmethod
    def backward(ctx, g, h):
        x, y = ctx.saved_tensors
        return fnp.cos(x) * g, fnp.cos(y) * h


@pytest.mark.parametrize("outer", [lambda f: f, ft.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("inner", [lambda f: f, ft.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("f", [by_jvp, ByJvp.apply, SecondFixed.apply], ids=["jvp", "Function jvp", "fixed"])
def test_zeros_that_stood_for_no_derivative(f, inner, outer):
    """The second output depends on zeros only: what the rule makes of them is no tangent, nor an error."""

    def product(x, y):
        first, second = f(x, y)
        return first * second

    forms = [
        (1, ft.grad(inner(product))),
        (2, ft.grad(inner(ft.grad(product)))),
        (2, ft.hessian(inner(product))),
        (2, ft.jacfwd(ft.jacfwd(inner(product)))),
        (3, ft.grad(ft.grad(inner(ft.grad(product))))),
        (2, lambda x, y: ft.vmap(ft.grad(ft.grad(inner(product))), (0, None))(fnp.stack([x, x]), y)[1]),
    ]
    for order, form in forms:
        expected = [None, np.cos(0.3), -np.sin(0.3), -np.cos(0.3)][order] * np.sin(0.5)
        assert outer(form)(np.array(0.3), np.array(0.5)) == pytest.approx(expected)


def zeros_in_jvp():
    f = ft.custom_jvp(lambda x: fnp.sign(x))
    f.defjvp(lambda primals, tangents: (fnp.sign(primals[0]), fnp.zeros_like(primals[0])))
    return f


def zeros_in_vjp():
    f = ft.custom_vjp(lambda x: fnp.sign(x))
    f.defvjp(lambda x: (fnp.sign(x), x), lambda x, ct: (3.0 * fnp.zeros_like(x),))
    return f


@pytest.mark.parametrize("f", [zeros_in_jvp(), zeros_in_vjp()], ids=["jvp", "vjp"])
def test_rules_may_return_zeros(f):
    def total(x):
        return fnp.sum(f(x) * x)

    for form in (
        ft.grad(total),
        ft.grad(ft.jit(total)),
        ft.jit(ft.grad(total)),
        ft.jacfwd(total),
        ft.jit(ft.jacfwd(total)),
        ft.grad(lambda x: fnp.sum(ft.vmap(f)(x) * x)),
        lambda x: ft.vmap(ft.jacfwd(ft.jit(lambda x: f(x) * x)))(x),
    ):
        np.testing.assert_array_equal(form(X), np.sign(X))
    np.testing.assert_array_equal(ft.hessian(total)(X), np.zeros((2, 2)))
    np.testing.assert_array_equal(ft.jit(ft.hessian(ft.jit(total)))(X), np.zeros((2, 2)))


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: ft.grad(f),
        lambda f: ft.grad(ft.jit(f)),
        lambda f: ft.jit(ft.grad(f)),
        lambda f: ft.linearize(f, X)[1],
    ],
)
def test_jvp_that_is_not_linear_in_reverse_mode(transform):
    f = ft.custom_jvp(lambda x: x * x)
    f.defjvp(lambda primals, tangents: (primals[0] ** 2, 2.0 * primals[0]))

    def total(x):
        return fnp.sum(f(x))

    with pytest.raises(ft.FunctionError, match="does not depend on") as found:
        transform(total)(X)
    assert isinstance(found.value, TypeError)

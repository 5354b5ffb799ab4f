"""The same rule as a `Function` and by `custom_vjp` or `custom_jvp`: one mechanism, one result."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax

X = np.linspace(0.3, 1.2, 4)
Y = np.linspace(1.0, 2.0, 4)
TWO = np.float64(2.0)


class Product(ft.Function):
    """``sin(x) y``, with factors that tell which rule ran."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return fnp.sin(x) * y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return 3.0 * g * fnp.cos(x) * y, 5.0 * g * fnp.sin(x)


@ft.custom_vjp
def product(x, y):
    return fnp.sin(x) * y


product.defvjp(
    lambda x, y: (product(x, y), (x, y)),
    lambda kept, ct: (3.0 * ct * fnp.cos(kept[0]) * kept[1], 5.0 * ct * fnp.sin(kept[0])),
)


class Power(ft.Function):
    """A static argument, a forward rule."""

    @staticmethod
    def forward(ctx, x, n):
        ctx.n = n
        ctx.save_for_forward(x)
        return x**n

    @staticmethod
    def jvp(ctx, t, _):
        (x,) = ctx.saved_tensors
        return 2.0 * t * ctx.n * x ** (ctx.n - 1)


def _power_jvp(n, primals, tangents):
    (x,), (t,) = primals, tangents
    return power(x, n), 2.0 * t * n * x ** (n - 1)


power = ft.custom_jvp(lambda x, n: x**n, nondiff_argnums=1)
power.defjvp(_power_jvp)


class ExpOfOutput(ft.Function):
    """The rule reads the output: at every order the rule is used again."""

    @staticmethod
    def forward(ctx, x):
        y = fnp.exp(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return 3.0 * g * y


exp_of_output = ft.custom_vjp(fnp.exp)


def _exp_fwd(x):
    y = exp_of_output(x)
    return y, y


exp_of_output.defvjp(_exp_fwd, lambda y, ct: (3.0 * ct * y,))


class Unused(ft.Function):
    """Two outputs, of which one may go unused."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.set_materialize_grads(False)
        return 2.0 * x, 3.0 * y

    @staticmethod
    def backward(ctx, g, h):
        return (None if g is None else 20.0 * g), (None if h is None else 30.0 * h)


unused = ft.custom_vjp(lambda x, y: (2.0 * x, 3.0 * y))
unused.defvjp(
    lambda x, y: (unused(x.value, y.value), None),
    lambda kept, cts: tuple(None if type(c) is ft.Zero else f * c for f, c in zip((20.0, 30.0), cts)),
    symbolic_zeros=True,
)

PAIRS = {
    "backward": (Product.apply, product),
    "backward with an argument bound": (
        lambda x, y: Product.apply(x, TWO) + y,
        lambda x, y: product(x, TWO) + y,
    ),
    "jvp": (lambda x, y: Power.apply(x, 3) * y, lambda x, y: power(x, 3) * y),
    "of the output": (lambda x, y: ExpOfOutput.apply(x) * y, lambda x, y: exp_of_output(x) * y),
    "first output": (lambda x, y: Unused.apply(x, y)[0], lambda x, y: unused(x, y)[0]),
    "both outputs": (
        lambda x, y: fnp.prod(fnp.stack(Unused.apply(x, y))),
        lambda x, y: fnp.prod(fnp.stack(unused(x, y))),
    ),
}


def total(f):
    return lambda x, y: fnp.sum(f(x, y))


STACKS = {
    "value": lambda f: f,
    "jit": lambda f: ft.jit(f),
    "grad": lambda f: ft.grad(f, (0, 1)),
    "grad of jit": lambda f: ft.grad(ft.jit(f), (0, 1)),
    "jit of grad": lambda f: ft.jit(ft.grad(f, (0, 1))),
    "jacfwd": lambda f: ft.jacfwd(f, (0, 1)),
    "hessian": lambda f: ft.hessian(f, (0, 1)),
    "reverse over reverse": lambda f: ft.jacrev(ft.grad(f, (0, 1)), (0, 1)),
    "forward over forward": lambda f: ft.jit(ft.jacfwd(ft.jacfwd(f, (0, 1)), (0, 1))),
    "third order": lambda f: ft.grad(ft.grad(ft.grad(f))),
    "checkpoint": lambda f: ft.grad(ft.checkpoint(f), (0, 1)),
    "scan": lambda f: ft.grad(
        lambda x, y: lax.scan(lambda c, _: (f(c, y), None), x, None, length=3)[0], (0, 1)
    ),
    "cond": lambda f: ft.jit(ft.grad(lambda x, y: lax.cond(x > 0, f, lambda x, y: x, x, y), (0, 1))),
}


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("pair", PAIRS)
def test_one_result(pair, stack):
    function, custom = [STACKS[stack](f) for f in PAIRS[pair]]
    wanted = ft.tree.leaves(function(X[0], Y[0]))
    found = ft.tree.leaves(custom(X[0], Y[0]))
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("stack", ["value", "grad", "jit of grad", "jacfwd", "hessian"])
@pytest.mark.parametrize("pair", PAIRS)
def test_one_result_mapped(pair, stack):
    found, wanted = [ft.tree.leaves(ft.vmap(STACKS[stack](f))(X, Y)) for f in reversed(PAIRS[pair])]
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14, atol=1e-14)
    inside = [ft.grad(total(ft.vmap(f, (0, None))), (0, 1))(X, 1.5) for f in PAIRS[pair]]
    for a, b in zip(*map(ft.tree.leaves, inside), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14, atol=1e-14)


def test_both_refuse_a_captured_value_that_is_differentiated():
    def by_function(w):
        class Scale(ft.Function):
            @staticmethod
            def forward(ctx, x):
                return x * w

            @staticmethod
            def backward(ctx, g):
                return g * w

        return Scale.apply(w)

    def by_custom_vjp(w):
        f = ft.custom_vjp(lambda x: x * w)
        f.defvjp(lambda x: (x * w, None), lambda kept, ct: (ct * w,))
        return f(w)

    for program in (by_function, by_custom_vjp):
        with pytest.raises(ft.errors.CapturedTracerError, match="'w' is being differentiated"):
            ft.grad(program)(3.0)
        np.testing.assert_array_equal(ft.vmap(program)(X), X * X)
        assert ft.jit(program)(3.0) == 9.0

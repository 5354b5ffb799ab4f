"""Higher derivatives of `Function`: saved values of every kind, the rule at every level, `once_differentiable`."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import errors, lax

X = np.array([1.0, 2.0, 3.0])


def both_styles(name, forward, saved, backward):
    """The same function in both styles; ``saved(x, y)`` says what to save."""

    class A(ft.Function):
        @staticmethod
        def forward(ctx, x):
            y = forward(x)
            ctx.save_for_backward(*saved(x, y))
            return y

    class B(ft.Function):
        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*saved(inputs[0], output))

    B.forward = staticmethod(forward)
    for cls in (A, B):
        cls.__name__ = name
        cls.backward = staticmethod(lambda ctx, g: backward(g, *ctx.saved_tensors))
    return A.apply, B.apply


def derivatives(f, x, n):
    """The derivatives of orders 1 to n, eagerly and compiled in every place."""
    found = []
    for wrap in (lambda f: f, ft.jit):
        row, g = [], f
        for _ in range(n):
            g = wrap(ft.grad(g))
            row.append(float(g(x)))
        found.append(row)
    np.testing.assert_allclose(found[0], found[1])
    return found[0]


SQUARE = both_styles("Square", lambda x: x * x, lambda x, y: (x,), lambda g, x: 2.0 * x * g)
EXP = both_styles("Exp", fnp.exp, lambda x, y: (y,), lambda g, y: g * y)
#: (x^2)^2 with the intermediate 2x saved.
MIDDLE = both_styles("Middle", lambda x: x * x, lambda x, y: (2.0 * x,), lambda g, w: g * w)
THREEFOLD = both_styles("Threefold", fnp.exp, lambda x, y: (y,), lambda g, y: 3.0 * g * y)
STRAIGHT = both_styles("Straight", lambda x: fnp.round(x), lambda x, y: (), lambda g: g)


@pytest.mark.parametrize("op", SQUARE)
def test_saved_input(op):
    assert derivatives(op, 3.0, 3) == [6.0, 2.0, 0.0]
    assert derivatives(lambda x: op(op(x)), 2.0, 4) == [32.0, 48.0, 48.0, 24.0]


@pytest.mark.parametrize("op", EXP)
def test_saved_output(op):
    np.testing.assert_allclose(derivatives(op, 0.5, 4), [np.exp(0.5)] * 4)


@pytest.mark.parametrize("op", MIDDLE)
def test_saved_intermediate(op):
    """PyTorch takes it for a constant and gives [8, 32, 72]."""
    f = lambda x: fnp.sum(op(op(x)))
    second = ft.grad(lambda x: fnp.sum(ft.grad(f)(x)))
    np.testing.assert_allclose(second(X), [12.0, 48.0, 108.0])
    np.testing.assert_allclose(ft.jit(second)(X), [12.0, 48.0, 108.0])
    assert derivatives(op, 3.0, 3) == [6.0, 2.0, 0.0]


def test_array_in_an_attribute():
    class Cube(ft.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.x = x
            return x**3

        @staticmethod
        def backward(ctx, g):
            return 3.0 * ctx.x**2 * g

    np.testing.assert_allclose(derivatives(Cube.apply, 2.0, 4), [12.0, 12.0, 6.0, 0.0])


@pytest.mark.parametrize("op", STRAIGHT)
def test_the_rule_holds_at_every_level(op):
    """Straight-through: the second derivative of round(x) x is 2, not 1."""
    assert derivatives(lambda x: op(x) * x, 2.6, 2) == [5.6, 2.0]


@pytest.mark.parametrize("op", THREEFOLD)
def test_a_saved_output_has_the_derivative_of_the_rule(op):
    np.testing.assert_allclose(derivatives(op, 0.5, 3), np.exp(0.5) * np.array([3.0, 9.0, 27.0]))


@pytest.mark.parametrize("op", [*SQUARE, *EXP, *MIDDLE])
def test_second_derivatives_in_all_orders_of_modes(op):
    f = lambda x: fnp.sum(op(fnp.sin(x)))
    expected = ft.hessian(f)(X)
    for a in (ft.jacfwd, ft.jacrev):
        for b in (ft.jacfwd, ft.jacrev):
            np.testing.assert_allclose(a(b(f))(X), expected, atol=1e-12)
            np.testing.assert_allclose(ft.jit(a(ft.jit(b(f))))(X), expected, atol=1e-12)
    eps = 1e-6
    steps = eps * np.eye(3)
    rows = [(ft.grad(f)(X + s) - ft.grad(f)(X - s)) / (2.0 * eps) for s in steps]
    np.testing.assert_allclose(expected, rows, atol=1e-8)


class Cube(ft.Function):
    """The intermediate is an output, as PyTorch's tutorial has it."""

    @staticmethod
    def forward(x):
        return x**3, 3.0 * x**2

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0], output[1])

    @staticmethod
    def backward(ctx, g, gd):
        x, d = ctx.saved_tensors
        return g * d + gd * 6.0 * x


def test_intermediate_as_an_output():
    assert derivatives(lambda x: Cube.apply(x)[0], 2.0, 3) == [12.0, 12.0, 6.0]


def test_backward_that_calls_the_function():
    class Sin(ft.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return fnp.sin(x)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * Sin.apply(x + np.pi / 2.0)

    x = 0.3
    wanted = [np.cos(x), -np.sin(x), -np.cos(x), np.sin(x)]
    np.testing.assert_allclose(derivatives(Sin.apply, x, 4), wanted, rtol=1e-12)


def test_gradient_of_the_gradient_in_the_cotangent():
    _, pull = ft.vjp(SQUARE[0], X)
    np.testing.assert_array_equal(ft.grad(lambda g: fnp.sum(pull(g)[0]))(np.ones(3)), 2.0 * X)
    linear = ft.linear_transpose(lambda t: ft.jvp(SQUARE[0], (X,), (t,))[1], X)
    np.testing.assert_array_equal(linear(np.ones(3))[0], 2.0 * X)


# --- once_differentiable ------------------------------------------------------------------------------------


class Once(ft.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    @ft.once_differentiable
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y, g * x


class OnceApart(ft.Function):
    @staticmethod
    def forward(x, y):
        return x * y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    backward = Once.backward


A, B = fnp.asarray(2.0), fnp.asarray(5.0)


@pytest.mark.parametrize("op", [Once.apply, OnceApart.apply])
def test_once_is_enough(op):
    for wrap in (lambda f: f, ft.jit):
        assert tuple(map(float, wrap(ft.grad(op, (0, 1)))(A, B))) == (5.0, 2.0)
        assert ft.grad(wrap(op))(A, B) == 5.0
        np.testing.assert_array_equal(ft.vmap(wrap(ft.grad(op)))(X, 2.0 * X), 2.0 * X)
        mapped = ft.vmap(wrap(op))
        np.testing.assert_array_equal(ft.grad(lambda x, f=mapped: fnp.sum(f(x, X)))(X), X)


def nested(op):
    square = lambda x: op(x, x)
    return {
        "grad of grad": (ft.grad(ft.grad(square)), A),
        "jit of grad of grad": (ft.jit(ft.grad(ft.grad(square))), A),
        "grad of jit of grad": (ft.grad(ft.jit(ft.grad(square))), A),
        "in another argument": (ft.grad(lambda y: ft.grad(op)(A, y)), B),
        "jvp of grad": (lambda x: ft.jvp(ft.grad(square), (x,), (1.0,)), A),
        "hessian": (ft.hessian(square), A),
        "vmap": (ft.vmap(ft.grad(ft.grad(square))), X),
        "of the cotangent": (lambda x: ft.grad(lambda g: ft.vjp(square, x)[1](g)[0])(1.0), A),
        "in a loop": (ft.grad(lambda x: lax.fori_loop(0, 2, lambda i, c: c * ft.grad(square)(x), 1.0)), A),
    }


@pytest.mark.parametrize("op", [Once.apply, OnceApart.apply])
@pytest.mark.parametrize("case", list(nested(None)))
def test_twice_is_an_error(op, case):
    """Where PyTorch's functional gradients are silently zero."""
    f, x = nested(op)[case]
    message = "trying to differentiate twice a function that was marked with @once_differentiable"
    with pytest.raises(errors.OnceDifferentiableError, match=message):
        f(x)


def test_second_derivatives_that_pass_by():
    f = lambda x: Once.apply(x, B) + x**3
    assert ft.grad(f)(2.0) == 17.0
    passing = lambda x: lax.stop_gradient(ft.grad(lambda x: Once.apply(x, B))(x)) * x
    assert ft.grad(passing)(2.0) == 5.0
    assert ft.grad(lambda x: ft.grad(lambda y: Once.apply(y, B))(A) * x)(3.0) == 5.0


def test_once_runs_on_values_that_nobody_differentiates():
    seen = []

    class Concrete(ft.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @ft.once_differentiable
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            seen.append((isinstance(x, np.ndarray), isinstance(g, np.ndarray)))
            return 2.0 * x * g, None

    ft.grad(lambda x: lax.stop_gradient(ft.grad(Concrete.apply)(x)) * x)(A)
    assert seen == [(True, True)]


def test_once_is_put_on_functions():
    with pytest.raises(TypeError, match="@staticmethod above @once_differentiable"):
        ft.once_differentiable(staticmethod(lambda ctx, g: g))
    with pytest.raises(TypeError, match="expected a function for backward, got 3"):
        ft.once_differentiable(3)


class Counted(ft.Function):
    """Sums what a loop gives; its forward says when it runs."""

    @staticmethod
    def forward(ctx, x):
        ft.debug.callback(lambda: Counted.runs.append(1))
        ctx.save_for_backward(x, fnp.cos(x))
        return fnp.sin(x)

    @staticmethod
    def backward(ctx, g):
        x, slope = ctx.saved_tensors
        return g * slope * x


@pytest.mark.parametrize(
    "derivative",
    [
        lambda f: ft.grad(f),
        lambda f: ft.jit(ft.grad(f)),
        lambda f: ft.grad(ft.jit(f)),
        lambda f: lambda x: ft.jvp(f, (x,), (1.0,))[1],
        lambda f: ft.jit(lambda x: ft.jvp(f, (x,), (1.0,))[1]),
        lambda f: lambda x: ft.linearize(ft.jit(f), x)[1](1.0),
    ],
)
def test_a_forward_with_ctx_runs_once_for_a_first_derivative(derivative):
    Counted.runs = []
    assert np.allclose(derivative(Counted.apply)(0.5), np.cos(0.5) * 0.5)
    assert Counted.runs == [1]
    Counted.runs = []
    second = derivative(derivative(Counted.apply))(0.5)
    assert np.allclose(second, np.cos(0.5) - np.sin(0.5) * 0.5)


class Backward(ft.Function):
    """Twice the sine's derivative; without forward mode."""

    generate_jvp_rule = False

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return fnp.sin(x)

    @staticmethod
    def backward(ctx, g):
        return 2.0 * g * fnp.cos(ctx.saved_tensors[0])


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["eager", "jit"])
@pytest.mark.parametrize(
    "loop",
    [
        lambda x: lax.scan(lambda c, _: (Backward.apply(c), c), x, None, length=2)[0],
        lambda x: lax.fori_loop(0, 2, lambda i, c: Backward.apply(c), x),
        lambda x: lax.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, Backward.apply(s[1])), (0, x))[1],
        lambda x: lax.cond(x > 0, lambda x: Backward.apply(Backward.apply(x)), fnp.cos, x),
        lambda x: ft.checkpoint(lambda x: Backward.apply(Backward.apply(x)))(x),
    ],
    ids=["scan", "fori_loop", "while_loop", "cond", "checkpoint"],
)
def test_reverse_mode_never_asks_for_forward_mode(loop, wrap):
    np.testing.assert_allclose(wrap(ft.grad(loop))(0.7), 4 * np.cos(0.7) * np.cos(np.sin(0.7)), rtol=1e-14)
    with pytest.raises(errors.MissingRuleError, match="implement the jvp"):
        wrap(ft.jacfwd(loop))(0.7)

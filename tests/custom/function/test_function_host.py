"""`Function` with a forward of NumPy and SciPy code."""

import numpy as np
import pytest
import scipy.optimize
import scipy.special

import functrans as ft
import functrans.numpy as fnp
from functrans import errors, lax

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=5)
CALLS = []


class Take(ft.Function):
    """x[i], whose derivative is the take of the inverse permutation."""

    host = True
    vmap_method = "sequential"

    @staticmethod
    def forward(x, i, inverse):
        return np.take_along_axis(x, i, 0)

    @staticmethod
    def shape(x, i, inverse):
        return x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs[1:])

    @staticmethod
    def backward(ctx, g):
        i, inverse = ctx.saved_tensors
        return Take.apply(g, inverse, i), None, None


class Sort(ft.Function):
    """As in PyTorch's tutorial: the permutations are outputs, the backward is another host function."""

    host = True
    vmap_method = "sequential"

    @staticmethod
    def forward(x):
        assert type(x) is np.ndarray
        assert not x.flags.writeable
        CALLS.append(x.shape)
        i = np.argsort(x, axis=0)
        return np.take_along_axis(x, i, 0), i, np.argsort(i, axis=0)

    @staticmethod
    def shape(x):
        index = ft.ShapeDtypeStruct(x.shape, np.int64)
        return x, index, index

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, i, inverse = output
        ctx.mark_non_differentiable(i, inverse)
        ctx.save_for_backward(i, inverse)

    @staticmethod
    def backward(ctx, g, *_):
        i, inverse = ctx.saved_tensors
        return Take.apply(g, inverse, i)


def sort(x):
    return Sort.apply(x)[0]


C = np.arange(1.0, 6.0)
RANKS = np.argsort(np.argsort(X)) + 1.0


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit])
def test_value_and_gradient(wrap):
    np.testing.assert_array_equal(wrap(sort)(X), np.sort(X))
    loss = lambda x: fnp.sum(C * sort(x))
    np.testing.assert_array_equal(wrap(ft.grad(loss))(X), RANKS)
    np.testing.assert_array_equal(ft.grad(wrap(loss))(X), RANKS)
    squares = lambda x: fnp.sum(C * sort(x) ** 2)
    np.testing.assert_allclose(ft.hessian(wrap(squares))(X), np.diag(2.0 * RANKS))
    np.testing.assert_array_equal(ft.jvp(wrap(sort), (X,), (X,))[1], np.sort(X))


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit])
def test_examples_one_by_one(wrap):
    x = RANDOM.normal(size=(3, 5))
    CALLS.clear()
    np.testing.assert_array_equal(ft.vmap(wrap(sort))(x), np.sort(x, axis=1))
    assert CALLS == [(5,)] * 3
    ranks = np.argsort(np.argsort(x, axis=1), axis=1) + 1.0
    np.testing.assert_array_equal(ft.vmap(wrap(ft.grad(lambda x: fnp.sum(C * sort(x)))))(x), ranks)
    np.testing.assert_array_equal(ft.grad(lambda x: fnp.sum(C * ft.vmap(wrap(sort))(x)))(x), ranks)


def test_in_loops_and_branches():
    step = lambda c, w: (sort(c * w), None)
    w = np.full((4, 1), -0.5)
    expected = X
    for _ in range(4):
        expected = np.sort(-0.5 * expected)
    loop = lambda x: fnp.sum(C * lax.scan(step, x, w)[0])
    assert ft.jit(loop)(X) == np.sum(C * expected)
    np.testing.assert_allclose(ft.jit(ft.grad(loop))(X), RANKS * 0.5**4)
    branch = lambda x: lax.cond(x[0] > 10.0, lambda x: x, sort, x)
    np.testing.assert_array_equal(ft.jit(branch)(X), np.sort(X))


class Bessel(ft.Function):
    """One call for all examples, numbers of Python as results, a derivative by another host function."""

    host = True
    vmap_method = "broadcast"

    @staticmethod
    def forward(x, n):
        CALLS.append(np.shape(x))
        return scipy.special.jv(n, x)

    @staticmethod
    def shape(x, n):
        return ft.ShapeDtypeStruct(x.shape, x.dtype)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.n = inputs
        ctx.save_for_backward(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 0.5 * g * (Bessel.apply(x, ctx.n - 1) - Bessel.apply(x, ctx.n + 1)), None


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit])
def test_all_examples_at_once(wrap):
    f = lambda x: Bessel.apply(x, 0)
    CALLS.clear()
    np.testing.assert_allclose(ft.vmap(wrap(f))(X), scipy.special.jv(0, X))
    assert (5,) in CALLS
    assert () not in CALLS
    np.testing.assert_allclose(ft.vmap(wrap(ft.grad(f)))(X), scipy.special.jvp(0, X, 1))
    np.testing.assert_allclose(ft.vmap(wrap(ft.grad(ft.grad(f))))(X), scipy.special.jvp(0, X, 2))
    np.testing.assert_allclose(wrap(ft.grad(ft.grad(ft.grad(f))))(0.7), scipy.special.jvp(0, 0.7, 3))


def test_without_a_shape_rule():
    class Root(ft.Function):
        """The root of y^3 + y = x; a Python number."""

        host = True
        vmap_method = "sequential"

        @staticmethod
        def forward(x):
            return float(scipy.optimize.brentq(lambda y: y**3 + y - x, -10.0, 10.0, xtol=1e-14))

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(output)

        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            return g / (3.0 * y**2 + 1.0)

    y = Root.apply(2.0)
    assert isinstance(y, ft.Array)
    np.testing.assert_allclose(y, 1.0)
    np.testing.assert_allclose(ft.grad(Root.apply)(2.0), 0.25)
    np.testing.assert_allclose(ft.grad(ft.grad(Root.apply))(2.0), -6.0 / 4.0**3)
    np.testing.assert_allclose(ft.vmap(ft.grad(Root.apply))(np.array([2.0, 10.0])), [0.25, 1.0 / 13.0])
    with pytest.raises(errors.FunctionError, match="Root: host forward has no shape rule"):
        ft.jit(Root.apply)(2.0)


def test_forward_that_is_a_ufunc():
    class Digamma(ft.Function):
        host = True
        vmap_method = "broadcast"
        forward = staticmethod(scipy.special.digamma)

        @staticmethod
        def shape(x):
            return x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        @ft.once_differentiable
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return np.asarray(g) * scipy.special.polygamma(1, np.asarray(x))

    for x in (0.7, np.abs(X)):
        np.testing.assert_allclose(Digamma.apply(np.asarray(x)), scipy.special.digamma(x))
        gradient = ft.grad(lambda x: fnp.sum(Digamma.apply(x)))(x)
        np.testing.assert_allclose(gradient, scipy.special.polygamma(1, x))
    with pytest.raises(TypeError, match="too many positional arguments"):
        Digamma.apply(X, X)


def test_needs_setup_context():
    class Plain(ft.Function):
        host = True

        @staticmethod
        def forward(ctx, x):
            return np.sort(x)

    with pytest.raises(errors.FunctionError, match="Plain: host forward needs setup_context"):
        Plain.apply(X)


class Bare(ft.Function):
    host = True

    @staticmethod
    def forward(x):
        return np.cumsum(x)

    @staticmethod
    def shape(x):
        return x

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass


def test_without_rules():
    np.testing.assert_array_equal(ft.jit(Bare.apply)(X), np.cumsum(X))
    for f in (Bare.apply, ft.jit(Bare.apply)):
        with pytest.raises(errors.NoRuleError, match=r"Bare.*backward or vjp"):
            ft.vjp(f, X)
        with pytest.raises(errors.NoRuleError, match=r"Bare.*jvp"):
            ft.jvp(f, (X,), (X,))
        with pytest.raises(errors.MissingRuleError, match=r"vmap over Bare.*vmap_method = 'sequential'"):
            ft.vmap(f)(X.reshape(1, 5))


def test_second_derivative_through_a_host_function_without_a_rule():
    class Sum(Bare):
        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(inputs[0])

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * Bare.apply(x)

    loss = lambda x: fnp.sum(Sum.apply(x))
    np.testing.assert_array_equal(ft.grad(loss)(X), np.cumsum(X))
    for wrap in (lambda f: f, ft.jit):
        with pytest.raises(errors.NoRuleError, match="Bare"):
            wrap(ft.hessian(loss))(X)


def test_forward_must_not_write():
    class Writer(Bare):
        @staticmethod
        def forward(x):
            x[0] = 1.0
            return x

    x = X.copy()
    for f in (Writer.apply, ft.jit(Writer.apply)):
        with pytest.raises(
            errors.FunctionContractError, match=r"modified argument 0 \('x'\) without ctx.mark_dirty"
        ):
            f(x)
    np.testing.assert_array_equal(x, X)


def test_an_input_returned_as_it_is():
    class Same(Bare):
        @staticmethod
        def forward(x):
            return x

        @staticmethod
        def backward(ctx, g):
            return 2.0 * g

    x = X.copy()
    y = Same.apply(x)
    x[:] = 0.0
    np.testing.assert_array_equal(y, X)
    for wrap in (lambda f: f, ft.jit):
        np.testing.assert_array_equal(ft.grad(wrap(lambda x: fnp.sum(Same.apply(x))))(X), np.full(5, 2.0))


def test_own_vmap_rule():
    class Own(Bare):
        @staticmethod
        def vmap(info, in_dims, x):
            return fnp.cumsum(fnp.moveaxis(x, in_dims[0], 0), axis=1), 0

    x = RANDOM.normal(size=(5, 3))
    np.testing.assert_allclose(ft.vmap(Own.apply, 1)(x), np.cumsum(x.T, axis=1))


@pytest.mark.parametrize("method", ["parallel", 3, True])
def test_unknown_vmap_method(method):
    with pytest.raises(TypeError, match="vmap_method must be None or one of"):
        type(ft.Function)("Odd", (Bare,), {"vmap_method": method})


def test_host_forwards_are_not_batched():
    with pytest.raises(TypeError, match="a host forward cannot be batched"):
        type(ft.Function)("Odd", (Bare,), {"generate_vmap_rule": True})


def test_results_must_be_what_shape_promised():
    class Liar(Bare):
        @staticmethod
        def shape(x):
            return ft.ShapeDtypeStruct((2,), x.dtype)

    with pytest.raises(errors.CallbackError, match=r"Liar.forward"):
        ft.jit(Liar.apply)(X)


def test_host_forward_sees_no_transformation():
    """What it calls of functrans is computed, not traced."""

    class Inner(Bare):
        @staticmethod
        def forward(x):
            return np.asarray(ft.grad(lambda x: fnp.sum(fnp.sin(x)))(x))

        @staticmethod
        def backward(ctx, g):
            return g

    f = lambda x: fnp.sum(Inner.apply(x))
    for wrap in (lambda f: f, ft.jit):
        value, gradient = ft.value_and_grad(wrap(f))(X)
        np.testing.assert_allclose(value, np.sum(np.cos(X)))
        np.testing.assert_array_equal(gradient, np.ones(5))


def test_arguments_of_all_kinds():
    class Pick(ft.Function):
        host = True

        @staticmethod
        def forward(p, name, *, scale):
            return {"out": p[name] * scale, "name": name}, [scale]

        @staticmethod
        def shape(p, name, *, scale):
            return {"out": p[name], "name": name}, [scale]

        @staticmethod
        def setup_context(ctx, inputs, output):
            _, ctx.name, ctx.scale = inputs
            assert output[0]["name"] == ctx.name

        @staticmethod
        def backward(ctx, g, _):
            return {"a": g["out"] * ctx.scale, "b": None}, None, None

    f = lambda x: fnp.sum(Pick.apply({"a": x, "b": x}, "a", scale=3.0)[0]["out"])
    for wrap in (lambda f: f, ft.jit):
        np.testing.assert_array_equal(wrap(ft.grad(f))(X), np.full(5, 3.0))

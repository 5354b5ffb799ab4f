"""`Function.apply`: how forward is called, and what it is called with."""

from dataclasses import dataclass

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import errors

X = np.array([1.0, 2.0, 3.0])


class Square(ft.Function):
    """Context first."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2.0 * x * g


class SquareApart(ft.Function):
    """The same with setup_context."""

    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2.0 * x * g

    @staticmethod
    def jvp(ctx, t):
        (x,) = ctx.saved_tensors
        return 2.0 * x * t


class Linear(ft.Function):
    """Static arguments with defaults."""

    @staticmethod
    def forward(ctx, x, scale=2.0, *, shift=0.0):
        ctx.scale = scale
        return x * scale + shift

    @staticmethod
    def backward(ctx, g):
        return g * ctx.scale, None, None


# --- styles --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", [Square.apply, SquareApart.apply])
def test_both_styles_under_all_transformations(op):
    f = lambda x: fnp.sum(op(x))
    for wrap in (lambda f: f, ft.jit):
        np.testing.assert_array_equal(wrap(op)(X), X**2)
        np.testing.assert_array_equal(ft.grad(wrap(f))(X), 2.0 * X)
        np.testing.assert_array_equal(wrap(ft.grad(f))(X), 2.0 * X)
        np.testing.assert_array_equal(wrap(ft.vmap(op))(X), X**2)
        np.testing.assert_array_equal(ft.vmap(wrap(ft.grad(op)))(X), 2.0 * X)
        y, t = ft.jvp(wrap(op), (X,), (np.ones(3),))
        np.testing.assert_array_equal(y, X**2)
        np.testing.assert_array_equal(t, 2.0 * X)
        np.testing.assert_array_equal(ft.hessian(wrap(f))(X), 2.0 * np.eye(3))


def test_setup_context_sees_all_arguments_and_the_very_output():
    seen = []

    class Recorder(ft.Function):
        @staticmethod
        def forward(x, n=2, *, name="n"):
            return (x * n,)

        @staticmethod
        def setup_context(ctx, inputs, output):
            seen.append((inputs, output))
            return "ignored"

        @staticmethod
        def backward(ctx, g):
            return g, None, None

    (y,) = Recorder.apply(X)
    inputs, output = seen[0]
    assert type(inputs) is tuple
    assert inputs[1:] == (2, "n")
    assert type(output) is tuple
    assert len(output) == 1
    np.testing.assert_array_equal(y, 2.0 * X)


def test_forward_sees_concrete_values_eagerly_and_runs_once():
    calls = []

    class Branching(ft.Function):
        @staticmethod
        def forward(ctx, x):
            calls.append(float(x))
            ctx.sign = 1.0 if x > 0 else -1.0
            return abs(x)

        @staticmethod
        def backward(ctx, g):
            calls.append(float(g))
            return ctx.sign * g

    assert Branching.apply(-2.0) == 2.0
    assert ft.grad(Branching.apply)(-2.0) == -1.0
    assert ft.grad(Branching.apply)(fnp.asarray(-2.0)) == -1.0
    assert calls == [-2.0, -2.0, 1.0, -2.0, 1.0]


# --- arguments -----------------------------------------------------------------------------------------------


def test_keywords_and_defaults():
    assert Linear.apply(1.0) == 2.0
    assert Linear.apply(1.0, shift=1.0) == 3.0
    assert Linear.apply(scale=3.0, x=1.0) == 3.0
    assert Linear.apply(x=1.0, shift=0.5, scale=3.0) == 3.5
    assert ft.grad(lambda x: Linear.apply(x, shift=1.0, scale=4.0))(1.0) == 4.0
    assert ft.jit(lambda x: Linear.apply(x=x, scale=4.0))(1.0) == 4.0
    assert ft.vmap(lambda x: Linear.apply(x=x, shift=1.0))(X).tolist() == [3.0, 5.0, 7.0]


@pytest.mark.parametrize(
    ("args", "kwargs", "match"),
    [
        ((1.0,), {"factor": 2.0}, "got an unexpected keyword argument 'factor'"),
        ((), {}, "missing a required argument: 'x'"),
        ((1.0, 2.0, 3.0), {}, "too many positional arguments"),
        ((1.0,), {"x": 1.0}, "multiple values for argument 'x'"),
    ],
)
def test_arguments_that_do_not_fit(args, kwargs, match):
    with pytest.raises(TypeError, match=rf"Linear\.apply: {match}") as info:
        Linear.apply(*args, **kwargs)
    assert "Linear.apply(*args, **kwargs)" in str(info.value)


def test_any_number_of_arguments():
    class Total(ft.Function):
        @staticmethod
        def forward(ctx, *xs):
            ctx.count = len(xs)
            return sum(xs)

        @staticmethod
        def backward(ctx, g):
            return (g,) * ctx.count

    assert Total.apply(1.0, 2.0, 3.0) == 6.0
    assert ft.grad(Total.apply, argnums=(0, 1, 2))(1.0, 2.0, 3.0) == (1.0, 1.0, 1.0)


def test_keyword_arguments_can_be_arrays():
    class Scaled(ft.Function):
        @staticmethod
        def forward(ctx, x, *, w, **options):
            ctx.save_for_backward(x, w)
            return x * w

        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            return g * w, g * x, None

    x, w = fnp.asarray(2.0), fnp.asarray(3.0)
    assert ft.grad(lambda w: Scaled.apply(x, w=w, note="n"))(w) == 2.0
    assert ft.jit(ft.grad(lambda x: Scaled.apply(x, note="n", w=w)))(x) == 3.0


def test_arguments_of_any_type():
    seen = []
    thing = object()

    class Anything(ft.Function):
        @staticmethod
        def forward(ctx, x, *others):
            seen.append(others)
            return 2.0 * x

        @staticmethod
        def backward(ctx, g):
            return 2.0 * g, None, None, None, None, None, None

    others = (None, "name", 3, thing, np.sin, [1, {"a": "b"}])
    assert ft.grad(lambda x: Anything.apply(x, *others))(1.0) == 2.0
    assert ft.jit(lambda x: Anything.apply(x, *others))(1.0) == 2.0
    assert ft.vmap(lambda x: Anything.apply(x, *others))(X).tolist() == [2.0, 4.0, 6.0]
    assert all(found == others and found[3] is thing for found in seen)
    assert seen[0][5] is others[5]


class Unhashable:
    __hash__ = None


def test_unhashable_arguments():
    class Tagged(ft.Function):
        @staticmethod
        def forward(ctx, x, tag):
            return 2.0 * x

        @staticmethod
        def backward(ctx, g):
            return 2.0 * g, None

    tag = Unhashable()
    assert Tagged.apply(1.0, tag) == 2.0
    assert ft.grad(lambda x: Tagged.apply(x, {1, 2}))(1.0) == 2.0
    assert ft.vmap(lambda x: Tagged.apply(x, tag))(X).tolist() == [2.0, 4.0, 6.0]
    for f in (ft.jit(lambda x: Tagged.apply(x, tag)), ft.jit(ft.grad(lambda x: Tagged.apply(x, tag)))):
        assert f(1.0) == 2.0


@ft.tree_util.register_dataclass
@dataclass
class Params:
    w: object
    name: str = "p"


class Affine(ft.Function):
    """Arrays in a tree."""

    @staticmethod
    def forward(ctx, p, x):
        ctx.save_for_backward(p["w"][0], x)
        return p["w"][0] * x + p["w"][1]

    @staticmethod
    def backward(ctx, g):
        w, x = ctx.saved_tensors
        return {"w": [g * x, g], "note": None}, g * w


def test_arrays_in_trees_are_differentiated():
    p = {"w": [fnp.asarray(2.0), fnp.asarray(3.0)], "note": "static"}
    x = fnp.asarray(5.0)
    f = lambda w, x: Affine.apply({"w": w, "note": "static"}, x)
    assert Affine.apply(p, x) == 13.0
    for g in (ft.grad(f, argnums=(0, 1)), ft.jit(ft.grad(f, argnums=(0, 1)))):
        gw, gx = g(p["w"], x)
        assert [float(a) for a in gw] == [5.0, 1.0]
        assert gx == 2.0
    batched = ft.vmap(f, in_axes=([0, None], 0))([X, fnp.asarray(1.0)], X)
    np.testing.assert_array_equal(batched, X * X + 1.0)


def test_dataclasses_are_trees():
    class Times(ft.Function):
        @staticmethod
        def forward(ctx, p):
            ctx.w = p.w
            return p.w * p.w

        @staticmethod
        def backward(ctx, g):
            return Params(2.0 * ctx.w * g, None)

    assert ft.grad(lambda w: Times.apply(Params(w)))(3.0) == 6.0


def test_numpy_scalars_and_lists_of_numbers():
    assert ft.grad(Square.apply)(np.float64(3.0)) == 6.0
    assert ft.grad(Square.apply)(np.float32(3.0)).dtype == np.float32
    y = Square.apply(np.float32(3.0))
    assert isinstance(y, ft.Array)
    assert y.dtype == np.float32

    class Count(ft.Function):
        @staticmethod
        def forward(ctx, x, shape):
            return fnp.broadcast_to(x, shape)

        @staticmethod
        def backward(ctx, g):
            return fnp.sum(g), None

    assert ft.jit(ft.grad(lambda x: fnp.sum(Count.apply(x, [2, 3]))))(1.0) == 6.0


def test_unsupported_dtype_names_the_argument():
    with pytest.raises(errors.UnsupportedDtypeError, match=r"Square\.apply: argument 0 \('x'\)"):
        Square.apply(np.ones(2, np.longdouble))


class Product(ft.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        ctx.save_for_forward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y, g * x

    @staticmethod
    def jvp(ctx, s, t):
        x, y = ctx.saved_tensors
        return s * y + x * t


class Scaled(ft.Function):
    """Returns a gradient for the factor, too, whatever that is."""

    @staticmethod
    def forward(ctx, x, factor):
        ctx.x, ctx.factor = x, factor
        return x * factor

    @staticmethod
    def backward(ctx, g):
        return g * ctx.factor, g * ctx.x


@pytest.mark.parametrize(
    "call",
    [
        lambda x, k: Scaled.apply(x, k),
        lambda x, k: Scaled.apply(x, k + 0.0),
        lambda x, k: Scaled.apply(x, {"k": k}["k"]),
        lambda x, k: Scaled.apply(x, 3.0) + 0.0 * k,
    ],
)
def test_a_number_is_a_number_wherever_it_comes_from(call):
    """A gradient that is returned for it is dropped."""
    assert ft.grad(call)(2.0, 3.0) == 3.0
    assert ft.jit(ft.grad(call))(2.0, 3.0) == ft.grad(ft.jit(call))(2.0, 3.0) == 3.0
    assert ft.jacfwd(call)(2.0, 3.0) == ft.jacrev(call)(2.0, 3.0) == 3.0
    assert ft.jvp(call, (2.0, 3.0), (1.0, None))[1] == 3.0
    assert ft.hessian(lambda x, k: call(x * x, k))(2.0, 3.0) == 6.0
    np.testing.assert_array_equal(ft.vmap(ft.grad(call), (0, None))(X, 3.0), np.full(3, 3.0))
    gradient = ft.grad(lambda x, k: fnp.sum(call(x, k)))(X.astype("float32"), 3.0)
    assert gradient.dtype == np.float32


def test_a_number_in_a_tree_is_a_number():
    class Weighted(ft.Function):
        @staticmethod
        def forward(ctx, p):
            ctx.p = p
            return p["k"] * p["x"]

        @staticmethod
        def backward(ctx, g):
            return {"k": g * ctx.p["x"], "x": g * ctx.p["k"]}

    assert ft.grad(lambda x: Weighted.apply({"k": 3.0, "x": x}))(2.0) == 3.0
    assert ft.grad(lambda x, p: Scaled.apply(x, p["k"]))(2.0, {"k": 3.0}) == 3.0


def test_numbers_that_are_differentiated_are_arrays():
    op = Product.apply
    assert ft.grad(op, (0, 1))(2.0, 3.0) == (3.0, 2.0)
    assert ft.vjp(op, 2.0, 3.0)[1](1.0) == (3.0, 2.0)
    assert ft.grad(ft.jit(op))(2.0, 3.0) == 3.0
    assert ft.grad(op)(2.0, 3.0) == 3.0
    assert op(2.0, 3.0) == 6.0


def test_no_arguments():
    class Nothing(ft.Function):
        @staticmethod
        def forward(ctx):
            return fnp.ones(2)

    assert Nothing.apply().tolist() == [1.0, 1.0]
    assert ft.jit(Nothing.apply)().tolist() == [1.0, 1.0]

"""What `Function` returns: structures, static outputs, inputs returned as they are; which outputs have derivatives."""

from typing import NamedTuple

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import errors

X = np.array([1.0, 2.0, 3.0])
TWO = fnp.asarray(2.0)


def returning(make, backward=None, **rules):
    """A function of one argument whose forward is `make`."""

    class Returning(ft.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return make(x)

    if backward is not None:
        Returning.backward = staticmethod(backward)
    for name, rule in rules.items():
        setattr(Returning, name, staticmethod(rule))
    return Returning.apply


def only_arrays(transform, expected):
    """Transformations take arrays: the others among the outputs are looked at while the function is traced."""

    def transformed(f):
        def g(x):
            found = f(x)
            leaves, tree = ft.tree.flatten(found)
            assert tree == ft.tree.structure(expected)
            assert type(found) is type(expected)
            static = [x for x in leaves if not hasattr(x, "shape")]
            assert static == [x for x in ft.tree.leaves(expected) if not hasattr(x, "shape")]
            return [x for x in leaves if hasattr(x, "shape")] or x

        transform(g)(X)
        return f

    return transformed


class Pair(NamedTuple):
    a: object
    b: object


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x * 2.0,
        lambda x: (x * 2.0,),
        lambda x: (x, x * 2.0),
        lambda x: (),
        lambda x: None,
        lambda x: [x, x],
        lambda x: {"a": x, "b": (x, [x])},
        lambda x: (x, {"a": x}, [x, (x,)]),
        lambda x: Pair(x, x * 3.0),
        lambda x: (x, "text", 3, None, 2.5),
        lambda x: "text",
        lambda x: ({"a": x, "n": 3}, None),
    ],
)
@pytest.mark.parametrize("transform", [lambda f: f, ft.jit, ft.vmap, lambda f: lambda x: ft.vjp(f, x)[0]])
def test_structures_are_kept(make, transform):
    expected = make(X)
    if not all(isinstance(x, np.ndarray) for x in ft.tree.leaves(expected)):
        transform = only_arrays(transform, expected)
    found = transform(returning(make, lambda ctx, *gs: None))(X)
    assert ft.tree.structure(found) == ft.tree.structure(expected)
    assert type(found) is type(expected) or isinstance(found, ft.Array)
    for a, b in zip(ft.tree.leaves(found), ft.tree.leaves(expected)):
        np.testing.assert_array_equal(a, b)


def test_results_are_arrays_of_their_own():
    x = X.copy()
    y, z = returning(lambda x: (x, x[1:]))(x)
    assert isinstance(y, ft.Array)
    assert isinstance(z, ft.Array)
    x[:] = 0.0
    np.testing.assert_array_equal(y, X)
    np.testing.assert_array_equal(z, X[1:])


def test_a_buffer_that_forward_keeps():
    buffer = np.zeros(3)

    def fill(x):
        buffer[:] = x
        return buffer

    op = returning(fill)
    first, second = op(X), op(2.0 * X)
    np.testing.assert_array_equal(first, X)
    np.testing.assert_array_equal(second, 2.0 * X)


def test_static_outputs_have_no_gradient():
    seen = []

    def backward(ctx, *gs):
        seen.append(gs)
        return gs[0]

    op = returning(lambda x: (x * 1.0, "text", 3, None), backward)
    _y, text, number, nothing = op(X)
    assert (text, number, nothing) == ("text", 3, None)
    np.testing.assert_array_equal(ft.grad(lambda x: fnp.sum(op(x)[0]))(X), np.ones(3))
    np.testing.assert_array_equal(ft.grad(ft.jit(lambda x: fnp.sum(op(x)[0])))(X), np.ones(3))
    assert all(gs[1:] == (None, None, None) for gs in seen)


def test_one_gradient_for_each_element_of_the_tuple():
    """Trees of outputs: the gradient has the structure of the element."""

    class Tree(ft.Function):
        @staticmethod
        def forward(ctx, x, y):
            return {"s": x + y, "n": 1}, [x * 1.0, (y * 1.0, "t")]

        @staticmethod
        def backward(ctx, gd, gl):
            assert gd["n"] is None
            assert gl[1][1] is None
            return gd["s"] + gl[0], gd["s"] + gl[1][0]

    def f(x, y):
        d, (a, (b, _)) = Tree.apply(x, y)
        return 2.0 * d["s"] + 3.0 * a + 5.0 * b

    for g in (ft.grad(f, (0, 1)), ft.jit(ft.grad(f, (0, 1))), ft.grad(ft.jit(f), (0, 1))):
        assert tuple(map(float, g(1.0, 2.0))) == (5.0, 7.0)
    gx, gy = ft.vmap(ft.grad(f, (0, 1)))(X, X)
    np.testing.assert_array_equal(gx, np.full(3, 5.0))
    np.testing.assert_array_equal(gy, np.full(3, 7.0))


def test_the_only_output_can_be_a_tree():
    op = returning(lambda x: {"a": x, "b": 2.0 * x}, lambda ctx, g: g["a"] + 2.0 * g["b"])
    assert ft.grad(lambda x: op(x)["b"])(1.0) == 2.0
    assert ft.grad(lambda x: op(x)["a"] + op(x)["b"])(1.0) == 3.0


@pytest.mark.parametrize("transform", [lambda f: f, ft.jit, lambda f: ft.jit(ft.jit(f))])
def test_an_input_returned_as_it_is_has_the_rule(transform):
    double = returning(lambda x: x, lambda ctx, g: 2.0 * g)
    assert transform(ft.grad(double))(5.0) == 2.0
    assert ft.grad(transform(double))(5.0) == 2.0
    np.testing.assert_array_equal(ft.vmap(transform(ft.grad(double)))(X), np.full(3, 2.0))
    assert ft.jvp(transform(double), (5.0,), (1.0,))[1] == 2.0
    assert transform(double)(fnp.asarray(5.0)) == 5.0


def test_an_input_returned_and_saved_by_setup_context():
    class Through(ft.Function):
        @staticmethod
        def forward(x):
            return x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(inputs[0], output)

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * (x + y)

    assert ft.grad(Through.apply)(3.0) == 6.0


def test_one_array_returned_twice_is_two_outputs():
    seen = []

    def backward(ctx, g, h):
        seen.append((float(g), float(h)))
        return g + h

    op = returning(lambda x: (y := 3.0 * x, y), lambda ctx, g, h: 3.0 * backward(ctx, g, h))

    def f(x):
        a, b = op(x)
        return a + 2.0 * b

    assert ft.grad(f)(1.0) == 9.0
    assert seen == [(1.0, 2.0)]


@pytest.mark.parametrize("dtype", [np.int64, np.bool_, np.int8])
def test_integer_outputs_have_no_derivative(dtype):
    seen = []

    def backward(ctx, g, h):
        seen.append(h)
        return g

    op = returning(lambda x: (x * 1.0, (x > 1.0).astype(dtype)), backward)

    def f(x):
        y, k = op(x)
        return fnp.sum(y * k)

    for g in (ft.grad(f), ft.jit(ft.grad(f))):
        np.testing.assert_array_equal(g(X), [0.0, 1.0, 1.0])
    assert all(h.dtype == dtype and h.shape == (3,) for h in seen)
    assert not np.any(seen[0])


# --- materialisation ----------------------------------------------------------------------------------------


def gradients_seen(materialize, use):
    """What backward gets for three outputs: used or not, the last an integer."""
    seen = []

    class Three(ft.Function):
        @staticmethod
        def forward(ctx, x):
            if materialize is not None:
                ctx.set_materialize_grads(materialize)
            return x * 1.0, x * 2.0, fnp.zeros(2, int)

        @staticmethod
        def backward(ctx, *gs):
            seen.append(gs)
            return fnp.zeros(3)

    ft.grad(lambda x: use(*Three.apply(x)))(X)
    return seen


@pytest.mark.parametrize("materialize", [None, True])
def test_missing_gradients_are_zeros(materialize):
    ((a, b, c),) = gradients_seen(materialize, lambda a, b, c: fnp.sum(a))
    np.testing.assert_array_equal(a, np.ones(3))
    np.testing.assert_array_equal(b, np.zeros(3))
    np.testing.assert_array_equal(c, np.zeros(2, int))
    assert c.dtype == int


def test_missing_gradients_are_none():
    ((a, b, c),) = gradients_seen(False, lambda a, b, c: fnp.sum(b))
    assert a is None
    assert c is None
    np.testing.assert_array_equal(b, np.ones(3))


def test_nothing_to_propagate_and_no_call():
    assert gradients_seen(False, lambda a, b, c: fnp.sum(c) * 1.0) == []
    assert gradients_seen(False, lambda a, b, c: 1.0) == []


def test_materialisation_of_trees():
    seen = []

    class Tree(ft.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return {"a": x * 1.0, "b": x * 2.0}, [x * 1.0]

        @staticmethod
        def backward(ctx, g, h):
            seen.append((g, h))
            return g["a"]

    ft.grad(lambda x: Tree.apply(x)[0]["a"])(1.0)
    g, h = seen[0]
    assert g["b"] is None
    assert h == [None]
    assert g["a"] == 1.0


@pytest.mark.parametrize("value", [3, None, "yes", np.True_])
def test_materialisation_takes_a_bool(value):
    class Bad(ft.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(value)
            return x

    with pytest.raises(TypeError, match="set_materialize_grads takes True or False"):
        Bad.apply(X)


def test_missing_tangents():
    seen = []

    def product(materialize):
        class Product(ft.Function):
            @staticmethod
            def forward(ctx, x, y, n, s):
                ctx.set_materialize_grads(materialize)
                return x * 1.0

            @staticmethod
            def jvp(ctx, *ts):
                seen.append(ts)
                return ts[0]

        return lambda x, y: Product.apply(x, y, fnp.arange(3), "s")

    for materialize in (True, False):
        ft.jvp(product(materialize), (X, X), (np.ones(3), None))
    (a, b, n, s), (_c, d, m, t) = seen
    np.testing.assert_array_equal(a, np.ones(3))
    np.testing.assert_array_equal(b, np.zeros(3))
    assert d is None
    assert n is None
    assert m is None
    assert s is None
    assert t is None


# --- mark_non_differentiable --------------------------------------------------------------------------------


class Largest(ft.Function):
    """Returns a mask of floats beside the value."""

    @staticmethod
    def forward(ctx, x):
        mask = (x == fnp.max(x)) * 1.0
        ctx.mark_non_differentiable(mask)
        ctx.save_for_backward(mask)
        ctx.save_for_forward(mask)
        return fnp.max(x), mask

    @staticmethod
    def backward(ctx, g, gm):
        assert not np.any(ft.lax.stop_gradient(gm)) if isinstance(gm, np.ndarray) else True
        (mask,) = ctx.saved_tensors
        return g * mask

    @staticmethod
    def jvp(ctx, t):
        (mask,) = ctx.saved_tensors
        return fnp.sum(mask * t), None


class LargestApart(ft.Function):
    """The same with setup_context."""

    @staticmethod
    def forward(x):
        return fnp.max(x), (x == fnp.max(x)) * 1.0

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(output[1])

    backward = Largest.backward


@pytest.mark.parametrize("op", [Largest.apply, LargestApart.apply])
def test_marked_outputs_have_no_derivative(op):
    def f(x):
        y, mask = op(x)
        return y + 100.0 * fnp.sum(mask * mask)

    for g in (ft.grad(f), ft.jit(ft.grad(f)), ft.grad(ft.jit(f))):
        np.testing.assert_array_equal(g(X), [0.0, 0.0, 1.0])
    assert ft.jvp(f, (X,), (X,))[1] == 3.0
    np.testing.assert_array_equal(ft.grad(lambda x: fnp.sum(op(x)[1]))(X), np.zeros(3))
    np.testing.assert_array_equal(ft.vmap(ft.grad(f))(X.reshape(1, 3)), [[0.0, 0.0, 1.0]])
    np.testing.assert_array_equal(ft.hessian(f)(X), np.zeros((3, 3)))


def test_all_outputs_marked():
    class Constant(ft.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2.0
            ctx.mark_non_differentiable(y)
            return y

    assert ft.grad(lambda x: x + Constant.apply(x))(3.0) == 1.0


def marking(mark, style_b=False):
    if style_b:

        class Marking(ft.Function):
            @staticmethod
            def forward(x):
                return x * 2.0

            @staticmethod
            def setup_context(ctx, inputs, output):
                mark(ctx, inputs[0], output)

    else:

        class Marking(ft.Function):
            @staticmethod
            def forward(ctx, x):
                y = x * 2.0
                mark(ctx, x, y)
                return y

    return Marking.apply


@pytest.mark.parametrize("style_b", [False, True])
def test_marking_mistakes(style_b):
    def apply(mark):
        return marking(mark, style_b)(X)

    with pytest.raises(TypeError, match=r"mark_non_differentiable takes outputs.*argument 1 is of type str"):
        apply(lambda ctx, x, y: ctx.mark_non_differentiable(y, "3"))
    with pytest.raises(errors.FunctionContractError, match="not an output of this call"):
        apply(lambda ctx, x, y: ctx.mark_non_differentiable(x))
    with pytest.raises(errors.FunctionContractError, match="not an output of this call"):
        apply(lambda ctx, x, y: ctx.mark_non_differentiable(y, y + 1.0))
    with pytest.raises(errors.FunctionContractError, match="mark_non_differentiable called twice"):
        apply(lambda ctx, x, y: (ctx.mark_non_differentiable(y), ctx.mark_non_differentiable(y)))


def test_by_position_where_the_outputs_are_equal():
    class Twins(ft.Function):
        @staticmethod
        def forward(x):
            y = x * 2.0
            return y, y

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.mark_non_differentiable(output[1])

        @staticmethod
        def backward(ctx, g, h):
            return 2.0 * g + 2.0 * h

    def f(x):
        a, b = Twins.apply(x)
        return a + 10.0 * b

    assert ft.grad(f)(fnp.asarray(1.0)) == 2.0
    assert ft.jit(ft.grad(f))(1.0) == 2.0


@pytest.mark.parametrize(
    "labels",
    [np.array(["a", "b"]), np.array([object(), None]), np.array("2026-01-01", "M8[D]"), np.str_("a")],
)
def test_arrays_of_no_numbers_are_objects_like_any_other(labels):
    class Labelled(ft.Function):
        @staticmethod
        def forward(ctx, x, labels):
            ctx.save_for_backward(x)
            ctx.labels = labels
            return x * x, labels

        @staticmethod
        def backward(ctx, g, nothing):
            assert nothing is None
            assert ctx.labels is labels
            (x,) = ctx.saved_tensors
            return 2.0 * x * g, None

    y, out = Labelled.apply(3.0 * np.ones(2), labels)
    assert out is labels
    assert y.tolist() == [9.0, 9.0]
    assert ft.grad(lambda x: Labelled.apply(x, labels)[0])(3.0) == 6.0
    with pytest.raises(errors.UnsupportedDtypeError):
        Labelled.apply(np.ones(2, np.longdouble), labels)

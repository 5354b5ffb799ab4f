"""`Function` under `vmap`: derived, by a rule of its own, or refused."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import errors

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(4, 3))
W = RANDOM.normal(size=(3,))


class Weighted(ft.Function):
    """sum(w sin(x)), with both rules."""

    @staticmethod
    def forward(x, w):
        return fnp.sum(w * fnp.sin(x), axis=-1)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, w = inputs
        ctx.save_for_backward(x, w)
        ctx.save_for_forward(x, w)

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w * fnp.cos(x), g * fnp.sin(x)

    @staticmethod
    def jvp(ctx, tx, tw):
        x, w = ctx.saved_tensors
        return fnp.sum(tw * fnp.sin(x) + w * fnp.cos(x) * tx)


CALLS = []


class WithRule(Weighted):
    """The same with a rule for vmap, which notes its calls."""

    @staticmethod
    def vmap(info, in_dims, x, w):
        CALLS.append((info.batch_size, in_dims))
        x, w = [
            fnp.broadcast_to(a, (info.batch_size, *a.shape)) if d is None else fnp.moveaxis(a, d, 0)
            for a, d in zip((x, w), in_dims)
        ]
        return Batched.apply(x, w), 0


class Batched(ft.Function):
    """The batched operation that the rule calls."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return fnp.sum(w * fnp.sin(x), axis=-1)

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        g = g[..., None]
        return g * w * fnp.cos(x), g * fnp.sin(x)


class StyleA(ft.Function):
    """The context first, and an intermediate value saved."""

    @staticmethod
    def forward(ctx, x, w):
        c = fnp.cos(x)
        ctx.save_for_backward(x, w, c)
        return fnp.sum(w * fnp.sin(x))

    @staticmethod
    def backward(ctx, g):
        x, w, c = ctx.saved_tensors
        return g * w * c, g * fnp.sin(x)


def plain(x, w):
    return fnp.sum(w * fnp.sin(x))


OPS = [Weighted.apply, WithRule.apply, StyleA.apply]


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit])
@pytest.mark.parametrize("size", [4, 1, 0])
def test_the_laws(op, wrap, size):
    """vmap(F) is the stack of F; also of its gradients; and gradients of sums of vmap."""
    x = X[:size]
    both = [ft.vmap(wrap(op), (0, None)), wrap(ft.vmap(op, (0, None)))]
    for f in both:
        np.testing.assert_allclose(f(x, W), np.sum(W * np.sin(x), axis=1))
        gx, gw = ft.grad(lambda x, w, f=f: fnp.sum(f(x, w) ** 2), (0, 1))(x, W)
        s = np.sum(W * np.sin(x), axis=1, keepdims=True)
        np.testing.assert_allclose(gx, 2.0 * s * W * np.cos(x))
        np.testing.assert_allclose(gw, np.sum(2.0 * s * np.sin(x), axis=0), atol=1e-15)
        np.testing.assert_allclose(
            ft.jvp(f, (x, W), (x, W))[1], np.sum(W * (np.sin(x) + x * np.cos(x)), axis=1)
        )
    gx, gw = ft.vmap(wrap(ft.grad(op, (0, 1))), (0, None))(x, W)
    np.testing.assert_allclose(gx, W * np.cos(x))
    np.testing.assert_allclose(gw, np.sin(x))


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize(
    ("x_axis", "w_axis"), [(0, None), (1, None), (-1, None), (0, 0), (1, -1), (None, 0), (0, -1)]
)
def test_places_of_the_axis(op, x_axis, w_axis):
    n = 5
    x = RANDOM.normal(size=(n, 3) if x_axis == 0 else (3, n) if x_axis is not None else (3,))
    w = RANDOM.normal(size=(n, 3) if w_axis == 0 else (3, n) if w_axis is not None else (3,))
    found = ft.vmap(op, (x_axis, w_axis))(x, w)
    rows = [np.sum(b * np.sin(a)) for a, b in pairs(x, w, x_axis, w_axis, n)]
    np.testing.assert_allclose(found, rows)
    grads = ft.vmap(ft.grad(op, (0, 1)), (x_axis, w_axis))(x, w)
    np.testing.assert_allclose(grads[0], [b * np.cos(a) for a, b in pairs(x, w, x_axis, w_axis, n)])
    np.testing.assert_allclose(grads[1], [np.sin(a) for a, b in pairs(x, w, x_axis, w_axis, n)])
    summed = ft.grad(lambda w: fnp.sum(ft.vmap(op, (x_axis, w_axis))(x, w)))(w)
    rows = np.array([np.sin(a) for a, _ in pairs(x, w, x_axis, w_axis, n)])
    expected = rows.sum(axis=0) if w_axis is None else np.moveaxis(rows, 0, w_axis)
    np.testing.assert_allclose(summed, expected)


def pairs(x, w, x_axis, w_axis, n):
    rows = lambda a, axis: [a] * n if axis is None else list(np.moveaxis(a, axis, 0))
    return list(zip(rows(x, x_axis), rows(w, w_axis)))


@pytest.mark.parametrize("op", OPS)
def test_nested(op):
    x, w = RANDOM.normal(size=(4, 5, 3)), RANDOM.normal(size=(5, 3))
    f = ft.vmap(ft.vmap(op), (0, None))
    np.testing.assert_allclose(f(x, w), np.sum(w * np.sin(x), axis=-1))
    np.testing.assert_allclose(ft.jit(f)(x, w), np.sum(w * np.sin(x), axis=-1))
    gw = ft.grad(lambda w: fnp.sum(f(x, w)))(w)
    np.testing.assert_allclose(gw, np.sin(x).sum(axis=0))
    table = ft.vmap(ft.vmap(op, (None, 0)), (0, None))(x[0], w)
    np.testing.assert_allclose(table, np.sin(x[0]) @ w.T)


@pytest.mark.parametrize("op", OPS)
def test_hessians_of_examples(op):
    found = ft.vmap(ft.hessian(op), (0, None))(X, W)
    np.testing.assert_allclose(found, [np.diag(-W * np.sin(x)) for x in X], atol=1e-14)
    found = ft.hessian(lambda x: fnp.sum(ft.vmap(op, (0, None))(x, W) ** 2))(X[:2])
    expected = ft.hessian(lambda x: fnp.sum(ft.vmap(plain, (0, None))(x, W) ** 2))(X[:2])
    np.testing.assert_allclose(found, expected, atol=1e-13)


def test_the_context_is_that_of_one_example():
    """PyTorch's example: the shape kept is that without the mapped axis."""
    shapes = []

    class Sum(ft.Function):
        @staticmethod
        def forward(x):
            return fnp.sum(x)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.shape = inputs[0].shape
            shapes.append(ctx.shape)

        @staticmethod
        def backward(ctx, g):
            return fnp.broadcast_to(g, ctx.shape)

    np.testing.assert_array_equal(ft.vmap(ft.grad(Sum.apply))(X), np.ones((4, 3)))
    np.testing.assert_array_equal(ft.grad(lambda x: fnp.sum(ft.vmap(Sum.apply)(x)))(X), np.ones((4, 3)))
    assert set(shapes) == {(3,)}


def test_gradients_are_summed_to_the_shape_of_one_example():
    class Wide(ft.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1.0

        @staticmethod
        def backward(ctx, g):
            return fnp.ones((2, 3)) * g

    np.testing.assert_array_equal(ft.vmap(ft.grad(lambda x: fnp.sum(Wide.apply(x))))(X), np.full((4, 3), 2.0))
    np.testing.assert_array_equal(ft.grad(lambda x: fnp.sum(ft.vmap(Wide.apply)(x)))(X), np.full((4, 3), 2.0))


# --- the rule -----------------------------------------------------------------------------------------------


def test_the_rule_is_called_with_sizes_and_axes():
    CALLS.clear()
    ft.vmap(WithRule.apply, (0, None))(X, W)
    ft.vmap(WithRule.apply, (-1, 0))(X.T, X)
    assert CALLS == [(4, (0, None)), (4, (1, 0))]


def test_the_rule_is_not_called_where_nothing_is_mapped():
    CALLS.clear()
    np.testing.assert_allclose(
        ft.vmap(lambda x: x + WithRule.apply(W, W))(X[:, 0]), X[:, 0] + np.sum(W * np.sin(W))
    )
    WithRule.apply(X[0], W)
    ft.grad(WithRule.apply)(X[0], W)
    assert CALLS == []


def test_info():
    seen = []

    class Info(ft.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1.0

        @staticmethod
        def vmap(info, in_dims, x):
            seen.append((info.batch_size, info.randomness, info.axis_name))
            return x * 1.0, in_dims[0]

    np.testing.assert_array_equal(ft.vmap(Info.apply)(X), X)
    assert seen == [(4, "error", None)]


def test_trees_statics_and_several_outputs():
    seen = []

    class Tree(ft.Function):
        @staticmethod
        def forward(p, n, *, shift):
            return {"a": p["x"] * n, "n": n}, p["y"] + shift, "text"

        @staticmethod
        def setup_context(ctx, inputs, output):
            assert output[2] == "text"
            assert output[0]["n"] == 2
            ctx.n = inputs[1]

        @staticmethod
        def backward(ctx, g, h, s):
            assert s is None
            return {"x": g["a"] * ctx.n, "y": h}, None, None

        @staticmethod
        def vmap(info, in_dims, p, n, *, shift):
            seen.append(in_dims)
            return ({"a": p["x"] * n, "n": n}, p["y"] + shift, "text"), ({"a": 0, "n": None}, None, None)

    def f(x, y):
        a, b, _ = Tree.apply({"x": x, "y": y}, 2, shift=1.0)
        return a["a"] * 10.0 + b

    x = X[0]
    np.testing.assert_allclose(ft.vmap(f, (0, None))(x, 5.0), 20.0 * x + 6.0)
    assert seen == [({"x": 0, "y": None}, None, None)]
    np.testing.assert_allclose(ft.vmap(ft.grad(f), (0, None))(x, 5.0), np.full(3, 20.0))


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda x: x, "Expected the vmap staticmethod to have two returns.*Got a Array instead"),
        (lambda x: [x, 0], "Got a list instead"),
        (lambda x: (x, 0, None), "Got 3 returns instead"),
        (lambda x: (x,), "Got 1 returns instead"),
        (lambda x: (x, (0, 0)), "incompatible .output, out_dims. tuple.*`out_dims` has structure"),
        (lambda x: ((x, x), (0,)), "incompatible .output, out_dims. tuple"),
        (lambda x: ((x, x), {"a": 0}), "incompatible .output, out_dims. tuple"),
        (lambda x: (x, 2), "2 is not an axis of an output of shape"),
        (lambda x: (x, -3), "-3 is not an axis"),
        (lambda x: (x, 1.0), "1.0 is not an axis"),
        (lambda x: (x, 1), "where it has size 3 instead of 4"),
    ],
)
def test_what_the_rule_must_return(returned, message):
    class Bad(ft.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1.0

        @staticmethod
        def vmap(info, in_dims, x):
            return returned(x)

    with pytest.raises(errors.VmapRuleError, match=message) as info:
        ft.vmap(Bad.apply)(X)
    assert "Bad" in str(info.value)
    assert "return returned(x)" in str(info.value)


def test_out_dims_of_all_outputs_at_once():
    class Both(ft.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1.0, x * 2.0

        @staticmethod
        def vmap(info, in_dims, x):
            return (x.T * 1.0, x.T * 2.0), -1

    a, b = ft.vmap(Both.apply)(X)
    np.testing.assert_array_equal(a, X)
    np.testing.assert_array_equal(b, 2.0 * X)


# --- which rule ---------------------------------------------------------------------------------------------


def test_switched_off():
    class Off(Weighted):
        generate_vmap_rule = False

    for f in (ft.vmap(Off.apply, (0, None)), ft.jit(ft.vmap(Off.apply, (0, None)))):
        with pytest.raises(
            errors.MissingRuleError, match="You tried to vmap over Off, but it does not have vmap support"
        ):
            f(X, W)
    np.testing.assert_allclose(ft.grad(Off.apply)(X[0], W), W * np.cos(X[0]))


def test_asked_for():
    class On(Weighted):
        generate_vmap_rule = True

    np.testing.assert_allclose(ft.vmap(On.apply, (0, None))(X, W), np.sum(W * np.sin(X), axis=1))


def test_a_rule_and_its_derivation_exclude_each_other():
    with pytest.raises(TypeError, match="both generate_vmap_rule=True and a vmap staticmethod"):

        class Both(WithRule):
            generate_vmap_rule = True


def test_branches_that_depend_on_mapped_values():
    class Branch(ft.Function):
        @staticmethod
        def forward(ctx, x):
            return x if x > 0 else -x

    assert Branch.apply(-2.0) == 2.0
    with pytest.raises(errors.TracerBoolConversionError):
        ft.vmap(Branch.apply)(X[:, 0])

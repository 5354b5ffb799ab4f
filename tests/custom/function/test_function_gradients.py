"""What `backward` returns: how many gradients, of which structure, shape and dtype; None, numbers, integers, NaN."""

from functools import partial

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import errors

X = np.array([1.0, 2.0, 3.0])
A, B = fnp.asarray(2.0), fnp.asarray(3.0)


def op(backward, forward=None, name="MyOp"):
    """A function with this backward."""
    forward = forward or (lambda ctx, x, *others: x * 1.0)
    rules = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type(ft.Function)(name, (ft.Function,), rules).apply


def pull(backward, *args, forward=None, g=None):
    """The gradients of all arguments."""
    y, vjp_fn = ft.vjp(op(backward, forward), *args)
    return vjp_fn(np.ones_like(y) if g is None else g)


# --- how many -----------------------------------------------------------------------------------------------


def test_bare_value_for_one_argument():
    assert pull(lambda ctx, g: 3.0 * g, A) == (3.0,)
    assert pull(lambda ctx, g: (3.0 * g,), A) == (3.0,)
    assert pull(lambda ctx, g: None, A) == (0.0,)


@pytest.mark.parametrize(
    ("returned", "expected", "got"),
    [
        (lambda g: g, 2, 1),
        (lambda g: None, 2, 1),
        (lambda g: (g,), 2, 1),
        (lambda g: (), 2, 0),
        (lambda g: (g, g, g), 2, 3),
        (lambda g: (g, None, None, g), 2, 4),
    ],
)
@pytest.mark.parametrize("transform", [lambda f: f, ft.jit])
def test_wrong_number(returned, expected, got, transform):
    message = (
        rf"function MyOpBackward returned an incorrect number of gradients \(expected {expected}, got {got}\)"
    )
    f = transform(ft.grad(op(lambda ctx, g: returned(g))))
    with pytest.raises(errors.GradientCountError, match=message) as info:
        f(A, B)
    assert "lambda ctx, g: returned(g)" in str(info.value)  # the line of backward


def test_more_that_are_none():
    assert pull(lambda ctx, g: (g, 2.0 * g, None, None), A, B) == (1.0, 2.0)


def test_a_list():
    with pytest.raises(TypeError, match="function MyOpBackward returned a list; return a tuple"):
        pull(lambda ctx, g: [g, g], A, B)
    with pytest.raises(TypeError, match="returned a list; return a tuple"):
        pull(lambda ctx, g: [g], A)


def test_a_list_that_is_the_only_argument():
    (found,) = pull(lambda ctx, g: [g, 2.0 * g], [A, B], forward=lambda ctx, xs: xs[0] * 1.0)
    assert [float(x) for x in found] == [1.0, 2.0]


# --- for what -----------------------------------------------------------------------------------------------


def grad_static(returned, *static):
    def forward(ctx, x, w, *others):
        return x * 1.0

    return ft.grad(lambda x: op(lambda ctx, g: returned(g), forward)(x, *static))(A)


@pytest.mark.parametrize("static", [3, 2.5, True, (1, 2), {"a": 1}])
def test_gradient_of_a_number_is_dropped(static):
    assert grad_static(lambda g: (g, None), static) == grad_static(lambda g: (g, g), static) == 1.0


@pytest.mark.parametrize("static", ["text", None, (1, "text"), {"a": None}])
def test_gradient_of_what_is_no_array(static):
    assert grad_static(lambda g: (g, None), static) == 1.0
    with pytest.raises(
        errors.BackwardError, match=r"different than None at position 1.*argument 1 \('w'\)"
    ) as info:
        grad_static(lambda g: (g, g), static)
    assert "was not a Variable" in str(info.value)
    assert isinstance(info.value, errors.GradientError)


def test_gradient_of_a_leaf_that_is_no_array():
    tree = lambda x: {"n": "text", "x": x}
    good = op(lambda ctx, g: {"n": None, "x": g}, lambda ctx, p: p["x"] * 1.0)
    assert ft.grad(lambda x: good(tree(x)))(A) == 1.0
    bad = op(lambda ctx, g: {"n": g, "x": g}, lambda ctx, p: p["x"] * 1.0)
    with pytest.raises(errors.BackwardError, match=r"position 0\['n'\]"):
        ft.grad(lambda x: bad(tree(x)))(A)


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.bool_])
def test_gradient_of_an_integer_array(dtype):
    k = fnp.asarray(np.array([1, 0, 1]), dtype)
    for zero in (None, np.zeros(3), np.zeros(3, int), np.zeros(7), 0, 0.0):
        x, _n = pull(lambda ctx, g, zero=zero: (g, zero), X, k)
        np.testing.assert_array_equal(x, np.ones(3))
    for bad in (np.ones(3), np.array([0, 1, 0]), 1.0):
        with pytest.raises(errors.GradientError, match="not zero for argument 1, which is of dtype"):
            pull(lambda ctx, g, bad=bad: (g, bad), X, k)


@pytest.mark.parametrize("dtype", [np.int64, np.bool_])
def test_gradient_of_an_integer_array_that_is_known_when_the_program_runs(dtype):
    """The same error from compiled code."""
    k = np.array([1, 0, 1], dtype)
    f = op(
        lambda ctx, g: (g, g * ctx.saved_tensors[0]), lambda ctx, x, k: (ctx.save_for_backward(x), x * 1.0)[1]
    )
    of_x = ft.grad(lambda x: fnp.sum(f(x, k)))
    for run, wide in ((of_x, 1), (ft.jit(of_x), 1), (ft.jit(ft.vmap(of_x)), 2)):
        x = np.zeros((2, 3)) if wide > 1 else np.zeros(3)
        np.testing.assert_array_equal(run(x), np.ones(x.shape))
        with pytest.raises(errors.BackwardError, match=r"not zero for argument 1 .'k'., which is of dtype"):
            run(x + 1.0)


def test_none_is_zero():
    x, _y = pull(lambda ctx, g: (None, g), X.astype(np.float32), X, forward=lambda ctx, x, y: y * 1.0)
    assert x.dtype == np.float32
    np.testing.assert_array_equal(x, np.zeros(3))
    np.testing.assert_array_equal(ft.grad(lambda x: fnp.sum(op(lambda ctx, g: None)(x)))(X), np.zeros(3))
    np.testing.assert_array_equal(
        ft.jit(ft.grad(lambda x: fnp.sum(op(lambda ctx, g: None)(x))))(X), np.zeros(3)
    )


def test_not_looked_at_where_it_is_not_wanted():
    """As in PyTorch: the gradient of an argument that nobody asks for may be anything of its kind."""
    f = op(lambda ctx, g: (g, np.zeros(7)))
    assert ft.grad(lambda x: f(x, B))(A) == 1.0


# --- structure ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "returned",
    [
        lambda g: {"a": g},
        lambda g: {"a": g, "c": [g, g]},
        lambda g: {"a": g, "b": (g, g)},
        lambda g: {"a": g, "b": [g]},
        lambda g: {"a": [g], "b": [g, g]},
        lambda g: g,
        lambda g: [g, [g, g]],
    ],
)
@pytest.mark.parametrize("transform", [lambda f: f, ft.jit])
def test_structure_of_another_kind(returned, transform):
    f = op(lambda ctx, g: (returned(g), None), lambda ctx, p, x: p["a"] * x)
    with pytest.raises(errors.GradientStructureError, match=r"MyOpBackward.*argument 0 \('p'\)") as info:
        transform(ft.grad(f))({"a": A, "b": [A, B]}, B)
    assert "returned(g), None" in str(info.value)


def test_structure_of_the_argument():
    f = op(lambda ctx, g: ({"a": g, "b": [None, 5.0 * g]}, None), lambda ctx, p, x: p["a"] * x)
    found = ft.grad(f)({"a": A, "b": [A, B]}, B)
    assert found["a"] == 1.0
    assert [float(x) for x in found["b"]] == [0.0, 5.0]
    nothing = op(lambda ctx, g: (None, g), lambda ctx, p, x: p["a"] * x)
    assert ft.grad(nothing)({"a": A, "b": [A, B]}, B)["b"][1] == 0.0


def test_a_tree_for_an_array():
    with pytest.raises(
        errors.GradientStructureError,
        match=r"another structure for argument 0 \('x'\): expected an array, got a list",
    ):
        pull(lambda ctx, g: ([g, g], None), A, B)


@pytest.mark.parametrize("value", ["text", object(), np.sin])
def test_something_that_is_no_gradient(value):
    with pytest.raises(
        TypeError, match=r"as the gradient of argument 0 .*Return an array of that shape, or None"
    ):
        pull(lambda ctx, g: value, A)


def test_python_numbers():
    assert pull(lambda ctx, g: 2.5, A) == (2.5,)
    assert pull(lambda ctx, g: 2, fnp.asarray(2.0, "float32"))[0].dtype == np.float32
    with pytest.raises(TypeError, match=r"returned '2.5' of type float as the gradient of argument 0"):
        pull(lambda ctx, g: 2.5, X)
    with pytest.raises(errors.BackwardError):
        pull(lambda ctx, g: 0, X)
    assert ft.jit(ft.grad(op(lambda ctx, g: 2.5)))(1.0) == 2.5


# --- shape --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "returned"),
    [
        ((3,), (2, 3)),
        ((3,), (4, 2, 3)),
        ((1, 3), (2, 3)),
        ((2, 1), (5, 2, 7)),
        ((), (3,)),
        ((1,), (4,)),
        ((3,), (0, 3)),
        ((1, 1), (2, 2, 2, 2)),
    ],
)
@pytest.mark.parametrize("transform", [lambda f: f, ft.jit])
def test_summed_to_the_shape_of_the_argument(shape, returned, transform):
    full = np.arange(float(np.prod(returned))).reshape(returned)
    f = op(lambda ctx, g: fnp.asarray(full))
    found = transform(ft.grad(lambda x: fnp.sum(f(x))))(np.ones(shape))
    extra = len(returned) - len(shape)
    axes = tuple(range(extra)) + tuple(extra + i for i, n in enumerate(shape) if n == 1)
    np.testing.assert_array_equal(found, full.sum(axis=axes).reshape(shape))


@pytest.mark.parametrize("met", [(4,), (1,), (), (3, 1), (2, 4)])
@pytest.mark.parametrize("transform", [lambda f: f, ft.jit])
def test_shape_that_does_not_fit(met, transform):
    message = (
        rf"function MyOpBackward returned an invalid gradient at index 0 - got \[{', '.join(map(str, met))}\]"
    )
    f = op(lambda ctx, g: fnp.ones(met))
    with pytest.raises(
        errors.GradientShapeError, match=message + r" but expected shape compatible with \[3\]"
    ) as info:
        transform(ft.grad(lambda x: fnp.sum(f(x))))(X)
    assert isinstance(info.value, ValueError)
    assert r"argument 0 ('x')" in str(info.value)
    assert "fnp.ones(met)" in str(info.value)


def test_shape_in_a_tree_is_named():
    f = op(lambda ctx, g: {"w": fnp.ones(4)}, lambda ctx, p: p["w"] * 1.0)
    with pytest.raises(errors.GradientShapeError, match=r"argument 0 \('p'\)\['w'\]"):
        ft.grad(lambda w: fnp.sum(f({"w": w})))(X)


def test_summing_is_differentiable():
    f = op(
        lambda ctx, g: fnp.stack([g * ctx.x, g * ctx.x**2]),
        lambda ctx, x: (setattr(ctx, "x", x), x * 1.0)[1],
    )
    np.testing.assert_allclose(ft.grad(lambda x: fnp.sum(f(x)))(X), X + X**2)
    np.testing.assert_allclose(ft.hessian(lambda x: fnp.sum(f(x)))(X), np.diag(1.0 + 2.0 * X))


# --- dtype --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("own", [np.float32, np.float64])
@pytest.mark.parametrize("met", [np.float32, np.float64, np.int64, np.int8, np.bool_])
@pytest.mark.parametrize("transform", [lambda f: f, ft.jit])
def test_other_dtypes_are_converted(own, met, transform):
    f = op(lambda ctx, g: fnp.ones(3, met))
    found = transform(ft.grad(lambda x: fnp.sum(f(x))))(X.astype(own))
    assert found.dtype == own
    np.testing.assert_array_equal(found, np.ones(3))


def test_complex_for_real():
    for transform in (lambda f: f, ft.jit):
        with pytest.raises(
            errors.GradientDtypeError, match=r"complex gradient for argument 0 \('x'\).*take \.real"
        ):
            transform(ft.grad(op(lambda ctx, g: g * 1j)))(A)
    with pytest.raises(errors.GradientDtypeError, match=r"take \.real"):
        pull(lambda ctx, g: 1j, A)


def test_real_for_complex():
    (found,) = pull(lambda ctx, g: g.real, fnp.asarray(1.0 + 2.0j), g=1.0 + 0.0j)
    assert found.dtype == np.complex128
    assert found == 1.0


def test_complex_gradients_are_those_of_pytorch():
    """For ``z**2`` write ``g conj(2 z)``; what `grad` gives is JAX's, the conjugate of PyTorch's gradient."""

    def forward(ctx, z):
        ctx.save_for_backward(z)
        return z * z

    square = op(lambda ctx, g: g * fnp.conj(2.0 * ctx.saved[0]), forward)
    z = 1.0 + 2.0j
    for loss in (lambda z, f: f(z).real, lambda z, f: f(z).imag, lambda z, f: abs(f(z)) ** 2):
        own, plain = (ft.grad(partial(loss, f=f))(z) for f in (square, lambda z: z * z))
        np.testing.assert_allclose(own, plain)
        compiled = ft.jit(ft.grad(partial(loss, f=square)))(z)
        np.testing.assert_allclose(compiled, plain)
    assert ft.grad(square, holomorphic=True)(z) == 2.0 * z
    assert ft.jvp(square, (z,), (1j,))[1] == 2.0 * z * 1j
    seen = []
    ft.vjp(op(lambda ctx, g: (seen.append(complex(g)), g)[1], forward), z)[1](3.0 + 4.0j)
    assert seen == [3.0 - 4.0j]


def test_real_argument_of_a_complex_function():
    f = op(lambda ctx, g: (g * -1j).real, lambda ctx, x: x * 1j)
    assert ft.grad(lambda x: f(x).imag)(2.0) == ft.grad(lambda x: (x * 1j).imag)(2.0) == 1.0


# --- NaN ----------------------------------------------------------------------------------------------------


def test_nan_names_the_backward():
    f = op(lambda ctx, g: g * fnp.asarray([1.0, np.nan, 1.0]))
    loss = lambda x: fnp.sum(f(x))
    assert np.isnan(ft.grad(loss)(X)[1])
    with ft.config.patch(debug_nans=True):
        for g in (ft.grad(loss), ft.jit(ft.grad(loss))):
            with pytest.raises(FloatingPointError, match="MyOpBackward") as info:
                g(X)
            assert "np.nan, 1.0]" in str(info.value)
        np.testing.assert_array_equal(ft.grad(lambda x: fnp.sum(op(lambda ctx, g: g)(x)))(X), np.ones(3))


def test_gradients_of_a_buffer_that_backward_keeps():
    buffer = np.zeros(3)

    def backward(ctx, g):
        buffer[:] += 1.0
        return buffer

    f = ft.grad(lambda x: fnp.sum(op(backward)(x)))
    first, second = f(X), f(X)
    np.testing.assert_array_equal(first, np.ones(3))
    np.testing.assert_array_equal(second, np.full(3, 2.0))

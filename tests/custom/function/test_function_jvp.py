"""Forward mode of `Function`: by `jvp`, or by transposing `backward`; reverse mode by transposing `jvp`."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import errors

X = np.array([1.0, 2.0, 3.0])
T = np.array([0.5, -1.0, 2.0])
A, B = fnp.asarray(2.0), fnp.asarray(3.0)


def op(forward, name="MyOp", **rules):
    options = {k: v for k, v in rules.items() if not callable(v)}
    found = {k: staticmethod(v) for k, v in rules.items() if callable(v)}
    return type(ft.Function)(
        name, (ft.Function,), {"forward": staticmethod(forward), **found, **options}
    ).apply


def save(ctx, x):
    ctx.save_for_backward(x)
    ctx.save_for_forward(x)


def sine(ctx, x):
    save(ctx, x)
    return fnp.sin(x)


PUSH = lambda ctx, t: t * fnp.cos(ctx.saved[0])
PULL = lambda ctx, g: g * fnp.cos(ctx.saved[0])
SINES = {
    "backward": op(sine, backward=PULL),
    "jvp": op(sine, jvp=PUSH),
    "both": op(sine, backward=PULL, jvp=PUSH),
    "asked for": op(sine, backward=PULL, generate_jvp_rule=True),
}


@pytest.mark.parametrize("name", SINES)
def test_each_rule_gives_all_modes(name):
    f = SINES[name]
    for wrap in (lambda f: f, ft.jit):
        y, t = ft.jvp(wrap(f), (X,), (T,))
        np.testing.assert_allclose(y, np.sin(X))
        np.testing.assert_allclose(t, T * np.cos(X))
        np.testing.assert_allclose(ft.vjp(wrap(f), X)[1](T)[0], T * np.cos(X))
        np.testing.assert_allclose(wrap(ft.jacfwd(f))(X), np.diag(np.cos(X)), atol=1e-15)
        np.testing.assert_allclose(wrap(ft.jacrev(f))(X), np.diag(np.cos(X)), atol=1e-15)
        np.testing.assert_allclose(
            wrap(ft.hessian(lambda x: fnp.sum(f(x))))(X), np.diag(-np.sin(X)), atol=1e-15
        )
        y, push = ft.linearize(wrap(f), X)
        np.testing.assert_allclose(push(T), T * np.cos(X))
        np.testing.assert_allclose(ft.vmap(wrap(ft.grad(f)))(X), np.cos(X))
        pushed = ft.vmap(lambda x, t: ft.jvp(wrap(f), (x,), (t,))[1])(X, T)  # noqa: B023
        np.testing.assert_allclose(pushed, T * np.cos(X))


def test_forward_mode_takes_jvp_and_reverse_mode_backward():
    f = op(lambda ctx, x: x * 1.0, backward=lambda ctx, g: 2.0 * g, jvp=lambda ctx, t: 3.0 * t)
    for wrap in (lambda f: f, ft.jit):
        assert ft.grad(wrap(f))(1.0) == 2.0
        assert ft.jvp(wrap(f), (1.0,), (1.0,))[1] == 3.0
        assert ft.jacfwd(wrap(f))(1.0) == 3.0
        assert ft.linearize(wrap(f), 1.0)[1](1.0) == 3.0


def test_both_rules_are_dual():
    _y, t = ft.jvp(SINES["both"], (X,), (T,))
    (g,) = ft.vjp(SINES["both"], X)[1](X)
    np.testing.assert_allclose(np.vdot(X, t), np.vdot(g, T))


def test_jvp_of_several_arguments_and_outputs():
    class Rotate(ft.Function):
        @staticmethod
        def forward(ctx, p, angle, note):
            ctx.save_for_forward(p["x"], p["y"], angle)
            c, s = fnp.cos(angle), fnp.sin(angle)
            return c * p["x"] - s * p["y"], {"y": s * p["x"] + c * p["y"], "note": note}

        @staticmethod
        def jvp(ctx, tp, ta, tn):
            assert tn is None
            x, y, a = ctx.saved_tensors
            c, s = fnp.cos(a), fnp.sin(a)
            dx = c * tp["x"] - s * tp["y"] - ta * (s * x + c * y)
            dy = s * tp["x"] + c * tp["y"] + ta * (c * x - s * y)
            return dx, {"y": dy, "note": None}

    def f(p, a):
        x, rest = Rotate.apply(p, a, "note")
        return x * rest["y"]

    def plain(p, a):
        c, s = fnp.cos(a), fnp.sin(a)
        return (c * p["x"] - s * p["y"]) * (s * p["x"] + c * p["y"])

    p = {"x": A, "y": B}
    for wrap in (lambda f: f, ft.jit):
        for mode in (ft.jacfwd, ft.grad):
            found, expected = (mode(wrap(h), (0, 1))(p, 0.3) for h in (f, plain))
            for a, b in zip(ft.tree.leaves(found), ft.tree.leaves(expected)):
                np.testing.assert_allclose(a, b)


# --- where there is no rule ---------------------------------------------------------------------------------


def test_switched_off():
    f = op(sine, backward=PULL, generate_jvp_rule=False)
    np.testing.assert_allclose(ft.grad(f)(1.0), np.cos(1.0))
    for g in (
        lambda: ft.jvp(f, (1.0,), (1.0,)),
        lambda: ft.jacfwd(f)(1.0),
        lambda: ft.jvp(ft.jit(f), (1.0,), (1.0,)),
    ):
        with pytest.raises(NotImplementedError, match="You must implement the jvp method"):
            g()


@pytest.mark.parametrize(
    "backward",
    [
        lambda ctx, g: g * g,
        lambda ctx, g: fnp.where(g > 0, g, 2.0 * g),
        lambda ctx, g: fnp.abs(g),
        lambda ctx, g: g / g,
    ],
)
def test_backward_that_is_not_linear(backward):
    f = op(sine, backward=backward)
    ft.grad(f)(1.0)
    for wrap in (lambda f: f, ft.jit):
        with pytest.raises(NotImplementedError, match="not linear"):
            ft.jvp(wrap(f), (1.0,), (1.0,))


def test_jvp_and_its_derivation_exclude_each_other():
    with pytest.raises(TypeError, match="both generate_jvp_rule=True and a jvp staticmethod"):
        op(sine, jvp=PUSH, generate_jvp_rule=True)


# --- what jvp returns ---------------------------------------------------------------------------------------


def push(jvp, forward=lambda ctx, x: x * 1.0, x=X, t=T):
    return ft.jvp(op(forward, jvp=jvp), (x,), (t,))[1]


PAIR = lambda ctx, x: (x * 1.0, x * 2.0)


@pytest.mark.parametrize(
    ("forward", "returned", "expected", "got"),
    [
        (lambda ctx, x: x * 1.0, lambda t: (t, t), 1, 2),
        (lambda ctx, x: x * 1.0, lambda t: (t, None), 1, 2),
        (lambda ctx, x: x * 1.0, lambda t: (), 1, 0),
        (PAIR, lambda t: t, 2, 1),
        (PAIR, lambda t: None, 2, 1),
        (PAIR, lambda t: (t, t, None), 2, 3),
    ],
)
@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit])
def test_wrong_number(forward, returned, expected, got, wrap):
    message = rf"MyOp returned an invalid number of forward gradients \(expected {expected} but got {got}\)"
    f = wrap(op(forward, jvp=lambda ctx, t: returned(t)))
    with pytest.raises(errors.TangentCountError, match=message) as info:
        ft.jvp(f, (X,), (T,))
    assert "lambda ctx, t: returned(t)" in str(info.value)


def test_one_output():
    np.testing.assert_array_equal(push(lambda ctx, t: (3.0 * t,)), 3.0 * T)
    np.testing.assert_array_equal(push(lambda ctx, t: 3.0 * t, lambda ctx, x: (x * 1.0,))[0], 3.0 * T)


def test_a_list():
    with pytest.raises(TypeError, match="jvp of MyOp returned a list; return a tuple"):
        push(lambda ctx, t: [t, t], PAIR)


def test_none_is_zero():
    a, b = push(lambda ctx, t: (t, None), PAIR)
    np.testing.assert_array_equal(a, T)
    np.testing.assert_array_equal(b, np.zeros(3))
    np.testing.assert_array_equal(push(lambda ctx, t: None), np.zeros(3))


@pytest.mark.parametrize(
    ("forward", "why"),
    [
        (lambda ctx, x: (x * 1.0, fnp.arange(3)), "output 1, but it has dtype int64"),
        (lambda ctx, x: (x * 1.0, x > 0), "output 1, but it has dtype bool"),
        (lambda ctx, x: (x * 1.0, "text"), "output 1, but it is not an array"),
        (
            lambda ctx, x: (x * 1.0, (y := x * 2.0, ctx.mark_non_differentiable(y))[0]),
            "output 1, but it is marked non-differentiable",
        ),
    ],
)
def test_tangent_where_there_is_none(forward, why):
    f = op(forward, jvp=lambda ctx, t: (t, t))
    with pytest.raises(errors.TangentError, match=f"{why}. You should return None at that position"):
        ft.jvp(lambda x: f(x)[0], (X,), (T,))
    good = op(forward, jvp=lambda ctx, t: (t, None))
    np.testing.assert_array_equal(ft.jvp(lambda x: good(x)[0], (X,), (T,))[1], T)


@pytest.mark.parametrize(
    "returned", [lambda t: t[:2], lambda t: t[0], lambda t: t[None], lambda t: fnp.ones((2, 3))]
)
def test_wrong_shape(returned):
    with pytest.raises(
        errors.TangentShapeError,
        match=r"MyOp returned a tangent of shape .* for the output, which has shape \(3,\)",
    ):
        push(lambda ctx, t: returned(t))


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_])
@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit])
def test_other_dtypes_are_converted(dtype, wrap):
    """PyTorch keeps the float32."""
    f = wrap(op(lambda ctx, x: x * 1.0, jvp=lambda ctx, t: fnp.ones(3, dtype)))
    _y, t = ft.jvp(f, (X,), (T,))
    assert t.dtype == np.float64
    np.testing.assert_array_equal(t, np.ones(3))


def test_complex_for_real():
    with pytest.raises(errors.TangentDtypeError, match=r"complex tangent for the output.*take \.real"):
        push(lambda ctx, t: 1j * t)


def test_python_numbers():
    assert push(lambda ctx, t: 2, x=1.0, t=1.0) == 2.0
    with pytest.raises(errors.TangentError, match="returned '2' of type int as the tangent"):
        push(lambda ctx, t: 2)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("text", "'text' of type str as the tangent of the output"),
        (object(), "of type object as the tangent of the output"),
        ({"a": 1.0}, "another structure for the output: expected an array, got a dict"),
    ],
)
def test_something_that_is_no_tangent(value, message):
    with pytest.raises(TypeError, match=message):
        push(lambda ctx, t: value)


def test_structure_of_the_output():
    tree = lambda ctx, x: {"a": x * 1.0, "b": [x * 2.0]}
    found = push(lambda ctx, t: {"a": t, "b": [None]}, tree)
    np.testing.assert_array_equal(found["a"], T)
    np.testing.assert_array_equal(found["b"][0], np.zeros(3))
    with pytest.raises(errors.TangentError, match="another structure for the output"):
        push(lambda ctx, t: {"a": t}, tree)


def test_identity_in_forward_mode():
    assert push(lambda ctx, t: 5.0 * t, lambda ctx, x: x, x=1.0, t=1.0) == 5.0


def test_complex_tangents_are_as_they_are():
    f = op(lambda ctx, z: (save(ctx, z), z * z)[1], jvp=lambda ctx, t: 2.0 * ctx.saved[0] * t)
    z = 1.0 + 2.0j
    np.testing.assert_allclose(ft.jvp(f, (z,), (1j,))[1], 2.0 * z * 1j)
    np.testing.assert_allclose(ft.grad(lambda z: f(z).real)(z), ft.grad(lambda z: (z * z).real)(z))

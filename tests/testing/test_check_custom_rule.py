"""`check_custom_rule` passes right rules of every form, and tells each fault that a rule can have."""

import itertools
from functools import partial

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.testing import RULE_LAWS, LawViolation, check_custom_rule

X = np.array([0.5, 2.0, -1.25])


def function(forward, backward=None, name="Drawn", **members):
    """A `Function` of these rules."""
    rules = {"forward": forward, "backward": backward, **members}
    actual = {k: staticmethod(f) if callable(f) else f for k, f in rules.items() if f is not None}
    return type(name, (ft.Function,), actual)


def square(ctx, x):
    ctx.save_for_backward(x)
    return x * x


def square_backward(ctx, g):
    (x,) = ctx.saved_tensors
    return 2.0 * g * x


def violation(rule, *args, **options):
    with pytest.raises(LawViolation) as actual:
        check_custom_rule(rule, *args, **options)
    return actual.value


# --- right rules --------------------------------------------------------------------------------------------------


def test_square():
    check_custom_rule(function(square, square_backward), X)


@pytest.mark.parametrize(
    "x",
    [
        np.array(0.7),
        np.zeros((0, 3)),
        np.arange(1.0, 7.0).reshape(2, 3)[:, ::-1],
        np.broadcast_to(0.4, (2, 3)),
        X.astype("float32"),
        fnp.asarray(X),
    ],
)
def test_every_layout(x):
    check_custom_rule(function(square, square_backward), x)


def test_several_arguments_and_outputs_and_statics():
    def forward(ctx, tree, factor, mode, k):
        x, y = tree["x"], tree["y"]
        ctx.x, ctx.y, ctx.factor, ctx.k = x, y, factor, k
        return x * y * factor, mode, (fnp.sin(y), k + 1)

    def backward(ctx, g, none, pair):
        assert none is None
        h = pair[0]
        return {"x": fnp.sum(g * ctx.y * ctx.factor, keepdims=True)[0], "y": fnp.broadcast_to(
            g * ctx.x * ctx.factor + h * fnp.cos(ctx.y), (2, 3)) * 0.5}, None, None, None  # fmt: skip

    rule = function(forward, backward)
    check_custom_rule(rule, {"x": np.array(1.5), "y": X}, 3, "fast", np.array([1, 2]))


def test_forward_rule_alone_and_both():
    def jvp(ctx, t):
        (x,) = ctx.saved_tensors
        return 2.0 * x * t

    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x * x

    check_custom_rule(function(forward, jvp=jvp), X)
    check_custom_rule(function(forward, square_backward, jvp=jvp), X)


def test_jax_forms():
    @ft.custom_vjp
    def norm(x):
        return fnp.sqrt(fnp.sum(x * x))

    norm.defvjp(lambda x: (norm(x), (x, norm(x))), lambda stored, ct: (ct * stored[0] / stored[1],))
    check_custom_rule(norm, X)

    @partial(ft.custom_jvp, nondiff_argnums=(0,))
    def power(n, x, y):
        return x**n + y

    power.defjvp(lambda n, primals, ts: (power(n, *primals), n * primals[0] ** (n - 1) * ts[0] + ts[1]))
    check_custom_rule(power, 3, X, 2.0)


@pytest.mark.slow
def test_any_callable():
    rule = function(square, square_backward)
    check_custom_rule(lambda x, y: fnp.sum(ft.jit(rule.apply)(x)) * ft.vmap(rule.apply)(y), X, X)


def test_complex():
    def backward(ctx, g):
        (z,) = ctx.saved_tensors
        return g * (2.0 * z).conj()

    check_custom_rule(function(square, backward), X + 1j)


def test_host_forward_is_compared_with_differences():
    def forward(x):
        return np.exp(x)

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y

    members = {"setup_context": setup_context, "shape": lambda x: x, "host": True, "vmap_method": "broadcast"}
    check_custom_rule(function(forward, backward, **members), X)
    message = str(violation(function(forward, lambda ctx, g: 1.1 * g * ctx.saved_tensors[0], **members), X))
    assert "rule = derivative" in message


def test_complex_host_forward_is_compared_with_differences():
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    def backward(ctx, g):
        return g * (1j * ctx.saved_tensors[0]).conj()

    members = {"setup_context": setup_context, "shape": lambda x: x, "host": True, "vmap_method": "broadcast"}
    check_custom_rule(function(lambda x: np.exp(1j * x), backward, **members), X + 0.5j)


def test_once_differentiable_is_checked_once():
    check_custom_rule(function(square, ft.once_differentiable(square_backward)), X)


def test_meant_to_be_different():
    rounded = function(lambda ctx, x: fnp.round(x), lambda ctx, g: g)
    assert "rule = derivative" in str(violation(rounded, X))
    check_custom_rule(rounded, X, expected_different=True)


def test_a_missing_rule_is_not_a_fault():
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    check_custom_rule(
        function(np.exp, lambda ctx, g: g * ctx.saved_tensors[0], host=True, setup_context=setup_context), X
    )
    check_custom_rule(function(square, square_backward, generate_vmap_rule=False), X)
    check_custom_rule(function(square), X)
    check_custom_rule(function(square, square_backward, generate_jvp_rule=False), X)
    check_custom_rule(function(square, square_backward), np.array([1, 2]))


# --- faults -------------------------------------------------------------------------------------------------------


def test_wrong_backward_names_law_and_argument():
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3.0 * g * x

    error = violation(function(square, backward, "Square"), X)
    assert error.law == "rule = derivative of the forward pass"
    message = str(error)
    assert "Square.apply" in message
    assert "gradient in argument 0" in message
    assert "functrans.testing.rule_is_derivative(Square.apply, np.array([" in message


def test_the_wrong_one_of_two_arguments():
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y, g * x * x

    assert "gradient in argument 1" in str(violation(function(forward, backward), X, X + 1))


def test_backward_that_ignores_its_gradient():
    message = str(violation(function(square, lambda ctx, g: 2.0 * ctx.saved_tensors[0]), X))
    assert "backward is not multiplied by the cotangent" in message


def test_backward_that_is_not_linear():
    message = str(violation(function(square, lambda ctx, g: 2.0 * g * abs(g) * ctx.saved_tensors[0]), X))
    assert "2 u - 0.75 v" in message


def test_backward_that_takes_a_missing_gradient_for_something():
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2.0, x * 3.0

    def backward(ctx, g, h):
        return (2.0 if g is None else 2.0 * g) + (0.0 if h is None else 3.0 * h) + fnp.zeros(3)

    message = str(violation(function(forward, backward), X))
    assert "the cotangent of output 1 alone" in message


def test_backward_that_is_wrong_if_some_gradients_are_not_needed():
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y * (1.0 if all(ctx.needs_input_grad) else 2.0), g * x

    assert "only argument 0 is differentiated" in str(violation(function(forward, backward), X, X + 1))


def test_backward_that_is_another_each_time():
    noise = itertools.count()

    def backward(ctx, g):
        return square_backward(ctx, g) + 1e-7 * (next(noise) % 2) * g

    rule = function(square, backward)
    assert "repeated calls agree" in violation(rule, X).law
    check_custom_rule(rule, X, laws="rules_repeat", nondet_tol=1e-6)


def test_missing_conjugate():
    def forward(ctx, z):
        ctx.save_for_backward(z)
        return fnp.exp(1j * z)

    def wrong(ctx, g):
        (z,) = ctx.saved_tensors
        return g * 1j * fnp.exp(1j * z)

    assert "rule = derivative" in violation(function(forward, wrong), X + 0.5j).law
    check_custom_rule(function(forward, lambda ctx, g: fnp.conj(fnp.conj(g) * 1j * fnp.exp(1j * ctx.saved_tensors[0]))),
                      X + 0.5j)  # fmt: skip


def test_vmap_rule_that_is_wrong_for_one_axis():
    def vmap(info, in_dims, x):
        return x * x, in_dims[0]

    def wrong(info, in_dims, x):
        return x * x + (in_dims[0] == 1), in_dims[0]

    check_custom_rule(function(square, square_backward, vmap=vmap), np.eye(2))
    message = str(violation(function(square, square_backward, vmap=wrong), X))
    assert "vmap = loop" in message
    assert "in_axes (1,)" in message


def test_wrong_jvp_with_a_correct_backward():
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x * x

    def jvp(ctx, t):
        return 2.5 * ctx.saved_tensors[0] * t

    rule = function(forward, square_backward, jvp=jvp)
    assert "forward mode" in str(violation(rule, X))
    assert violation(rule, X, laws="duality").law == "<J v, w> = <v, J^T w>"
    # The rule may be no derivative: both modes must be of one.
    assert violation(rule, X, expected_different=True).law == "<J v, w> = <v, J^T w>"


def test_jvp_that_is_not_linear():
    def forward(ctx, x):
        ctx.save_for_forward(x)
        return x * x

    message = str(violation(function(forward, jvp=lambda ctx, t: 2.0 * ctx.saved_tensors[0]), X))
    assert "jvp is not multiplied by the tangent" in message


def test_another_value_in_the_forward_pass_of_a_rule():
    @ft.custom_vjp
    def f(x):
        return fnp.sin(x)

    f.defvjp(lambda x: (fnp.sin(x) + 1.0, x), lambda x, ct: (ct * fnp.cos(x),))
    assert "rules return the values" in violation(f, X).law


def test_right_first_and_wrong_second_derivative():
    @ft.custom_vjp
    def f(x):
        return fnp.sin(x)

    f.defvjp(lambda x: (f(x), ft.lax.stop_gradient(x)), lambda x, ct: (ct * fnp.cos(x),))
    assert "second order" in str(violation(f, X))
    check_custom_rule(f, X, order=1)


def test_compiled_and_eager_disagree():
    class Counted(ft.Function):
        factor = 2.0

        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            traced = "jit" in repr(x) and "grad" not in repr(x)
            return g * x * (2.5 if traced else 2.0)

    assert "jit" in violation(Counted, X, laws="rules_compile").law


def test_exceptions_are_reported_chained():
    def backward(ctx, g):
        return g[:1]

    error = violation(function(square, backward), X)
    assert isinstance(error.__cause__, ft.FunctionError)


def test_laws_by_name():
    with pytest.raises(ValueError, match="unknown law 'L13'"):
        check_custom_rule(function(square, square_backward), X, laws="L13")
    for law in RULE_LAWS.values():
        law(function(square, square_backward).apply, X)

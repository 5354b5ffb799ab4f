"""Custom rules under autocast: what a rule's own code runs in, eagerly and compiled."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.errors import ArgumentError, ArgumentValueError, AutocastError, ConfigError, UnknownOptionError
from functrans.runtime.config import config

F32, F64 = np.dtype("float32"), np.dtype("float64")
W = fnp.asarray(np.random.default_rng(0).normal(size=(3, 3)))
seen = []


class Square(ft.Function):
    """A product with residuals: its backward is traced with the forward pass."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x @ x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        first = g.astype(F64) @ x.T
        seen.append(first.dtype)
        return first + x.T @ g.astype(F64)


class Fixed(ft.Function):
    """Without residuals, and with symbolic zeros: its backward is traced with the pullback."""

    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x @ W

    @staticmethod
    def backward(ctx, g):
        out = g.astype(F64) @ W.T
        seen.append(out.dtype)
        return out


@ft.custom_vjp
def in_jax_style(x):
    return x @ W


def _backward(residuals, g):
    out = g.astype(F64) @ W.T
    seen.append(out.dtype)
    return (out,)


in_jax_style.defvjp(lambda x: (x @ W, x), _backward)
RULES = {"residuals": Square.apply, "none": Fixed.apply, "custom_vjp": in_jax_style}


def backward_dtype(f, forward, back):
    """What the product in the rule's backward is computed in; the gradient has the dtype of the parameter."""
    seen.clear()
    with ft.autocast(enabled=forward):
        out, pullback = ft.vjp(f, W)
    with ft.autocast(enabled=back):
        (gradient,) = pullback(out)
    assert gradient.dtype == F64
    return seen[-1]


def gradient_dtype(transformed, on):
    seen.clear()
    with ft.autocast(enabled=on):
        assert transformed(W).dtype == F64
    return seen[-1]


#: the option, whether autocast is on in the forward pass, and what backward runs in, compiled
TABLE = [
    ("same_as_forward", True, F32),
    ("same_as_forward", False, F64),
    ("off", True, F64),
    ("off", False, F64),
    ([{"dtype": "float32"}], False, F32),
    ({"dtype": "float32"}, False, F32),
    ([{"dtype": "float32"}, {"enabled": False}], True, F64),
    ([{"rules": {"matmul": "none"}}, {}], True, F64),
    ([], True, F64),
]


@pytest.mark.wide(2)
@pytest.mark.parametrize("rule", RULES)
def test_backward_in_a_compiled_region(rule):
    """By the option, wherever the pullback is called; eagerly as where it is called."""
    f = RULES[rule]
    for setting, forward, dtype in TABLE:
        with config.patch(backward_pass_autocast=setting):
            for back in (True, False):
                assert backward_dtype(ft.jit(lambda x: f(x)), forward, back) == dtype
                assert backward_dtype(f, forward, back) == (F32 if back else F64)

            def loss(x):
                return fnp.sum(f(x))

            assert gradient_dtype(ft.jit(ft.grad(loss)), forward) == dtype
            assert gradient_dtype(ft.grad(ft.jit(loss)), forward) == dtype


def test_a_block_inside_the_function_is_the_forward_state():
    def inside(x):
        with ft.autocast():
            return Square.apply(x)

    def scanned(x):
        return lax.scan(lambda c, _: (inside(c), None), x, None, length=2)[0]

    for f in (ft.jit(inside), ft.jit(scanned), scanned):
        assert backward_dtype(f, False, False) == F32


def test_a_block_inside_backward_is_nested_in_what_is_assumed():
    """Its dtype is the one that products run in, and rules stay."""
    inside = []

    class Nested(ft.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x @ x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            inside.append((ft.get_autocast_dtype(), (x @ x).dtype, fnp.tanh(x.astype(F32)).dtype))
            with ft.autocast("float16"):
                inside.append((ft.get_autocast_dtype(), (x @ x).dtype, fnp.tanh(x.astype(F32)).dtype))
            return g @ x.T + x.T @ g

    setting = {"dtype": "float32", "rules": {"tanh": "wide"}}
    for forward, option in ((True, "same_as_forward"), (False, setting)):
        inside.clear()
        with config.patch(backward_pass_autocast=option):
            with ft.autocast("float32", enabled=forward, rules={"tanh": "wide"}):
                out, pullback = ft.vjp(ft.jit(lambda x: Nested.apply(x)), W)
            pullback(out)
        assert inside == [(F32, F32, F64), (np.dtype("float16"), np.dtype("float16"), F64)]


def test_changing_the_option_retraces():
    """Once for each setting."""
    f = ft.jit(lambda x: Square.apply(x))
    traced = []
    for setting in ("same_as_forward", "off", "same_as_forward"):
        config.backward_pass_autocast = setting
        seen.clear()
        with ft.autocast():
            out, pullback = ft.vjp(f, W)
        pullback(out)
        traced.append(seen[:])
    assert traced == [[F32], [F64], []]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("bogus", "must be 'same_as_forward', 'off', or keyword arguments of autocast.*got 'bogus'"),
        ([1], "a dict, or a list of dicts, got \\[1\\]"),
        ([{"dtpye": "float32"}], "no keyword argument 'dtpye'; did you mean 'dtype'"),
        ({"dtype": "int8"}, "dtype must be a floating-point dtype, got int8"),
        ({"enabled": 1}, "enabled must be True or False, got 1"),
        ({"rules": {"sofmax": "low"}}, "did you mean 'softmax'"),
    ],
)
def test_bad_values_of_the_option(value, message):
    for assign in (lambda: setattr(config, "backward_pass_autocast", value), lambda: config.patch(
        backward_pass_autocast=value
    )):  # fmt: skip
        with pytest.raises(ConfigError, match=message):
            assign()
    assert config.backward_pass_autocast == "same_as_forward"
    with pytest.raises(UnknownOptionError, match="backward_pass_autocast"):
        config.backward_pass_autocats = "off"


def test_a_pullback_under_another_autocast_is_reported():
    with ft.autocast():
        out, pullback = ft.vjp(ft.jit(Square.apply), W)
        _, plain = ft.vjp(ft.jit(lambda x: x @ x), W)
        with config.patch(backward_pass_autocast="off"):
            _, off = ft.vjp(ft.jit(Square.apply), W)
        with config.patch(check_backward_autocast="error"):
            pullback(out)
            with pytest.raises(AutocastError, match=r"traced for no autocast.*under autocast\('float32'\)"):
                off(out)
    with config.patch(check_backward_autocast="error"):
        plain(out)
        off(out)
        with pytest.raises(
            AutocastError, match=r"traced for autocast\('float32'\).*called under no autocast"
        ):
            pullback(out)
    with config.patch(check_backward_autocast="warn"), pytest.warns(UserWarning, match="SquareBackward"):
        pullback(out)
    pullback(out)


def test_the_report_shows_the_rules_of_both():
    with ft.autocast(rules={"tanh": "wide"}):
        out, pullback = ft.vjp(ft.jit(Square.apply), W)
    with config.patch(check_backward_autocast="error"), pytest.raises(AutocastError, match=r"rules=.*'tanh'"):
        pullback(out)


def made(cast_inputs):
    class Decorated(ft.Function):
        @staticmethod
        @ft.custom_fwd(cast_inputs=cast_inputs)
        def forward(ctx, x):
            ctx.save_for_backward(x)
            out = x @ x
            seen.append(out.dtype)
            return out

        @staticmethod
        @ft.custom_bwd
        def backward(ctx, g):
            return Square.backward(ctx, g)

    return Decorated.apply


def test_decorated_methods_run_under_the_state_of_forward():
    """In both modes; with `cast_inputs`, autocast is off inside, and gradients keep the dtype of the parameter."""
    for setting in ("same_as_forward", "off"):
        with config.patch(backward_pass_autocast=setting):
            for back in (True, False):
                for f in (made(None), ft.jit(made(None))):
                    assert backward_dtype(f, True, back) == F32
                    assert backward_dtype(f, False, back) == F64
                for f in (made("float64"), ft.jit(made("float64"))):
                    assert backward_dtype(f, True, back) == F64
                    assert seen[0] == F64
    with ft.autocast():
        assert made("float32")(W).dtype == F32
    assert made("float32")(W).dtype == F64
    for decorator in (ft.custom_fwd, ft.custom_bwd):
        with pytest.raises(ArgumentError, match="write @staticmethod above"):
            decorator(staticmethod(_backward))


@pytest.mark.parametrize("dtype", ["int32", "flaot32", [1]])
def test_another_dtype_to_cast_inputs_to_is_named(dtype):
    with pytest.raises(ArgumentValueError, match=r"^custom_fwd: cast_inputs.*use 'float32', 'float16' or"):
        ft.custom_fwd(cast_inputs=dtype)

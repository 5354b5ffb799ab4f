"""Random rules, by every front end, under random stacks of transformations: they agree with autodiff of their forward.

Rules that are wrong by a factor, on purpose, agree with what the contract says: a rule holds at every level.
"""

import warnings

import numpy as np
import pytest
from generator import stacks
from generator.choices import drawn_by
from generator.comparing import compare
from generator.drawing import draw_inputs, laid_out, numbers
from generator.rules import FRONTS, draw_function
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as fnp
from functrans.testing import check_custom_rule

QUIET = [
    HealthCheck.too_slow,
    HealthCheck.data_too_large,
    HealthCheck.filter_too_much,
    HealthCheck.large_base_example,
]


@drawn_by
def specs(choose, most=5, **options):
    """A function with a rule, and the arrays at which to try it, in many layouts."""
    arrays = [x for x in draw_inputs(choose) if x.dtype.kind != "b"]
    spec = draw_function(choose, arrays, most, **options)
    return spec, tuple(
        [laid_out(x, choose.of(("plain", "plain", "strided", "reversed", "fortran"))) for x in arrays]
    )


def check_stack(case, stack):
    spec, xs = case
    before = [x.copy() for x in xs]
    expected = stacks.applied(spec.plain, stack, stacks.PLAIN)(*xs)
    compare(stacks.applied(spec.function, stack)(*xs), expected, 1e-8)
    for x, y in zip(xs, before):
        np.testing.assert_array_equal(x, y)


@pytest.mark.wide(3)
@pytest.mark.parametrize("front", FRONTS)
def test_as_autodiff_of_the_forward(front):
    @settings(max_examples=8, suppress_health_check=QUIET)
    @given(specs(fronts=[front]), stacks.stacks())
    def run(case, stack):
        check_stack(case, stack)

    run()


@settings(max_examples=10, suppress_health_check=QUIET)
@given(
    specs(most=4),
    stacks.stacks(5, 3, ["jit", "scan", "rows", "fori", "while", "cond", "vjp", "jvp"]),
)
def test_in_loops_and_branches(case, stack):
    check_stack(case, stack)


@settings(max_examples=40, suppress_health_check=QUIET)
@given(specs(nested=False), st.sampled_from([np.nan, np.inf, -np.inf, 0.0, -0.0]))
def test_values_of_special_numbers(case, number):
    spec, xs = case
    xs = [np.array(x) for x in xs]
    if xs[0].size:
        xs[0].flat[0] = number
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        expected = spec.plain(*xs)
        runs = (
            spec.function,
            ft.jit(spec.function),
            lambda *xs: stacks.applied(spec.function, [("jvp", 0)])(*xs)[: len(expected)],
        )
        for run in runs:
            for a, b in zip(run(*xs), expected):
                np.testing.assert_allclose(a, b, rtol=1e-6 if b.dtype.itemsize == 4 else 1e-12, atol=1e-300)


@pytest.mark.slow
@settings(max_examples=4, suppress_health_check=QUIET)
@given(specs(most=3))
def test_rules_pass_the_check(case):
    spec, xs = case
    check_custom_rule(spec.function, *[np.array(x) for x in xs])


# --- rules that are wrong by a factor -----------------------------------------------------------------------------

#: Functions with their derivative as a function of argument and value.
POINTWISE = {
    "exp": (fnp.exp, lambda x, y: y),
    "tanh": (fnp.tanh, lambda x, y: 1.0 - y * y),
    "reciprocal": (lambda x: 1.0 / x, lambda x, y: -y * y),
    "sqrt": (fnp.sqrt, lambda x, y: 0.5 / y),
    "sin": (fnp.sin, lambda x, y: fnp.cos(x)),
    "cube": (lambda x: x**3, lambda x, y: 3.0 * x * x),
}


def _function(f, slope, scale, style):
    def forward(ctx, x):
        y = f(x)
        ctx.save_for_backward(x, y)
        ctx.save_for_forward(x, y)
        return y

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs, output)
        ctx.save_for_forward(*inputs, output)

    def backward(ctx, g):
        d = slope(*ctx.saved_tensors)
        return scale * g * (d.conj() if g.dtype.kind == "c" else d)

    def jvp(ctx, t):
        return scale * t * slope(*ctx.saved_tensors)

    members = {"forward": forward} if style == "a" else {"forward": f, "setup_context": setup_context}
    members |= {"backward": backward} if style != "jvp" else {"jvp": jvp}
    return type("Scaled", (ft.Function,), {k: staticmethod(v) for k, v in members.items()}).apply


def _jax_like(f, slope, scale, style):
    decorated = (ft.custom_jvp if "jvp" in style else ft.custom_vjp)(lambda x: f(x))
    value = decorated if "again" in style else f
    if "jvp" in style:
        decorated.defjvp(lambda xs, ts: (value(*xs), scale * ts[0] * slope(*xs, value(*xs))))
    else:

        def fwd(x):
            y = value(x)
            return y, (x, y)

        decorated.defvjp(fwd, lambda kept, ct: (scale * ct * slope(*kept),))
    return decorated


#: By front end: a function with the rule, and whether the rule holds at every level.
SCALED = {
    "Function a": (lambda *args: _function(*args, "a"), True),
    "Function b": (lambda *args: _function(*args, "b"), True),
    "Function jvp": (lambda *args: _function(*args, "jvp"), True),
    "custom_vjp": (lambda *args: _jax_like(*args, "vjp"), False),
    "custom_vjp again": (lambda *args: _jax_like(*args, "vjp again"), True),
    "custom_jvp": (lambda *args: _jax_like(*args, "jvp"), False),
    "custom_jvp again": (lambda *args: _jax_like(*args, "jvp again"), True),
}


def expected_of(name, scale):
    """A function without rule whose derivatives are those that the contract gives to the scaled rule.

    Read from the argument, the derivative has the factor once. Read from an output that has the rule again, it has the
    factor at each order: as if the function were stretched around the point.
    """
    f, _ = POINTWISE[name]

    def once(x):
        y = f(x)
        fixed = ft.lax.stop_gradient(y)
        return fixed + scale * (y - fixed)

    def each(x):
        fixed = ft.lax.stop_gradient(x)
        return f(fixed + scale * (x - fixed))

    return once if name in ("sin", "cube") else each


def check_scaled(name, front, scale, x, stack):
    ruled, plain = SCALED[front][0](*POINTWISE[name], scale), expected_of(name, scale)

    def around(rule):
        return lambda x: (fnp.sin(x) * rule(x * x + 0.7), rule(0.6 + 0.1 * x))

    expected = stacks.applied(around(plain), stack, stacks.PLAIN)(x)
    compare(stacks.applied(around(ruled), stack)(x), expected, 1e-8)


SCALED_CASES = (
    st.sampled_from(list(POINTWISE)),
    st.sampled_from([name for name, (_, again) in SCALED.items() if again]),
    st.sampled_from([3.0, -0.5]),
    st.builds(
        lambda shape, seed, dtype: numbers(np.random.default_rng(seed), shape, dtype),
        st.sampled_from([(), (3,), (0,), (2, 1)]),
        st.integers(0, 99),
        st.sampled_from(["float64", "float64", "complex128"]),
    ),
    stacks.stacks(),
)


@pytest.mark.slow
@settings(max_examples=15, suppress_health_check=QUIET)
@given(*SCALED_CASES)
def test_a_scaled_rule_holds_at_every_level(name, front, scale, x, stack):
    check_scaled(name, front, scale, x, stack)


@pytest.mark.parametrize("front", SCALED)
def test_powers_of_three(front):
    build, again = SCALED[front]
    f = build(*POINTWISE["exp"], 3.0)
    for order in (1, 2, 3):
        f = ft.grad(f)
        assert float(f(0.5)) == pytest.approx((3.0**order if again else 3.0) * np.exp(0.5))


# --- many ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=150, suppress_health_check=QUIET)
@given(specs(most=7), stacks.stacks(5, 3))
def test_many(case, stack):
    check_stack(case, stack)


@pytest.mark.slow
@settings(max_examples=80, suppress_health_check=QUIET)
@given(*SCALED_CASES)
def test_many_scaled(name, front, scale, x, stack):
    check_scaled(name, front, scale, x, stack)

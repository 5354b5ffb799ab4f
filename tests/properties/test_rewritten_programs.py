"""Random programs after the passes and rewrites of `functrans.ir`: valid, with the same values and gradients."""

import numpy as np
import pytest
from generator import drawing
from generator.comparing import compare
from generator.conditions import of_loss, places_of_floats, steady, tolerance_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as fnp
from functrans import ir

QUIET = [
    HealthCheck.too_slow,
    HealthCheck.data_too_large,
    HealthCheck.filter_too_much,
    HealthCheck.large_base_example,
]
DRAWN = st.one_of(drawing.programs(drawing.WITHOUT_NUMBA, most=5), drawing.programs(drawing.WRITING, most=3))
X, Y, Z = ir.Any("x"), ir.Any("y"), ir.Any("z")
#: Rules whose replacements compute the same, some by captured arrays, which bodies of loops have to take in.
RULES = [
    ir.Rule(ir.Op("mul", X, Y), lambda m: m["y"] * m["x"]),
    ir.Rule(ir.Op("sub", X, Y), lambda m: m["x"] + fnp.negative(m["y"]), lambda m: kind(m) == "f"),
    ir.Rule(ir.Op("neg", X), lambda m: m["x"] * np.asarray(-1.0), lambda m: kind(m) == "f" and not weak(m)),
    ir.Rule(ir.Op("add", ir.Op("mul", X, Y), Z), lambda m: m["z"] + m["x"] * m["y"]),
    ir.Rule(ir.Op("sin", X), lambda m: fnp.cos(m["x"] - np.pi / 2)),
    ir.Rule(ir.Op("integer_pow", X, y=2), lambda m: m["x"] * m["x"]),
    ir.Rule(ir.Op("max", X, Y), lambda m: fnp.maximum(m["y"], m["x"])),
]


def kind(m):
    return m["x"].aval.dtype.kind


def weak(m):
    return m["x"].aval.weak or m["x"].aval.dtype != np.float64


class Same(ir.Transformer):
    """Changes nothing."""


class Alone(ir.Interpreter):
    """Runs loops in Python."""

    descend = True


PASSES = {
    "inline": ir.inline,
    "dead code": ir.eliminate_dead_code,
    "common subexpressions": ir.eliminate_common_subexpressions,
    "fold": ir.fold_constants,
    "simplify": ir.simplify,
    "transform": lambda program: Same(program).transform(),
}
CHANGES = {**PASSES, "rewrite": lambda program: ir.rewrite(program, RULES)[0]}


def value_and_gradient(f, xs):
    def loss(*xs):
        return of_loss(f)(*xs), f(*xs)

    (_, outs), gradient = ft.value_and_grad(loss, places_of_floats(xs), has_aux=True)(*xs)
    return outs, gradient


def as_tuple(program):
    """Programs of the generator return tuples, also of one value."""
    return lambda *xs: tuple(ir.eval_jaxpr(program, *xs))


def check(drawn, seed, name):
    for xs in steady(drawn, [seed]):
        program = ir.trace(drawn, *xs)
        changed = CHANGES[name](program)
        ir.verify(changed)
        assert [a.strong() for a in changed.out_avals] == [a.strong() for a in program.out_avals]
        expected = value_and_gradient(drawn, xs)
        compare(value_and_gradient(as_tuple(changed), xs), expected, tolerance_of(drawn, 1e-8), name)
        if name in PASSES:
            assert ir.equal(CHANGES[name](changed), changed), f"{name} again changes\n{changed}"


@settings(max_examples=8, suppress_health_check=QUIET)
@given(DRAWN, st.integers(0, 99), st.sampled_from([*CHANGES]))
def test_same_values_and_gradients(program, seed, name):
    check(program, seed, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", CHANGES)
@settings(max_examples=60, suppress_health_check=QUIET)
@given(program=DRAWN, seed=st.integers(0, 99))
def test_many(name, program, seed):
    check(program, seed, name)


def routes(drawn, seed):
    for xs in steady(drawn, [seed]):
        program = ir.trace(drawn, *xs)
        expected = drawn(*xs)
        compare(tuple(Alone(program).run(*xs)), expected, tolerance_of(drawn, 1e-8), "run in Python")
        cut = ir.split(program, lambda eqn: len(eqn.invars) % 2)
        assert sum(len(part.eqns) for _, part in cut.parts) == len(program.eqns)
        for _, part in cut.parts:
            ir.verify(part)
        outs = cut(*xs)
        compare(outs if isinstance(outs, tuple) else (outs,), expected, tolerance_of(drawn, 1e-8), "split")


@settings(max_examples=8, suppress_health_check=QUIET)
@given(DRAWN, st.integers(0, 99))
def test_other_routes(program, seed):
    routes(program, seed)


@pytest.mark.slow
@settings(max_examples=200, suppress_health_check=QUIET)
@given(DRAWN, st.integers(0, 99))
def test_many_routes(program, seed):
    routes(program, seed)

"""Random nests of loops and branches against plain Python loops: values and derivatives under transformations."""

import importlib.util
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as fnp
from functrans import tree
from functrans.lowering.loops import split_functions
from functrans.testing.finite_difference import directional_derivative, is_kink

_spec = importlib.util.spec_from_file_location(
    "functrans_test_loop_programs", Path(__file__).with_name("loop_programs.py")
)
programs = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(programs)

QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
LANES = 3


def assert_same(program, found, expected, tolerance=1e-9):
    single = "'q'" in repr(program)  # numbers of single precision may be on the way
    got, want = tree.leaves(found), tree.leaves(expected)
    assert len(got) == len(want)
    for a, b in zip(got, want):
        a, b = np.asarray(a), np.asarray(b)
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        rtol = 2e-4 if single or a.dtype == np.float32 else tolerance
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)


def well_conditioned(program, seed):
    """Whether rounding stays rounding: loops may iterate a chaotic map, whose digits no two ways of adding share."""
    floats, ints = program.point(seed)
    nudged = {k: v + np.asarray(1e-10 * slopes({k: v})[k], v.dtype) for k, v in floats.items()}
    moved = tree.map(
        lambda a, b: np.max(np.abs(np.subtract(a, b, dtype="f8")), initial=0.0, where=np.isfinite(a)),
        program.python(floats, ints),
        program.python(nudged, ints),
    )
    return max(tree.leaves(moved)) < 1e-7


def slopes(floats):
    return {k: np.cos(np.arange(v.size, dtype=v.dtype)).reshape(v.shape) for k, v in floats.items()}


def of_loss(f):
    return lambda floats, ints: programs.loss(f(floats, ints))


def lanes_of(f):
    """A Python loop over lanes."""

    def run(*args):
        found = [f(*[{k: v[i] for k, v in a.items()} for a in args]) for i in range(LANES)]
        return tree.map(lambda *rows: np.stack([np.asarray(r) for r in rows]), *found)

    return run


def hessian_vector(f):
    def run(floats, ints):
        return ft.jvp(lambda v: ft.grad(f)(v, ints), (floats,), (slopes(floats),))[1]

    return run


def gradient_of_slope(f):
    return ft.grad(lambda v, ints: ft.jvp(lambda v: f(v, ints), (v,), (slopes(v),))[1])


def summed(f):
    return lambda floats, ints: fnp.sum(ft.vmap(f)(floats, ints))


def check_values(program, seed):
    args = program.point(seed)
    expected = program.python(*args)
    assert_same(program, program.native(*args), expected)
    assert_same(program, ft.jit(program.native)(*args), expected)
    with ft.config.patch(disable_jit=True):
        assert_same(program, program.native(*args), expected)


def check_forward(program, seed):
    floats, ints = program.point(seed)

    def push(f):
        return lambda v: ft.jvp(lambda v: f(v, ints), (v,), (slopes(v),))

    expected = push(of_loss(program.python))(floats)
    native = of_loss(program.native)
    for run in (push(native), ft.jit(push(native)), push(ft.jit(native))):
        assert_same(program, run(floats), expected)
    _, linear = ft.linearize(lambda v: native(v, ints), floats)
    assert_same(program, linear(slopes(floats)), expected[1])


def check_reverse(program, seed):
    args = program.point(seed)
    expected = ft.value_and_grad(of_loss(program.python))(*args)
    native = of_loss(program.native)
    for run in (
        ft.value_and_grad(native),
        ft.jit(ft.value_and_grad(native)),
        ft.value_and_grad(ft.jit(native)),
    ):
        assert_same(program, run(*args), expected)


def check_second(program, seed):
    args = program.point(seed)
    expected = hessian_vector(of_loss(program.python))(*args)
    native = of_loss(program.native)
    for run in (hessian_vector(native), ft.jit(hessian_vector(native)), ft.jit(gradient_of_slope(native))):
        assert_same(program, run(*args), expected, 1e-8)


def check_lanes(program, seed):
    args = program.point(seed, LANES)
    expected = lanes_of(program.python)(*args)
    for run in (ft.vmap(program.native), ft.jit(ft.vmap(program.native)), ft.vmap(ft.jit(program.native))):
        assert_same(program, run(*args), expected)
    floats, _ = args
    _, ints = program.point(seed)
    expected = lanes_of(lambda v: program.python(v, ints))(floats)
    assert_same(program, ft.jit(ft.vmap(program.native, in_axes=(0, None)))(floats, ints), expected)


def check_lanes_reverse(program, seed):
    args = program.point(seed, LANES)
    expected = lanes_of(ft.grad(of_loss(program.python)))(*args)
    native = of_loss(program.native)
    for run in (ft.vmap(ft.grad(native)), ft.jit(ft.vmap(ft.grad(native))), ft.jit(ft.grad(summed(native)))):
        assert_same(program, run(*args), expected)


def check_lanes_second(program, seed):
    args = program.point(seed, LANES)
    native = of_loss(program.native)
    expected = lanes_of(hessian_vector(of_loss(program.python)))
    # Each lane has slopes of its own.
    found = ft.jit(ft.vmap(hessian_vector(native)))(*args)
    assert_same(program, found, expected(*args), 1e-8)
    floats, ints = args
    rows = {k: np.stack([v] * LANES) for k, v in slopes({k: v[0] for k, v in floats.items()}).items()}
    found = ft.jit(lambda v: ft.jvp(ft.grad(lambda v: summed(native)(v, ints)), (v,), (rows,))[1])(floats)
    assert_same(program, found, expected(*args), 1e-8)


def check_memory(program, seed):
    """Kernels in Python compute the same, and so do those that overwrite donated arguments."""
    args = program.point(seed)
    expected = program.python(*args)
    with ft.config.patch(backend="python"):
        assert_same(program, ft.jit(program.native)(*args), expected)
    given_up = tree.map(fnp.array, args)
    assert_same(program, ft.jit(program.native, donate_argnums=0)(*given_up), expected)


def check_slope(program, seed):
    """Differences of the program in Python; where it jumps or has a kink, they do not settle."""
    floats, ints = program.point(seed)
    names = [k for k, v in floats.items() if v.dtype == np.float64]
    moved = slopes({k: floats[k] for k in names})

    def f(values):
        return [
            np.asarray(of_loss(program.python)({**floats, **dict(zip(names, values, strict=True))}, ints))
        ]

    (slope,), (error,) = directional_derivative(f, [floats[k] for k in names], [moved[k] for k in names])
    assume(error < 1e-6)
    tangents = {**tree.map(np.zeros_like, floats), **moved}
    native = of_loss(program.native)
    found = ft.jit(lambda v: ft.jvp(lambda v: native(v, ints), (v,), (tangents,))[1])(floats)
    cotangents = ft.jit(ft.grad(native))(floats, ints)
    paired = sum(np.sum(np.asarray(cotangents[k]) * moved[k]) for k in names)
    assert_same(program, paired, found, 1e-8)
    if not is_kink(f, [floats[k] for k in names], [moved[k] for k in names]):
        assert_same(program, found, slope, 1e-5)


CHECKS = [check_values, check_forward, check_reverse, check_second, check_lanes, check_lanes_reverse,
          check_lanes_second]  # fmt: skip


@pytest.mark.wide(2)
@pytest.mark.parametrize("check", CHECKS)
def test_as_python_loops(check):
    @settings(max_examples=3, suppress_health_check=QUIET)
    @given(programs.programs(), st.integers(0, 99))
    def run(program, seed):
        check(program, seed)

    run()


@pytest.mark.slow
@settings(max_examples=150, suppress_health_check=QUIET)
@given(programs.programs(), st.integers(0, 9999), st.sampled_from(CHECKS))
def test_many(program, seed, check):
    assume(well_conditioned(program, seed))
    check(program, seed)


@contextmanager
def in_parts_of(fewest):
    """Kernels of that many loops are in parts."""
    usual, split_functions.FEWEST = split_functions.FEWEST, fewest
    try:
        yield
    finally:
        split_functions.FEWEST = usual


MIXTURES = given(
    programs.mixtures(),
    st.integers(0, 9999),
    st.sampled_from(CHECKS),
    st.sampled_from([2, split_functions.FEWEST]),
)


def check_mixture(program, seed, check, fewest):
    """In checked mode, which looks at the memory of each kernel after each call."""
    assume(well_conditioned(program, seed))
    with in_parts_of(fewest), ft.config.patch(checked=True):
        check(program, seed)


@settings(max_examples=5, suppress_health_check=QUIET)
@MIXTURES
def test_mixtures(program, seed, check, fewest):
    check_mixture(program, seed, check, fewest)


@pytest.mark.slow
@settings(max_examples=150, suppress_health_check=QUIET)
@MIXTURES
def test_many_mixtures(program, seed, check, fewest):
    check_mixture(program, seed, check, fewest)


ARRAY_LOOPS = given(
    programs.array_loops(),
    st.integers(0, 9999),
    st.sampled_from([*CHECKS, check_memory, check_slope]),
    st.sampled_from([2, split_functions.FEWEST]),
)


#: Loops that compute nothing: a part of a kernel without arguments.
EMPTY = programs.Program(
    [
        ("paste", "x", "y", 2, -1, 1),
        ("scan", ["s", "b"], True, [], "s", 4, True, 3, [("number", "n", 2), ("paste", "y", "x", 2, -1, 1)]),
        ("scan", ["m"], False, [], "n", 1, False, 1, [("number", "n", 1)]),
    ],
    count=3,
)


@settings(max_examples=6, suppress_health_check=QUIET)
@example(EMPTY, 0, check_values, 2)
@ARRAY_LOOPS
def test_array_loops(program, seed, check, fewest):
    check_mixture(program, seed, check, fewest)


@pytest.mark.slow
@settings(max_examples=80, suppress_health_check=QUIET)
@ARRAY_LOOPS
def test_many_array_loops(program, seed, check, fewest):
    check_mixture(program, seed, check, fewest)

"""Random programs of float16 and bfloat16: compiled, they compute what they compute uncompiled, and no less exactly.

A compiled program leaves out roundings, so it may differ from the uncompiled one by these. None of the functions drawn
here enlarges an error, so that is at most the unit in the last place of a number below 1, for each operation. In strict
mode there is no difference.
"""

import numpy as np
import pytest
from generator.choices import drawn_by
from generator.drawing import Program, draw_program
from generator.records import KINDS
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as fnp

try:
    DTYPES = [np.dtype(np.float16), np.dtype(ft.bfloat16)]
except ft.errors.MissingLibraryError:
    DTYPES = [np.dtype(np.float16)]

SHAPES = [(), (1,), (0,), (5,), (40,), (3, 5), (5, 1), (1, 5), (5, 5), (2, 3, 5)]
#: Functions with values and derivatives in [-1, 1], of numbers in [-1, 1].
TAME = {name: 1 for name, k in KINDS.items() if "tame" in k.flags}
SMOOTH = {name: 1 for name in TAME if "jumps" not in KINDS[name].flags}
#: What NumPy rounds correctly, and functions with steps: the same numbers in strict mode.
EXACT = {name: 1 for name, k in KINDS.items() if "exact" in k.flags}


@drawn_by
def programs(choose, weights):
    """A program, its arguments, the number of its statements, and the precision."""
    dtype = choose.of(DTYPES)
    random = np.random.default_rng(choose.integer(0, 1000))
    args = [np.asarray(random.uniform(-1, 1, choose.of(SHAPES))) for _ in range(2)]
    drawn = draw_program(choose, weights, most=7, depth=0, inputs=args)
    made = range(2, 2 + len(drawn.statements)) or (0,)
    run = Program(args, drawn.statements, tuple(made))
    return run, [x.astype(dtype) for x in args], len(drawn.statements), fnp.finfo(dtype).eps


def wide(x):
    return np.asarray(x).astype(np.float64)


def check_closeness(program):
    run, args, count, eps = program
    exact = run(*[wide(x) for x in args])
    for y, z, limit in zip(ft.jit(run)(*args), run(*args), exact, strict=True):
        assert y.dtype == z.dtype == args[0].dtype
        assert y.shape == z.shape
        np.testing.assert_allclose(wide(y), limit, rtol=0, atol=4 * (count + 1) * float(eps))
        np.testing.assert_allclose(wide(y), wide(z), rtol=0, atol=4 * (count + 1) * float(eps))


def check_equality(program):
    run, args, _, _ = program
    with ft.config.patch(strict=True), np.errstate(all="ignore"):
        for y, z in zip(ft.jit(run)(*args), run(*args), strict=True):
            assert y.dtype == z.dtype
            np.testing.assert_array_equal(wide(y), wide(z))


def check_gradient(program):
    run, args, count, eps = program

    def loss(*args):
        return sum([fnp.mean(y.astype(np.float32)) for y in run(*args) if y.size], fnp.zeros((), np.float32))

    compiled = ft.jit(ft.grad(loss, argnums=(0, 1)))(*args)
    exact = ft.grad(loss, argnums=(0, 1))(*[wide(x) for x in args])
    for g, limit, x in zip(compiled, exact, args, strict=True):
        assert g.dtype == x.dtype
        size = max(1.0, np.max(np.abs(limit), initial=0))
        np.testing.assert_allclose(wide(g), limit, rtol=0, atol=8 * (count + 1) * size * float(eps))


near = settings(max_examples=12, deadline=None)
many = settings(max_examples=60, deadline=None)
CHECKS = {
    "close": (check_closeness, programs(TAME)),
    "strict": (check_equality, programs(EXACT)),
    "gradient": (check_gradient, programs(SMOOTH)),
}


def checked(name, data):
    check, strategy = CHECKS[name]
    check(data.draw(strategy))


@pytest.mark.parametrize("name", CHECKS)
@near
@given(data=st.data())
def test_compiled_programs(name, data):
    checked(name, data)


@pytest.mark.slow
@pytest.mark.parametrize("name", CHECKS)
@many
@given(data=st.data())
def test_many_compiled_programs(name, data):
    checked(name, data)

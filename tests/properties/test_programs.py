"""Random programs under random settings and stacks of transformations, by independent routes."""

import numpy as np
import pytest
from generator import drawing
from generator.calls import Call
from generator.checks import CHECKS, Case, cases
from generator.choices import Seeded
from generator.conditions import known
from generator.loops import Loop
from generator.records import Block, Statement
from generator.settings import Setting, under
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import functrans as ft

QUIET = [
    HealthCheck.too_slow,
    HealthCheck.data_too_large,
    HealthCheck.filter_too_much,
    HealthCheck.large_base_example,
]
NAMES = [*CHECKS, "stack"]
#: What programs are drawn from, and how deep: straight lines, everything, loops that mostly write arrays, Numba too.
DRAWN = {
    "straight": {"weights": drawing.STRAIGHT, "most": 10, "depth": 0},
    "everything": {"weights": drawing.WITHOUT_NUMBA, "most": 5, "depth": 2},
    "writing": {"weights": drawing.WRITING, "most": 2, "depth": 2},
    "numba": {"weights": {**drawing.EVERYTHING, "numba": 30}, "most": 5, "depth": 1},
}


@pytest.mark.wide(2)  # an odd number of checks: each is quick with the one or the other
@pytest.mark.parametrize("how", ["everything", "writing"])
@pytest.mark.parametrize("name", NAMES)
def test_by_other_routes(name, how):
    @settings(max_examples=2, suppress_health_check=QUIET)
    @given(cases(**DRAWN[how]))
    def run(case):
        case.check(name)

    run()


@pytest.mark.parametrize("name", ["values", "slope", "modes", "stack"])
def test_straight_lines(name):
    @settings(max_examples=4, suppress_health_check=QUIET)
    @given(cases(**DRAWN["straight"]))
    def run(case):
        case.check(name)

    run()


@pytest.mark.slow
@pytest.mark.parametrize("how", DRAWN)
@pytest.mark.parametrize("name", NAMES)
def test_many(name, how):
    @settings(max_examples=12, suppress_health_check=QUIET)
    @given(cases(**DRAWN[how]))
    def run(case):
        case.check(name, 20)

    run()


def test_loops_that_compute_nothing():
    """A part of a kernel without arguments."""
    x, paste = np.array([0.3, -0.4, 0.9]), Statement("paste", (0, 3), 1)
    first = Loop((2, 4), Block((Statement("constant integer", (), 2), paste), (6, 7)), 3, (0, True, 3, None))
    second = Loop((1,), Block((Statement("constant integer", (), 1),), (8,)), 1, (None, False, 1, None))
    statements = (paste, Statement("scan", (), first), Statement("scan", (), second))
    inputs = [x, np.ones((2, 3)), np.asarray(0.5), np.asarray(3), np.asarray(True)]
    program = drawing.Program(inputs, statements, tuple(range(5, 9)))
    with under(Setting(limits=("parts",))):
        CHECKS["values"][0](program, range(3))


# --- the generator itself -----------------------------------------------------------------------------------------


def kinds_in(statements):
    for statement in statements:
        yield statement.kind
        for part in statement.params if isinstance(statement.params, tuple) else ():
            for block in part if isinstance(part, tuple) and not hasattr(part, "statements") else (part,):
                yield from kinds_in(getattr(block, "statements", ()))


def test_every_kind_is_drawn():
    missing = {name for name, weight in drawing.EVERYTHING.items() if weight}
    for seed in range(2000):
        missing -= set(
            kinds_in(drawing.draw_program(Seeded(seed), drawing.EVERYTHING, most=9, depth=1).statements)
        )
        if not missing:
            break
    assert not missing


def test_a_seed_is_a_program():
    for seed in range(20):
        assert repr(Case(Seeded(seed))) == repr(Case(Seeded(seed)))


@given(st.integers(0, 10_000))
@settings(max_examples=20)
def test_programs_end_in_floats(seed):
    program = drawing.draw_program(Seeded(seed))
    assert any(y.dtype.kind in "fc" for y in program.reference(*program.point(seed)))


def test_a_tape_that_passes_a_barrier():
    """The backward program reads the residuals of a loop of unknown length behind the barrier of a checkpoint."""
    inner = Block(
        (
            Statement("solve", (9,), 0),
            Statement("exp", (1,), 1),
            Statement("convolve", (11, 9), 2),
        ),
        (8, 13, 9, 11),
    )
    first = Call(
        (0,),
        Block(
            (
                Statement("sin", (2,), 0),
                Statement("scan", (), Loop((5, 0, 1), inner, 1, (1, False, 1, None))),
            ),
            (7,),
        ),
        None,
    )
    saved = Block(
        (Statement("noise", (11,), 1), Statement("sigmoid", (9,), 1), Statement("abs", (11,), 2)), (14,)
    )
    body = Block(
        (
            Statement("sin", (5,), 0),
            Statement("checkpoint", (), Call((1, 2, 6), saved, "products")),
            Statement("cholesky", (8,), 2),
        ),
        (9,),
    )
    statements = (Statement("jit", (), first), Statement("fori", (), Loop((0,), body, (2, (3,)), None)))
    x = np.array([[0.5675792], [-1.15579489]])
    inputs = [
        x,
        np.array([-1.1120791]),
        np.array([[0.22729735], [0.20571274]]),
        np.asarray(1),
        np.zeros(2, "i4"),
    ]
    flags = frozenset({"tame", "jumps", "finite", "control"})
    program = drawing.Program(inputs, statements, (6,), flags)
    CHECKS["budgets"][0](program, range(1))


def test_points_do_not_trace_again():
    """What is noted of a program's points is not part of it: `jit` compares an object's attributes at each call."""
    traces = []

    class Counted(drawing.Program):
        def __call__(self, *xs):
            traces.append(xs)
            return super().__call__(*xs)

    x = np.array([0.3, -0.4, 0.9])
    program = Counted([x], (Statement("sin", (0,), 0),), (1,))
    jitted = ft.jit(program)
    for seed in range(3):
        xs, (expected,), _ = known(program, seed)
        np.testing.assert_allclose(jitted(*xs)[0], expected, rtol=1e-12)
    assert len(traces) == 1
    assert known(program, 0)[0] is known(program, 0)[0]

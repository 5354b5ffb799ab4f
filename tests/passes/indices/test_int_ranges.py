"""Ranges of integers against the numbers themselves: all of them inside, and none wider than need be.

`tests/lowering/loops/test_ranges.py` tests what kernels make of them.
"""

import operator
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.core.aval import Aval
from functrans.core.ir import Var
from functrans.passes.indices.int_ranges import (
    FAR,
    HIGHEST,
    LARGEST_STEP,
    LOWEST,
    UNKNOWN,
    Facts,
    combined,
    common,
    decided,
    extreme,
    hull,
    narrowed,
    of_loop,
    ranges_of,
)

NUMBERS = st.integers(-5, 5)
RANGES = st.tuples(NUMBERS, NUMBERS).map(lambda ends: (min(ends), max(ends)))


def inside(known):
    return range(known[0], known[1] + 1)


def results(f, a, b):
    return [f(x, y) for x in inside(a) for y in inside(b)]


def ends(numbers):
    return min(numbers), max(numbers)


TIGHT = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "min": min, "max": max,
    "idiv": operator.floordiv, "shl": operator.lshift, "shr": operator.rshift,
}  # fmt: skip


@given(RANGES, RANGES)
def test_ranges_are_as_narrow_as_their_numbers(a, b):
    for op, f in TIGHT.items():
        below = {"idiv": a[0] < 0 or b[0] <= 0, "shl": min(a[0], b[0]) < 0, "shr": min(a[0], b[0]) < 0}
        if below.get(op):
            assert combined(op, a, b) is None
        else:
            assert combined(op, a, b) == ends(results(f, a, b))


@given(RANGES, st.integers(1, 5), st.integers(0, 3))
def test_remainders_and_bits_are_narrow_where_the_numbers_fill_them(a, low, more):
    known, numbers = combined("irem", a, (low, low + more)), results(np.fmod, a, (low, low + more))
    assert known[0] <= min(numbers)
    assert known[1] >= max(numbers)
    assert known[1] < low + more
    assert known[0] > -(low + more)
    assert known[0] >= min(a[0], 0)
    assert known[1] <= max(a[1], 0)
    for op in ("and", "or", "xor"):
        assert combined(op, (0, 3), (0, low)) == (0, 3 if low < 4 else 7)
        assert (combined(op, a, (0, 3)) is None) == (a[0] < 0)


def test_remainders_by_what_may_be_zero_have_no_range():
    assert combined("irem", (0, 3), (0, 3)) is None
    assert combined("irem", (0, 9), (1, 4)) == (0, 3)
    assert combined("irem", (-9, -1), (1, 4)) == (-3, 0)
    assert combined("xor", (0, 3), (-1, 3)) is None
    assert combined("shl", (0, 1), (0, 64)) is None
    assert combined("shr", (0, 8), (0, 63)) == (0, 8)


def test_the_whole_of_int64_is_a_range():
    assert combined("add", (LOWEST + 1, HIGHEST - 1), (-1, 1)) == UNKNOWN
    assert combined("sub", (LOWEST, 0), (0, 0)) == (LOWEST, 0)
    assert combined("add", (LOWEST, 0), (-1, 0)) is None
    assert combined("mul", (0, HIGHEST), (1, 1)) == (0, HIGHEST)
    assert combined("shl", (0, HIGHEST >> 1), (1, 1)) == (0, HIGHEST - 1)
    assert combined("shl", (0, HIGHEST), (0, 0)) == (0, HIGHEST)


@given(RANGES, RANGES)
def test_comparisons_are_decided_if_all_pairs_agree(a, b):
    for op in ("lt", "le", "gt", "ge", "eq", "ne"):
        answers = set(results(getattr(operator, op), a, b))
        assert decided(op, a, b) == (answers.pop() if len(answers) == 1 else None)
    for op, f in (("min", min), ("max", max)):
        always = [all(f(x, y) == (x, y)[i] for x in inside(a) for y in inside(b)) for i in (0, 1)]
        chosen = extreme(op, a, b)
        assert (chosen is None) == (not any(always))
        assert chosen is None or always[chosen]


@given(RANGES, RANGES)
def test_ranges_meet_and_join(a, b):
    assert hull(a, b) == ends([*inside(a), *inside(b)])
    both = set(inside(a)) & set(inside(b))
    assert list(inside(common(a, b))) == sorted(both)
    assert narrowed([a], [b]) == [ends(both) if both else a]


# --- programs -----------------------------------------------------------------------------------------------

# For each name: the operation on functrans' scalars, on Python's numbers, and whether operands and result are booleans.
OPERATIONS = {
    "add": (fnp.add, operator.add, "ii-i"),
    "sub": (fnp.subtract, operator.sub, "ii-i"),
    "less": (lambda x: 7 - 2 * x, lambda x: 7 - 2 * x, "i-i"),
    "times": (lambda x: x * -3, lambda x: x * -3, "i-i"),
    "nothing": (lambda x: 0 * x, lambda x: 0, "i-i"),
    "shift": (lambda x: x << 1, lambda x: 2 * x, "i-i"),
    "neg": (fnp.negative, operator.neg, "i-i"),
    "min": (fnp.minimum, min, "ii-i"),
    "max": (fnp.maximum, max, "ii-i"),
    "remainder": (lambda x: x % 3, lambda x: x % 3, "i-i"),
    "lt": (fnp.less, operator.lt, "ii-b"),
    "le": (fnp.less_equal, operator.le, "ii-b"),
    "gt": (fnp.greater, operator.gt, "ii-b"),
    "ge": (fnp.greater_equal, operator.ge, "ii-b"),
    "eq": (fnp.equal, operator.eq, "ii-b"),
    "ne": (fnp.not_equal, operator.ne, "ii-b"),
    "and": (fnp.logical_and, lambda x, y: x and y, "bb-b"),
    "or": (fnp.logical_or, lambda x, y: x or y, "bb-b"),
    "not": (fnp.logical_not, operator.not_, "b-b"),
    "where": (fnp.where, lambda c, x, y: x if c else y, "bii-i"),
    "number": (lambda c: c.astype(np.int64), int, "b-i"),
}


@st.composite
def programs(draw):
    """Steps ``(name, places of the operands)``; places 0 and 1 are the inputs."""
    kinds, steps = ["i", "i"], []
    for _ in range(draw(st.integers(1, 6))):
        name = draw(st.sampled_from(sorted(OPERATIONS)))
        operands, _, result = OPERATIONS[name][2].partition("-")
        places = [[i for i, k in enumerate(kinds) if k == kind] for kind in operands]
        if all(places):
            steps.append((name, [draw(st.sampled_from(p)) for p in places]))
            kinds.append(result)
    return steps


def run(steps, how, *inputs):
    values = list(inputs)
    for name, places in steps:
        values.append(OPERATIONS[name][how](*[values[i] for i in places]))
    return values


@given(programs(), RANGES, RANGES)
def test_all_that_is_known_of_a_program_holds(steps, a, b):
    jaxpr = ft.make_jaxpr(lambda x, y: run(steps, 0, x, y))(np.int64(0), np.int64(0))
    first = [Facts(r, v) for r, v in zip((a, b), jaxpr.invars, strict=True)]
    known = ranges_of(jaxpr, first)
    for inputs in product(inside(a), inside(b)):
        given_numbers = dict(zip(jaxpr.invars, inputs, strict=True))
        for v, value in zip(jaxpr.outvars, run(steps, 1, *inputs), strict=True):
            facts = known.get(v) if isinstance(v, Var) else None
            if facts is None:
                continue
            assert value in inside(facts.range)
            if facts.base is not None:
                assert value - facts.scale * given_numbers[facts.base] in inside(facts.shift)
            for other, claim in facts.claims.items():
                assert not value or given_numbers[other] in inside(claim)


def facts_of_one(f, a=(0, 3), b=(-2, 2)):
    jaxpr = ft.make_jaxpr(f)(np.int64(0), np.int64(0))
    names = dict(zip(jaxpr.invars, "ab", strict=True))
    known = ranges_of(jaxpr, [Facts(r, v) for r, v in zip((a, b), jaxpr.invars, strict=True)])
    facts = known[jaxpr.outvars[0]]
    made_of = (names[facts.base], facts.scale, facts.shift) if facts.base is not None else None
    return facts.range, made_of, {names[v]: claim for v, claim in facts.claims.items()}


@pytest.mark.parametrize(
    ("f", "known", "made_of"),
    [
        (lambda a, b: 2 * a - 3, (-3, 3), ("a", 2, (-3, -3))),
        (lambda a, b: 3 - 2 * a, (-3, 3), ("a", -2, (3, 3))),
        (lambda a, b: 5 + a, (5, 8), ("a", 1, (5, 5))),
        (lambda a, b: lax.optimization_barrier(a), (0, 3), ("a", 1, (0, 0))),
        (lambda a, b: (a << 2) + 1, (1, 13), None),
        (lambda a, b: -((a + 1) * 3), (-12, -3), ("a", -3, (-3, -3))),
        (lambda a, b: a + b, (-2, 5), ("a", 1, (-2, 2))),
        (lambda a, b: a * b, (-6, 6), None),
        (lambda a, b: fnp.minimum(a, 5), (0, 3), ("a", 1, (0, 0))),
        (lambda a, b: fnp.maximum(a, 5), (5, 5), None),
        (lambda a, b: fnp.maximum(a, b), (0, 3), None),
        (lambda a, b: fnp.where(b > 0, a, a + 2), (0, 5), ("a", 1, (0, 2))),
        (lambda a, b: fnp.where(b > 0, a, 2 * a), (0, 6), None),
        (lambda a, b: fnp.where(b > 0, a, b), (-2, 3), None),
        (lambda a, b: (a > 5).astype(np.int64), (0, 0), None),
        (lambda a, b: a.astype(np.int8).astype(np.int64), (-128, 127), None),
        (lambda a, b: (a < 5).astype(np.int64), (1, 1), None),
        (lambda a, b: fnp.logical_not(a < 5).astype(np.int64), (0, 0), None),
    ],
)
def test_numbers_are_multiples_of_others_with_a_rest(f, known, made_of):
    assert facts_of_one(f)[:2] == (known, made_of)


@pytest.mark.parametrize(
    ("f", "claims"),
    [
        (lambda a, b: 2 * a < 5, {"a": (LOWEST, 2)}),
        (lambda a, b: 2 * a <= 4, {"a": (LOWEST, 2)}),
        (lambda a, b: 2 * a + 1 > 3, {"a": (2, HIGHEST)}),
        (lambda a, b: 3 * a >= 4, {"a": (2, HIGHEST)}),
        (lambda a, b: 5 - 2 * a >= 0, {"a": (LOWEST, 2)}),
        (lambda a, b: -2 * a < -1, {"a": (1, HIGHEST)}),
        (lambda a, b: -2 * a == b, {"a": (-1, 1), "b": (-6, 0)}),
        (lambda a, b: 3 * a == 6, {"a": (2, 2)}),
        (lambda a, b: a != 2, {}),
        (lambda a, b: a < b, {"a": (LOWEST, 1), "b": (1, HIGHEST)}),
        (lambda a, b: a <= b, {"a": (LOWEST, 2), "b": (0, HIGHEST)}),
        (lambda a, b: a > b, {"a": (-1, HIGHEST), "b": (LOWEST, 2)}),
        (lambda a, b: a == b, {"a": (-2, 2), "b": (0, 3)}),
        (lambda a, b: (a > 0) & (a < 3), {"a": (1, 2)}),
        (lambda a, b: (a > 0) & (b < 1), {"a": (1, HIGHEST), "b": (LOWEST, 0)}),
        (lambda a, b: (a > 0) | (a < 3), {}),
        (lambda a, b: fnp.logical_not(a > 0), {}),
    ],
)
def test_conditions_claim_ranges_of_their_operands(f, claims):
    assert facts_of_one(f)[2] == claims


def test_floats_have_no_range():
    for f in (fnp.isinf, fnp.isnan, fnp.isfinite, fnp.signbit, lambda x: x > np.inf, lambda x: x < 0.5):
        jaxpr = ft.make_jaxpr(f)(0.0)
        known = ranges_of(jaxpr, [Facts()])
        assert all(known[v].range in ((0, 1), UNKNOWN) for v in jaxpr.outvars)
        assert all(known[v] == Facts() for v in known if v.aval.dtype == np.float64)


@pytest.mark.parametrize(
    ("f", "x", "known"),
    [
        (lambda x: x.astype(np.int64), 0.5, UNKNOWN),
        (lambda x: x.astype(np.int64), np.float32(0.5), UNKNOWN),
        (lambda x: x.astype(np.int64), np.uint64(1), UNKNOWN),  # 2**64 - 1 becomes -1
        (lambda x: x.astype(np.uint64).astype(np.int64), np.int64(1), UNKNOWN),
        (lambda x: x.astype(np.int64), np.uint32(1), (0, 2**32 - 1)),
        (lambda x: x.astype(np.int64), np.int32(1), (-(2**31), 2**31 - 1)),
        (lambda x: x.astype(np.int64), np.uint8(1), (0, 255)),
        (lambda x: (x < 0.5).astype(np.int64), 0.5, (0, 1)),
        (lambda x: x < 0.5, 0.5, (0, 1)),
        (lambda x: x < 3, np.int32(1), (0, 1)),
        (lambda x: x < 3, np.uint64(1), (0, 1)),
        (lambda x: fnp.where(x < 0.5, 3, 5), 0.5, (3, 5)),
    ],
)
def test_what_a_number_of_another_dtype_becomes(f, x, known):
    jaxpr = ft.make_jaxpr(f)(x)
    (out,) = jaxpr.outvars
    assert ranges_of(jaxpr, [Facts()])[out].range == known


# --- loops --------------------------------------------------------------------------------------------------

COUNTER = Var(Aval((), np.dtype(np.int64)))


def counting(start, shift, limit=UNKNOWN, rounds=None):
    """A loop that adds a number in the range `shift` while its counter is in the range `limit`."""

    def step(carry):
        return [Facts(combined("add", carry[0].range, shift) or UNKNOWN, COUNTER, 1, shift)]

    return of_loop([COUNTER], [Facts(start)], step, lambda _: [limit], rounds)


@given(RANGES, RANGES, st.integers(-4, 4), st.integers(0, 6), st.integers(0, 4))
def test_counters_reach_all_of_their_range(start, shift, at, width, rounds):
    limit = (at, at + width)
    before, inside_, after = set(inside(start)), set(), set()
    now = set(before)
    for _ in range(rounds):
        begun = now & set(inside(limit))
        inside_ |= begun
        now = {n + s for n in begun for s in inside(shift)}
        before |= now
        after |= now
    found = counting(start, shift, limit, rounds)
    assert before <= set(inside(found.after[0])) | set(inside(found.before[0]))
    assert inside_ <= set(inside(found.inside[0]))
    if start[0] == start[1] and shift == (1, 1) and start[0] in inside(limit) and rounds:
        assert found.inside[0] == ends(inside_)
        assert found.after[0] == (start[0], max(after))


@pytest.mark.parametrize("sign", [1, -1])
def test_a_counter_by_its_rounds_and_by_its_condition(sign):
    def turned(known):
        return known if sign == 1 else (-known[1], -known[0])

    by_rounds = counting((0, 1), turned((1, 2)) if sign == 1 else (-2, -1), rounds=5)
    if sign == 1:
        assert (by_rounds.before, by_rounds.after) == ([(0, 9)], [(0, 11)])
    else:
        assert (by_rounds.before, by_rounds.after) == ([(-8, 1)], [(-10, 1)])
    limit = turned((LOWEST + 1, 9))
    by_condition = counting((0, 0), turned((1, 2)), limit)
    assert by_condition.inside == [turned((0, 9))]
    assert by_condition.after == [turned((0, 11))]
    assert by_condition.most == 10
    assert counting((0, 0), turned((3, 3)), limit).most == 4
    assert counting((0, 0), turned((0, 3)), limit).most is None


def test_a_loop_without_iterations_leaves_its_counter():
    assert counting((2, 3), (1, 1), rounds=0).before == [(2, 3)]
    assert counting((2, 3), (1, 1), rounds=0).after == [(2, 3)]


def test_counters_that_start_far_out_may_wrap():
    assert counting((0, FAR // 2), (1, 1)).after == [(0, FAR)]
    assert counting((0, FAR // 2 + 1), (1, 1)).after == [UNKNOWN]
    assert counting((-FAR // 2, 0), (-1, -1)).after == [(-FAR, 0)]
    assert counting((-FAR // 2 - 1, 0), (-1, -1)).after == [UNKNOWN]
    assert counting((0, 0), (0, LARGEST_STEP)).after == [(0, FAR)]
    assert counting((0, 3), (-1, 0)).after == [(-FAR, 3)]
    assert counting((0, 3), (0, 1)).after == [(0, FAR)]
    assert counting((0, 0), (0, LARGEST_STEP + 1)).after[0][1] == HIGHEST


def test_a_number_that_doubles_leaves_its_limit():
    for sign in (1, -1):

        def step(carry):
            return [Facts(combined("mul", carry[0].range, (2, 2)), COUNTER, 2)]

        limit = (1, 100) if sign == 1 else (-100, -1)
        most = of_loop([COUNTER], [Facts((sign, sign))], step, lambda _, limit=limit: [limit]).most
        assert 7 <= most <= 100  # 1, 2, 4, 8, 16, 32, 64


def test_what_does_not_settle_is_unknown_and_what_does_is_kept():
    def step(carry):
        grown = combined("mul", carry[0].range, (-2, 2)) or UNKNOWN
        return [Facts(grown), Facts(combined("min", combined("add", carry[1].range, (0, 3)), (9, 9)))]

    other = Var(Aval((), np.dtype(np.int64)))
    found = of_loop([COUNTER, other], [Facts((1, 1)), Facts((0, 0))], step)
    assert found.before[0] == UNKNOWN
    assert found.before[1] == (0, 9)

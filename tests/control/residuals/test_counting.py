"""Numbers that count, against the numbers of a loop that runs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as fnp
from functrans.control.bodies.building import JaxprBuilder
from functrans.control.residuals.counting import Count, counted, counts_of, first_of_consecutive
from functrans.core import INT64, Literal, Var
from functrans.core.evaluation import evaluate
from functrans.passes.indices.carry_ranges import in_scan, in_while, step_of
from functrans.passes.indices.int_ranges import LARGEST_STEP, UNKNOWN, Facts

#: How a part of the carry changes; the last ones do not count.
STEPS = {
    "up": lambda i, x: i + 1,
    "up by three": lambda i, x: i + 3,
    "down": lambda i, x: i - 1,
    "down by two": lambda i, x: 2 - (4 - i),
    "in two steps": lambda i, x: (i + 2) - 5,
    "the largest step": lambda i, x: i + LARGEST_STEP,
    "a step beyond": lambda i, x: i + LARGEST_STEP + 1,
    "stays": lambda i, x: i,
    "doubles": lambda i, x: 2 * i,
    "turns": lambda i, x: 3 - i,
    "by a float": lambda i, x: i + x.astype(int),
}
COUNTING = [*STEPS][:6]
#: What is computed from it; the last ones do not count.
VALUES = {
    "itself": lambda i: i,
    "behind": lambda i: i - 4,
    "ahead": lambda i: 7 + i,
    "twice": lambda i: 2 * i,
    "negated": lambda i: 1 - i,
    "remainder": lambda i: i % 3,
    "spread": lambda i: fnp.broadcast_to(i, (2,)),
}
FOLLOWED = [*VALUES][:3]


def body_of(steps):
    def body(c, i, j, x):
        values = [f(k) for k in (i, j) for f in VALUES.values()]
        return [STEPS[steps[0]](i, x), STEPS[steps[1]](j, x), x * 1.5, *values]

    return ft.make_jaxpr(body)(np.float64(1), np.int64(0), np.int64(0), np.float64(0))


@settings(max_examples=40)
@given(st.tuples(*[st.sampled_from([*STEPS])] * 2), st.tuples(*[st.integers(-9, 9)] * 2), st.integers(0, 3))
def test_what_counts_is_its_start_and_a_multiple_of_the_number_of_the_iteration(steps, first, rounds):
    jaxpr = body_of(steps)
    values = jaxpr.outvars[3:]
    limits = [(-5, 5), UNKNOWN, UNKNOWN]
    counts = counts_of(jaxpr, values, 1, limits)
    followed = [
        values[k * len(VALUES) + n] for k in (0, 1) if steps[k] in COUNTING for n in range(len(FOLLOWED))
    ]
    assert set(counts) == set(followed)
    carry = [*first, 0.5]
    for n in range(rounds + 1):
        outs = evaluate(jaxpr, [1.0, *map(np.int64, carry[:2]), carry[2]])
        now = dict(zip(jaxpr.outvars, outs))
        for v, count in counts.items():
            assert now[v] == first[count.carry] + count.step * n + count.shift
            assert count.limits == limits[count.carry]
        carry = outs[:3]


def test_arrays_and_other_dtypes_do_not_count():
    body = lambda i, j, k, x: (i + 1, j + 1, k + fnp.int32(1), x + 1)
    jaxpr = ft.make_jaxpr(body)(np.arange(3), np.int64(0), np.int32(0), 0.0)
    counts = counts_of(jaxpr, [*jaxpr.invars, *jaxpr.outvars], 0, [UNKNOWN] * 4)
    assert set(counts) == {jaxpr.invars[1], jaxpr.outvars[1]}
    assert counts[jaxpr.outvars[1]] == Count(1, 1, 1, UNKNOWN)
    floats = ft.make_jaxpr(lambda x: x + 1.0)(0.0)
    assert counts_of(floats, floats.outvars, 0, [UNKNOWN]) == {}


@pytest.mark.parametrize(
    ("count", "weak", "value"),
    [
        (Count(0, 1, 0, UNKNOWN), False, lambda first, n: first + n),
        (Count(0, -1, 0, UNKNOWN), False, lambda first, n: first - n),
        (Count(0, 3, -2, UNKNOWN), True, lambda first, n: first + 3 * n - 2),
        (Count(0, 2, 0, (0, 7)), False, lambda first, n: min(first + 2 * n, 7)),
        (Count(0, 2, 1, (UNKNOWN[0], 7)), False, lambda first, n: min(first + 2 * n, 7) + 1),
        (Count(0, -2, 5, (-3, 7)), True, lambda first, n: max(first - 2 * n, -3) + 5),
        (Count(0, -2, 0, (UNKNOWN[0], 7)), False, lambda first, n: first - 2 * n),
        (Count(0, 2, 0, (-3, UNKNOWN[1])), False, lambda first, n: first + 2 * n),
    ],
)
def test_the_equations_of_a_number_that_counts(count, weak, value):
    empty = ft.make_jaxpr(lambda i, n: ())(np.int64(0), np.int64(0))
    new = JaxprBuilder(empty)
    v = Var(ft.make_jaxpr(lambda i: i + 1)(0 if weak else np.int64(0)).outvars[0].aval)
    out = counted(new, v, count, *empty.invars)
    assert out.aval == v.aval
    jaxpr = new.finish("a count", [out])
    for first in (-4, 0, 6):
        for n in range(5):
            assert evaluate(jaxpr, [np.int64(first), np.int64(n)]) == [value(first, n)]
    limited = any(e.primitive.name in ("min", "max") for e in jaxpr.eqns)
    assert limited == (count.limits[count.step > 0] not in UNKNOWN)


ARRAYS = {
    "counting": lambda: fnp.arange(5),
    "from three": lambda: fnp.arange(5) + 3,
    "before": lambda: (fnp.arange(5) - 9) + 2,
    "minus first": lambda: 9 - fnp.arange(5),
    "two steps": lambda: 2 * fnp.arange(5),
    "slice": lambda: fnp.arange(9)[2:6],
    "every other": lambda: fnp.arange(9)[2:8:2],
    "slice of rows": lambda: fnp.arange(12).reshape(4, 3)[1:3],
    "rows": lambda: fnp.arange(12).reshape(4, 3),
    "rows and two": lambda: fnp.arange(12).reshape(4, 3) + 2,
    "sum of two": lambda: fnp.arange(5) + fnp.arange(5),
    "of int32": lambda: fnp.arange(5, dtype=np.int32),
    "floats": lambda: fnp.arange(5.0),
    "backward": lambda: fnp.arange(5)[::-1],
    "repeated": lambda: fnp.zeros(5, int),
    "one axis of two": lambda: fnp.broadcast_to(fnp.arange(5), (2, 5)),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_the_first_of_consecutive_integers(name):
    """Of arrays and of traced values; None unless they are known to be consecutive."""
    array = np.asarray(ARRAYS[name]())
    flat = array.ravel()
    consecutive = array.dtype == INT64 and np.array_equal(flat, np.arange(flat[0], flat[0] + flat.size))
    assert first_of_consecutive(array) == (flat[0] if consecutive else None)
    traced = []
    ft.make_jaxpr(lambda: (traced.append(first_of_consecutive(x := ARRAYS[name]())), x)[1])()
    followed = consecutive and name not in ("slice of rows", "rows and two")
    assert traced == [flat[0] if followed else None]


def test_the_first_of_nothing_and_of_numbers():
    assert first_of_consecutive(np.array([], int)) is None
    assert first_of_consecutive(np.array([4])) == 4
    assert first_of_consecutive(np.array(4)) == 4
    assert first_of_consecutive(4.0) is None
    traced = []
    ft.make_jaxpr(lambda x: traced.append(first_of_consecutive(x)) or x)(np.arange(3))
    assert traced == [None]


# --- ranges -------------------------------------------------------------------------------------------------


def test_what_an_iteration_adds():
    jaxpr = body_of(("up by three", "turns"))
    i, j, x = jaxpr.invars[1:]
    assert (step_of(jaxpr, i, 0), step_of(jaxpr, j, 1), step_of(jaxpr, x, 2)) == (3, None, None)
    assert step_of(jaxpr, i, 1) is None
    assert step_of(body_of(("stays", "down")), body_of(("stays", "down")).invars[1], 0) is None


def test_ranges_of_the_carry_of_a_scan():
    def body(c, i, j, x, row):
        return i + 1, fnp.where(row > c, j, row), x + 1.0

    jaxpr = ft.make_jaxpr(body)(*map(np.int64, (0, 0, 0)), 0.0, np.int64(0))
    inputs = [Facts((9, 9)), Facts((2, 4)), Facts((0, 0)), Facts(), Facts((1, 2))]
    known = in_scan(inputs, jaxpr, 5, 1, 3)
    assert known.inside == [(2, 8), (0, 6), UNKNOWN]
    assert known.after == [(2, 9), (0, 6), UNKNOWN]
    # A trip count that is an operand, and rows of which the first number is not known.
    known = in_scan([Facts((0, 5)), *inputs], jaxpr, None, 1, 3)
    assert known.inside[0][0] == 2
    assert known.inside[0][1] > 1 << 40
    assert in_scan([*inputs[:4], Facts()], jaxpr, 5, 1, 3).inside[1] == UNKNOWN
    none = in_scan(inputs, jaxpr, 0, 1, 3)
    assert none.after[0] == (2, 4)
    floats = ft.make_jaxpr(lambda x: x + 1.0)(0.0)
    assert in_scan([Facts()], floats, 5, 0, 1).after == [UNKNOWN]


def test_ranges_of_the_carry_of_a_while_loop():
    cond = ft.make_jaxpr(lambda n, i, x: i < n)(np.int64(0), np.int64(0), 0.0)
    body = ft.make_jaxpr(lambda m, i, x: (i + m, x + 1.0))(np.int64(0), np.int64(0), 0.0)
    inputs = [Facts((4, 10)), Facts((1, 2)), Facts((0, 3)), Facts()]
    known = in_while(inputs, cond, body, 1, 1)
    assert (known.before, known.inside, known.after) == (
        [(0, 11), UNKNOWN],
        [(0, 9), UNKNOWN],
        [(0, 11), UNKNOWN],
    )
    assert known.most == 10


def test_equal_questions_have_equal_answers():
    """Also after so many others that the answers were dropped."""
    jaxpr = body_of(("up by three", "down"))
    i, j = jaxpr.invars[1:3]
    for _ in range(3):
        for n in range(70):
            start = [Facts(), Facts((n, n)), Facts((0, 0)), Facts()]
            assert in_scan(start, jaxpr.replace(outvars=jaxpr.outvars[:3]), 4, 1, 3).after[:2] == [
                (n, n + 12),
                (-4, 0),
            ]
        assert (step_of(jaxpr, i, 0), step_of(jaxpr, j, 1)) == (3, -1)
    assert Literal(np.int64(3)).aval.dtype == INT64

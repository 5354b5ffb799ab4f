"""Indices that loops bound need no test; all others keep theirs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.lowering.loops import ir
from functrans.lowering.loops.builder import StatementBuilder
from functrans.passes.indices.carry_ranges import in_while
from functrans.passes.indices.int_ranges import HIGHEST, LOWEST, Facts, combined, decided
from functrans.runtime.config import config

N = 40
X = np.random.default_rng(2).normal(size=(N, N))
NUMBERS = st.integers(-6, 6)
RANGES = st.tuples(NUMBERS, NUMBERS).map(lambda ends: (min(ends), max(ends)))


def inside(known):
    return range(known[0], known[1] + 1)


@given(RANGES, RANGES)
def test_ranges_hold_all_results(a, b):
    operations = {
        "add": lambda x, y: x + y,
        "sub": lambda x, y: x - y,
        "mul": lambda x, y: x * y,
        "min": min,
        "max": max,
        "irem": lambda x, y: int(np.fmod(x, y)),
        "idiv": lambda x, y: int(x / y),
        "xor": lambda x, y: x ^ y,
        "shl": lambda x, y: x << y,
        "shr": lambda x, y: x >> y,
    }
    for op, f in operations.items():
        known = combined(op, a, b)
        if known is None:
            assert op in ("irem", "idiv", "xor", "shl", "shr")
            continue
        assert all(f(x, y) in inside(known) for x in inside(a) for y in inside(b))


@given(RANGES, RANGES)
def test_comparisons_are_decided_only_if_all_pairs_agree(a, b):
    for op in ("lt", "le", "gt", "ge", "eq", "ne"):
        answers = {getattr(x, f"__{op}__")(y) for x in inside(a) for y in inside(b)}
        answer = decided(op, a, b)
        assert answer is None or answers == {answer}
        if op in ("lt", "ge", "gt", "le"):
            assert answer is not None or len(answers) == 2


def test_numbers_that_wrap_have_no_range():
    assert combined("add", (0, HIGHEST), (1, 1)) is None
    assert combined("mul", (LOWEST, 0), (-1, 1)) is None
    assert combined("shl", (0, 1 << 61), (0, 2)) is None


def test_a_difference_and_what_it_lacks():
    b = StatementBuilder("k")
    x = b.buffer("x", ir.INT64, (2,), "in")
    first, last = b.load(x, (0,)), b.load(x, (1,))
    assert ((last - first) + first).operand is last.operand
    assert (first + (last - first)).operand is last.operand
    assert (last + (last - first)).operand is not first.operand
    assert ((last + first) - first).operand is last.operand
    assert ((last + first) - last).operand is first.operand
    assert (last - (last - first)).operand is first.operand
    assert (last - last).operand == ir.Extent(0)
    assert (first - (last - first)).operand is not first.operand


def checks(f, *args):
    return ft.jit(f).lower(*args).as_text("python").count("status |=")


def forwards(x):
    return lax.fori_loop(1, N, lambda i, x: x.at[i, N - i].set(fnp.sin(x[i - 1, -i])), x)


def unrolled(x):
    def step(x, i):
        return x.at[i].set(x[N - 1 - i] * 0.5), x[-1, i]

    return lax.scan(step, x, fnp.arange(N), reverse=True, unroll=3)


def in_triangles(x):
    """Bounds known only at run time, within those of the loops around."""

    def column(j, s):
        i, x = s
        return i, x.at[i, j].add(x[j, i] * x[i, j - 1])

    return lax.fori_loop(0, N, lambda i, x: lax.fori_loop(i + 1, N, column, (i, x))[1], x)


def remainders(x):
    return lax.fori_loop(0, 3 * N, lambda i, x: x.at[i % N, 0].add(x[(i * 7) % N, i % 3]), x)


def by_twos(x):
    return lax.scan(lambda x, i: (x.at[i, i + 1].set(x[i - 2, 0]), None), x, fnp.arange(2, N, 2))[0]


def in_blocks(x):
    """A scan over rows of integers, with others over their elements inside."""

    def block(x, rows):
        i, j = rows
        return lax.scan(lambda x, k: (x.at[k, k - 3].add(x[k - 1, 0]), k), x, i)[0], j[2]

    places = fnp.arange(N).reshape(8, 5)
    x, ends = lax.scan(block, x, (places, 2 * places[:, 1:] - N))
    return x + ends[0], ends


def with_checkpoints(x):
    return lax.scan(lambda x, i: (x.at[i].add(x[i - 1]), None), x, fnp.arange(1, N), checkpoint_every=6)[0]


@pytest.mark.parametrize(
    "f", [forwards, unrolled, in_triangles, remainders, by_twos, in_blocks, with_checkpoints]
)
def test_loops_bound_their_indices(f):
    assert checks(f, X) == 0
    with ft.disable_jit():
        expected = f(X)
    for backend in ("python", "llvm"):
        with config.patch(backend=backend):
            np.testing.assert_allclose(ft.jit(lambda x: f(x))(X)[0], expected[0], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("start", "stop", "at"), [(0, N + 1, N), (-N - 1, 3, -N - 1), (1, N + 1, N)])
def test_loops_that_leave_the_array_raise(start, stop, at):
    def known(x):
        return lax.fori_loop(start, stop, lambda i, x: x.at[i].set(0.0), x)

    def unknown(x, first, last):
        return lax.fori_loop(first, last, lambda i, x: x.at[i].set(0.0), x)

    assert checks(known, X)
    for f, args in ((known, ()), (unknown, (start, stop))):
        with pytest.raises(ft.errors.IndexOutOfBoundsError, match=f"index {at} is out of bounds"):
            ft.jit(f)(X, *args)


def test_counters_that_are_read_later_or_run_backwards():
    def f(x, n):
        i, total = lax.fori_loop(n, 2 * n, lambda i, s: (i, s[1] + x[i % N, i // 3]), (0, 0.0))

        def step(s):
            return s[0] + 1, s[1] + x[s[0], 0]

        last, more = lax.while_loop(lambda s: s[0] < n, step, (2, total))
        return i, last, more, lax.fori_loop(n, n - 3, lambda i, t: t + x[i, i], more)

    with ft.disable_jit():
        expected = f(fnp.asarray(X), 20)
    for x, y in zip(ft.jit(f)(X, 20), expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-13)
    slope = ft.jit(ft.grad(lambda x, n: f(x, n)[3]))(X, 20)
    assert slope.shape == X.shape
    np.testing.assert_allclose(np.sum(slope), 20 + 18)


@pytest.mark.parametrize("inner", [False, True])
def test_a_loop_that_fails_ends(inner):
    """Without the index that fails it would run for ever; the rows of inner loops are read in any order."""

    def body(s):
        i, x = s
        if inner:
            x = x.at[i // N].set(fnp.sin(x[fnp.arange(N) + i, 0]))
        return i + 1, x.at[i % N, i].set(0.0)

    f = ft.jit(lambda x: lax.while_loop(lambda s: s[1][0, 0] < 10, body, (0, x)))
    with pytest.raises(ft.errors.IndexOutOfBoundsError, match=f"index {N} is out of bounds"):
        f(X)


def insertion(x):
    """Only the index after the inner loop is unknown."""

    def step(i, x):
        key = x[i]

        def body(s):
            j, x = s
            return j - 1, x.at[j + 1].set(x[j])

        j, x = lax.while_loop(lambda s: (s[0] >= 0) & (s[1][fnp.maximum(s[0], 0)] > key), body, (i - 1, x))
        return x.at[j + 1].set(key)

    return lax.fori_loop(1, N, step, x)


def growing(x):
    """A bound that is a constant of the loop, and a second counter that only the first one bounds."""
    stop = fnp.minimum(fnp.sum(x > 0), N)

    def body(s):
        i, j, x = s
        return i + 1, j + 2, x.at[i].set(x[j] + x[i])

    return lax.while_loop(lambda s: (s[0] < stop) & (s[1] <= N - 1), body, (0, 1, x))[2]


def test_all_of_a_condition_is_evaluated():
    """The numbers that end a loop are an index too, and Python is called as often."""
    seen = []

    def f(x, step):
        def going(s):
            last = ft.pure_callback(lambda i: seen.append(int(i)) or i, np.int64(0), s[0])
            return (s[0] >= 0) & (x[s[0]] + 0 * last > -100)

        return lax.while_loop(going, lambda s: (s[0] - step, s[1] + 1), (N - 1, 0))

    for step, expected in ((30, (-21, 2)), (41, None)):
        seen.clear()
        if expected is None:
            with pytest.raises(ft.errors.IndexOutOfBoundsError, match=r"x\[s\[0\]\]"):
                ft.jit(f)(X[0], step + 39)
        else:
            assert tuple(map(int, ft.jit(f)(X[0], step))) == expected
            assert seen == [39, 9, -21]


def in_a_heap(x):
    """A child of a node: a number that doubles, with a bound of its own."""

    def child(i):
        j = fnp.minimum(2 * i + 1, x.size - 2)
        return j + fnp.where(x[j + 1] < x[j], 1, 0)

    def body(s):
        i, x = s
        return child(i), x.at[i].set(x[child(i)])

    return lax.while_loop(lambda s: (2 * s[0] + 1 < x.size) & (x[child(s[0])] < 5.0), body, (0, x))[1]


def partition(x):
    """A number that grows in some iterations of a loop, and is an index after it."""

    def step(j, s):
        return lax.cond(x[j] < 0, lambda i, x: (i + 1, x.at[i].set(x[j])), lambda i, x: (i, x), *s)

    i, x = lax.fori_loop(0, N - 1, step, (0, x))
    return x.at[i].set(x[-1])


def merged(x):
    """Two numbers in a loop, of which an inner loop moves one."""

    def step(i, s):
        j, x = s
        j = lax.while_loop(lambda j: (j < N - 1) & (x[j] < x[i]), lambda j: j + 1, j)
        return j, x.at[i].add(x[j])

    return lax.fori_loop(0, N, step, (0, x))[1]


def periodic(x):
    return lax.fori_loop(0, N, lambda i, x: x.at[i - 1].add(x[i - 2]), x)


def test_a_condition_on_a_multiple_decides_which_of_two_numbers_is_smaller():
    """The number of the last node with two children bounds both; nothing is left of the minimum."""
    text = ft.jit(in_a_heap).lower(X[0, : N - 1]).as_text("python")
    assert "min(" not in text
    assert "status |=" not in text


@pytest.mark.parametrize(
    ("f", "count"),
    [(insertion, 0), (growing, 0), (in_a_heap, 0), (partition, 0), (merged, 0), (periodic, 0)],
)
def test_conditions_bound_indices(f, count):
    assert checks(f, X[0]) == count
    with ft.disable_jit():
        expected = f(fnp.asarray(X[0]))
    for backend in ("python", "llvm"):
        with config.patch(backend=backend):
            np.testing.assert_array_equal(ft.jit(lambda x: f(x))(X[0]), expected)


def test_counters_that_could_wrap_have_no_range():
    def f(x, start):
        def body(s):
            i, x = s
            return i + (1 << 62), x.at[i].set(0.0)

        return lax.while_loop(lambda s: s[0] != 5, body, (fnp.maximum(start, 0), x))

    with pytest.raises(ft.errors.IndexOutOfBoundsError, match="out of bounds"):
        ft.jit(f)(X[0], 3)


STEPS = {
    "down": lambda i, j: i - 1,
    "up by one or two": lambda i, j: i + 1 + fnp.where(j > 3, 1, 0),
    "double": lambda i, j: fnp.minimum(2 * i + 1, 50),
    "a child": lambda i, j: 2 * i + 1 + fnp.where(j > 3, 1, 0),
    "mirrored": lambda i, j: 9 - i,
    "mirrored and stretched": lambda i, j: -3 * i - fnp.where(j > 0, 2, 1),
    "other": lambda i, j: j,
    "remainder": lambda i, j: (i + 7 * j) % 11,
    "product": lambda i, j: i * j,
    "shift": lambda i, j: (i & 15) << (j & 3),
    "either": lambda i, j: lax.cond(j > i, lambda i: i + 2, lambda i: i, i),
    "inner": lambda i, j: lax.fori_loop(0, 3, lambda k, i: i + (k + j) % 2, i),
}
TESTS = {
    "below": lambda i, j: i < 20,
    "between": lambda i, j: (i >= 0) & (j + 2 <= 9),
    "unequal": lambda i, j: i != 13,
    "two": lambda i, j: (2 * i < 30) & (j > -5),
    "multiples": lambda i, j: (2 * i + 1 < 30) & (7 - 3 * j >= -50) & (i << 1 > -21),
}


@given(*[st.sampled_from(sorted(STEPS))] * 2, st.sampled_from(sorted(TESTS)), NUMBERS, NUMBERS)
def test_ranges_of_a_loop_hold_all_its_numbers(one, other, test, i, j):
    def body(i, j):
        return STEPS[one](i, j), STEPS[other](j, i)

    def loop(i, j):
        return lax.while_loop(lambda s: TESTS[test](*s), lambda s: body(*s), (i, j))

    jaxpr = ft.make_jaxpr(loop)(np.int64(i), np.int64(j))
    (params,) = [e.params for e in jaxpr.eqns if e.primitive.name == "while"]
    first = [Facts((i, i)), Facts((j, j))]
    before, inside, _, most = in_while(first, **params)
    for done in range(30):
        assert all(n in range(r[0], r[1] + 1) for n, r in zip((i, j), before, strict=True))
        if not TESTS[test](np.int64(i), np.int64(j)):
            break
        assert most is None or done < most
        assert all(n in range(r[0], r[1] + 1) for n, r in zip((i, j), inside, strict=True))
        with ft.disable_jit():
            i, j = map(int, body(np.int64(i), np.int64(j)))
        if max(abs(i), abs(j)) > 1 << 30:
            break


def test_indices_from_the_end_in_a_loop():
    """Of an unknown sign, read and written, inside the array and outside."""

    def f(x, places):
        def step(x, k):
            before = x[k]
            return x.at[k].add(x[-k - 1]), before

        return lax.scan(step, x, places)

    jitted = ft.jit(f)
    places = np.random.default_rng(1).integers(-N, N, 50)
    y, seen = X[0].copy(), []
    for k in places:
        seen.append(y[k])
        y[k] += y[-k - 1]
    got = jitted(X[0], places)
    np.testing.assert_allclose(got[0], y, rtol=1e-14)
    np.testing.assert_allclose(got[1], seen, rtol=1e-14)
    for bad in (N, -N - 1):
        places[30] = bad
        with pytest.raises(ft.errors.IndexOutOfBoundsError, match=f"index {bad} is out of bounds"):
            jitted(X[0], places)

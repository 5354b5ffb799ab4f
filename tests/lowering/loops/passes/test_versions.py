"""Loops whose indices are tested before them do and raise what they would if each iteration tested its own."""

import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.lowering.jaxpr.simplify import simplify
from functrans.lowering.loops.check import verify
from functrans.lowering.loops.from_jaxpr.aliasing import schedule
from functrans.lowering.loops.from_jaxpr.build_loops import build_loops
from functrans.lowering.loops.passes.versions import with_versions
from functrans.lowering.loops.show import show
from functrans.runtime.config import config

N = 11
X = np.random.default_rng(7).normal(size=N)
BITS = 1 << 64
SMALL = st.integers(-14, 14)
LARGE = st.builds(lambda near, x: near + x, st.sampled_from([2**62, 2**63 - 16, 16 - 2**63, -(2**62)]), SMALL)
NUMBERS = SMALL | LARGE | st.sampled_from([2**61, 2**60 + 1, 3 << 61])
BACKENDS = ("llvm", "python")


def text_of(f, *args):
    return ft.jit(f).lower(*args).as_text("python")


def linear(x, start, stop, step, first):
    """Indices that are a linear function of the loop's number, with numbers that only the call knows."""
    return lax.fori_loop(start, stop, lambda k, y: y.at[k * step + first].add(x[first + step * k] * k), x)


def upwards_and_downwards(x, start, stop, step, first):
    """Several indices in one loop, and one that must not be tested where its branch is not taken."""

    def body(k, y):
        y = y.at[first - k * step].set(y[k + first] + 1.0)
        return lax.cond(y[first + k] > 5.0, lambda y: y.at[k - 2 * first].set(0.0), lambda y: y, y)

    return lax.fori_loop(start, stop, body, x)


def by_one(x, start, stop, step, first):
    """Indices that grow by a number that is known."""
    return lax.fori_loop(start, stop, lambda k, y: y.at[0].add(x[first + k] * step), x)


def in_int64(number):
    return (number + BITS // 2) % BITS - BITS // 2


def at(index):
    index = in_int64(index)
    if not -N <= index < N:
        raise IndexError(f"index {index} is out of bounds")
    return index


def linear_by_hand(x, start, stop, step, first):
    y = x.copy()
    for k in range(start, stop):
        y[at(k * step + first)] += x[at(k * step + first)] * k
    return y


def upwards_and_downwards_by_hand(x, start, stop, step, first):
    y = x.copy()
    for k in range(start, stop):
        new = y[at(k + first)] + 1.0
        y[at(first - k * step)] = new
        if y[at(first + k)] > 5.0:
            y[at(k - 2 * first)] = 0.0
    return y


def by_one_by_hand(x, start, stop, step, first):
    y = x.copy()
    for k in range(start, stop):
        y[0] += x[at(first + k)] * step
    return y


COMPILED = {
    (f, backend): config.patch(backend=backend)(ft.jit(lambda *args, f=f: f(*args)))
    for f in (linear, upwards_and_downwards, by_one)
    for backend in BACKENDS
}


def agree(f, by_hand, *args):
    try:
        expected, message = by_hand(X, *args), None
    except IndexError as error:
        expected, message = None, str(error)
    for backend in BACKENDS:
        call = COMPILED[f, backend]
        numbers = [np.int64(a) for a in args]
        if message is None:
            np.testing.assert_allclose(call(X, *numbers), expected, rtol=1e-12)
        else:
            with pytest.raises(ft.errors.IndexOutOfBoundsError, match=message):
                call(X, *numbers)


CASES = {
    "inside": (0, N, 1, 0),
    "backwards": (0, N, -1, N - 1),
    "from the end": (0, N, 1, -N),
    "some from the end": (0, N, 1, -3),
    "all but the first": (-1, N, 1, 0),
    "all but the first, which is too large": (0, 12, -1, N),
    "one in the middle": (0, 5, 3, 2),
    "all but the last": (0, N + 1, 1, 0),
    "none": (5, 9, 1, 2 * N),
    "the same": (2, 40, 0, 3),
    "the same, outside": (2, 40, 0, N),
    "empty": (3, 3, 1, 50),
    "empty, with ends that are inside": (9, 2, 1, 0),
    "empty, at the limits": (2**63 - 1, -(2**63), 1, 0),
    "every second one": (0, 6, 2, 0),
    "every second one, too far": (0, 7, 2, 0),
    "the middle wraps round": (0, 5, 2**62, 0),
    "the middle wraps round twice": (0, 9, 2**61, 3),
    "a product wraps round, and is inside": (2**61, 2**61 + 8, 8, 4 - 4 * 8),
    "a number near the upper limit": (2**63 - 9, 2**63 - 1, 1, in_int64(-(2**63) + 10)),
    "a number near the lower limit": (-(2**63), -(2**63) + 9, 1, -(2**63)),
    "beyond the upper limit": (0, 15, 1, 2**63 - 1),
    "a large step": (0, 2, 2**62 + 5, 1),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    ("f", "by_hand"),
    [
        (linear, linear_by_hand),
        (upwards_and_downwards, upwards_and_downwards_by_hand),
        (by_one, by_one_by_hand),
    ],
)
def test_loops_at_the_ends_of_arrays_and_of_integers(f, by_hand, name):
    agree(f, by_hand, *CASES[name])


@given(NUMBERS, st.integers(-2, 15), NUMBERS, NUMBERS)
@example(0, 5, 1, 5)
def test_random_bounds_and_steps(start, count, step, first):
    stop = min(start + count, 2**63 - 1)
    agree(linear, linear_by_hand, start, stop, step, first)
    agree(upwards_and_downwards, upwards_and_downwards_by_hand, start, stop, step, first)


@pytest.mark.parametrize(("step", "first"), [(1, 2**61 + 2), (3, in_int64(3 * 2**61 + 2))])
def test_loops_of_very_many_iterations_leave_at_the_first_that_fails(step, first):
    with pytest.raises(ft.errors.IndexOutOfBoundsError, match="index 11 is out of bounds"):
        COMPILED[linear, "llvm"](X, *map(np.int64, (-(2**61), 2**62, step, first)))


def test_loops_of_more_iterations_than_int64_has_numbers():
    """Both the first and the last index are in bounds, all others are not."""

    def f(x, start, stop, first):
        def body(s):
            return s[0] + 1, s[1].at[s[0] + first].set(0.0)

        return lax.while_loop(lambda s: s[0] < stop, body, (start, x))[1]

    numbers = -(2**63), 2**63 - 1, in_int64(2**63 + 2)
    assert "else:" in text_of(f, X, *map(np.int64, numbers))
    with pytest.raises(ft.errors.IndexOutOfBoundsError, match="index 11 is out of bounds"):
        ft.jit(f)(X, *map(np.int64, numbers))


def test_one_version_has_no_tests():
    text = text_of(linear, X, 0, 5, 1, 0)
    first, second = text.split("    else:\n", 1)
    assert "status |=" not in first
    assert "for " in first
    assert second.count("status |=") == 2
    assert second.count("for ") == 1
    assert "else:" not in text_of(upwards_and_downwards, X, 0, 5, 1, 0).split("else:", 1)[0]


def test_it_is_a_pass_between_two_sound_kernels():
    jaxpr = simplify(ft.make_jaxpr(linear)(X, 0, 5, 1, 0).jaxpr)
    loops = build_loops(schedule(jaxpr))
    verify(loops.kernel)
    before = show(loops.kernel)
    with config.patch(without={"versions"}):
        assert show(with_versions(loops.kernel, loops.facts)) == before
    assert before.count("fail ") == 2
    assert "else:" not in before
    verify(with_versions(loops.kernel, loops.facts))
    first, second = show(loops.kernel).split("\nelse:\n")
    assert "fail " not in first
    assert second.count("fail ") == 2


def test_it_shares_what_stands_before_the_loop():
    """The last index of the loop is a number that was computed before."""

    def f(x, first):
        y = x.at[8 + first].set(0.0)
        return lax.fori_loop(0, 9, lambda k, y: y.at[k + first].add(1.0), y)

    assert text_of(f, X, 1).count("= 8 + ") == 1


def triangle(x):
    """What a loop starts from is subtracted again: the least index is known."""

    def row(i, x):
        return lax.fori_loop(i + 1, N, lambda j, x: x.at[j - i - 1].add(x[j - i]), x)

    return lax.fori_loop(0, N - 1, row, x)


def other_triangle(x):
    """The greatest number of the loop is subtracted from what it follows from."""

    def row(i, x):
        return lax.fori_loop(0, i, lambda j, x: x.at[i - j - 1].add(x[i - j]), x)

    return lax.fori_loop(0, N, row, x)


def from_a_product(x):
    def row(i, x):
        return lax.fori_loop(3 * i, N, lambda j, x: x.at[j - 3 * i].add(x[j]), x)

    return lax.fori_loop(0, 4, row, x)


@pytest.mark.parametrize("f", [triangle, other_triangle, from_a_product])
def test_what_the_bounds_of_the_loop_decide_needs_one_version(f):
    text = text_of(f, X)
    assert "status |=" not in text
    assert "else:" not in text
    with ft.disable_jit():
        expected = f(fnp.asarray(X))
    np.testing.assert_allclose(ft.jit(f)(X), expected, rtol=1e-12)


def test_the_first_iteration_that_fails_is_named():
    """Of two indices the second one leaves the array first; the state before it is that of the other iterations."""
    seen = []

    def f(x, first, second):
        def body(k, y):
            return y.at[k + first].set(x[k + second])

        return lax.fori_loop(0, 9, body, x)

    def called(x, first):
        def body(k, y):
            ft.debug.callback(lambda k: seen.append(int(k)), k)
            return y.at[k + first].set(0.0)

        return lax.fori_loop(0, 9, body, x)

    for first, second, index in ((8, 5, 11), (5, 8, 11), (-12, 0, -12), (0, -14, -14), (3, 12, 12)):
        with pytest.raises(
            ft.errors.IndexOutOfBoundsError, match=re.escape(f"index {index} is out of bounds")
        ):
            ft.jit(f)(X, first, second)
        with ft.disable_jit(), pytest.raises(ft.errors.IndexOutOfBoundsError, match=f"index {index} is out"):
            f(fnp.asarray(X), first, second)
    with pytest.raises(ft.errors.IndexOutOfBoundsError, match="index 11 is out of bounds"):
        ft.jit(called)(X, 6)
    assert seen == list(range(6))


def test_reversed_loops_rows_and_derivatives():
    def f(x, first):
        def step(carry, k):
            carry = carry.at[first + 2 * k].add(fnp.sin(carry[first + 2 * k + 1]))
            return carry, carry[first + k]

        return lax.scan(step, x, fnp.arange(5), reverse=True)

    def loss(x, first):
        y, rows = f(x, first)
        return fnp.sum(y * y) + fnp.sum(rows)

    for first in (0, 1, -1, -N):
        with ft.disable_jit():
            expected, slope = f(fnp.asarray(X), first), ft.grad(loss)(fnp.asarray(X), first)
        for x, y in zip(ft.jit(f)(X, first), expected, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-13)
        np.testing.assert_allclose(ft.jit(ft.grad(loss))(X, first), slope, rtol=1e-12)
    with pytest.raises(ft.errors.IndexOutOfBoundsError, match="index 11 is out of bounds"):
        ft.jit(f)(X, 2)


def test_lanes_with_bounds_of_their_own():
    firsts, stops = np.array([0, 3, -4, 2, 0]), np.array([9, 8, 9, 0, 11])

    def f(x, first, stop):
        return lax.fori_loop(0, stop, lambda k, y: y.at[first + k].add(x[first + k]), x)

    got = ft.jit(ft.vmap(f, (None, 0, 0)))(X, firsts, stops)
    for y, first, stop in zip(got, firsts, stops, strict=True):
        np.testing.assert_allclose(y, _once(first, stop))
    with pytest.raises(ft.errors.IndexOutOfBoundsError, match="index 11 is out of bounds"):
        ft.jit(ft.vmap(f, (None, 0, 0)))(X, firsts, stops + 1)


def _once(first, stop):
    y = X.copy()
    for k in range(stop):
        y[first + k] += X[first + k]
    return y


def random_loops(rng):
    """Two loops, one in the other; indices and bounds are sums of multiples of their numbers and of a third one."""

    def multiple(*numbers):
        terms = [(int(rng.integers(-2, 3)), n) for n in numbers if rng.random() < 0.7]
        return terms, int(rng.integers(-3, 8))

    def bound(*numbers):
        return [(int(rng.integers(-1, 3)), n) for n in numbers if rng.random() < 0.4], int(rng.integers(0, 9))

    places = [multiple("i", "j", "a") for _ in range(4)]
    outer, ends = multiple("i", "a"), [bound("a"), bound("i", "a"), bound("i", "a")]
    reads_only, branches, reverse = rng.random(3) < 0.4

    def value(terms, numbers):
        terms, number = terms
        return sum((factor * numbers[n] for factor, n in terms), number)

    def inner(numbers, x, read, write, when):
        """One iteration, of functions that read and write an element."""
        at = [value(p, numbers) for p in places]
        t = read(x, at[0]) + 0.5 * read(x, at[1])
        if branches:
            return when(t > 0.0, lambda x: write(x, at[2], t), lambda x: write(x, at[3], -t), x)
        return write(x, at[2], 0.0 * t if reads_only else t)

    def traced(x, a):
        def when(test, yes, no, x):
            return lax.cond(test, yes, no, x)

        def write(x, i, t):
            return x.at[i].add(0.1 * t)

        def row(i, x):
            def element(j, x):
                j = (
                    value(ends[1], {"i": i, "a": a}) + value(ends[2], {"i": i, "a": a}) - 1 - j
                    if reverse
                    else j
                )
                return inner({"i": i, "j": j, "a": a}, x, lambda x, i: x[i], write, when)

            numbers = {"i": i, "a": a}
            x = lax.fori_loop(value(ends[1], numbers), value(ends[2], numbers), element, x)
            return x.at[value(outer, numbers)].add(1.0)

        return lax.fori_loop(0, value(ends[0], {"a": a}), row, x)

    def by_hand(x, a):
        x = x.copy()

        def write(x, i, t):
            x[at(i)] += 0.1 * t
            return x

        for i in range(value(ends[0], {"a": a})):
            numbers = {"i": i, "a": a}
            start, stop = value(ends[1], numbers), value(ends[2], numbers)
            for j in range(start, stop):
                numbers["j"] = start + stop - 1 - j if reverse else j
                inner(numbers, x, lambda x, i: x[at(i)], write, lambda t, yes, no, x: yes(x) if t else no(x))
            x[at(value(outer, numbers))] += 1.0
        return x

    return traced, by_hand


@pytest.mark.parametrize(
    "seed", [*range(12), *[pytest.param(s, marks=pytest.mark.slow) for s in range(12, 100)]]
)
def test_random_loops_in_loops(seed):
    """Each program is compiled once, and runs with numbers for which it fails and others."""
    rng = np.random.default_rng(seed)
    traced, by_hand = random_loops(rng)
    compiled = [config.patch(backend=b)(ft.jit(lambda *x: traced(*x))) for b in BACKENDS]
    for a in range(-3, 8):
        try:
            expected, message = by_hand(X, a), None
        except IndexError as error:
            expected, message = None, str(error)
        for call in compiled:
            if message is None:
                np.testing.assert_allclose(call(X, a), expected, rtol=1e-12, atol=1e-12)
            else:
                with pytest.raises(ft.errors.IndexOutOfBoundsError, match=re.escape(message)):
                    call(X, a)

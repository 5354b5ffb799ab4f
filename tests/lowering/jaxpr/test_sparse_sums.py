"""Sums of mostly zero arrays: the same numbers, and only for what is zero."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.lowering.host.explain_failure import evaluate_on_host
from functrans.lowering.jaxpr.simplify import simplify

N = 40
X = np.arange(1.0, 9.0)


def names(f, *args, strict=False):
    return [e.primitive.name for e in simplify(ft.make_jaxpr(f)(*args), strict=strict).eqns]


def windows(x, count=6, value=0.0, edges=(), total=None):
    """A sum of windows of two elements each in an array of `N`."""
    total = fnp.zeros(N) if total is None else total
    for i in range(count):
        low = dict(edges).get(i, 3 * i)
        total = total + lax.pad(x[i : i + 2], value, [(low, N - 2 - low, 0)])
    return total


def by_numpy(x, count=6, value=0.0, edges=(), total=None):
    total = np.zeros(N) if total is None else np.array(total)
    for i in range(count):
        low = dict(edges).get(i, 3 * i)
        row = np.full(N, value)
        kept = slice(max(low, 0), min(low + 2, N))
        row[kept] = x[i : i + 2][kept.start - low : kept.stop - low]
        total = total + row
    return total


@pytest.mark.parametrize(
    ("options", "gathered"),
    [
        ({}, True),
        ({"count": 3}, False),
        ({"value": 1.0}, False),
        ({"value": np.nan}, False),
        ({"edges": ((0, -1),)}, False),
        ({"edges": ((5, N - 1),)}, False),
        ({"edges": ((3, 0), (4, 1))}, True),
        ({"total": np.arange(1.0 * N)}, True),
    ],
)
def test_windows_are_added_to_one_array(options, gathered):
    found = ft.jit(lambda x: windows(x, **options))(X)
    np.testing.assert_array_equal(found, by_numpy(X, **options))
    whole = "edges" not in options or gathered
    assert ("sum_of_windows" in names(lambda x: windows(x, **options), X)) == (gathered if whole else True)
    assert "sum_of_windows" not in names(lambda x: windows(x, **options), X, strict=True)
    with ft.config.patch(strict=True):
        np.testing.assert_array_equal(ft.jit(lambda x: windows(x, **options))(X), by_numpy(X, **options))


@pytest.mark.parametrize(("width", "gathered"), [(1, True), (10, True), (11, False), (25, False)])
def test_windows_of_a_quarter_of_the_array_are_gathered(width, gathered):
    x = np.arange(1.0, 40.0)

    def f(x):
        total = fnp.zeros(N)
        for i in range(6):
            total = total + lax.pad(x[i : i + width], 0.0, [(2 * i, N - width - 2 * i, 0)])
        return total

    assert ("sum_of_windows" in names(f, x)) == gathered
    expected = np.zeros(N)
    for i in range(6):
        expected[2 * i : 2 * i + width] += x[i : i + width]
    np.testing.assert_array_equal(ft.jit(f)(x), expected)


def test_sums_that_are_read_meanwhile_stay():
    def f(x):
        first = windows(x, 3)
        return windows(x[1:], 5, total=first), first * 2.0

    for a, b in zip(
        ft.jit(f)(X), (by_numpy(X[1:], 5, total=by_numpy(X, 3)), 2 * by_numpy(X, 3)), strict=True
    ):
        np.testing.assert_array_equal(a, b)


# --- additions in place -------------------------------------------------------------------------------------

PLACES = np.array([5, 9, 5])


def scattered(v, places=PLACES):
    """Zeros but for some elements; with array indices, unlike with numbers, it is a scatter."""
    return fnp.zeros(N).at[places].add(v[: len(places)])


def put_back(x, v):
    """A window is cleared, twice something is added, and the window is filled: as derivatives of an update do."""
    cleared = lax.dynamic_update_slice(x, fnp.zeros(4), (3,)) + scattered(v).at[PLACES + 20].add(v[:3])
    return cleared + scattered(v[1:], PLACES + 1) + lax.pad(v[3:7], 0.0, [(3, N - 7, 0)])


def put_back_by_numpy(x, v):
    x = x.copy()
    x[3:7] = v[3:7]
    for places, values in ((PLACES, v), (PLACES + 20, v), (PLACES + 1, v[1:])):
        np.add.at(x, places, values[:3])
    return x


def read_before_it_is_filled(x, v):
    cleared = lax.dynamic_update_slice(x, fnp.zeros(4), (3,)) + scattered(v)
    return cleared + lax.pad(v[3:7], 0.0, [(3, N - 7, 0)]), cleared


#: Functions; the same in NumPy; how many additions of whole arrays are left, and how many scatters.
ADDITIONS = {
    "one": (lambda x, v: x + scattered(v), lambda x, v: x + by_places(v), 0, 1),
    "the term first": (lambda x, v: scattered(v) + x, lambda x, v: x + by_places(v), 0, 1),
    "two": (
        lambda x, v: x + scattered(v).at[PLACES + 2].add(v[:3]),
        lambda x, v: x + by_places(v) + by_places(v, PLACES + 2),
        0,
        2,
    ),
    "in another shape": (
        lambda x, v: x + fnp.zeros((4, 10)).at[PLACES % 4, PLACES].add(v[:3]).reshape(N),
        lambda x, v: x + by_places(v, PLACES % 4 * 10 + PLACES),
        0,
        1,
    ),
    "on one another": (
        lambda x, v: (x + scattered(v)) + scattered(v[1:]),
        lambda x, v: x + by_places(v) + by_places(v[1:]),
        0,
        2,
    ),
    "onto what is no zeros": (
        lambda x, v: x + fnp.ones(N).at[PLACES].add(v[:3]),
        lambda x, v: x + 1 + by_places(v),
        1,
        1,
    ),
    "a term that is a result": (
        lambda x, v: (lambda t: (x + t, t))(scattered(v)),
        lambda x, v: (x + by_places(v), by_places(v)),
        1,
        1,
    ),
    "a term that is read twice": (
        lambda x, v: (lambda t: (x + t) * t)(scattered(v)),
        lambda x, v: (x + by_places(v)) * by_places(v),
        1,
        1,
    ),
    "a window that is filled": (put_back, put_back_by_numpy, 0, 3),
    "what is read before it is filled": (
        read_before_it_is_filled,
        lambda x, v: tuple(
            [np.r_[x[:3], own, x[7:]] + by_places(v) for own in (v[3:7], np.zeros(4))],
        ),
        1,
        1,
    ),
}


def by_places(v, places=PLACES):
    out = np.zeros(N)
    np.add.at(out, places, v[: len(places)])
    return out


@pytest.mark.wide(1)
@pytest.mark.parametrize("name", ADDITIONS)
def test_scatters_of_zeros_are_added_in_place(name):
    f, by_numpy_, additions, scatters = ADDITIONS[name]
    x, v = np.arange(1.0, N + 1), np.arange(8.0) + 100.0
    with ft.config.patch(verify=True):
        simple = simplify(ft.make_jaxpr(f)(x, v))
    made = [e.primitive.name for e in simple.eqns if e.outvars[0].aval.shape == (N,)]
    assert (made.count("add"), names(f, x, v).count("scatter_add")) == (additions, scatters)
    assert names(f, x, v, strict=True).count("add") >= 1
    expected = by_numpy_(x, v)
    found = evaluate_on_host(simple, [x, v])
    for a, b in zip(found, expected if isinstance(expected, tuple) else [expected], strict=True):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(*map(ft.tree_util.tree_leaves, (ft.jit(f)(x, v), expected)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_what_a_window_held_before_it_is_filled_is_not_written():
    x, v = np.arange(1.0, N + 1), np.arange(8.0)
    assert names(put_back, x, v).count("dynamic_update_slice") == 1
    assert "window" not in names(put_back, x, v)


@pytest.mark.wide(1)
@pytest.mark.parametrize(
    ("cleared", "filled", "value", "written"),
    [
        ((3, 4), (3, 4), 0.0, True),
        ((3, 4), (4, 4), 0.0, False),
        ((3, 4), (3, 3), 0.0, False),
        ((0, 4), (0, 4), 0.0, True),
        ((3, 4), (3, 4), 1.0, False),
    ],
    ids=["the same", "elsewhere", "shorter", "at the start", "not cleared"],
)
@pytest.mark.parametrize("own", [False, True], ids=["new numbers", "its own numbers"])
def test_a_window_is_filled_where_it_was_cleared(own, cleared, filled, value, written):
    (low, size), (start, count) = cleared, filled
    x, v = np.arange(1.0, N + 1), np.arange(100.0, 108.0)

    def f(x, v):
        part = x[start : start + count] if own else v[:count]
        window = lax.pad(part, 0.0, [(start, N - start - count, 0)])
        return lax.dynamic_update_slice(x, fnp.full(size, value), (low,)) + window

    expected = x.copy()
    expected[low : low + size] = value
    expected[start : start + count] += x[start : start + count] if own else v[:count]
    np.testing.assert_array_equal(ft.jit(f)(x, v), expected)
    assert ("add" not in names(f, x, v)) == written
    assert ("dynamic_update_slice" not in names(f, x, v)) == (written and own)


@pytest.mark.parametrize(
    "source", [slice(10, 14), slice(3, 11, 2), slice(2, 6)], ids=["far", "steps", "near"]
)
def test_a_window_is_filled_with_other_numbers_of_the_array(source):
    x = np.arange(1.0, N + 1)

    def f(x):
        window = lax.pad(x[source], 0.0, [(3, N - 7, 0)])
        return lax.dynamic_update_slice(x, fnp.zeros(4), (3,)) + window

    expected = x.copy()
    expected[3:7] = x[source]
    np.testing.assert_array_equal(ft.jit(f)(x), expected)
    assert "add" not in names(f, x)
    assert "dynamic_update_slice" in names(f, x)


# --- random sums --------------------------------------------------------------------------------------------

numbers = st.integers(0, N - 1)
terms = st.one_of(
    st.tuples(st.just("window"), st.integers(-1, N - 1), st.integers(0, 3)),
    st.tuples(st.just("element"), numbers, numbers),
    st.tuples(st.just("two elements"), numbers, numbers),
    st.tuples(st.just("scattered"), numbers, numbers),
    st.tuples(st.just("rows"), st.integers(0, 3), numbers),
    st.tuples(st.just("set"), numbers, numbers),
    st.tuples(st.just("dense"), numbers, numbers),
    st.tuples(st.just("slice"), st.integers(0, N - 4), numbers),
)
sums = st.recursive(terms, lambda inner: st.tuples(st.just("sum"), inner, inner), max_leaves=8)


def value(term, x, np):
    """A term; all its numbers are integers, so that sums are exact in any order."""
    kind, a, b = term
    if kind == "sum":
        return value(a, x, np) + value(b, x, np)
    zeros = np.zeros(N)
    if kind == "dense":
        return x[::-1] * float(a) + float(b)
    if kind == "window" and np is fnp:
        return lax.pad(x[: b + 1], 0.0, [(a, N - b - 1 - a, 0)])
    if kind == "window":
        kept = [i for i in range(b + 1) if 0 <= i + a < N]
        zeros[[i + a for i in kept]] = x[kept]
        return zeros
    if kind == "slice" and np is fnp:
        return lax.dynamic_update_slice(zeros, x[b : b + 4][:4] if b <= N - 4 else x[:4], (a,))
    if kind == "slice":
        zeros[a : a + 4] = x[b : b + 4] if b <= N - 4 else x[:4]
        return zeros
    if kind == "scattered" and np is fnp:
        return zeros.at[np.array([a, b, a])].add(x[:3])
    if kind == "scattered":
        for i, place in enumerate((a, b, a)):
            zeros[place] += x[i]
        return zeros
    if kind == "rows":
        if np is fnp:
            return fnp.zeros((4, N // 4)).at[a].add(x[: N // 4]).reshape(N)
        zeros.reshape(4, N // 4)[a] += x[: N // 4]
        return zeros
    if np is fnp:
        if kind == "set":
            return zeros.at[a].set(x[b])
        once = zeros.at[a].add(x[b])
        return once if kind == "element" else once.at[b].add(x[a])
    zeros[a] += x[b]
    if kind == "two elements":
        zeros[b] += x[a]
    return zeros


@settings(max_examples=60)
@given(st.lists(sums, min_size=1, max_size=3))
def test_sums_of_all_kinds(some):
    x = np.arange(1.0, N + 1)
    expected = [value(s, x, np) for s in some]
    jaxpr = ft.make_jaxpr(lambda x: [value(s, x, fnp) for s in some])(x)
    for strict in (False, True):
        with ft.config.patch(strict=strict, verify=True):
            simple = simplify(jaxpr, strict=strict)
        found = evaluate_on_host(simple, [x])
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b)


@settings(max_examples=4)
@given(st.lists(sums, min_size=1, max_size=2))
def test_sums_in_a_loop(some):
    """A carried total, to which each iteration adds; compiled."""
    x = np.arange(1.0, N + 1)

    def f(x):
        return lax.fori_loop(0, 3, lambda i, t: t + sum(value(s, x + i, fnp) for s in some), fnp.zeros(N))

    expected = sum(value(s, x + i, np) for i in range(3) for s in some)
    np.testing.assert_array_equal(ft.jit(f)(x), expected)

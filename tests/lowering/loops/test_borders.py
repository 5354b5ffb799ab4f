"""Elements at the border of an array, where conditions differ, have loops of their own."""

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as fnp


def text_of(f, *args, threads=1):
    with ft.config.patch(num_threads=threads):
        return re.sub("(?m)^#.*$", "", ft.jit(f).lower(*args).as_text("python"))


def moved(np, x, by):
    """`x` moved along each axis, with zeros where nothing comes from."""
    for d, n in enumerate(by):
        before = (slice(None),) * d
        x = x[(*before, slice(max(-n, 0), x.shape[d] - max(n, 0)))]
        x = np.pad(x, [(max(n, 0), max(-n, 0)) if e == d else (0, 0) for e in range(x.ndim)])
    return x


def stencil(np, x, terms):
    return sum(weight * moved(np, x, by) for weight, by in terms)


def test_conditions_are_tested_at_the_borders_only():
    text = text_of(lambda x: stencil(fnp, x, [(2.0, (1,)), (3.0, (-2,)), (1.0, (0,))]), np.ones(500))
    first, middle, last = text.split("for ")[1:]
    assert "1, n" in middle
    assert "if" not in middle
    assert "range(1)" in first
    assert "range(2)" in last
    rows = text_of(lambda x: stencil(fnp, x, [(2.0, (1, 0)), (3.0, (0, -1))]), np.ones((500, 400)))
    # The first row and the others; of each, the last element and the others.
    assert rows.count("for ") == 6
    assert "if" not in rows


@pytest.mark.parametrize("why", ["short", "halves"])
def test_other_loops_stay_whole(why):
    def f(x):
        if why == "halves":
            return fnp.pad(x[: x.size // 2], (0, x.size // 2)) + fnp.pad(x[x.size // 2 :], (x.size // 2, 0))
        return stencil(fnp, x, [(2.0, (1,)), (3.0, (-2,))])

    assert text_of(f, np.ones(20 if why == "short" else 900)).count("for ") == 1


@pytest.mark.parametrize("shape", [(900,), (200_000,), (40, 1100), (1100, 40), (40, 40, 40)])
def test_sums_over_the_parts_of_a_loop(shape):
    """The sums of blocks of one part, and the elements of the others, are one sum."""
    terms = [(2.0, (1,) * len(shape)), (3.0, (-2,) * len(shape)), (1.0, (0,) * len(shape))]
    x = np.random.default_rng(4).normal(size=shape) + 1e6
    exact = math.fsum(stencil(np, x, terms).ravel())
    for options in ({"num_threads": 1}, {"num_threads": 2}, {"strict": True}):
        with ft.config.patch(**options):
            total = ft.jit(lambda x: fnp.sum(stencil(fnp, x, terms)))(x)
        # Without LLVM's passes a block of up to 1,000 elements is one chain of additions.
        np.testing.assert_allclose(total, exact, rtol=2e-15)


def test_padded_arrays_are_not_stored():
    def average(x):
        p = fnp.pad(x, 1)
        return 0.25 * (p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2])

    assert "scratch" not in text_of(average, np.ones((70, 80)))
    assert "scratch" in text_of(average, np.ones((70, 6)))  # most elements of a row are at the border


@st.composite
def stencils(draw):
    ndim = draw(st.integers(1, 2))
    shape = draw(
        st.sampled_from([(32,), (71,), (64, 3), (2, 70), (64, 66)][(0 if ndim == 1 else 2) :][: 4 - ndim])
    )
    shift = st.tuples(*[st.integers(-3, 3)] * len(shape))
    terms = draw(st.lists(st.tuples(st.sampled_from([-1.5, 0.5, 2.0, 3.0]), shift), min_size=1, max_size=4))
    x = np.random.default_rng(draw(st.integers(0, 99))).normal(size=shape)
    return x, [(w, tuple(max(min(n, m), -m) for n, m in zip(by, shape))) for w, by in terms]


@settings(max_examples=60)
@given(stencils())
def test_random_stencils_in_python(case):
    x, terms = case
    with ft.config.patch(backend="python"):
        y = ft.jit(lambda x: stencil(fnp, x, terms))(x)
    np.testing.assert_allclose(y, stencil(np, x, terms), rtol=1e-13, atol=1e-13)


@settings(max_examples=10)
@given(stencils())
def test_random_stencils_and_their_transposes(case):
    x, terms = case
    y, pullback = ft.vjp(ft.jit(lambda x: stencil(fnp, x, terms)), x)
    np.testing.assert_allclose(y, stencil(np, x, terms), rtol=1e-13, atol=1e-13)
    # The transpose moves everything the other way.
    back = stencil(np, np.cos(x), [(w, [-n for n in by]) for w, by in terms])
    np.testing.assert_allclose(pullback(np.cos(x))[0], back, rtol=1e-13, atol=1e-13)


def test_the_middle_is_divided_among_threads():
    def f(x, np):
        return np.exp(np.sin(stencil(np, x, [(2.0, (1,)), (3.0, (-2,)), (1.0, (0,))])))

    x = np.random.default_rng(3).normal(size=300_000)
    assert text_of(lambda x: f(x, fnp), x).count("for ") == 3
    assert text_of(lambda x: f(x, fnp), x, threads=2).count("for ") == 4
    with ft.config.patch(num_threads=2):
        np.testing.assert_allclose(ft.jit(lambda x: f(x, fnp))(x), f(x, np), rtol=1e-12)

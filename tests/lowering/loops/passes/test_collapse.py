"""Nested loops over adjacent axes become one, and compute the same."""

import numpy as np
import pytest

from functrans.lowering.backend import Options
from functrans.lowering.loops import ir, queries
from functrans.lowering.loops.builder import StatementBuilder
from functrans.lowering.loops.passes.collapse import collapse
from functrans.lowering.run.compile import compile_kernel

F8 = np.dtype("f8")
X = np.arange(60.0).reshape(3, 4, 5)


def built(body, shapes=((3, 4, 5), (3, 4, 5)), **options):
    """A kernel from buffers `x`, ... to `y`, the last one, filled by ``body(builder, buffers)``."""
    b = StatementBuilder("f")
    names = ["x", "w", "v"][: len(shapes) - 1]
    buffers = [b.buffer(n, F8, s, "in") for n, s in zip(names, shapes)]
    body(b, [*buffers, b.buffer("y", F8, shapes[-1], "out")], **options)
    return b.finish()


def nest(b, extents, statement, **options):
    """A nest of loops over extents."""

    def level(indices, rest):
        if not rest:
            statement(*indices)
            return
        with b.loop(rest[0], **options) as i:
            level([*indices, i], rest[1:])

    level([], extents)


def depth(kernel):
    return sum(type(s) is ir.For for s in queries.walk(kernel.body))


def run(kernel, *inputs, shape):
    out = np.full(shape, np.nan)
    assert compile_kernel(kernel, Options(backend="python")).run((*inputs, out)) == 0
    return out


def same(body, *inputs, shapes=((3, 4, 5), (3, 4, 5))):
    """The loops before and after; both kernels give the same numbers."""
    before, after = built(body, shapes), collapse(built(body, shapes))
    inputs = inputs or (X,)
    expected = run(before, *inputs, shape=shapes[-1])
    assert not np.isnan(expected).any()
    np.testing.assert_array_equal(run(after, *inputs, shape=shapes[-1]), expected)
    return depth(before), depth(after), after


def elementwise(b, buffers):
    x, y = buffers
    nest(b, (3, 4, 5), lambda *i: b.store(y, i, 2.0 * b.load(x, i) + 1.0))


def test_all_axes_of_an_elementwise_operation_are_one():
    before, after, kernel = same(elementwise)
    assert (before, after) == (3, 1)
    (loop,) = kernel.body.statements
    assert loop.stop == ir.Extent(60)
    # Axes are merged one by one, and each buffer has one declaration for each step, with its own memory.
    shapes = {b.name: (b.shape, b.role, b.place) for b in kernel.buffers}
    assert shapes == {
        "x": ((3, 4, 5), "in", "x"),
        "x_flat": ((3, 20), "in", "x"),
        "x_flat_": ((60,), "in", "x"),
        "y": ((3, 4, 5), "out", "y"),
        "y_flat": ((3, 20), "out", "y"),
        "y_flat_": ((60,), "out", "y"),
    }
    assert [b.name for b in kernel.buffers] == list(shapes)


def test_names_that_exist_are_not_used_again():
    def body(b, buffers):
        x, y = buffers
        work = b.buffer("x_flat", F8, (3,), "stack")
        nest(b, (3,), lambda i: b.store(work, (i,), b.load(x, (i, 0, 0))))
        nest(b, (3, 4, 5), lambda *i: b.store(y, i, b.load(x, i)))
        nest(b, (3,), lambda i: b.store(y, (i, 0, 0), b.load(work, (i,))))

    before, after, kernel = same(body)
    assert (before, after) == (5, 3)
    names = [b.name for b in kernel.buffers]
    assert len(set(names)) == len(names) == 7


def test_equal_views_are_one():
    def body(b, buffers):
        x, y = buffers
        nest(b, (3, 4, 5), lambda *i: b.store(y, i, b.load(x, i) * b.load(x, i)))
        nest(b, (3, 4, 5), lambda *i: b.store(y, i, b.load(y, i) + b.load(x, i)))

    assert len(same(body)[2].buffers) == 6


#: Nests of which only some axes are merged, or none: the extents of their loops, the place that is written and the one
#: that is read, and how many loops are left.
PARTS = {
    "the last axes": ((3, 4, 5), lambda i, j, k: (i, j, k), lambda i, j, k: (2 - i, j, k), 2),
    "the first axes": ((3, 4, 5), lambda i, j, k: (i, j, k), lambda i, j, k: (i, j, 4 - k), 2),
    "none": ((3, 4, 5), lambda i, j, k: (i, j, k), lambda i, j, k: (i, 3 - j, k), 3),
    "a part of the last axis": ((3, 4, 2), lambda i, j, k: (i, j, k), lambda i, j, k: (i, j, k), 2),
    "a part of the middle axis": ((3, 2, 5), lambda i, j, k: (i, j, k), lambda i, j, k: (i, j, k), 2),
    "a part of the first axis": ((2, 4, 5), lambda i, j, k: (i, j, k), lambda i, j, k: (i, j, k), 1),
    "turned": ((4, 3, 5), lambda j, i, k: (i, j, k), lambda j, i, k: (i, j, k), 3),
    "the last two turned": ((3, 5, 4), lambda i, k, j: (i, j, k), lambda i, k, j: (i, j, k), 3),
    "an element of each row": ((3, 4, 5), lambda i, j, k: (i, j, k), lambda i, j, k: (i, j, 0), 2),
    "a row of each matrix": ((3, 4, 5), lambda i, j, k: (i, j, k), lambda i, j, k: (i, 0, k), 3),
    "a matrix": ((3, 4, 5), lambda i, j, k: (i, j, k), lambda i, j, k: (0, j, k), 2),
    "one index twice": ((3, 4, 3), lambda i, j, k: (i, j, k), lambda i, j, k: (i, i, k), 3),
}


@pytest.mark.parametrize("name", PARTS)
def test_axes_that_are_used_apart_stay(name):
    extents, written, read, left = PARTS[name]

    def body(b, buffers):
        x, y = buffers
        elementwise(b, buffers)
        nest(b, extents, lambda *i: b.store(y, written(*i), b.load(x, read(*i))))

    assert same(body)[:2] == (6, 1 + left)


def test_a_number_of_which_only_one_loop_is_known():
    def body(b, buffers):
        x, y = buffers
        nest(b, (3, 4, 5), lambda i, j, k: b.store(y, (i, j, k), b.load(x, (i, j, k)) + b.cast(i, F8)))

    assert same(body)[:2] == (3, 2)


def test_loops_with_other_statements_or_bounds_stay():
    def beside(b, buffers):
        x, y = buffers
        with b.loop(3) as i:
            b.store(y, (i, 0, 0), b.load(x, (i, 0, 0)))
            nest(b, (4, 5), lambda j, k: b.store(y, (i, j, k), b.load(x, (i, j, k))))

    assert same(beside)[:2] == (3, 2)

    def from_one(b, buffers):
        x, y = buffers
        elementwise(b, buffers)
        with b.loop(4, 1) as j, b.loop(5) as k:
            b.store(y, (0, j, k), b.load(x, (0, j, k)))
        with b.loop(4) as j, b.loop(5, 1) as k:
            b.store(y, (0, j, k), b.load(x, (0, j, k)))

    assert same(from_one)[:2] == (7, 5)

    def backward(b, buffers):
        x, y = buffers
        with b.loop(3, reverse=True) as i, b.loop(4) as j, b.loop(5) as k:
            b.store(y, (i, j, k), b.load(x, (i, j, k)))

    assert same(backward)[:2] == (3, 2)

    def in_a_branch(b, buffers):
        x, y = buffers
        elementwise(b, buffers)
        with b.if_(b.load(x, (0, 0, 1)) > 0.0):
            nest(b, (3, 4, 5), lambda *i: b.store(y, i, b.load(x, i)))

    assert same(in_a_branch)[:2] == (6, 2)


def test_of_a_matrix_and_a_vector():
    """The vector has one of the indices alone."""

    def body(b, buffers):
        x, w, y = buffers
        nest(b, (3, 4, 5), lambda i, j, k: b.store(y, (i, j, k), b.load(x, (i, j, k)) * b.load(w, (i,))))

    w = np.array([1.0, 2.0, 4.0])
    assert same(body, X, w, shapes=((3, 4, 5), (3,), (3, 4, 5)))[:2] == (3, 2)


@pytest.mark.parametrize("outer", [False, True])
@pytest.mark.parametrize("inner", [False, True])
@pytest.mark.parametrize("what", ["interruptible", "independent", "separate"])
def test_what_both_loops_are(outer, inner, what):
    def body(b, buffers):
        x, y = buffers
        with b.loop(3, **{what: outer}) as i, b.loop(4, **{what: inner}) as j:
            b.store(y, (i, j), b.load(x, (i, j)))

    (loop,) = collapse(built(body, ((3, 4), (3, 4)))).body.statements
    assert getattr(loop, what) == (outer or inner if what == "interruptible" else outer and inner)

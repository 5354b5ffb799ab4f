"""Writes into parts of arrays: in place where the part is a window, with NumPy's results in any case."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.lowering.jaxpr.simplify import simplify
from functrans.runtime.config import config

X = np.arange(1.0, 61.0).reshape(5, 4, 3)


def part(sizes, starts=(1, 1, 0)):
    return tuple(slice(i, i + n) for i, n in zip(starts, sizes))


def written(sizes, view, place=part, also=None):
    """``f(np, x, i, v)``: write into a part of `x`, seen in another shape, and write it back."""

    def f(np, x, i, v):
        own = np.reshape(x[place(sizes)], view)
        if np is fnp:
            new = own.at[i].set(v).at[i // 2].add(2.0 * v)
            back = x.at[place(sizes)].set(np.reshape(new, sizes))
        else:
            new, back = own.copy(), x.copy()
            new[i] = v
            new[i // 2] += 2.0 * v
            back[place(sizes)] = new.reshape(sizes)
        return back if also is None else (back, also(own, new))

    return f


#: The sizes of the part, the shape in which it is written, and whether that is a window.
SHAPES = [
    ((3, 2, 3), (3, 2, 3), True),
    ((3, 1, 3), (3, 3), True),
    ((3, 1, 1), (3,), True),
    ((1, 2, 1), (2,), True),
    ((1, 2, 3), (1, 2, 3, 1), True),
    ((3, 1, 2), (1, 3, 2), True),
    ((1, 1, 1), (1,), True),
    ((2, 1, 3), (2, 1, 1, 3), True),
    ((3, 2, 1), (2, 3), False),
    ((2, 2, 3), (4, 3), False),
    ((1, 2, 2), (4,), False),
]


def compare(f, *args, window):
    """Compiled, against NumPy on the same arguments."""
    jitted = ft.jit(lambda *args: f(fnp, *args))
    equations = simplify(jitted.lower(*args).jaxpr, strict=False).eqns
    assert any(e.primitive.name == "write_window" for e in equations) is window
    with config.patch(backend="python"):
        actual = jitted(*args)
    for a, b in zip(*map(ft.tree_util.tree_leaves, (actual, f(np, *args))), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("sizes", "view", "window"), SHAPES)
def test_parts_in_other_shapes(sizes, view, window):
    compare(written(sizes, view), X, 0, 100.0, window=window)
    if view[0] > 1:
        compare(written(sizes, view), X, view[0] - 1, 100.0, window=window)


@pytest.mark.parametrize("which", [0, 1], ids=["before", "after"])
def test_a_part_that_is_read_as_well(which):
    """What it was is another array; what it becomes is that of the result, if anything else reads it."""
    f = written((3, 2, 3), (3, 2, 3), also=lambda *parts: 3.0 * parts[which])
    compare(f, X, 1, 100.0, window=which == 0)


@pytest.mark.parametrize(
    "place",
    [
        lambda sizes: part(sizes, (0, 0, 0)),
        lambda sizes: tuple(slice(i, i + 2 * n, 2) for i, n in zip((1, 0, 0), sizes)),
    ],
    ids=["at the start", "with steps"],
)
def test_other_parts(place):
    compare(written((2, 2, 1), (2, 2), place), X, 1, 100.0, window=place((1,)) == (slice(0, 1),))


def test_a_part_that_is_written_back_elsewhere_or_into_another_array():
    def moved(np, x, i, v):
        own = x[:3, :2]
        if np is fnp:
            return x.at[1:4, :2].set(own.at[i].set(v)), (x + 1.0).at[:3, :2].set(own.at[i].set(v))
        new, back, other = own.copy(), x.copy(), x + 1.0
        new[i] = v
        back[1:4, :2] = other[:3, :2] = new
        return back, other

    compare(moved, X, 2, 100.0, window=False)


def test_starts_outside_are_moved_inside():
    def f(np, x, i, v):
        if np is fnp:
            own = lax.slice(x, (2, 0, 0), (5, 4, 3))
            return lax.dynamic_update_slice(x, own.at[i].set(v), (4, -0, 1))
        back = x.copy()
        back[2 + i] = v
        return back

    compare(f, X, 1, 100.0, window=True)

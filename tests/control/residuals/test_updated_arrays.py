"""Which arrays an iteration updates: loops, branches and checkpoints update what their bodies do."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.control.residuals.overwritten import updated_arrays


def test_which_arrays_are_updated():
    def step(p, q, i, a, b, c):
        same = lax.cond(i > 0, lambda a: a.at[0].set(1.0), lambda a: a.at[1].set(2.0), a)
        new = lax.cond(i > 0, lambda b: b.at[0].set(1.0), lambda b: 2 * b, b)
        looped = lax.fori_loop(0, 3, lambda j, c: c.at[j].add(1.0), c)
        return i + 1, same, new, looped

    rows = [np.ones(3)] * 5
    body = ft.make_jaxpr(step)(*rows[:2], 0, *rows[2:])
    assert updated_arrays(body, 2, 4) == [1, 3]
    swapped = ft.make_jaxpr(lambda a, b, c: (b.at[0].set(1.0), a, c, 1.0))(*rows[:3])
    assert updated_arrays(swapped, 0, 3) == []
    read = ft.make_jaxpr(lambda a, b: (b.at[0].set(1.0) + a, b.at[a[0].astype(int)].set(1.0)))(*rows[:2])
    assert updated_arrays(read, 0, 2) == [1]


#: Functions of a number and two arrays to the next ones, and which of these they update.
UPDATES = {
    "while": (
        lambda n, a, b: lax.while_loop(
            lambda c: c[0] < n, lambda c: (c[0] + 1, c[1].at[c[0]].set(b[0]), 2.0 * c[2]), (0, a, b)
        ),
        [1],
    ),
    "a number of rounds that varies": (
        lambda n, a, b: (n, lax.fori_loop(0, n, lambda j, a: a.at[j].set(b[j]), a), b),
        [1],
    ),
    "scan with rows": (
        lambda n, a, b: (n, *lax.scan(lambda a, r: (a.at[n].set(r), 2.0 * r), a, b)),
        [1],
    ),
    "two carried arrays": (
        lambda n, a, b: (
            n,
            *lax.fori_loop(0, 3, lambda j, c: (c[0].at[j].set(n), c[1].at[j].set(n)), (a, b)),
        ),
        [1, 2],
    ),
    "a carry that changes places": (
        lambda n, a, b: (
            n,
            *lax.fori_loop(0, 3, lambda j, c: (c[1].at[j].set(1.0), c[0].at[j].set(2.0)), (a, b)),
        ),
        [],
    ),
    "checkpoint": (
        lambda n, a, b: (n, ft.checkpoint(lambda b, a: a.at[0].set(fnp.sin(b[0])))(b, a), b),
        [1],
    ),
    "both branches": (
        lambda n, a, b: (
            n,
            *lax.cond(
                n > 0,
                lambda a, b: (a.at[0].set(1.0), b.at[1].set(2.0)),
                lambda a, b: (a.at[1].set(3.0), b.at[0].set(3.0)),
                a,
                b,
            ),
        ),
        [1, 2],
    ),
    "different arrays in branches": (
        lambda n, a, b: (
            n,
            *lax.cond(
                n > 0,
                lambda a, b: (a.at[0].set(1.0), b.at[1].set(2.0)),
                lambda a, b: (b.at[1].set(3.0), b.at[0].set(3.0)),
                a,
                b,
            ),
        ),
        [2],
    ),
    "branches with the operands the other way round": (
        lambda n, a, b: (
            n,
            *lax.cond(
                n > 0,
                lambda b, a: (a.at[0].set(1.0), b.at[1].set(2.0)),
                lambda b, a: (a.at[1].set(3.0), b.at[0].set(3.0)),
                b,
                a,
            ),
        ),
        [1, 2],
    ),
    "a new array in one branch": (
        lambda n, a, b: (
            n,
            lax.cond(n > 0, lambda a: a.at[0].set(1.0), lambda a: fnp.where(a > 0, a, 3.0), a),
            b,
        ),
        [],
    ),
    "another array": (lambda n, a, b: (n, b.at[0].set(1.0), 2.0 * b), []),
    "what a loop keeps in a branch": (
        lambda n, a, b: (
            n,
            a,
            lax.fori_loop(
                0,
                3,
                lambda j, b: lax.cond(j > n, lambda b: b.at[j].set(a[j]), lambda b: b.at[0].set(1.0), b),
                b,
            ),
        ),
        [2],
    ),
}


@pytest.mark.wide(1)
@pytest.mark.parametrize("name", UPDATES)
def test_loops_branches_and_checkpoints_update_what_their_bodies_do(name):
    f, expected = UPDATES[name]
    body = ft.make_jaxpr(f)(2, np.ones(4), np.ones(4))
    assert updated_arrays(body, 0, 3) == expected


def test_rows_that_a_scan_stacks_are_a_new_array():
    """Even if each is an update of the row of another array."""

    def rows(a, b):
        total, stacked = lax.scan(lambda c, r: (c.at[0].add(r[1]), r.at[0].set(1.0)), a, b)
        return total, stacked

    body = ft.make_jaxpr(rows)(np.ones(3), np.ones((4, 3)))
    assert updated_arrays(body, 0, 2) == [0]

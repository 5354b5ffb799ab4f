"""Which elements a loop does not overwrite later: compared with runs of the loop, whose last array tells."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.control.residuals.overwritten import KnownLoop, elements_that_stay, loop_of, updated_arrays
from functrans.control.scan import bind
from functrans.core import Literal
from functrans.primitives.indexing.gather_scatter import gather_p

SHAPE = (9, 11)
LENGTH = 4


def fresh(v, i):
    """A number that no other write has."""
    return fnp.sin(37.0 * v + 11.3) + i


def accesses(body, values, inside, log):
    """Run a body, and log each read and write of an array of that shape: what it is, its indices, its values."""
    env = dict(zip([*body.constvars, *body.invars], [*body.consts, *values]))
    read = lambda a: a.value if isinstance(a, Literal) else env[a]
    for e in body.eqns:
        operands, params = [read(a) for a in e.invars], e.params
        if "branches" in params:
            n = int(operands[0])
            outs = accesses(params["branches"][n], operands[1:], (*inside, (e, n)), log)
        elif "cond_jaxpr" in params:
            cond, consts = params["num_cond"], params["num_consts"]
            fixed, carry = operands[cond : cond + consts], operands[cond + consts :]
            count = 0
            while accesses(params["cond_jaxpr"], [*operands[:cond], *carry], (), [])[0]:
                carry = accesses(params["body_jaxpr"], [*fixed, *carry], (*inside, (e, 0)), log)
                count += 1
            outs = [*carry, count]
        elif "num_carry" in params:
            known = params["length"] is not None
            count, operands = (params["length"], operands) if known else (max(operands[0], 0), operands[1:])
            consts, carried = params["num_consts"], params["num_consts"] + params["num_carry"]
            carry = operands[consts:carried]
            for n in reversed(range(count)) if params["reverse"] else range(count):
                rows = [x[n] if np.shape(x) else x + n for x in operands[carried:]]
                carry = accesses(params["jaxpr"], [*operands[:consts], *carry, *rows], (*inside, (e, 0)), log)
            outs = carry
        elif "policy" in params:
            outs = accesses(params["jaxpr"], operands, (*inside, (e, 0)), log)
        else:
            results = e.primitive.bind(*operands, **params)
            outs = list(results) if e.primitive.multiple_results else [results]
            if e.primitive.name == "gather" and np.shape(operands[0]) == SHAPE:
                log.append(((e, inside), operands[1:], outs[0]))
            if e.primitive.name == "scatter" and np.shape(operands[0]) == SHAPE:
                log.append(((e, inside), operands[2:], operands[1]))
        env.update(zip(e.outvars, outs))
    return [read(a) for a in body.outvars]


def stay(body, first, *, rows=(), reverse=False, length=LENGTH):
    """Of each access that runs whether the last array has, at its end, all that it read or wrote."""
    carry, log = list(first), []
    consts = len(body.invars) - len(rows) - len(body.outvars)
    for n in reversed(range(length)) if reverse else range(length):
        here = [x + n if not np.shape(x) else x[n] for x in rows]
        carry = [*carry[:consts], *accesses(body, [*carry, *here], (), log)]
    last = carry[-1]
    found: dict[Any, bool] = {}
    for key, indices, value in log:
        params = {"axes": key[0].params["axes"], "mode": key[0].params["mode"]}
        if key[0].primitive.name == "gather":
            params = key[0].params
        if params["mode"] == "drop":  # whether it was done
            params = params | {"mode": "raise"}
        try:
            again = gather_p.bind(last, *indices, **params)
        except IndexError:
            again = np.nan
        found[key] = found.get(key, True) and np.array_equal(again, value)
    return found


def compare(f, exact, *, first=0, lowest=True, reverse=False, length=LENGTH, known_length=True):
    """Compare what is known of a loop ``f(k, i, y, r) -> (i, y)`` with a run; `k` is constant, `r` counts."""
    y = np.random.default_rng(0).normal(size=SHAPE)
    k, i, r = 2, first, 1
    body = ft.make_jaxpr(f)(k, i, y, r)
    assert updated_arrays(body, 1, 2)[-1:] == [1]
    low = (k if lowest else None, i if lowest and i >= 0 else None, None, r if lowest else None)
    loop = KnownLoop(length if known_length else None, reverse, (1,), low)
    claimed = elements_that_stay(body, 1, 2, 1, loop)
    truth = stay(body, [k, i, y], rows=[r], reverse=reverse, length=length)
    keys = [(a.eqn, a.inside) for a in claimed]
    assert len(set(keys)) == len(keys)
    assert all(truth.get(key, True) for key in keys)
    if exact:
        assert {key for key, kept in truth.items() if kept} == {key for key in keys if key in truth}
    return claimed, truth


# --- all that stays is found --------------------------------------------------------------------------------


def along(i, y):
    return y.at[i, 0].set(fresh(y[i - 1, 0], i))


def going_back(f, r, y, first, length, reverse=True):
    """A loop whose rows are numbers, of which the operand is the first one."""
    body = ft.make_jaxpr(f)(0, np.zeros(SHAPE), 0)
    return bind(body, [r], [y], [first], length=length, reverse=reverse)[0]


EXACT = {
    "the element written before": lambda k, i, y, r: (i + 1, along(i + 1, y)),
    "the row's number": lambda k, i, y, r: (i, along(r, y)),
    "two steps at a time": lambda k, i, y, r: (
        i + 2,
        y.at[i + 1, 3].set(fresh(y[i, 3], i)).at[i + 2, 3].set(0.5 + i + y[0, 0]),
    ),
    "backward": lambda k, i, y, r: (i - 1, y.at[7 + i, 1].set(fresh(y[8 + i, 1], i))),
    "backward, the neighbour that follows": lambda k, i, y, r: (
        i - 1,
        y.at[8 + i, 1].set(fresh(y[7 + i, 1], i)),
    ),
    "forward, the neighbour that follows": lambda k, i, y, r: (i + 1, y.at[i, 1].set(fresh(y[i + 1, 1], i))),
    "the same place": lambda k, i, y, r: (i, y.at[3, 3].set(fresh(y[3, 3] + y[3, 4], i + r))),
    "the first axis tells": lambda k, i, y, r: (i, y.at[r, 3].set(fresh(y[8, 3] + y[0, 3], r))),
    "the second axis tells": lambda k, i, y, r: (i, y.at[r, 3].set(fresh(y[r + 1, 2] + y[r + 1, 3], r))),
    "a row and an element of it": lambda k, i, y, r: (i, y.at[r + 1].set(fresh(y[r, 4], r + fnp.arange(11)))),
    "a row that is written next": lambda k, i, y, r: (i, y.at[r].set(fresh(y[r + 1, 4], r + fnp.arange(11)))),
    "a constant": lambda k, i, y, r: (i, y.at[k + 1, r].set(fresh(y[k, r] + y[k + 1, r + 1], r))),
    "steps of three and two": lambda k, i, y, r: (i, y.at[0, 3 * r - 3].set(fresh(y[0, 2 * r], r))),
    "an old version": lambda k, i, y, r: (
        i,
        (lambda z: z.at[r + 1, 1].set(fresh(y[r + 1, 1] + y[r, 1] + z[r, 1], r)))(
            y.at[r, 1].set(fresh(y[r - 1, 1], r))
        ),
    ),
    "written twice": lambda k, i, y, r: (
        i,
        y.at[r, 1].set(fresh(y[r - 1, 1], r)).at[r, 1].set(fresh(y[r, 2], -r)),
    ),
    "a slice of four": lambda k, i, y, r: (
        i,
        lax.dynamic_update_slice(
            y, fnp.reshape(fresh(y[r, 4] + y[r, 9], r + fnp.arange(4.0)), (1, 4)), (r, 5)
        ),
    ),
    "in an inner loop": lambda k, i, y, r: (
        i,
        lax.fori_loop(0, 3, lambda j, y: y.at[r, j + 1].set(fresh(y[r, j] + y[r - 1, j], r)), y),
    ),
    "across inner loops": lambda k, i, y, r: (
        i,
        lax.fori_loop(0, 3, lambda j, y: y.at[j, r + 1].set(fresh(y[j, r] + y[j + 1, r + 1], r)), y),
    ),
    "in an inner loop that goes back": lambda k, i, y, r: (
        i,
        going_back(lambda r, y, j: y.at[r, j].set(fresh(y[r, j + 1] + y[r - 1, j - 1], j)), r, y, 1, 4),
    ),
    "in an inner loop that goes on": lambda k, i, y, r: (
        i,
        going_back(
            lambda r, y, j: y.at[r, j].set(fresh(y[r, j + 1] + y[r, j - 1], j)), r, y, 1, 4, reverse=False
        ),
    ),
    "in a triangle": lambda k, i, y, r: (
        i,
        lax.fori_loop(r, 6, lambda j, y: y.at[j, r].set(fresh(y[r - 1, j], j) + 0.1 * y[j, r - 1]), y),
    ),
    "below a diagonal": lambda k, i, y, r: (
        i,
        lax.fori_loop(0, r, lambda j, y: y.at[r, j].set(fresh(y[j, r], j)), y),
    ),
    "read in a loop that does not write": lambda k, i, y, r: (
        i,
        y.at[r, 0].set(fresh(lax.fori_loop(0, r, lambda j, s: s + y[j, 0] * y[r, j], 0.0), r)),
    ),
    "in a branch": lambda k, i, y, r: (
        i,
        lax.cond(r % 2 == 0, lambda y: along(r, y), lambda y: y.at[r, 0].set(y[r - 1, 0] + y[r, 1] + 3.0), y),
    ),
    "a branch on what the other writes": lambda k, i, y, r: (
        i,
        lax.cond(r < 3, lambda y: y.at[2, 2].set(fresh(y[2, 2], r)), lambda y: y.at[r, 0].set(y[3, 2] + 4), y),
    ),
    "a checkpoint": lambda k, i, y, r: (i, ft.checkpoint(lambda r, y: along(r, y))(r, y)),
    "a large step": lambda k, i, y, r: (i, y.at[0, 2 * r].set(fresh(y[0, 2 * r + 1] + y[0, 2 * r - 2], r))),
    "negated": lambda k, i, y, r: (i, y.at[8 - r, 0].set(fresh(y[9 - r, 0] + y[7 - r, 0], r))),
    "times two": lambda k, i, y, r: (i, y.at[2 * r - 1, 0].set(fresh(y[2 * (r - 1), 0] + y[2 * r, 0], r))),
    "added": lambda k, i, y, r: (i, y.at[r, 0].add(fresh(y[r - 1, 0] + y[r + 1, 0], r))),
    "counted from the end": lambda k, i, y, r: (i, y.at[-r, 0].set(fresh(y[1 - r, 1] + y[-r, 1], r))),
    "constants from the end": lambda k, i, y, r: (i, y.at[-1, -2].set(fresh(y[-2, -2] + y[-1, -1], r))),
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_all_that_stays_is_found(name):
    compare(EXACT[name], True)


def test_where_turns_end():
    """The last element of one stretch and the first of the other, in a loop of so many turns."""
    apart = lambda k, i, y, r: (i, y.at[0, r].set(fresh(y[0, r + 4], r)))
    together = lambda k, i, y, r: (i, y.at[0, r].set(fresh(y[0, r + 3], r)))
    for f, reads in ((apart, True), (together, False)):
        claimed, truth = compare(f, True)
        assert reads == (len(claimed) == len(truth) == 2)
    once, _ = compare(together, True, length=1)
    assert len(once) == 2
    # What is read before this array was written, or in a loop that never runs.
    assert len(compare(together, False, length=0)[0]) == 2
    # Of a loop of unknown length, all later elements may be overwritten.
    for f in (apart, together):
        assert len(compare(f, False, known_length=False)[0]) == 1


def test_inner_loops_that_become_shorter():
    """Their bound is that of the iteration in which they write."""

    def shorter(read):
        def f(k, i, y, r):
            v = y[0, i + read]
            return i - 1, lax.fori_loop(0, i, lambda j, y: y.at[0, j].set(fresh(v, j + i)), y)

        return f

    for read, kept in ((0, True), (2, True), (-1, False)):
        claimed, truth = compare(shorter(read), True, first=8)
        assert len(claimed) == kept
        assert len(truth) == 2


def test_backward_from_the_end():
    back = lambda k, i, y, r: (i, y.at[r, 0].set(fresh(y[r + 1, 0] + y[r - 1, 0], r)))
    claimed, truth = compare(back, True, reverse=True)
    assert (len(claimed), len(truth)) == (2, 3)
    # Of a reversed loop of unknown length, the first number is not known.
    assert compare(back, False, reverse=True, known_length=False)[0] == []


def test_a_number_of_unknown_sign_may_count_from_the_end():
    """Index -1 is the last element."""
    f = lambda k, i, y, r: (i, y.at[0, k + r].set(fresh(y[0, k + r - 1], r)))
    assert len(compare(f, True)[0]) == 2
    known = compare(f, False, lowest=False)[0]
    # The largest and the least place are less than a whole axis apart, so these are different elements anyhow.
    assert len(known) == 2
    far = lambda k, i, y, r: (i, y.at[0, k + 4 * r - 9].set(fresh(y[0, k + 4 * r - 10], r)))
    for lowest in (True, False):
        assert compare(far, False, lowest=lowest)[0] == []


def names(f, **options):
    return [a.eqn.primitive.name for a in compare(f, False, **options)[0]]


@pytest.mark.parametrize("lowest", [True, False])
def test_the_ends_of_an_axis_of_which_the_index_may_count_from_the_end(lowest):
    """Two places that are a whole axis apart may be one element, those that are closer may not."""
    at = lambda written, read: (
        lambda k, i, y, r: (
            i,
            y.at[0, k + written].set(fresh(y[0, k + read], r)),
        )
    )
    # k is 2, and the axis has 11 elements.
    assert names(at(8, -2), lowest=lowest) == names(at(-2, 8), lowest=lowest) == ["gather"]
    assert names(at(8, -3), lowest=lowest) == names(at(-3, 8), lowest=lowest) == []


def test_what_may_be_elsewhere_is_not_found():
    """Indices that clip or wrap, and writes that may not happen."""
    ahead = lambda mode: lambda k, i, y, r: (i, y.at[r + 5, 0].set(fresh(y[r, 0], r), mode=mode))
    assert {mode: names(ahead(mode)) for mode in ("clip", "wrap", "drop")} == {
        "clip": [], "wrap": [], "drop": ["gather"],
    }  # fmt: skip
    within = lambda n, mode: (
        lambda k, i, y, r: (
            i,
            lax.fori_loop(0, n, lambda j, y: y.at[j].set(fresh(y.at[j].get(mode=mode), j), mode=mode), y),
        )
    )
    for mode in ("clip", "wrap", "drop"):
        assert names(within(9, mode), length=1) == ["scatter"]
        assert names(within(10, mode), length=1) == []
    later = lambda mode: (
        lambda k, i, y, r: (
            i,
            lax.fori_loop(0, 8, lambda j, y: y.at[j + 1].set(fresh(y.at[j].get(mode=mode), j), mode=mode), y),
        )
    )
    for mode in ("clip", "wrap"):
        assert names(later(mode), length=1) == ["gather", "scatter"]
    rows = lambda n, unique: (
        lambda k, i, y, r: (
            i,
            y.at[fnp.broadcast_to(r, (n,))].set(
                fresh(y[r - 1, 1], r + fnp.zeros((n, 11))), unique_indices=unique
            ),
        )
    )
    assert names(rows(2, False)) == ["gather"]
    assert names(rows(2, True)) == names(rows(1, False)) == ["gather", "scatter"]


def test_slices_that_are_written():
    piece = lambda y, k: fnp.reshape(fresh(y[k, 4] + y[k, 7] + y[k, 8], fnp.arange(3.0)), (1, 3))
    assert len(names(lambda k, i, y, r: (i, lax.dynamic_update_slice(y, piece(y, k), (k, 8))))) == 2
    assert len(names(lambda k, i, y, r: (i, lax.dynamic_update_slice(y, piece(y, k), (k, 5))))) == 2
    assert len(names(lambda k, i, y, r: (i, lax.dynamic_update_slice(y, piece(y, k), (k, 9))))) == 0
    assert len(names(lambda k, i, y, r: (i, lax.dynamic_update_slice(y, piece(y, k), (k, r))))) == 0


def test_weak_values_are_not_read_back():
    body = ft.make_jaxpr(lambda i, y: (i + 1, y.at[i].set(1.5)))(0, np.ones(5))
    loop = KnownLoop(3, False, (), (0, None))
    values = [e.invars[1] for e in body.eqns if e.primitive.name == "scatter"]
    found = elements_that_stay(body, 0, 2, 1, loop)
    assert (found == []) == all(isinstance(v, Literal) or v.aval.weak for v in values)


def test_bytes_that_are_touched():
    f = lambda k, i, y, r: (i, lax.fori_loop(0, 3, lambda j, y: y.at[r, j].set(fresh(y[r, 9], j)), y))
    assert [a.bytes(1) for a in compare(f, True)[0]] == [LENGTH * 3 * 8] * 2
    assert [a.bytes(np.inf) for a in compare(f, True)[0]] == [LENGTH * 3 * 8] * 2
    unknown = compare(f, False, known_length=False)[0]
    assert {a.bytes(5) for a in unknown} == {5 * 3 * 8}
    rows = lambda k, i, y, r: (i, y.at[r].set(fresh(y[r - 1, 9], fnp.arange(11.0))))
    assert sorted(a.bytes(1) for a in compare(rows, True)[0]) == [LENGTH * 8, LENGTH * 11 * 8]
    # A triangle has half of its square.
    element = lambda m: lambda j, y: y.at[m, j].set(fresh(y[m, j + 5], j))
    half = lambda k, i, y, r: (
        i,
        lax.fori_loop(0, 4, lambda m, y: lax.fori_loop(0, m, element(m), y), y),
    )
    assert [a.bytes(1) for a in compare(half, True, length=1)[0]] == [6 * 8] * 2


def test_what_is_known_of_operands():
    numbers = np.arange(5) + 3
    rows = [numbers, 7, np.ones(5), np.arange(6).reshape(3, 2), numbers[::-1].copy(), numbers.astype("i4")]
    loop = loop_of([4, -1, 2.0, 0, *rows], (2, 2), 5, True)
    assert loop == KnownLoop(5, True, (1, 1, 0, 2, 0, 0), (4, None, None, 0, 2, 4, None, 0, None, None))
    assert [loop_of([n], (1, 0), 1, False).lowest[0] for n in (0, 1, 2, 3, 4, 7, 8, 1000)] == [
        0, 1, 2, 2, 4, 4, 8, 512,
    ]  # fmt: skip
    assert loop_of([np.int32(3), True, np.array([1, 2])], (3, 0), 1, False).lowest == (None, None, None)


def test_array_rows_that_count():
    """Rows of two numbers each, of an inner scan over them."""

    def f(k, i, y, r):
        return i, lax.scan(lambda y, j: (y.at[j, 0].set(fresh(y[j - 1, 0], j)), None), y, r)[0]

    y = np.random.default_rng(0).normal(size=SHAPE)
    numbers = np.arange(1, 9).reshape(4, 2)
    body = ft.make_jaxpr(f)(2, 0, y, numbers[0])
    for reverse in (False, True):
        loop = loop_of([2, 0, y, numbers], (1, 2), 4, reverse)
        claimed = elements_that_stay(body, 1, 2, 1, loop)
        truth = stay(body, [2, 0, y], rows=[numbers], reverse=reverse)
        assert {(a.eqn, a.inside) for a in claimed} == {key for key, kept in truth.items() if kept}
        assert len(claimed) == (1 if reverse else 2)


# --- what is found stays ------------------------------------------------------------------------------------

places = st.tuples(
    st.sampled_from([-2, -1, 0, 1, 1, 2]), st.sampled_from([0, 0, 0, 1, -1]), st.integers(-3, 8)
)
pairs = st.tuples(places, places)
writes = st.tuples(st.just("write"), st.sampled_from([None, None, "clip", "wrap", "drop"]), pairs, pairs)
inner = st.lists(writes, min_size=1, max_size=2)
statements = st.one_of(
    writes,
    st.tuples(st.just("loop"), st.integers(0, 3), st.sampled_from(["number", "row"]), st.booleans(), inner),
    st.tuples(st.just("while"), st.integers(0, 3), st.just(""), st.booleans(), inner),
    st.tuples(st.just("branch"), st.integers(2, 3), st.just(""), st.booleans(), inner),
    st.tuples(st.just("slice"), st.integers(1, 4), places, st.integers(1, 4), pairs),
)


def block(some, y, outer, inner):
    for statement in some:
        y = run_statement(statement, y, outer, inner)
    return y


def run_statement(statement, y, outer, inner):
    kind, n, *rest = statement
    place = lambda p: p[0] * outer + p[1] * inner + p[2]
    if kind == "write":
        target, source = (tuple([place(p) for p in pair]) for pair in rest)
        read = {"mode": "fill", "fill_value": 0.5} if n == "drop" else {"mode": n}
        return y.at[target].set(fresh(y.at[source].get(**read), outer), mode=n)
    if kind == "slice":
        start, m, source = rest
        v = y.at[tuple([place(p) for p in source])].get(mode="clip")
        new = fresh(v, fnp.arange(1.0 * n * m)).reshape(n, m)
        return lax.dynamic_update_slice(y, new, (place(start), 1))
    how, follows, inside = rest
    if kind == "branch":
        return lax.cond(outer % n == 0, lambda y: block(inside, y, outer, inner), lambda y: y, y)
    if kind == "while":
        going = lambda s: s[0] < (outer if follows else n)
        return lax.while_loop(going, lambda s: (s[0] + 1, block(inside, s[1], outer, s[0])), (inner, y))[1]
    if how == "row":
        step = lambda r, y, j: block(inside, y, r, j)
        return going_back(step, outer, y, outer, n, reverse=follows)
    return lax.fori_loop(0, outer if follows else n, lambda j, y: block(inside, y, outer, j), y)


@settings(max_examples=80)
@given(
    st.lists(statements, min_size=1, max_size=3),
    st.sampled_from(["row", "carry", "down"]),
    st.booleans(),
    st.booleans(),
    st.integers(-2, 2),
)
def test_what_is_found_stays(program, counter, lowest, reverse, first):
    def f(k, i, y, r):
        number = r if counter == "row" else i
        return i + (1 if counter == "carry" else -2), block(program, y, number, k)

    options = {"first": first, "lowest": lowest, "reverse": reverse}
    with contextlib.suppress(IndexError):
        for known_length in (True, False):
            compare(f, False, **options, known_length=known_length)

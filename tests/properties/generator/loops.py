"""Kinds of statements: loops and branches whose bodies are blocks, and loops over mutable references."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .records import Block, boolean, filled, fitted, integer, kind, number, real, scoped


class Loop(NamedTuple):
    """`carry`: places of the values that the body changes. `bounds`, `more`: what the kind of loop needs."""

    carry: tuple[int, ...]
    block: Block
    bounds: Any = None
    more: Any = None


def arrays(lib, places, values):
    return [lib.np.asarray(values[i]) for i in places]


def changed(lib, block, values, carry, args):
    """The carry after a block, each of its type, and the other outputs."""
    outs = block.run(lib, values, [*carry, *args])
    after = [fitted(lib, v, c) for v, c in zip(outs, carry)]
    return after, [lib.np.asarray(v) for v in outs[len(carry) :]]


def draw_carry(scope, least=1):
    """Places of one to four values, mostly of floats, arrays first."""
    floats = scope.places(lambda x: number(x) and x.size <= 40)
    others = scope.places(lambda x: not number(x) and x.size <= 40)
    found = scope.choose.some(floats[-6:][::-1], least, 3)
    return tuple(found + (scope.choose.some(others[-4:][::-1], 0, 1) if scope.choose.chance(50) else []))


def bound(lib, b, values):
    """A bound that is known, or a computed integer from 0 to 3."""
    return b if isinstance(b, int) else abs(lib.np.asarray(values[b[0]], dtype="i8")) % 4


def draw_bound(scope, known=(2, 1, 3, 0, 5)):
    computed = scope.places(lambda x: integer(x) and x.ndim == 0)
    if computed and scope.choose.chance(50):
        return (scope.choose.of(computed[-4:]),)
    return scope.choose.of(known)


# --- loops --------------------------------------------------------------------------------------------------------


def draw_scan(scope):
    choose, carry = scope.choose, draw_carry(scope)
    rows = scope.places(lambda x: number(x) and x.ndim > 0 and len(x) <= 6)
    rows = choose.of(rows[-4:]) if rows and choose.chance(60) else None
    length = choose.of((3, 2, 1, 0, 4)) if rows is None else len(scope.values[rows])
    args = [] if rows is None else [np.zeros_like(scope.values[rows], shape=np.shape(scope.values[rows])[1:])]
    stacked = choose.integer(0, 2)
    block = scope.block([scope.values[i] for i in carry], args, stacked)
    reverse, unroll = choose.chance(40), choose.of((1, 1, 2, 3))
    every = choose.of((None, None, 1, 2)) if length > 1 and unroll == 1 else None
    return Loop(carry, block, length, (rows, reverse, unroll, every))


@scoped("scan", weight=8)(draw_scan)
def run_scan(lib, p, values):
    rows, reverse, unroll, every = p.more

    def body(carry, row):
        return changed(lib, p.block, values, carry, [] if row is None else [row])

    xs = None if rows is None else lib.np.asarray(values[rows])
    init = arrays(lib, p.carry, values)
    last, ys = lib.scan(body, init, xs, p.bounds, reverse, unroll, every)
    return [*last, *ys]


def draw_map(scope):
    rows = scope.places(lambda x: real(x) and filled(x) and len(x) <= 6)
    if not rows:
        return None
    rows = scope.choose.of(rows[-4:])
    row = scope.values[rows][0]
    return Loop((), scope.block([], [row], 1), None, rows)


@scoped("map", weight=2)(draw_map)
def run_map(lib, p, values):
    return [
        lib.map(lambda x: lib.np.asarray(p.block.run(lib, values, [x])[0]), lib.np.asarray(values[p.more]))
    ]


def draw_fori(scope):
    carry = draw_carry(scope)
    bounds = scope.choose.of((0, 0, -1, 2)), draw_bound(scope)
    return Loop(carry, scope.block([scope.values[i] for i in carry], [np.int64(bounds[0])], 0), bounds)


@scoped("fori", weight=8)(draw_fori)
def run_fori(lib, p, values):
    def body(i, carry):
        return changed(lib, p.block, values, carry, [lib.np.asarray(i, dtype="i8")])[0]

    lower, upper = p.bounds
    return lib.fori(lower, bound(lib, upper, values), body, arrays(lib, p.carry, values))


def draw_while(scope):
    carry = draw_carry(scope)
    limit = scope.choose.of((None, 1.0, 3.0))
    more = [k for k, i in enumerate(carry) if real(scope.values[i])]
    more = (more[0], limit) if more and limit is not None else None
    return Loop(
        carry, scope.block([scope.values[i] for i in carry], [np.int64(0)], 0), draw_bound(scope), more
    )


@scoped("while", weight=4)(draw_while)
def run_while(lib, p, values):
    most = bound(lib, p.bounds, values)

    def test(state):
        i, carry = state
        going = i < most
        if p.more is not None:
            going = going & (lib.np.abs(lib.np.sum(carry[p.more[0]])) < p.more[1])
        return going

    def body(state):
        i, carry = state
        return i + 1, changed(lib, p.block, values, carry, [lib.np.asarray(i, dtype="i8")])[0]

    return lib.while_loop(test, body, (0, arrays(lib, p.carry, values)))[1]


# --- branches -----------------------------------------------------------------------------------------------------


def draw_cond(scope):
    choose, carry = scope.choose, draw_carry(scope)
    tests = scope.places(lambda x: boolean(x) and x.ndim == 0)
    if tests and choose.chance(40):
        test = choose.of(tests[-4:]), None
    else:
        test = choose.of(scope.places(real)[-5:]), choose.of((0.2, 0.0, -0.5))
    examples = [scope.values[i] for i in carry]
    return Loop(carry, scope.block(examples, [], 0), test, scope.block(examples, [], 0))


@scoped("cond", weight=5)(draw_cond)
def run_cond(lib, p, values):
    place, limit = p.bounds
    pred = values[place] if limit is None else lib.np.sum(values[place]) > limit
    branches = [lambda *xs, b=b: changed(lib, b, values, list(xs), [])[0] for b in (p.block, p.more)]
    return lib.cond(pred, *branches, *arrays(lib, p.carry, values))


def draw_switch(scope):
    carry = draw_carry(scope)
    places = scope.places(lambda x: integer(x) and x.ndim == 0)
    if not places:
        return None
    examples = [scope.values[i] for i in carry]
    blocks = [scope.block(examples, [], 0) for _ in range(scope.choose.integer(1, 3))]
    return Loop(carry, blocks[0], scope.choose.of(places[-4:]), tuple(blocks[1:]))


@scoped("switch", weight=2)(draw_switch)
def run_switch(lib, p, values):
    branches = [lambda *xs, b=b: changed(lib, b, values, list(xs), [])[0] for b in (p.block, *p.more)]
    return lib.switch(values[p.bounds] - 1, branches, *arrays(lib, p.carry, values))


def _root(lib, n, x):
    """A branch whose function is defined only where it is chosen."""
    s = lib.np.sum(x)
    return lib.cond(s > 0.1, lambda s: lib.np.sqrt(s) + lib.np.log(s), lambda s: s * s, s)


kind("root where positive", _root, real, flags="jumps control")


def _factor(lib, n, x):
    s = lib.np.asarray(lib.np.sum(x), dtype="f8")

    def factored(s):
        rows = lib.np.reshape(lib.np.stack([s, 0.1 + 0 * s, 0.1 + 0 * s, 1.0 + 0 * s]), (2, 2))
        return lib.np.sum(lib.np.linalg.cholesky(rows))

    return lib.cond(s > 0.2, factored, lambda s: s + 0.0, s)


kind("cholesky where definite", _factor, real, flags="jumps control")


def _index(lib, n, x, i):
    """An element where there is one."""
    inside = (i >= 0) & (i < len(x))
    at = lib.np.asarray(i, dtype="i8")
    return lib.cond(inside, lambda x, i: lib.get(x, i), lambda x, i: 0.5 * x[0], x, at)


kind(
    "index where inside",
    _index,
    lambda x, i: real(x) and filled(x) and integer(i) and i.ndim == 0,
    2,
    flags="control",
)

# --- references ---------------------------------------------------------------------------------------------------


def draw_reference(scope):
    """``r[i] = f(r[i - 1], i)`` or ``r[i] += ...`` over the rows of a reference to an array."""
    rows = scope.places(lambda x: real(x) and filled(x) and 1 < len(x) <= 20)
    if not rows:
        return None
    place, how = scope.choose.of(rows[-5:]), scope.choose.of(("set", "add"))
    block = scope.block([], [scope.values[place][0], np.int64(1)], 1)
    return Loop((place,), block, scope.choose.of(("fori", "scan", "python")), how)


@scoped("reference", weight=5)(draw_reference)
def run_reference(lib, p, values):
    start = lib.np.asarray(values[p.carry[0]])
    box, size = lib.ref(start), len(start)

    def step(i):
        before = box.get(i - 1)
        (new,) = p.block.run(lib, values, [before, lib.np.asarray(i, dtype="i8")])
        box.set(i, fitted(lib, new, before), p.more)

    if p.bounds == "fori":
        lib.fori(1, size, lambda i, c: (step(i), c)[1], lib.np.asarray(0))
    elif p.bounds == "scan":
        lib.scan(
            lambda c, i: (step(i), (c, []))[1],
            lib.np.asarray(0),
            lib.np.asarray(np.arange(1, size)),
            size - 1,
        )
    else:
        for i in range(1, min(size, 4)):
            step(i)
    return [box.whole()]


kind(
    "associative",
    lambda lib, n, x: lib.cumulate(
        [lib.np.add, lib.np.maximum, lib.np.add, lambda a, b: a * b][n], lib.np.cos(x)
    ),
    lambda x: real(x) and filled(x),
    flags="jumps",
)


def _average(lib, n, x):
    def body(c, row):
        return 0.5 * c + 0.5 * row, [c]

    return lib.scan(body, x[0], x, len(x))[1][0]


kind("running average", _average, lambda x: real(x) and filled(x), flags="tame control")

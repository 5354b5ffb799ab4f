"""Kinds of statements: functions called within a program, under transformations, hooks, rules, and other languages."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import functrans as ft

from .loops import arrays, changed, draw_carry
from .records import Block, filled, kind, real, scoped
from .rules import draw_spec


class Call(NamedTuple):
    """A block called on some values."""

    args: tuple[int, ...]
    block: Block
    more: Any = None


def draw_call(scope, more=None):
    floats = scope.places(real)
    args = tuple(scope.choose.some(floats[-5:][::-1], 1, 3))
    block = scope.block([], [scope.values[i] for i in args], scope.choose.integer(1, 2))
    return Call(args, block, more)


def calling(lib, p, values):
    return lambda *args: [lib.np.asarray(y) for y in p.block.run(lib, values, args)]


@scoped("jit", weight=3)(draw_call)
def run_jit(lib, p, values):
    return lib.jit(calling(lib, p, values))(*arrays(lib, p.args, values))


@scoped("checkpoint", weight=3)(
    lambda scope: draw_call(scope, scope.choose.of((None, "nothing", "everything", "products", "names")))
)
def run_checkpoint(lib, p, values):
    f = calling(lib, p, values)
    return lib.checkpoint(lambda *xs: f(*[lib.named(x) for x in xs]), p.more)(*arrays(lib, p.args, values))


@scoped("closure", weight=1)(draw_call)
def run_closure(lib, p, values):
    return lib.converted(calling(lib, p, values), *arrays(lib, p.args, values))


def draw_rows(scope, more=None):
    rows = scope.places(lambda x: real(x) and filled(x) and len(x) <= 6)
    if not rows:
        return None
    args = (scope.choose.of(rows[-4:]),)
    return Call(args, scope.block([], [scope.values[args[0]][0]], 1), more)


@scoped("vmap", weight=2)(draw_rows)
def run_vmap(lib, p, values):
    f = calling(lib, p, values)
    return lib.vmap(lambda x: tuple(f(x)), (0,), 0)(lib.np.asarray(values[p.args[0]]))


COLLECTIVES = ("psum", "pmean", "pmax", "ppermute", "all_gather", "axis_index")


def draw_lanes(scope):
    places = scope.places(lambda x: real(x) and x.ndim < 3)
    args = (scope.choose.of(places[-4:]),)
    x = scope.values[args[0]]
    return Call(args, scope.block([], [x, x], 1), scope.choose.of(COLLECTIVES))


@scoped("lanes", "jumps", weight=3)(draw_lanes)
def run_lanes(lib, p, values):
    f = calling(lib, p, values)
    x = lib.np.asarray(values[p.args[0]])
    return [lib.lanes(lambda x, shared: f(x, shared)[0], lib.np.stack([x, 0.5 * x, -x]), p.more)]


def draw_autocast(scope):
    carry = draw_carry(scope)
    return Call(carry, scope.block([scope.values[i] for i in carry], [], 0))


@scoped("autocast", "single", weight=2)(draw_autocast)
def run_autocast(lib, p, values):
    with lib.autocast("float32"):
        return changed(lib, p.block, values, arrays(lib, p.args, values), [])[0]


@scoped("rule", "finite", weight=5)(draw_spec)
def run_rule(lib, p, values):
    spec, places = p
    return list(lib.ruled(spec, *arrays(lib, places, values)))


# --- hooks --------------------------------------------------------------------------------------------------------

FACTORS = (2.0, -1.0, 0.5, 3.0)
kind("inline hook", lambda lib, n, x: lib.hook(x, FACTORS[n], "inline"), real, flags="hooked", weight=2)
kind("host hook", lambda lib, n, x: lib.hook(x, FACTORS[n], "host"), real, flags="hooked once", weight=2)
kind("looking hook", lambda lib, n, x: lib.hook(x, 1.0, "inline"), real)
kind("looking host hook", lambda lib, n, x: lib.hook(x, 1.0, "host"), real, flags="once", weight=1)

# --- Python -------------------------------------------------------------------------------------------------------

kind("called", lambda lib, n, x: lib.host(x), real, flags="host")
kind(
    "noted", lambda lib, n, x: lib.note(n, 1.5 * x), lambda x: real(x) and x.ndim == 0, flags="log", weight=0
)


def _looked_at(lib, n, x):
    lib.look(10 + n, x)
    return lib.np.sin(x)


kind("looked at", _looked_at, lambda x: real(x) and x.ndim == 0, flags="log", weight=0)

# --- Numba --------------------------------------------------------------------------------------------------------


class NumbaProgram:
    """A function for Numba, beside the same for a library of `libraries`."""

    def __init__(self, source, by_hand):
        self.source, self.by_hand = source, by_hand
        self._native = None

    @property
    def native(self):
        """The function, compiled at its first use."""
        if self._native is None:
            self._native = ft.numba_call(ft.njit(self.source))
        return self._native


def _smooth(x, a):
    y = np.empty_like(x)
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = a * x[i] + (1.0 - a) * y[i - 1]
    return y


def _smooth_by_hand(lib, x, a):
    rows = [x[0]]
    for i in range(1, len(x)):
        rows.append(a * x[i] + (1.0 - a) * rows[-1])
    return lib.np.stack(rows)


def _garch(x, a):
    """Writes an element in a branch."""
    h = np.zeros_like(x)
    for i in range(1, len(x)):
        h[i] = 0.5 * h[i - 1] + 0.1 * x[i] * x[i]
        if x[i] < 0.1:
            h[i] = h[i] + a * x[i - 1]
    return h


def _garch_by_hand(lib, x, a):
    rows = [0.0 * x[0]]
    for i in range(1, len(x)):
        h = 0.5 * rows[-1] + 0.1 * x[i] * x[i]
        rows.append(h + a * x[i - 1] if bool(x[i] < 0.1) else h)
    return lib.np.stack(rows)


def _energy(x, a):
    """Pairs, with a chain of branches and an early exit of the inner loop."""
    total = 0.0
    for i in range(len(x)):
        for j in range(i):
            d = x[i] - x[j]
            if d > 1.0:
                total += a * d
            elif d > 0.0:
                total += d * d
            else:
                total -= 0.5 * d
            if j > 3:
                break
    return np.sin(total)


def _energy_by_hand(lib, x, a):
    total = 0.0 * a
    for i in range(len(x)):
        for j in range(min(i, 5)):
            d = x[i] - x[j]
            total = total + (a * d if bool(d > 1.0) else d * d if bool(d > 0.0) else -0.5 * d)
    return lib.np.sin(total)


NUMBA = [
    NumbaProgram(_smooth, _smooth_by_hand),
    NumbaProgram(_garch, _garch_by_hand),
    NumbaProgram(_energy, _energy_by_hand),
]


def _numba(lib, n, x):
    x = lib.np.asarray(lib.np.ravel(x), dtype="f8")
    return lib.np.asarray(lib.numba(NUMBA[n % 3])(x, lib.np.sum(lib.np.sin(x))))  # of an array it is NumPy's


kind("numba", _numba, lambda x: real(x) and filled(x), flags="numba jumps", weight=2)

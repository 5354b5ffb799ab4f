"""Programs: how they are drawn, what they are run with, and at which points."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import functrans as ft
import functrans.numpy as fnp

from . import calls, elementwise, indexing, loops, structure  # noqa: F401  they fill the table of kinds
from .choices import Choices, NothingFits, drawn_by
from .libraries import Functrans, Python, late_cotangent, with_rule
from .records import KINDS, Block, Kind, Statement, real

SHAPES = [(3,), (), (1,), (2, 3), (0,), (3, 1), (1, 3), (3, 3), (0, 2), (2, 1, 3)]
#: Beside each threshold: nothing, what stays in registers or on the stack, what is unrolled, what is a parameter.
SIZES = (3, 0, 1, 2, 4, 15, 16, 17, 40)
LARGEST, MOST = 80, 50.0
NUMPY = Python(np)


def kinds_with(**filters: Any) -> list[str]:
    """Names of kinds; ``flags`` must all be there, ``without`` must not."""
    wanted, unwanted = set(filters.get("flags", ())), set(filters.get("without", ()))
    return [name for name, k in KINDS.items() if wanted <= k.flags and not unwanted & k.flags]


class Scope:
    """What a statement can read while a program is drawn, as examples; `add` draws and runs the next one."""

    def __init__(
        self, choose: Choices, values: Sequence[Any], weights: dict[str, int], depth: int, flags: set[str]
    ):
        self.choose, self.values, self.weights, self.depth, self.flags = (
            choose,
            list(values),
            weights,
            depth,
            flags,
        )
        self.statements: list[Statement] = []
        self.largest = LARGEST

    def places(self, test: Callable[..., bool]) -> list[int]:
        """Places of arrays of some kind; Python's numbers are none."""
        return [i for i, v in enumerate(self.values) if isinstance(v, np.ndarray) and test(v)]

    def block(self, carry: Sequence[Any], args: Sequence[Any], more: int) -> Block:
        """A block whose first outputs are to become those of the carry, and that has some outputs more."""
        inner = Scope(
            self.choose,
            [*self.values, *carry, *[np.asarray(a) for a in args]],
            self.weights,
            self.depth - 1,
            self.flags,
        )
        own = len(self.values)
        for _ in range(self.choose.integer(1, 3)):
            inner.add()
        outs = [inner.latest(c, own + k) for k, c in enumerate(carry)]
        floats = inner.places(real)
        recent = [i for i in floats if i >= own] or floats
        outs += [self.choose.of(recent[::-1][:4]) for _ in range(more)]
        return Block(tuple(inner.statements), tuple(outs))

    def latest(self, like: Any, place: int) -> int:
        """The place of what a carried value becomes: mostly the last value of its type, as arrays are written."""
        like = np.asarray(like)
        same = [
            i for i in self.places(lambda v: (v.shape, v.dtype) == (like.shape, like.dtype)) if i >= place
        ]
        if same[-1] == place and self.choose.chance(60):
            return len(self.values) - 1
        return self.choose.of(same[::-1][:3]) if self.choose.chance(20) else same[-1]

    def operands(self, record: Kind) -> tuple[int, ...] | None:
        """Places that fit, the first mostly a late one."""
        found: list[int] = []
        for k in range(record.count):
            late = list(range(len(self.values)))[::-1]
            if k == 0 and self.choose.chance(70):
                late = late[:4]
            found.append(self.choose.of(late))
        if record.fits(*[np.asarray(self.values[i]) for i in found]):
            return tuple(found)
        return self._fitting(record)

    def _fitting(self, record: Kind) -> tuple[int, ...] | None:
        """Operands by search, from the last values on, or None."""
        arrays = [np.asarray(v) for v in self.values]
        late = list(range(len(arrays)))[::-1][:12]
        options = [()]
        for _ in range(record.count):
            options = [(*o, i) for o in options for i in late][:400]
        fitting = [o for o in options if record.fits(*[arrays[i] for i in o])]
        return self.choose.of(fitting[:12]) if fitting else None

    def add(self) -> bool:
        """Draw a statement and run it; False if it cannot be here."""
        record = KINDS[self.choose.of(_names(tuple(self.weights.items()), self.depth > 0))]
        before = set(self.flags)
        statement = self.drawn(record)
        if statement is None:
            return False
        try:
            found = statement.run(NUMPY, self.values)
        except np.linalg.LinAlgError:
            found = None
        if found is None or not all(_tame(np.asarray(v), self.largest) for v in found):
            self.flags.intersection_update(before)
            return False
        self.flags.update(record.flags)
        self.statements.append(statement)
        self.values += [np.asarray(v) if isinstance(v, np.generic) else v for v in found]
        return True

    def drawn(self, record: Kind) -> Statement | None:
        """A statement of a kind."""
        if record.draw is not None:
            try:
                params = record.draw(self)
            except NothingFits:
                return None
            return None if params is None else Statement(record.name, (), params)
        operands = self.operands(record)
        return None if operands is None else Statement(record.name, operands, self.choose.integer(0, 3))


def _tame(v: np.ndarray, largest: int) -> bool:
    return (
        v.size <= largest and v.ndim <= 3 and bool(np.isfinite(v).all()) and np.abs(v).max(initial=0) <= MOST
    )


@functools.cache
def _names(weights: tuple[tuple[str, int], ...], nested: bool) -> tuple[str, ...]:
    """Names of kinds as often as they weigh, simple ones first."""
    names = [n for n, w in weights for _ in range(w) if nested or KINDS[n].draw is None]
    return tuple(sorted(names, key=lambda n: KINDS[n].draw is not None))


@dataclass(frozen=True, eq=False)
class Program:
    """Statements on some arrays; a function of these to a tuple of values.

    A program never changes: `jit` of it would trace again.
    `late` are hooks, ``(place, factor, after which statement)``, that are registered on values after other uses.
    """

    inputs: list[np.ndarray]
    statements: tuple[Statement, ...]
    outs: tuple[int, ...]
    flags: frozenset[str] = frozenset()
    late: tuple[tuple[int, float, int], ...] = ()

    def run(self, lib: Any, *xs: Any) -> tuple[Any, ...]:
        """The outputs, by a library."""
        values = [lib.np.asarray(x) for x in xs]
        if self.late:
            values = self._hooked(lib, values)
        else:
            values = Block(self.statements, ()).values(lib, values, ())
        return tuple([lib.np.asarray(values[i]) for i in self.outs])

    def _hooked(self, lib: Any, values: list[Any]) -> list[Any]:
        """The values of a program with late hooks, which Python has at the definitions of their values."""
        first = len(values) - 1
        values[first] = self._defined(lib, values[first], first)
        for k, statement in enumerate(self.statements):
            self._registered(lib, values, k)
            (value,) = statement.run(lib, values)
            values.append(self._defined(lib, value, len(values)))
        self._registered(lib, values, len(self.statements))
        return values

    def _registered(self, lib: Any, values: list[Any], now: int) -> None:
        for place, factor, when in self.late:
            if lib.compiled and when == now:
                ft.register_hook(values[place], late_cotangent(factor))

    def _defined(self, lib: Any, value: Any, place: int) -> Any:
        for own, factor, _ in reversed(self.late):  # the one registered first comes last
            if own == place and lib.differentiable and not lib.compiled:
                value = with_rule(value, late_cotangent(factor))
        return value

    def __call__(self, *xs: Any) -> tuple[Any, ...]:
        return self.run(Functrans(), *xs)

    def plain(self, *xs: Any) -> tuple[Any, ...]:
        """By Python's loops on arrays of functrans, which can be differentiated."""
        return self.run(Python(fnp), *xs)

    def reference(self, *xs: Any) -> tuple[np.ndarray, ...]:
        """By NumPy."""
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return tuple([np.asarray(y) for y in self.run(NUMPY, *xs)])

    def point(self, seed: int, lanes: int | None = None) -> list[np.ndarray]:
        """Other arrays of the types of the inputs, or lanes of them."""
        random, batch = np.random.default_rng(seed), () if lanes is None else (lanes,)
        return [numbers(random, (*batch, *x.shape), x.dtype) for x in self.inputs]


def numbers(random: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Random numbers from -1.2 to 1.2; integers from -1 to 3."""
    dtype = np.dtype(dtype)
    if dtype.kind == "i":
        return np.asarray(random.integers(0, 5, shape) - 1).astype(dtype)
    if dtype.kind == "b":
        return np.asarray(random.integers(0, 2, shape)).astype(dtype)
    x = random.uniform(-1.2, 1.2, shape)
    if dtype.kind == "c":
        x = 0.7 * x + 0.7j * random.uniform(-1.2, 1.2, shape)
    return np.asarray(x).astype(dtype)


LAYOUTS = ("plain", "strided", "reversed", "fortran", "frozen", "array")


def laid_out(x: np.ndarray, how: str) -> Any:
    """The same numbers in another layout of memory."""
    if how == "strided" and x.ndim:
        wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
        wide[..., ::2] = x
        return wide[..., ::2]
    if how == "reversed" and x.ndim:
        return x[::-1].copy()[::-1]
    if how == "fortran" and x.ndim:
        return np.asfortranarray(x)
    if how == "frozen":
        x = x.copy()
        x.flags.writeable = False
    return fnp.asarray(x) if how == "array" else x


# --- drawing ------------------------------------------------------------------------------------------------------

#: Everything that can be differentiated and compared, with and without Numba.
EVERYTHING = {n: KINDS[n].weight for n in kinds_with(without=["log"])}
WITHOUT_NUMBA = {n: w for n, w in EVERYTHING.items() if "numba" not in KINDS[n].flags}
#: Loops that mostly write the arrays that they carry.
WRITING = {
    n: WITHOUT_NUMBA[n] * (5 if n in ("put", "move", "old", "exchange", "paste", "reference", "fori", "scan") else 1)
    for n in ("sin", "mix", "add", "constant", "put", "move", "old", "exchange", "paste", "put beyond", "element",
              "reference", "scan", "fori", "while", "cond", "switch")
}  # fmt: skip
STRAIGHT = {
    n: w for n, w in WITHOUT_NUMBA.items() if KINDS[n].draw is None and "hooked" not in KINDS[n].flags
}
#: What reverse mode computes may be what forward mode computes.
UNHOOKED = {n: w for n, w in WITHOUT_NUMBA.items() if "hooked" not in KINDS[n].flags}


def draw_inputs(choose: Choices, dtype: Any = None, integers: bool = True) -> list[np.ndarray]:
    """One to three arrays of numbers that may broadcast, and mostly integers, too."""
    random = np.random.default_rng(choose.integer(0, 99))
    n = choose.of(SIZES) if choose.chance(50) else None
    shape = choose.of(SHAPES) if n is None else choose.of([(n,), (2, n), (n, 2)])
    dtype = dtype or choose.of(["f8"] * 8 + ["f4", "c16"])
    found = []
    for i in range(choose.of([1, 2, 3, 2])):
        own = shape if i == 0 else choose.of([shape, shape[1:], (), (1,) * len(shape)])
        mixed = "f4" if dtype == "f8" and i and choose.chance(10) else dtype
        found.append(numbers(random, own, mixed))
    if dtype == "c16" and choose.chance(50):
        found.append(numbers(random, shape, "f8"))
    if integers:
        more = [np.asarray(1), numbers(random, (2,), "i4"), numbers(random, (), "?")]
        found += choose.of([more[:1], more[:2], more, []])
    return found


def draw_program(choose: Choices, weights: dict[str, int] | None = None, most: int = 6, depth: int = 2,
                 inputs: list[np.ndarray] | None = None, largest: int = LARGEST) -> Program:  # fmt: skip
    """A program; `depth` of blocks in blocks."""
    inputs = draw_inputs(choose) if inputs is None else inputs
    flags = {"single"} if any(x.dtype == np.float32 for x in inputs) else set()
    scope = Scope(choose, inputs, weights or WITHOUT_NUMBA, depth, flags)
    scope.largest = largest
    for _ in range(choose.integer(1, most)):
        scope.add()
    last = len(scope.values) - 1
    made = range(len(inputs), len(scope.values))
    outs = list(made) if choose.chance(30) and made else [last, *choose.some(made, 0, 3)]
    floats = [i for i in scope.places(lambda x: x.dtype.kind in "fc") if i >= len(inputs)]
    if not any(i in floats for i in outs):
        outs.append(floats[-1] if floats else 0)
    return Program(inputs, tuple(scope.statements), tuple(outs), frozenset(scope.flags))


programs = drawn_by(draw_program)

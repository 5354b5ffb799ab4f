"""What a program consists of: values by number, statements that make more of them, and one record for each kind.

A statement reads earlier values by their place; a block (the body of a loop, a branch, a function) sees the values
around it, its own arguments, and what its statements make. A kind of statement is one record of `KINDS`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Kind(NamedTuple):
    """A kind of statement.

    Parameters
    ----------
    name : str
    run : callable
        ``run(lib, n, *operands)`` gives one value. For a kind with a `draw` of its own it is
        ``run(lib, params, values)``, with all values in scope, and gives a list of values.
    fits : callable
        Whether operands, as arrays, can be those of such a statement.
    count : int
        Of operands.
    draw : callable or None
        ``draw(scope)`` gives the parameters, or None if it cannot be here.
    flags : frozenset of str
        ``single``: rounds to single precision. ``jumps``: not continuous or not smooth everywhere. ``control``: loops
        or branches. ``hooked``: changes cotangents, so that reverse mode is not the transpose of forward mode.
        ``once``: cannot be differentiated twice in compiled code. ``host``: calls Python; ``log``: writes to the log.
        ``numba``: uses Numba. ``tame``: values and slopes in [-1, 1] where operands are. ``exact``: rounded as NumPy
        does. ``weak``: takes Python's numbers as they are. ``finite``: differs from NumPy for special numbers.
    weight : int
        How often it is drawn.
    pull, push : callable or None
        ``pull(xs, y, ct, n)`` gives cotangents of the operands, ``push(xs, y, tangents, n)`` the tangent; written down
        for rules, of which the statement can be a part.
    """

    name: str
    run: Callable[..., Any]
    fits: Callable[..., bool]
    count: int = 1
    draw: Callable[..., Any] | None = None
    flags: frozenset[str] = frozenset()
    weight: int = 2
    pull: Callable[..., Any] | None = None
    push: Callable[..., Any] | None = None


KINDS: dict[str, Kind] = {}


def kind(
    name: str,
    run: Callable[..., Any],
    fits: Callable[..., bool],
    count: int = 1,
    flags: str = "",
    **more: Any,
):
    """Add a record to the table."""
    assert name not in KINDS, name
    KINDS[name] = Kind(name, run, fits, count, flags=frozenset(flags.split()), **more)


def scoped(name: str, flags: str = "", weight: int = 2, fits: Callable[..., bool] = lambda: True):
    """A decorator of the `run` of a kind that draws its own parameters, with the function that draws them."""

    def add(draw):
        def of(run):
            KINDS[name] = Kind(name, run, fits, 0, draw, frozenset(flags.split()), weight)
            return run

        return of

    return add


class Statement(NamedTuple):
    """A kind, the places of its operands, and a number or whatever else its kind needs."""

    kind: str
    operands: tuple[int, ...]
    params: Any

    def run(self, lib: Any, values: list[Any]) -> list[Any]:
        """The values it makes."""
        record = KINDS[self.kind]
        if record.draw is not None:
            return list(record.run(lib, self.params, values))
        operands = [values[i] for i in self.operands]
        if "weak" not in record.flags:
            operands = [lib.np.asarray(v) if isinstance(v, int | float) else v for v in operands]
        return [record.run(lib, self.params, *operands)]


class Block(NamedTuple):
    """Statements on the values around, some arguments and their own values; `outs` are places."""

    statements: tuple[Statement, ...]
    outs: tuple[int, ...]

    def run(self, lib: Any, around: list[Any], args: Any) -> list[Any]:
        """The values of the outputs."""
        values = self.values(lib, around, args)
        return [values[i] for i in self.outs]

    def values(self, lib: Any, around: Any, args: Any) -> list[Any]:
        values = [*around, *args]
        for statement in self.statements:
            values += statement.run(lib, values)
        return values


# --- what operands are --------------------------------------------------------------------------------------------


def real(*xs: Any) -> bool:
    return all(x.dtype.kind == "f" for x in xs)


def number(*xs: Any) -> bool:
    """Real or complex."""
    return all(x.dtype.kind in "fc" for x in xs)


def integer(x: Any) -> bool:
    return x.dtype.kind == "i"


def boolean(x: Any) -> bool:
    return x.dtype.kind == "b"


def filled(x: Any) -> bool:
    """At least one row."""
    return x.ndim > 0 and x.size > 0


def broadcast(*xs: Any) -> bool:
    try:
        return len(np.broadcast_shapes(*[x.shape for x in xs])) <= 3
    except ValueError:
        return False


def both(*tests: Callable[..., bool]) -> Callable[..., bool]:
    return lambda *xs: all(test(*xs) for test in tests)


def ranked(least: int, test: Callable[..., bool] = number) -> Callable[..., bool]:
    return lambda x: x.ndim >= least and test(x)


def fitted(lib: Any, v: Any, like: Any) -> Any:
    """A value as one of the shape and dtype of another."""
    np_, dtype = lib.np, np.dtype(like.dtype)
    v = np_.asarray(v)
    if (tuple(v.shape), v.dtype) == (tuple(like.shape), dtype):
        return v
    if v.dtype.kind in "fc" and dtype.kind not in "fc":
        v = np_.real(v)
        v = np_.where(v > 0.3, 1, 0) + np_.where(v > 1.0, 2, 0)
    elif v.dtype.kind not in "fc" and dtype.kind in "fc":
        v = 0.25 * np_.asarray(v, dtype="f8")
    elif v.dtype.kind == "c" and dtype.kind == "f":
        v = np_.real(v)
    v = v > 0 if dtype.kind == "b" and v.dtype.kind != "b" else np_.asarray(v, dtype=dtype)
    if tuple(v.shape) == tuple(like.shape):
        return v
    total = np_.any(v) if dtype.kind == "b" else np_.asarray(np_.sum(v), dtype=dtype)
    if v.size > 6 and dtype.kind in "fc":  # long sums in sines would make rounding errors large
        total = np_.asarray(total * (3 / v.size), dtype=dtype)
    return np_.broadcast_to(total, like.shape)

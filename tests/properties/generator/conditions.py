"""Where a program can be compared: points at which rounding stays rounding; and its floats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

import functrans.numpy as fnp

from .drawing import Program
from .stacks import direction, moves, weighed

Points = Sequence[int]
CHAOS = 1e-7
"""How far the values of a program may move where its floats move by 1e-10."""


def tolerance_of(program: Program, usual: float = 1e-9) -> float:
    return 5e-4 if "single" in program.flags else usual


def nudged(xs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Numbers moved by 1e-10, large ones relative to their size: a rounding of 1e300 is more than any fixed step."""
    return [
        x + np.asarray(1e-10 * direction(x) * np.maximum(1.0, np.abs(x)), x.dtype) if moves(x) else x
        for x in xs
    ]


def _change(a: np.ndarray, b: np.ndarray) -> float:
    """The largest difference of elements; of large ones, relative to their size."""
    b = b.astype(np.result_type(a, b, "f8"))
    return (np.abs(a - b) / np.maximum(1.0, np.abs(b))).max()


def sensitive(program: Program, xs: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> set[int]:
    """Outputs where rounding does not stay rounding: beside a jump, or of a chaotic map."""
    found = set()
    if "single" in program.flags:
        xs, step = [x.astype("f8") if x.dtype == np.float32 else x for x in xs], 1e-5
        moved = [x + step * direction(x) if moves(x) else x for x in xs]
        scale = 1e-2
    else:
        moved, scale = nudged(xs), CHAOS
    for k, (a, b) in enumerate(zip(program.reference(*moved), expected)):
        if (
            a.shape != b.shape
            or not np.isfinite(b if moves(b) else 0.0).all()
            or (a.size and not _change(a, b) <= scale)
        ):
            found.add(k)
    return found


Known = tuple[list[np.ndarray], tuple[np.ndarray, ...], set[int]]
_KNOWN: WeakKeyDictionary[Program, dict[int, Known]] = WeakKeyDictionary()
"""By program and seed. Not in the program: `jit` of an object traces again once an attribute has changed."""


def known(program: Program, seed: int) -> Known:
    """A point, NumPy's values there, and the numbers of those that are not well conditioned; computed once."""
    found = _KNOWN.setdefault(program, {})
    if seed not in found:
        xs = program.point(seed)
        expected = program.reference(*xs)
        found[seed] = xs, expected, sensitive(program, xs, expected)
    return found[seed]


def steady(program: Program, points: Points) -> list[list[np.ndarray]]:
    """The points at which all outputs are well conditioned."""
    return [xs for xs, _, skip in [known(program, seed) for seed in points] if not skip]


def check_unchanged(xs: Sequence[Any], before: Sequence[np.ndarray]) -> None:
    """Arguments are what they were. (They do not count as compared.)"""
    for x, y in zip(xs, before, strict=True):
        assert np.array_equal(x, y), "an argument has changed"


def floats_of(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function without the outputs that have no derivative."""
    return lambda *xs: tuple([y for y in f(*xs) if moves(y)])


def places_of_floats(xs: Sequence[Any]) -> tuple[int, ...]:
    return tuple(i for i, x in enumerate(xs) if moves(x))


def of_loss(f: Callable[..., Any]) -> Callable[..., Any]:
    """A number that depends on all outputs, not linearly."""
    return lambda *xs: weighed([fnp.sin(y) for y in f(*xs) if moves(y)])


def in_floats(f: Callable[..., Any], xs: Sequence[Any]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    at = places_of_floats(xs)

    def g(*floats):
        full = list(xs)
        for i, x in zip(at, floats):
            full[i] = x
        return f(*full)

    return g, tuple(xs[i] for i in at)

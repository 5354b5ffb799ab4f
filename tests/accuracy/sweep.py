"""Functions and their derivatives at special and ordinary points, in every mode, beside their references."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from functions import Entry
from mpmath import mp, mpf

import functrans as ft
import functrans.numpy as fnp

ORDER = 3
#: Exact in float32, so that one reference serves both dtypes.
SPECIAL = [
    0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, 30.0, -30.0, 1e30, -1e30, 1e-30, -1e-30, math.inf, -math.inf,
    1 - 2.0**-20, 1 + 2.0**-20, -1 + 2.0**-20, 2.0**-20, -(2.0**-20), 100.0, -100.0,
]  # fmt: skip
SPECIAL_OF_TWO = [0.0, 1.0, -1.0, 0.5, 3.0, -30.0, 1e30, -1e30, 1e-30, math.inf, -math.inf]
SPECIAL_OF_THREE = [0.0, 0.5, 1.0, 3.0]
MODES = ("forward", "reverse", "mixed")


def points_of(entry: Entry, ordinary: int = 24, seed: int = 0) -> list[tuple[float, ...]]:
    """Special points and their neighbours in the domain, and ordinary ones."""
    count = len(entry.domain)
    special = (SPECIAL, SPECIAL_OF_TWO, SPECIAL_OF_THREE)[count - 1]
    found = [p for p in itertools.product(special, repeat=count) if _inside(entry, p)]
    random = np.random.default_rng(seed)
    while ordinary:
        p = tuple(random.uniform(-entry.around, entry.around, count).tolist())
        if _inside(entry, p):
            found.append(p)
            ordinary -= 1
    return [tuple(float(np.float32(x)) for x in p) for p in found]


def _inside(entry: Entry, point: Sequence[float]) -> bool:
    def fits(x: float, low: float, high: float) -> bool:
        return low <= x <= high and abs(x) <= entry.largest

    inside = all(fits(x, low, high) for x, (low, high) in zip(point, entry.domain))
    return inside and tuple(point) not in entry.without


# --- functrans ----------------------------------------------------------------------------------------------


def _forward(f: Callable[..., Any], i: int) -> Callable[..., Any]:
    def slope(*xs: Any) -> Any:
        def of_one(x: Any) -> Any:
            return f(*xs[:i], x, *xs[i + 1 :])

        return ft.jvp(of_one, (xs[i],), (fnp.ones_like(xs[i]),))[1]

    return slope


def _reverse(f: Callable[..., Any], i: int) -> Callable[..., Any]:
    return ft.grad(lambda *xs: fnp.sum(f(*xs)), argnums=i)


def derivative(f: Callable[..., Any], path: Sequence[int], mode: str) -> Callable[..., Any]:
    """The partial derivative of an elementwise function in one argument after the other."""
    for n, i in enumerate(path):
        wrap = {"forward": _forward, "reverse": _reverse}.get(mode) or (_reverse, _forward)[n % 2]
        f = wrap(f, i)
    return f


def paths(entry: Entry, order: int = ORDER) -> Iterator[tuple[int, ...]]:
    """In which arguments, one after the other."""
    for n in range(order + 1):
        yield from itertools.product(entry.arguments, repeat=n)


def computed(
    entry: Entry, points: Sequence[Sequence[float]], dtype: Any, run: Callable[..., Any]
) -> dict[Any, Any]:
    """All derivatives at all points, by path and mode."""
    cases = [(p, m) for p in paths(entry) for m in (MODES if len(p) > 1 else MODES[: len(p) + 1])]
    columns = [np.tile(np.array(c, dtype), 2) for c in zip(*points)]

    def everything(*xs: Any) -> Any:
        return [derivative(entry.call, p, m)(*xs) for p, m in cases]

    with np.errstate(all="ignore"):
        return dict(zip(cases, map(np.asarray, run(everything)(*columns))))


# --- comparison ---------------------------------------------------------------------------------------------


@dataclass
class Found:
    """What came of one function in one dtype."""

    compared: int = 0
    #: By order of the derivative.
    worst: list[float] = field(default_factory=lambda: [0.0] * (ORDER + 1))
    #: NaN, and infinities and finite numbers in each other's place: (path, mode, point, got, expected).
    wrong: list[tuple[Any, ...]] = field(default_factory=list)


def references(entry: Entry, points: Sequence[Sequence[float]]) -> dict[Any, Any]:
    """By orders in each argument and point: the value, and by how much an ulp of the arguments changes it."""
    found: dict[Any, Any] = {}
    for path in paths(entry):
        orders = tuple(path.count(i) for i in range(len(entry.domain)))
        for point in points:
            if (orders, point) not in found:
                found[orders, point] = _with_condition(entry, orders, point)
    return found


def _with_condition(entry: Entry, orders: tuple[int, ...], point: Sequence[float]) -> Any:
    value = entry.reference(orders, point)
    if value is None or not mp.isfinite(value):
        return value, mpf(0)
    change = mpf(0)
    for i, x in enumerate(point):
        if x and math.isfinite(x) and (sum(orders) or entry.conditioned):
            with mp.workdps(60):
                moved = [mpf(v) for v in point]
                moved[i] *= 1 + mpf(10) ** -12
                other = entry.reference._at(orders, moved)
                change = max(change, abs(other - value) * mpf(10) ** 12 if other is not None else 0)
    return value, change


def error(got: float, value: mpf, change: mpf, dtype: Any) -> float:
    """In units in the last place of the value, or of what changes of the arguments by one change it.

    Infinite for NaN, and for infinities and finite numbers in each other's place.
    """
    info = np.finfo(dtype)
    largest, tiny, eps = mpf(float(info.max)), mpf(float(info.tiny)), mpf(float(info.eps))
    if math.isnan(got):
        return math.inf
    if abs(value) > largest:
        return 0.0 if math.isinf(got) and (got > 0) == (value > 0) else math.inf
    if math.isinf(got):
        return 0.0 if abs(value) > largest / 8 and (got > 0) == (value > 0) else math.inf
    if abs(value) < tiny and abs(got) <= float(tiny):
        return 0.0
    ulp = mpf(2) ** mp.floor(mp.log(max(abs(value), tiny), 2)) * eps
    return float(abs(mpf(got) - value) / max(ulp, change * eps))


def _beyond(point: Sequence[float], dtype: Any) -> bool:
    """Whether squares of arguments are out of the range of the dtype: mixed derivatives are made of them."""
    return (
        len(point) > 1
        and any(x and math.isfinite(x) and not 1e-18 < abs(x) < 1e18 for x in point)
        and dtype == np.float32
    )


def sweep(
    entry: Entry,
    points: Sequence[tuple[float, ...]],
    expected: dict[Any, Any],
    dtype: Any,
    run: Callable[..., Any],
    found: Found,
) -> None:
    """Compare one function in one dtype, as `run` runs it."""
    for (path, mode), values in computed(entry, points, dtype, run).items():
        orders = tuple(path.count(i) for i in range(len(entry.domain)))
        for k, got in enumerate(values.tolist()):
            point = points[k % len(points)]
            value, change = expected[orders, point]
            if value is None or (len(path) > 1 and _beyond(point, dtype)):
                continue
            found.compared += 1
            # Never less than an ulp of the slope that is computed from the result.
            scale = max(change, entry.slope) if path else change
            ulps = error(got, value, scale, values.dtype)
            if math.isinf(ulps):
                found.wrong.append((path, mode, point, got, float(value)))
            else:
                found.worst[len(path)] = max(found.worst[len(path)], ulps)


def strict(f: Callable[..., Any]) -> Callable[..., Any]:
    """Compiled without vector functions and contraction."""

    def call(*xs: Any) -> Any:
        with ft.config.patch(strict=True):
            return ft.jit(f)(*xs)

    return call


RUNS = {"jit": ft.jit, "eager": lambda f: f, "strict": strict}


def measured(entry: Entry, points: Sequence[tuple[float, ...]], dtypes: Any, runs: Any) -> dict[Any, Found]:
    """What came of a function, by dtype."""
    expected = references(entry, points)
    found = {dtype: Found() for dtype in dtypes}
    for dtype in dtypes:
        for run in runs:
            sweep(entry, points, expected, dtype, RUNS[run], found[dtype])
    return found

"""Checks of values: every way to run a program gives NumPy's, and leaves its arguments alone."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import functrans as ft
import functrans.numpy as fnp
from functrans import tree

from .comparing import compare
from .conditions import (
    Points,
    check_unchanged,
    floats_of,
    in_floats,
    known,
    places_of_floats,
    sensitive,
    tolerance_of,
)
from .drawing import LAYOUTS, Program, laid_out
from .settings import Setting, under
from .stacks import moves


def check_values(program: Program, points: Points) -> None:
    """Every way to run a program gives NumPy's values, and leaves its arguments alone."""
    jitted, outer = ft.jit(program), ft.jit(ft.jit(program))
    at = places_of_floats(program.inputs)
    for number, seed in enumerate(points):
        xs, expected, skip = known(program, seed)
        before, tolerance = [x.copy() for x in xs], tolerance_of(program)
        compare(jitted(*xs), expected, tolerance, "jit", skip)
        if number < 3:
            compare(outer(*xs), expected, tolerance, "jit of jit", skip)
            compare(program(*xs), expected, tolerance, "eager", skip)
        if number == 0:
            with ft.disable_jit():
                compare(program(*xs), expected, tolerance, "disable_jit", skip)
            primal = ft.vjp(in_floats(floats_of(program), xs)[0], *[xs[i] for i in at])[0]
            kept = [k for k, y in enumerate(expected) if moves(y)]
            compare(
                primal,
                [expected[k] for k in kept],
                tolerance,
                "vjp",
                {n for n, k in enumerate(kept) if k in skip},
            )
        check_unchanged(xs, before)


def check_layouts(program: Program, points: Points) -> None:
    """Memory makes no difference."""
    jitted = ft.jit(program)
    for seed in points:
        xs, expected, skip = known(program, seed)
        moved = [laid_out(x, LAYOUTS[(seed + k) % len(LAYOUTS)]) for k, x in enumerate(xs)]
        found = jitted(*moved)
        compare(found, expected, tolerance_of(program), "jit of other layouts", skip)
        check_unchanged(moved, xs)
        for y in found:
            shared = [x for x in moved if type(x) is np.ndarray and np.shares_memory(np.asarray(y), x)]
            assert not shared, "a result in the memory of an argument"


SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-310, 1e300)


def check_special(program: Program, points: Points) -> None:
    """NaN and infinity travel as in NumPy; where it converts them to integers, anything may come."""
    if {"finite", "single", "numba"} & program.flags or any(x.dtype.kind == "c" for x in program.inputs):
        return
    jitted = ft.jit(program)
    for seed in points:
        xs = program.point(seed)
        for k, x in enumerate(xs):
            if moves(x) and x.size and (k + seed) % 2 == 0:
                x.flat[seed % x.size] = SPECIAL[seed % len(SPECIAL)]
        expected = program.reference(*xs)
        tame = [np.where(np.isfinite(x), x, 0.0).astype(x.dtype) for x in xs]
        skip = sensitive(program, tame, program.reference(*tame))
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compare(jitted(*xs), expected, 1e-9, "jit of special numbers", skip)


def quietly(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function that does not warn: not all that is donated can be used."""

    def run(*xs):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return f(*xs)

    return run


def check_memory(program: Program, points: Points) -> None:
    """Arguments that are donated, and kernels in Python."""
    donating = quietly(ft.jit(lambda *xs: program(*xs), donate_argnums=tuple(range(len(program.inputs)))))
    for number, seed in enumerate(points):
        xs, expected, skip = known(program, seed)
        compare(donating(*tree.map(fnp.array, xs)), expected, tolerance_of(program), "donated", skip)
        if number == 0:
            with ft.config.patch(backend="python"):
                compare(ft.jit(program)(*xs), expected, tolerance_of(program), "in Python", skip)


def check_threads(program: Program, points: Points) -> None:
    """Two threads, on short loops too: equal bits each time, and nearly the numbers of one thread."""
    one, two = [Setting((("num_threads", n),), ("short chunks",)) for n in (1, 2)]
    alone, together = ft.jit(lambda *xs: program(*xs)), ft.jit(lambda *xs: program(*xs))
    for seed in points:
        xs, _, skip = known(program, seed)
        with under(two):
            first, second = together(*xs), together(*xs)
        compare(second, first, 0, "two threads once more", skip)
        with under(one):
            compare(first, alone(*xs), tolerance_of(program), "two threads", skip)

"""Checks of `vmap`: lanes are those of a Python loop, in derivatives too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import functrans as ft
import functrans.numpy as fnp
from functrans import tree

from .comparing import compare
from .conditions import Points, of_loss, places_of_floats, sensitive, tolerance_of
from .derivative_checks import hessian_vector
from .drawing import Program
from .stacks import moves

LANES = 3


def lanes_of(f: Callable[..., Any]) -> Callable[..., Any]:
    """A Python loop over lanes."""

    def run(*xs):
        found = [f(*[x[i] for x in xs]) for i in range(LANES)]
        return tree.map(lambda *rows: np.stack([np.asarray(r) for r in rows]), *found)

    return run


def steady_lanes(program: Program, points: Points) -> list[list[np.ndarray]]:
    found = []
    for seed in points:
        xs = program.point(seed, LANES)
        rows = [[x[i] for x in xs] for i in range(LANES)]
        if not any(sensitive(program, row, program.reference(*row)) for row in rows):
            found.append(xs)
    return found


def check_lanes(program: Program, points: Points) -> None:
    compiled = ft.jit(ft.vmap(program))
    routes = {"vmap": ft.vmap(program), "vmap of jit": ft.vmap(ft.jit(program))}
    for number, xs in enumerate(steady_lanes(program, points)):
        expected = lanes_of(program.reference)(*xs)
        compare(compiled(*xs), expected, tolerance_of(program), "jit of vmap")
        for name, route in routes.items() if number == 0 else ():
            compare(route(*xs), expected, tolerance_of(program), name)
        if number == 0:
            alone = [x if moves(x) else x[0] for x in xs]
            axes = tuple([0 if moves(x) else None for x in xs])
            expected = lanes_of(program.reference)(*[x if moves(x) else np.stack([x[0]] * LANES) for x in xs])
            rows = [[x if a is None else x[i] for x, a in zip(alone, axes)] for i in range(LANES)]
            if not any(sensitive(program, row, program.reference(*row)) for row in rows):
                found = ft.jit(ft.vmap(program, in_axes=axes))(*alone)
                compare(found, expected, tolerance_of(program), "vmap of floats")


def check_lanes_reverse(program: Program, points: Points) -> None:
    f, at = of_loss(program), places_of_floats(program.inputs)
    plain = lanes_of(ft.grad(of_loss(program.plain), argnums=at))
    compiled = ft.jit(ft.vmap(ft.grad(f, argnums=at)))
    summed = lambda *xs: fnp.sum(ft.vmap(f)(*xs))
    routes = {
        "vmap of grad": ft.vmap(ft.grad(f, argnums=at)),
        "grad of vmap": ft.jit(ft.grad(summed, argnums=at)),
    }
    for number, xs in enumerate(steady_lanes(program, points)):
        expected = plain(*xs)
        compare(compiled(*xs), expected, tolerance_of(program, 1e-8), "jit of vmap of grad")
        for name, route in routes.items() if number == 0 else ():
            compare(route(*xs), expected, tolerance_of(program, 1e-8), name)


def check_lanes_second(program: Program, points: Points) -> None:
    if "once" in program.flags:
        return
    compiled = ft.jit(ft.vmap(hessian_vector(of_loss(program))))
    plain = lanes_of(hessian_vector(of_loss(program.plain)))
    for xs in steady_lanes(program, points):
        compare(compiled(*xs), plain(*xs), tolerance_of(program, 1e-7), "vmap of jvp of grad")

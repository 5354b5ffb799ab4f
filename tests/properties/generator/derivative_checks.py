"""Checks of derivatives: forward, reverse, second order, by differences, and by each partition of a program."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import functrans as ft
import functrans.numpy as fnp
from functrans.testing.finite_difference import directional_derivative, is_kink

from .comparing import compare
from .conditions import Points, floats_of, in_floats, of_loss, places_of_floats, steady, tolerance_of
from .drawing import Program
from .stacks import LEVELS, PLAIN, applied, direction, moves


def push(f: Callable[..., Any]) -> Callable[..., Any]:
    def run(*xs):
        g, floats = in_floats(f, xs)
        return ft.jvp(g, floats, tuple([direction(x) for x in floats]))

    return run


def pull(f: Callable[..., Any], at: tuple[int, ...]) -> Callable[..., Any]:
    return ft.value_and_grad(f, argnums=at)


def hessian_vector(f: Callable[..., Any]) -> Callable[..., Any]:
    def run(*xs):
        g, floats = in_floats(f, xs)
        gradient = ft.grad(g, argnums=tuple(range(len(floats))))
        return ft.jvp(gradient, floats, tuple([direction(x) for x in floats]))[1]

    return run


def gradient_of_slope(f: Callable[..., Any]) -> Callable[..., Any]:
    def run(*xs):
        g, floats = in_floats(f, xs)
        slope = lambda *ys: ft.jvp(g, ys, tuple([direction(y) for y in ys]))[1]
        return ft.grad(slope, argnums=tuple(range(len(floats))))(*floats)

    return run


def check_forward(program: Program, points: Points) -> None:
    f, plain = of_loss(program), of_loss(program.plain)
    routes = {"jvp": push(f), "jit of jvp": ft.jit(push(f)), "jvp of jit": push(ft.jit(f))}
    for number, xs in enumerate(steady(program, points)):
        expected = push(plain)(*xs)
        for name, route in routes.items():
            if number == 0 or name == "jit of jvp":
                compare(route(*xs), expected, tolerance_of(program, 1e-8), name)
        if number == 0:
            g, floats = in_floats(f, xs)
            along = ft.linearize(g, *floats)[1](*[direction(x) for x in floats])
            compare(along, expected[1], tolerance_of(program, 1e-8), "linearize")


def check_reverse(program: Program, points: Points) -> None:
    f, plain, at = of_loss(program), of_loss(program.plain), places_of_floats(program.inputs)
    compiled = ft.jit(pull(f, at))
    routes = {"grad": pull(f, at), "grad of jit": pull(ft.jit(f), at)}
    for number, xs in enumerate(steady(program, points)):
        expected = pull(plain, at)(*xs)
        compare(compiled(*xs), expected, tolerance_of(program, 1e-8), "jit of grad")
        for name, route in routes.items() if number == 0 else ():
            compare(route(*xs), expected, tolerance_of(program, 1e-8), name)


def check_second(program: Program, points: Points) -> None:
    if "once" in program.flags:
        return
    f, plain = of_loss(program), of_loss(program.plain)
    compiled = ft.jit(hessian_vector(f))
    routes = {"second": hessian_vector(f)}
    if "hooked" not in program.flags:
        routes["jit of grad of jvp"] = ft.jit(gradient_of_slope(f))
    for number, xs in enumerate(steady(program, points)):
        expected = hessian_vector(plain)(*xs)
        compare(compiled(*xs), expected, tolerance_of(program, 1e-7), "jit of jvp of grad")
        for name, route in routes.items() if number == 0 else ():
            compare(route(*xs), expected, tolerance_of(program, 1e-7), name)


def check_modes(program: Program, points: Points) -> None:
    """Forward and reverse mode are each other's transpose, eager, compiled either way, and batched."""
    if "hooked" in program.flags or any(x.dtype.kind == "c" for x in program.inputs):
        return
    f = floats_of(program)

    def both(*xs):
        g, floats = in_floats(f, xs)
        outs, back = ft.vjp(g, *floats)
        cts = tuple([direction(y) for y in outs])
        slopes = ft.jvp(g, floats, tuple([direction(x) for x in floats]))[1]
        return dotted(cts, slopes), dotted(back(cts), [direction(x) for x in floats])

    compiled = ft.jit(both)
    for number, xs in enumerate(steady(program, points)):
        along, across = compiled(*xs)
        compare(across, along, tolerance_of(program, 1e-8), "transposed")
        if number == 0:
            _other_modes(program, f, xs)


def dotted(xs: Sequence[Any], ys: Sequence[Any]) -> Any:
    return sum([fnp.sum(fnp.asarray(x * y, "f8")) for x, y in zip(xs, ys)])


def _other_modes(program: Program, f: Callable[..., Any], xs: Sequence[Any]) -> None:
    g, floats = in_floats(f, xs)
    jitted, tolerance = ft.jit(g), tolerance_of(program, 1e-8)
    outs, back = ft.vjp(g, *floats)
    cts = tuple([direction(y) for y in outs])
    expected = back(cts)
    many = tuple([fnp.stack([ct, 2 * ct]) for ct in cts])
    compare(ft.vjp(jitted, *floats)[1](cts), expected, tolerance, "vjp of jit")
    compare([x[0] for x in ft.vmap(back)(many)], expected, tolerance, "vmap of the pullback")
    ts = tuple([direction(x) for x in floats])
    slopes = ft.jvp(g, floats, ts)[1]
    compare(ft.linearize(jitted, *floats)[1](*ts), slopes, tolerance, "linearize of jit")
    if "once" not in program.flags:  # hooks that Python runs are not transposed
        compare(ft.linear_transpose(back, cts)(ts)[0], slopes, tolerance, "transpose of the pullback")


def check_slope(program: Program, points: Points) -> None:
    """Differences of the program in NumPy; where it jumps or has a kink, they do not settle."""
    if {"hooked", "single"} & program.flags or any(x.dtype.kind == "c" for x in program.inputs):
        return
    compiled = ft.jit(push(floats_of(program)))
    for xs in steady(program, points):
        at = places_of_floats(xs)
        floats = [xs[i] for i in at]
        moved = [direction(x) for x in floats]

        def f(values, xs=xs, at=at):
            full = list(xs)
            for i, x in zip(at, values):
                full[i] = x
            return [y for y in program.reference(*full) if moves(y)]

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            slopes, errors = directional_derivative(f, floats, moved)
            kinks = is_kink(f, floats, moved) if "jumps" in program.flags or program.statements else False
        if kinks:
            continue
        found = compiled(*xs)[1]
        for k, (a, b, error) in enumerate(zip(found, slopes, errors)):
            good = bool(np.all(error <= 1e-6 * (1 + np.abs(b))))
            compare([a], [np.asarray(b, a.dtype)], 1e-5, f"slope {k} by differences", () if good else {0})


BUDGETS = [
    {"partitioner": partitioner, "activation_memory_budget": budget, "memory_budget_solver": solver}
    for partitioner, budget, solver in (
        ("save_all", 1.0, "dp"), ("recompute_all", 1.0, "dp"), ("min_cut", 0.5, "greedy"), ("min_cut", 0.2, "dp"),
        ("save_all", 0.0, "dp"),
    )
]  # fmt: skip


def check_budgets(program: Program, points: Points) -> None:
    """What the forward program keeps changes no derivative."""
    at, f = places_of_floats(program.inputs), of_loss(program)
    usual = ft.jit(pull(ft.jit(f), at))
    budgets = [BUDGETS[(k + len(program.statements)) % len(BUDGETS)] for k in range(2)]
    for number, xs in enumerate(steady(program, points)):
        expected = usual(*xs)
        for budget in budgets if number == 0 else ():
            with ft.config.patch(**budget):
                value, back = ft.vjp(ft.jit(lambda *ys: f(*ys)), *xs)
                found = back(fnp.ones_like(value))
            compare([found[i] for i in at], expected[1], tolerance_of(program, 1e-10), f"vjp with {budget}")


def check_stack(program: Program, points: Points, stack: Sequence[tuple[str, int]]) -> None:
    if {"once", "hooked"} & program.flags and sum(LEVELS[name][1] for name, _ in stack) > 1:
        return
    f = applied(floats_of(program), stack)
    oracle = applied(floats_of(program.plain), stack, PLAIN)
    for xs in steady(program, points):
        compare(f(*xs), oracle(*xs), tolerance_of(program, 1e-7), "stack")

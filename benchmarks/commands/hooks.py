"""What hooks on cotangents cost, and what donation costs and saves."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from time import thread_time
from typing import Any

import numpy

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.lowering.loops.show import show
from functrans.lowering.run.executable import compile_jaxpr

from ..measure import disagreement, number, rounds, table
from . import donation

Attach = Callable[[Any], Any]
STEPS = 100


def product(x: Any, attach: Attach) -> Any:
    """A little arithmetic, in the middle of which a hook stands."""
    return fnp.sum(fnp.sin(attach(x * x)))


def loop(x: Any, attach: Attach) -> Any:
    """A hook in the body of a loop."""
    return fnp.sum(lax.scan(lambda c, _: (attach(fnp.sin(c)), None), x, None, length=STEPS)[0])


PROGRAMS: dict[str, tuple[Callable[..., Any], int]] = {
    "product": (product, 1),
    f"scan, {STEPS} steps": (loop, STEPS),
}


def keep(ct: Any) -> None:
    """A hook that does nothing."""


def attachments(state: Any) -> dict[str, Attach]:
    """The ways to attach it, the program without a hook first."""

    def registered(x: Any) -> Any:
        ft.register_hook(x, keep)
        return x

    return {
        "no hook": lambda x: x,
        "cotangent_hook": lambda x: ft.cotangent_hook(x, keep),
        "register_hook": registered,
        "BackwardState": lambda x: ft.cotangent_hook(x, state, "on_x"),
        "inline": lambda x: ft.cotangent_hook(x, keep, mode="inline"),
    }


def kernels(f: Callable[..., Any], *arguments: Any) -> list[str]:
    """The texts of the kernels that a function is compiled to; equal texts are the same machine code."""
    return [show(unit.kernel) for unit in compile_jaxpr(ft.make_jaxpr(f)(*arguments)).compile().kernels]


def main(options: argparse.Namespace) -> int:
    """Print the tables; 1 where results or kernels differ, or a limit is missed."""
    faults: list[str] = []
    repeats = options.repeats or 25
    print(
        "Processor time of a backward pass of 10 elements: median microseconds, then what each of its hooks adds.\n"
    )
    names = list(attachments(None))
    header = ("backward pass", *names, *[f"per hook: {name}" for name in names[1:]])
    print(table(header, _hooks(repeats, faults)), "", *faults, sep="\n")
    missed = donation.report(options.repeats or 11)
    return 1 if faults or missed else 0


def _hooks(repeats: int, faults: list[str]) -> list[list[str]]:
    x = numpy.linspace(0.1, 1.0, 10)
    rows = []
    for program, (f, count) in PROGRAMS.items():
        state = ft.BackwardState()
        state.on_x = keep
        forms = attachments(state)
        plain_text = kernels(lambda x, f=f: f(x, lambda x: x), x)
        for what, make in BACKWARD.items():
            calls = {name: make(lambda x, f=f, a=a: f(x, a), x) for name, a in forms.items()}
            for name, call in calls.items():
                if not disagreement(call(), calls["no hook"]()) < 1e-12:
                    faults.append(f"{program}, {what}, {name}: another gradient than without a hook")
            times = {
                name: 1e6 * numpy.array(t) for name, t in rounds(calls, repeats, clock=thread_time).items()
            }
            base = times["no hook"]
            added = [float(numpy.median(t - base)) / count for name, t in times.items() if name != "no hook"]
            medians = [number(float(numpy.median(t))) for t in times.values()]
            rows.append([f"{what}, {program}", *medians, *map(number, added)])
        for name, attach in forms.items():
            if kernels(lambda x, f=f, a=attach: f(x, a), x) != plain_text:
                faults.append(f"{program}, {name}: another forward kernel than without a hook")
    return rows


def _pulled(f: Callable[..., Any], x: Any) -> Callable[[], Any]:
    _, pull = ft.vjp(ft.jit(f), x)
    return lambda: pull(1.0)


def _compiled(f: Callable[..., Any], x: Any) -> Callable[[], Any]:
    gradient = ft.jit(ft.grad(f))
    return lambda: gradient(x)


def _eager(f: Callable[..., Any], x: Any) -> Callable[[], Any]:
    gradient = ft.grad(f)
    return lambda: gradient(x)


BACKWARD: dict[str, Callable[..., Callable[[], Any]]] = {
    "vjp of jit": _pulled,
    "jit of grad": _compiled,
    "eager grad": _eager,
}

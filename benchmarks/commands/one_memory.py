"""A process that calls one program of `run` or `research`; prints what it measured of its memory as JSON.

The program runs once before, so that libraries have what they keep; then all of its memory is returned, the program is
compiled again, and the peak of the next call is that of its arrays.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import functrans as ft

from .. import backends
from ..measure import leaves
from ..peak import high_water
from ..programs import PROGRAMS
from ..workloads.typical import WORKLOADS, Workload

Function = Callable[..., Any]


def programs() -> dict[str, tuple[str, Any]]:
    """The programs by name, with their commands."""
    return {w.name: ("run", w) for w in WORKLOADS} | {p.name: ("research", p) for p in PROGRAMS}


def functions(program: Any) -> tuple[Function, Function | None, Any]:
    """What a program compiles; where that is a value with its gradient, also the function and its `argnums`."""
    own = backends.functrans()
    if isinstance(program, Workload):
        f = own.bind(program.f)
        inner = f if program.transform == "value_and_grad" else None
        return getattr(ft, program.transform)(f, program.argnums), inner, program.argnums
    primal, argnums = getattr(program.f, "primal", (None, None))
    return own.bind(program.f), None if primal is None else own.bind(primal), argnums


def measure(name: str) -> dict[str, float]:
    """Bytes: the peak of a call, what its arrays need, and what `memory_analysis` says."""
    _, program = programs()[name]
    f, inner, argnums = functions(program)
    arguments = backends.functrans().arrays(program.arguments())
    residuals = 0 if inner is None else kept(inner, arguments, argnums)
    ft.jit(f)(*arguments)
    given = size(arguments)
    ft.clear_caches()
    compiled = ft.jit(f).lower(*arguments).compile()
    analysis = compiled.memory_analysis()
    peak = high_water()
    result = compiled(*arguments)
    grown = peak()
    return {
        "measured": given + grown,
        "arguments": given,
        "results": size(result),
        "residuals": residuals,
        "analysis": given
        + analysis.output_size_in_bytes
        + analysis.temp_size_in_bytes
        - analysis.alias_size_in_bytes,
    }


def kept(f: Function, arguments: tuple[Any, ...], argnums: Any) -> int:
    """The bytes that reverse mode keeps between the two programs, besides the arguments."""
    places = (argnums,) if isinstance(argnums, int) else argnums

    def of_these(*chosen: Any) -> Any:
        given = list(arguments)
        for place, x in zip(places, chosen, strict=True):
            given[place] = x
        return compiled(*given)

    compiled = ft.jit(f)
    _, pull = ft.vjp(of_these, *[arguments[place] for place in places])
    return pull.residual_bytes


def size(tree: Any) -> int:
    """The bytes of the arrays of a tree."""
    return sum(x.nbytes for x in leaves(tree))


if __name__ == "__main__":
    ft.config.num_threads = 1
    print(json.dumps(measure(sys.argv[1])))

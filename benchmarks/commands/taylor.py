"""Taylor mode by order: `jet` of functrans and of JAX, and nested `jvp`, through elementwise functions."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

import jax
import jax.experimental.jet
import jax.numpy as jnp
import numpy as np

import functrans as ft
import functrans.numpy as fnp
from functrans.experimental.jet import jet

from ..measure import alternate, disagreement, number, table

ORDERS = (1, 2, 4, 6, 8)
MOST_NESTED = 4


def chain(x: Any, np_: Any) -> Any:
    """Eight elementwise functions, of which two have several operations."""
    for _ in range(2):
        x = np_.exp(np_.tanh(np_.sin(x)))
        x = x * x / (1.0 + x * x)
    return x


def by_functrans(x: Any, v: Any, zeros: Any, order: int) -> Any:
    """Derivatives along a line; the zeros are arrays, as JAX needs them."""
    return jet(lambda x: chain(x, fnp), (x,), ((v, *[zeros] * (order - 1)),))[1]


def by_jax(x: Any, v: Any, zeros: Any, order: int) -> Any:
    """The same by ``jax.experimental.jet``."""
    return jax.experimental.jet.jet(lambda x: chain(x, jnp), (x,), ((v, *[zeros] * (order - 1)),))[1]


def by_jvp(x: Any, v: Any, zeros: Any, order: int) -> Any:
    """The derivative of the highest order alone, by nested `jvp`."""

    def derivative(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda x: ft.jvp(f, (x,), (v,))[1]

    f: Callable[[Any], Any] = partial(chain, np_=fnp)
    for _ in range(order):
        f = derivative(f)
    return f(x)


def main(options: argparse.Namespace) -> int:
    """Print seconds to compile and microseconds a call; 1 where derivatives differ."""
    jax.config.update("jax_enable_x64", True)
    x = np.linspace(0.1, 1.0, 1000)
    given = x, np.ones_like(x), np.zeros_like(x)
    theirs = tuple(map(jnp.asarray, given))
    rows, fault = [], False
    for order in ORDERS:
        calls: dict[str, Callable[[], Any]] = {}
        compiling, operations = {}, {}
        contestants: dict[str, Any] = {"functrans": by_functrans, "JAX": by_jax}
        if order <= MOST_NESTED:
            contestants["nested jvp"] = by_jvp
        results = {}
        for name, f in contestants.items():
            transform, args = (jax.jit, theirs) if name == "JAX" else (ft.jit, given)
            compiled = transform(lambda *xs, f=f, order=order: f(*xs, order))
            start = perf_counter()
            with ft.config.patch(cache=False):
                results[name] = jax.block_until_ready(compiled(*args))
            compiling[name] = perf_counter() - start
            calls[name] = lambda c=compiled, args=args: jax.block_until_ready(c(*args))
            if name != "JAX":
                made = ft.make_jaxpr(lambda *xs, f=f, order=order: f(*xs, order))(*given)
                operations[name] = str(len(made.eqns))
        fault |= not disagreement(results["functrans"][-1], results["JAX"][-1]) < 1e-8
        times = alternate(calls, options.repeats or 9)
        rows.append(
            [
                str(order),
                *[operations.get(name, "-") for name in ("functrans", "nested jvp")],
                *[number(compiling[name]) for name in ("functrans", "JAX")],
                *[
                    number(1e6 * times[name] if name in times else None)
                    for name in ("functrans", "JAX", "nested jvp")
                ],
            ]
        )
    print("Derivatives along a line up to an order, of 1000 numbers through eight functions, compiled.\n")
    header = ("order", "operations", "nested jvp", "compile, s", "JAX", "run, us", "JAX", "nested jvp")
    print(table(header, rows))
    return int(fault)

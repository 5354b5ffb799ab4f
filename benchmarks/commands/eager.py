"""Cost of an operation, and of a rule, under eager `grad`: functrans beside HIPS autograd and JAX."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from functools import partial
from time import thread_time
from typing import Any

import numpy

from .. import backends
from ..measure import alternate, disagreement, number, ratio, rounds, table
from . import custom_rules


def chain(x: Any, *, np: Any, ops: int) -> Any:
    """Multiply, add, sine, exponential in turn; stays of order one. The sum is not counted."""
    for _ in range(ops // 4):
        x = np.exp(np.sin(x * 0.7 + 0.1))
    return np.sum(x)


def main(options: argparse.Namespace) -> int:
    """Print microseconds an operation; 1 where the gradients differ."""
    contestants = (backends.functrans(), backends.autograd(), backends.jax())
    rows, faults = [], []
    for what, x in (("float", 0.3), ("float64 (10,)", numpy.linspace(0, 1, 10))):
        for ops in (100, 1000):
            calls: dict[str, Callable[[], Any]] = {}
            results = {}
            for backend in contestants:
                gradient = backend.api.grad(backend.bind(chain, ops=ops))
                argument = x if isinstance(x, float) else backend.asarray(x)
                calls[backend.name] = lambda b=backend, g=gradient, a=argument: b.wait(g(a))
                results[backend.name] = calls[backend.name]()
            calls["NumPy forward"] = lambda x=x, ops=ops: chain(x, np=numpy, ops=ops)
            for name, result in results.items():
                difference = disagreement(result, results["autograd"])
                if not difference < 1e-10 or not math.isfinite(difference):
                    faults.append(f"{name}, {what}, {ops} ops: differs from autograd by {difference:.1e}")
            times = {name: 1e6 * t / ops for name, t in alternate(calls, options.repeats or 11).items()}
            own, other = times["functrans"], times["autograd"]
            columns = (own, other, times["JAX"], times["NumPy forward"])
            rows.append([f"{what}, {ops} ops", *map(number, columns), ratio(own, other)])
    print("Median microseconds an operation of grad(f)(x), nothing compiled: forward and backward.\n")
    header = ("chain", "functrans", "autograd", "JAX", "NumPy, forward only", "functrans / autograd")
    print(table(header, rows), "", *faults, sep="\n")
    return 1 if _rules(options.repeats or 11) or faults else 0


def _rules(repeats: int) -> bool:
    """Print milliseconds of `grad` through 20 calls of softplus with a rule; whether a gradient differs."""
    rows, fault = [], False
    for argument, x in custom_rules.ARGUMENTS.items():
        calls = {}
        for name, (grad, total, softplus) in custom_rules.EAGER.items():

            def composed(x: Any, total: Any = total, softplus: Any = softplus) -> Any:
                for _ in range(20):
                    x = softplus(x)
                return total(x)

            calls[name] = partial(grad(composed), x)
        results = {name: call() for name, call in calls.items()}
        fault |= any(not disagreement(r, results["autograd, plain"]) < 1e-10 for r in results.values())
        seconds = rounds(calls, repeats, clock=thread_time)
        times = {name: float(numpy.median(t)) for name, t in seconds.items()}
        other = times["autograd, primitive"]
        rows += [[name, argument, number(1e3 * t), ratio(t, other)] for name, t in times.items()]
    print("\nMedian milliseconds of grad through 20 calls of a function with a rule, nothing compiled.\n")
    print(table(("20 calls of", "argument", "ms", "ms / autograd, primitive"), rows))
    return fault

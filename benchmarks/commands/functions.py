"""Functions of the library one by one, values and gradients in float64 and float32, beside JAX."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import backends
from ..measure import alternate, number, ratio, table
from ..workloads.functions import CASES, Case, namespaces

#: Rows above this are listed once more, the largest first.
MOST = 0.9


def main(options: argparse.Namespace) -> int:
    """Print the table, then what takes more than `MOST` of JAX's time."""
    own, jax = backends.functrans(), backends.jax()
    rows: list[list[str]] = []
    slow: list[tuple[float, list[str]]] = []
    for case in CASES:
        if options.only.lower() not in case.name.lower():
            continue
        for dtype in ("float64", "float32"):
            for gradient in (False, True) if case.grad else (False,):
                calls = {b.name: _call(b, case, dtype, gradient) for b in (own, jax)}
                times = alternate(calls, options.repeats or 5)
                ours, theirs = times[own.name], times[jax.name]
                what = "gradient" if gradient else "value"
                row = [case.name, what, dtype, number(1e3 * ours), number(1e3 * theirs), ratio(ours, theirs)]
                print(*row, sep=" | ", flush=True)
                rows.append(row)
                slow += [(ours / theirs, row)] if ours > MOST * theirs else []
        for backend in (own, jax):
            backend.clear()
    header = ("function", "what", "dtype", "functrans", "JAX", "functrans / JAX")
    print("\nMedian milliseconds of one call. The gradient is that of the sum of squares.\n")
    print(table(header, rows))
    print(f"\nMore than {MOST} of JAX's time:\n")
    print(table(header, [row for _, row in sorted(slow, key=lambda entry: entry[0], reverse=True)]))
    return 0


def _call(backend: backends.Backend, case: Case, dtype: str, gradient: bool) -> Callable[[], Any]:
    m = namespaces(backend.api.__name__)
    given = [x.astype(dtype) if x.dtype.kind == "f" else x for x in case.arguments]
    arguments = [backend.asarray(x) for x in given]

    def value(*x: Any) -> Any:
        return case.f(m, *x)

    def total(*x: Any) -> Any:
        return (value(*x) ** 2).sum()

    f = backend.api.jit(backend.api.grad(total) if gradient else value)
    assert np.asarray(backend.wait(f(*arguments))).dtype.kind in "fib"
    return lambda: backend.wait(f(*arguments))

"""float16 and bfloat16 beside float32 and JAX: time per element of typical kernels; a network and its residuals.

Times are processor time.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from time import process_time
from typing import Any

import jax
import ml_dtypes
import numpy

import functrans as ft
from functrans import aot

from ..measure import alternate, disagreement, number, ratio, table

jax.config.update("jax_enable_x64", True)
RANDOM = numpy.random.default_rng(0)
DTYPES = tuple(map(numpy.dtype, (numpy.float32, numpy.float16, ml_dtypes.bfloat16)))
#: Numbers in each array: half a megabyte of float32, which stays in the cache.
SIZE = 1 << 17
ROWS = (256, 512)


@dataclass(frozen=True)
class Kernel:
    """A function of an array, written once for both libraries."""

    name: str
    f: Callable[..., Any]


def softmax(x: Any, *, np: Any) -> Any:
    """Rows of numbers to rows of probabilities."""
    x = x.reshape(ROWS)
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


KERNELS = (
    Kernel("widen to float32", lambda x, *, np: x.astype(numpy.float32)),
    Kernel("multiply", lambda x, *, np: x * 1.5),
    Kernel("polynomial of degree 3", lambda x, *, np: ((x * 0.3 + 1.0) * x + 0.5) * x),
    Kernel("tanh", lambda x, *, np: np.tanh(x)),
    Kernel("sum", lambda x, *, np: np.sum(x)),
    Kernel("sums of columns", lambda x, *, np: np.sum(x.reshape(ROWS), axis=0)),
    Kernel("softmax of rows", softmax),
    Kernel("product of matrices", lambda x, *, np: x.reshape(ROWS) @ x.reshape(ROWS).T),
    Kernel("matrix times vector", lambda x, *, np: x.reshape(ROWS) @ x[: ROWS[1]]),
    Kernel("sort", lambda x, *, np: np.sort(x)),
)


def round_off(f: Callable[[], Any], float32: Any, dtype: numpy.dtype) -> float:
    """The largest difference from the result in float32, in units of the dtype's precision."""
    return disagreement(f(), float32) / float(ml_dtypes.finfo(dtype).eps)


def kernels(repeats: int) -> tuple[list[list[str]], list[str]]:
    """Nanoseconds per element, and what disagrees."""
    rows, problems = [], []
    numbers = RANDOM.normal(size=SIZE)
    for kernel in KERNELS:
        calls: dict[str, Callable[[], object]] = {}
        for dtype in DTYPES:
            x = numbers.astype(dtype)
            own, theirs = ft.numpy.asarray(x), jax.numpy.asarray(x)
            compiled = ft.jit(partial(kernel.f, np=ft.numpy))
            other = jax.jit(partial(kernel.f, np=jax.numpy))
            calls[dtype.name] = partial(compiled, own)
            calls[f"JAX {dtype.name}"] = lambda f=other, x=theirs: f(x).block_until_ready()
        exact = calls["float32"]()
        for dtype in DTYPES[1:]:
            error = round_off(calls[dtype.name], exact, dtype)
            if not error < 8:
                problems.append(f"{kernel.name} in {dtype.name}: off by {error:.1f} units")
        times = alternate(calls, repeats, 0.002, process_time)
        rows.append([kernel.name, *[number(times[name] / SIZE * 1e9) for name in calls]])
    order = [0, *[1 + 2 * i for i in range(3)], *[2 + 2 * i for i in range(3)]]
    return [[row[i] for i in order] for row in rows], problems


# --- a network ----------------------------------------------------------------------------------------------

LAYERS, BATCH = (784, 512, 256, 10), 128


def loss(weights: Any, x: Any, y: Any, *, np: Any) -> Any:
    """The cross entropy of a perceptron."""
    for w in weights[:-1]:
        x = np.tanh(x @ w)
    z = x @ weights[-1]
    z = z - np.max(z, axis=1, keepdims=True)
    return np.mean(np.log(np.sum(np.exp(z), axis=1)) - np.sum(z * y, axis=1))


def network(repeats: int) -> tuple[list[list[str]], list[str]]:
    """Time of a value with its gradient, and bytes of residuals."""
    weights = [RANDOM.normal(size=shape) * 0.05 for shape in pairwise(LAYERS)]
    data = RANDOM.normal(size=(BATCH, LAYERS[0])), numpy.eye(LAYERS[-1])[RANDOM.integers(0, 10, BATCH)]
    calls: dict[str, Callable[[], object]] = {}
    kept = {}
    for dtype in (numpy.dtype(float), *DTYPES):
        arguments = ([w.astype(dtype) for w in weights], *[x.astype(dtype) for x in data])
        calls[dtype.name] = partial(ft.jit(ft.value_and_grad(partial(loss, np=ft.numpy))), *arguments)
        compiled = jax.jit(jax.value_and_grad(partial(loss, np=jax.numpy)))
        theirs = jax.tree.map(jax.numpy.asarray, arguments)
        calls[f"JAX {dtype.name}"] = lambda f=compiled, a=theirs: jax.block_until_ready(f(*a))
        kept[dtype.name] = aot.trace_pair(partial(loss, np=ft.numpy), *arguments).residual_bytes
    exact = calls["float64"]()
    problems = [
        f"network in {dtype.name}: off by {round_off(calls[dtype.name], exact, dtype):.1f} units"
        for dtype in DTYPES
        if not round_off(calls[dtype.name], exact, dtype) < 16
    ]
    times = alternate(calls, repeats, clock=process_time)
    rows = [
        [
            name,
            number(times[name] * 1e3),
            number(times[f"JAX {name}"] * 1e3),
            number(size / 1e6),
            ratio(size, kept["float64"]),
        ]
        for name, size in kept.items()
    ]
    return rows, problems


def main(options: argparse.Namespace) -> int:
    """Print both tables; 1 if a result is off by more than its precision explains."""
    repeats = options.repeats or 15
    names = [dtype.name for dtype in DTYPES]
    rows, problems = kernels(repeats)
    print(f"\nns per element of arrays of {SIZE}\n")
    print(table(["kernel", *names, *[f"JAX {name}" for name in names]], rows))
    rows, more = network(repeats)
    print("\nA perceptron, 784-512-256-10, 128 examples: value and gradient\n")
    print(table(["dtype", "ms", "JAX ms", "MB of residuals", "of float64's"], rows))
    for problem in (*problems, *more):
        print(problem)
    return int(bool(problems or more))

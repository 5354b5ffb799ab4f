"""Tests of derivatives: beside JAX's `check_grads` on ten functions; many points of a function of five arguments."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from time import process_time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.test_util import check_grads as check_by_jax

import functrans.numpy as fnp
from functrans.test_util import check_grads

from ..measure import number, table

#: Seconds of the processor for many points, and the time of `check_grads` as a share of JAX's.
SECONDS, SHARE = 5.0, 1 / 3
POINTS = 100

#: Functions of a namespace and arrays, with the shapes of these.
FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "sin": (lambda m, x: m.sin(x), ((7,),)),
    "polynomial": (lambda m, x: x**3 - 2.0 * x * x + x, ((5, 3),)),
    "softplus": (lambda m, x: m.log1p(m.exp(x)), ((9,),)),
    "quotient": (lambda m, x, y: x / (y * y + 1.0), ((4, 3), (3,))),
    "norm": (lambda m, x: m.sqrt(m.sum(x * x)), ((6,),)),
    "matrix product": (lambda m, a, b: m.tanh(a @ b), ((3, 4), (4, 2))),
    "softmax": (lambda m, x: m.exp(x) / m.sum(m.exp(x), axis=-1, keepdims=True), ((4, 5),)),
    "solve": (lambda m, a, b: m.linalg.solve(a @ a.T + m.eye(3), b), ((3, 3), (3,))),
    "layer": (lambda m, w, b, x: m.mean(m.tanh(x @ w + b) ** 2), ((3, 4), (4,), (5, 3))),
    "five arguments": (
        lambda m, a, b, c, d, e: m.sum(m.tanh(a * b + c) * m.exp(-(d**2)) + e),
        ((4, 3), (3,), (4, 1), (4, 3), ()),
    ),
}

MANY = """
import numpy as np, functrans.numpy as fnp
from time import process_time
from functrans.testing.examples import check_examples
start = process_time()
f = lambda a, b, c, d, e: fnp.sum(fnp.tanh(a * b + c) * fnp.exp(-(d**2)) + e)
random = np.random.default_rng(0)
point = tuple(random.uniform(0.3, 0.9, s) for s in ((4, 3), (3,), (4, 1), (4, 3), ()))
check_examples(f, point, {{"order": 2}}, examples={points})
print(process_time() - start)
"""


def _spent(call: Callable[[], object]) -> float:
    start = process_time()
    call()
    return process_time() - start


def _beside_jax(repeats: int) -> tuple[list[list[str]], list[tuple[float, float]]]:
    """Seconds of the first call, and the least of those of later calls, which have other arguments."""
    rows, shares = [], []
    random = np.random.default_rng(0)
    for name, (f, shapes) in FUNCTIONS.items():
        points = [tuple(random.uniform(0.3, 0.9, s) for s in shapes) for _ in range(repeats + 1)]
        ours, theirs = [], []
        for point in points:
            theirs.append(_spent(partial(check_by_jax, partial(f, jnp), point, order=2)))
            ours.append(_spent(partial(check_grads, partial(f, fnp), point, order=2)))
        first, later = ours[0] / theirs[0], min(ours[1:]) / min(theirs[1:])
        shares.append((first, later))
        seconds = [ours[0], theirs[0], min(ours[1:]), min(theirs[1:])]
        rows.append([name, *[number(1e3 * s) for s in seconds], f"{first:.2f}", f"{later:.2f}"])
    return rows, shares


def _many() -> float:
    """Seconds of the processor in a new process with no cache on disk, without those of the import."""
    environment = {**os.environ, "FUNCTRANS_CACHE": "0"}
    command = [sys.executable, "-c", MANY.format(points=POINTS)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout)


def main(options: argparse.Namespace) -> int:
    """Both tables; 1 if a limit is exceeded."""
    jax.config.update("jax_enable_x64", True)
    rows, shares = _beside_jax(options.repeats or 3)
    head = [
        "check_grads, order 2",
        "first (ms)",
        "JAX first",
        "later (ms)",
        "JAX later",
        "first / JAX",
        "later / JAX",
    ]
    print(table(head, rows))
    means = np.exp(np.mean(np.log(shares), axis=0))
    seconds = _many()
    print(f"\nof JAX's time, geometric mean: {means[0]:.2f} first, {means[1]:.2f} later (limit {SHARE:.2f})")
    print(
        f"five arguments, order 2, all laws, {POINTS} points of varying shapes, cold: {seconds:.1f} s (limit {SECONDS})"
    )
    return int(means.max() > SHARE or seconds > SECONDS)

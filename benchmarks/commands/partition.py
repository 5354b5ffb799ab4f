"""What reverse mode keeps and how long it takes, by partitioner, beside checkpoint policies and JAX."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import jax
import numpy

import functrans as ft
from functrans import checkpoint_policies
from functrans.control.residuals.partitioner import partitioned
from functrans.runtime.config import config
from functrans.transforms.linearize_jaxpr import linearize_jaxpr

from ..measure import alternate, disagreement, number, ratio, table

jax.config.update("jax_enable_x64", True)
RANDOM = numpy.random.default_rng(0)


def polynomial(x: Any, *, np: Any) -> Any:
    """Eight steps over a million numbers."""
    y = x
    for _ in range(8):
        y = y * y * 0.25 + x * 0.5 - 0.1
    return y


def black_scholes(spot: Any, strike: Any, time: Any, *, np: Any) -> Any:
    """The price of a call, with the normal distribution by tanh."""
    vol = 0.3
    d1 = (np.log(spot / strike) + (0.02 + vol**2 / 2) * time) / (vol * np.sqrt(time))
    d2 = d1 - vol * np.sqrt(time)

    def cdf(x: Any) -> Any:
        return 0.5 * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))

    return spot * cdf(d1) - strike * np.exp(-0.02 * time) * cdf(d2)


def perceptron(x: Any, *weights: Any, np: Any) -> Any:
    """Six layers of tanh."""
    for w in weights:
        x = np.tanh(x @ w)
    return x


def transformer(x: Any, *weights: Any, np: Any) -> Any:
    """Three blocks of attention and GELU, in rows of 64 tokens."""

    def norm(x: Any) -> Any:
        centred = x - np.mean(x, axis=-1, keepdims=True)
        return centred / np.sqrt(np.mean(centred**2, axis=-1, keepdims=True) + 1e-5)

    for wq, wk, wv, wo, w1, w2 in zip(*[iter(weights)] * 6, strict=True):
        h = norm(x)
        scores = (h @ wq) @ np.swapaxes(h @ wk, -1, -2) / 8.0
        p = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
        x = x + (p / np.sum(p, axis=-1, keepdims=True)) @ (h @ wv) @ wo
        h = norm(x) @ w1
        x = x + (0.5 * h * (1 + np.tanh(0.79788456 * (h + 0.044715 * h**3)))) @ w2
    return x


@dataclass(frozen=True)
class Program:
    """A function written once for both libraries, and its arguments."""

    name: str
    f: Callable[..., Any]
    arguments: Callable[[], tuple[Any, ...]]


def _normal(*shape: int) -> numpy.ndarray:
    return RANDOM.normal(size=shape) / numpy.sqrt(shape[0] if len(shape) > 1 else 1)


PROGRAMS = [
    Program("polynomial, 1e6", polynomial, lambda: (RANDOM.uniform(size=1_000_000),)),
    Program(
        "Black-Scholes, 2e5",
        black_scholes,
        lambda: tuple([RANDOM.uniform(0.5, 1.5, size=200_000) for _ in range(3)]),
    ),
    Program(
        "MLP, 6 layers of 256, 1024 rows",
        perceptron,
        lambda: (_normal(1024, 256), *[_normal(256, 256) for _ in range(6)]),
    ),
    Program(
        "transformer, 3 blocks of 128",
        transformer,
        lambda: (
            RANDOM.normal(size=(16, 64, 128)),
            *[_normal(*s) for _ in range(3) for s in [(128, 128)] * 4 + [(128, 512), (512, 128)]],
        ),
    ),
]


def variants(f: Callable[..., Any]) -> Iterator[tuple[str, dict[str, Any], Callable[..., Any]]]:
    """The ways to differentiate a function: a name, the options, and what to jit."""
    yield "save_all", {"partitioner": "save_all"}, f
    yield "min_cut", {}, f
    yield "budget 0.5", {"activation_memory_budget": 0.5}, f
    yield "budget 0", {"activation_memory_budget": 0.0}, f
    yield "checkpoint()", {"partitioner": "save_all"}, ft.checkpoint(f)
    dots = ft.checkpoint(f, policy=checkpoint_policies.dots_saveable)
    yield "dots_saveable", {"partitioner": "save_all"}, dots


def main(options: argparse.Namespace) -> int:
    """Print the tables; 1 where two ways disagree."""
    faults: list[str] = []
    times, sizes, shares = [], [], []
    for program in PROGRAMS:
        row, kept, its_faults = measure(program, options.repeats or 7)
        faults += its_faults
        times.append([program.name, *[ratio(t, row["save_all"]) for n, t in row.items() if n != "save_all"]])
        sizes.append([program.name, *[number(b / 1e6) for b in kept.values()]])
        shares.append(row["min_cut"] / row["save_all"])
    ways = [name for name, _, _ in variants(polynomial)]
    print("\nTime of vjp and its pullback, of that of save_all.\n")
    print(table(("program", *ways[1:], "JAX"), times))
    print(f"\nGeometric mean of min_cut: {statistics.geometric_mean(shares):.2f}\n")
    print("\nWhat the pullback keeps besides the arguments, in MB.\n")
    print(table(("program", *ways), sizes))
    print("\nMilliseconds to linearize a jaxpr, and to partition it.\n")
    print(
        table(
            ("operations", "linearize", "partition", "share"), [partition_time(n) for n in (100, 500, 2000)]
        )
    )
    print("", *faults, sep="\n")
    return 1 if faults else 0


def measure(program: Program, repeats: int) -> tuple[dict[str, float], dict[str, int], list[str]]:
    """Median seconds of each way and of JAX's, the bytes that each keeps, and disagreements."""
    args = program.arguments()
    calls: dict[str, Callable[[], Any]] = {}
    kept, results = {}, {}
    ct = numpy.ones(numpy.shape(program.f(*args, np=numpy)))
    for name, changes, f in variants(lambda *a: program.f(*a, np=ft.numpy)):
        run = partial(_both_ways, ft.jit(f), args, ct, changes)
        pull, results[name] = run()
        kept[name], calls[name] = pull.residual_bytes, run
    theirs = jax.jit(lambda *a: jax.vjp(lambda *b: program.f(*b, np=jax.numpy), *a)[1](ct))
    results["JAX"] = theirs(*args)
    calls["JAX"] = lambda: jax.block_until_ready(theirs(*args))
    faults = [
        f"{program.name}, {name}: off by {worst:.1e}"
        for name, result in results.items()
        if (worst := max(disagreement(a, b) for a, b in zip(result, results["save_all"], strict=True))) > 1e-9
    ]
    return alternate(calls, repeats), kept, faults


def _both_ways(
    f: Callable[..., Any], args: tuple[Any, ...], ct: Any, changes: dict[str, Any]
) -> tuple[Any, Any]:
    """The pullback, and its result."""
    with config.patch(**changes):
        _, pull = ft.vjp(f, *args)
        return pull, pull(ct)


def partition_time(operations: int) -> list[str]:
    """A row: the least milliseconds of both of several."""

    def chain(x: Any) -> Any:
        y = x
        for _ in range(operations // 5):
            y = ft.numpy.sin(y) * y + x * 0.5 - 0.1
        return y

    linearize, cut = [], []
    for _ in range(7):
        jaxpr = ft.make_jaxpr(lambda x: chain(x))(numpy.ones(1000))
        start = perf_counter()
        parts = linearize_jaxpr(jaxpr, (True,))
        middle = perf_counter()
        partitioned(parts)
        linearize.append(middle - start)
        cut.append(perf_counter() - middle)
    a, b = 1e3 * min(linearize), 1e3 * min(cut)
    return [str(operations), number(a), number(b), ratio(b, a)]

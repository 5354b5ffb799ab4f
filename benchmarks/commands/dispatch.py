"""Cost of calling a compiled function that does almost nothing."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy
from numba import njit

from .. import backends
from ..measure import alternate, disagreement, number, ratio, table


def one(x: Any) -> Any:
    """Array in, array out."""
    return x * 2.0 + 1.0


def tree(p: Any) -> Any:
    """A small pytree in, the same structure out."""
    (a, b), c = p["layers"], p["scale"]
    return {"layers": (a * c, b * c), "scale": c + 1.0}


def four(a: Any, b: Any, c: Any, d: Any) -> Any:
    """Four arrays in, one out."""
    return a * b + c * d


def nested(p: Any) -> Any:
    """Dictionaries in a dictionary, of four arrays; the same structure out."""
    encoder, decoder = p["encoder"], p["decoder"]
    return {
        "encoder": {"w": encoder["w"] * 2.0, "b": encoder["b"] + 1.0},
        "decoder": {"w": decoder["w"] * 3.0, "b": decoder["b"] - 1.0},
    }


def norm(x: Any) -> Any:
    """A scalar, to be differentiated."""
    return (x * x).sum()


class Layer:
    """What a method reads from an instance: two arrays."""

    def __init__(self, array: Callable[[Any], Any]):
        self.w, self.b = array(numpy.full(10, 0.5)), array(numpy.ones(10))

    def __call__(self, x: Any) -> Any:
        """An affine function."""
        return self.w * x + self.b


class Network:
    """Layers in a list; each call of a jitted method checks whether any of them has changed."""

    def __init__(self, count: int, array: Callable[[Any], Any]):
        self.layers = [Layer(array) for _ in range(count)]

    def apply(self, x: Any) -> Any:
        """All layers."""
        for layer in self.layers:
            x = layer(x)
        return x


@njit
def _tree_by_hand(p: Any) -> Any:
    a, b, c = p
    return a * c, b * c, c + 1.0


@njit
def _nested_by_hand(w: Any, b: Any, u: Any, c: Any) -> Any:
    return b - 1.0, w * 3.0, c + 1.0, u * 2.0


@njit
def _norm_by_hand(x: Any) -> Any:
    gradient = numpy.empty_like(x)
    total = 0.0
    for i in range(x.size):
        total += x[i] * x[i]
        gradient[i] = 2 * x[i]
    return total, gradient


def main(options: argparse.Namespace) -> int:
    """Print microseconds a call; 1 where results differ."""
    x = numpy.linspace(0, 1, 10)
    parameters = {"layers": (x, x[:5].copy()), "scale": numpy.array(2.0)}
    flat = (x, x[:5].copy(), 2.0)
    layers = {"encoder": {"w": x, "b": x + 1.0}, "decoder": {"w": x - 1.0, "b": x * 2.0}}
    # In the order of sorted keys, as pytrees have them.
    in_order = [
        layers["decoder"]["w"],
        layers["decoder"]["b"],
        layers["encoder"]["w"],
        layers["encoder"]["b"],
    ]
    by_hand, four_by_hand = njit(one), njit(four)
    rows, faults = [], []
    cases: list[tuple[str, str, Any, Callable[..., Any], Callable[[], Any]]] = [
        ("one array, float64 (10,)", "", x, one, lambda: by_hand(x)),
        ("Python float", "", 0.5, one, lambda: by_hand(0.5)),
        ("four arrays in, one out", "spread", (x, x, x, x), four, lambda: four_by_hand(x, x, x, x)),
        ("nested dict of four arrays", "", layers, nested, lambda: _nested_by_hand(*in_order)),
        ("pytree, float64 (10,), (5,), ()", "", parameters, tree, lambda: _tree_by_hand(flat)),
        ("jit(value_and_grad), float64 (10,)", "value_and_grad", x, norm, lambda: _norm_by_hand(x)),
        ("value_and_grad(jit), float64 (10,)", "inside", x, norm, lambda: _norm_by_hand(x)),
        ("the same, a new function for each call", "new", x, norm, lambda: _norm_by_hand(x)),
    ]
    for name, transform, argument, f, hand in cases:
        calls = {"Numba": hand}
        for backend in (backends.functrans(), backends.jax()):
            compiled = _compile(backend.api, f, transform)
            own = argument if isinstance(argument, float) else backend.arrays(argument)
            calls[backend.name] = lambda b=backend, c=compiled, a=own: b.wait(c(a))
            if backend.name == "functrans":
                calls["functrans, ndarray"] = lambda c=compiled, a=argument: c(a)
        faults += [
            f"{name}: {who} differs from Numba"
            for who, call in calls.items()
            if not disagreement(call(), hand()) < 1e-12
        ]
        times = {who: 1e6 * t for who, t in alternate(calls, options.repeats or 21).items()}
        columns = [times[who] for who in ("functrans", "functrans, ndarray", "JAX", "Numba")]
        rows.append([name, *map(number, columns), ratio(columns[0], columns[2])])
    print("Median microseconds of one call. 'ndarray': functrans given NumPy arrays instead of its own.\n")
    header = ("call", "functrans", "functrans, ndarray", "JAX", "Numba njit", "functrans / JAX")
    print(table(header, rows), "", *faults, sep="\n")
    _methods(x, options.repeats or 21)
    _signatures(x, options.repeats or 21)
    return 1 if faults else 0


def _methods(x: Any, repeats: int) -> None:
    """Print the cost of checking whether an instance has changed, next to a function that captures the same arrays."""
    own, rows = backends.functrans(), []
    for count in (1, 3, 8):
        networks = {"Array": Network(count, own.asarray), "ndarray": Network(count, numpy.array)}
        calls = {who: partial(own.api.jit(n.apply), x) for who, n in networks.items()}
        captured = own.api.jit(lambda x, apply=networks["Array"].apply: apply(x))
        calls["function"] = partial(captured, x)
        times = {who: 1e6 * t for who, t in alternate(calls, repeats).items()}
        rows.append([f"{count} layers", *[number(times[who]) for who in ("function", "Array", "ndarray")]])
    print("Median microseconds of one call of a jitted method, which reads two arrays from each layer.\n")
    print(table(("method", "function instead", "method, Arrays", "method, ndarrays"), rows))


def _signatures(x: Any, repeats: int) -> None:
    """Print what a call costs when the function was called with many other shapes before."""
    functrans = backends.functrans()
    own, other = functrans.asarray(x), functrans.asarray(numpy.zeros(12))
    calls: dict[str, Callable[[], Any]] = {}
    for count in (1, 10, 200):
        compiled = functrans.api.jit(lambda x: x * 2.0 + 1.0)
        for n in range(count):
            compiled(numpy.zeros(n + 11))
        compiled(own)
        calls[str(count)] = partial(compiled, own)
        calls[f"{count}, alternating"] = lambda f=compiled, a=own, b=other: (f(a), f(b))
    times = {who: 1e6 * t for who, t in alternate(calls, repeats).items()}
    rows = [[who, number(t / (2 if "alternating" in who else 1))] for who, t in times.items()]
    print("\nMedian microseconds of one call of a function with so many other signatures in its cache.\n")
    print(table(("signatures", "functrans"), rows))


def _compile(api: Any, f: Callable[..., Any], transform: str) -> Callable[..., Any]:
    if transform == "inside":
        return api.value_and_grad(api.jit(f))
    if transform == "new":
        inner = api.jit(f)
        return lambda x: api.value_and_grad(inner)(x)
    if transform == "spread":
        outer = api.jit(f)
        return lambda arguments: outer(*arguments)
    return api.jit(api.value_and_grad(f) if transform else f)

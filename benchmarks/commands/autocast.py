"""Time and memory under autocast, beside the same models in float64, and written in float32."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy

import functrans as ft
import functrans.numpy as fnp
from functrans import lax, nn

from ..measure import alternate, disagreement, number, ratio, table

RANDOM = numpy.random.default_rng(0)
#: The precisions beside float64 and the model written in float32.
AUTOCAST = ("float32", "bfloat16", "float16")


def perceptron(weights: Any, images: Any, targets: Any) -> Any:
    """The cross-entropy of three layers."""
    h = images
    for w in weights[:-1]:
        h = fnp.tanh(h @ w)
    return -fnp.mean(fnp.sum(targets * nn.log_softmax(h @ weights[-1]), axis=1))


def convolution(weights: Any, images: Any, targets: Any) -> Any:
    """The squared error of two layers of 3 x 3 windows."""
    h = images
    for w in weights:
        h = nn.relu(lax.conv(h, w, (1, 1), "SAME"))
    return fnp.mean((h - targets) ** 2)


@dataclass(frozen=True)
class Model:
    """A loss, and its float64 arguments; the gradient is that of the first."""

    name: str
    loss: Callable[..., Any]
    arguments: Callable[[], tuple[Any, ...]]


def _scaled(*shape: int, fan_in: int) -> numpy.ndarray:
    return RANDOM.normal(size=shape) * numpy.sqrt(2 / fan_in)


MODELS = [
    Model(
        "perceptron 784-512-256-10, 256 rows",
        perceptron,
        lambda: (
            [_scaled(n, m, fan_in=n) for n, m in ((784, 512), (512, 256), (256, 10))],
            RANDOM.uniform(size=(256, 784)),
            numpy.eye(10)[RANDOM.integers(10, size=256)],
        ),
    ),
    Model(
        "two convolutions, 16 images of 32 x 32",
        convolution,
        lambda: (
            [_scaled(32, 16, 3, 3, fan_in=144), _scaled(16, 32, 3, 3, fan_in=288)],
            RANDOM.normal(size=(16, 16, 32, 32)),
            RANDOM.normal(size=(16, 16, 32, 32)),
        ),
    ),
]


def main(options: argparse.Namespace) -> int:
    """Print the tables; 1 where the gradient of a precision is off by more than its epsilon allows."""
    times, sizes, faults = [], [], []
    for model in MODELS:
        seconds, kept, errors = measure(model, options.repeats or 9)
        full, written = seconds["float64"], seconds["written"]
        times.append(
            [
                model.name,
                number(1e3 * full),
                ratio(written, full),
                *[ratio(seconds[n], full) for n in AUTOCAST],
                ratio(seconds["float32"], written),
            ]
        )
        sizes.append(
            [model.name, number(kept["float64"] / 1e6), *[ratio(kept[n], kept["float64"]) for n in AUTOCAST]]
        )
        for name, off in errors.items():
            if off > 30 * fnp.finfo("float32" if name == "written" else name).eps:
                faults.append(f"{model.name}, {name}: the gradient is off by {off:.1e}")
    headers = [f"autocast({n!r})" for n in AUTOCAST]
    print(
        "\nTime of value and gradient: of the float64 model, ms, and as ratios to it; and to the float32 model.\n"
    )
    print(table(("model", "float64", "written in float32", *headers, "of float32"), times))
    print(
        "\nWhat the backward pass keeps, besides the arguments: of the float64 model, MB, and ratios to it.\n"
    )
    print(table(("model", "float64", *headers), sizes))
    print("", *faults, sep="\n")
    return 1 if faults else 0


def measure(model: Model, repeats: int) -> tuple[dict[str, float], dict[str, int], dict[str, float]]:
    """Seconds of each precision, the bytes that each keeps, and how far its gradient is off."""
    weights, *others = model.arguments()
    narrow = [w.astype("float32") for w in weights]
    calls, kept, errors = {}, {}, {}
    reference = ft.grad(model.loss)(weights, *others)
    for name in ("float64", "written", *AUTOCAST):
        if name == "written":
            args = (narrow, *[x.astype("float32") for x in others])
        else:
            args = (weights, *others)
        block = partial(ft.autocast, name) if name in AUTOCAST else nullcontext
        calls[name] = partial(_under, block, ft.jit(ft.value_and_grad(model.loss)), args)
        errors[name] = disagreement(calls[name]()[1], reference)
        with block():
            kept[name] = ft.vjp(ft.jit(model.loss), *args)[1].residual_bytes
    return alternate(calls, repeats), kept, errors


def _under(block: Callable[[], Any], f: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    with block():
        return f(*args)

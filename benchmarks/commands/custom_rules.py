"""What a custom derivative rule costs: nothing in compiled code, and how much in eager code."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from time import thread_time
from typing import Any

import autograd
import autograd.numpy
import numpy
from autograd.extend import defvjp, primitive

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.lowering.loops.show import show
from functrans.lowering.run.executable import compile_jaxpr

from .. import backends
from ..measure import disagreement, number, rounds, table

Softplus = Callable[[Any], Any]

# --- one function, log(1 + exp(x)), as it is and with the rule that autodiff would find --------------------------


def plain(x: Any) -> Any:
    return fnp.log1p(fnp.exp(x))


class StyleA(ft.Function):
    """The rule with a context in the forward pass."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        e = fnp.exp(x)
        ctx.save_for_backward(e)
        return fnp.log1p(e)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (e,) = ctx.saved_tensors
        return g / (e + 1.0) * e


class StyleB(ft.Function):
    """The rule with a forward pass that does not receive a context."""

    @staticmethod
    def forward(x: Any) -> Any:
        return fnp.log1p(fnp.exp(x))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(fnp.exp(inputs[0]))

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (e,) = ctx.saved_tensors
        return g / (e + 1.0) * e


def _forward(x: Any) -> Any:
    e = fnp.exp(x)
    return fnp.log1p(e), e


with_vjp = ft.custom_vjp(plain)
with_vjp.defvjp(_forward, lambda e, g: (g / (e + 1.0) * e,))


@ft.custom_jvp
def with_jvp(x: Any) -> Any:
    return fnp.log1p(fnp.exp(x))


@with_jvp.defjvp
def _pushed(primals: Any, tangents: Any) -> Any:
    e = fnp.exp(primals[0])
    return fnp.log1p(e), tangents[0] * e / (e + 1.0)


FORMS: dict[str, Softplus] = {
    "plain": plain,
    "Function, ctx": StyleA.apply,
    "Function, setup_context": StyleB.apply,
    "custom_vjp": with_vjp,
    "custom_jvp": with_jvp,
}

# --- where it is used --------------------------------------------------------------------------------------------


def elementwise(softplus: Softplus, x: Any) -> Any:
    """The sum over many elements."""
    return fnp.sum(softplus(x))


def perceptron(softplus: Softplus, parameters: Any, x: Any) -> Any:
    """The activation of a network with one hidden layer."""
    w, b, v = parameters
    return fnp.mean((softplus(x @ w + b) @ v) ** 2)


def recurrent(softplus: Softplus, w: Any, xs: Any) -> Any:
    """The activation in the body of a loop."""

    def step(h: Any, x: Any) -> Any:
        return softplus(w @ h + x) - 0.7, None

    return fnp.sum(lax.scan(step, fnp.zeros(len(w)), xs)[0])


def cases() -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Functions of a softplus and of arrays, with the arrays."""
    rng = numpy.random.default_rng(0)

    def normal(*shape: int) -> Any:
        return rng.normal(size=shape) / 4

    return {
        "1,000,000 elements": (elementwise, (normal(1_000_000),)),
        "MLP 64-256-1, batch 512": (
            perceptron,
            ((normal(64, 256), normal(256), normal(256)), normal(512, 64)),
        ),
        "scan, 2,000 steps of 8": (recurrent, (normal(8, 8), normal(2000, 8))),
    }


def transformed(f: Callable[..., Any], softplus: Softplus) -> Callable[..., Any]:
    """Value and gradient in the first array (or tree), not compiled yet."""

    def value(*arrays: Any) -> Any:
        return f(softplus, *arrays)

    return ft.value_and_grad(value)


def kernels(f: Callable[..., Any], arguments: Any) -> list[str]:
    """The texts of the kernels that a function is compiled to; equal texts are the same machine code."""
    return [show(unit.kernel) for unit in compile_jaxpr(ft.make_jaxpr(f)(*arguments)).compile().kernels]


# --- in eager code -----------------------------------------------------------------------------------------------


@primitive
def _autograd_softplus(x: Any) -> Any:
    return numpy.log1p(numpy.exp(x))


def _autograd_rule(_: Any, x: Any) -> Any:
    e = numpy.exp(x)
    return lambda g: g / (e + 1.0) * e


defvjp(_autograd_softplus, _autograd_rule)


def _autograd_plain(x: Any) -> Any:
    return autograd.numpy.log1p(autograd.numpy.exp(x))


EAGER: dict[str, tuple[Callable[..., Any], Callable[..., Any], Softplus]] = {
    **{f"functrans, {name}": (ft.grad, fnp.sum, form) for name, form in FORMS.items()},
    "autograd, plain": (autograd.grad, autograd.numpy.sum, _autograd_plain),
    "autograd, primitive": (autograd.grad, autograd.numpy.sum, _autograd_softplus),
}
ARGUMENTS: dict[str, Any] = {"float64": numpy.float64(0.3), "float64 (10,)": numpy.linspace(0.0, 1.0, 10)}


# --- the command -------------------------------------------------------------------------------------------------


def main(options: argparse.Namespace) -> int:
    """Print both tables; 1 where results or kernels differ."""
    faults: list[str] = []
    repeats = options.repeats or 25
    print(
        "Processor time. Compiled value and gradient: median milliseconds of one call, then the median, over"
    )
    print("rounds, of its ratio to the plain function.\n")
    rows = [_compiled(name, f, arrays, repeats, faults) for name, (f, arrays) in cases().items()]
    print(table(("workload", *FORMS, *[f"{name} / plain" for name in FORMS if name != "plain"]), rows))
    print("\nNothing compiled: median microseconds of one call, and of its gradient (of the sum).\n")
    columns = [f"{what}, {argument}" for argument in ARGUMENTS for what in ("call", "gradient")]
    print(table(("operation", *columns), _uncompiled(repeats, faults)), "", *faults, sep="\n")
    return 1 if faults else 0


def _compiled(
    name: str, f: Callable[..., Any], arguments: tuple[Any, ...], repeats: int, faults: list[str]
) -> list[str]:
    calls: dict[str, Callable[[], object]] = {}
    own = backends.functrans().arrays(arguments)
    plain_kernels = kernels(transformed(f, plain), own)
    for form, softplus in FORMS.items():
        g = transformed(f, softplus)
        compiled = ft.jit(g)
        calls[form] = lambda compiled=compiled: compiled(*own)
        difference = disagreement(calls[form](), calls["plain"]())
        if not difference < 1e-12:
            faults.append(f"{name}, {form}: differs from the plain function by {difference:.1e}")
        if kernels(g, own) != plain_kernels:
            faults.append(f"{name}, {form}: another kernel than the plain function's")
    times = {form: numpy.array(t) for form, t in rounds(calls, repeats, clock=thread_time).items()}
    ratios = [float(numpy.median(t / times["plain"])) for form, t in times.items() if form != "plain"]
    return [
        name,
        *(number(1e3 * float(numpy.median(t))) for t in times.values()),
        *(f"{r:.3f}" for r in ratios),
    ]


def _uncompiled(repeats: int, faults: list[str]) -> list[list[str]]:
    rows: dict[str, list[str]] = {name: [name] for name in EAGER}
    for argument, x in ARGUMENTS.items():
        calls: dict[str, Callable[[], object]] = {}
        gradients: dict[str, Callable[[], object]] = {}
        for name, (grad, total, softplus) in EAGER.items():
            gradient = grad(softplus if argument == "float64" else lambda x, t=total, s=softplus: t(s(x)))
            calls[name] = lambda s=softplus, x=x: s(x)
            gradients[name] = lambda g=gradient, x=x: g(x)
            for result, known in (
                (calls[name](), plain(x)),
                (gradients[name](), 1.0 / (1.0 + numpy.exp(-x))),
            ):
                if not disagreement(result, known) < 1e-12:
                    faults.append(f"{name}, {argument}: differs from NumPy")
        for contestants in (calls, gradients):
            for name, seconds in rounds(contestants, repeats, clock=thread_time).items():
                rows[name].append(number(1e6 * float(numpy.median(seconds))))
    return list(rows.values())

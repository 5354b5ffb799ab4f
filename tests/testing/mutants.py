"""Wrong rules, made from right ones: twelve kinds, of operations of every family, in each form that a rule can have.

A rule's derivative is that of functrans itself, changed as the kind says. `caught` looks for it with the default
settings of `check_custom_rule` and `check`, at one drawn point after another. ``python -m
tests.testing.mutants`` counts.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import math
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np

import functrans as ft
import functrans.numpy as fnp
from functrans.testing import LawViolation, check, check_custom_rule

sys.path.insert(0, str(Path(__file__).parents[1] / "coverage"))
import coverage_table as table

#: Operations by family: ids of the coverage table, with the number of the call that is taken.
FAMILIES = {
    "elementwise": "exp log1p sin tan tanh arcsin arctan sqrt reciprocal expm1 arcsinh log square sinh cbrt cosh",
    "of two": "add subtract multiply divide power arctan2 hypot logaddexp maximum",
    "reductions": "sum mean prod max var std cumsum cumprod nansum",
    "products": "matmul dot outer inner vdot kron",
    "structure": "reshape transpose concatenate stack tile roll flip take where pad",
}
MORE = {
    "linear algebra": ("numpy.linalg", "inv det solve norm cholesky"),
    "special": ("scipy.special", "gammaln erf expit logsumexp digamma log_ndtr"),
    "Fourier": ("numpy.fft", "fft ifft"),
}
RECORD = Path(__file__).with_name("figures.json")
FORMS = ("Function", "custom_vjp", "custom_jvp")


class Operation(NamedTuple):
    """A function of arrays, and how to draw them."""

    name: str
    f: Callable[..., Any]
    draw: Callable[[int], list[np.ndarray]]


def operations() -> dict[str, Operation]:
    """At least sixty, by name."""
    entries = table.load()
    found = {}
    wanted = [("numpy", names) for names in FAMILIES.values()] + list(MORE.values())
    for namespace, names in wanted:
        for name in names.split():
            entry = entries.get(f"{namespace}.{name}")
            call = None if entry is None else next(filter(_real, entry.calls), None)
            if call is not None:
                found[name] = Operation(name, _first(entry, call), call.values)
    return found


def _real(call: Any) -> bool:
    values = call.values(0)
    return bool(values) and not call.eager and all(x.dtype.kind == "f" for x in values)


def _first(entry: Any, call: Any) -> Callable[..., Any]:
    """The first result of a call, as a function of what is drawn."""

    def f(*values: Any) -> Any:
        out = call(entry.subject, values)
        return out[0] if isinstance(out, tuple | list) else out

    f.__name__ = entry.name
    return f


# --- what is wrong ------------------------------------------------------------------------------------------------

Pull = Callable[[Sequence[Any], Any], Sequence[Any]]


def _held(xs: Sequence[Any]) -> list[Any]:
    return [ft.lax.stop_gradient(x) for x in xs]


def _scaled(by: float) -> Callable[[Pull], Pull]:
    return lambda rule: lambda xs, t: [c * by for c in rule(xs, t)]


def _when(test: Callable[[Sequence[Any]], bool]) -> Callable[[Pull], Pull]:
    """Wrong by a factor where the operands are of some kind."""
    return lambda rule: lambda xs, t: [c * 1.1 for c in rule(xs, t)] if test(xs) else rule(xs, t)


def _random(rule: Pull) -> Pull:
    source = np.random.default_rng(0)
    return lambda xs, t: [c * (1 + 1e-3 * source.uniform()) for c in rule(xs, t)]


def _stateful(rule: Pull) -> Pull:
    """Reads how often it was called."""
    calls = itertools.count()
    return lambda xs, t: [c * (1 + 0.01 * (next(calls) % 3)) for c in rule(xs, t)]


def _shapes_differ(xs: Sequence[Any]) -> bool:
    return len({tuple(x.shape) for x in xs}) > 1


#: Kinds that change what a rule returns: of each, the wrong rule as a function of the right one.
KINDS: dict[str, Callable[[Pull], Pull]] = {
    "factor": _scaled(1.01),
    "sign": _scaled(-1.0),
    "missing conjugate": lambda rule: lambda xs, t: [fnp.conj(c) for c in rule(xs, t)],
    "ignored cotangent": lambda rule: lambda xs, t: rule(xs, _ones(t)),
    "second order only": lambda rule: lambda xs, t: rule(_held(xs), t),
    "broadcasting only": _when(_shapes_differ),
    "float32 only": _when(lambda xs: any(np.dtype(x.dtype) in (np.float32, np.complex64) for x in xs)),
    "relative error 1e-6": _scaled(1 + 1e-6),
    "not deterministic": _random,
    "reads state": _stateful,
}
#: Kinds of which the form is a part.
OTHERS = ("batch axis 1 only", "changes its input")


def _ones(t: Any) -> Any:
    return [fnp.ones_like(x) for x in t] if isinstance(t, list | tuple) else fnp.ones_like(t)


# --- forms --------------------------------------------------------------------------------------------------------


def _pull(f: Callable[..., Any]) -> Pull:
    return lambda xs, ct: list(ft.vjp(f, *xs)[1](ct))


def _push(f: Callable[..., Any]) -> Pull:
    return lambda xs, ts: [ft.jvp(f, tuple(xs), tuple(ts))[1]]


def function(f: Callable[..., Any], pull: Pull, **members: Any) -> Any:
    """A `Function`."""

    class Mutant(ft.Function):
        @staticmethod
        def forward(*xs: Any) -> Any:
            return f(*xs)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            found = pull(ctx.saved, g)
            return tuple(found) if len(found) > 1 else found[0]

    for name, member in members.items():
        setattr(Mutant, name, staticmethod(member) if callable(member) else member)
    return Mutant


def custom_vjp(f: Callable[..., Any], pull: Pull) -> Any:
    rule = ft.custom_vjp(f)
    rule.defvjp(lambda *xs: (f(*xs), xs), lambda xs, g: tuple(pull(xs, g)))
    return rule


def custom_jvp(f: Callable[..., Any], push: Pull) -> Any:
    rule = ft.custom_jvp(f)
    rule.defjvp(lambda xs, ts: (f(*xs), push(xs, ts)[0]))
    return rule


def _wrong_at_batch_axis_1(f: Callable[..., Any]) -> Any:
    """Its gradient is wrong under `vmap` over axis 1."""

    def rule(info: Any, in_dims: Any, *xs: Any) -> Any:
        moved = [x if d is None else fnp.moveaxis(x, d, 0) for x, d in zip(xs, in_dims)]
        many = ft.vmap(f, in_axes=tuple(None if d is None else 0 for d in in_dims))
        pull = _scaled(1.1 if 1 in in_dims else 1.0)(_pull(many))
        return function(many, pull).apply(*moved), 0

    return function(f, _pull(f), vmap=rule)


def _changing(f: Callable[..., Any], pull: Pull) -> Any:
    """Its forward pass runs on the host, and writes into its argument."""

    def forward(*xs: Any) -> Any:
        out = np.array(f(*xs))
        xs[0][...] *= 1.5
        return out

    def shape(*xs: Any) -> Any:
        return ft.eval_shape(f, *xs)

    return function(f, pull, forward=forward, shape=shape, host=True, vmap_method="sequential")


# --- functions of Numba -------------------------------------------------------------------------------------------

_SCALARS = "sin cos exp tanh atan sinh cosh asinh erf expm1"


def _loop_over(scalar: Callable[[float], float]) -> Callable[..., Any]:
    def loop(x: Any) -> Any:
        y = np.empty_like(x)
        for i in range(x.size):
            y[i] = scalar(x[i])
        return y

    return loop


def _jitted() -> dict[str, tuple[Callable[..., Any], Callable[..., Any]]]:
    """Elementwise functions of arrays by Numba, and their derivatives by functrans."""
    ours = {"atan": "arctan", "asinh": "arcsinh"}
    found = {}
    for name in _SCALARS.split():
        module = fnp if name != "erf" else importlib.import_module("functrans.scipy.special")
        found[name] = _loop_over(getattr(math, name)), getattr(module, ours.get(name, name))
    return found


def _by_numba(loop: Callable[..., Any], pull: Pull) -> Any:
    def rule(args: Any, out: Any, ct: Any) -> Any:
        return tuple(pull(args, ct))

    def like(x: Any) -> Any:
        return ft.ShapeDtypeStruct(x.shape, x.dtype)

    return ft.numba_call(numba.njit(loop), vjp=rule, result_shape_dtypes=like)


# --- mutants ------------------------------------------------------------------------------------------------------

#: Functions of complex numbers among the operations.
COMPLEX = frozenset(FAMILIES["elementwise"].split()) - {"cbrt"} | frozenset(
    re.findall(
        r"\w+",
        "add subtract multiply divide sum mean prod cumsum cumprod matmul dot outer inner kron reshape "
        "transpose concatenate stack tile roll flip inv det solve fft ifft",
    )
)


#: Their second derivatives are zero, so that no rule is wrong at second order only.
LINEAR = {"add", "subtract", "maximum", "sum", "mean", "max", "cumsum", "nansum", "fft", "ifft"}
LINEAR |= set(FAMILIES["structure"].split())


class Mutant(NamedTuple):
    """A wrong rule, and points."""

    kind: str
    form: str
    operation: str
    make: Callable[[], Any]
    draw: Callable[[int], list[np.ndarray]]

    @property
    def id(self) -> str:
        return f"{self.operation}, {self.kind}, {self.form}"


def _complex(draw: Callable[[int], list[np.ndarray]]) -> Callable[[int], list[np.ndarray]]:
    return lambda seed: [x + 0.4j * y for x, y in zip(draw(seed), draw(seed + 1000))]


def mutants() -> Iterator[Mutant]:
    """All of them."""
    for op in operations().values():
        several = len({x.shape for x in op.draw(0)}) > 1
        for kind, change in KINDS.items():
            if kind == "second order only" and op.name in LINEAR:
                continue
            is_complex = kind == "missing conjugate"
            if (is_complex and op.name not in COMPLEX) or (kind == "broadcasting only" and not several):
                continue
            draw = _complex(op.draw) if is_complex else op.draw
            for form in FORMS:
                yield Mutant(kind, form, op.name, _maker(form, op.f, change), draw)
        yield Mutant(
            "batch axis 1 only", "Function", op.name, lambda f=op.f: _wrong_at_batch_axis_1(f), op.draw
        )
        yield Mutant("changes its input", "Function", op.name, lambda f=op.f: _changing(f, _pull(f)), op.draw)
    for name, (loop, ours) in _jitted().items():
        for kind, change in KINDS.items():
            if kind not in ("missing conjugate", "broadcasting only"):
                make = lambda loop=loop, ours=ours, change=change: _by_numba(loop, change(_pull(ours)))
                yield Mutant(kind, "numba_call", name, make, _vector)
        yield Mutant("changes its input", "numba_call", name, _writer(loop, ours), _vector)


def _vector(seed: int) -> list[np.ndarray]:
    return [np.random.default_rng(seed).uniform(0.3, 0.9, 3)]


def _writer(loop: Callable[..., Any], ours: Callable[..., Any]) -> Callable[[], Any]:
    def make() -> Any:
        compiled = numba.njit(loop)

        def writes(x: Any) -> Any:
            y = compiled(x)
            x[0] = 2.0
            return y

        return _by_numba(writes, _pull(ours))

    return make


def _maker(form: str, f: Callable[..., Any], change: Callable[[Pull], Pull]) -> Callable[[], Any]:
    if form == "custom_jvp":
        return lambda: custom_jvp(f, change(_push(f)))
    return lambda: {"Function": function, "custom_vjp": custom_vjp}[form](f, change(_pull(f)))


def caught(mutant: Mutant, examples: int = 100) -> tuple[int, str] | None:
    """The number of examples after which it is caught, and the law; None if it is not."""
    rule = mutant.make()
    f = rule.apply if isinstance(rule, type) else rule
    for n in range(examples):
        point = mutant.draw(n)
        for test, subject in ((check_custom_rule, rule), (check, f)):
            try:
                test(subject, *[x.copy() for x in point])
            except LawViolation as violation:
                return n + 1, violation.name
    return None


def main() -> None:
    """Count the mutants that are caught, by kind."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--each", type=int, default=1, metavar="N", help="only each N-th mutant")
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after this time")
    parser.add_argument("--record", action="store_true", help=f"keep the counts in {RECORD.name}")
    options = parser.parse_args()
    start, everything = time.monotonic(), list(mutants())
    counts = {kind: {"caught": 0, "tried": 0, "latest": 0} for kind in [*KINDS, *OTHERS]}
    for mutant in everything[:: options.each]:
        if time.monotonic() - start > options.seconds:
            break
        found = caught(mutant)
        print(mutant.id, "missed" if found is None else f"{found[1]}, at point {found[0]}", flush=True)
        kind = counts[mutant.kind]
        kind["tried"] += 1
        kind["caught"] += found is not None
        kind["latest"] = max(kind["latest"], 0 if found is None else found[0])
    if options.record:
        kept = json.loads(RECORD.read_text()) if RECORD.exists() else {}
        size = {"operations": len(operations()), "all": len(everything), "each": options.each}
        RECORD.write_text(json.dumps({**kept, "mutants": {**size, "kinds": counts}}, indent=1) + "\n")
    tried, right = (sum(c[what] for c in counts.values()) for what in ("tried", "caught"))
    print(f"{right} of {tried}, of {len(everything)} in all")


if __name__ == "__main__":
    main()

"""How much the kernels of some programs do, counted in their loops: what optimisations are for; and what they are.

``python -m tests.lowering.kernel_work`` writes the numbers to ``kernel_work.json``, with which `test_kernel_work`
compares. The last one is a checksum of all texts: it shows which programs a change concerns.
``python -m tests.lowering.kernel_work "softmax in teams"`` prints the texts of one, to compare them with those of
another version.
"""

import functools
import inspect
import json
import re
import sys
import zlib
from pathlib import Path
from unittest.mock import patch

import numpy as np

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.core.ir import subjaxprs
from functrans.lowering.backend import Options
from functrans.lowering.jaxpr.partition import HostStep, ViewStep
from functrans.lowering.llvm.emit import emit_llvm
from functrans.lowering.llvm.maths import choice
from functrans.lowering.loops import ir, queries
from functrans.lowering.loops.show import show
from functrans.lowering.lower import lower
from functrans.lowering.python.emit import emit_python
from functrans.passes.cost_analysis import cost_analysis
from functrans.passes.scalar_functions import COSTS

sys.path += [str(Path(__file__).parents[n] / name) for n, name in ((0, ""), (1, "support"), (2, ""))]

from any_machine import as_on_any_machine, without_addresses
from pass_programs import PROGRAMS, M, X
from unusual_programs import MIXED
from work_programs import LARGE, TRANSFORMED, VARIANTS

from benchmarks.workloads.array_loop_cases import ARRAY_LOOPS

FILE = Path(__file__).with_suffix(".json")


def masked(x, y):
    """Comparisons, selections and integers."""
    low = fnp.where(x > y, x, fnp.minimum(y, 0.5))
    return fnp.sum(low), fnp.argmax(low), fnp.cumsum(fnp.where(low > 0.7, 1, 0))


def moved(x):
    """Reversed, repeated, joined, padded, transposed and strided."""
    a = fnp.concatenate([x[::-1], fnp.repeat(x, 2), fnp.pad(x, (1, 2))])
    return fnp.tile(a[::3], 2), fnp.outer(x, x).T[2:, ::2]


def attention(q, k, v):
    weights = fnp.exp(q @ k.T - fnp.max(q @ k.T, axis=1, keepdims=True))
    return weights / fnp.sum(weights, axis=1, keepdims=True) @ v


def sorted_pairs(x, i):
    return fnp.sort(x)[::-1], x[i], x.at[i].add(1.0), fnp.searchsorted(fnp.sort(x), x)


def waves(x):
    z = fnp.exp(1j * x)
    return fnp.abs(z * fnp.conj(z) + z[::-1]), z.real * 2.0


def branching(x):
    return lax.scan(lambda c, a: (lax.cond(a > 1.0, lambda c: c * a, lambda c: c + fnp.exp(a), c), c), 0.1, x)


def nested(m):
    row = lambda c, r: lax.fori_loop(0, r.size, lambda j, s: s + 0.02 * r[j] * s, c)
    return lax.scan(lambda c, r: (row(c, r), c), 1.0, m)


def halved(x):
    return fnp.sum(x.astype(fnp.float16) * fnp.float16(2)), (x.astype(fnp.float32) @ x.astype(fnp.float32))


def filtered(x):
    return fnp.convolve(x, x[:5]), fnp.diff(x, 2), fnp.mean(x), fnp.var(x)


def loss(f):
    return lambda *args: sum(fnp.sum(fnp.sin(y)) for y in ft.tree_util.tree_leaves(f(*args)))


def damped(c, r):
    return lax.scan(lambda s, a: (fnp.sin(s * a) + 0.1 * fnp.exp(a), s), c, r)[0], fnp.sort(r) * c


def checkpoint_in_scan(m):
    return lax.scan(ft.checkpoint(damped), 1.0, m)


def loops_in_checkpoint(m):
    return ft.checkpoint(lambda m: lax.scan(damped, 1.0, fnp.cumsum(m, axis=0)))(m)


def newton(x):
    """A loop of unknown length in a loop."""
    root = lambda a: lax.while_loop(lambda s: abs(s * s - a) > 1e-9, lambda s: 0.5 * (s + a / s), a)
    return lax.scan(lambda c, a: (c + root(a) * c, c), 0.1, x)


@ft.custom_vjp
def clipped(x):
    return fnp.sin(x)


clipped.defvjp(lambda x: (clipped(x), x), lambda x, g: (fnp.clip(g * fnp.cos(x), -1.0, 1.0),))


def ruled(x):
    return lax.fori_loop(0, 9, lambda i, y: y.at[i + 1].set(clipped(y[i]) * y[i + 2]), x)


def swapped(x):
    """Two arrays that branches write and exchange."""

    def body(i, s):
        return lax.cond(x[i] > 1.0, lambda a, b: (b, a.at[i].set(b[i] * 2.0)), lambda a, b: (a, b + a[i]), *s)

    return lax.fori_loop(0, 9, body, (x, fnp.cos(x)))


def exchanged_inside(x):
    """Two arrays that an inner loop writes and exchanges, an odd number of times."""
    inner = lambda i, s: (s[1].at[i].set(s[0][i] * 0.5), s[0])
    return lax.fori_loop(0, 3, lambda k, s: lax.fori_loop(k, 7 - k, inner, s), (x, fnp.cos(x)))


PLACES = np.arange(7) * 5 % 40
OTHERS = {
    "masked": (masked, X, X[::-1].copy()),
    "moved": (moved, X[:40]),
    "attention": (attention, M, M, M),
    "sorted pairs": (sorted_pairs, X[:40], PLACES),
    "waves": (waves, X),
    "branching": (branching, X),
    "nested": (nested, M),
    "halved": (halved, X),
    "filtered": (filtered, X[:40]),
    "gradient of moved": (ft.grad(loss(moved)), X[:40]),
    "gradient of attention": (ft.grad(loss(attention), (0, 1, 2)), M, M, M),
    "gradient of branching": (ft.grad(loss(branching)), X),
    "gradient of nested": (ft.grad(loss(nested)), M),
    "gradient of filtered": (ft.grad(loss(filtered)), X[:40]),
    "Hessian of filtered": (ft.hessian(loss(filtered)), X[:9]),
    "lanes of nested": (ft.vmap(nested), np.stack([M, M])),
    "gradient of checkpoint in scan": (ft.grad(loss(checkpoint_in_scan)), M[:6, :9]),
    "gradient of loops in checkpoint": (ft.grad(loss(loops_in_checkpoint)), M[:6, :9]),
    "gradient of newton": (ft.grad(loss(newton)), X[:40]),
    "gradient of ruled": (ft.grad(loss(ruled)), X[:40]),
    "gradient of swapped": (ft.grad(loss(swapped)), X[:40]),
    "exchanged inside": (exchanged_inside, X[:40]),
    "gradient of exchanged inside": (ft.grad(loss(exchanged_inside)), X[:40]),
    "tangent of exchanged inside": (lambda x: ft.jvp(exchanged_inside, (x,), (fnp.cos(x),)), X[:40]),
    "Hessian of branching": (ft.hessian(loss(branching)), X[:9]),
    "Hessian of swapped": (ft.hessian(loss(swapped)), X[:11]),
    "tangent of swapped": (lambda x: ft.jvp(swapped, (x,), (fnp.cos(x),)), X[:40]),
    "lanes of swapped": (ft.vmap(swapped), M),
    "lanes of the gradient of newton": (ft.vmap(ft.grad(loss(newton))), M[:4]),
    "gradient of lanes of ruled": (ft.grad(loss(ft.vmap(ruled))), M),
    "two gradients of nested": (ft.grad(lambda m: fnp.sum(ft.grad(loss(nested))(m) ** 2)), M[:5, :6]),
}  # fmt: skip


def large(*shape, dtype=float):
    """An array that takes no memory: large ones are only lowered."""
    return np.broadcast_to(np.ones((), dtype), shape)


def smoothed(image):
    padded = fnp.pad(fnp.sin(image), 1)
    return padded[2:, 1:-1] + padded[:-2, 1:-1] - 2.0 * padded[1:-1, 1:-1]


def squared(a, limit):
    """Products and small arrays in each lane."""
    b = a @ a + fnp.cumsum(a, axis=0)
    return fnp.where(fnp.trace(b) > limit, b, fnp.sort(a, axis=1))


def regression(w, x, y):
    return fnp.mean(fnp.logaddexp(0.0, x @ w) - y * (x @ w))


SHARED = {
    "folds in teams": (lambda x: (fnp.sum(x), fnp.max(x * 2.0), fnp.argmin(x)), large(1 << 21)),
    "softmax in teams": (lambda x: fnp.exp(x) / fnp.sum(fnp.exp(x), axis=1, keepdims=True), large(4096, 1024)),
    "differences in teams": (lambda x: fnp.diff(fnp.sin(x), 2), large(1 << 21)),
    "recursions in teams": (ft.vmap(PROGRAMS["read_back"][0]), large(4096, 400)),
    "scans in teams": (ft.vmap(branching), large(4096, 400)),
    "halvings in teams": (ft.vmap(PROGRAMS["groups"][0]), large(4096, 400)),
    "images in teams": (ft.vmap(smoothed), large(300, 60, 80)),
    "gradients of images in teams": (ft.vmap(ft.grad(loss(smoothed))), large(300, 60, 80)),
    "products in lanes in teams": (ft.vmap(squared, (0, None)), large(20_000, 8, 8), 1.0),
    "sorts in teams": (ft.vmap(lambda x: fnp.cumsum(fnp.sort(x)[::-1])), large(4096, 500)),
    "matrix product in teams": (lambda a, b: a @ b.T + 1.0, large(700, 500), large(900, 500)),
    "wide product in teams": (lambda a, b: a.T @ b, large(300, 40, dtype="f4"), large(300, 4000, dtype="f4")),
    "regression in teams": (ft.grad(regression), large(50), large(50_000, 50), large(50_000)),
    "table in teams": (lambda x, i: fnp.sum(fnp.exp(x[i]), axis=1), large(1000, 64), large(50_000, dtype=int)),
    "complex numbers in teams": (lambda z: fnp.sum(fnp.exp(z) * fnp.conj(z)), large(1 << 20, dtype=complex)),
}  # fmt: skip


def gradient_of(loop):
    """The gradient of a loop of the benchmarks, of few iterations."""
    spaces = {"np": fnp, "lax": lax, "api": ft}
    f = functools.partial(
        loop.f, **{name: spaces[name] for name in inspect.getfullargspec(loop.f).kwonlyargs}
    )
    return ft.grad(loss(f), loop.argnums), *loop.arguments(16)


LOOPS = {f"gradient of {loop.name}": gradient_of(loop) for loop in ARRAY_LOOPS}
CASES = {**PROGRAMS, **OTHERS, **SHARED, **LOOPS, **VARIANTS, **TRANSFORMED, **LARGE, **MIXED}
assert len(CASES) == sum(map(len, (PROGRAMS, OTHERS, SHARED, LOOPS, VARIANTS, TRANSFORMED, LARGE, MIXED))), (
    "a name twice"
)
COUNTS = (
    "equations", "values", "kernels", "host calls", "statements", "operations", "accesses", "branches", "routines",
    "scratch", "failures", "independent loops", "separate loops", "interruptible loops", "teams", "inputs overwritten",
    "extents", "instructions", "flags", "hints", "text",
)  # fmt: skip


#: The same text on all machines: no function is taken from a library that some do not have.
PORTABLE = Options(cpu="x86-64-v3", strict=True)
OWN_FUNCTIONS = Options(cpu="x86-64-v3")
FLAGS = re.compile(r"\b(?:reassoc|nsz|nnan|contract|nsw|nuw|inbounds|fast)\b")
LANES = re.compile(r"i32 (\d+)")


def lowered(name, donated, **options):
    """A program, and its kernels."""
    f, *args = CASES[name]
    with as_on_any_machine(threads=2):
        jaxpr = ft.jit(lambda *args: f(*args)).lower(*args).jaxpr
        return jaxpr, lower(jaxpr, Options(**options), range(len(jaxpr.invars)) if donated else ())


def texts(name, jaxpr, program):
    """Everything that is made of a program, as text; of a mixed one also with own functions, and where it is timed."""
    yield without_addresses(str(jaxpr))
    yield f"{cost_analysis(jaxpr)}"
    steps = [step for step in program.steps if not isinstance(step, HostStep | ViewStep)]
    yield " ".join(
        [f"{len(steps)} kernels", *[s.eqn.primitive.name for s in program.steps if s not in steps]]
    )
    for step in steps:
        yield from [emit_python(step.kernel, explicit=explicit) for explicit in (False, True)]
        yield emit_llvm(step.kernel, PORTABLE).text
        yield f"{step.ints} {step.floats} {step.interface} {step.updates} {step.scratch} {step.large}"
    if name in MIXED:
        with patch.multiple(
            choice,
            has_libmvec=lambda: False,
            is_in_process=lambda symbol: symbol == "sincos",
            processor=lambda: None,  # kernels are for another one
        ):
            yield from [emit_llvm(step.kernel, OWN_FUNCTIONS).text for step in steps]
        for step in lowered(name, donated=False, timed=True)[1].steps:
            if step not in steps and not isinstance(step, HostStep | ViewStep):
                yield show(step.kernel)
                yield from [
                    f"{s.name} {s.inner} {s.host} {_sizes(s.own)} {_sizes(s.shares)}"
                    for s in step.sites.sites
                ]


def _sizes(shares):
    return [(round(s.cost), s.read, s.written) for s in shares]


def counted(name, donated=False):
    """The counts of one program: of its kernels' text, and of what runs if unknown loops turn once."""
    jaxpr, program = lowered(name, donated)
    totals = dict.fromkeys(COUNTS, 0)
    _add_equations(totals, jaxpr)
    for step in program.steps:
        if isinstance(step, HostStep | ViewStep):
            totals["host calls"] += isinstance(step, HostStep)
            continue
        totals["kernels"] += 1
        totals["scratch"] += sum(step.scratch.values())
        totals["inputs overwritten"] += len(step.updates)
        for s in queries.walk(step.kernel.body):
            totals["statements"] += 1
            totals["failures"] += type(s) is ir.Fail
            totals["extents"] += sum(abs(_number(step, x, 0)) for x in queries.operands_of(s))
            if type(s) is ir.For:
                totals["independent loops"] += s.independent
                totals["separate loops"] += s.separate
                totals["interruptible loops"] += s.interruptible
                totals["teams"] += s.team is not None
        _add(totals, step, step.kernel.body, 1)
        _add_text(totals, emit_llvm(step.kernel, PORTABLE).text)
    totals["text"] = f"{zlib.crc32(chr(10).join(texts(name, jaxpr, program)).encode()):08x}"
    return totals


def _add_equations(totals, jaxpr):
    """What was traced: equations, also in bodies, and the elements of their results."""
    for eqn in jaxpr.eqns:
        totals["equations"] += 1
        totals["values"] += sum(getattr(v.aval, "size", 1) for v in eqn.outvars)
        for body in subjaxprs(eqn.params):
            _add_equations(totals, body)


def _add_text(totals, text):
    """What LLVM gets: instructions, what these allow, and the numbers of the hints about loops."""
    for line in text.splitlines():
        if line.startswith("  "):
            totals["instructions"] += 1
            totals["flags"] += len(FLAGS.findall(line))
        elif line.startswith("!"):
            totals["hints"] += 1 + sum(map(int, LANES.findall(line)))


def _number(step, x, otherwise):
    if type(x) is ir.Param and x.dtype == ir.INT64:
        return step.ints[x.slot]
    return x if type(x) is int else x.value if type(x) is ir.Extent else otherwise


def _add(totals, step, body, times):
    for s in body.statements:
        rounds = times
        match s:
            case ir.Let(op=op):
                totals["operations"] += times * COSTS.get(op, 1)
            case ir.Load() | ir.Store():
                totals["accesses"] += times
            case ir.Copy() if s.target.place != s.source.place:
                totals["accesses"] += times * int(np.prod([_number(step, n, 1) for n in s.target.shape]))
            case ir.For():
                rounds *= max(_number(step, s.stop, 1) - _number(step, s.start, 0), 0)
            case ir.If():
                totals["branches"] += times
            case ir.Call():
                totals["routines"] += times
        for inner in queries.bodies_of(s):
            _add(totals, step, inner, rounds)


def row(name):
    """All counts of a program, as they are, and of most where the memory of all inputs is given away."""
    return [
        list(counted(name, donated).values())
        for donated in ((False,) if name in TRANSFORMED or name in MIXED else (False, True))
    ]


if __name__ == "__main__":
    if sys.argv[1:]:
        print(
            *[text for name in sys.argv[1:] for text in texts(name, *lowered(name, donated=False))], sep="\n"
        )
        sys.exit()
    rows = [f"  {json.dumps(name)}: {json.dumps(row(name))}" for name in CASES]
    FILE.write_text("{\n" + ",\n".join(rows) + "\n}\n")

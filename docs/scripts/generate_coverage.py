"""Write docs/coverage.md from the table in tests/coverage; with --check, only check whether it is current."""

import sys
import warnings
from pathlib import Path

import numpy as np

import functrans as ft
from functrans.lowering.jaxpr.partition import HostStep, KernelStep, partition
from functrans.lowering.jaxpr.simplify import simplify

PAGE = Path(__file__).parents[1] / "coverage.md"
sys.path.insert(0, str(PAGE.parents[1] / "tests" / "coverage"))

import coverage_table as table  # noqa: E402

HEAD = """# Functions

For those who want to know whether a function exists, has a derivative, and compiles. Each row is tested: values and
dtypes against NumPy or SciPy, eagerly, under `jit` and under `vmap`, and derivatives against finite differences.

*Derivative*: "yes" means in both modes; "zero", that the result is a step function of float arguments; "none",
that the arguments are integers or the result does not depend on numbers. *Compiled to*: a kernel of native code; a
host call, which runs NumPy's or SciPy's function between two kernels (with its primitives in brackets); or nothing, if
tracing does all the work. If the shape of the result depends on numbers, a function compiles only with `size=`, or
not at all.

For the solvers of `functrans.scipy.integrate` and `functrans.scipy.optimize`, which call your functions, and their
rules, see [host calls](host_calls.md#scipy-solvers).

Next: [accuracy](accuracy.md), for the errors of these functions and their derivatives.

On a million elements, no function compiled by `jit` takes more than 1.5 times as long as NumPy's or SciPy's, except:

| function | ratio | why |
|---|---|---|
| `random.randint`, `random.gamma` | 9, 11 | JAX's numbers need remainders of 64-bit integers, a hash for each trial |
| `scipy.stats.binom.ppf` | 8 | SciPy's routine inverts over the real numbers; a search for the integer follows |
| `scipy.stats`: log tails of `binom`, `poisson`, `nbinom` | 2 | both tails are computed: neither loses digits |
| `scipy.special.shichi` | 2 | SciPy's routine is called once for each of the two results |
| `scipy.linalg.eigh_tridiagonal` (with vectors) | 2 | a host call, and a copy that the derivative needs |
"""


def results(entry, call):
    """The arrays among the results of a call, as a function of the drawn arguments."""
    return lambda *values: tuple(table.arrays(call(entry.subject, values)))


def traced(entry, call):
    """The program that a call becomes."""
    return ft.make_jaxpr(results(entry, call))(*call.values(entry.seed()))


def steps_of(entry):
    """The steps of the programs that the calls of an entry become; None where none can be compiled."""
    steps = None
    for call in entry.calls:
        if not call.eager:
            steps = (steps or []) + partition(simplify(traced(entry, call)))
    return steps


def compiled_to(entry):
    """What the calls of the entry compile to, according to the steps of their programs."""
    if "jit" in entry.skip:
        return f"not compiled: {entry.skip['jit']}"
    steps = steps_of(entry)
    if steps is None:
        return "not compiled"
    hosts = dict.fromkeys(s.eqn.primitive.name for s in steps if isinstance(s, HostStep))
    kernels = any(isinstance(s, KernelStep) for s in steps)
    if hosts:
        target = f"{'kernel, ' if kernels else ''}host call ({', '.join(hosts)})"
    else:
        target = "kernel" if kernels else "nothing"
    return f"{target} (with `size=`)" if all(c.eager or c.sized for c in entry.calls) else target


def derivative(entry):
    """The word yes, zero or none; or the reason why there is no derivative."""
    if isinstance(entry.differentiable, str):
        return f"no: {entry.differentiable}"
    if entry.differentiable:
        return "yes"
    call = entry.calls[0]
    values = call.values(entry.seed())
    # Traced where possible: some functions would compile loops to compute their results.
    runs = call.eager or "jit" in entry.skip
    outs = table.arrays(call(entry.subject, values)) if runs else traced(entry, call).out_avals
    smooth = any(y.dtype.kind in "fc" for y in outs)
    return "zero" if smooth and any(x.dtype.kind in "fc" for x in values) else "none"


def section(entries, namespace):
    """The functions of one namespace."""
    by_function = table.covering(entries)
    rows = []
    for name, function in table.public(namespace).items():
        entry = entries.get(table.id_of(namespace, name)) or by_function.get(id(function))
        if entry is None:
            continue  # a test of the table says so
        rows.append(f"| `{name}` | {derivative(entry)} | {compiled_to(entry)} |")
    head = f"## {namespace}\n\n{len(rows)} functions.\n\n| name | derivative | compiled to |\n|---|---|---|"
    return "\n".join([head, *rows, ""])


def page():
    """The whole text."""
    entries = table.load()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        namespaces = [n for n in table.NAMESPACES if table.public(n)]
        return "\n".join([HEAD, *(section(entries, n) for n in namespaces)])


if __name__ == "__main__":
    text = page()
    if "--check" not in sys.argv:
        PAGE.write_text(text)
    elif not PAGE.exists() or PAGE.read_text() != text:
        sys.exit("docs/coverage.md is not current: run python docs/scripts/generate_coverage.py")

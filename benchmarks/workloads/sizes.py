"""Programs of any size: of many operations, levels, leaves, elements, threads or lanes.

Each takes a size, and gives a function of arrays with the arrays, ready to compile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import functrans as ft
import functrans.numpy as fnp
from functrans import lax

from .. import backends
from .typical import elementwise, mixed

Made = tuple[Callable[..., Any], tuple[Any, ...]]
Call = Callable[..., Any]


class Family(NamedTuple):
    """Programs that differ in size.

    Attributes
    ----------
    name : str
    unit : str
        What is counted.
    make : callable
        The function of a size to compile, and its arguments.
    sizes : tuple of int
        In increasing order.
    """

    name: str
    unit: str
    make: Callable[[int], Made]
    sizes: tuple[int, ...]


_RANDOM = np.random.default_rng(0)
_ROW = _RANDOM.normal(size=100)
_MATRICES = _RANDOM.normal(size=(32, 24)), _RANDOM.normal(size=(24, 24)) / 5


# --- operations, one after the other ------------------------------------------------------------------------


def chain(ops: int) -> Made:
    """The gradient of elementwise operations."""
    return ft.grad(backends.functrans().bind(elementwise, ops=ops)), (_ROW,)


def mixture(ops: int) -> Made:
    """The gradient of products, reductions and elementwise operations."""
    return ft.grad(backends.functrans().bind(mixed, ops=ops)), _MATRICES


def branches(ops: int) -> Made:
    """The gradient of branches, five operations each."""

    def f(x: Any) -> Any:
        for k in range(ops // 5):
            x = lax.cond(x[0] > k / ops, lambda x: fnp.sin(x) * 1.1, lambda x, k=k: x + k, x)
        return fnp.sum(x)

    return ft.grad(f), (_ROW,)


def elements(ops: int) -> Made:
    """The gradient of a program that writes an array element by element, without a loop."""

    def f(x: Any) -> Any:
        for k in range(ops // 5):
            x = x.at[k % 40 + 1].set(fnp.sin(x[k % 40]) + x[k % 30])
        return fnp.sum(x)

    return ft.grad(f), (_ROW,)


def scan_body(ops: int) -> Made:
    """The gradient of a loop of ten steps, whose body has so many operations."""

    def step(c: Any, x: Any) -> tuple[Any, Any]:
        for k in range(ops // 4):
            c = c + 0.1 * fnp.sin(c * (1 + k / 200))
        return c, fnp.sum(c * x)

    return ft.grad(lambda c, xs: fnp.sum(lax.scan(step, c, xs)[1])), (_ROW[:16], _ROW[:10])


# --- nests --------------------------------------------------------------------------------------------------


def nested(level: Callable[[Call, int], Call], levels: int) -> Call:
    """The sum of a nest of so many levels: `level(inner, n)` is level number `n` around another."""
    f: Call = lambda x: fnp.sin(x) * 1.1  # noqa: E731
    for n in range(1, levels + 1):
        f = level(f, n)
    return lambda x: fnp.sum(f(x))


def conds(levels: int) -> Made:
    """The gradient of branches, each inside a branch."""
    level = lambda inner, n: lambda x: lax.cond(x[0] > n, lambda x: x * n, inner, x)  # noqa: E731
    return ft.grad(nested(level, levels)), (_ROW[:20],)


def scans(levels: int) -> Made:
    """The gradient of loops, each inside a loop; the innermost step runs as often for each number of levels."""

    def level(inner: Call, n: int) -> Call:
        length = 2 if n < levels else 2 ** (12 - levels + 1)
        return lambda x: lax.scan(lambda c, _: (inner(c) * 0.5 + 0.1, None), x, None, length=length)[0]

    return ft.grad(nested(level, levels)), (_ROW[:20],)


def loop_with_branch(inner: Call, n: int) -> Call:
    """A loop whose step is a branch."""

    def step(x: Any, _: Any) -> tuple[Any, None]:
        return lax.cond(x[0] > n, lambda x: x * n, inner, x) + 0.1, None

    return lambda x: lax.scan(step, x, None, length=2)[0]


def loop_that_writes(inner: Call, n: int) -> Call:
    """A loop that writes an element, or runs the nest inside."""

    def step(i: Any, x: Any) -> Any:
        return lax.cond(x[i] > n, lambda x: x.at[i].set(fnp.sin(x[i]) * x[i - 1]), inner, x)

    return lambda x: lax.fori_loop(1, 5, step, x)


def while_with_branch(inner: Call, n: int) -> Call:
    """A loop that runs while a condition holds, whose step is a branch."""

    def step(c: Any) -> Any:
        return c[0] + 1, lax.cond(c[1][0] > n, lambda x: x * n, inner, c[1]) + 0.1

    return lambda x: lax.while_loop(lambda c: c[0] < 2, step, (0, x))[1]


def hessian_of(level: Callable[[Call, int], Call]) -> Callable[[int], Made]:
    """The Hessian of a nest of levels, as a program of any number of them."""
    return lambda levels: (ft.hessian(nested(level, levels)), (np.linspace(0.1, 1, 20),))


# --- data ---------------------------------------------------------------------------------------------------


def leaves(count: int) -> Made:
    """The gradient in a dictionary of arrays."""
    tree = {f"w{i}": _ROW[:5] + i for i in range(count)}
    return ft.grad(lambda tree: sum(fnp.sum(fnp.sin(w) * w) for w in tree.values())), (tree,)


def array(size: int) -> Made:
    """Value and gradient of a sum of elementwise operations over an array."""
    return ft.value_and_grad(lambda x: fnp.sum(fnp.sin(x) * x)), (fnp.asarray(np.linspace(0, 1, size)),)


def threads(count: int) -> Made:
    """The same over 4,000,000 elements, with so many threads."""
    ft.config.num_threads = count
    return array(4_000_000)


def lanes(count: int) -> Made:
    """Cube roots by Newton's method in a loop without a fixed end, under `vmap`."""

    def root(a: Any) -> Any:
        step = lambda x: x - (x * x * x - a) / (3 * x * x)  # noqa: E731
        return lax.while_loop(lambda x: fnp.abs(x * x * x - a) > 1e-10 * a, step, a)

    return ft.vmap(root), (fnp.asarray(np.linspace(1.0, 3.0, count)),)


_MANY = (100, 500, 2_000, 8_000, 20_000)
_LEVELS = (1, 2, 4, 8, 12)

FAMILIES = (
    Family("elementwise operations, gradient", "operations", chain, _MANY),
    Family("mixed operations, gradient", "operations", mixture, _MANY),
    Family("branches, gradient", "operations", branches, (100, 250, 500, 1_000)),
    Family("elements written, gradient", "operations", elements, (100, 500, 2_000, 4_000)),
    Family("body of a scan, gradient", "operations", scan_body, (10, 100, 1_000, 4_000)),
    Family("nested cond, gradient", "levels", conds, _LEVELS),
    Family("nested scan, gradient", "levels", scans, _LEVELS),
    Family("branch in a loop, Hessian", "levels", hessian_of(loop_with_branch), (1, 2, 4, 8)),
    Family("branch in a loop that writes, Hessian", "levels", hessian_of(loop_that_writes), (1, 2, 4, 8)),
    Family("branch in a while loop, Hessian", "levels", hessian_of(while_with_branch), (1, 2, 4, 8)),
    Family("leaves, gradient", "arrays", leaves, (10, 100, 1_000, 3_000, 10_000)),
    Family("an array, value and gradient", "elements", array, tuple(10**k for k in range(0, 9, 2))),
    Family("threads", "threads", threads, (1, 2, 4, 8)),
    Family("lanes of a while loop", "lanes", lanes, (1, 100, 10_000, 1_000_000)),
)

"""The loop of ``scan``, ``map`` and ``fori_loop``: traced and bound, or run as Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...api import bodies
from ...api.progress import Progress
from ...arrays.autocast import made
from ...control import checkpointed_scan
from ...control import scan as scan_primitive
from ...core import Aval, PytreeError, aval_of, last_line
from ...core.values import ArrayLike, PyTree, Value
from ...debug.host import debug_callback
from ...frontend.arguments import flatten_values, given, name_of, result
from ...frontend.pytree import PyTreeDef, tree_structure, tree_unflatten
from ...frontend.pytree.nodes import keystr
from ...numpy.elementwise.selection import where
from ...primitives.operands import stack
from ...runtime.config import config
from ...runtime.records import NamedTuple
from .branching import cond


class Carry:
    """The carry of a loop that runs as Python, with the same type checks as a compiled loop's."""

    def __init__(self, what: str, fun: Callable[..., PyTree], leaves: Sequence[Value], tree: PyTreeDef):
        self.what = what
        self.fun = fun
        self.leaves = list(leaves)
        self.tree = tree
        self._casts = made.count

    @property
    def value(self) -> PyTree:
        """Return the carry that the body gets."""
        return tree_unflatten(self.tree, [given(x) for x in self.leaves])

    @property
    def last(self) -> PyTree:
        """Return the result of the loop."""
        return tree_unflatten(self.tree, [result(x) for x in self.leaves])

    def replace(self, value: ArrayLike) -> None:
        """Replace the carry by the body's result."""
        leaves, tree = flatten_values(value, self._place)
        bodies.check_structure(self.what, self.fun, self.tree, tree)
        after = [aval_of(x) for x in leaves]
        before = [bodies.joined(aval_of(x), b) for x, b in zip(self.leaves, after)]
        casts = self._casts != made.count
        leaves = [bodies.as_expected(x, a, casts) for x, a in zip(leaves, before)]
        line = last_line(self.fun)
        bodies.check_types(
            self.what, self.fun, tree, before, [aval_of(x) for x in leaves], [line] * len(leaves)
        )
        self.leaves = leaves

    def _place(self, path: Any) -> str:
        return f"the result of {name_of(self.fun)}{keystr(path)}"


class Rows:
    """The rows that a loop stacks: pytrees of one structure."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rows: list[list[Any]] = []
        self.tree: PyTreeDef | None = None

    def append(self, value: Any) -> None:
        """Append a row."""
        leaves, tree = flatten_values(value, lambda path: f"{self.name}: y{keystr(path)}")
        self.tree = tree if self.tree is None else self.tree
        if tree != self.tree:
            raise PytreeError(
                f"{self.name}: y has the structure {tree} in one iteration, {self.tree} in another"
            )
        self.rows.append(leaves)

    def stacked(self, reverse: bool) -> PyTree:
        """Stack the rows along a new first axis."""
        assert self.tree is not None
        rows = self.rows[::-1] if reverse else self.rows
        return tree_unflatten(self.tree, [result(stack(column)) for column in zip(*rows)])


#: Carried before the carry itself: the number of finished iterations, and that at which the next report is due.
START = (np.int64(0), np.int64(0))


def reporting(progress: Progress, call: Callable[..., tuple[Any, Any]]) -> Callable[..., tuple[Any, Any]]:
    """Make a counting body of ``call(fun, (carry, row)) -> (carry, y)``; its carry is the pair of count and carry."""

    def counted(fun: Callable[..., PyTree], values: tuple[Any, Any]) -> tuple[Any, Any]:
        ((done, due), carry), row = values
        now = done == due
        _report(progress, now, done)
        carry, y = call(fun, (carry, row))
        _report(progress, done + 1 == progress.length, done + 1)
        return ((done + 1, where(now, due + progress.every, due)), carry), y

    return counted


def _report(progress: Progress, now: Value, done: Value) -> None:
    cond(now, lambda done: debug_callback(progress.report, done), lambda done: None, done)


class ScanLoop(NamedTuple):
    """A loop whose body is ``call(fun, (carry, row)) -> (carry, y)``.

    Attributes
    ----------
    what : str
        The function of ``functrans.lax``, for messages.
    fun, call : callable
    carry, tree
        The leaves and the structure of the first carry.
    rows : list
        Arrays, or a ``range`` if the rows are numbers.
    rows_tree : PyTreeDef
    """

    what: str
    fun: Callable[..., PyTree]
    call: Callable[..., tuple[Any, Any]]
    carry: list[Any]
    tree: PyTreeDef
    rows: list[Any]
    rows_tree: PyTreeDef

    def run(
        self, length: int, reverse: bool = False, unroll: int = 1, every: int | None = None
    ) -> tuple[Any, Any]:
        """Return the last carry and the stacked rows; with checkpoints every so many iterations."""
        if isinstance(self.fun, Progress):
            self.fun.check(self.what, length)
            (_, last), ys = self.reporting(self.fun).run(length, reverse, unroll, every)
            return last, ys
        if config.disable_jit:
            return self._in_python(range(length)[:: -1 if reverse else 1])
        carried = self.traced()
        bind = scan_primitive.bind if every is None else partial(checkpointed_scan.bind, every=every)
        body = bodies.loop_body(carried.body, len(self.carry), len(self.rows))
        outs = bind(
            body.jaxpr,
            body.consts,
            [*carried.init, *body.carried],
            [np.int64(x.start) if type(x) is range else x for x in self.rows],
            length=length,
            reverse=reverse,
            unroll=unroll,
        )
        outs = body.put_back(outs, len(self.carry))
        ys_tree = carried.body.out_tree.children()[1]
        return self.last(outs, carried), tree_unflatten(ys_tree, [result(y) for y in outs[len(self.carry) :]])

    def reporting(self, progress: Progress) -> ScanLoop:
        """A copy of this loop that also reports its progress."""
        call = reporting(progress, self.call)
        carry, tree = [*START, *self.carry], pair(tree_structure(START), self.tree)
        return self._replace(fun=progress.body, call=call, carry=carry, tree=tree)

    def last(self, outs: Sequence[Value], carried: bodies.CarryBody) -> PyTree:
        """Select the carry from the results."""
        return tree_unflatten(self.tree, bodies.carry_out(outs[: len(self.carry)], carried.weak))

    def traced(self) -> bodies.CarryBody:
        """Trace the body to a jaxpr."""
        rows = [_row_aval(x) for x in self.rows]
        in_tree = pair(self.tree, self.rows_tree)

        def trace(avals: list[Aval]) -> bodies.Body:
            return bodies.trace_body(self.fun, [*avals, *rows], in_tree, self.call, avals)

        return bodies.trace_carry(
            self.what, self.fun, self.carry, self.tree, trace, lambda out: out.children()[0]
        )

    def _in_python(self, order: Sequence[int]) -> tuple[Any, Any]:
        carry = Carry(self.what, self.fun, self.carry, self.tree)
        ys = Rows(f"{self.what} of {name_of(self.fun)}")
        for i in order:
            row = tree_unflatten(self.rows_tree, [given(x[i]) for x in self.rows])
            value, y = self.call(self.fun, (carry.value, row))
            carry.replace(value)
            ys.append(y)
        if order:
            return carry.last, ys.stacked(order[0] > order[-1])
        body = self.traced().body  # for the types of the rows if there are none
        empty = [result(np.empty((0, *a.shape), a.dtype)) for a in body.outs[len(self.carry) :]]
        return carry.last, tree_unflatten(body.out_tree.children()[1], empty)


#: The counter of a loop: an integer like one of Python's ``range``, which gets the dtype of the array it meets.
COUNTER = Aval((), np.dtype(np.int64), weak=True)


def _row_aval(x: ArrayLike) -> Aval:
    if type(x) is range:
        return COUNTER
    aval = aval_of(x)
    return aval.strong().with_shape(aval.shape[1:])


def pair(first: PyTreeDef, second: PyTreeDef) -> PyTreeDef:
    """The structure of a pair of pytrees."""
    return tree_structure(
        (tree_unflatten(first, [0] * first.num_leaves), tree_unflatten(second, [0] * second.num_leaves))
    )

"""Donated arguments of a jitted function: which leaves they are, and calls that write into their memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from ...arrays.array import Array
from ...arrays.donation import Donation, EmptyArray
from ...control.call import executable
from ...core import Aval, FunctransError, Jaxpr, user_source, warn_user
from ...frontend.pytree import PyTree, tree_flatten
from ...runtime.config import is_timed
from ...runtime.module_getattr import slots


def donating(jaxpr: Jaxpr, donated: tuple[int, ...]) -> Any:
    """The executable of a jaxpr; with donated arguments, a `DonatingCall`."""
    if not donated:
        return executable(jaxpr)
    timed = is_timed()
    return jaxpr.derive(("donating", donated, timed), lambda: DonatingCall(jaxpr, donated, timed))


def with_arrays(values: list[Any], tree: PyTree, donated: Collection[int]) -> list[Any]:
    """The values of a call's leaves; for donated ones the Arrays themselves."""
    if donated:
        leaves = tree_flatten(tree)[0]
        for i in donated:
            if type(leaves[i]) is Array:
                values[i] = leaves[i]
    return values


class DonatingCall:
    """An executable that consumes some of its arguments: a result may be written into their memory.

    It is called with the leaves as users hold them. An `Array` cannot be used afterwards; other arrays do not change.

    Parameters
    ----------
    jaxpr : Jaxpr
    donated : tuple of int
        The numbers of these arguments.
    timed : bool
        Whether its kernels count their time.
    """

    def __init__(self, jaxpr: Jaxpr, donated: tuple[int, ...], timed: bool = False):
        self._executable = slots.compiler.compile_jaxpr(jaxpr, donated, timed)
        self._donated = donated
        self._name = jaxpr.name
        self._pairs = pairs(jaxpr.in_avals, donated, jaxpr.out_avals)

    def compile(self) -> DonatingCall:
        """Compile what is not compiled yet."""
        self._executable.compile()
        return self

    def fast_call(self, *arguments: PyTree) -> None:
        """Like `Executable.fast_call`: None, since each call has to consume its arguments."""

    @property
    def form(self) -> Any:
        """The `Executable`."""
        return self._executable.form

    def __call__(self, *leaves: Any) -> list[Any]:
        """Run the program on these leaves."""
        return self.call(*leaves)

    def call(self, *leaves: Any) -> list[Any]:
        """Run the program on these leaves."""
        values = list(leaves)
        consumed = self._consume(values)
        run = self._executable
        try:
            outs = run.call(*values)
        except BaseException as error:
            intact = isinstance(error, FunctransError) and run.overwrites_last
            for donation in consumed.values():
                donation.release() if intact else donation.finish()
            raise
        _show(outs, [(consumed[i], k) for i, k in self._pairs.items() if i in consumed])
        for donation in consumed.values():
            donation.finish()
        return outs

    def _consume(self, values: list[Any]) -> dict[int, Donation]:
        """Replace the donated arguments by memory that may be overwritten; says which Arrays are consumed."""
        consumed: dict[int, Donation] = {}
        seen: dict[int, Donation] = {}
        where = user_source()
        try:
            for i in self._donated:
                x = values[i]
                if type(x) in (Array, EmptyArray) and id(x) not in seen:  # an empty one raises
                    consumed[i] = seen[id(x)] = Donation(x, self._name, where)
                    values[i] = consumed[i].memory
                elif isinstance(x, np.ndarray) and id(x) not in seen:
                    values[i] = np.array(x, order="C")
        except BaseException:
            for donation in consumed.values():
                donation.release()
            raise
        for i, x in enumerate(values):  # the same Array in another position
            if id(x) in seen:
                values[i] = seen[id(x)].memory.copy()
        return consumed


def _show(outs: list[Any], consumed: Sequence[tuple[Donation, int]]) -> None:
    """Write results into the memory that the user gave for them, unless kernels have done so."""
    given = [(d.given, k) for d, k in consumed if d.given is not None]
    missing = [(x, k) for x, k in given if not _is_in(outs[k], x)]
    for k, out in enumerate(outs):  # results in memory that another one belongs in
        if any(_is_in(out, x) for x, _ in missing):
            outs[k] = out.copy()
    for x, k in missing:
        np.copyto(x, outs[k])
        outs[k] = x


def _is_in(out: np.ndarray, memory: np.ndarray) -> bool:
    return out is memory or out.base is memory


def pairs(ins: Sequence[Aval], donated: Sequence[int], outs: Sequence[Aval]) -> dict[int, int]:
    """For each donated input, the output that replaces it: the first of its type that no other input has."""
    left = list(range(len(outs)))
    replaced_by: dict[int, int] = {}
    for i in donated:
        for k in left:
            if (ins[i].shape, ins[i].dtype) == (outs[k].shape, outs[k].dtype):
                replaced_by[i] = k
                left.remove(k)
                break
    return replaced_by


def warn_unused(jaxpr: Jaxpr, donated: Sequence[int], place: Callable[[int], str]) -> None:
    """Warn about donated arguments that no output can replace; `place` names one for the message."""
    ins = jaxpr.in_avals
    used = pairs(ins, donated, jaxpr.out_avals)
    unused = [i for i in donated if i not in used and not ins[i].weak]
    if not unused:
        return
    more = f" (and {len(unused) - 1} more)" if len(unused) > 1 else ""
    message = (
        f"{place(unused[0])}{more} is donated, but no result has its shape and dtype, {ins[unused[0]]}: its memory "
        "cannot be reused"
    )
    warn_user(message)

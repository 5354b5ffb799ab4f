"""``aot``: a call whose forward and backward programs users compile, and whose partition they choose."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

import numpy as np

from ...core import Aval, Jaxpr, TapeAval
from ...core.dtypes import memory_dtype
from ...core.ir import Var
from ...core.values import ArrayLike, Value
from ...errors import ArgumentError, ArgumentValueError
from ...frontend.arguments import name_of
from ...passes.masks import Mask
from ...runtime.context import cached_property
from ...runtime.records import dataclass
from ...transforms.linearize_jaxpr import LinearizedJaxpr, linearize_jaxpr
from ..call import call_primitive, executable, with_numbers
from .partitioner import Joint, partition, partitioned

Compile = Callable[[Jaxpr], Callable[..., list[np.ndarray]]]


@dataclass(frozen=True, eq=False)
class PairPlan:
    """How to compile a function.

    Attributes
    ----------
    forward, backward : callable or None
        ``compile(jaxpr)`` returns a callable of arrays that returns a list of them; None stands for the compiler of
        `jit`.
    choose : callable
        ``choose(joint)`` returns the values to save.
    is_backward : bool
        Whether the program is a transpose.
    """

    forward: Compile | None
    backward: Compile | None
    choose: Callable[[Joint], Collection[Var]] = partition
    is_backward: bool = False

    @cached_property
    def transposed(self) -> PairPlan:
        """The plan for the transpose: always the same object."""
        turned = replace(self, is_backward=not self.is_backward)
        turned.__dict__["transposed"] = self
        return turned


def _run(*args: ArrayLike, jaxpr: Jaxpr, plan: PairPlan) -> list[Any]:
    compile = plan.backward if plan.is_backward else plan.forward
    if compile is None:
        return with_numbers(jaxpr, list(executable(jaxpr)(*args)))
    where = f"aot_function: {'b' if plan.is_backward else 'f'}w_compiler {name_of(compile)}"
    run = jaxpr.derive(("aot", plan), lambda: _checked_program(where, compile(jaxpr)))
    return with_numbers(jaxpr, _checked_results(where, run(*args), jaxpr))


def _checked_program(where: str, program: Any) -> Callable[..., Any]:
    if not callable(program):
        raise ArgumentError(
            f"{where} returned {program!r}. Return a callable that takes an array for each input of the Jaxpr, and "
            "returns a list with an array for each output"
        )
    return program


def _checked_results(where: str, results: Value, jaxpr: Jaxpr) -> list[Any]:
    """The results of a user's program, which must be those that the jaxpr declares."""
    avals = jaxpr.out_avals
    if not isinstance(results, list | tuple) or len(results) != len(avals):
        got = f"{len(results)} results" if isinstance(results, list | tuple) else repr(results)
        raise ArgumentError(
            f"{where}: the program for '{jaxpr.name}' returned {got}. Return a list with an array for each of the "
            f"{len(avals)} outputs of the Jaxpr"
        )
    return [
        x if isinstance(a, TapeAval) else _checked_array(where, i, x, a)
        for i, (x, a) in enumerate(zip(results, avals))
    ]


def _checked_array(where: str, number: int, result: Value, aval: Aval) -> np.ndarray:
    array = np.asarray(result)
    if array.shape != aval.shape or array.dtype not in (aval.dtype, memory_dtype(aval.dtype)):
        raise ArgumentValueError(
            f"{where}: result {number} has shape {array.shape} and dtype {array.dtype}, but the Jaxpr declares shape "
            f"{aval.shape} and dtype {aval.dtype}. Return an array of that shape and dtype"
        )
    return array


def _taken_apart(jaxpr: Jaxpr, mask: Mask, *, plan: PairPlan) -> LinearizedJaxpr:
    return jaxpr.derive(
        ("aot partition", mask, plan.choose), lambda: partitioned(linearize_jaxpr(jaxpr, mask), plan.choose)
    )


aot_p = call_primitive(
    "aot",
    _run,
    _taken_apart,
    moves_data=True,
    transposed=lambda options: {"plan": options["plan"].transposed},
)

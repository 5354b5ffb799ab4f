"""``aot``: a call whose forward and backward programs users compile, and whose partition they choose."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..core import Jaxpr
from ..core.ir import Var
from ..passes.masks import Mask
from ..transforms.linearize_jaxpr import LinearizedJaxpr, linearize_jaxpr
from .call import call_primitive, executable, with_numbers
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


def _run(*args: Any, jaxpr: Jaxpr, plan: PairPlan) -> list[Any]:
    compile = plan.backward if plan.is_backward else plan.forward
    compiled = executable(jaxpr) if compile is None else jaxpr.derive(("aot", plan), lambda: compile(jaxpr))
    return with_numbers(jaxpr, list(compiled(*args)))


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

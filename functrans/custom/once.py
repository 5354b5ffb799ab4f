"""A function whose result must not be differentiated: what ``once_differentiable`` puts around a reverse rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import numpy as np

from ..core.errors import OnceDifferentiableError
from .capture import StandInTracer
from .record import CustomRule, Forward, Values
from .rule import bind_rule


def once(
    name: str, fun: Callable[[Values], list[Any]], values: Values, functions: Iterable[Any] = ()
) -> list[Any]:
    """Apply a function of flat values; a derivative that goes through its result raises.

    `fun` runs below all transformations that differentiate: eagerly, with plain arrays.
    """

    def plain(values: Values) -> list[Any]:
        return fun([np.asarray(x.value) if type(x) is StandInTracer else x for x in values])

    def refuse(*_: Any) -> NoReturn:
        raise OnceDifferentiableError(
            f"trying to differentiate twice a function that was marked with @once_differentiable ({name}). The mark "
            "says that its backward has no derivative: remove it if there is one, or call a function with a rule "
            "there. Forward mode differentiates backward, too, unless the class has a jvp"
        )

    rule = CustomRule(
        name=f"{name}Backward",
        arity=len(values),
        fwd=plain,
        fwd_res=lambda values, perturbed, again: Forward(again(), []),
        bwd=refuse,
        jvp=refuse,
    )
    return bind_rule(rule, values, [fun, *functions])

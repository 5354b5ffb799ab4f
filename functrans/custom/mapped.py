"""A function with a rule for `vmap`, and its derivatives: functions with such a rule again.

The tangent of the function has the tangent of the rule as its rule; so has what pulls cotangents back. That one
computes the function anew from its operands: what the function and the rule would keep are different things.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..control.bodies import Mask, chosen, perturbed
from ..core.aval import Zero, aval_of
from ..core.dtypes import is_inexact
from ..primitives.elementwise import mul_p
from ..primitives.linear import batched_first, instantiate
from ..primitives.reduce import reduce_sum_p
from ..transforms import jvp as forward
from ..transforms.linearize import linearize
from ..transforms.transpose import backward
from .record import CustomRule, Forward, Values
from .rule import bind_rule

#: ``mapped(size, batched, values) -> (outs, batched)``: values that are mapped have the axis in front.
Mapped = Callable[[int, Mask, Values], tuple[list[Any], Mask]]


@dataclass(frozen=True, eq=False)
class WithMap:
    """A function of flat values, and what `vmap` makes of it.

    Attributes
    ----------
    name : str
    arity : int
    fwd : callable
        ``fwd(values) -> outs``.
    mapped : callable
        See `Mapped`.
    functions : tuple
        The user's functions behind the two.
    """

    name: str
    arity: int
    fwd: Callable[[Values], list[Any]]
    mapped: Mapped
    functions: tuple[Any, ...]

    def apply(self, values: Values) -> list[Any]:
        """The outputs; the rule holds for all transformations outside."""
        return bind_rule(self.rule(), values, functions=self.functions)

    def rule(self) -> CustomRule:
        """The rule."""
        return CustomRule(
            name=self.name,
            arity=self.arity,
            fwd=self.fwd,
            fwd_res=lambda values, mask, again: Forward(again(), list(values), mask),
            bwd=self._bwd,
            jvp=self._jvp,
            vmap=self._vmap,
            plain=self.fwd,
        )

    def _vmap(self, size: int, values: Values, dims: Sequence[int | None]) -> tuple[Any, Any]:
        batched = tuple([d is not None for d in dims])
        fronted = [x if d is None else batched_first(size, x, d) for x, d in zip(values, dims)]
        outs, found = self.mapped(size, batched, fronted)
        return outs, [0 if b else None for b in found]

    # --- forward mode --------------------------------------------------------------------------------------------

    def _jvp(self, values: Values, tangents: Values, again: Callable[[], list[Any]]) -> tuple[Any, Any]:
        mask = perturbed(tangents)
        found = self._pushed(mask).apply([*values, *chosen(tangents, mask)])
        inexact = [is_inexact(aval_of(x).dtype) for x in found]
        count = next(
            n for n in range(len(found) + 1) if n + sum(inexact[:n]) == len(found)
        )  # outputs, then tangents
        outs, moved = found[:count], iter(found[count:])
        return outs, [next(moved) if m else Zero(x) for x, m in zip(outs, inexact)]

    def _pushed(self, mask: Mask) -> WithMap:
        """From values and tangents of those in the mask to outputs and tangents of those that can have one."""

        def both(fun: Callable[..., list[Any]], values: Values) -> list[Any]:
            given = iter(values[self.arity :])
            tangents = [next(given) if m else Zero(x) for x, m in zip(values, mask)]
            outs, moved = forward.jvp(fun, values[: self.arity], tangents)
            return [*outs, *[instantiate(t) for x, t in zip(outs, moved) if is_inexact(aval_of(x).dtype)]]

        def fwd(values: Values) -> list[Any]:
            return both(lambda *xs: self.fwd(xs), values)

        def mapped(size: int, batched: Mask, values: Values) -> tuple[list[Any], Mask]:
            moving = iter(range(self.arity, len(values)))
            values, own = list(values), list(batched[: self.arity])
            for i, m in enumerate(mask):
                if m and own[i] != batched[t := next(moving)]:
                    late = t if own[i] else i
                    values[late] = batched_first(size, values[late], None)
                    own[i] = True
            flags: list[bool] = []

            def fun(*xs: Any) -> list[Any]:
                outs, found = self.mapped(size, tuple(own), xs)
                flags[:] = found
                return outs

            outs = both(fun, values)
            moved = [b for x, b in zip(outs, flags) if is_inexact(aval_of(x).dtype)]
            return outs, (*flags, *moved)

        return WithMap(f"jvp of {self.name}", self.arity + sum(mask), fwd, mapped, self.functions)

    # --- reverse mode --------------------------------------------------------------------------------------------

    def _bwd(self, mask: Mask, values: Values, cts: Values) -> list[Any]:
        given = perturbed(cts)
        if not any(given):
            return [None] * self.arity
        found = iter(self._pulled(mask, given).apply([*values, *chosen(cts, given)]))
        return [next(found) if m and is_inexact(aval_of(x).dtype) else None for x, m in zip(values, mask)]

    def _pulled(self, mask: Mask, given: Mask) -> WithMap:
        """From values and cotangents (of the outputs in `given`) to cotangents of the values in the mask."""

        def pull(
            fun: Callable[..., list[Any]], values: Values, cts: Callable[[Sequence[Any]], Values]
        ) -> list[Any]:
            found = linearize(fun, values[: self.arity], mask)
            back = backward(found.tape, found.tangents, cts(found.outs), found.inputs)
            return [instantiate(ct) for ct, m in zip(back, mask) if m]

        def fwd(values: Values) -> list[Any]:
            rest = iter(values[self.arity :])
            return pull(
                lambda *xs: self.fwd(xs),
                values,
                lambda outs: [next(rest) if g else Zero(x) for x, g in zip(outs, given)],
            )

        def mapped(size: int, batched: Mask, values: Values) -> tuple[list[Any], Mask]:
            own = [b or m for b, m in zip(batched, mask)]
            values = [
                x if b or not o else batched_first(size, x, None) for x, b, o in zip(values, batched, own)
            ] + list(values[self.arity :])
            flags: list[bool] = []

            def fun(*xs: Any) -> list[Any]:
                outs, found = self.mapped(size, tuple(own), xs)
                flags[:] = found
                return outs

            def cts(outs: Sequence[Any]) -> list[Any]:
                rest = iter(zip(values[self.arity :], batched[self.arity :]))
                return [
                    _shared(size, *next(rest), b) if g else Zero(x) for x, g, b in zip(outs, given, flags)
                ]

            found = pull(fun, values, cts)
            return found, (True,) * len(found)

        return WithMap(f"vjp of {self.name}", self.arity + sum(given), fwd, mapped, self.functions)


def _shared(size: int, ct: Any, batched: bool, wanted: bool) -> Any:
    """The cotangent of an output that is mapped (if `wanted`), or is the same for all examples."""
    if wanted:
        return ct if batched else batched_first(size, ct, None)
    if batched:
        return reduce_sum_p.bind(ct, axes=(0,))
    return mul_p.bind(ct, aval_of(ct).dtype.type(size))

"""Taylor coefficients of linear operations: rules for the slot ``taylor``, shared by all families.

A rule is ``rule(prim, out, operands, params)``, where `out` and the operands are indexed by the number of a
coefficient. It yields the coefficients of the result from number 1 on, each from those of the operands up to that
number and those of the result before it. A coefficient that is known to vanish is a `Zero`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

from ..core.aval import Zero
from ..core.primitive import Primitive
from ..core.values import Params


def of_linear(prim: Primitive, out: Any, operands: Sequence[Any], params: Params) -> Iterator[Any]:
    """For an operation that is linear in its first operand, and has no derivative in the others."""
    x, *others = operands
    fixed = [a[0] for a in others]
    for k in count(1):
        yield Zero(out[0]) if type(x[k]) is Zero else prim.bind(x[k], *fixed, **params)


def of_jointly_linear(prim: Primitive, out: Any, operands: Sequence[Any], params: Params) -> Iterator[Any]:
    """For an operation that is linear in all operands with a derivative: its jvp rule, once for each coefficient."""
    jvp = prim.rule("jvp")
    primals = [a[0] for a in operands]
    for k in count(1):
        yield jvp(primals, [a[k] for a in operands], **params)[1]

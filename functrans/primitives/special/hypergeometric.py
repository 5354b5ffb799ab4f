"""Hypergeometric functions and elliptic integrals: DLMF 13.3, 15.5.1, 16.3.1, 19.5."""

from __future__ import annotations

import math
from typing import Any

from ...core import Primitive
from ...core.values import Value
from ..elementwise.arithmetic import div_p, mul_p, neg_p
from ..families import literal
from ..structure.linear import Rule, add_p
from .from_scipy import of_scipy, refused


def _above(x: Value) -> Value:
    return add_p.bind(x, literal(1.0, x))


def _parameters(name: str, count: int) -> list[Rule]:
    return [refused(f"the derivative of {name} in a parameter")] * count


def _confluent(function_p: Any) -> Rule:
    return lambda ans, a, b, x: mul_p.bind(div_p.bind(a, b), function_p().bind(_above(a), _above(b), x))


def _gauss(function_p: Any) -> Rule:
    return lambda ans, a, b, c, x: mul_p.bind(
        div_p.bind(mul_p.bind(a, b), c), function_p().bind(_above(a), _above(b), _above(c), x)
    )


hyp0f1_p: Primitive = of_scipy(
    "hyp0f1", *_parameters("hyp0f1", 1), lambda ans, b, x: div_p.bind(hyp0f1_p.bind(_above(b), x), b)
)
hyp1f1_p: Primitive = of_scipy("hyp1f1", *_parameters("hyp1f1", 2), _confluent(lambda: hyp1f1_p))
hyp2f1_p: Primitive = of_scipy("hyp2f1", *_parameters("hyp2f1", 3), _gauss(lambda: hyp2f1_p))
hyperu_p: Primitive = of_scipy(
    "hyperu",
    *_parameters("hyperu", 2),
    lambda ans, a, b, x: neg_p.bind(mul_p.bind(a, hyperu_p.bind(_above(a), _above(b), x))),
)


def _elliptic(a: float, factor: float) -> Rule:
    """The derivative in `m` of an elliptic integral, a hypergeometric function of `m`."""
    return lambda ans, m: mul_p.bind(
        literal(factor * math.pi, m),
        hyp2f1_p.bind(literal(a, m), literal(1.5, m), literal(2.0, m), m),
    )


ellipk_p: Primitive = of_scipy("ellipk", _elliptic(1.5, 1 / 8))
ellipe_p: Primitive = of_scipy("ellipe", _elliptic(0.5, -1 / 8))

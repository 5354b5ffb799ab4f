"""Trigonometric and hyperbolic functions, their inverses, and hypot."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.primitive import Primitive
from .elementwise import div_p, eq_p, mul_p, neg_p, select_p, sub_p
from .exp_log import integer_pow_p, sqrt_p
from .families import elementwise, literal
from .linear import Rule, add_p


def _one(x: Any) -> Any:
    return literal(1.0, x)


def _unary(name: str, impl: Rule, factor: Rule | None = None, term: Rule | None = None) -> Primitive:
    derivative: dict[str, Any] = {"factors": (factor,)} if term is None else {"terms": (term,)}
    return elementwise(name, impl, **derivative, kernel=lambda k, x: k.call(name, x), kinds="fc")


def _square(x: Any) -> Any:
    return integer_pow_p.bind(x, y=2)


def _one_minus_square(x: Any) -> Any:
    """``1 - x**2`` without cancellation near ``|x| = 1``."""
    return mul_p.bind(sub_p.bind(_one(x), x), add_p.bind(_one(x), x))


# --- trigonometric ------------------------------------------------------------------------------------------

sin_p: Primitive = _unary("sin", np.sin, lambda ans, x: cos_p.bind(x))
cos_p: Primitive = _unary("cos", np.cos, lambda ans, x: neg_p.bind(sin_p.bind(x)))
tan_p: Primitive = _unary("tan", np.tan, lambda ans, x: add_p.bind(_one(x), _square(ans)))

arcsin_p: Primitive = _unary(
    "arcsin", np.arcsin, term=lambda t, ans, x: div_p.bind(t, sqrt_p.bind(_one_minus_square(x)))
)
arccos_p: Primitive = _unary(
    "arccos", np.arccos, term=lambda t, ans, x: neg_p.bind(div_p.bind(t, sqrt_p.bind(_one_minus_square(x))))
)
arctan_p: Primitive = _unary(
    "arctan", np.arctan, term=lambda t, ans, x: div_p.bind(t, add_p.bind(_one(x), _square(x)))
)

# --- hyperbolic ---------------------------------------------------------------------------------------------

sinh_p: Primitive = _unary("sinh", np.sinh, lambda ans, x: cosh_p.bind(x))
cosh_p: Primitive = _unary("cosh", np.cosh, lambda ans, x: sinh_p.bind(x))
tanh_p: Primitive = _unary("tanh", np.tanh, lambda ans, x: sub_p.bind(_one(x), _square(ans)))

arcsinh_p: Primitive = _unary(
    "arcsinh", np.arcsinh, term=lambda t, ans, x: div_p.bind(t, sqrt_p.bind(add_p.bind(_one(x), _square(x))))
)
# Two roots, not the root of the product: the same on the real line, and the right branch for complex numbers.
arccosh_p: Primitive = _unary(
    "arccosh",
    np.arccosh,
    term=lambda t, ans, x: div_p.bind(
        t, mul_p.bind(sqrt_p.bind(sub_p.bind(x, _one(x))), sqrt_p.bind(add_p.bind(x, _one(x))))
    ),
)
arctanh_p: Primitive = _unary(
    "arctanh", np.arctanh, term=lambda t, ans, x: div_p.bind(t, _one_minus_square(x))
)

# --- of two numbers -----------------------------------------------------------------------------------------


def _norm(y: Any, x: Any) -> Any:
    return add_p.bind(_square(x), _square(y))


arctan2_p: Primitive = elementwise(
    "arctan2",
    np.arctan2,
    factors=(
        lambda ans, y, x: div_p.bind(x, _norm(y, x)),
        lambda ans, y, x: neg_p.bind(div_p.bind(y, _norm(y, x))),
    ),
    kernel=lambda k, y, x: k.call("arctan2", y, x),
    kinds="f",
)


def _direction(x: Any, ans: Any) -> Any:
    """``x / ans``, and 0 at the origin, as ``abs`` has it."""
    return div_p.bind(x, select_p.bind(eq_p.bind(ans, literal(0.0, ans)), _one(ans), ans))


hypot_p: Primitive = elementwise(
    "hypot",
    np.hypot,
    factors=(
        lambda ans, x, y: _direction(x, ans),
        lambda ans, x, y: _direction(y, ans),
    ),
    kernel=lambda k, x, y: k.call("hypot", x, y),
    kinds="f",
)

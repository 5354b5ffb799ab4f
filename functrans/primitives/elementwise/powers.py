"""``x**y``: known integer exponents by products, all others by ``pow``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import FLOAT64
from ...core.errors import ArgumentValueError
from ...core.trace import PYTHON_KEYS, WEAK_KEYS, Tracer
from ..operands import WEAK_DTYPES, finish, key_of, operand, strong
from ..promotion import Body, binary, binary_operator, publish, resolved, unary_operator
from ..structure.linear import dtype_of
from .arithmetic import convert_element_type_p
from .composed import constant, square, unchanged
from .exp_log import integer_pow_p, pow_p, sqrt_p

_LARGEST_EXPONENT = 16
"""Up to this an integer exponent of a float is worked out by products, beyond it by ``pow``."""


def _integer_exponent(y: Any) -> int | None:
    """The number that `y` is, if it is a known integer."""
    if isinstance(y, np.number) and y.dtype.kind in "iuf":
        y = y.item()
    if type(y) is int:
        return y
    return int(y) if type(y) is float and y.is_integer() else None


def _power_by_integer(x: Any, n: int, dtype: np.dtype, weak: bool) -> Any:
    """``x**n`` in `dtype` for a known integer; None where ``pow`` is to do it."""
    if dtype.kind in "iu" and n < 0:
        if not weak:
            raise ArgumentValueError(
                f"power: an integer array to the power {n}: integers have no negative powers; "
                f"write x**{float(n)}, or convert x to float"
            )
        dtype = FLOAT64
    if dtype.kind in "fc" and abs(n) > _LARGEST_EXPONENT:
        return None
    if weak:
        number = WEAK_KEYS[dtype.kind]
        x = number(x) if type(x) in PYTHON_KEYS else _weak_tracer(x, dtype)
    else:
        x = strong(x, dtype)
    if n == 0:
        return WEAK_KEYS[dtype.kind](1) if weak else constant(dtype.type(1), x)
    return unchanged(x) if n == 1 else integer_pow_p.bind(x, y=n)


def _weak_tracer(x: Any, dtype: np.dtype) -> Any:
    return x if dtype_of(x) == dtype else convert_element_type_p.bind(x, dtype=dtype, weak=True)


def _power(ufunc: np.ufunc) -> tuple[Body, Body]:
    """The public function and the operator, which has ways of its own for squares and square roots."""
    general = binary(ufunc, pow_p.bind, "")
    general_operator = binary_operator(ufunc, pow_p.bind)

    def by_integer(x: Any, y: Any, keep_weak: bool) -> Any:
        n = _integer_exponent(y)
        if n is None:
            return None
        keys = key_of(x), key_of(y)
        weak = keep_weak and keys[0] in WEAK_DTYPES and keys[1] in WEAK_DTYPES
        return _power_by_integer(x, n, resolved(ufunc, keys)[0], weak)

    def function(x: Any, y: Any, /, **options: Any) -> Any:
        if options:
            return general(x, y, **options)
        x = operand(x, ufunc.__name__)
        found = by_integer(x, y, keep_weak=False)
        return general(x, y) if found is None else finish(found)

    def apply(x: Any, y: Any) -> Any:
        if isinstance(x, Tracer):
            if type(y) is int and y == 2:
                return _square(x)
            if type(y) is float and y == 0.5:
                return _root(x)
            found = by_integer(x, y, keep_weak=True)
            if found is not None:
                return finish(found)
        return general_operator(x, y)

    return function, apply


# What NumPy's operator does for these exponents (a square of booleans is int8, their power by 2 int64).
_square = unary_operator(np.square, square)
_root = unary_operator(np.sqrt, sqrt_p.bind)
_function, power_operator = _power(np.power)
power = publish(
    _function,
    np.power,
    "The power. ``x**0`` has derivative 0 in `x` everywhere, ``0**y`` has derivative 0 in `y`.",
)
float_power = publish(_power(np.float_power)[0], np.float_power, "The power in double precision.")

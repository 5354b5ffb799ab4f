"""Comparison with NumPy's promotion, exact where operands have no common dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.primitive import Primitive
from ..operands import finish, operand
from ..promotion import Body, binary, binary_operator, publish
from ..structure.linear import dtype_of
from .arithmetic import convert_element_type_p, eq_p, ge_p, gt_p, le_p, lt_p, ne_p, select_p
from .composed import constant


def _compared(prim: Primitive, ufunc: np.ufunc) -> Body:
    """A comparison; int64 with uint64 exactly, which have no common dtype."""

    def body(x: Any, y: Any) -> Any:
        a, b = dtype_of(x), dtype_of(y)
        if a == b:
            return prim.bind(x, y)
        if a.kind == "i":
            below, outcome = x, ufunc(-1, 0)
            x = convert_element_type_p.bind(x, dtype=b)
        else:
            below, outcome = y, ufunc(0, -1)
            y = convert_element_type_p.bind(y, dtype=a)
        negative = lt_p.bind(below, np.int64(0))
        return select_p.bind(negative, outcome, prim.bind(x, y))

    return body


def _beyond(compare: Body, ufunc: np.ufunc) -> Body:
    """The same comparison with Python integers that the other's dtype does not hold: its outcome is plain."""

    def function(x: Any, y: Any, /, **options: Any) -> Any:
        try:
            return compare(x, y, **options)
        except OverflowError:
            if type(y) is int:
                return finish(constant(ufunc(0, 1 if y > 0 else -1), operand(x, ufunc.__name__)))
            return finish(constant(ufunc(1 if x > 0 else -1, 0), operand(y, ufunc.__name__, 1)))

    return function


def _comparison(ufunc: np.ufunc, prim: Primitive, summary: str) -> Body:
    return publish(_beyond(binary(ufunc, _compared(prim, ufunc), summary), ufunc), ufunc, summary)


equal = _comparison(np.equal, eq_p, "Whether equal; NaN equals nothing.")
not_equal = _comparison(np.not_equal, ne_p, "Whether different; NaN differs from itself.")
less = _comparison(np.less, lt_p, "Whether the first is less; complex numbers in dictionary order.")
less_equal = _comparison(np.less_equal, le_p, "Whether the first is not greater; false with NaN.")
greater = _comparison(np.greater, gt_p, "Whether the first is greater; complex numbers in dictionary order.")
greater_equal = _comparison(np.greater_equal, ge_p, "Whether the first is not less; false with NaN.")


# --- Python's operators -------------------------------------------------------------------------------------


def _operator(ufunc: np.ufunc, prim: Primitive) -> Body:
    return _beyond(binary_operator(ufunc, _compared(prim, ufunc)), ufunc)


def _equality(ufunc: np.ufunc, prim: Primitive, outcome: np.bool_) -> Body:
    """== and != take any object, as NumPy's do: what is no number differs from every number."""
    compare = _operator(ufunc, prim)

    def apply(x: Any, y: Any) -> Any:
        result = compare(x, y)
        if result is NotImplemented and not hasattr(y, "__array_ufunc__"):
            return finish(constant(outcome, x))
        return result

    return apply


OPERATORS = {
    "eq": _equality(np.equal, eq_p, np.False_),
    "ne": _equality(np.not_equal, ne_p, np.True_),
    "lt": _operator(np.less, lt_p),
    "le": _operator(np.less_equal, le_p),
    "gt": _operator(np.greater, gt_p),
    "ge": _operator(np.greater_equal, ge_p),
}

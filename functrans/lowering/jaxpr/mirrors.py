"""Values that equal another one with two axes exchanged, up to a sign, and what elementwise equations make of them.

The difference of equal numbers is 0.0, whichever comes first: so a difference mirrors its negative but for the signs of
zeros, and these make all the difference to ``1 / (x - y)``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...core import Atom, Eqn, Literal
from ...primitives.elementwise.arithmetic import (
    convert_element_type_p,
    div_p,
    eq_p,
    ge_p,
    gt_p,
    le_p,
    lt_p,
    max_p,
    min_p,
    mul_p,
    ne_p,
    neg_p,
    select_p,
    sub_p,
)
from ...primitives.elementwise.complexes import abs_p
from ...primitives.elementwise.exp_log import (
    cbrt_p,
    exp2_p,
    exp_p,
    expm1_p,
    integer_pow_p,
    log1p_p,
    log_p,
    sqrt_p,
)
from ...primitives.elementwise.rounding import sign_p
from ...primitives.elementwise.trig import (
    arcsin_p,
    arcsinh_p,
    arctan_p,
    arctanh_p,
    cos_p,
    cosh_p,
    sin_p,
    sinh_p,
    tan_p,
    tanh_p,
)
from ...primitives.special.functions import erf_p
from ...primitives.structure.linear import add_p
from ...runtime.records import NamedTuple

#: ``f(-x) == -f(x)`` for the first of these, ``f(-x) == f(x)`` for the second.
_ODD = (neg_p, sign_p, sin_p, tan_p, arcsin_p, arctan_p, sinh_p, tanh_p, arcsinh_p, arctanh_p, cbrt_p, erf_p)
_EVEN = (abs_p, cos_p, cosh_p)
#: The sign of a zero makes no difference to the first of these, and for the second at most to the sign of a zero.
_BLIND = (*_EVEN, exp_p, exp2_p, log_p, eq_p, ne_p, lt_p, le_p, gt_p, ge_p)
_FAITHFUL = (
    *_ODD, add_p, sub_p, mul_p, max_p, min_p, select_p, sqrt_p, expm1_p, log1p_p, convert_element_type_p,
)  # fmt: skip


class Mirror(NamedTuple):
    """A value equal to another one with two axes exchanged.

    Attributes
    ----------
    value : Atom
    sign : int
        The sign between them; 0 if both signs hold.
    exact : bool
        Whether zeros have the same sign, too.
    """

    value: Atom
    sign: int
    exact: bool = True


def is_integer(a: Atom) -> bool:
    """Whether a value has an integer dtype, or that of truth values."""
    return a.aval.dtype.kind in "iub"


def sign_of(e: Eqn, signs: Sequence[int]) -> int | None:
    """The sign of a result whose operands have these signs; None if it has none."""
    prim = e.primitive
    if prim is mul_p:
        return signs[0] * signs[1]
    if prim in (add_p, sub_p):
        return _common(signs)
    if prim is select_p:
        return _common(signs[1:]) if signs[0] >= 0 else None
    if prim is neg_p:
        return signs[0]
    if all(s >= 0 for s in signs):
        return 1
    if prim is integer_pow_p:
        return signs[0] if e.params["y"] % 2 else 1
    if is_integer(e.invars[0]):  # integers wrap around: |x - y| of those without sign is not |y - x|
        return 1 if prim is abs_p and e.invars[0].aval.dtype.kind == "i" else None
    if prim is div_p:
        return signs[0] * (signs[1] or 1)
    return 1 if prim in _EVEN else signs[0] if prim in _ODD else None


def exactness_of(e: Eqn, inner: Sequence[Mirror]) -> bool | None:
    """Whether zeros of a result mirror each other with their signs; None if those of its operands may change more."""
    prim = e.primitive
    if all(m.exact for m in inner) or prim in _BLIND:
        return True
    if prim is integer_pow_p:
        even = e.params["y"] % 2 == 0
        return even if even or e.params["y"] > 0 else None
    if prim is mul_p and e.invars[0] is e.invars[1]:
        return True
    if prim in (add_p, sub_p) and any(
        isinstance(a, Literal) and bool(np.all(a.value != 0)) for a in e.invars
    ):
        return True
    if prim is div_p:
        return False if inner[1].exact else None
    return False if prim in _FAITHFUL else None


def _common(signs: Sequence[int]) -> int | None:
    """The sign of values of which each has one of these; zeros have both."""
    found = {s for s in signs if s}
    return None if len(found) > 1 else found.pop() if found else 0


def is_zero(a: Atom) -> bool:
    """Whether a value is the number zero."""
    return isinstance(a, Literal) and not a.aval.shape and bool(a.value == 0)

"""The domain entries of the special functions that SciPy computes, and of those that look at bits."""

from dataclasses import dataclass

import numpy as np
import pytest

from functrans.primitives.elementwise import bits as representation
from functrans.primitives.special import from_scipy as special
from functrans.primitives.special import incomplete
from functrans.testing import Case, Domain, Interval, Numbers, check_primitive

POSITIVE = Interval(0.2, 3.0)
UNIT = Interval(-0.9, 0.9)
SHARE = Interval(0.05, 0.95)
ABOVE_ONE = Interval(1.2, 4.0)


@dataclass(frozen=True)
class Held(Numbers):
    """Numbers that no derivative is asked for: there is none in them."""

    fixed = True


def _cases(*operands):
    """Operands of equal shapes, 0-d, broadcast and empty."""
    shapes = [[(3, 4)] * 3, [()] * 3, [(3, 1), (4,), (1, 4)], [(0, 3), (3,), ()]]
    return tuple(
        Case(tuple(kind(s, interval) for s, (kind, interval) in zip(row, operands))) for row in shapes
    )


ROUNDED = [{"exponent_bits": 5, "mantissa_bits": 10}, {"exponent_bits": 8, "mantissa_bits": 7}]
CASTS = [((3, 4), "int32"), ((2, 2), "uint8"), ((), "float32"), ((0, 2), "float64"), ((3, 2), "complex128")]
DOMAINS = {
    special.erfinv_p: Domain((UNIT,), kinds="f"),
    special.ndtri_p: Domain((SHARE,), kinds="f"),
    incomplete.gamma_density_p: Domain((POSITIVE, POSITIVE), kinds="f"),
    incomplete.gamma_quantile_slope_p: Domain(cases=_cases((Held, POSITIVE), (Numbers, POSITIVE)), kinds="f"),
    incomplete.gamma_quantile_bend_p: Domain(cases=_cases((Held, POSITIVE), (Numbers, POSITIVE)), kinds="f"),
    incomplete.gammainc_p: Domain((POSITIVE, POSITIVE), kinds="f"),
    incomplete.gammaincc_p: Domain((POSITIVE, POSITIVE), kinds="f"),
    incomplete.betainc_p: Domain(
        cases=_cases((Held, POSITIVE), (Held, POSITIVE), (Numbers, SHARE)), kinds="f"
    ),
    special.zeta_p: Domain(cases=_cases((Held, ABOVE_ONE), (Numbers, POSITIVE)), kinds="f"),
    representation.bitcast_p: Domain(
        cases=tuple(Case((Numbers(s),), {"dtype": np.dtype(d)}, smooth=False) for s, d in CASTS),
        kinds="f",
        without=("float32",),
    ),
    representation.reduce_precision_p: Domain((Interval(),), params=tuple(ROUNDED), kinds="fc", smooth=False),
}


@pytest.mark.parametrize("prim", DOMAINS, ids=str)
def test_primitive(prim):
    check_primitive(prim, DOMAINS[prim])

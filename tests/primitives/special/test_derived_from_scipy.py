"""The domain entries of the special functions that SciPy computes, and of those that look at bits."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from special_domains import ABOVE_ONE, POSITIVE, SHARE, UNIT, Held, cases_of

from functrans.primitives.elementwise import bits as representation
from functrans.primitives.special import from_scipy as special
from functrans.primitives.special import incomplete
from functrans.testing import Case, Domain, Interval, Numbers, check_primitive

ROUNDED = [{"exponent_bits": 5, "mantissa_bits": 10}, {"exponent_bits": 8, "mantissa_bits": 7}]
CASTS = [((3, 4), "int32"), ((2, 2), "uint8"), ((), "float32"), ((0, 2), "float64"), ((3, 2), "complex128")]
DOMAINS = {
    special.erfinv_p: Domain((UNIT,), kinds="f"),
    special.ndtri_p: Domain((SHARE,), kinds="f"),
    incomplete.gamma_density_p: Domain((POSITIVE, POSITIVE), kinds="f"),
    incomplete.gamma_quantile_slope_p: Domain(
        cases=cases_of((Held, POSITIVE), (Numbers, POSITIVE), order=1), kinds="f"
    ),
    incomplete.gammainc_p: Domain((POSITIVE, POSITIVE), kinds="f"),
    incomplete.gammaincc_p: Domain((POSITIVE, POSITIVE), kinds="f"),
    incomplete.betainc_p: Domain(
        cases=cases_of((Held, POSITIVE), (Held, POSITIVE), (Numbers, SHARE)), kinds="f"
    ),
    special.zeta_p: Domain(cases=cases_of((Held, ABOVE_ONE), (Numbers, POSITIVE)), kinds="f"),
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

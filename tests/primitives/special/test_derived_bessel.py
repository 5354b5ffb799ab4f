"""The domain entries of the Bessel functions; their tests follow from the records."""

import pytest

import functrans as ft
import functrans.scipy.special as sps
from functrans.primitives.special.functions import bessel_i_p, far_slope_p
from functrans.testing import Domain, Interval, check_primitive

DOMAINS = {
    bessel_i_p: Domain(
        (Interval(-3.0, 5.0),),
        kinds="f",
        params=tuple({"n": n, "scaled": scaled} for n in (0, 1, 3) for scaled in (False, True)),
        # Half of the least number may be rounded either way; `test_own_special` has the ends.
        special=False,
    ),
    far_slope_p: Domain(
        (Interval(30.0, 60.0),), kinds="f", params=({"n": 0, "m": 1}, {"n": 1, "m": 2}), special=False
    ),
}


@pytest.mark.parametrize("prim", DOMAINS, ids=lambda prim: prim.name)
def test_primitive(prim):
    check_primitive(prim, DOMAINS[prim])


def test_derivatives_at_zero():
    """Where the quotient ``I1(x) / x`` of other formulas has no value; series by hand (DLMF 10.25.2)."""
    x = 1e-10
    assert ft.grad(sps.i0)(x) == pytest.approx(0.5 * x, rel=1e-14)
    third = ft.grad(ft.grad(ft.grad(sps.i1)))
    assert third(0.0) == ft.jit(third)(0.0) == 0.375

"""The domain entries of special functions with kernels or derivatives of their own."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from special_domains import POSITIVE, Held, cases_of

from functrans.primitives.special import (
    bessel,
    error_functions,
    exponential_integrals,
    gammas,
    hypergeometric,
)
from functrans.testing import Domain, Interval, Numbers, check_primitive

REAL = Interval(-3.0, 3.0)
FAR = Interval(50.0, 90.0)
#: Negative numbers without the poles of the gamma function.
LEFT = Interval(-1.9, -1.1)
QUICK = {
    error_functions.erfcx_p: Domain((REAL,), params=({"m": 0}, {"m": 2}), kinds="f"),
    error_functions.dawsn_p: Domain((Interval(-9.0, 9.0),), params=({"m": 0}, {"m": 1}), kinds="f"),
    exponential_integrals.quotient_p: Domain(
        (Interval(-0.9, 3.0),), params=({"of": "log1p", "m": 1}, {"of": "sin", "m": 2}), kinds="f"
    ),
    exponential_integrals.expn_p: Domain(
        cases=cases_of((Held, POSITIVE), (Numbers, POSITIVE), below=2)[:2],
        kinds="f",
    ),
    gammas.gammasgn_p: Domain((LEFT,), kinds="f", smooth=False),
    gammas.rgamma_p: Domain((Interval(-2.8, 2.8),), kinds="f"),
    bessel.scaled_far_slope_p: Domain(
        cases=cases_of((Held, POSITIVE), (Numbers, FAR), kind="k", m=1)[:2],
        kinds="f",
    ),
}
SLOW = {
    **{
        getattr(error_functions, f"{n}_p"): Domain((REAL,), kinds="f")
        for n in ("erfi", "log_ndtr", "fresnel_s")
    },
    error_functions.owens_t_p: Domain((REAL, REAL), kinds="f"),
    error_functions.ndtri_exp_p: Domain((Interval(-3.0, -0.1),), kinds="f"),
    error_functions.erfcinv_p: Domain((Interval(0.1, 1.9),), kinds="f"),
    gammas.gamma_p: Domain((POSITIVE,), kinds="f"),
    gammas.loggamma_p: Domain((POSITIVE,), kinds="f"),
    gammas.beta_p: Domain((POSITIVE, POSITIVE), kinds="f"),
    gammas.poch_p: Domain((POSITIVE, POSITIVE), kinds="f"),
    gammas.binom_p: Domain((Interval(3.1, 6.0), POSITIVE), kinds="f"),
    **{
        getattr(exponential_integrals, f"{n}_p"): Domain((POSITIVE,), kinds="f")
        for n in ("exp1", "expi", "exprel", "spence", "wrightomega")
    },
    **{
        getattr(exponential_integrals, f"{n}_integral_p"): Domain((POSITIVE,), kinds="f")
        for n in ("sine", "cosine", "sinh")
    },
    **{
        getattr(exponential_integrals, f"{n}_p"): Domain((POSITIVE, POSITIVE), kinds="f")
        for n in ("boxcox", "boxcox1p", "kl_div", "rel_entr")
    },
    **{
        getattr(bessel, f"{n}_p"): Domain((POSITIVE,), kinds="f")
        for n in ("j0", "j1", "y0", "y1", "k0", "k1e")
    },
    **{
        getattr(bessel, f"{n}_p"): Domain(cases=cases_of((Held, POSITIVE), (Numbers, POSITIVE)), kinds="f")
        for n in ("jv", "yv", "iv", "kv", "ive", "kve")
    },
    bessel.jv_complex_p: Domain(cases=cases_of((Held, POSITIVE), (Numbers, POSITIVE))[:2], kinds="c"),
    # Not hyp1f1 and its like: for huge arguments SciPy computes for hours.
    hypergeometric.ellipk_p: Domain((Interval(-0.9, 0.8),), kinds="f"),
    **{
        getattr(error_functions, f"{n}_complex_p"): Domain((POSITIVE,), kinds="c")
        for n in ("erf", "erfc", "erfcx", "erfi", "dawsn")
    },
    error_functions.wofz_p: Domain((POSITIVE,), kinds="c"),
    exponential_integrals.exp1_complex_p: Domain((POSITIVE,), kinds="c"),
    exponential_integrals.wrightomega_complex_p: Domain((POSITIVE,), kinds="c"),
}


DOMAINS = {**QUICK, **SLOW}


@pytest.mark.parametrize("prim", QUICK, ids=str)
def test_primitive(prim):
    check_primitive(prim, QUICK[prim])


@pytest.mark.slow
@pytest.mark.parametrize("prim", SLOW, ids=str)
def test_primitive_of_scipy(prim):
    check_primitive(prim, SLOW[prim])

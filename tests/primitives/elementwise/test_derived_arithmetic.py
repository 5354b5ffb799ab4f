"""The domain entries of the elementwise primitives; their tests follow from the records."""

import numpy as np
import pytest
from versions import has

from functrans.primitives.elementwise import (
    arithmetic as elementwise,
)
from functrans.primitives.elementwise import bits, complexes, exp_log, rounding, trig
from functrans.primitives.elementwise import trig as sigmoid
from functrans.primitives.special import functions as special
from functrans.primitives.structure import linear
from functrans.testing import Bools, Case, Domain, Interval, Numbers, check_primitive

ANY = Interval()
POSITIVE = Interval(0.1, 3.0, integers=(0, 6))
UNIT = Interval(-0.9, 0.9)
SHARE = Interval(0.05, 0.95)
WIDE = Interval(-1.8, 2.2, avoid=(-1.0, 0.0, 1.0, 2.0))
EXPONENT = Interval(-2.0, 2.0, integers=(0, 5))
TARGETS = ("bool", "int8", "int64", "uint16", "float32", "float64", "complex64", "complex128")


def _unary(interval=ANY, kinds="fc", **options):
    return Domain((interval,), kinds=kinds, **options)


def _binary(first=ANY, second=ANY, kinds="biufc", **options):
    return Domain((first, second), kinds=kinds, **options)


def _select_cases():
    shapes = [
        ((3, 4),) * 3,
        ((), (), ()),
        ((3, 1), (4,), (3, 4)),
        ((), (3,), ()),
        ((2,), (0, 2), (1,)),
        ((3,), (), ()),
    ]
    return tuple(Case((Bools(p), Numbers(x), Numbers(y))) for p, x, y in shapes)


ARITHMETIC = {
    linear.add_p: _binary(linear=((0,), (1,), (0, 1))),
    elementwise.sub_p: _binary(kinds="iufc", linear=((0,), (1,), (0, 1))),
    elementwise.neg_p: _unary(kinds="iufc", linear=((0,),)),
    elementwise.mul_p: _binary(linear=((0,), (1,))),
    elementwise.div_p: _binary(kinds="fc", linear=((0,),)),
    elementwise.max_p: _binary(),
    elementwise.min_p: _binary(),
    elementwise.first_max_p: _binary(kinds="biuf"),
    elementwise.first_min_p: _binary(kinds="biuf"),
    elementwise.select_p: Domain(cases=_select_cases(), kinds="biufc", linear=((1,), (2,), (1, 2))),
    elementwise.clamp_p: Domain((Interval(-1.0, -0.5), WIDE, Interval(0.5, 1.5)), kinds="iuf"),
    elementwise.clip_p: Domain((Interval(-1.0, -0.5), WIDE, Interval(0.5, 1.5)), kinds="iuf"),
    elementwise.share_p: _binary(kinds="fc"),
    elementwise.stop_gradient_p: _unary(kinds="biufc", smooth=False),
    elementwise.convert_element_type_p: Domain(
        (Interval(-1.8, 2.2, avoid=(-1.0, 0.0, 1.0, 2.0)),),
        kinds="biufc",
        params=tuple({"dtype": np.dtype(name)} for name in TARGETS),
        linear=((0,),),
    ),
}

COMPARISONS = {
    p: _binary()
    for p in (
        elementwise.eq_p,
        elementwise.ne_p,
        elementwise.lt_p,
        elementwise.le_p,
        elementwise.gt_p,
        elementwise.ge_p,
    )
}

BITS = {
    bits.and_p: _binary(kinds="biu"),
    bits.or_p: _binary(kinds="biu"),
    bits.xor_p: _binary(kinds="biu"),
    bits.not_p: _unary(kinds="biu"),
    bits.shift_left_p: _binary(kinds="iu"),
    bits.shift_right_p: _binary(kinds="iu"),
    bits.gcd_p: _binary(kinds="iu"),
    bits.lcm_p: _binary(kinds="iu"),
}

ROUNDING = {
    rounding.floor_p: _unary(WIDE, "biuf"),
    rounding.ceil_p: _unary(WIDE, "biuf"),
    rounding.trunc_p: _unary(WIDE, "biuf"),
    rounding.rint_p: _unary(Interval(-1.4, 1.4, avoid=(-0.5, 0.5), complex_range=(-0.4, 0.4)), "fc"),
    rounding.floor_divide_p: _binary(Interval(0.3, 0.9), Interval(1.1, 1.9), kinds="iuf"),
    rounding.remainder_p: _binary(Interval(2.3, 2.9), Interval(1.1, 1.9), kinds="iuf"),
    rounding.fmod_p: _binary(Interval(-2.9, -2.3), Interval(1.5, 2.2), kinds="iuf"),
    rounding.sign_p: _unary(kinds="iuf"),
    rounding.signbit_p: _unary(kinds="f"),
    rounding.copysign_p: _binary(kinds="f"),
    rounding.nextafter_p: _binary(kinds="f", order=1),
    rounding.is_finite_p: _unary(),
    rounding.is_inf_p: _unary(),
    rounding.is_nan_p: _unary(),
}

COMPLEX = {
    complexes.real_p: _unary(kinds="c", linear=((0,),)),
    complexes.imag_p: _unary(kinds="c", linear=((0,),)),
    complexes.conj_p: _unary(kinds="c", linear=((0,),)),
    complexes.complex_p: _binary(kinds="f", linear=((0,), (1,), (0, 1))),
    complexes.abs_p: _unary(kinds="biufc"),
}

EXPONENTIALS = {
    exp_log.exp_p: _unary(),
    exp_log.exp2_p: _unary(),
    exp_log.expm1_p: _unary(),
    exp_log.log_p: _unary(POSITIVE),
    exp_log.log2_p: _unary(POSITIVE),
    exp_log.log10_p: _unary(POSITIVE),
    exp_log.log1p_p: _unary(Interval(-0.8, 3.0)),
    # Near 0 the result is a difference of larger numbers.
    sigmoid.logaddexp_p: _binary(kinds="f", atol=4e-16),
    sigmoid.logaddexp2_p: _binary(kinds="f", atol=4e-16),
    sigmoid.softplus_p: _unary(kinds="f"),
    exp_log.sqrt_p: _unary(POSITIVE),
    exp_log.cbrt_p: _unary(kinds="f"),
    # NumPy multiplies where the exponent is a complex integer, and C's cpow does not: infinite bases and signs of
    # zeros differ.
    exp_log.pow_p: _binary(
        POSITIVE,
        EXPONENT,
        kinds="iufc",
        complex_special="finite",
        signed_zeros="f",
        without=("int16", "int32", "uint16", "uint32"),
    ),
    exp_log.weighted_p: _binary(kinds="fc", linear=((0,), (1,)), complex_special="finite"),
    exp_log.pow_log_p: _binary(
        POSITIVE, Interval(-2.0, 2.0), kinds="f", params=({"m": 1}, {"m": 2}), rtol=1e-12, atol=1e-13
    ),
    # Its second operand is a power of the first, so its derivatives are those of a power (test_select.py).
    exp_log.pow_less_p: _binary(POSITIVE, POSITIVE, kinds="f", params=({"y": 0.5},), smooth=False),
    exp_log.integer_pow_p: _unary(kinds="fc", params=tuple({"y": n} for n in (-3, -2, -1, 0, 1, 2, 3, 7))),
}

# C leaves signs of infinities beside NaN open. NumPy has the functions of C since 2.3, as kernels do.
COMPLEX_SPECIAL = "all" if has("numpy>=2.3") else "finite"
TRIGONOMETRIC = {
    trig.sin_p: _unary(),
    trig.cos_p: _unary(),
    trig.tan_p: _unary(Interval(-1.4, 1.4)),
    trig.arcsin_p: _unary(UNIT, complex_special=COMPLEX_SPECIAL),
    trig.arccos_p: _unary(UNIT),
    trig.arctan_p: _unary(),
    trig.sinh_p: _unary(),
    trig.cosh_p: _unary(),
    sigmoid.tanh_p: _unary(),
    trig.arcsinh_p: _unary(complex_special=COMPLEX_SPECIAL),
    trig.arccosh_p: _unary(Interval(1.1, 3.0), complex_special=COMPLEX_SPECIAL),
    trig.arctanh_p: _unary(UNIT),
    trig.arctan2_p: _binary(kinds="f"),
    trig.hypot_p: _binary(kinds="f"),
    trig.one_minus_square_p: _unary(),
    trig.reciprocal_part_p: _binary(kinds="f"),
    trig.direction_p: _binary(kinds="f"),
    trig.inverse_hypot_p: _binary(kinds="f"),
}

SPECIAL = {
    special.erf_p: _unary(kinds="f"),
    # The exponent of exp(-x**2) carries the rounding of the square.
    special.erfc_p: _unary(kinds="f", rtol=1e-12),
    special.lgamma_p: _unary(Interval(-1.8, 4.0, avoid=(-1.0, 0.0, 1.0, 2.0)), "f"),
    special.digamma_p: _unary(Interval(-1.8, 4.0, avoid=(-1.0, 0.0, 1.46)), "f"),
    sigmoid.logistic_p: _unary(kinds="f"),
    sigmoid.logistic_slope_p: _unary(kinds="f"),
    # Before SciPy 1.15 it loses digits of float32 near one half.
    sigmoid.logit_p: _unary(SHARE, "f", without=() if has("scipy>=1.15") else ("float32",)),
    special.xlogy_p: _binary(ANY, POSITIVE, kinds="f"),
    special.xlog1py_p: _binary(ANY, Interval(-0.8, 2.0), kinds="f"),
    special.xdivy_p: _binary(ANY, POSITIVE, kinds="f", linear=((0,),)),
    special.entr_p: _unary(POSITIVE, "f"),
    special.bell_p: _unary(kinds="f", params=({"m": 0}, {"m": 1}, {"m": 3}), rtol=1e-12, atol=1e-13),
    special.betaln_p: _binary(POSITIVE, POSITIVE, kinds="f", rtol=1e-12),
    special.polygamma_gap_p: _binary(
        POSITIVE, POSITIVE, kinds="f", params=({"m": 0}, {"m": 1}, {"m": 2}), special=False, rtol=1e-12
    ),
    special.polygamma_p: _unary(Interval(0.2, 4.0), "f", params=({"m": 1}, {"m": 2}, {"m": 3})),
}

DOMAINS = {
    **ARITHMETIC,
    **COMPARISONS,
    **BITS,
    **ROUNDING,
    **COMPLEX,
    **EXPONENTIALS,
    **TRIGONOMETRIC,
    **SPECIAL,
}


@pytest.mark.wide(2)
@pytest.mark.parametrize("prim", DOMAINS, ids=str)
def test_rules(prim, cases_of):
    check_primitive(prim, cases_of(DOMAINS[prim]))

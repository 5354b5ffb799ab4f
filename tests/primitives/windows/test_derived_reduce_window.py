"""The domain entries of window reductions; their tests follow from the records."""

import pytest

from functrans.primitives.windows import reduce_window as windows
from functrans.testing import Case, Distinct, Domain, Interval, Numbers, check_primitive


def _params(size, strides=None, padding=None, base=None, dilation=None):
    ones = (1,) * len(size)
    return {
        "window_dimensions": size,
        "window_strides": strides or ones,
        "padding": padding or ((0, 0),) * len(size),
        "base_dilation": base or ones,
        "window_dilation": dilation or ones,
    }


PLACES = (
    ((7,), _params((3,))),
    ((7,), _params((2,), (2,))),
    ((3, 5), _params((2, 3), (1, 2), ((1, 0), (1, 2)))),
    ((2, 4), _params((1, 2), (1, 1), ((0, 0), (-1, 1)))),
    ((5,), _params((2,), (2,), ((1, 1),), (2,), (3,))),
    ((), _params(())),
    ((2,), _params((4,))),
    ((0, 3), _params((1, 2))),
    ((1,), _params((1,))),
    ((1,), _params((3,), None, ((1, 1),))),
    ((40,), _params((35,), None, ((2, 3),))),  # too large to be written out
)


def _cases(operand, **more):
    return tuple(Case((operand(shape),), {**params, **more}) for shape, params in PLACES)


def _near_one(shape):
    return Numbers(shape, Interval(0.7, 1.3, integers=(-2, 2), complex_range=(0.5, 0.9)))


DOMAINS = {
    windows.reduce_window_sum_p: Domain(
        cases=_cases(Numbers), kinds="iufc", linear=((0,),), rtol=1e-12, atol=1e-13, signed_zeros=""
    ),
    windows.reduce_window_prod_p: Domain(
        cases=_cases(_near_one)[:-1], kinds="iufc", rtol=1e-12, signed_zeros="", complex_special="finite"
    ),
    windows.reduce_window_max_p: Domain(cases=_cases(Distinct), kinds="biuf", signed_zeros=""),
    windows.reduce_window_min_p: Domain(cases=_cases(Distinct), kinds="biuf", signed_zeros=""),
    windows.window_position_p: Domain(
        cases=_cases(Distinct, largest=True) + _cases(Distinct, largest=False), kinds="biuf"
    ),
}


@pytest.mark.parametrize("prim", DOMAINS, ids=str)
def test_rules(prim, cases_of):
    check_primitive(prim, cases_of(DOMAINS[prim]))

"""The domain entries of the running folds; their tests follow from the records."""

import pytest

from functrans.primitives.reductions import cumulative
from functrans.testing import Case, Distinct, Domain, Interval, Numbers, check_primitive

PLACES = (
    ((5,), 0, False),
    ((5,), 0, True),
    ((3, 4), 0, False),
    ((3, 4), 0, True),
    ((3, 4), 1, True),
    ((2, 3, 1), 1, False),
    ((2, 3, 2), 1, True),
    ((1,), 0, False),
    ((0,), 0, False),
    ((2, 0), 0, True),
    ((0, 2), 0, False),
)


def _cases(*operands):
    return tuple(
        Case(tuple(kind(shape) for kind in operands), {"axis": axis, "reverse": reverse})
        for shape, axis, reverse in PLACES
    )


def _small(shape):
    return Numbers(shape, Interval(integers=(-2, 2)))


DOMAINS = {
    cumulative.recurrence_p: Domain(
        cases=_cases(_small, Numbers),
        kinds="iufc",
        linear=((1,),),
        rtol=1e-13,
        atol=1e-13,
        complex_special="finite",
    ),
    cumulative.cumsum_p: Domain(cases=_cases(Numbers), kinds="iufc", linear=((0,),), rtol=1e-13),
    cumulative.cumprod_p: Domain(
        cases=_cases(_small), kinds="iufc", rtol=1e-13, complex_special="finite", signed_zeros="f"
    ),
    cumulative.cummax_p: Domain(cases=_cases(Distinct), kinds="biufc"),
    cumulative.cummin_p: Domain(cases=_cases(Distinct), kinds="biufc"),
    cumulative.cumlogsumexp_p: Domain(cases=_cases(Numbers), kinds="f", rtol=1e-13),
}


@pytest.mark.parametrize("prim", DOMAINS, ids=str)
def test_rules(prim, cases_of):
    check_primitive(prim, cases_of(DOMAINS[prim]))

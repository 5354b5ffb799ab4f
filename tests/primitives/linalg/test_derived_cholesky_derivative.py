"""The domain entry of the derivative of Cholesky factors; its tests follow from the record."""

import pytest

from functrans.primitives.linalg import cholesky as cholesky_slope
from functrans.testing import Case, Domain, Numbers, Triangular, check_primitive

SHAPES = ((3, 3), (2, 4, 4), (1, 1), (33, 33), (0, 0), (0, 2, 2))

DOMAINS = {
    cholesky_slope.cholesky_slope_p: Domain(
        cases=tuple(
            Case((Triangular(s), Numbers(s)), {"back": back}, smooth=s != (33, 33))
            for s in SHAPES
            for back in (False, True)
        ),
        kinds="f",
        linear=((1,),),
        rtol=1e-12,
        atol=1e-12,
        special=False,
    )
}


@pytest.mark.parametrize("prim", DOMAINS, ids=str)
def test_rules(prim, cases_of):
    check_primitive(prim, cases_of(DOMAINS[prim]))

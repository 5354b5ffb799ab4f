"""The domain entries of the Bessel functions; their tests follow from the records."""

import pytest

from functrans.primitives.bessel import bessel_i_p
from functrans.testing import Domain, Interval, check_primitive

DOMAINS = {
    bessel_i_p: Domain((Interval(-3.0, 5.0),), kinds="f", params=({"n": 0}, {"n": 1}, {"n": 3})),
}


@pytest.mark.parametrize("prim", DOMAINS, ids=lambda prim: prim.name)
def test_primitive(prim):
    check_primitive(prim, DOMAINS[prim])

"""The domain entries of the primitives that leave values as they are; their tests follow from the records."""

from dataclasses import replace

import pytest

from functrans.primitives.elementwise import identities
from functrans.testing import Case, Domain, Numbers, check_primitive


def _entry(**params):
    cases = tuple(Case((Numbers(shape),), params) for shape in ((2, 3), (4,), (), (0, 3)))
    return Domain(cases=cases, kinds="biufc", linear=((0,),))


DOMAINS = {
    identities.barrier_p: _entry(),
    identities.check_nans_p: replace(_entry(what="the value"), special=False),
    identities.name_p: _entry(name="x"),
}


@pytest.mark.parametrize("prim", DOMAINS, ids=lambda prim: prim.name)
def test_primitive(prim):
    check_primitive(prim, DOMAINS[prim])

"""The domain entries of QR factors; their tests follow from the records."""

from dataclasses import dataclass

import numpy as np
import pytest

from functrans.primitives.linalg import qr
from functrans.testing import Case, Domain, Interval, check_primitive

SHAPES = ((3, 3), (4, 2), (2, 4), (2, 3, 3), (2, 3, 1), (1, 1), (1, 3), (0, 0), (0, 2, 2), (3, 0), (0, 2))


@dataclass(frozen=True)
class Independent:
    """Matrices whose columns (as far as there are rows) are independent."""

    shape: tuple[int, ...]
    fixed = False

    def draw(self, random, dtype):
        m, n = self.shape[-2:]
        return (0.4 * Interval().draw(random, self.shape, dtype) + np.eye(m, n) * 2).astype(dtype)


def _domain(cases):
    return Domain(cases=tuple(cases), rtol=1e-12, atol=1e-13, special=False)


DOMAINS = {
    qr.qr_p: _domain(Case((Independent(s),), {"full": full}) for s in SHAPES for full in (False, True)),
    qr.qr_triangle_p: _domain(Case((Independent(s),)) for s in SHAPES),
    qr.geqrf_p: _domain(Case((Independent(s),)) for s in SHAPES),
}


@pytest.mark.parametrize("prim", DOMAINS, ids=str)
def test_rules(prim, cases_of):
    check_primitive(prim, cases_of(DOMAINS[prim]))

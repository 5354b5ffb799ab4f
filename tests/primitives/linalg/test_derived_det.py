"""The domain entries of determinants and cofactors; their tests follow from the records."""

from dataclasses import dataclass

import numpy as np
import pytest

from functrans.primitives.linalg import cofactors, det
from functrans.primitives.linalg import qr as column_order
from functrans.primitives.linalg.matrices import LARGEST
from functrans.testing import Case, Domain, Interval, check_primitive

SHAPES = ((2, 2), (5, 5), (3, 3), (2, 4, 4), (9, 9), (1, 1), (0, 0), (0, 2, 2))


@dataclass(frozen=True)
class Regular:
    """Well conditioned matrices for which pivoting has to exchange rows, none by a narrow margin."""

    shape: tuple[int, ...]
    fixed = False

    def draw(self, random, dtype):
        m, n = self.shape[-2:]
        x = 0.1 * Interval().draw(random, self.shape, dtype)
        return (x + np.eye(m, n)[::-1] * np.linspace(1, 2, m)[:, None]).astype(dtype)


@dataclass(frozen=True)
class Factors:
    """Small factors, not in need of pivoting."""

    shape: tuple[int, ...]
    fixed = True

    def draw(self, random, dtype):
        return (0.3 * Interval().draw(random, self.shape, dtype) + np.eye(self.shape[-1])).astype(dtype)


@dataclass(frozen=True)
class Unmoved:
    """No exchanges."""

    shape: tuple[int, ...]
    fixed = True

    def draw(self, random, dtype):
        return np.broadcast_to(np.arange(self.shape[-1], dtype=np.int32), self.shape).copy()


DOMAINS = {
    det.det_p: Domain(
        cases=tuple(Case((Regular(s),)) for s in SHAPES), rtol=1e-12, atol=1e-13, special=False
    ),
    det.slogdet_p: Domain(
        cases=tuple(Case((Regular(s),)) for s in SHAPES), rtol=1e-12, atol=1e-13, special=False
    ),
    cofactors.cofactors_p: Domain(
        cases=(
            *[Case((Factors(s), Factors(s), Unmoved(s[:-1]), Unmoved(s[:-1])), smooth=False) for s in SHAPES],
            *[Case((Regular(s),)) for s in SHAPES if 0 < s[-1] <= LARGEST],
        ),
        rtol=1e-12,
        atol=1e-13,
        special=False,
    ),
    column_order.column_order_p: Domain(
        cases=tuple(Case((Regular(s),), smooth=False) for s in (*SHAPES, (4, 2), (2, 4), (0, 2), (2, 0))),
        special=False,
    ),
}


@pytest.mark.parametrize("prim", DOMAINS, ids=str)
def test_rules(prim, cases_of):
    check_primitive(prim, cases_of(DOMAINS[prim]))

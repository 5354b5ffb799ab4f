"""The domain entries of sorting and searching; their tests follow from the records."""

from dataclasses import dataclass

import numpy as np
import pytest

from functrans.primitives.sorting import sort, sort_kernel
from functrans.primitives.sorting import sort as search
from functrans.testing import Case, Distinct, Domain, Indices, Interval, Numbers, check_primitive

NUMBERS = "biufc"
N, D = Numbers, Distinct
LONG = sort_kernel.RADIX + 5
MIDDLE = 5 * sort_kernel.RUN + 3


def _sort(*operands, dimension, num_keys=1, **options):
    return Case(tuple(operands), {"dimension": dimension, "num_keys": num_keys}, **options)


@dataclass(frozen=True)
class Sorted:
    """Numbers in order along the last axis."""

    shape: tuple[int, ...]
    fixed = False

    def draw(self, random, dtype):
        """Random numbers, sorted."""
        return np.sort(Interval().draw(random, self.shape, dtype), axis=-1)


def _search(a, v):
    return tuple(Case((Sorted(a), N(v)), {"side": side}) for side in ("left", "right"))


DOMAINS = {
    sort.sort_p: Domain(
        cases=(
            _sort(D((5,)), dimension=0),
            _sort(D((3, 4)), dimension=0),
            _sort(D((2, 4, 3)), D((2, 4, 3)), dimension=1),
            _sort(N((4, 6)), D((4, 6)), Indices((4, 6), 0, 9), dimension=1, num_keys=2, smooth=False),
            _sort(N((9,)), N((9,)), N((9,)), dimension=0, num_keys=3, smooth=False),
            _sort(N((MIDDLE,)), Indices((MIDDLE,), 0, 9), dimension=0, smooth=False),
            _sort(N((LONG,)), dimension=0, smooth=False),
            _sort(N((2, LONG)), Indices((2, LONG), 0, 9, np.dtype(np.int32)), dimension=1, smooth=False),
            _sort(D((1,)), dimension=0),
            _sort(N((0,)), N((0,)), dimension=0, num_keys=2),
            _sort(N((2, 0)), dimension=0),
        ),
        kinds=NUMBERS,
    ),
    sort.top_k_p: Domain(
        cases=(
            Case((D((5,)),), {"k": 2}),
            Case((D((2, 3)),), {"k": 3}),
            Case((D((1, 4)),), {"k": 0}),
            Case((N((2, 30)),), {"k": 4}, smooth=False),
            Case((D((3, 0)),), {"k": 0}),
        ),
        kinds=NUMBERS,
    ),
    search.searchsorted_p: Domain(
        cases=(
            *_search((7,), (4,)),
            *_search((7,), ()),
            *_search((3, 5), (3, 2)),
            *_search((2, 3), (2,)),
            *_search((0,), (3,)),
            *_search((1,), (0,)),
        ),
        kinds=NUMBERS,
        special=False,
    ),
}


@pytest.mark.parametrize("prim", DOMAINS, ids=str)
def test_rules(prim, cases_of):
    check_primitive(prim, cases_of(DOMAINS[prim]))

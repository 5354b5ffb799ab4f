"""The domain entries of random bits and of what makes numbers of them."""

from dataclasses import dataclass

import numpy as np
import pytest

from functrans.primitives import random
from functrans.primitives.special import inverse_erf
from functrans.testing import Case, Domain, Interval, check_primitive


@dataclass(frozen=True)
class Words:
    """Any 64-bit numbers."""

    shape: tuple[int, ...]
    fixed = True

    def draw(self, random, dtype):
        """An array."""
        return random.integers(0, 2**64, self.shape, np.uint64)


BROADCAST = [((), ()), ((3,), ()), ((), (2, 3)), ((2, 1), (1, 3)), ((0,), ())]
SHAPES = [(), (0,), (5,), (2, 3), (2, 0, 3), (2, 1, 4)]
DOMAINS = {
    random.threefry_p: Domain(cases=tuple(Case(tuple(map(Words, pair))) for pair in BROADCAST)),
    random.counter_p: Domain(cases=tuple(Case((), {"shape": s}) for s in SHAPES)),
    random.mills_ratio_p: Domain((Interval(0.1, 40.0, avoid=()),), kinds="f", rtol=1e-13),
    inverse_erf.quick_erfinv_p: Domain((Interval(-0.9, 0.9),), kinds="f"),
}


@pytest.mark.parametrize("prim", DOMAINS, ids=str)
def test_primitive(prim):
    check_primitive(prim, DOMAINS[prim])


# The vectors that the authors of Threefry publish with Random123 (kat_vectors, threefry2x32 with 20 rounds).
KNOWN = [
    (0, 0, 0x6B20015999BA4EFE),
    (2**64 - 1, 2**64 - 1, 0x1CB996FCBB002BE7),
    (0x13198A2E03707344, 0x243F6A8885A308D3, 0xC4923A9C483DF7A0),
]


@pytest.mark.parametrize(("key", "counter", "bits"), KNOWN)
def test_threefry_has_the_published_values(key, counter, bits):
    assert random.threefry_p.impl(np.uint64(key), np.uint64(counter)) == bits

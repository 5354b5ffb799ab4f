"""The domain entries of LU factors and of what is solved by them; their tests follow from the records."""

from dataclasses import dataclass

import numpy as np
import pytest

from functrans.primitives.linalg import lu, solve
from functrans.testing import Case, Domain, Indices, Interval, Numbers, check_primitive


@dataclass(frozen=True)
class Regular:
    """Well conditioned matrices for which pivoting has to exchange rows, none by a narrow margin."""

    shape: tuple[int, ...]
    fixed = False

    def draw(self, random, dtype):
        m, n = self.shape[-2:]
        x = 0.1 * Interval().draw(random, self.shape, dtype)
        return (x + 3 * np.eye(m, n)[::-1] * np.linspace(1, 2, m)[:, None]).astype(dtype)


@dataclass(frozen=True)
class Factors:
    """The factors of matrices that are close to the identity, packed."""

    shape: tuple[int, ...]
    fixed = True

    def draw(self, random, dtype):
        x = 0.3 * Interval().draw(random, self.shape, dtype)
        return (x + 2 * np.eye(self.shape[-1])).astype(dtype)


@dataclass(frozen=True)
class Permutations:
    """Orders of rows."""

    shape: tuple[int, ...]
    fixed = True

    def draw(self, random, dtype):
        order = np.broadcast_to(np.arange(self.shape[-1], dtype=np.int32), self.shape)
        return random.permuted(order, axis=-1)


SYSTEMS = (
    ((3, 3), (3, 2), "raise"),
    ((9, 9), (9, 1), "raise"),
    ((10, 10), (10, 2), "nan"),
    ((2, 3, 3), (2, 3, 1), "nan"),
    ((1, 1), (1, 1), "raise"),
    ((0, 0), (0, 2), "raise"),
    ((2, 2), (2, 0), "nan"),
)


def _solve(a, b, on_error):
    return Case((Regular(a), Numbers(b)), {"on_error": on_error, "name": "solve"})


def _factored(a, b, on_error, transpose):
    operands = (Factors(a), Factors(a), Permutations(a[:-1]), Numbers(b))
    return Case(operands, {"on_error": on_error, "name": "solve", "transpose": transpose})


DOMAINS = {
    lu.lu_p: Domain(
        cases=tuple(
            Case((Regular(s),))
            for s in (
                (3, 3),
                (9, 9),
                (2, 2, 3, 3),
                (4, 2),
                (3, 5),
                (2, 3, 1),
                (1, 1),
                (0, 0),
                (0, 2, 2),
                (2, 0),
            )
        ),
        rtol=1e-12,
        atol=1e-13,
        special=False,
    ),
    lu.permutation_p: Domain(
        cases=tuple(
            Case((Indices(s, 0, 4, np.dtype(np.int32)),), {"size": 4})
            for s in ((4,), (3,), (2, 4), (0,), (0, 2))
        ),
        smooth=False,
        special=False,
    ),
    solve.solve_p: Domain(
        cases=tuple(_solve(*s) for s in SYSTEMS), linear=((1,),), rtol=1e-12, atol=1e-13, special=False
    ),
    solve.lu_solve_p: Domain(
        cases=tuple(_factored(*s, transpose) for s in SYSTEMS for transpose in (False, True)),
        linear=((3,),),
        rtol=1e-12,
        atol=1e-13,
        special=False,
    ),
}


@pytest.mark.parametrize("prim", DOMAINS, ids=str)
def test_rules(prim, cases_of):
    check_primitive(prim, cases_of(DOMAINS[prim]))

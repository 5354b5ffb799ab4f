"""The domain entries of the decompositions by eigenvalues and singular values; their tests follow from the records."""

from dataclasses import dataclass

import numpy as np
import pytest
from versions import has

from functrans.primitives.linalg import eig, eigh, least_squares, svd, sylvester, tridiagonal
from functrans.testing import Case, Domain, Numbers, PositiveDefinite, check_primitive

N = Numbers


@dataclass(frozen=True)
class Graded:
    """Matrices whose singular values (and eigenvalues, where symmetric) are well apart."""

    shape: tuple[int, ...]
    fixed = False

    def draw(self, random, dtype):
        m, n = self.shape[-2:]
        a = random.uniform(-1.0, 1.0, self.shape)
        if dtype.kind == "c":
            a = a + 1j * random.uniform(-1.0, 1.0, self.shape)
        rank = min(m, n)
        if rank:
            u, _, vh = np.linalg.svd(a, full_matrices=False)
            a = (u * np.geomspace(1.0, 3.0, rank)) @ vh
        return a.astype(dtype)


@dataclass(frozen=True)
class Cutoff:
    """A relative cutoff, no variable."""

    shape: tuple[int, ...]
    fixed = True

    def draw(self, random, dtype):
        return np.full(self.shape, 1e-6)


@dataclass(frozen=True)
class Diagonal:
    """Numbers larger than the sum of two others."""

    shape: tuple[int, ...]
    fixed = False

    def draw(self, random, dtype):
        return (random.uniform(2.5, 4.0, self.shape) * random.choice([-1, 1], self.shape)).astype(dtype)


# Eigenvectors and singular vectors of complex matrices have free phases: derivatives of functions without are in
# tests/numpy/linalg/test_spectra.py.
REAL = {"kinds": "f", "rtol": 1e-11, "atol": 1e-12, "special": False}
SHAPES = ((3, 3), (2, 4, 4), (1, 1), (0, 0), (2, 0, 0))
RECTANGLES = ((3, 3), (4, 2), (2, 2, 3), (1, 3), (3, 1), (0, 3), (2, 3, 0))


def _hermitian_cases(shapes, vectors):
    return tuple(
        Case((N(s),), {"lower": lower, "vectors": vectors, "on_error": error})
        for s in shapes
        for lower, error in ((True, "raise"), (False, "nan"))
    )


SOME_COLUMNS = tuple(
    Case((N(s),), {"lower": True, "vectors": True, "on_error": "raise", "columns": (1, 3)})
    for s in ((3, 3), (2, 4, 4))
)


def _svd_cases(shapes, full, vectors):
    return tuple(
        Case((Graded(s),), {"full_matrices": full, "vectors": vectors, "on_error": "raise"}) for s in shapes
    )


DOMAINS = {
    eigh.eigh_p: Domain(
        cases=_hermitian_cases(SHAPES, True) + _hermitian_cases(((3, 3),), False) + SOME_COLUMNS, **REAL
    ),
    svd.svd_p: Domain(
        cases=_svd_cases(RECTANGLES, False, True)
        + _svd_cases(((3, 3), (0, 2)), True, True)
        + _svd_cases(((4, 2), (2, 3)), False, False),
        **REAL,
    ),
    eig.eig_p: Domain(
        cases=tuple(
            Case((N(s),), {"vectors": vectors, "on_error": "raise"})
            for s in ((3, 3), (2, 4, 4), (1, 1), (0, 0))
            for vectors in (True, False)
        ),
        **{**REAL, "kinds": "fc"},
    ),
    sylvester.sylvester_p: Domain(
        cases=tuple(
            Case((PositiveDefinite((*b, m, m)), PositiveDefinite((*b, n, n)), N((*b, m, n))), {"rtol": 1e-15})
            for b, m, n in (((), 3, 2), ((2,), 2, 3), ((), 1, 1), ((), 0, 2), ((), 2, 0), ((0,), 2, 2))
        ),
        linear=((2,),),
        **{**REAL, "kinds": "fc"},
    ),
    sylvester.sqrtm_p: Domain(
        cases=tuple(Case((PositiveDefinite(s),)) for s in ((3, 3), (2, 2, 2), (1, 1), (0, 0), (0, 2, 2))),
        **{**REAL, "kinds": "fc"},
    ),
    tridiagonal.tridiagonal_solve_p: Domain(
        cases=tuple(
            Case((N((*b, n)), Diagonal((*b, n)), N((*b, n)), N((*b, n, m))))
            for b, n, m in (((), 4, 2), ((2,), 3, 1), ((), 1, 2), ((), 2, 0), ((0,), 3, 2))
        ),
        linear=((3,),),
        **{**REAL, "kinds": "fc"},
    ),
    tridiagonal.eigh_tridiagonal_p: Domain(
        cases=tuple(
            Case((N((*b, n)), N((*b, n - 1))), {"vectors": vectors, "on_error": "raise"})
            for b, n in (((), 3), ((2,), 4), ((), 1), ((0,), 2))
            for vectors in (True, False)
        ),
        # Before SciPy 1.16 by LAPACK's stemr, which flips eigenvectors between points nearby.
        smooth=has("scipy>=1.16"),
        **REAL,
    ),
    svd.polar_p: Domain(
        cases=tuple(Case((Graded(s),), {"on_error": "raise"}) for s in RECTANGLES),
        **{**REAL, "kinds": "fc"},
    ),
    least_squares.pinv_p: Domain(
        cases=tuple(Case((Graded(s), Cutoff(s[:-2])), {"on_error": "raise"}) for s in RECTANGLES),
        **{**REAL, "kinds": "fc"},
    ),
    least_squares.lstsq_p: Domain(
        cases=tuple(
            Case((Graded(s), N((*s[:-1], 2)), Cutoff(s[:-2])), {"on_error": e})
            for s in RECTANGLES
            for e in ("raise", "nan")
        ),
        **{**REAL, "kinds": "fc"},
    ),
}


@pytest.mark.parametrize("prim", DOMAINS, ids=str)
def test_rules(prim, cases_of):
    check_primitive(prim, cases_of(DOMAINS[prim]))


COMPLEX = {
    eigh.eigh_p: Domain(
        cases=_hermitian_cases(SHAPES, True) + _hermitian_cases(SHAPES, False),
        **{**REAL, "kinds": "c"},
        smooth=False,
    ),
    svd.svd_p: Domain(
        cases=tuple(c for full in (True, False) for c in _svd_cases(RECTANGLES, full, True)),
        **{**REAL, "kinds": "c"},
        smooth=False,
    ),
}


@pytest.mark.parametrize("prim", COMPLEX, ids=str)
def test_rules_of_complex_matrices(prim, cases_of):
    check_primitive(prim, cases_of(COMPLEX[prim]))

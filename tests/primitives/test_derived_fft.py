"""The domain entry of the Fourier transforms; their tests follow from the record."""

from dataclasses import dataclass

import numpy as np
import pytest

from functrans.core.aval import aval_of
from functrans.core.dtypes import complex_dtype, real_dtype
from functrans.errors import FunctransError
from functrans.primitives import fft
from functrans.testing import Case, Domain, Interval, Numbers, check_primitive


@dataclass(frozen=True)
class Real(Numbers):
    """Real numbers, whatever dtype is under test."""

    def draw(self, random, dtype):
        return Interval().draw(random, self.shape, real_dtype(dtype))


@dataclass(frozen=True)
class Complex(Numbers):
    """Complex numbers, whatever dtype is under test."""

    def draw(self, random, dtype):
        return Interval().draw(random, self.shape, complex_dtype(dtype))


def _case(operand, kind, axes, lengths, norm="backward"):
    return Case((operand,), {"kind": kind, "axes": axes, "lengths": lengths, "norm": norm})


DOMAINS = {
    fft.fft_p: Domain(
        cases=(
            _case(Numbers((5,)), "fft", (0,), (5,)),
            _case(Numbers((3, 4)), "ifft", (1,), (4,), "ortho"),
            _case(Complex((2, 3, 4)), "fft", (2, 0), (4, 2)),
            _case(Numbers((2, 3)), "ifft", (0, 1), (2, 3)),
            _case(Real((6,)), "rfft", (0,), (6,)),
            _case(Real((5, 2)), "rfft", (0,), (5,)),
            _case(Real((3, 4)), "rfft", (0, 1), (3, 4), "ortho"),
            _case(Real((4, 3)), "rfft", (0, 1), (4, 3), "forward"),
            _case(Complex((4,)), "irfft", (0,), (6,)),
            _case(Complex((3,)), "irfft", (0,), (5,)),
            _case(Complex((3, 4)), "irfft", (1, 0), (4, 5), "forward"),
            _case(Complex((2, 3)), "irfft", (0, 1), (2, 4), "ortho"),
            _case(Numbers((1,)), "fft", (0,), (1,)),
            _case(Real((1,)), "rfft", (0,), (1,)),
            _case(Complex((1,)), "irfft", (0,), (1,)),
            _case(Real((2,)), "rfft", (0,), (2,)),
            _case(Numbers((0, 3)), "fft", (1,), (3,)),
            _case(Real((0, 3)), "rfft", (1,), (3,)),
        ),
        kinds="fc",
        linear=((0,),),
    )
}


@pytest.mark.wide(2)
@pytest.mark.parametrize("prim", DOMAINS, ids=str)
def test_rules(prim):
    check_primitive(prim, DOMAINS[prim])


def _matrix(kind, n):
    """A transform by its definition, from the columns of the identity (real and imaginary)."""
    j, k = np.arange(n), np.arange(n)
    w = np.exp(-2j * np.pi * np.outer(k, j) / n)
    return {"fft": w, "ifft": w.conj() / n, "rfft": w[: n // 2 + 1]}[kind]


@pytest.mark.parametrize("n", [1, 2, 5, 8])
@pytest.mark.parametrize("kind", ["fft", "ifft", "rfft"])
def test_values_by_the_definition(kind, n):
    x = np.random.default_rng(n).normal(size=n)
    found = fft.fft_p.bind(x, kind=kind, axes=(0,), lengths=(n,), norm="backward")
    np.testing.assert_allclose(found, _matrix(kind, n) @ x, atol=1e-13)


@pytest.mark.parametrize(
    ("x", "params", "message"),
    [
        (np.ones(3), {"kind": "irfft", "axes": (0,), "lengths": (4,)}, "complex"),
        (np.ones(3, complex), {"kind": "rfft", "axes": (0,), "lengths": (3,)}, "float"),
        (np.ones(3), {"kind": "fft", "axes": (1,), "lengths": (3,)}, "axis 1 is out of bounds"),
        (np.ones(3), {"kind": "fft", "axes": (0,), "lengths": (4,)}, "extents"),
        (np.ones(0), {"kind": "fft", "axes": (0,), "lengths": (0,)}, "at least 1"),
    ],
)
def test_operands_that_do_not_fit(x, params, message):
    with pytest.raises(FunctransError, match=message):
        fft.fft_p.abstract(aval_of(x), **params, norm="backward")

"""The domain entry of the discrete cosine and sine transforms; their tests follow from the record."""

import numpy as np
import pytest

from functrans.core import Linear
from functrans.core.aval import aval_of
from functrans.errors import FunctransError
from functrans.primitives.fft import dct_p
from functrans.testing import Case, Domain, Numbers, check_primitive


def _case(shape, kind, type, axes, norm="backward", orthogonalize=False):
    params = {"kind": kind, "type": type, "axes": axes, "norm": norm, "orthogonalize": orthogonalize}
    return Case((Numbers(shape),), params)


DOMAIN = Domain(
    cases=(
        *[_case((5,), kind, type, (0,)) for kind in ("dct", "dst") for type in (1, 2, 3, 4)],
        *[_case((4,), kind, type, (0,), "ortho", True) for kind in ("dct", "dst") for type in (1, 2, 3)],
        _case((3, 4), "dct", 2, (0, 1), "forward"),
        _case((2, 3, 2), "dct", 1, (2, 0)),
        _case((3, 4), "dst", 3, (0, 1), "backward", True),
        _case((0, 3), "dct", 3, (1,)),
        _case((1,), "dct", 2, (0,)),
    ),
    kinds="fc",
    linear=((0,),),
)


DOMAINS = {dct_p: DOMAIN}


def test_rules():
    check_primitive(dct_p, DOMAIN)


def _matrix(kind, type, n):
    """A transform by its definition (the docstrings of `scipy.fft.dct` and `scipy.fft.dst`)."""
    k, j = np.arange(n)[:, None], np.arange(n)
    if kind == "dct":
        ends = np.where((j == 0) | ((type == 1) & (j == n - 1)), 0.5, 1.0) if type in (1, 3) else np.ones(n)
        angle = {
            1: k * j / max(n - 1, 1),
            2: k * (2 * j + 1) / (2 * n),
            3: (2 * k + 1) * j / (2 * n),
            4: (2 * k + 1) * (2 * j + 1) / (4 * n),
        }[type]
        return 2 * np.cos(np.pi * angle) * ends
    ends = np.where(j == n - 1, 0.5, 1.0) if type == 3 else np.ones(n)
    angle = {
        1: (k + 1) * (j + 1) / (n + 1),
        2: (k + 1) * (2 * j + 1) / (2 * n),
        3: (2 * k + 1) * (j + 1) / (2 * n),
        4: (2 * k + 1) * (2 * j + 1) / (4 * n),
    }[type]
    return 2 * np.sin(np.pi * angle) * ends


@pytest.mark.parametrize("n", [2, 5, 8])
@pytest.mark.parametrize("type", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", ["dct", "dst"])
def test_values_and_transposes_by_the_definition(kind, type, n):
    x, ct = np.random.default_rng(n).normal(size=(2, n))
    params = {"kind": kind, "type": type, "axes": (0,), "norm": "backward", "orthogonalize": False}
    matrix = _matrix(kind, type, n)
    np.testing.assert_allclose(dct_p.bind(x, **params), matrix @ x, atol=1e-12)
    (back,) = dct_p.transpose(ct, Linear(aval_of(x)), **params)
    np.testing.assert_allclose(back, matrix.T @ ct, atol=1e-12)


@pytest.mark.parametrize(
    ("x", "type", "axes", "message"),
    [
        (np.ones(3, int), 2, (0,), "float or complex"),
        (np.ones(1), 1, (0,), "at least 2"),
        (np.ones((2, 0)), 2, (1,), "at least 1"),
        (np.ones(3), 2, (1,), "axis 1 is out of bounds"),
        (np.ones(3), 2, (), "at least one axis"),
    ],
)
def test_operands_that_do_not_fit(x, type, axes, message):
    with pytest.raises(FunctransError, match=message):
        dct_p.abstract(aval_of(x), kind="dct", type=type, axes=axes, norm="backward", orthogonalize=False)

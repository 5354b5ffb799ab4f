"""Questions about types, the namespace, and what NumPy has that functrans has not."""

import itertools
import operator

import numpy as np
import pytest

import functrans.numpy as fnp
from functrans.core.dtypes import SUPPORTED
from functrans.errors import UnsupportedDtypeError
from functrans.numpy.dispatch import nearest
from functrans.numpy.scalar_types import ScalarType


def test_result_type():
    values = [*[np.zeros(1, d) for d in SUPPORTED], *SUPPORTED, np.int8, "float32", True, 2, 0.5, 1j]
    for x, y in itertools.product(values, values):
        assert fnp.result_type(x, y) == np.result_type(x, y), (x, y)
    with pytest.raises(UnsupportedDtypeError):
        fnp.result_type(np.longdouble)


def test_shapes():
    for x in (np.zeros((2, 3)), [[1, 2]], 3.0, []):
        assert fnp.shape(x) == np.shape(x)
        assert fnp.ndim(x) == np.ndim(x)
        assert fnp.size(x) == np.size(x)
    assert fnp.size(np.zeros((2, 3)), 1) == 3


def test_kinds():
    assert fnp.iscomplexobj(1j)
    assert fnp.iscomplexobj(np.zeros(2, np.complex64))
    assert fnp.isrealobj([1.0])
    assert fnp.isscalar(fnp.sin(1.0))
    assert not fnp.isscalar(fnp.sin([1.0]))
    assert fnp.can_cast(fnp.sin(1.0), np.complex128)


#: Names of dtypes that JAX has and NumPy 2 does not.
JAXS_NAMES = {"ComplexWarning", "complex_", "csingle", "cdouble", "float_", "int1", "uint1", "bfloat16"}
#: Functions of NumPy 2.1 and 2.2.
NEWER = {"cumulative_prod", "cumulative_sum", "matvec", "unstack", "vecmat"}


def test_names_of_numpy_mean_the_same():
    for name in {*fnp.__all__} - JAXS_NAMES:
        assert hasattr(np, name) or name in NEWER, name
        ours = getattr(fnp, name)
        if isinstance(ours, type | float | None):
            same = operator.eq if isinstance(ours, ScalarType) else operator.is_
            assert same(ours, getattr(np, name)) or name in ("ndarray", "ufunc")


def test_nearest_names():
    assert "np.sum" in nearest(np.nansum)
    assert "np.argmax" in nearest(np.nanargmax)

"""`same`: a function against NumPy's of the same name: value, dtype, shape, type of the error, memory."""

import copy
import warnings

import numpy as np
import pytest

import functrans.numpy as fnp
from functrans.arrays.array import Array
from functrans.errors import FunctransError


def _equal(got, expected):
    if isinstance(expected, (tuple, list)):
        assert type(got) is type(expected)
        assert len(got) == len(expected)
        for g, e in zip(got, expected):
            _equal(g, e)
        return
    if isinstance(expected, int) and not isinstance(expected, (bool, np.generic)):
        assert got == expected
        return
    assert type(got) is Array
    expected = np.asarray(expected)
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
    narrow = got.dtype in (np.float32, np.complex64)
    tolerance = 1e-5 if narrow else 1e-12
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


def _leaves(x):
    return [leaf for part in x for leaf in _leaves(part)] if isinstance(x, (tuple, list)) else [x]


@pytest.fixture
def same():
    """``same(name, *args, **kwargs)``; returns what functrans gave, or None where both refuse."""

    def run(name, *args, **kwargs):
        function, reference = fnp, np
        for part in name.split("."):
            function, reference = getattr(function, part), getattr(reference, part)
        given = copy.deepcopy(args)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                expected = reference(*args, **kwargs)
            except Exception as error:
                kind = next(
                    (k for k in (IndexError, ValueError, TypeError) if isinstance(error, k)), Exception
                )
                with pytest.raises(kind) as caught:
                    function(*given, **kwargs)
                assert isinstance(caught.value, FunctransError), f"untyped: {caught.value!r}"
                return None
            got = function(*given, **kwargs)
        _equal(got, expected)
        for a, b in zip(_leaves(given), _leaves(args)):
            if isinstance(a, np.ndarray):
                np.testing.assert_array_equal(a, b)
                assert not any(isinstance(g, np.ndarray) and np.shares_memory(g, a) for g in _leaves(got))
        return got

    return run

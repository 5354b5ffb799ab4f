"""getitem and putitem: one operation for a basic index expression."""

import numpy as np
import pytest

from functrans.primitives.indexing.expressions import plan_index
from functrans.primitives.indexing.item import getitem_p, putitem_p

X = np.random.default_rng(0).standard_normal((4, 5, 3))
EXPRESSIONS = [
    2,
    (slice(1, 3), 0),
    (slice(None, None, -2), None, slice(4, 0, -3), 1),
    (Ellipsis, slice(0, 3, 2)),
    (1, 2, 0),
    (slice(3, 1), slice(None)),
    (None, slice(None), Ellipsis, None, -1),
]


@pytest.mark.parametrize("dtype", [np.float64, np.complex64, np.int16, bool])
@pytest.mark.parametrize("expression", EXPRESSIONS, ids=str)
def test_both_ways(check, expression, dtype):
    x = (X * 3).astype(dtype)
    plan = plan_index(expression, x.shape)
    linear = [(0,)] if np.dtype(dtype).kind in "fc" else ()
    out = check(getitem_p, x, linear=linear, index=plan.expression, shape=plan.shape)
    np.testing.assert_array_equal(out, x[expression])
    back = check(putitem_p, np.asarray(out), linear=linear, index=plan.expression, shape=x.shape)
    expected = np.zeros_like(x)
    expected[expression] = x[expression]
    np.testing.assert_array_equal(back, expected)

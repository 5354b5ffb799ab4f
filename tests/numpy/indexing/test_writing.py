"""place, put and their like: changed copies against what NumPy writes."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import errors
from functrans.testing import check

A = np.arange(12.0).reshape(3, 4)
V = np.array([10.0, 20.0, 30.0])
MASK = A % 3 == 1
AT = np.array([[1], [-1], [0]])


def written(name, x, *args, **kwargs):
    """What NumPy's function leaves in a copy of `x`."""
    out = np.array(x)
    getattr(np, name)(out, *args, **kwargs)
    return out


WRITTEN = {
    "place": ("place", A, MASK, V),
    "place cyclic": ("place", A, A > 2, V[:2]),
    "place nowhere": ("place", A, A > 99, V),
    "place in ints": ("place", np.arange(4), np.arange(4) > 1, [2.7, -2.7]),
    "put": ("put", A, np.array([0, -1, 3]), V),
    "put cyclic": ("put", A, np.arange(5), V[:2]),
    "put repeatedly": ("put", A, np.array([1, 1, 2]), V),
    "putmask": ("putmask", A, MASK, V[:2]),
    "put one": ("put", A, 5, 1.0),
    "put_along_axis": ("put_along_axis", A, AT, 99.0, 1),
    "put_along_axis 0": ("put_along_axis", A, AT[:, :1].T, np.array([[1.0, 2.0, 3.0]]), 1),
    "put_along_axis flat": ("put_along_axis", A, np.array([1, 5]), np.array([7.0, 8.0]), None),
    "fill_diagonal": ("fill_diagonal", A, 5.0),
    "fill_diagonal tall": ("fill_diagonal", A.T, V),
    "fill_diagonal wrap": ("fill_diagonal", np.zeros((7, 2)), 5.0, True),
    "fill_diagonal cube": ("fill_diagonal", np.zeros((2, 2, 2)), [1.0, 2.0]),
}


@pytest.mark.wide(2)
@pytest.mark.parametrize("case", WRITTEN)
def test_changed_copies(case):
    name, x, *args = WRITTEN[case]
    function = getattr(fnp, name)
    if case == "put_along_axis 0":
        args[0] = np.array([[1, 2, 0], [0, 0, 1], [3, 3, 3]])
    expected = written(name, x, *args)
    before = x.copy()
    out = function(x, *args, inplace=False)
    assert out.dtype == expected.dtype
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(x, before)
    np.testing.assert_array_equal(ft.jit(lambda x: function(x, *args, inplace=False))(x), expected)
    if x.dtype.kind == "f":
        check(lambda x: function(x, *args, inplace=False) ** 2, x + 0.5)
    with pytest.raises(errors.ImmutableArrayError, match="inplace=False"):
        function(x, *args)
    with pytest.raises(errors.ImmutableArrayError, match="inplace=False"):
        ft.jit(lambda x: getattr(np, name)(x, *args))(x)


@pytest.mark.slow
def test_values_have_derivatives():
    check(lambda x, v: fnp.place(x, MASK, v, inplace=False), A, V)
    check(lambda x, v: fnp.put(x, np.array([3, 1, 3]), v, inplace=False), A, V)
    check(lambda x, v: fnp.put_along_axis(x, AT, v, 1, inplace=False), A, V[:, None])
    check(lambda x, v: fnp.fill_diagonal(x, v, inplace=False), A, V)
    np.testing.assert_array_equal(
        ft.jit(lambda x, m: fnp.place(x, m, V, inplace=False))(A, MASK), written("place", A, MASK, V)
    )
    np.testing.assert_array_equal(
        ft.vmap(lambda x, m: fnp.place(x, m, V, inplace=False))(A, MASK),
        [written("place", a, m, V) for a, m in zip(A, MASK)],
    )


def test_modes_of_put():
    for mode in ("wrap", "clip"):
        np.testing.assert_array_equal(
            fnp.put(A, [99, -99], V, mode, inplace=False), written("put", A, [99, -99], V, mode)
        )
    with pytest.raises(errors.IndexOutOfBoundsError):
        fnp.put(A, [99], V, inplace=False)
    with pytest.raises(errors.ArgumentValueError):
        fnp.put(A, [99], V, "drop", inplace=False)
    with pytest.raises(errors.ArgumentValueError):
        fnp.place(A, A[0] > 1, V, inplace=False)
    with pytest.raises(errors.ArgumentValueError):
        fnp.place(A, MASK, [], inplace=False)

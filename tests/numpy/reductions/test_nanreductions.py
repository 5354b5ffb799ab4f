"""Reductions that leave NaN out, against NumPy's; derivatives have no NaN in them."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import errors
from functrans.testing import check

NAN = np.nan
X = np.array([[1.0, NAN, -3.0], [NAN, NAN, NAN], [2.0, 5.0, 5.0]])
ARRAYS = {
    "matrix": X,
    "vector": np.array([NAN, 2.0, -1.0]),
    "no NaN": np.array([3.0, 2.0, 7.0]),
    "number": np.array(2.0),
    "NaN": np.array(NAN),
    "infinite": np.array([-np.inf, NAN, np.inf]),
    "float32": X.astype(np.float32),
    "complex": X + 1j * X.T,
    "int": np.arange(6).reshape(2, 3),
    "bool": np.array([True, False]),
    "empty": np.zeros((0, 3)),
    "reversed": X[::-1, ::-2],
    "list": [1, NAN, 3],
}
SUMS = ["nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd"]


@pytest.mark.parametrize("kind", ARRAYS)
@pytest.mark.parametrize("name", [*SUMS, "nanargmax", "nanargmin"])
def test_values(same, name, kind):
    x = ARRAYS[kind]
    same(name, x)
    if np.ndim(x):  # NumPy lets axis 0 of a number pass, and functrans does not
        same(name, x, axis=0)
        same(name, x, axis=-1, keepdims=True)
    same(name, x, axis=5)


@pytest.mark.parametrize("name", ["nansum", "nanprod", "nanmean", "nanvar", "nanstd"])
def test_options(same, name):
    mask = np.array([True, False, True])
    same(name, X, where=mask)
    same(name, X, axis=0, where=mask)
    same(name, X, axis=(0, 1), dtype=np.float32)
    if name in ("nansum", "nanprod"):
        same(name, X, initial=3.0)
    if name in ("nanvar", "nanstd"):
        same(name, X, axis=0, ddof=1)
        same(name, X, axis=0, ddof=5)
        same(name, X, axis=1, correction=1)
        same(name, X, axis=1, mean=np.nanmean(X, axis=1, keepdims=True))
        same(name, X, ddof=1, correction=1)


@pytest.mark.parametrize("name", ["nanmax", "nanmin"])
def test_extrema_with_initial(same, name):
    same(name, X, axis=0, initial=1.5)
    same(name, X, axis=1, initial=1.5, where=np.array([True, True, False]))
    same(name, X, where=np.array([True, True, False]))


@pytest.mark.parametrize("name", SUMS)
def test_out_is_refused(name):
    with pytest.raises(errors.ImmutableArrayError):
        getattr(fnp, name)(X, out=np.zeros(()))


@pytest.mark.parametrize("name", SUMS)
def test_derivatives(name):
    function, reference = getattr(fnp, name), getattr(np, name)
    x = np.array([[1.0, NAN, -3.0, 0.5], [2.0, 5.0, 4.0, NAN]])
    chosen = np.isfinite(x)

    def of_numbers(v):
        return function(fnp.asarray(x).at[chosen].set(v), axis=1)

    check(of_numbers, x[chosen])
    for f in (function, reference):
        gradient = ft.jit(ft.grad(lambda x, f=f: f(x, axis=0).sum()))(x)
        assert np.isfinite(np.asarray(gradient)[chosen]).all() or name == "nanstd"
        np.testing.assert_array_equal(np.asarray(gradient)[~chosen], 0.0)
    np.testing.assert_allclose(ft.jit(function)(x), reference(x))
    np.testing.assert_allclose(ft.vmap(function)(x), reference(x, axis=1))


def test_positions_where_there_is_no_number():
    with pytest.raises(errors.ArgumentValueError, match="All-NaN slice"):
        fnp.nanargmax(X, axis=1)
    np.testing.assert_array_equal(ft.jit(lambda x: np.nanargmax(x, axis=1))(X), [0, -1, 1])
    np.testing.assert_array_equal(ft.jit(lambda x: np.nanargmin(x, axis=1))(X), [2, -1, 0])
    np.testing.assert_array_equal(ft.vmap(fnp.nanargmin)(X[::2]), [2, 0])


@pytest.mark.parametrize(
    "name", ["nansum", "nanprod", "nanmax", "nanmin", "nanargmax", "nanargmin", "nanmean", "nanvar"]
)
def test_messages_name_the_function(name):
    with pytest.raises(errors.AxisError, match=f"^{name}: axis 3"):
        getattr(fnp, name)(X, axis=3)

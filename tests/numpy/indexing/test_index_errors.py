"""``config.index_errors = "clamp"``: what JAX does with indices out of bounds. The expected numbers are JAX's."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import config, errors

X = fnp.arange(1.0, 6.0)


@pytest.fixture(params=[lambda f: f, ft.jit], ids=["eager", "jit"])
def wrap(request):
    with config.patch(index_errors="clamp"):
        yield request.param


@pytest.mark.parametrize(("i", "read", "is_inside"), [(7, 5.0, False), (-2, 4.0, True), (-9, 1.0, False)])
def test_reads_are_clamped_and_writes_dropped(wrap, i, read, is_inside):
    for index in (np.int64(i), np.array([i])):
        assert np.all(wrap(lambda x, i: x[i])(X, index) == read)
        assert np.all(wrap(lambda x, i: x.at[i].get())(X, index) == read)
        for changed in (lambda x, i: x.at[i].set(0.0), lambda x, i: x.at[i].add(10.0)):
            assert bool(np.any(wrap(changed)(X, index) != X)) == is_inside


def test_take_gives_nan(wrap):
    places = np.array([7, -9, -1])
    for f in (lambda x, i: fnp.take(x, i), lambda x, i: fnp.take_along_axis(x, i, 0)):
        assert np.array_equal(wrap(f)(X, places), [np.nan, np.nan, 5.0], equal_nan=True)


def test_gradients_are_of_what_was_read(wrap):
    assert np.array_equal(wrap(ft.grad(lambda x: x[np.array([9, 1])].sum()))(X), [0, 1, 0, 0, 1])


def test_the_option_is_part_of_the_key():
    f = ft.jit(lambda x, i: x[i])
    with config.patch(index_errors="clamp"):
        assert f(X, 9) == 5.0
        assert [float(x) for x in X] == [1, 2, 3, 4, 5]
    with pytest.raises(errors.IndexOutOfBoundsError):
        f(X, 9)
    with pytest.raises(errors.IndexOutOfBoundsError):
        X[np.int64(9)]

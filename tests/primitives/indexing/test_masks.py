"""Boolean masks as indices: reading and writing, known and traced."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.errors import NonConcreteBooleanIndexError, ShapeError

RANDOM = np.random.default_rng(4)
X = RANDOM.normal(size=(3, 4))
MASK = X > 0
ROWS = np.array([True, False, True])


def _read(x):
    return (
        x[MASK],
        x[ROWS],
        x[ROWS, 1],
        x[:, np.array([0, 1, 1, 0], bool)],
        x[ROWS, ..., None],
        x[np.array(True)],
        x[1:][~ROWS[1:]],
    )


def test_reading_under_a_constant_mask():
    for f in (lambda x: _read(fnp.array(x)), ft.jit(_read)):
        for got, want in zip(f(X), _read(X), strict=True):
            np.testing.assert_array_equal(got, want)
    g = ft.jit(ft.grad(lambda x: fnp.sum(x[MASK] ** 2)))
    np.testing.assert_array_equal(g(X), np.where(MASK, 2 * X, 0))


def test_reading_under_a_traced_mask_names_the_cures():
    with pytest.raises(NonConcreteBooleanIndexError, match=r"where.*size="):
        ft.jit(lambda x: x[x > 0])(X)
    np.testing.assert_array_equal(ft.grad(lambda x: fnp.sum(x[x > 0] ** 2))(X), np.where(MASK, 2 * X, 0))
    taken = ft.jit(lambda x: x[fnp.nonzero(x > 0, size=12, fill_value=0)])(X)
    np.testing.assert_array_equal(taken[: MASK.sum()], X[MASK])


def _assigned(mask, op, value):
    x = X.copy()
    if op == "set":
        x[mask] = value
    elif op == "add":
        x[mask] += value
    elif op == "multiply":
        x[mask] *= value
    elif op == "min":
        x[mask] = np.minimum(x[mask], value)
    else:
        x[mask] = np.maximum(x[mask], value)
    return x


@pytest.mark.parametrize("op", ["set", "add", "multiply", "min", "max"])
@pytest.mark.parametrize(("mask", "value"), [(MASK, 0.25), (ROWS, 0.5), (ROWS, np.arange(4.0))])
def test_writing(op, mask, value):
    def f(x, mask):
        return getattr(x.at[mask], op)(value)

    want = _assigned(mask, op, value)
    np.testing.assert_array_equal(f(fnp.array(X), mask), want)
    np.testing.assert_array_equal(ft.jit(f)(X, mask), want)
    np.testing.assert_array_equal(ft.jit(lambda x: f(x, mask))(X), want)


@pytest.mark.parametrize("op", ["set", "add", "multiply", "min", "max"])
@pytest.mark.parametrize("mask", [MASK, ROWS])
def test_writing_values_of_the_whole_array(op, mask):
    values = RANDOM.normal(size=X.shape)

    def f(x, mask, values):
        return getattr(x.at[mask], op)(values)

    want = _assigned(mask, op, values[mask])
    np.testing.assert_array_equal(f(fnp.array(X), mask, values), want)
    np.testing.assert_array_equal(ft.jit(f)(X, mask, values), want)
    by_values = ft.grad(lambda v: f(fnp.array(X), mask, v).sum())
    traced = ft.jit(ft.grad(lambda v, m: f(fnp.array(X), m, v).sum()))
    np.testing.assert_allclose(traced(values, mask), by_values(values), atol=1e-15)
    assert np.all(np.asarray(by_values(values))[~mask] == 0)


def test_writing_a_value_for_each_true_element_wants_known_numbers():
    values = np.arange(float(MASK.sum()))
    np.testing.assert_array_equal(fnp.array(X).at[MASK].set(values)[MASK], values)
    np.testing.assert_array_equal(ft.jit(lambda x: x.at[MASK].set(values))(X)[MASK], values)
    with pytest.raises(NonConcreteBooleanIndexError, match="number of elements under the mask is unknown"):
        ft.jit(lambda x, m: x.at[m].set(values))(X, MASK)
    with pytest.raises(ShapeError):
        fnp.array(X).at[MASK].set(values[1:])

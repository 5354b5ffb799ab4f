"""Which values a kernel stores: rows at checked indices are looked up again instead."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as fnp
from functrans import lax

rng = np.random.default_rng(0)
TABLE, TOKENS = rng.normal(size=(50, 32)), rng.integers(-50, 50, 20)


def loss(table, tokens):
    rows = table[tokens]
    return 0.5 * fnp.sum(rows * rows)


def scratch(f, *args):
    """The shapes of a kernel's scratch memory, as the readable kernel names them."""
    text = re.sub("(?m)^#.*$", "", ft.jit(f).lower(*args).as_text("python"))
    return [line for line in text.replace(";", ",\n").splitlines() if "(scratch)" in line]


def test_rows_of_a_table_are_not_stored():
    assert not scratch(ft.value_and_grad(loss), TABLE, TOKENS)
    value, gradient = ft.jit(ft.value_and_grad(loss))(TABLE, TOKENS)
    expected = np.zeros_like(TABLE)
    np.add.at(expected, TOKENS, TABLE[TOKENS])
    np.testing.assert_allclose(value, 0.5 * np.sum(TABLE[TOKENS] ** 2), rtol=1e-14)
    np.testing.assert_allclose(gradient, expected, rtol=1e-14)


def test_columns_are_looked_up_where_they_are_written():
    assert not scratch(lambda table, tokens: table[:, tokens], TABLE, TOKENS % 32)
    assert scratch(lambda table, tokens: table[:3, tokens], TABLE, TOKENS % 32)  # as many checks as elements
    assert scratch(lambda table, tokens: (lambda y: y.T @ y + y.T @ y)(table[:, tokens]), TABLE, TOKENS % 32)


@given(
    st.integers(0, 40), st.integers(1, 5), st.integers(0, 20), st.sampled_from([np.float64, np.float32, np.int16]),
    st.booleans(), st.randoms(use_true_random=False),
)  # fmt: skip
@settings(max_examples=40, deadline=None)
def test_columns_are_numpys(rows, columns, count, dtype, out_of_bounds, random):
    x = np.arange(rows * columns, dtype=dtype).reshape(rows, columns) - 7
    if x.size and dtype != np.int16:
        x.flat[0], x.flat[-1] = np.nan, -0.0
    i = np.array([random.randrange(-columns, columns) for _ in range(count)], np.int64)
    f = ft.jit(lambda x, i: (x[:, i], x[:, i] + x[:, i[::-1]]))
    for result, expected in zip(f(x, i), (x[:, i], x[:, i] + x[:, i[::-1]])):
        np.testing.assert_array_equal(result, expected)
        np.testing.assert_array_equal(np.signbit(result), np.signbit(expected))
    if out_of_bounds and count:
        i[-1] = columns
        with pytest.raises(IndexError, match=f"index {columns} is out of bounds for axis 1"):
            f(x, i)


def test_numbers_of_a_table_are_stored():
    """Looking up scattered numbers again costs more than reading them in order."""

    def f(table, tokens):
        x = table[tokens]
        return x / fnp.sum(x)

    assert ft.jit(f).lower(TABLE[:, 0], TOKENS).as_text("python").count("status |=") == 1
    x = TABLE[:, 0][TOKENS]
    np.testing.assert_allclose(ft.jit(f)(TABLE[:, 0], TOKENS), x / x.sum(), rtol=1e-13)


@pytest.mark.parametrize("checked", [False, True])
def test_indices_out_of_bounds_still_raise(checked):
    def first(table, tokens):
        return fnp.sum(table[tokens] ** 2) + fnp.sum(table[tokens][:2])

    with ft.config.patch(checked=checked):
        f = ft.jit(ft.value_and_grad(loss))
        f(TABLE, TOKENS)
        with pytest.raises(IndexError, match="index 50 is out of bounds for axis 0 with size 50"):
            f(TABLE, np.array([0, 50, 3]))
        with pytest.raises(IndexError, match="index -51 is out of bounds"):
            ft.jit(first)(TABLE, np.array([0, 1, 2, -51]))
        with pytest.raises(IndexError, match="index 99"):  # nothing reads the row
            ft.jit(lambda t, i: t[i][0] + t[i][0])(TABLE, np.array([0, 99]))


def test_a_table_that_is_overwritten_is_read_before():
    def f(table, tokens):
        def step(table, _):
            rows = table[tokens]
            table = table.at[tokens].set(2 * rows[::-1])
            return table, rows * rows

        return lax.scan(step, table, None, length=3)

    table, tokens = TABLE.copy(), rng.permutation(50)[:9]
    last, rows = ft.jit(f)(table, tokens)
    for k in range(3):
        np.testing.assert_allclose(rows[k], table[tokens] ** 2, rtol=1e-14)
        table[tokens] = 2 * table[tokens][::-1]
    np.testing.assert_allclose(last, table, rtol=1e-14)


def test_donated_table():
    def f(table, tokens):
        rows = table[tokens]
        return table.at[tokens].add(rows * rows[0]), fnp.sum(rows)

    expected = TABLE.copy()
    np.add.at(expected, TOKENS, TABLE[TOKENS] * TABLE[TOKENS][0])
    table, total = ft.jit(f, donate_argnums=0)(fnp.asarray(TABLE), TOKENS)
    np.testing.assert_allclose(table, expected, rtol=1e-13)
    np.testing.assert_allclose(total, TABLE[TOKENS].sum(), rtol=1e-12)

"""Which values a kernel stores: rows at checked indices are looked up again instead."""

import re

import numpy as np
import pytest

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

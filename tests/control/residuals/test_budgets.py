"""Selections by weight and worth, against all subsets."""

from itertools import chain, combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as fnp
from functrans.control.residuals import partitioner
from functrans.control.residuals.partitioner import _exact, _greedy

ITEMS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=7).map(sorted)


def subsets(count):
    return chain.from_iterable(combinations(range(count), k) for k in range(count + 1))


def worth_of(chosen, items):
    return sum(items[i][1] for i in chosen)


@given(ITEMS)
def test_no_subset_of_the_same_weight_is_worth_more(items):
    weights, worth = [w for w, _ in items], [g for _, g in items]
    found = _exact(weights, worth)
    assert found[0] == (0, ()) or found[0][0] == 0
    for total, chosen in found:
        assert total == sum(weights[i] for i in chosen)
        assert len(set(chosen)) == len(chosen)
    for chosen in subsets(len(items)):
        weight = sum(weights[i] for i in chosen)
        best = max(worth_of(c, items) for t, c in found if t <= weight)
        assert best >= worth_of(chosen, items)
    totals = [total for total, _ in found]
    assert totals == sorted(set(totals))
    gains = [worth_of(c, items) for _, c in found]
    assert gains == sorted(set(gains))


def test_of_too_many_selections_some_are_left_out(monkeypatch):
    monkeypatch.setattr(partitioner, "MOST", 8)
    weights = [2**n for n in range(6)]
    found = _exact(weights, weights)
    assert found[0] == (0, ())
    assert 4 <= len(found) <= 8
    assert all(total == sum(weights[i] for i in chosen) for total, chosen in found)


@given(ITEMS)
def test_the_greedy_way_takes_the_most_worth_by_weight_first(items):
    weights, worth = [w for w, _ in items], [g for _, g in items]
    found = _greedy(weights, worth)
    assert [len(chosen) for _, chosen in found] == list(range(len(items) + 1))
    assert all(total == sum(weights[i] for i in chosen) for total, chosen in found)
    order = found[-1][1]
    rates = [worth[i] / max(weights[i], 1) for i in order]
    assert rates == sorted(rates, reverse=True)
    assert all(a < b for a, b, r, s in zip(order, order[1:], rates, rates[1:]) if r == s)
    assert all(longer[: len(shorter)] == shorter for (_, shorter), (_, longer) in pairwise(found))


@pytest.mark.parametrize("choose", [_exact, _greedy])
def test_of_nothing_there_is_one_selection(choose):
    assert choose([], []) == [(0, ())]


def test_the_option_chooses_the_way():
    """The exact way keeps at least as many bytes within a budget, here more at some."""
    xs = [np.linspace(0.1, 0.9, n) for n in (60, 50, 50, 37)]

    def f(*xs):
        return sum(fnp.sum(fnp.tanh(fnp.sin(fnp.exp(x)) * x)) for x in xs)

    def kept(budget, solver):
        options = {
            "activation_memory_budget": budget,
            "memory_budget_solver": solver,
            "partitioner": "save_all",
        }
        with ft.config.patch(**options):
            return ft.vjp(ft.jit(f), *xs)[1].residual_bytes

    pairs = [(kept(b, "dp"), kept(b, "greedy")) for b in (0.1, 0.3, 0.45, 0.55)]
    assert all(exact > greedy for exact, greedy in pairs)

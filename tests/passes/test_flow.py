"""Minimum cuts: SciPy's maximum flow is the oracle."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_flow

from functrans.passes.flow import Network

ARCS = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 2**20)),
    max_size=40,
    unique_by=lambda a: a[:2],
)


def network_of(arcs):
    network = Network()
    for _ in range(8):
        network.node()
    for tail, head, capacity in arcs:
        network.arc(tail, head, capacity)
    return network


@given(ARCS)
def test_the_capacity_is_the_maximum_flow(arcs):
    arcs = [a for a in arcs if a[0] != a[1]]
    matrix = np.zeros((10, 10), np.int32)
    for tail, head, capacity in arcs:
        matrix[tail, head] = capacity
    total, side = network_of(arcs).minimum_cut()
    assert total == maximum_flow(csr_matrix(matrix), 0, 1).flow_value
    assert 1 in side
    assert 0 not in side
    assert total == sum(c for tail, head, c in arcs if tail not in side and head in side)


@given(ARCS, st.randoms(use_true_random=False))
def test_the_cut_does_not_depend_on_the_order_of_arcs(arcs, random):
    arcs = [a for a in arcs if a[0] != a[1]]
    expected = network_of(arcs).minimum_cut()
    random.shuffle(arcs)
    assert network_of(arcs).minimum_cut() == expected


def test_capacities_are_exact():
    network = network_of([(0, 2, 2**80 + 1), (2, 1, 2**80), (0, 3, float("inf")), (3, 1, 1)])
    assert network.minimum_cut() == (2**80 + 1, {1})
    endless = network_of([(0, 2, float("inf")), (2, 1, float("inf"))])
    assert endless.minimum_cut()[0] == float("inf")

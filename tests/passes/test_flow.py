"""Minimum cuts: SciPy's maximum flow is the oracle."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from functrans.passes.flow import Network

CAPACITIES = st.one_of(st.integers(0, 5), st.integers(0, 2**20))


@st.composite
def networks(draw, branching):
    """For each node but the sink its arcs, as pairs of a head and a capacity, and what the source supplies."""
    nodes = []
    for n in range(1, draw(st.integers(2, 12))):
        several = draw(st.floats(0, 1)) < branching
        heads = draw(st.sets(st.integers(0, n - 1), min_size=1, max_size=3 if several else 1))
        nodes.append(([(h, draw(CAPACITIES)) for h in sorted(heads)], draw(CAPACITIES)))
    return nodes


def built(nodes):
    network = Network()
    for arcs, supply in nodes:
        if len(arcs) == 1:
            network.node(*arcs[0], supply // 2)
        else:
            network.fork(arcs, supply // 2)
    for node, (_, supply) in enumerate(nodes, 1):
        network.send(node, supply - supply // 2)
    return network


def nearest_sink_side(nodes):
    """The nodes from which the sink can be reached beside a maximum flow."""
    source = len(nodes) + 1
    capacity = np.zeros((source + 1, source + 1), np.int32)
    for node, (arcs, supply) in enumerate(nodes, 1):
        capacity[source, node] = supply
        for head, room in arcs:
            capacity[node, head] = room
    result = maximum_flow(csr_matrix(capacity), source, 0)
    backward = csr_matrix((capacity - result.flow.toarray()).T)
    backward.eliminate_zeros()
    side = np.zeros(source + 1, bool)
    side[breadth_first_order(backward, 0, return_predecessors=False)] = True
    cut = capacity[~side][:, side].sum()
    assert cut == result.flow_value  # the oracle agrees with itself
    return side[:-1].tolist()


@settings(max_examples=200)
@given(st.one_of(networks(0.0), networks(0.2), networks(0.7)))
def test_the_cut_is_the_least_and_nearest_to_the_sink(nodes):
    network = built(nodes)
    assert network.sink_side() == nearest_sink_side(nodes)
    assert network.sink_side() == nearest_sink_side(nodes)  # asking changes nothing


@given(networks(0.5))
def test_the_width_is_the_capacity_of_all_arcs(nodes):
    assert built(nodes).width[1:] == [sum(room for _, room in arcs) for arcs, _ in nodes]


def test_capacities_are_exact():
    for amount, whole in ((2**80, False), (2**80 - 1, True)):
        network = Network()
        one = network.node(network.SINK, 2**80)
        two = network.node(network.SINK, 2**80)
        network.fork([(one, float("inf")), (two, float("inf"))], supply=amount + 2**80)
        assert network.sink_side() == [True, whole, whole, whole]


def test_an_endless_supply_is_cut_off():
    network = Network()
    one = network.node(network.SINK, 3)
    network.fork([(one, 2), (network.SINK, 5)], supply=float("inf"))
    network.node(one, 10, supply=float("inf"))
    assert network.sink_side() == [True, False, False, False]

"""Pytrees: round trips, structures as keys, prefixes, and where errors point."""

import copy
import gc
import pickle
import weakref
from collections import OrderedDict, defaultdict, namedtuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as fnp
from functrans.errors import FunctransError, PytreeError
from functrans.frontend.pytree import (
    flatten_axes,
    tree_flatten,
    tree_flatten_one_level,
    tree_flatten_with_path,
    tree_leaves,
    tree_map,
    tree_structure,
    tree_unflatten,
)
from functrans.frontend.pytree.nodes import LEAF_TYPES, keystr, register_kind

Point = namedtuple("Point", "x y")


def extend(children):
    return (
        st.lists(children, max_size=4)
        | st.lists(children, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=2), children, max_size=3)
        | st.dictionaries(st.integers(), children, max_size=3)
        | st.dictionaries(st.text(max_size=2), children, max_size=3).map(OrderedDict)
        | st.tuples(children, children).map(lambda pair: Point(*pair))
    )


TREES = st.recursive(
    st.integers() | st.floats(allow_nan=False) | st.none() | st.text(max_size=2), extend, max_leaves=20
)


def types_of(tree):
    """The tree with each leaf replaced by its type, containers kept: equality sees every container's type."""
    if isinstance(tree, dict):
        return (type(tree).__name__, [(key, types_of(value)) for key, value in sorted(tree.items())])
    if isinstance(tree, (tuple, list)):
        return (type(tree).__name__, [types_of(child) for child in tree])
    return tree


@given(TREES)
def test_round_trip(tree):
    leaves, treedef = tree_flatten(tree)
    again = tree_unflatten(treedef, leaves)
    assert again == tree
    assert types_of(again) == types_of(tree)
    assert treedef.num_leaves == len(leaves)
    assert tree_structure(again) == treedef


@given(TREES)
def test_paths_lead_to_the_leaves(tree):
    pairs, treedef = tree_flatten_with_path(tree)
    assert [leaf for _, leaf in pairs] == tree_leaves(tree)
    assert treedef == tree_structure(tree)
    for path, leaf in pairs:
        # The text of a key path is Python: evaluated on the tree it must give the leaf.
        assert eval("tree" + keystr(path), {"tree": tree}) is leaf


@given(TREES)
def test_structures_are_keys(tree):
    treedef = tree_structure(tree)
    other = tree_structure(copy.deepcopy(tree))
    assert treedef == other
    assert hash(treedef) == hash(other)
    assert {treedef: 1}[other] == 1
    wrapped = tree_structure((tree,))
    assert wrapped != treedef
    assert wrapped.children() == [treedef]
    assert treedef.num_nodes + 1 == wrapped.num_nodes
    assert pickle.loads(pickle.dumps(treedef)) == treedef


@given(TREES)
def test_unflatten_after_pickle(tree):
    leaves, treedef = tree_flatten(tree)
    assert types_of(pickle.loads(pickle.dumps(treedef)).unflatten(leaves)) == types_of(tree)


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        (1, "PyTreeDef(*)"),
        (None, "PyTreeDef(None)"),
        ((), "PyTreeDef(())"),
        ((1,), "PyTreeDef((*,))"),
        ((1, {"a": 2}), "PyTreeDef((*, {'a': *}))"),
        ([1, None, ()], "PyTreeDef([*, None, ()])"),
        (OrderedDict(b=1, a=2), "PyTreeDef(CustomNode(OrderedDict[('b', 'a')], [*, *]))"),
        (defaultdict(list, b=1), "PyTreeDef(CustomNode(defaultdict[(<class 'list'>, ('b',))], [*]))"),
        (Point(1, 2), "PyTreeDef(CustomNode(namedtuple[Point], [*, *]))"),
    ],
)
def test_printing(tree, text):
    assert repr(tree_structure(tree)) == text


def test_dictionaries_are_flattened_by_sorted_keys():
    assert tree_leaves({"b": 1, "a": 2}) == tree_leaves({"a": 2, "b": 1}) == [2, 1]
    assert tree_structure({"b": 1, "a": 2}) == tree_structure({"a": 0, "b": 0})
    assert tree_leaves({10: "x", 9: "y"}) == ["y", "x"]
    assert tree_leaves(OrderedDict(b=1, a=2)) == [1, 2]
    assert list(tree_map(lambda x: x, OrderedDict(b=1, a=2))) == ["b", "a"]
    mapped = tree_map(lambda x: -x, defaultdict(int, a=1))
    assert mapped["missing"] == 0


def test_equal_keys_of_other_types_keep_their_type():
    assert [type(k) for k in tree_map(lambda x: x, {1: 0})] == [int]
    assert [type(k) for k in tree_map(lambda x: x, {True: 0})] == [bool]


def test_arrays_and_instances_of_unregistered_classes_are_leaves():
    class Box(dict):
        pass

    x, box = np.ones(3), Box(a=1)
    leaves = tree_leaves([x, box, "text", {1, 2}, np.float64(2.0)])
    assert leaves[0] is x
    assert leaves[1] is box
    assert len(leaves) == 5


def test_long_containers():
    assert tree_unflatten(tree_structure(tuple(range(500))), range(500)) == tuple(range(500))
    assert tree_structure(list(range(500))).num_leaves == 500


def test_structures_without_data_of_users_are_shared():
    tree = ({"w": 1, "b": (2, None)}, [3, (4, {})])
    assert tree_structure(tree) is tree_structure(copy.deepcopy(tree))


def test_aux_data_is_not_kept_alive():
    class Tag:
        pass

    class Holder:
        def __init__(self, tag):
            self.tag = tag

    register_kind(Holder, lambda node: ((1,), node.tag), lambda aux, children: Holder(aux))
    tag = Tag()
    watcher = weakref.ref(tag)
    assert tree_structure(({"a": Holder(tag)}, [Holder(tag)])).num_leaves == 2
    del tag
    gc.collect()
    assert watcher() is None


def test_is_leaf():
    tree = {"a": (1, 2), "b": [3, (4, 5)]}
    leaves, treedef = tree_flatten(tree, is_leaf=lambda x: isinstance(x, tuple))
    assert leaves == [(1, 2), 3, (4, 5)]
    assert treedef.unflatten("xyz") == {"a": "x", "b": ["y", "z"]}
    assert tree_map(lambda x: x is None, (None, 1), is_leaf=lambda x: x is None) == (True, False)
    assert tree_flatten(tree, is_leaf=lambda x: True)[0] == [tree]


def test_a_class_registered_after_its_first_use_as_a_leaf():
    class Late:
        def __init__(self, a):
            self.a = a

    assert len(tree_leaves((Late(1), Late(2)))) == 2
    assert Late in LEAF_TYPES
    register_kind(Late, lambda node: ((node.a, node.a), "aux"), lambda aux, children: Late(children[0]))
    assert tree_leaves((Late(1), Late(2))) == [1, 1, 2, 2]
    with pytest.raises(PytreeError, match="Late is a pytree node type already"):
        register_kind(Late, lambda node: ((), None), lambda aux, children: None)
    with pytest.raises(PytreeError, match="must be a class, got 3"):
        register_kind(3, lambda node: ((), None), lambda aux, children: None)


def test_aux_data_must_be_hashable_and_comparable():
    class Awkward:
        def __init__(self, aux):
            self.aux = aux

    register_kind(Awkward, lambda node: ((), node.aux), lambda aux, children: Awkward(aux))

    class Changing:
        __hash__ = None

        def __eq__(self, other):
            raise ValueError

    with pytest.raises(PytreeError, match=r"must be hashable, or consist of .*; Awkward gave \["):
        hash(tree_structure(Awkward([Changing()])))
    a, b = tree_structure(Awkward(Changing())), tree_structure(Awkward(Changing()))
    with pytest.raises(PytreeError, match="comparable with =="):
        _ = a == b


# --- aux data that is not hashable ----------------------------------------------------------------------------


class Holder:
    """A node with one child."""

    def __init__(self, x, aux):
        self.x, self.aux = x, aux


register_kind(Holder, lambda h: ((h.x,), h.aux), lambda aux, children: Holder(children[0], aux))
UNHASHABLE = [
    [1, 2],
    {"k": [1.0, {2}], "w": (np.arange(3), None)},
    {1, 2},
    np.ones(3),
    np.ones((0, 2), np.float32),
    fnp.ones(3),
    (3, [fnp.ones(2)], "name"),
    ("empty", [np.ones((0, 2))]),
]
OTHERS = [[1, 2.0], {"k": [1.0, {3}], "w": (np.arange(3), None)}, {1}, np.ones(3, int), np.ones((0, 3), np.float32),
          fnp.zeros(3), (3.0, [fnp.ones(2)], "name"), ("empty", [np.ones((0, 3))])]  # fmt: skip


def same(a, b):
    assert type(a) is type(b)
    np.testing.assert_equal(a, b)


@pytest.mark.parametrize(("aux", "other"), zip(UNHASHABLE, OTHERS, strict=True))
def test_aux_data_that_is_not_hashable_is_compared_by_value(aux, other):
    traces = []

    @ft.jit
    def f(h):
        traces.append(h.aux)
        return Holder(h.x * 2, h.aux)

    for _ in range(3):
        out = f(Holder(np.ones(2), copy.deepcopy(aux)))
        same(out.aux, aux)
        same(ft.grad(lambda h: fnp.sum(f(h).x))(Holder(np.ones(2), copy.deepcopy(aux))).aux, aux)
        same(ft.vmap(f)(Holder(np.ones(2), copy.deepcopy(aux))).aux, aux)
    before = len(traces)
    same(f(Holder(np.ones(2), other)).aux, other)
    assert len(traces) == before + 1
    same(ft.tree.map(lambda x, y: x + y, Holder(1.0, aux), Holder(2.0, copy.deepcopy(aux))).aux, aux)
    structure = tree_structure(Holder(1.0, aux))
    assert structure == tree_structure(Holder(2.0, copy.deepcopy(aux)))
    assert structure != tree_structure(Holder(2.0, other))
    hash(structure)
    assert structure == tree_structure(Holder(2.0, copy.deepcopy(aux)))
    assert pickle.loads(pickle.dumps(structure)) == structure


def test_no_change_in_place_is_missed():
    f = ft.jit(lambda h: Holder(h.x * h.aux["k"][0], [h.aux["k"][0]]))
    aux = {"k": [2.0]}
    assert f(Holder(3.0, aux)).x == 6.0
    aux["k"][0] = 5.0
    out = f(Holder(3.0, aux))
    assert out.x == 15.0
    out.aux.append("changed by the caller")
    assert f(Holder(3.0, aux)).aux == [5.0]
    weights = np.ones(2)
    g = ft.jit(lambda h: h.x * h.aux)
    np.testing.assert_array_equal(g(Holder(3.0, weights)), [3.0, 3.0])
    weights[0] = 4.0
    np.testing.assert_array_equal(g(Holder(3.0, weights)), [12.0, 3.0])


def test_map_of_several_trees_takes_deeper_trees_at_leaves():
    assert tree_map(lambda x, y: (x, y), {"a": 1, "b": (2,)}, {"a": [3, 4], "b": ({"c": 5},)}) == {
        "a": (1, [3, 4]),
        "b": ((2, {"c": 5}),),
    }


@pytest.mark.parametrize(
    ("tree", "other", "place", "words"),
    [
        ((1, 2), (1,), "the root", "expected a tuple of length 2, got a tuple of length 1"),
        ([1], (1,), "the root", "expected a list of length 1, got a tuple of length 1"),
        ({"a": 1}, {"b": 1}, "the root", "expected a dict with keys ['a'], got a dict with keys ['b']"),
        ((1, None), (1, 2), "[1]", "expected None, got a leaf of type int"),
        ({"z": (1, [2, 3])}, {"z": (1, [2])}, "['z'][1]", "got a list of length 1"),
        ((1, (2, 3)), (1, 5.0), "[1]", "got a leaf of type float"),
        (Point(1, (2,)), Point(1, ()), ".y", "expected a tuple of length 1, got a tuple of length 0"),
        ({"a": {"b": [1]}}, {"a": {"b": None}}, "['a']['b']", "got None"),
        ((1, OrderedDict(a=1, b=2)), (1, OrderedDict(b=1, a=2)), "[1]", "('a', 'b')"),
    ],
)
def test_a_mismatch_names_the_place_and_both_structures(tree, other, place, words):
    with pytest.raises(PytreeError) as caught:
        tree_map(lambda a, b, c: a, tree, tree, other)
    message = str(caught.value)
    assert f"tree_map: tree 3 does not match at {place}: " in message
    assert words in message
    assert str(tree_structure(tree)) in message
    assert str(tree_structure(other)) in message
    assert "test_pytree.py" in message
    assert isinstance(caught.value, (FunctransError, ValueError))


@pytest.mark.parametrize("leaves", [[], [1], [1, 2, 3]])
@pytest.mark.parametrize("tree", [(1, 2), {"a": 1, "b": (2,)}])
def test_a_wrong_number_of_leaves(tree, leaves):
    with pytest.raises(PytreeError, match=f"has 2 leaves, but {len(leaves)} values were given"):
        tree_structure(tree).unflatten(iter(leaves))


def test_keys_that_cannot_be_sorted_are_named_with_their_place():
    with pytest.raises(PytreeError, match=r"at tree\[0\]\['z'\] cannot be sorted \(types met: int, str\)"):
        tree_leaves([{"z": {1: 2, "a": 3}}])
    with pytest.raises(PytreeError, match="OrderedDict"):
        tree_flatten({1: 2, "a": 3}, is_leaf=lambda x: False)
    with pytest.raises(PytreeError, match="cannot be sorted"):
        tree_map(lambda x, y: x, {"a": 1, "b": 2}, {1: 2, "a": 3})
    assert tree_leaves(OrderedDict([(1, 2), ("a", 3)])) == [2, 3]


def test_one_level():
    assert tree_flatten_one_level({"b": (1, 2), "a": 3}) == ([3, (1, 2)], ("a", "b"))
    assert tree_flatten_one_level(5) is None
    assert tree_flatten_one_level(None) == ([], None)


@pytest.mark.parametrize(
    ("axes", "expected"),
    [
        (0, [0, 0, 0, 0]),
        (None, [None, None, None, None]),
        ((0, None), [0, None, None, None]),
        ((0, {"a": 1, "b": None}), [0, 1, None, None]),
        ((None, {"a": 1, "b": (2, None)}), [None, 1, 2, None]),
    ],
)
def test_flatten_axes(axes, expected):
    assert flatten_axes("in_axes", tree_structure((1, {"a": 2, "b": (3, 4)})), axes) == expected


def test_flatten_axes_over_none_and_empty_nodes():
    assert flatten_axes("in_axes", tree_structure((None, 1, ())), (None, 0, ())) == [0]
    assert flatten_axes("in_axes", tree_structure((None, 1, ())), 3) == [3]


@pytest.mark.parametrize(
    ("axes", "place", "words"),
    [
        ((0,), "the root", "expected a tuple of length 2, got a tuple of length 1"),
        ((0, {"a": 1}), "[1]", "expected a dict with keys ['a', 'b'], got a dict with keys ['a']"),
        ((0, {"a": 1, "b": (0, 1, 2)}), "[1]['b']", "got a tuple of length 3"),
        (((0, 1), None), "[0]", "expected a leaf, got a tuple of length 2"),
        ([0, None], "the root", "expected a tuple of length 2, got a list of length 2"),
    ],
)
def test_flatten_axes_names_the_place(axes, place, words):
    with pytest.raises(PytreeError) as caught:
        flatten_axes("vmap in_axes", tree_structure((1, {"a": 2, "b": (3, 4)})), axes)
    assert f"vmap in_axes does not match at {place}: " in str(caught.value)
    assert words in str(caught.value)


def test_compose():
    outer, inner = tree_structure([1, (2, None)]), tree_structure({"a": 0, "b": 0})
    assert outer.compose(inner) == tree_structure([{"a": 0, "b": 0}, ({"a": 0, "b": 0}, None)])


def test_node_data():
    assert tree_structure({"a": 1}).node_data() == (dict, ("a",))
    assert tree_structure(Point(1, 2)).node_data() == (Point, Point)
    assert tree_structure(1).node_data() is None


def test_structures_that_make_other_programs_differ():
    class Scaled:
        pass

    register_kind(Scaled, lambda s: ((), s.by), lambda by, _: Scaled())

    def scaled(by):
        node = Scaled()
        node.by = by
        return tree_structure(node)

    values = [1, 1.0, True, 0.0, -0.0, (1, 2), (1.0, 2), 0.0j]
    for i, a in enumerate(values):
        assert [scaled(a) == scaled(b) for b in values] == [i == j for j in range(len(values))]

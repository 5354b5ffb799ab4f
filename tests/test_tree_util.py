"""The public pytree functions: `functrans.tree_util` and `functrans.tree`."""

import functools
from collections import namedtuple
from dataclasses import dataclass, field

import numpy as np
import pytest

from functrans import tree, tree_util
from functrans.errors import PytreeError
from functrans.tree_util import tree_leaves, tree_map, tree_structure

Point = namedtuple("Point", "x y")


@tree_util.register_dataclass
@dataclass
class Layer:
    weight: object
    bias: object
    name: str = tree.static(default="layer")


@functools.partial(
    tree_util.register_dataclass, data_fields=["mean"], meta_fields=["size"], drop_fields=["cache"]
)
@dataclass
class Gaussian:
    mean: object
    size: int
    cache: object = None


@tree_util.register_pytree_with_keys_class
class Pair:
    def __init__(self, first, second):
        self.first, self.second = first, second

    def tree_flatten_with_keys(self):
        return (
            (tree_util.GetAttrKey("first"), self.first),
            (tree_util.GetAttrKey("second"), self.second),
        ), None

    @classmethod
    def tree_unflatten(cls, aux, children):
        return cls(*children)


def paths(value):
    return [tree_util.keystr(path) for path, _ in tree_util.tree_leaves_with_path(value)]


def test_dataclass_with_static_field():
    layer = Layer(1, (2, 3), name="first")
    assert tree_leaves(layer) == [1, 2, 3]
    assert tree_map(lambda x: x * 10, layer) == Layer(10, (20, 30), name="first")
    assert paths({"net": layer}) == ["['net'].weight", "['net'].bias[0]", "['net'].bias[1]"]
    assert tree_structure(layer) != tree_structure(Layer(1, (2, 3), name="second"))


def test_dataclass_with_named_fields():
    value = Gaussian(1.0, 3, cache="kept out")
    assert tree_leaves(value) == [1.0]
    assert tree_map(lambda x: x + 1, value) == Gaussian(2.0, 3, None)


def test_dataclass_errors():
    @dataclass
    class Both:
        a: int
        b: int = field(default=0)

    with pytest.raises(PytreeError, match=r"has the fields \['a', 'b'\].*name \['a', 'c'\]"):
        tree_util.register_dataclass(Both, ["a"], ["c"])
    with pytest.raises(PytreeError, match="pass both"):
        tree_util.register_dataclass(Both, ["a"])
    with pytest.raises(PytreeError, match="is not a dataclass"):
        tree_util.register_dataclass(int)
    with pytest.raises(PytreeError, match=r"data \('one',\), got .* data \('two',\)"):
        tree_map(lambda a, b: a, Layer(1, 2, "one"), Layer(1, 2, "two"))


def test_an_unregistered_dataclass_is_a_leaf():
    @dataclass
    class Plain:
        a: int

    assert tree_leaves([Plain(1)]) == [Plain(1)]


def test_registration_by_function():
    class Box:
        def __init__(self, content, label):
            self.content, self.label = content, label

    tree_util.register_pytree_node(
        Box, lambda box: ((box.content,), box.label), lambda label, children: Box(children[0], label)
    )
    box = tree_map(lambda x: x + 1, Box([1, 2], "b"))
    assert (box.content, box.label) == ([2, 3], "b")
    assert paths(box) == ["[<flat index 0>][0]", "[<flat index 0>][1]"]


def test_registration_by_function_with_keys():
    class Keyed:
        def __init__(self, a):
            self.a = a

    tree_util.register_pytree_node(
        Keyed,
        lambda node: ((node.a,), None),
        lambda aux, children: Keyed(*children),
        lambda node: (((tree_util.DictKey("a"), node.a),), None),
    )
    assert paths((Keyed((1, 2)),)) == ["[0]['a'][0]", "[0]['a'][1]"]


def test_registration_by_decorator_with_keys():
    assert paths(Pair(1, [2])) == [".first", ".second[0]"]
    assert tree_map(lambda x: -x, Pair(1, 2)).second == -2
    with pytest.raises(PytreeError, match=r"at \.second: expected a list of length 1, got a leaf"):
        tree_map(lambda a, b: a, Pair(1, [2]), Pair(1, 2))


def test_static_class():
    @tree_util.register_static
    @dataclass(frozen=True)
    class Options:
        size: int

    assert tree_leaves((Options(3), 1)) == [1]
    assert tree_structure(Options(3)) == tree_structure(Options(3))
    assert tree_structure(Options(3)) != tree_structure(Options(4))
    assert tree_map(lambda x: x, [Options(3)]) == [Options(3)]


def test_partial():
    def f(a, b, *, c):
        return a, b, c

    bound = tree_util.Partial(f, 1, c=3)
    assert tree_leaves(bound) == [1, 3]
    assert tree_map(lambda x: x * 2, bound)(5) == (2, 5, 6)
    assert tree_structure(bound) == tree_structure(tree_util.Partial(f, 7, c=8))
    assert tree_structure(bound) != tree_structure(tree_util.Partial(print, 7, c=8))
    assert paths(bound) == [".args[0]", ".keywords['c']"]


def test_reduce_and_all():
    assert tree_util.tree_reduce(lambda a, b: a - b, [10, (1, 2)]) == 7
    assert tree_util.tree_reduce(lambda a, b: a + b, [], 5) == 5
    assert tree_util.tree_reduce(lambda a, b: a, [], None) is None
    with pytest.raises(PytreeError, match="no leaves; pass an initializer"):
        tree_util.tree_reduce(lambda a, b: a, {"a": None})
    assert tree_util.tree_all({"a": True, "b": [1]})
    assert not tree_util.tree_all([True, 0])
    assert tree_util.tree_all([])


def test_transpose():
    value = {"a": Point(1, 2), "b": Point(3, 4)}
    outer, inner = tree_structure({"a": 0, "b": 0}), tree_structure(Point(0, 0))
    expected = Point({"a": 1, "b": 3}, {"a": 2, "b": 4})
    assert tree_util.tree_transpose(outer, inner, value) == expected
    assert tree.transpose(outer, None, value) == expected
    assert tree_util.tree_transpose(tree_structure([]), inner, []) == Point([], [])
    with pytest.raises(PytreeError, match=r"inner tree does not match at the root"):
        tree_util.tree_transpose(outer, inner, {"a": Point(1, 2), "b": (3, 4)})
    with pytest.raises(PytreeError, match="pass inner_treedef"):
        tree_util.tree_transpose(tree_structure([]), None, [])


def test_transpose_keeps_deeper_trees_whole():
    value = [(1, [2, 3]), (4, [5, 6])]
    assert tree_util.tree_transpose(tree_structure([0, 0]), tree_structure((0, 0)), value) == (
        [1, 4],
        [[2, 3], [5, 6]],
    )


def test_map_with_path():
    result = tree_util.tree_map_with_path(
        lambda path, x, y: (tree_util.keystr(path), x + y), {"a": [1], "b": 2}, {"a": [10], "b": 20}
    )
    assert result == {"a": [("['a'][0]", 11)], "b": ("['b']", 22)}
    with pytest.raises(PytreeError, match="tree_map_with_path: tree 2 does not match at the root"):
        tree_util.tree_map_with_path(lambda path, x, y: x, [1], [1, 2])


def test_broadcast():
    assert tree_util.tree_broadcast(1, (2, [3])) == (1, [1])
    assert tree.broadcast({"a": 1, "b": None}, {"a": (5, 6), "b": None}) == {"a": (1, 1), "b": None}
    with pytest.raises(PytreeError, match="tree_broadcast: the full tree does not match at"):
        tree_util.tree_broadcast((1, 2), (1, 2, 3))


def test_structures():
    a, b = tree_structure(1), tree_structure({"x": 1})
    assert tree_util.treedef_tuple([a, b]) == tree_structure((1, {"x": 2}))
    assert tree_util.treedef_tuple([a, a]) == tree_structure((1, 2))
    assert tree_util.treedef_tuple([]) == tree_structure(())
    assert tree_util.treedef_children(tree_structure((1, {"x": 2}))) == [a, b]
    assert tree_util.treedef_is_leaf(a)
    assert not tree_util.treedef_is_leaf(tree_structure(None))
    assert not tree_util.treedef_is_leaf(tree_structure((1,)))


def test_build_tree():
    treedef = tree_structure((Point(0, None), {"a": 0, "b": [0, 0]}))
    assert tree_util.build_tree(treedef, [(1, ()), (2, (3, 4))]) == (Point(1, None), {"a": 2, "b": [3, 4]})
    with pytest.raises(PytreeError, match="has 2 children, got"):
        tree_util.build_tree(treedef, [(1, ()), (2, (3,))])


def test_all_leaves():
    assert tree_util.all_leaves([1, "a", object()])
    assert not tree_util.all_leaves([1, ()])
    assert not tree_util.all_leaves([None])
    assert tree_util.all_leaves([(1, 2)], is_leaf=lambda x: isinstance(x, tuple))


def test_keystr():
    key = tree_util
    path = (key.DictKey("a"), key.SequenceKey(0), key.GetAttrKey("b"), key.FlattenedIndexKey(3))
    assert tree_util.keystr(path) == "['a'][0].b[<flat index 3>]"
    assert tree_util.keystr(path, simple=True, separator="/") == "a/0/b/3"
    assert repr(path[0]) == "DictKey(key='a')"
    assert tree_util.keystr(()) == ""


def test_map_only():
    value = {"a": 1.5, "b": [2, "text"]}
    assert tree.map_only(float)(lambda x: -x, value) == {"a": -1.5, "b": [2, "text"]}
    assert tree.map_only((int, float))(lambda x: -x, value) == {"a": -1.5, "b": [-2, "text"]}
    assert tree.map_only(lambda x: x == 2)(str, value) == {"a": 1.5, "b": ["2", "text"]}


@pytest.mark.parametrize("name", tree.__all__)
def test_short_names_are_the_long_ones(name):
    if name not in ("map_only", "static"):
        assert getattr(tree, name) is getattr(tree_util, f"tree_{name}")


@pytest.mark.parametrize("name", tree_util.__all__)
def test_public_names_exist_and_have_docstrings(name):
    value = getattr(tree_util, name)
    assert value is not None
    if callable(value) and name != "KeyPath":
        assert value.__doc__


def test_one_level_and_associative_reductions_as_in_jax():
    node = {"a": [1, 2], "b": (3, None)}
    assert tree_util.flatten_one_level(node) == ([[1, 2], (3, None)], ("a", "b"))
    keyed, aux = tree_util.flatten_one_level_with_keys(node)
    assert [str(key) for key, _ in keyed] == ["['a']", "['b']"]
    assert aux == ("a", "b")
    for cls, expected in ((dict, True), (type(None), True), (int, False), (set, False)):
        assert tree_util.is_tree_node(cls) is expected
    for f in (tree_util.flatten_one_level, tree_util.flatten_one_level_with_keys):
        with pytest.raises(PytreeError, match="leaf"):
            f(3.0)
    add = lambda a, b: f"({a}{b})"
    assert tree.reduce_associative(add, list("abcdefg")) == "(((ab)(cd))((ef)g))"
    assert tree_util.tree_reduce_associative(add, [], identity="") == ""
    with pytest.raises(PytreeError, match="identity"):
        tree_util.tree_reduce_associative(add, [])
    assert tree_util.default_registry.flatten([1, 2])[0] == [1, 2]


@pytest.mark.parametrize("leaf", [int, float, bool, str, np.ndarray])
def test_types_of_leaves_are_no_nodes(leaf):
    """Else all trees with numbers in them would change their structure."""
    for register in (
        lambda: tree_util.register_pytree_node(leaf, lambda x: ((), x), lambda x, _: x),
        lambda: tree_util.register_static(leaf),
    ):
        with pytest.raises(PytreeError, match=f"cls={leaf.__name__} is a type of leaves"):
            register()
    assert tree_util.tree_leaves({"a": 1, "b": np.ones(2)})[0] == 1

"""Trees compared with what they must look like: the first mismatch, in structure, shape or dtype."""

from collections import OrderedDict

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import errors
from functrans.core.aval import Aval
from functrans.frontend.pytree import tree_flatten
from functrans.frontend.tree_spec import Mismatch, TreeSpec, derivative_leaves, real_for_real, same_kind
from functrans.tree_util import keystr


def spec(tree):
    leaves, treedef = tree_flatten(tree)
    return TreeSpec(treedef, [Aval(np.shape(x), np.asarray(x).dtype) for x in leaves])


EXPECTED = {"a": (np.ones(2), np.ones(3, np.float32)), "b": np.ones(())}


@pytest.mark.parametrize(
    ("tree", "aspect", "path"),
    [
        (EXPECTED, None, None),
        ({"a": EXPECTED["a"]}, "structure", ""),
        ({"a": (np.ones(2),), "b": 1.0}, "structure", "['a']"),
        ({"a": [np.ones(2), np.ones(3)], "b": 1.0}, "structure", "['a']"),
        ({"a": EXPECTED["a"], "b": (1.0,)}, "structure", "['b']"),
        (OrderedDict(EXPECTED), "structure", ""),
        ({"a": (np.ones(2), np.ones(4)), "b": np.ones(2)}, "shape", "['a'][1]"),
        ({"a": (np.ones(2), np.ones(3)), "b": np.ones(2)}, "dtype", "['a'][1]"),
        ({"a": EXPECTED["a"], "b": np.ones(1)}, "shape", "['b']"),
    ],
)
def test_first_mismatch(tree, aspect, path):
    other = spec(tree)
    mismatch = spec(EXPECTED).mismatch(other.tree, other.avals)
    if aspect is None:
        assert mismatch is None
        return
    assert (mismatch.aspect, keystr(mismatch.path)) == (aspect, path)
    assert mismatch.at == (f" at {path}" if path else "")


DTYPES = [np.bool_, np.int8, np.int64, np.float32, np.float64, np.complex64, np.complex128]


@pytest.mark.filterwarnings("ignore:Casting complex values")
@pytest.mark.parametrize("own", DTYPES)
@pytest.mark.parametrize("expected", DTYPES)
def test_accepted_dtypes(own, expected):
    a, b = Aval((), np.dtype(own)), Aval((), np.dtype(expected))
    assert same_kind(a, b) == np.can_cast(own, expected, "same_kind")
    x = np.array(1j if np.issubdtype(own, np.complexfloating) else 1).astype(own)
    assert real_for_real(a, b) == (x.astype(expected) == x)


@pytest.mark.parametrize(
    ("tree", "leaves"),
    [
        ({"a": (1, 2), "b": 3}, [1, 2, 3]),
        (None, [None, None, None]),
        ({"a": None, "b": 3}, [None, None, 3]),
        ({"a": (None, 2), "b": None}, [None, 2, None]),
        ({"a": (1,), "b": 3}, None),
        ({"a": 1, "b": 3}, None),
        ({"a": (1, (2,)), "b": 3}, None),
        (7, None),
    ],
)
def test_none_stands_for_any_part_of_a_derivative(tree, leaves):
    found = derivative_leaves(tree, tree_flatten(EXPECTED)[1])
    assert isinstance(found, Mismatch) if leaves is None else found == leaves


def test_a_tree_with_none_in_it():
    treedef = tree_flatten({"a": None, "b": (1.0, None)})[1]
    assert derivative_leaves({"a": None, "b": None}, treedef) == [None]
    assert derivative_leaves({"a": None, "b": (2.0, None)}, treedef) == [2.0]
    assert isinstance(derivative_leaves({"a": 1.0, "b": None}, treedef), Mismatch)


def test_tangents_and_cotangents_of_whole_parts():
    """`jvp` and `vjp` take None where custom rules may return it."""

    def f(p, y):
        return {"s": p["a"] * p["b"] + y, "t": (y, p["a"])}

    p = {"a": 2.0, "b": 3.0}
    _, t = ft.jvp(f, (p, 5.0), (None, 1.0))
    assert t == {"s": 1.0, "t": (1.0, 0.0)}
    _, pull = ft.vjp(f, p, 5.0)
    assert pull({"s": 1.0, "t": None}) == ({"a": 3.0, "b": 2.0}, 1.0)
    assert pull({"s": None, "t": (1.0, None)}) == ({"a": 0.0, "b": 0.0}, 1.0)
    with pytest.raises(errors.ArgumentError, match="structure"):
        pull({"s": 1.0})
    with pytest.raises(errors.ShapeError, match=r"leaf 1 has shape \(2,\)"):
        pull({"s": 1.0, "t": (fnp.ones(2), 1.0)})

"""Descriptions of arrays, where only shapes and dtypes are asked for; shapes as sequences."""

from collections import deque

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import ShapeDtypeStruct, lax
from functrans.custom_derivatives import SymbolicZero
from functrans.errors import ArgumentError


class Foreign:
    """Another library's description of an array."""

    shape, dtype = (2, 3), np.dtype(np.complex64)


X = np.ones((2, 3), np.complex64)
DESCRIPTIONS = [ShapeDtypeStruct((2, 3), np.complex64), ft.typeof(X), SymbolicZero(ft.typeof(X)), Foreign()]


@pytest.mark.parametrize("like", DESCRIPTIONS, ids=lambda x: type(x).__name__)
def test_questions_of_type(like):
    for f in (fnp.shape, fnp.ndim, fnp.size, fnp.iscomplexobj, fnp.isrealobj, lambda x: fnp.size(x, 1)):
        assert f(like) == f(X)
    assert fnp.result_type(like) == np.complex64
    assert fnp.result_type(like, 1.0, np.float64(1)) == np.complex128
    for f in (
        fnp.zeros_like,
        fnp.ones_like,
        fnp.empty_like,
        lambda x: fnp.full_like(x, 2.0),
        lambda x: lax.full_like(x, 2.0),
        lambda x: fnp.zeros_like(x, dtype=int, shape=4),
    ):
        out, expected = f(like), f(X)
        assert (out.shape, out.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_array_equal(out, expected)
    assert ft.eval_shape(lambda x: x, like) == ShapeDtypeStruct((2, 3), np.complex64)
    assert ft.make_jaxpr(lambda x: x.T)(like).out_avals[0].shape == (3, 2)
    np.testing.assert_array_equal(ft.jit(lambda x: x + 1).lower(like).compile()(X), X + 1)


def test_weak_descriptions_do_not_promote():
    weak = ShapeDtypeStruct((), float, weak_type=True)
    assert fnp.result_type(weak, np.float32) == np.float32
    assert fnp.result_type(ShapeDtypeStruct((), float), np.float32) == np.float64


@pytest.mark.parametrize("like", DESCRIPTIONS, ids=lambda x: type(x).__name__)
def test_they_are_results_of_eval_shape(like):
    out = ft.eval_shape(lambda x: {"a": like, "b": x}, np.ones(2))
    assert out == {"a": ShapeDtypeStruct((2, 3), np.complex64), "b": ShapeDtypeStruct((2,), float)}
    key = ft.eval_shape(lambda: ft.random.split(ft.random.key(0), 3))
    assert ft.eval_shape(lambda: key) == key


@pytest.mark.parametrize("like", DESCRIPTIONS, ids=lambda x: type(x).__name__)
def test_they_are_no_arrays(like):
    for f in (fnp.sin, ft.jit(lambda x: x), ft.grad(lambda x: 1.0), lambda x: fnp.ones(2) + x):
        with pytest.raises(TypeError):
            f(like)


def test_attributes_of_a_struct():
    x = ShapeDtypeStruct((2, 3), "float32")
    assert (x.shape, x.dtype, x.ndim, x.size, x.weak_type, len(x)) == ((2, 3), np.float32, 2, 6, False, 2)
    assert x.update(shape=(4,)) == ShapeDtypeStruct((4,), "float32")
    assert x.update(dtype=int, weak_type=True) == ShapeDtypeStruct((2, 3), int, True)
    assert bool(ShapeDtypeStruct((0,), int))
    assert len({x, ShapeDtypeStruct([2, 3], np.float32)}) == 1
    with pytest.raises(TypeError):
        len(ShapeDtypeStruct((), int))
    assert ft.tree.map(lambda a: fnp.zeros(a.shape, a.dtype), [x])[0].dtype == np.float32


def test_attributes_of_an_aval():
    x = ft.typeof(X)
    assert x.update(shape=(4,), weak_type=True) == type(x)((4,), np.dtype(np.complex64), True)
    assert x.str_short() == "complex64[2,3]"
    assert x.str_short(short_dtypes=True) == "c64[2,3]"
    assert ft.typeof(1.0).to_tangent_aval() == type(x)((), np.dtype(float))
    whole = ft.typeof(np.arange(3)).to_tangent_aval()
    assert (whole.shape, whole.dtype, str(whole)) == ((3,), ft.float0, "float0[3]")


def test_questions_about_none_are_those_of_numpy():
    assert fnp.shape(None) == np.shape(None)
    assert fnp.ndim(None) == np.ndim(None)
    assert fnp.size(None) == np.size(None)
    assert fnp.iscomplexobj(None) == np.iscomplexobj(None)
    assert fnp.result_type(None) == np.result_type(None)
    assert fnp.result_type(None, np.float32) == np.result_type(None, np.float32)


# --- shapes ---------------------------------------------------------------------------------------------------


class Plain:
    """A sequence by its methods only, without ``__iter__``."""

    def __init__(self, *values):
        self.values = values

    def __len__(self):
        return len(self.values)

    def __getitem__(self, i):
        return self.values[i]


class Iterating(Plain):
    """TensorFlow Probability's shapes have these three methods."""

    def __iter__(self):
        return iter(self.values)


SHAPES = {
    "list": [2, 3],
    "plain": Plain(2, 3),
    "iterating": Iterating(2, np.int32(3)),
    "array": np.array([2, 3]),
    "Array": fnp.array([2, 3]),
    "range": range(2, 4),
    "deque": deque([2, 3]),
    "scalars": (np.int64(2), fnp.asarray(3)),
}
NO_SHAPES = {
    "dict": {2: 3},
    "str": "23",
    "floats": (2.0, 3.0),
    "float array": np.array([2.0, 3.0]),
}
TAKE_SHAPES = {
    "zeros": fnp.zeros,
    "full": lambda s: fnp.full(s, 1.0),
    "reshape": lambda s: fnp.reshape(fnp.ones(6), s),
    "x.reshape": lambda s: ft.vmap(lambda x: x.reshape(s))(fnp.ones((1, 6)))[0],
    "broadcast_to": lambda s: fnp.broadcast_to(1.0, s),
    "zeros_like": lambda s: fnp.zeros_like(1.0, shape=s),
    "uniform": lambda s: ft.random.uniform(ft.random.key(0), s),
    "lax.full": lambda s: lax.full(s, 1.0),
    "lax.reshape": lambda s: lax.reshape(fnp.ones(6), s),
    "iota": lambda s: lax.broadcasted_iota(int, s, 0),
    "struct": lambda s: ShapeDtypeStruct(s, float),
}


@pytest.mark.parametrize("taker", TAKE_SHAPES)
def test_a_shape_is_any_sequence_of_integers(taker):
    for shape in SHAPES.values():
        assert TAKE_SHAPES[taker](shape).shape == (2, 3)
    for shape in NO_SHAPES.values():
        with pytest.raises(ArgumentError):
            TAKE_SHAPES[taker](shape)


@pytest.mark.parametrize(
    "taker", sorted(set(TAKE_SHAPES) - {"lax.full", "iota"})
)  # which take what they can read once
def test_iterators_and_sets_are_no_shapes(taker):
    for shape in ((n for n in (2, 3)), iter([2, 3]), {2, 3}):
        with pytest.raises(ArgumentError):
            TAKE_SHAPES[taker](shape)

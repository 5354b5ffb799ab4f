"""``fnp.float32`` and its like: dtypes as NumPy's, and casts of traced values."""

import copy
import pickle

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax, random

NAMES = [
    "bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
    "float64", "complex64", "complex128",
]  # fmt: skip
both = pytest.mark.parametrize("name", NAMES)


@both
def test_calls_cast(name):
    ours, theirs = getattr(fnp, name), getattr(np, name)
    x = np.array([0.0, 1.7])
    for cast in (ours, ft.jit(ours), ft.vmap(ours), ft.jit(ft.vmap(ours))):
        out = cast(x)
        np.testing.assert_array_equal(out, x.astype(theirs))
        assert out.dtype == theirs
        assert isinstance(out, ft.Array)
    assert ours().dtype == theirs
    assert ours([1, 0]).shape == (2,)


@both
def test_it_is_numpys_dtype(name):
    ours, theirs = getattr(fnp, name), getattr(np, name)
    assert ours == theirs
    assert theirs == ours
    assert (ours != theirs) is False
    assert ours != np.str_
    assert ours == np.dtype(theirs) == ours
    assert {theirs: 1}[ours] == {ours: 1}[theirs] == 1
    assert np.dtype(ours) is np.dtype(theirs) is ours.dtype
    assert isinstance(theirs(1), ours)
    assert not isinstance(np.str_("a"), ours)
    assert issubclass(ours, np.generic)
    assert issubclass(theirs, ours)
    assert np.issubdtype(ours, theirs)
    assert np.issubdtype(theirs, ours)
    assert fnp.issubdtype(ours, theirs)
    for dtype in (ours, np.dtype(ours)):
        assert np.zeros(2, dtype).dtype == fnp.zeros(2, dtype).dtype == theirs
        assert np.zeros(2).astype(dtype).dtype == fnp.zeros(2).astype(dtype).dtype == theirs
    assert np.can_cast(ours, np.complex128)
    assert np.result_type(ours, ours) == fnp.result_type(ours, ours) == theirs
    assert np.dtype([("a", ours)]) == np.dtype([("a", theirs)])
    kind = {"b": "bool", "i": "signed integer", "u": "unsigned integer", "f": "real floating"}
    assert np.isdtype(ours, kind.get(ours.dtype.kind, "complex floating"))
    assert fnp.isdtype(ours, theirs)
    assert pickle.loads(pickle.dumps(ours)) is copy.deepcopy(ours) is ours


def test_where_a_dtype_is_taken():
    assert np.finfo(fnp.float32).eps == np.finfo(np.float32).eps
    assert fnp.iinfo(fnp.int8).max == 127
    assert random.normal(random.key(0), (2,), fnp.float32).dtype == np.float32
    assert lax.convert_element_type(1.0, fnp.int32).dtype == np.int32
    assert lax.argmax(np.ones(3), 0, fnp.int32).dtype == np.int32
    assert ft.ShapeDtypeStruct((2,), fnp.float32).dtype == np.float32
    assert fnp.ones(2, fnp.float32).view(fnp.int32).dtype == np.int32
    assert np.random.default_rng(0).random(2, dtype=fnp.float32).dtype == np.float32
    cast = ft.jit(lambda x, dtype: x.astype(dtype), static_argnums=1)
    assert cast(np.ones(2), fnp.float32).dtype == cast(np.ones(2), np.float32).dtype == np.float32
    assert fnp.single is fnp.float32
    assert fnp.int_ is fnp.int64
    assert fnp.bool is fnp.bool_


def test_derivatives_and_numbers():
    assert ft.grad(lambda x: fnp.float32(x) * 2)(1.0) == 2
    assert ft.jit(ft.grad(lambda x: fnp.float64(fnp.float32(x)) ** 2))(3.0) == 6
    assert fnp.float32("1.5") == 1.5
    assert fnp.int32(7.9) == 7
    assert list(range(fnp.int32(2))) == [0, 1]
    with pytest.raises(TypeError):
        fnp.float32(object())


def test_bfloat16():
    pytest.importorskip("ml_dtypes")
    assert ft.jit(fnp.bfloat16)(np.ones(2)).dtype == ft.bfloat16
    assert fnp.bfloat16 is fnp.bfloat16 == ft.bfloat16
    assert np.dtype(fnp.bfloat16) == np.dtype(ft.bfloat16)
    assert fnp.finfo(fnp.bfloat16).eps == 2.0**-7
    assert fnp.issubdtype(fnp.bfloat16, fnp.floating)
    assert pickle.loads(pickle.dumps(fnp.bfloat16)) is fnp.bfloat16


def test_numbas_code_takes_it_beside_calls_of_jitted_functions():
    numba = pytest.importorskip("numba")
    double = ft.jit(lambda x: 2 * x)

    @numba.njit
    def f(x):
        return np.zeros(3, fnp.float32) + fnp.float32(double(x))

    out = f(1.5)
    np.testing.assert_array_equal(out, [3, 3, 3])
    assert out.dtype == np.float32


def test_numpys_own_says_what_to_write():
    with pytest.raises(ft.errors.TracerArrayConversionError, match=r"Write functrans.numpy.float32\(x\)"):
        ft.jit(lambda x: np.float32(x))(np.ones(2))
    with pytest.raises(ft.errors.TracerArrayConversionError, match=r"Write functrans.numpy.bool_\(x\)"):
        ft.vmap(lambda x: np.bool_(x))(np.ones((2, 2)))

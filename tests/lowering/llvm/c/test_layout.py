"""What is taken for granted of the memory of CPython's and NumPy's objects: each check fails where it should.

A check that fails must cost time only, so programs are run without what it guards.
"""

import ctypes
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.arrays import donation
from functrans.lowering.llvm.c import native_call
from functrans.lowering.run import compile as compile_module
from functrans.lowering.run.executable import compile_jaxpr

X = np.linspace(0.5, 2.0, 12)


def other_implementation(module, monkeypatch):
    fake = SimpleNamespace(**{k: getattr(sys, k) for k in ("platform", "getrefcount")})
    fake.implementation = SimpleNamespace(name="pypy")
    monkeypatch.setattr(module, "sys", fake)


def narrow_pointers(module, monkeypatch):
    fake = SimpleNamespace(**{k: getattr(ctypes, k) for k in dir(ctypes) if not k.startswith("__")})
    fake.sizeof = lambda t: 4 if t is ctypes.c_void_p else ctypes.sizeof(t)
    monkeypatch.setattr(module, "ctypes", fake)


def moved(name, distance):
    def change(module, monkeypatch):
        monkeypatch.setattr(module, name, getattr(module, name) + distance)

    return change


def moved_field(name, distance):
    def change(module, monkeypatch):
        monkeypatch.setitem(module._OFFSETS, name, module._OFFSETS[name] + distance)

    return change


#: What kernels, and all else of `native_call`, rely on. (Other words of an object are there, so the checks can read.)
ALL = {
    "another Python": other_implementation,
    "pointers of 32 bits": narrow_pointers,
    "items of tuples": moved("TUPLE_ITEMS", -8),
    "data of arrays": moved("ARRAY_DATA", 8),
}
#: What fast calls and new results rely on, too.
FIELDS = {
    "type": moved_field("type", -8),
    "size of tuples": moved_field("size", 8),
    "number of axes": moved_field("ndim", 4),
    "shape": moved_field("shape", 8),
    "strides": moved_field("strides", -8),
    "dtype": moved_field("dtype", 8),
    "flags": moved_field("flags", 8),
}


@pytest.fixture
def change(monkeypatch):
    """Apply a change to `native_call`, for this test."""
    checks = native_call.layout_is_known, native_call.fields_are_known

    def apply(f):
        for check in checks:
            check.cache_clear()
        f(native_call, monkeypatch)

    yield apply
    monkeypatch.undo()
    for check in checks:
        check.cache_clear()
    assert native_call.fields_are_known()


@pytest.mark.parametrize("name", ALL)
def test_with_another_layout_kernels_run_as_python(name, change, monkeypatch):
    change(ALL[name])
    assert not native_call.layout_is_known()
    assert not native_call.fields_are_known()
    assert native_call.matcher([X]) is None
    assert native_call.result_maker([(np.ndarray, X.dtype, X.shape)]) is None
    monkeypatch.setattr(compile_module, "_best", [])
    times = 4 + sorted(ALL).index(name)  # so that the kernel is in no cache

    def f(x, np):
        y = x
        for _ in range(times):
            y = np.sin(y)
        return y + 0.5 * x

    with pytest.warns(
        RuntimeWarning, match=r"arrays have an unknown memory layout\); they use the slower backend"
    ):
        (unit,) = compile_jaxpr(ft.make_jaxpr(lambda x: f(x, fnp))(X)).kernels
    assert unit.route != "llvm"
    g = ft.jit(lambda x: f(x, fnp))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # one is enough
        for _ in range(3):
            np.testing.assert_allclose(g(X), f(X, np), rtol=1e-14)


@pytest.mark.parametrize("name", FIELDS)
def test_with_other_fields_calls_are_checked_in_python(name, change):
    change(FIELDS[name])
    assert native_call.layout_is_known()
    assert not native_call.fields_are_known()
    assert native_call.matcher([X]) is None
    assert native_call.result_maker([(np.ndarray, X.dtype, X.shape)]) is None
    number = 5.0 + sorted(FIELDS).index(name) / 7

    @ft.jit
    def f(x, k):
        return fnp.cos(x) * number + k, fnp.sum(x)

    for x in (X, X, X[::2], X.astype(np.float32), X.reshape(3, 4)):
        for k in (1.0, 2):
            y, total = f(x, k)
            np.testing.assert_allclose(y, np.cos(x) * number + k, rtol=1e-6, atol=1e-6)
            np.testing.assert_allclose(total, x.sum(), rtol=1e-6)
            assert y.shape == x.shape


def test_every_field_is_checked():
    """`items` and `data` are those of `layout_is_known`."""
    names = {"size" if n == "size of tuples" else "ndim" if n == "number of axes" else n for n in FIELDS}
    assert names | {"items", "data"} == set(native_call._OFFSETS)


@pytest.mark.parametrize(
    "f",
    [other_implementation, moved("_EXPORTS", -64), moved("_EXPORTS", -16), moved("_EXPORTS", 1 << 12)],
    ids=["another Python", "a field that is never zero", "the list of weak references", "no such field"],
)
def test_with_another_note_of_exports_donated_arrays_are_copied(f, monkeypatch):
    assert donation._knows_exports()
    f(donation, monkeypatch)
    assert not donation._knows_exports()

"""Jitted methods follow every kind of attribute, or refuse it: the results are those of the method without `jit`."""

import array
import collections
import contextvars
import copy
import ctypes
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import gc
import io
import itertools
import logging
import operator
import os
import pathlib
import random
import sys
import threading
import types
import weakref

import numba
import numpy as np
import pytest
import scipy.interpolate
import scipy.sparse
import scipy.spatial
import scipy.stats

import functrans as ft
import functrans.numpy as fnp
from functrans.errors import StaleInstanceError

X = np.array([0.5, 1.5])


class Holder:
    """Holds anything, and computes with what a function reads from it."""

    def __init__(self, held, read):
        self.held = held
        self.read = read

    @ft.jit
    def scaled(self, x):
        return x * fnp.sum(fnp.asarray(self.read(self.held), float))

    def plain(self, x):
        return x * np.sum(np.asarray(self.read(self.held), float))


class Box:
    def __init__(self, value):
        self.value = value

    def __repr__(self):
        return "always the same"

    def __eq__(self, other):
        return True

    __hash__ = object.__hash__


class Slots:
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


class SlotsBelow(Slots):
    __slots__ = ("more",)


class SlotsAndMore(Slots):
    """With a dictionary, too."""


class Private:
    def __init__(self, value):
        self._value = value

    @property
    def value(self):
        return 2.0 * self._value

    @value.setter
    def value(self, value):
        self._value = value


class Dynamic:
    """Finds its attributes elsewhere."""

    def __init__(self, value):
        self._store = {"value": value}

    def __getattr__(self, name):
        try:
            return vars(self)["_store"][name]
        except KeyError:
            raise AttributeError(name) from None

    def __getitem__(self, name):
        return self._store[name]


@dataclasses.dataclass
class Data:
    value: object


@dataclasses.dataclass(frozen=True)
class Frozen:
    value: object


@dataclasses.dataclass(slots=True)
class DataSlots:
    value: object


class Inherited:
    value = 2.0


class Settings:
    rate = 2.0


class MyList(list):
    pass


class MyDict(dict):
    pass


class MyFloat(float):
    pass


class MyArray(np.ndarray):
    pass


class Pair(collections.namedtuple("Pair", "a b")):
    """Has a dictionary."""


class Color(enum.Enum):
    RED = 1.0
    GREEN = 2.0


def value(held):
    return held.value


def set_value(new):
    return lambda held: setattr(held, "value", new)


def item(key):
    return lambda held: held[key]


def set_item(key, new):
    return lambda held: operator.setitem(held, key, new)


def first(held):
    return next(iter(held))


def total(held):
    return sum(held)


def cyclic():
    outer = {"value": 1.0, "inner": []}
    outer["inner"].append(outer)
    return outer


def tree():
    root = Box([])
    for k in range(3):
        child = Box(float(k))
        child.parent, child.siblings = root, root.value
        root.value.append(child)
    return root


def swap_siblings(root):
    """The list is replaced by an equal one; then a child changes in the old list, which it leads to itself."""
    siblings = root.value
    root.value = list(siblings)
    siblings[0] = Box(5.0)


def spline():
    return scipy.interpolate.CubicSpline([0.0, 1.0, 2.0], [0.0, 1.0, 4.0])


def line():
    return scipy.interpolate.interp1d([0.0, 1.0, 2.0], [0.0, 1.0, 4.0])


def masked():
    return np.ma.array([1.0, 2.0], mask=[False, True])


def with_default(x, scale=np.array([2.0])):  # noqa: B008
    return x * scale


def captured():
    scale = [2.0]
    return lambda: scale[0]


def recaptured(held):
    held.__closure__[0].cell_contents[0] = 3.0


def times(n):
    return lambda held: held * n


def large():
    return np.zeros(200_000)


#: The value, what is read from it, how it is changed in place.
IN_PLACE = {
    "dict": (lambda: {"a": 1.0}, item("a"), set_item("a", 2.0)),
    "dict, new name": (lambda: {"a": 1.0}, lambda h: list(h.values()), set_item("b", 2.0)),
    "dict, other order": (
        lambda: {"a": 1.0, "b": 2.0},
        lambda h: first(h.values()),
        lambda h: h.update(a=h.pop("a")),
    ),
    "dict of numbers": (lambda: {1: 1.0}, item(1), set_item(1, 2.0)),
    "dict, key of another type": (
        lambda: {1: 2.0},
        lambda h: 1.0 if type(first(h)) is int else 2.0,
        lambda h: h.update({True: h.pop(1)}),
    ),
    "dict of dicts": (lambda: {"a": {"b": 1.0}}, lambda h: h["a"]["b"], lambda h: h["a"].update(b=2.0)),
    "dict of itself": (cyclic, lambda h: h["inner"][0]["value"], set_item("value", 2.0)),
    "OrderedDict": (lambda: collections.OrderedDict(k=2.0), item("k"), set_item("k", 5.0)),
    "OrderedDict, other order": (
        lambda: collections.OrderedDict(a=1.0, b=2.0),
        lambda h: first(h.values()),
        lambda h: h.move_to_end("a"),
    ),
    "defaultdict": (lambda: collections.defaultdict(float, a=1.0), item("a"), set_item("a", 2.0)),
    "defaultdict, default": (
        lambda: collections.defaultdict(functools.partial(float, 1.0)),
        lambda h: h.default_factory(),
        lambda h: setattr(h, "default_factory", functools.partial(float, 2.0)),
    ),
    "Counter": (lambda: collections.Counter("aab"), item("a"), lambda h: h.update("aa")),
    "ChainMap": (
        lambda: collections.ChainMap({"a": 1.0}, {"b": 1.0}),
        item("b"),
        lambda h: h.maps[1].update(b=2.0),
    ),
    "UserDict": (lambda: collections.UserDict(a=1.0), item("a"), set_item("a", 2.0)),
    "subclass of dict": (lambda: MyDict(a=1.0), item("a"), set_item("a", 2.0)),
    "attribute of a subclass of dict": (lambda: MyDict(a=1.0), lambda h: len(vars(h)), set_value(2.0)),
    "list": (lambda: [1.0, 2.0], total, set_item(0, 5.0)),
    "list, longer": (lambda: [1.0, 2.0], total, lambda h: h.append(3.0)),
    "list, sign": (lambda: [0.0], lambda h: np.copysign(1.0, h[0]), set_item(0, -0.0)),
    "list, type": (lambda: [1.0], lambda h: 1.0 if type(h[0]) is float else 2.0, set_item(0, True)),
    "list of lists": (lambda: [[1.0], [2.0]], lambda h: h[1][0], lambda h: h[1].append(h[1].pop() + 1.0)),
    "subclass of list": (lambda: MyList([1.0]), total, set_item(0, 2.0)),
    "tuple of a list": (lambda: (1.0, [2.0]), lambda h: h[1][0], lambda h: h[1].__setitem__(0, 3.0)),
    "named tuple": (lambda: Pair([1.0], 2.0), lambda h: h.a[0], lambda h: h.a.__setitem__(0, 3.0)),
    "deque": (lambda: collections.deque([1.0, 2.0], 2), total, lambda h: h.append(3.0)),
    "deque, rotated": (lambda: collections.deque([1.0, 2.0]), first, lambda h: h.rotate(1)),
    "set": (lambda: {1.0, 2.0}, total, lambda h: h.add(3.0)),
    "set, type": (
        lambda: {1.0},
        lambda h: 1.0 if type(first(h)) is float else 2.0,
        lambda h: (h.clear(), h.add(1)),
    ),
    "array.array": (lambda: array.array("d", [1.0, 2.0]), total, set_item(0, 5.0)),
    "bytearray": (lambda: bytearray(b"ab"), total, set_item(0, 5)),
    "mapping proxy": (
        lambda: Box(types.MappingProxyType(store := {"a": 1.0})).__class__(
            (types.MappingProxyType(store), store)
        ),
        lambda h: h.value[0]["a"],
        lambda h: h.value[1].update(a=2.0),
    ),
    "ctypes": (lambda: (ctypes.c_double * 2)(1.0, 2.0), total, set_item(0, 5.0)),
    "namespace": (lambda: types.SimpleNamespace(value=1.0), value, set_value(2.0)),
    "nested objects": (
        lambda: Box(Box(Box(1.0))),
        lambda h: h.value.value.value,
        lambda h: setattr(h.value.value, "value", 2.0),
    ),
    "objects that claim to be equal": (lambda: [Box(1.0)], lambda h: h[0].value, set_item(0, Box(2.0))),
    "new attribute": (lambda: Box(1.0), lambda h: getattr(h, "more", 1.0), lambda h: setattr(h, "more", 2.0)),
    "class of an object": (
        lambda: Data(1.0),
        lambda h: len(type(h).__name__),
        lambda h: setattr(h, "__class__", Box),
    ),
    "siblings": (
        tree,
        lambda h: [c.value for c in h.value[2].siblings],
        lambda h: setattr(h.value[0], "value", 5.0),
    ),
    "siblings replaced": (tree, lambda h: [c.value for c in h.value[2].siblings], swap_siblings),
    "slots": (lambda: Slots(1.0), value, set_value(2.0)),
    "slots of a base": (
        lambda: SlotsBelow([1.0]),
        lambda h: h.value[0],
        lambda h: h.value.__setitem__(0, 2.0),
    ),
    "slots and more": (lambda: SlotsAndMore(1.0), value, set_value(2.0)),
    "slot that was empty": (
        lambda: SlotsBelow(1.0),
        lambda h: getattr(h, "more", 1.0),
        lambda h: setattr(h, "more", 2.0),
    ),
    "property": (lambda: Private(1.0), value, set_value(2.0)),
    "__getattr__": (lambda: Dynamic(1.0), value, lambda h: h._store.update(value=2.0)),
    "__getitem__": (lambda: Dynamic(1.0), item("value"), lambda h: h._store.update(value=2.0)),
    "dataclass": (lambda: Data(1.0), value, set_value(2.0)),
    "dataclass with slots": (lambda: DataSlots(1.0), value, set_value(2.0)),
    "frozen dataclass": (lambda: Frozen(np.ones(2)), value, lambda h: h.value.__setitem__(0, 5.0)),
    "class attribute hidden": (Inherited, value, set_value(3.0)),
    "object by a weak reference": (
        lambda: (box := Box(1.0), weakref.ref(box)),
        lambda h: h[1]().value,
        lambda h: setattr(h[0], "value", 2.0),
    ),
    "array": (lambda: np.ones(2), total, set_item(0, 5.0)),
    "array, last place": (lambda: np.ones((3, 50)).T, np.sum, set_item((-1, -1), 5.0)),
    "array of one number": (lambda: np.array(1.0), float, set_item((), 5.0)),
    "array with a sign": (lambda: np.zeros(1), lambda h: np.copysign(1.0, h[0]), set_item(0, -0.0)),
    "array reshaped": (lambda: np.ones((2, 3)), len, lambda h: h.resize((3, 2), refcheck=False)),
    "array of another type": (
        lambda: np.zeros(1),
        lambda h: h.itemsize,
        lambda h: setattr(h, "dtype", np.float32),
    ),
    "view of an array": (
        lambda: (a := np.ones(4), a[::2]),
        lambda h: h[1],
        lambda h: h[0].__setitem__(2, 5.0),
    ),
    "array that is read only": (
        lambda: (a := np.ones(4), np.broadcast_to(a, (2, 4))),
        lambda h: h[1],
        lambda h: h[0].__setitem__(2, 5.0),
    ),
    "large array": (large, np.max, set_item(-1, 5.0)),
    "large array of complex numbers": (lambda: np.zeros(1000, complex), lambda h: h.imag, set_item(-1, 5.0j)),
    "array of objects": (
        lambda: np.array([[1.0], [2.0, 3.0]], object),
        lambda h: h[1],
        lambda h: h[1].append(4.0),
    ),
    "array of records": (
        lambda: np.zeros(2, [("a", "f8"), ("b", "i4")]),
        lambda h: h["b"],
        set_item(("b"), 5),
    ),
    "record": (lambda: np.zeros(2, [("a", "f8")])[1], item("a"), set_item("a", 5.0)),
    "masked array": (masked, np.ma.sum, set_item(0, 5.0)),
    "masked array, mask": (
        masked,
        np.ma.sum,
        lambda h: h.mask.__setitem__(0, True) or setattr(h, "mask", [1, 0]),
    ),
    "subclass of an array": (lambda: np.ones(2).view(MyArray), np.sum, set_item(0, 5.0)),
    "attribute of a subclass of an array": (
        lambda: np.ones(2).view(MyArray),
        lambda h: len(vars(h)),
        set_value(2.0),
    ),
    "CubicSpline in place": (spline, lambda h: h(X), lambda h: operator.imul(h.c, 2.0)),
    "CubicSpline set": (spline, lambda h: h(X), lambda h: setattr(h, "c", 2.0 * h.c)),
    "interp1d set": (line, lambda h: h(X), lambda h: setattr(h, "y", np.array([0.0, 2.0, 8.0]))),
    "interp1d in place": (line, lambda h: h(X), lambda h: operator.imul(h._y, 3.0)),
    "interp1d, other kind": (line, lambda h: h(X), lambda h: setattr(h, "_call", lambda _, x: 5.0 * x)),
    "BSpline": (
        lambda: scipy.interpolate.make_interp_spline(np.arange(5.0), np.arange(5.0) ** 2),
        lambda h: h(X),
        lambda h: operator.imul(h.c, 2.0),
    ),
    "UnivariateSpline": (
        lambda: scipy.interpolate.UnivariateSpline(np.arange(5.0), np.arange(5.0) ** 2, s=0.0),
        lambda h: h(X),
        lambda h: operator.imul(h.get_coeffs(), 2.0),
    ),
    "RegularGridInterpolator": (
        lambda: scipy.interpolate.RegularGridInterpolator((np.arange(3.0),), np.arange(3.0)),
        lambda h: h(X[:, None]),
        lambda h: operator.imul(h.values, 2.0),
    ),
    "sparse matrix": (
        lambda: scipy.sparse.csr_array(np.eye(2)),
        lambda h: h.sum(),
        lambda h: operator.imul(h.data, 2),
    ),
    "KDTree": (
        lambda: scipy.spatial.KDTree(np.eye(2)),
        lambda h: np.sum(h.data),
        lambda h: operator.imul(h.data.base if h.data.base is not None else h.data, 2),
    ),
    "frozen distribution": (
        lambda: scipy.stats.norm(scale=1.0),
        lambda h: h.pdf(1.0),
        lambda h: h.kwds.update(scale=2.0),
    ),
    "polynomial": (
        lambda: np.polynomial.Polynomial([1.0, 2.0]),
        lambda h: h(2.0),
        lambda h: operator.imul(h.coef, 2.0),
    ),
    "poly1d": (lambda: np.poly1d([1.0, 2.0]), lambda h: h(2.0), set_item(0, 5.0)),
    "vectorize": (
        lambda: np.vectorize(Box(2.0).value.__add__),
        lambda h: h(1.0),
        lambda h: setattr(h, "pyfunc", (5.0).__add__),
    ),
    "random generator": (
        lambda: np.random.default_rng(0),
        lambda h: copy.deepcopy(h).normal(),
        lambda h: h.normal(),
    ),
    "method of a random generator": (
        lambda: np.random.default_rng(0).normal,
        lambda h: copy.deepcopy(h.__self__).normal(),
        lambda h: h(),
    ),
    "RandomState": (
        lambda: np.random.RandomState(0),
        lambda h: copy.deepcopy(h).normal(),
        lambda h: h.normal(),
    ),
    "random.Random": (lambda: random.Random(0), lambda h: copy.deepcopy(h).random(), lambda h: h.random()),
    "iterator": (lambda: iter([1.0, 2.0]), lambda h: next(copy.copy(h)), next),
    "StringIO": (lambda: io.StringIO("12"), lambda h: float(h.getvalue()), lambda h: h.write("5")),
    "partial": (lambda: functools.partial(max, [1.0]), lambda h: h(), lambda h: h.args[0].append(3.0)),
    "Partial": (
        lambda: ft.tree_util.Partial(np.sum, np.ones(2)),
        lambda h: h(),
        lambda h: h.args[0].__setitem__(0, 3.0),
    ),
    "bound method": (lambda: Layer(1.0).apply, lambda h: h(), lambda h: setattr(h.__self__, "w", 2.0)),
    "method of a list": (lambda: [1.0].__len__, lambda h: h(), lambda h: h.__self__.append(2.0)),
    "function that captures": (captured, lambda h: h(), recaptured),
    "function's default": (
        lambda: types.FunctionType(with_default.__code__, globals(), None, (np.array([2.0]),)),
        lambda h: h(1.0),
        lambda h: h.__defaults__[0].__setitem__(0, 3.0),
    ),
    "gradient": (
        lambda: ft.grad(Layer(1.0).times),
        lambda h: h(1.0),
        lambda h: setattr(h.__wrapped__.__self__, "w", 2.0),
    ),
    "exception": (lambda: ValueError([1.0]), lambda h: h.args[0], lambda h: h.args[0].append(2.0)),
    "threads' event": (threading.Event, lambda h: h.is_set(), lambda h: h.set()),
    "environment": (
        lambda: os.environ,
        lambda h: float(h["_TEST"]),
        set_item("_TEST", "2"),
    ),
}


class Layer:
    def __init__(self, w):
        self.w = w

    def apply(self):
        return self.w

    def times(self, x):
        return self.w * x


#: Values, of which a later one replaces the first.
REPLACED = {
    "number": (1.0, 2.0, float),
    "type of a number": (1, 1.0, lambda h: 1.0 if type(h) is int else 2.0),
    "bool": (1, True, lambda h: 1.0 if type(h) is int else 2.0),
    "type of a NumPy number": (np.float32(1), np.float64(1), lambda h: h.itemsize),
    "bfloat16": (ft.bfloat16(1), ft.bfloat16(2), float),
    "NaN": (np.nan, 1.0, lambda h: 1.0 if h != h else 2.0),
    "text": ("a", "bb", len),
    "subclass of a number": (MyFloat(1.0), MyFloat(2.0), float),
    "range": (range(2), range(3), len),
    "slice": (slice(0, 1), slice(0, 2), lambda h: X[h]),
    "date": (datetime.date(2000, 1, 1), datetime.date(2000, 1, 2), lambda h: h.day),
    "decimal": (decimal.Decimal("1.0"), decimal.Decimal("1.00"), lambda h: len(str(h))),
    "fraction": (fractions.Fraction(1, 2), fractions.Fraction(1, 3), float),
    "path": (pathlib.Path("a"), pathlib.Path("bb"), lambda h: len(str(h))),
    "enum": (Color.RED, Color.GREEN, lambda h: h.value),
    "function": (np.sin, np.cos, lambda h: h(X)),
    "function of Python": (times(2.0), times(3.0), lambda h: h(X)),
    "built-in function": (min, max, lambda h: h(X)),
    "compiled function": (numba.njit(lambda x: x), numba.njit(lambda x: 2.0 * x), lambda h: h(1.0)),
    "class": (float, int, lambda h: h("1") / 2 if h is int else 3.0),
    "itemgetter": (operator.itemgetter(0), operator.itemgetter(1), lambda h: h(X)),
    "dtype": (np.dtype("f4"), np.dtype("f8"), lambda h: h.itemsize),
    "module": (operator, sys, lambda h: len(h.__name__)),
    "Array": (fnp.ones(2), fnp.zeros(2), fnp.sum),
    "empty": (None, 1.0, lambda h: 3.0 if h is None else h),
    "frozenset": (frozenset([1]), frozenset([1, 2]), len),
    "object": (Box(1.0), Box(2.0), value),
    "kind of container": ([1.0], (1.0,), lambda h: len(type(h).__name__)),
    "logger": (logging.getLogger("a"), logging.getLogger("a.b"), lambda h: len(h.name)),
    "marker": (object(), None, lambda h: 1.0 if h is None else 2.0),
}


def check_follows(holder, change):
    """A call gives what plain Python does, before and after a change; where nothing changed it does not trace."""
    for _ in range(3):
        np.testing.assert_array_equal(holder.scaled(X), holder.plain(X))
    assert holder.scaled.cache_info().traces == 1
    before = holder.plain(X)
    change()
    assert not np.array_equal(holder.plain(X), before)
    for _ in range(3):
        np.testing.assert_array_equal(holder.scaled(X), holder.plain(X))
    assert holder.scaled.cache_info().traces == 2


@pytest.mark.parametrize("name", IN_PLACE)
def test_a_value_changed_in_place(name, monkeypatch):
    monkeypatch.setenv("_TEST", "1.0")
    make, read, change = IN_PLACE[name]
    holder = Holder(make(), read)
    check_follows(holder, lambda: change(holder.held))


@pytest.mark.parametrize("name", REPLACED)
def test_a_value_replaced(name):
    before, after, read = REPLACED[name]
    holder = Holder(before, read)
    check_follows(holder, lambda: setattr(holder, "held", after))


def test_what_classes_hold(monkeypatch):
    """Of the instance's class, of an object's, and of a class that is a value."""
    monkeypatch.setattr(Holder, "factor", 2.0, raising=False)
    for held, where in (
        (None, Holder),
        (Settings(), Settings),
        (Settings, Settings),
        ([Settings()], Settings),
    ):
        holder = Holder(held, lambda h, where=where: where.factor)
        monkeypatch.setattr(where, "factor", 2.0, raising=False)
        check_follows(holder, lambda where=where: monkeypatch.setattr(where, "factor", [3.0]))
        where.factor.append(4.0)
        np.testing.assert_array_equal(holder.scaled(X), holder.plain(X))
        monkeypatch.delattr(where, "factor")
        monkeypatch.setattr(where, "factor", 5.0, raising=False)
        np.testing.assert_array_equal(holder.scaled(X), holder.plain(X))
        assert holder.scaled.cache_info().traces == 4


class Restless:
    def __reduce_ex__(self, protocol):
        return list, ([object()],)


class RestlessList(list):
    def __reduce_ex__(self, protocol):
        return list, ([lambda: 0],)


def generator():
    yield 1.0


@numba.experimental.jitclass([("value", numba.float64)])
class Compiled:
    def __init__(self, value):
        self.value = value


REFUSED = {
    "generator": generator,
    "file": lambda: open(__file__),  # noqa: SIM115
    "memoryview": lambda: memoryview(bytearray(b"a")),
    "context variable": lambda: contextvars.ContextVar("a", default=1.0),
    "thread's variables": threading.local,
    "view of a dictionary": lambda: {}.items(),
    "object of compiled code": lambda: Compiled(1.0),
    "list of compiled code": lambda: numba.typed.List([1.0]),
    "never the same": RestlessList,
    "nested": lambda: [Box({"a": generator()})],
    "deep": lambda: functools.reduce(lambda inner, _: [inner], range(100_000), []),
    "more than may be compared": lambda: [Box(0.0) for _ in range(20_000)],
    "many ways to the same": lambda: functools.reduce(lambda inner, _: [inner, inner], range(60), []),
}


@pytest.mark.parametrize("name", REFUSED)
def test_values_that_cannot_be_compared_are_refused(name):
    holder = Holder(held := REFUSED[name](), lambda h: 1.0)
    for _ in range(2):
        with pytest.raises(
            StaleInstanceError, match=r"(?s)jit of Holder.scaled: self.*register_dataclass.*self"
        ) as info:
            holder.scaled(X)
        if name == "nested":
            assert r"self.held[0].value['a'] is of type generator, which may change unnoticed" in str(
                info.value
            )
        elif name not in (
            "deep",
            "many ways to the same",
            "more than may be compared",
            "list of compiled code",
        ):
            assert f"self.held is of type {type(held).__name__}, which " in str(info.value)
    holder.held = None
    np.testing.assert_array_equal(holder.scaled(X), X)
    if hasattr(held, "close"):
        held.close()


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.random.default_rng(0).normal,
        lambda: random.Random(0).random,
        lambda: functools.partial(next, itertools.cycle([1.0])),
    ],
)
def test_what_a_method_draws_while_traced_would_be_a_constant(make):
    holder = Holder(make(), lambda h: h())
    for _ in range(2):
        with pytest.raises(
            # An itertools.cycle cannot be pickled from CPython 3.14 on.
            StaleInstanceError,
            match=r"self\.held.*(state changed while the method was traced|is of type cycle, which may change)",
        ):
            holder.scaled(X)


class Trusted(Holder):
    """Is a value, because it says so."""

    def __eq__(self, other):
        return self is other

    def __hash__(self):
        return 1


def test_an_instance_with_an_equality_of_its_own_may_hold_anything():
    trusted = Trusted((generator(), 2.0), lambda h: h[1])
    check_follows(trusted, lambda: setattr(trusted, "held", (trusted.held[0], 3.0)))


def test_what_a_function_captures_may_be_anything():
    there = generator()
    holder = Holder(lambda: (there, 2.0)[1], lambda h: h())
    for _ in range(2):
        np.testing.assert_array_equal(holder.scaled(X), 2.0 * X)
    assert holder.scaled.cache_info().traces == 1
    holder.there = there
    with pytest.raises(StaleInstanceError, match=r"self\.there is of type generator"):
        holder.scaled(X)


def used(make, lead_back):
    holder = Holder(make(), lambda h: 1.0)
    holder.itself = lead_back(holder)
    holder.scaled(X), holder.scaled(X)
    return weakref.ref(holder)


@pytest.fixture(scope="module")
def few_objects():
    """What is there already need not be visited by each collection."""
    gc.collect()
    gc.freeze()


@pytest.mark.parametrize("name", IN_PLACE)
@pytest.mark.usefixtures("few_objects")
def test_a_snapshot_keeps_nothing_alive(name):
    there = used(IN_PLACE[name][0], lambda h: {h: Box(h)})
    gc.collect()
    assert there() is None


@pytest.mark.parametrize(
    "lead_back",
    [
        lambda h: [h],
        lambda h: lambda: h,
        lambda h: {1: h},
        lambda h: h.scaled,
        lambda h: weakref.ref(h),
        lambda h: {h},
    ],
)
def test_a_snapshot_of_what_leads_back_keeps_nothing_alive(lead_back):
    there = used(lambda: None, lead_back)
    gc.collect()
    assert there() is None

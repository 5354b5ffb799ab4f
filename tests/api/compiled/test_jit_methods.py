"""Jitted methods: the instance is a constant, and a method is traced again once any attribute has changed."""

import abc
import dataclasses
import enum
import functools
import gc
import sys
import threading
import warnings
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax

Y = np.ones(2)


class Model:
    """Reads in many ways; `count` is read by no method."""

    w = np.zeros(2)
    rate = 0.5

    def __init__(self, **attributes):
        self.count = 0
        self.rng = np.random.default_rng(0)  # may change unnoticed, but no method reads it
        self.__dict__.update(attributes)

    @ft.jit
    def loss(self, y):
        return fnp.sum((self.w - y) ** 2)

    @ft.jit
    def nested(self, y):
        return y * self.config.inner.scale

    @ft.jit
    def listed(self, y):
        for layer in self.layers:
            y = layer["w"] * y
        return y

    @property
    def double(self):
        return 2.0 * self.rate

    def scaled(self, y):
        return self.double * y

    @ft.jit
    def by_method(self, y):
        return self.scaled(y)

    @ft.jit
    def by_inner(self, y):
        return lax.fori_loop(0, 2, lambda i, c: c * self.rate, y)

    @ft.jit
    def by_jitted(self, y):
        return self.loss(y) + 1.0

    @ft.jit
    def by_name(self, y):
        return y * getattr(self, "rate")  # noqa: B009

    @ft.jit
    def by_dict(self, y):
        return y * vars(self)["factor"]

    @ft.jit
    def handed_on(self, y):
        return multiplied(self, y)

    @ft.jit
    def by_function(self, y):
        return self.activation(y)

    @ft.jit
    def by_object(self, y):
        return self.layer(y)


class Plain(Model):
    """The same without what cannot be looked into."""

    def __init__(self, **attributes):
        super().__init__(**attributes)
        del self.rng


def multiplied(model, y):
    return y * model.rate


class Layer:
    def __init__(self, w):
        self.w = w

    def __call__(self, x):
        return self.w * x


class Slots:
    __slots__ = ("__weakref__", "w")

    def __init__(self, w):
        self.w = w

    @ft.jit
    def scaled(self, y):
        return self.w * y


def closure(scale):
    def activation(y):
        return y * scale[0]

    return activation


def uncompiled(call):
    with ft.disable_jit():
        return call()


def follows(call):
    """A call computes as without `jit`, at once and when it is repeated."""
    for _ in range(3):
        for actual, expected in zip(*map(ft.tree_util.tree_leaves, (call(), uncompiled(call))), strict=True):
            np.testing.assert_array_equal(actual, expected)


#: The instance, the method, a change.
CHANGES = {
    "attribute": (lambda: Plain(w=np.zeros(2)), "loss", lambda m: setattr(m, "w", np.ones(2))),
    "attribute of the class hidden": (Plain, "loss", lambda m: setattr(m, "w", np.ones(2))),
    "array in place": (lambda: Plain(w=np.zeros(2)), "loss", lambda m: m.w.__setitem__(0, 5.0)),
    "array by +=": (lambda: Plain(w=np.zeros(2)), "loss", lambda m: m.w.__iadd__(1.0)),
    "strided array": (
        lambda: Plain(w=np.zeros((2, 3)).T[::-1, 0][:2]),
        "loss",
        lambda m: m.w.__setitem__(1, 5.0),
    ),
    "large array": (
        lambda: Plain(w=np.zeros((5_000, 2))),
        "loss",
        lambda m: m.w.__setitem__((4_999, 1), 5.0),
    ),
    "deleted": (lambda: Plain(w=np.ones(2)), "loss", lambda m: delattr(m, "w")),
    "immutable array": (lambda: Plain(w=fnp.zeros(2)), "loss", lambda m: setattr(m, "w", fnp.ones(2))),
    "dtype": (lambda: Plain(w=1), "loss", lambda m: setattr(m, "w", 1.0)),
    "sign of zero": (lambda: Plain(w=0.0), "loss", lambda m: setattr(m, "w", -0.0)),
    "nested": (
        lambda: Plain(config=SimpleNamespace(inner=SimpleNamespace(scale=2.0))),
        "nested",
        lambda m: setattr(m.config.inner, "scale", 3.0),
    ),
    "nested replaced": (
        lambda: Plain(config=SimpleNamespace(inner=SimpleNamespace(scale=2.0))),
        "nested",
        lambda m: setattr(m.config, "inner", SimpleNamespace(scale=3.0)),
    ),
    "list element": (
        lambda: Plain(layers=[{"w": 2.0}, {"w": 3.0}]),
        "listed",
        lambda m: m.layers[1].update(w=4.0),
    ),
    "list appended": (lambda: Plain(layers=[{"w": 2.0}]), "listed", lambda m: m.layers.append({"w": 4.0})),
    "deque": (
        lambda: Plain(layers=deque([OrderedDict(w=2.0)])),
        "listed",
        lambda m: m.layers.appendleft({"w": 4.0}),
    ),
    "through methods": (Plain, "by_method", lambda m: setattr(m, "rate", 0.25)),
    "in a loop's body": (Plain, "by_inner", lambda m: setattr(m, "rate", 0.25)),
    "through a jitted method": (Plain, "by_jitted", lambda m: setattr(m, "w", Y)),
    "by getattr": (Plain, "by_name", lambda m: setattr(m, "rate", 0.25)),
    "by vars": (lambda: Plain(factor=2.0), "by_dict", lambda m: setattr(m, "factor", 3.0)),
    "handed on": (lambda: Plain(rate=2.0), "handed_on", lambda m: setattr(m, "rate", 3.0)),
    "closure": (
        lambda: Plain(activation=closure([2.0])),
        "by_function",
        lambda m: m.activation.__closure__[0].cell_contents.__setitem__(0, 3.0),
    ),
    "partial": (
        lambda: Plain(activation=functools.partial(fnp.multiply, 2.0)),
        "by_function",
        lambda m: setattr(m, "activation", functools.partial(fnp.multiply, 3.0)),
    ),
    "object that is called": (
        lambda: Plain(layer=Layer(2.0)),
        "by_object",
        lambda m: setattr(m.layer, "w", 3.0),
    ),
    "method of another object": (
        lambda: Plain(activation=Layer(2.0).__call__),
        "by_function",
        lambda m: setattr(m.activation.__self__, "w", 3.0),
    ),
    "slot": (lambda: Slots(2.0), "scaled", lambda m: setattr(m, "w", 3.0)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_method_follows_its_instance(name):
    make, method, change = CHANGES[name]
    model = make()
    y = Y if name != "large array" else np.ones((5_000, 2))
    ways = [
        lambda: getattr(model, method)(y),
        lambda: ft.grad(lambda y: fnp.sum(getattr(model, method)(y)))(y),
        lambda: getattr(model, method)(y[:1]),
    ]
    for way in ways:
        follows(way)
    before = ways[0]()
    change(model)
    for way in ways:
        follows(way)
    if name not in ("attribute of the class hidden", "dtype", "sign of zero", "strided array"):
        assert str(ways[0]()) != str(before)
    assert getattr(model, method).cache_info().traces == 4
    np.testing.assert_array_equal(getattr(model, method).lower(y).compile()(y), ways[0]())


@pytest.mark.parametrize("name", CHANGES)
def test_another_instance_is_not_concerned(name):
    make, method, change = CHANGES[name]
    first, second = make(), make()
    y = Y if name != "large array" else np.ones((5_000, 2))
    getattr(first, method)(y)
    expected = getattr(second, method)(y)
    change(first)
    np.testing.assert_array_equal(getattr(second, method)(y), expected)


def test_unread_attributes_may_change():
    model = Model()
    for k in range(3):
        assert model.loss(Y) == 2.0
        model.count += 1
        model.rate = 2.0 * k
        model.history = [k]
    assert model.loss.cache_info().traces == 3


def test_attributes_that_tracing_sets_are_no_change():
    class Counting:
        traces = 0

        @functools.cached_property
        def weights(self):
            return np.ones(2)

        @ft.jit
        def total(self, y):
            self.traces += 1
            self.shapes = [*getattr(self, "shapes", ()), y.shape]
            return fnp.sum(self.weights * y)

    counting = Counting()
    for _ in range(3):
        assert counting.total(Y) == 2.0
        assert counting.total(np.ones(1)) == 2.0
    assert counting.traces == 2
    assert counting.shapes == [(2,), (1,)]
    counting.weights[0] = 2.0
    follows(lambda: counting.total(Y))


def test_many_changes_warn_once():
    model = Model()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for k in range(30):
            model.losses = [model.loss(Y)] * k
    (warning,) = caught
    assert warning.filename == __file__
    assert "jit of Model.loss: traced 10 times because self.losses had changed" in str(warning.message)
    assert "static_argnames='self'" in str(warning.message)


def test_methods_of_refs_follow_their_instance():
    class Scaling:
        scale = 2.0

        @ft.jit
        def apply(self, ref):
            ref[...] = self.scale * ref[...]

    scaling, ref = Scaling(), ft.new_ref(np.ones(2))
    scaling.apply(ref), scaling.apply(ref)
    scaling.scale = 3.0
    scaling.apply(ref)
    assert ref[...].tolist() == [12.0, 12.0]


def test_equal_values_are_not_a_change():
    model = Plain(w=np.zeros(2), layers=[{"w": 2.0}])
    model.loss(Y), model.listed(Y)
    model.w = np.zeros(2)
    model.layers = [{"w": 2.0}]
    assert model.loss(Y) == 2.0
    assert model.listed(Y).tolist() == [2.0, 2.0]
    assert model.loss.cache_info().traces == model.listed.cache_info().traces == 1
    model.w[0] = np.nan
    follows(lambda: model.loss(Y))
    model.w[0] = 0.0
    assert model.loss(Y) == 2.0


def test_a_class_that_changes(monkeypatch):
    model = Plain()
    model.by_method(Y)
    monkeypatch.setattr(Model, "scaled", lambda self, y: y)
    follows(lambda: model.by_method(Y))


# --- other ways to a method ---------------------------------------------------------------------------------


def test_transformations_of_methods():
    model = Plain(w=np.array([1.0, 2.0]))
    slope = ft.grad(model.loss)
    assert slope(Y).tolist() == [0.0, -2.0]
    before = ft.jit(lambda y: model.loss(y))
    assert before(Y) == 1.0
    assert ft.vmap(model.loss)(np.ones((3, 2))).tolist() == [1.0, 1.0, 1.0]
    assert ft.jit(lambda y: model.loss(y))(Y) == 1.0
    model.w = Y
    for f in (slope, lambda y: ft.vmap(model.loss)(y[None]), lambda y: ft.jit(lambda y: model.loss(y))(y)):
        follows(lambda: f(Y))  # noqa: B023
    assert before(Y) == 1.0  # a function that captures the model stays as it was traced


def test_bound_methods_and_callable_objects():
    layer = Layer(2.0)
    for f in (ft.jit(layer), ft.jit(layer.__call__)):
        layer.w = 2.0
        assert f(3.0) == 6.0 == ft.grad(f)(3.0) * 3.0
        layer.w = 4.0
        follows(lambda: f(3.0))  # noqa: B023
        assert f(3.0) == 12.0


class Owner:
    """Holds functions and objects that lead back to it."""

    def __init__(self):
        self.k = 2.0
        self.layer = Layer(self)
        self.slope = ft.grad(self.square)
        self.bound = self.square
        self.closed = lambda x: self.k * x
        self.compiled = ft.jit(self.square)
        self.ruled = ft.custom_vjp(lambda x: self.k * x)
        self.ruled.defvjp(lambda x: (self.k * x, None), lambda stored, ct: (self.k * ct,))
        self.partial = functools.partial(multiply, self)

    def square(self, x):
        return self.k * x

    def through(self, x):
        return self.layer.w.k * x


def multiply(owner, x):
    return owner.k * x


WAYS = {
    "layer": lambda self, x: self.layer.w.k * x,
    "slope": lambda self, x: self.slope(x),
    "bound": lambda self, x: self.bound(x),
    "closed": lambda self, x: self.closed(x),
    "compiled": lambda self, x: self.compiled(x),
    "ruled": lambda self, x: self.ruled(x),
    "partial": lambda self, x: self.partial(x),
}


@pytest.mark.parametrize("way", WAYS)
def test_attributes_that_lead_back_to_the_instance(way):
    kind = type("Kind", (Owner,), {"read": ft.jit(WAYS[way])})
    owner = kind()
    assert owner.read(1.0) == owner.read(1.0) == 2.0
    owner.k = 3.0
    follows(lambda: owner.read(1.0))
    assert owner.read(1.0) == 3.0


def test_an_instance_as_a_static_argument_stays_as_traced():
    for names in ({"static_argnums": 0}, {"static_argnames": "self"}):

        class Fixed:
            def __init__(self):
                self.w = 2.0

            @functools.partial(ft.jit, **names)
            def scaled(self, y):
                return self.w * y

        fixed = Fixed()
        assert fixed.scaled(1.0) == 2.0
        fixed.w = 3.0
        assert fixed.scaled(1.0) == 2.0
    plain = ft.jit(functools.partial(multiplied, model := Plain(rate=2.0)))
    assert plain(1.0) == 2.0
    model.rate = 3.0
    assert plain(1.0) == 2.0


def test_static_arguments_besides_the_instance():
    class Power:
        base = 2.0

        @functools.partial(ft.jit, static_argnames="n")
        def power(self, y, n):
            for _ in range(n):
                y = y * self.base
            return y

    p = Power()
    assert (p.power(1.0, 2), p.power(1.0, n=3)) == (4.0, 8.0)
    p.base = 3.0
    assert (p.power(1.0, 2), p.power(1.0, n=3)) == (9.0, 27.0)


class Color(enum.Enum):
    RED = 2.0

    @ft.jit
    def scaled(self, y):
        return self.value * y


@dataclasses.dataclass(frozen=True)
class Frozen:
    w: float
    handle: object = None

    @ft.jit
    def scaled(self, y):
        return self.w * y


class Pair(NamedTuple):
    a: float
    b: float

    @ft.jit
    def total(self, y):
        return self.a + self.b * y


@ft.tree_util.register_dataclass
@dataclasses.dataclass
class Registered:
    w: object

    @ft.jit
    def scaled(self, y):
        return self.w * y


def test_values_and_trees_as_instances():
    assert Color.RED.scaled(3.0) == 6.0
    assert Frozen(2.0, np.random.default_rng(0)).scaled(3.0) == 6.0
    assert Pair(1.0, 2.0).total(3.0) == 7.0
    registered = Registered(2.0)
    assert registered.scaled(3.0) == 6.0
    registered.w = 3.0
    assert registered.scaled(3.0) == 9.0


def test_class_methods_static_methods_and_locks():
    class Both:
        scale = 2.0

        def __init__(self):
            self.lock = threading.Lock()
            self.kind = float
            self.parent = self

        @classmethod
        def of_class(cls, y):
            return cls.scale * y

        @staticmethod
        @ft.jit
        def of_none(y):
            return 2.0 * y

        @ft.jit
        def all_of_it(self, y):
            with self.lock:
                return self.of_class(self.of_none(y)) + len(vars(self))

    both = Both()
    assert both.all_of_it(1.0) == both.all_of_it(1.0) == 7.0
    Both.scale = 3.0
    assert both.all_of_it(1.0) == both.all_of_it(1.0) == 9.0


class Descriptor:
    def __init__(self, value):
        self.value = value

    def __get__(self, instance, owner=None):
        return self if instance is None else self.value


class Described:
    rate = Descriptor(2.0)

    @ft.jit
    def scaled(self, y):
        return self.rate * y


def test_a_descriptor_that_holds_values():
    described = Described()
    assert described.scaled(1.0) == described.scaled(1.0) == 2.0
    Described.__dict__["rate"].value = 3.0
    assert described.scaled(1.0) == described.scaled(1.0) == 3.0


def used(method):
    """Weak references to an instance that was used, and to what it holds; all of it is held by circles only."""
    model = Plain(w=np.ones(2), layer=Layer(2.0))
    model.layer.owner = model
    model.activation = lambda y: y * model.rate
    model.by_itself = {"loss": model.loss, "layers": [model.layer]}
    getattr(model, method)(Y), getattr(model, method)(Y)
    return [weakref.ref(x) for x in (model, model.layer, model.activation)]


@pytest.mark.parametrize("method", ["loss", "by_object", "handed_on", "by_function"])
def test_instances_are_not_kept_alive(method):
    there = used(method)
    gc.collect()
    assert [r() for r in there] == [None] * 3


def test_many_threads():
    model = Plain(w=np.zeros(2))
    actual = []

    def run():
        for _ in range(50):
            actual.append(float(model.loss(Y)))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert actual == [2.0] * 200


class Scaled:
    """Read below transformations."""

    def __init__(self):
        self.scale = 1.0

    def loss(self, y):
        return fnp.sum(self.scale * y**2)

    @ft.jit
    def jitted(self, y):
        return fnp.sum(self.scale * y**2)

    def __call__(self, y):
        return self.loss(y)


@pytest.mark.parametrize(
    "transform",
    [
        ft.grad,
        ft.value_and_grad,
        ft.hessian,
        ft.jacfwd,
        ft.checkpoint,
        ft.jit,
        ft.vmap,
        lambda f: ft.vmap(ft.grad(ft.checkpoint(f))),
    ],
    ids=["grad", "value_and_grad", "hessian", "jacfwd", "checkpoint", "jit", "vmap", "stack"],
)
@pytest.mark.parametrize(
    "of", [lambda m: m.loss, lambda m: m.jitted, lambda m: m], ids=["plain", "jitted", "call"]
)
def test_a_method_below_transformations_is_watched(transform, of):
    model = Scaled()
    y = np.ones((2, 2))
    f = ft.jit(transform(of(model)))
    before = f(y)
    assert str(f(y)) == str(before)
    model.scale = 2.0
    follows(lambda: f(y))
    assert str(f(y)) != str(before)


def test_clear_cache_of_a_gradient_traces_its_method_again():
    model = Scaled()
    f = ft.jit(ft.grad(model.loss))
    np.testing.assert_array_equal(f(Y), 2.0 * Y)
    model.scale = 2.0
    f.clear_cache()
    np.testing.assert_array_equal(f(Y), 4.0 * Y)


def test_rules_below_transformations_are_not_instances():
    class Triple(ft.Function):
        @staticmethod
        def forward(x):
            return 3.0 * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, g):
            return 3.0 * g

    f = ft.jit(ft.grad(Triple.apply))
    assert f(1.0) == f(2.0) == 3.0


def test_instances_without_weak_references_are_traced_once():
    traces = []

    class Slots:
        __slots__ = ("w",)

        def __init__(self, w):
            self.w = w

        @ft.jit
        def times(self, x):
            traces.append(1)
            return x * self.w

    w, x = fnp.full(3, 2.0), np.ones(3)
    model = Slots(w)
    held = sys.getrefcount(model)
    for _ in range(5):
        np.testing.assert_array_equal(model.times(x), [2.0, 2.0, 2.0])
    np.testing.assert_array_equal(Slots(w).times(x), [2.0, 2.0, 2.0])  # as it reads the same array
    assert len(traces) == 1
    assert sys.getrefcount(model) == held
    method = model.times
    model.w = fnp.zeros(3)
    np.testing.assert_array_equal(model.times(x), [0.0, 0.0, 0.0])
    np.testing.assert_array_equal(method(x), [0.0, 0.0, 0.0])
    assert len(traces) == 3
    model.w = w
    np.testing.assert_array_equal(model.times(x), [2.0, 2.0, 2.0])
    for n in range(20):
        model.w = fnp.full(3, float(n))
        np.testing.assert_array_equal(model.times(x), np.full(3, float(n)))


class Solver(abc.ABC):
    """A class with abstract methods, whose method reads all of `self`."""

    def __init__(self, rate):
        self.rate = rate

    @abc.abstractmethod
    def direction(self, x): ...

    def step(self, x):
        return update(self, x)


class Descent(Solver):
    def direction(self, x):
        return -2.0 * x


def update(solver, x):
    return x + solver.rate * solver.direction(x)


def test_methods_of_abstract_classes():
    solver = Descent(0.25)
    step = ft.jit(solver.step)
    np.testing.assert_array_equal(step(np.ones(2)), [0.5, 0.5])
    solver.rate = 0.5
    np.testing.assert_array_equal(step(np.ones(2)), [0.0, 0.0])


class Rules(NamedTuple):
    init: Callable
    update: Callable


class MoreRules(Rules):
    """A subclass, whose instances have a dictionary of their own, which is empty."""


def test_named_tuples_of_functions():
    class Loop:
        def __init__(self, rules):
            self.rules = rules

        def step(self, x):
            return self.rules.update(x)

    loop = Loop(MoreRules(None, lambda x: 2.0 * x))
    step = ft.jit(loop.step)
    assert step(3.0) == 6.0
    loop.rules = MoreRules(None, lambda x: 3.0 * x)
    assert step(3.0) == 9.0

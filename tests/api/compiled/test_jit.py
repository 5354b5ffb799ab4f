"""`jit`: arguments of all kinds, caches, what is captured, and what is left unchanged."""

import functools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp


class Point(NamedTuple):
    x: object
    y: object


@pytest.fixture
def traces():
    """A list, and a decorator that appends to it whenever the Python function runs."""
    runs = []

    def counted(f):
        @functools.wraps(f)
        def run(*args, **kwargs):
            runs.append(f.__name__)
            return f(*args, **kwargs)

        return run

    counted.runs = runs
    return counted


def test_values_dtypes_and_type_of_the_result():
    x = np.linspace(0.0, 1.0, 7)
    out = ft.jit(lambda x: fnp.sin(x) * 2 + x[::-1])(x)
    assert type(out) is ft.Array
    np.testing.assert_allclose(out, np.sin(x) * 2 + x[::-1], rtol=1e-14)


@pytest.mark.parametrize("dtype", "bBhHiIlLfdFD?")
def test_python_numbers_are_weak_as_in_numpy(dtype):
    x = np.array([0, 1, 2]).astype(dtype)
    for number in (2, 0.5, 1j):
        expected = x + number
        for out in (
            ft.jit(lambda x, n: x + n)(x, number),
            ft.jit(lambda x: x + number)(x),  # noqa: B023
            ft.jit(lambda x, n: (x, n)[0] + (x, n)[1])(fnp.asarray(x), number),
        ):
            assert out.dtype == expected.dtype, number
            np.testing.assert_allclose(out, expected)


def test_trees_in_and_out():
    @ft.jit
    def f(p, d, *rest, scale=1.0):
        return {"sum": p.x + p.y * scale, "parts": [d["a"], (d["b"], None)]}, Point(*rest)

    out, point = f(Point(1.0, np.arange(3.0)), {"a": np.float32(2), "b": 3}, 5.0, [6.0, ()], scale=2.0)
    np.testing.assert_array_equal(out["sum"], [1.0, 3.0, 5.0])
    assert out["parts"][1][1] is None
    assert out["parts"][0].dtype == np.float32
    assert out["parts"][1][0].dtype == np.int64
    assert point.x == 5.0
    assert point.y[1] == ()


def test_one_trace_for_each_type(traces):
    f = ft.jit(traces(lambda x, n: x * n))
    for x in (np.ones(3), np.zeros(3), fnp.ones(3)):
        f(x, 2.0)
        f(x, 7.0)
    assert len(traces.runs) == 1
    f(np.ones(4), 2.0)
    f(np.ones(3, "f4"), 2.0)
    f(np.ones(3), 2)
    f(np.ones(3), np.float64(2))
    assert len(traces.runs) == 5
    info = f.cache_info()
    assert (info.traces, info.misses, info.hits) == (5, 5, 5)
    f.clear_cache()
    f(np.ones(3), 2.0)
    assert len(traces.runs) == 6


def test_keyword_arguments_in_any_order(traces):
    f = ft.jit(traces(lambda x, *, a=1.0, b=2.0: x * a - b))
    assert f(1.0, a=3.0, b=4.0) == -1.0
    assert f(1.0, b=4.0, a=3.0) == -1.0
    assert len(traces.runs) == 1
    assert f(1.0) == -1.0
    assert f(x=1.0) == -1.0


def test_static_arguments(traces):
    @functools.partial(ft.jit, static_argnums=(1, -1), static_argnames="flag")
    @traces
    def power(x, n, flag=False, how=None):
        assert type(n) is int
        assert how is None or callable(how)
        y = x**n if not flag else -(x**n)
        return how(y) if how else y

    x = np.arange(3.0)
    np.testing.assert_array_equal(power(x, 2), x**2)
    np.testing.assert_array_equal(power(x, 3), x**3)
    np.testing.assert_array_equal(power(x, n=3), x**3)
    np.testing.assert_array_equal(power(x, 2, flag=True), -(x**2))
    np.testing.assert_array_equal(power(x, 2, True), -(x**2))
    np.testing.assert_allclose(power(x, 2, how=fnp.exp), np.exp(x**2), rtol=1e-14)
    before = len(traces.runs)
    power(x, 2)
    power(x, 2, True)
    assert len(traces.runs) == before


def test_static_values_that_are_equal_but_of_other_types():
    @functools.partial(ft.jit, static_argnums=1)
    def f(x, n):
        return x * n

    x = np.arange(3)
    assert f(x, 1).dtype == (x * 1).dtype
    assert f(x, 1.0).dtype == (x * 1.0).dtype
    assert f(x, True).dtype == (x * True).dtype


def test_static_values_that_are_equal_within_a_tuple():
    f = ft.jit(lambda x, n: x * n[0], static_argnums=1)
    x = np.arange(3)
    for n, dtype in (((2,), int), ((2.0,), float), ((True,), int)):
        assert f(x, n).dtype == dtype


def test_static_zeros_keep_their_signs_and_nan_is_traced_once():
    f = ft.jit(lambda x, n: fnp.copysign(x, n), static_argnums=1)
    assert f(1.0, 0.0) == 1.0
    assert f(1.0, -0.0) == -1.0
    traced = f.cache_info().traces
    for _ in range(3):
        f(1.0, float("nan"))
    assert f.cache_info().traces == traced + 1


def test_donated_arguments_are_accepted_and_not_touched():
    x = np.arange(3.0)
    f = ft.jit(lambda x: x + 1, donate_argnums=0)
    np.testing.assert_array_equal(f(x), [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(x, [0.0, 1.0, 2.0])
    assert ft.jit(donate_argnames="x")(lambda x: x)(1.0) == 1.0


def test_methods():
    class Model:
        def __init__(self, w):
            self.w = w

        @ft.jit
        def predict(self, x):
            return fnp.sum(self.w * x)

        @functools.partial(ft.jit, static_argnums=2)
        def power(self, x, n):
            return self.w * x**n

        @staticmethod
        @ft.jit
        def twice(x):
            return 2 * x

    a, b = Model(np.ones(3)), Model(np.full(3, 5.0))
    x = np.arange(3.0)
    for _ in range(2):
        assert a.predict(x) == 3.0
        assert b.predict(x) == 15.0
    np.testing.assert_array_equal(b.power(x, 2), 5 * x**2)
    np.testing.assert_array_equal(b.power(x, n=3), 5 * x**3)
    np.testing.assert_array_equal(ft.grad(b.predict)(x), [5.0, 5.0, 5.0])
    np.testing.assert_array_equal(a.twice(x), 2 * x)
    assert a.predict.cache_info().traces == 1


def test_methods_of_trees_take_self_as_an_argument(traces):
    @ft.tree_util.register_dataclass
    @dataclass
    class Layer:
        w: object
        b: object

        @ft.jit
        @traces
        def __call__(self, x):
            return x @ self.w + self.b

    x = np.ones((2, 3))
    for scale in (1.0, 2.0):
        layer = Layer(np.full((3, 2), scale), np.zeros(2))
        np.testing.assert_array_equal(layer(x), np.full((2, 2), 3 * scale))
    assert len(traces.runs) == 1
    g = ft.grad(lambda layer: fnp.sum(layer(x)))(layer)
    np.testing.assert_array_equal(g.w, np.full((3, 2), 2.0))
    np.testing.assert_array_equal(g.b, [2.0, 2.0])


def test_captured_arrays_are_constants():
    w = np.arange(3.0)
    f = ft.jit(lambda x: x * w)
    np.testing.assert_array_equal(f(1.0), [0.0, 1.0, 2.0])
    w[:] = 7.0
    np.testing.assert_array_equal(f(1.0), [0.0, 1.0, 2.0])


def test_results_never_alias_arguments():
    x = np.arange(6.0).reshape(2, 3)
    same, view, twice, const = ft.jit(lambda x: (x, x.T, (x, x), x * 0 + 1))(x)
    for out in (same, view, *twice, const):
        assert not np.shares_memory(out, x)
        assert not out.flags.writeable
    assert not np.shares_memory(twice[0], twice[1])
    x[:] = -1
    np.testing.assert_array_equal(same, np.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(view, np.arange(6.0).reshape(2, 3).T)


def test_strange_layouts_of_arguments():
    base = np.arange(24.0).reshape(4, 6)
    f = ft.jit(lambda x: fnp.cumsum(x[:, None], 0)[-1] if False else x.sum(0) + 2 * x)
    for x in (
        base[::2, ::-1],
        base.T[1:5, :4].T,
        np.asfortranarray(base),
        base[:0],
        np.broadcast_to(1.0, (2, 6)),
    ):
        np.testing.assert_allclose(f(x), x.sum(0) + 2 * x)
    frozen = np.arange(6.0)
    frozen.flags.writeable = False
    np.testing.assert_array_equal(f(frozen[None]), 3 * frozen[None])


def test_subclasses_and_byte_orders_of_arguments():
    f = ft.jit(lambda x: x + 1)
    x = np.arange(3.0)
    for _ in range(2):
        out = f(x.astype(">f8"))
        assert out.dtype == float
        np.testing.assert_array_equal(out, x + 1)
    assert f.cache_info().compiles <= 1
    np.testing.assert_array_equal(ft.grad(lambda v: fnp.sum(v**2))(x.astype(">f8")), 2 * x)
    np.testing.assert_array_equal(ft.jit(lambda v: v * x.astype(">f8"))(x), x * x)
    np.testing.assert_array_equal(f(np.float64(2.0)), 3.0)
    np.testing.assert_array_equal(f(x.view(np.recarray)), x + 1)


def test_jit_inside_jit_is_one_kernel():
    inner = ft.jit(lambda x: fnp.sin(x) * 2)
    outer = ft.jit(lambda x: inner(x) + inner(x + 1))
    x = np.linspace(0, 1, 33)
    np.testing.assert_allclose(outer(x), 2 * np.sin(x) + 2 * np.sin(x + 1), rtol=1e-14)
    assert inner.cache_info().traces == 1
    assert sum(outer.cache_info().routes.values()) == 1


def test_fifty_batch_sizes_compile_once():
    w, b = np.full((5, 3), 0.1), np.zeros(3)

    @ft.jit
    def model(w, b, x):
        return fnp.mean(fnp.tanh(x @ w + b) ** 2)

    derivative = ft.jit(ft.grad(model))
    for n in (90, *range(100, 150)):  # products of fewer numbers are loops, not BLAS: another kernel
        x = np.ones((n, 5))
        np.testing.assert_allclose(model(w, b, x), np.mean(np.tanh(x @ w + b) ** 2), rtol=1e-12)
        derivative(w, b, x)
        ft.grad(model)(w, b, x)
        if n == 90:
            first = model.cache_info(), derivative.cache_info()
    last = model.cache_info(), derivative.cache_info()
    assert [i.compiles for i in last] == [i.compiles for i in first]
    assert [i.traces for i in last] == [i.traces + 50 for i in first]


def test_another_number_in_the_program_compiles_nothing():
    def step(rate):
        return ft.jit(lambda x: fnp.exp(x * rate) - rate)

    x = np.linspace(0, 1, 40)
    step(0.123)(x)
    second = step(0.456)
    np.testing.assert_allclose(second(x), np.exp(x * 0.456) - 0.456, rtol=1e-13)
    assert second.cache_info().compiles == 0


def test_fresh_grad_of_a_known_function_neither_traces_nor_compiles():
    @ft.jit
    def f(x, y):
        return fnp.sum(fnp.sin(x) * y)

    x, y = np.linspace(0, 1, 37), np.linspace(2, 3, 37)
    for transformed in (
        lambda: ft.grad(f)(x, y),
        lambda: ft.grad(f, (0, 1))(x, y),
        lambda: ft.value_and_grad(f)(x, y),
        lambda: ft.jvp(f, (x, y), (y, x)),
        lambda: ft.vmap(ft.grad(f))(x[:, None], y[:, None]),
        lambda: ft.hessian(f)(x, y),
    ):
        transformed()
        before = f.cache_info()
        transformed()
        after = f.cache_info()
        assert (after.traces, after.compiles, after.routes) == (before.traces, before.compiles, before.routes)
        assert after.hits == before.hits + 1


def test_grad_of_jit_and_jit_of_grad_run_one_kernel_and_vjp_of_jit_two():
    f = ft.jit(lambda x: fnp.sum(fnp.exp(-x * x) * fnp.sin(x)))
    x = np.linspace(0, 1, 50)
    ft.grad(f)(x)
    assert sum(f.cache_info().routes.values()) == 1
    ft.vjp(f, x)[1](1.0)
    assert sum(f.cache_info().routes.values()) == 3
    g = ft.jit(ft.grad(lambda x: fnp.sum(fnp.exp(-x * x) * fnp.sin(x))))
    g(x)
    assert g.cache_info().routes == {"llvm": 1}


def test_jit_objects_of_one_function_share_traces(traces):
    @traces
    def f(x):
        return x * 2

    ft.jit(f)(1.0)
    ft.jit(f)(2.0)
    assert len(traces.runs) == 1
    ft.jit(f, static_argnums=0)(2.0)
    assert len(traces.runs) == 2


def test_config_is_part_of_the_key(traces):
    f = ft.jit(traces(lambda x: x * 2))
    f(1.0)
    with ft.config.patch(strict=True):
        f(1.0)
    with ft.config.patch(backend="python"):
        assert f(1.0) == 2.0
    assert f.cache_info().routes["python"] == 1
    assert len(traces.runs) == 3


def test_disable_jit():
    seen = []

    @ft.jit
    def f(x):
        seen.append(x)
        return 2 * x if x > 0 else -x

    with ft.disable_jit():
        assert f(3.0) == 6.0
        assert ft.grad(f)(-3.0) == -1.0
        assert float(seen[0]) == 3.0
    with pytest.raises(ft.errors.TracerBoolConversionError):
        f(3.0)


def test_clear_caches(traces):
    f = ft.jit(traces(lambda x: x * 2))
    f(1.0)
    ft.clear_caches()
    assert f(1.0) == 2.0
    assert len(traces.runs) == 2


def test_lower_shows_and_compiles():
    @ft.jit
    def f(x, y):
        return {"out": fnp.sin(x) @ y}

    lowered = f.lower(np.ones((2, 3)), ft.ShapeDtypeStruct((3,), "float64"))
    assert [e.primitive.name for e in lowered.jaxpr.eqns] == ["sin", "dot_general"]
    assert "def f(" in lowered.as_text("python")
    compiled = lowered.compile()
    np.testing.assert_allclose(
        compiled(np.ones((2, 3)), np.ones(3))["out"], np.full(2, 3 * np.sin(1)), rtol=1e-14
    )
    with pytest.raises(
        ft.errors.ArgumentError, match=r"argument leaf 1 is f64\[4\], but it was compiled for f64\[3\]"
    ):
        compiled(np.ones((2, 3)), np.ones(4))
    with pytest.raises(ft.errors.ArgumentError, match="structure"):
        compiled(np.ones((2, 3)))


def test_functions_without_arguments_or_results():
    assert ft.jit(lambda: 3.0)() == 3.0
    assert ft.jit(lambda x: None)(1.0) is None
    assert ft.jit(lambda x: ())(1.0) == ()
    np.testing.assert_array_equal(ft.jit(lambda: fnp.zeros(3))(), np.zeros(3))
    assert ft.jit(functools.partial(lambda a, b: a - b, b=2.0))(5.0) == 3.0


def test_as_a_decorator_it_keeps_name_and_docstring():
    @ft.jit
    def f(x):
        """The docstring."""
        return x

    assert (f.__name__, f.__doc__) == ("f", "The docstring.")
    assert repr(f) == "<jit of f>"
    assert ft.jit(static_argnames="n")(lambda x, n: x * n)(2.0, n=3) == 6.0


class Pair(NamedTuple):
    first: object
    second: object


class Checked:
    """A tree whose constructor takes arrays only."""

    def __init__(self, value):
        if type(value) is int:
            raise TypeError("want an array")
        self.value = value


ft.tree_util.register_pytree_node(Checked, lambda c: ((c.value,), None), lambda _, parts: Checked(*parts))


def test_later_calls_return_the_structure_of_the_first():
    for make in (Pair, lambda a, b: (a, b), lambda a, b: [a, b], lambda a, b: (a, (b,))):
        f = ft.jit(lambda x, make=make: make(x, x + 1.0))
        first, later = f(1.0), f(1.0)
        assert type(first) is type(later)
        assert repr(first) == repr(later)
    checked = ft.jit(lambda x: Checked(2.0 * x))
    assert [float(checked(x).value) for x in (1.0, 2.0)] == [2.0, 4.0]


def test_a_captured_view_of_a_writable_array_is_copied():
    base = np.array([1.0, 2.0])
    view = np.broadcast_to(base, (3, 2))
    f = ft.jit(lambda x: fnp.sum(x * view))
    assert f(1.0) == 9.0
    base[0] = 100.0
    assert f(1.0) == 9.0
    assert ft.grad(f)(1.0) == 9.0


def test_equal_callables_share_nothing():
    @dataclass(frozen=True)
    class Shift:
        by: float

        def __call__(self, x):
            return fnp.asarray(self.by)

    shifts = Shift(1), Shift(1.0)
    assert shifts[0] == shifts[1]
    assert [ft.jit(s)(0.0).dtype.kind for s in shifts] == ["i", "f"]


def test_a_leaked_value_is_refused():
    leaked = []
    ft.jit(lambda x: leaked.append(x) or x)(1.0)
    with pytest.raises(ft.errors.UnexpectedTracerError):
        ft.jit(lambda x: 2.0 * x)(leaked[0])


def test_a_static_argument_counted_from_the_end_of_a_method():
    class Model:
        @functools.partial(ft.jit, static_argnums=-1)
        def scaled(self, *args):
            return args[0] * (2.0 if args[-1] else 3.0)

    assert Model().scaled(1.0, True) == 2.0
    assert Model().scaled(1.0, False) == 3.0


def test_classes_without_the_name_of_a_module():
    """As those of functions that Cython 3.1 compiles, where it is a descriptor."""

    class Compiled:
        def __call__(self, x):
            return x * x

    Compiled.__module__ = property(lambda self: "a_library")
    square = Compiled()
    x = np.array([1.0, 2.0])
    for f in (square, lambda x: square(x)):
        np.testing.assert_array_equal(ft.jit(f)(x), [1, 4])
        np.testing.assert_array_equal(ft.jit(ft.grad(lambda x: f(x).sum()))(x), [2, 4])  # noqa: B023
        np.testing.assert_array_equal(ft.vmap(f)(x), [1, 4])

    @ft.custom_jvp
    def rule(x):
        return square(x)

    rule.defjvp(lambda primals, tangents: (square(primals[0]), 7.0 * tangents[0]))
    assert ft.jit(ft.grad(rule))(3.0) == 7.0

"""Host calls: values, transformations, order, errors, memory."""

import threading
from collections import namedtuple

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.arrays.array import Array
from functrans.core.primitive import Primitive
from functrans.core.trace import current_trace, eval_trace
from functrans.errors import (
    ArgumentError,
    CallbackError,
    ImmutableArrayError,
    NoRuleError,
    UnsupportedDtypeError,
)

SCALAR = ft.ShapeDtypeStruct((), float)
X = np.array([0.5, -1.0, 2.0])


def like(x):
    return ft.ShapeDtypeStruct(fnp.shape(x), getattr(x, "dtype", float))


def plain(f):
    return f


def pairs():
    """A record of what was called, and an io callback that writes there and gives the value back."""
    seen = []

    def note(tag, x):
        def write(x):
            seen.append((tag, np.asarray(x).tolist()))
            return x

        return ft.io_callback(write, like(x), x)

    return seen, note


# --- values -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [plain, ft.jit])
@pytest.mark.parametrize("call", [ft.pure_callback, ft.io_callback])
def test_value(call, how):
    f = how(lambda x: 2.0 * call(np.cosh, like(x), x + 1.0))
    actual = f(X)
    assert type(actual) is Array
    np.testing.assert_allclose(actual, 2 * np.cosh(X + 1))


@pytest.mark.parametrize("how", [plain, ft.jit])
def test_trees_of_arguments_and_results(how):
    def host(pair, *, table, order, factor=1.0):
        assert order == "C"
        assert isinstance(pair, tuple)
        return {"sum": pair[0] + pair[1] + table["a"], "count": np.int32(3), "parts": [factor * pair[0]]}

    types = {"sum": ft.ShapeDtypeStruct((3,), "float64"), "count": np.zeros((), np.int32), "parts": [X]}
    f = how(
        lambda x: ft.pure_callback(host, types, (x, 1.0), table={"a": x}, order="C", factor=np.float64(2))
    )
    actual = f(X)
    np.testing.assert_array_equal(actual["sum"], 2 * X + 1)
    assert actual["count"] == 3
    assert actual["count"].dtype == np.int32
    np.testing.assert_array_equal(actual["parts"][0], 2 * X)


def test_no_arguments_and_no_results():
    seen = []
    f = ft.jit(
        lambda x: (ft.io_callback(lambda: seen.append(1), None), x + ft.pure_callback(lambda: 3.0, SCALAR))
    )
    nothing, y = f(1.0)
    assert nothing is None
    assert y == 4.0
    assert seen == [1]


@pytest.mark.parametrize("how", [plain, ft.jit])
def test_arguments_of_a_callback(how):
    given = []
    how(lambda x, y: ft.io_callback(lambda *xs: given.extend(xs), None, x, y, 2.0, 3, True))(X, np.float32(1))
    assert all(type(x) is Array for x in given)
    assert [x.dtype.name for x in given] == ["float64", "float32", "float64", "int64", "bool"]
    assert [x.shape for x in given] == [(3,), (), (), (), ()]
    with pytest.raises(ImmutableArrayError):
        given[0][0] = 1.0


@pytest.mark.parametrize("kind", ["b", "i", "f", "c"])
def test_python_numbers_take_the_dtype_that_was_promised(kind):
    value = {"b": True, "i": 1, "f": 1.5, "c": 1j}[kind]
    for dtype in ("bool", "int8", "uint32", "float32", "complex64"):
        f = ft.jit(lambda dtype=dtype: ft.pure_callback(lambda: value, ft.ShapeDtypeStruct((), dtype)))
        if "biufc".index(kind) <= "biufc".index(np.dtype(dtype).kind) and (dtype != "uint32" or kind in "bi"):
            assert f() == value
            assert f().dtype == dtype
        else:
            with pytest.raises(CallbackError):
                f()


def test_nothing_is_nothing():
    for made in (None, (), [], {}):
        for expected in (None, (), {}):
            assert ft.io_callback(lambda made=made: made, expected) == expected
        with pytest.raises(CallbackError, match="declares an array"):
            ft.io_callback(lambda made=made: made, SCALAR)
    with pytest.raises(CallbackError, match="returned an array"):
        ft.io_callback(lambda: 1.0, None)


def test_masks_are_not_lost():
    with pytest.raises(ArgumentError, match="mask"):
        ft.pure_callback(
            lambda: np.ma.masked_array(np.ones(2), [True, False]), ft.ShapeDtypeStruct((2,), float)
        )


def test_sequences_of_any_kind_fit_and_dictionaries_do_not():
    Pair = namedtuple("Pair", "first second")
    for made in ((1.0, 2.0), [1.0, 2.0], Pair(1.0, 2.0)):
        for expected in ((SCALAR, SCALAR), [SCALAR, SCALAR], Pair(SCALAR, SCALAR)):
            actual = ft.pure_callback(lambda made=made: made, expected)
            assert type(actual) is type(expected)
            assert [float(x) for x in actual] == [1.0, 2.0]
    inside = ft.pure_callback(lambda: [{"a": 1.0}, [2.0]], ({"a": SCALAR}, (SCALAR,)))
    assert ft.tree_util.tree_leaves(inside) == [1.0, 2.0]
    with pytest.raises(CallbackError, match="declares the structure"):
        ft.pure_callback(lambda: [{"b": 1.0}, [2.0]], ({"a": SCALAR}, (SCALAR,)))
    values, vectors = ft.pure_callback(np.linalg.eigh, (X, np.zeros((3, 3))), np.diag(X))
    np.testing.assert_allclose(vectors @ np.diag(values) @ vectors.T, np.diag(X), atol=1e-14)
    for made in ({"a": 1.0}, (1.0,), (1.0, (2.0,)), 1.0, None):
        with pytest.raises(CallbackError, match="declares the structure"):
            ft.pure_callback(lambda made=made: made, (SCALAR, SCALAR))


# --- memory -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [plain, ft.jit])
def test_values_stored_by_a_callback_never_change(how):
    stored = []

    def f(x):
        y = fnp.cumsum(fnp.sin(x) * 2.0)
        ft.debug.callback(stored.append, x)
        ft.debug.callback(stored.append, y)
        z = y + 1.0
        ft.debug.callback(stored.append, z)
        return z * z

    g = how(f)
    random = np.random.default_rng(0)
    inputs, copies = [], []
    for _ in range(4):
        x = random.normal(size=100)
        inputs.append(x)
        g(x)
        copies += [np.array(a) for a in stored[-3:]]
    for x in inputs:
        x[:] = np.nan
    g(random.normal(size=100))
    for a, b in zip(stored, copies):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("how", [plain, ft.jit])
def test_results_are_copied(how):
    buffer = np.zeros(3)

    def host(x):
        buffer[:] = x
        return buffer

    f = how(lambda x: ft.io_callback(host, like(x), x))
    first = f(X)
    second = f(2 * X)
    buffer[:] = 99.0
    np.testing.assert_array_equal(first, X)
    np.testing.assert_array_equal(second, 2 * X)


@pytest.mark.parametrize("how", [plain, ft.jit])
def test_the_argument_may_be_the_result(how):
    x = X.copy()
    y = how(lambda x: ft.pure_callback(lambda x: x, like(x), x))(x)
    x[:] = 0.0
    np.testing.assert_array_equal(y, X)


def test_results_of_any_layout():
    host = lambda x: np.asarray(x).T[::-1]
    f = ft.jit(lambda x: ft.pure_callback(host, ft.ShapeDtypeStruct((3, 2), float), x) * 2.0)
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(f(x), 2.0 * x.T[::-1])


# --- errors -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [plain, ft.jit, lambda f: ft.jit(ft.jit(f)), lambda f: ft.jit(ft.vmap(f))])
@pytest.mark.parametrize(
    "kind", [ZeroDivisionError, IndexError, np.linalg.LinAlgError, KeyError, StopIteration, ArgumentError]
)
def test_exceptions_arrive_as_themselves_with_the_line(kind, how):
    error = kind("of the host")

    def host(x):
        raise error

    def f(x):
        return 2.0 * ft.pure_callback(host, SCALAR, x + 1.0, vmap_method="sequential")  # the line

    with pytest.raises(kind) as caught:
        how(f)(X if "vmap" in how.__code__.co_names else 1.0)
    assert caught.value is error
    (note,) = error.__notes__
    assert "in the callback 'host' of pure_callback, called" in note
    assert "# the line" in note
    assert "test_callback.py" in note


def test_exceptions_inside_a_primitive_that_calls_back():
    error = IndexError("of the host")

    def host(x):
        raise error

    loop_p = Primitive("loop", lambda x: x, lambda x: ft.pure_callback(host, SCALAR, x))
    with pytest.raises(IndexError) as caught:
        ft.jit(lambda x: loop_p.bind(x) + 1.0)(1.0)
    assert caught.value is error


def test_interrupts_pass_untouched():
    error = KeyboardInterrupt()

    def host():
        raise error

    with pytest.raises(KeyboardInterrupt):
        ft.jit(lambda: ft.io_callback(host, None))()
    assert not hasattr(error, "__notes__")


@pytest.mark.parametrize("how", [plain, ft.jit])
def test_results_of_other_types_than_declared(how):
    def host(x):
        return {"a": [np.ones(2), np.ones(3, np.float32)]}

    def f(x, *types):
        return ft.pure_callback(host, {"a": list(types)}, x)["a"]  # the line

    two, three = ft.ShapeDtypeStruct((2,), float), ft.ShapeDtypeStruct((3,), "float32")
    how(lambda x: f(x, two, three))(1.0)
    with pytest.raises(CallbackError) as caught:
        how(lambda x: f(x, two, two))(1.0)
    for part in ("'host'", "result['a'][1]", "(3,)", "float32", "(2,)", "float64", "# the line"):
        assert part in str(caught.value)
    with pytest.raises(ValueError, match=r"np.float64"):
        how(lambda x: f(x, two, ft.ShapeDtypeStruct((3,), float)))(1.0)


def test_arguments_that_cannot_be_used():
    with pytest.raises(ArgumentError, match="expected a function"):
        ft.pure_callback(3.0, SCALAR)
    with pytest.raises(ArgumentError, match="sharding"):
        ft.pure_callback(np.sin, SCALAR, 1.0, sharding="here")
    with pytest.raises(ArgumentError, match="result_shape_dtypes\\[0\\]"):
        ft.io_callback(np.sin, (float,), 1.0)
    with pytest.raises(UnsupportedDtypeError):
        ft.pure_callback(np.sin, ft.ShapeDtypeStruct((), np.longdouble), 1.0)
    with pytest.raises(UnsupportedDtypeError):
        ft.pure_callback(np.sin, SCALAR, np.longdouble(1.0))
    with pytest.raises(ValueError, match="vmap_method"):
        ft.pure_callback(np.sin, SCALAR, 1.0, vmap_method="parallel")


# --- vmap ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "how", [ft.vmap, lambda *a: ft.jit(ft.vmap(*a)), lambda f, *a: ft.vmap(ft.jit(f), *a)]
)
@pytest.mark.parametrize(
    ("method", "shapes", "calls"),
    [
        ("sequential", ((3,), ()), 4),
        ("sequential_unrolled", ((3,), ()), 4),
        ("expand_dims", ((4, 3), (1,)), 1),
        ("broadcast_all", ((4, 3), (4,)), 1),
        ("legacy_vectorized", ((4, 3), ()), 1),
    ],
)
def test_methods_of_vmap(method, shapes, calls, how):
    seen = []

    def host(x, s):
        seen.append((x.shape, s.shape))
        s = np.asarray(s)
        return x * (s[..., None] if s.ndim else s)

    f = lambda x, s: ft.pure_callback(host, like(x), x, s, vmap_method=method) + 1.0
    x = np.random.default_rng(0).normal(size=(3, 4))
    actual = how(f, (1, None))(x, 2.0)
    np.testing.assert_allclose(actual, 2 * x.T + 1)
    assert seen == [shapes] * calls


def test_vmap_twice():
    x = np.arange(24.0).reshape(2, 3, 4)
    y = np.arange(3.0)
    for method in ("sequential", "broadcast_all"):
        host = lambda x, y: x.sum(-1) * y
        f = lambda x, y: ft.pure_callback(host, SCALAR, x, y, vmap_method=method)  # noqa: B023
        g = ft.vmap(ft.vmap(f), in_axes=(0, None))
        np.testing.assert_array_equal(g(x, y), x.sum(-1) * y)
        np.testing.assert_array_equal(ft.jit(g)(x, y), x.sum(-1) * y)


def test_vmap_without_a_method():
    with pytest.raises(NotImplementedError, match="vmap_method") as caught:
        ft.vmap(lambda x: ft.pure_callback(np.sin, SCALAR, x))(X)
    assert isinstance(caught.value, NoRuleError)
    actual = ft.vmap(lambda x, y: x + ft.pure_callback(np.sin, SCALAR, y), in_axes=(0, None))(X, 1.0)
    np.testing.assert_allclose(actual, X + np.sin(1))


def test_vmap_over_nothing():
    f = ft.vmap(lambda x: ft.pure_callback(np.sin, SCALAR, x, vmap_method="sequential"))
    assert f(np.zeros(0)).shape == (0,)


def test_vmap_of_io():
    seen, note = pairs()
    np.testing.assert_array_equal(ft.vmap(lambda x: note("a", x))(X), X)
    assert seen == [("a", 0.5), ("a", -1.0), ("a", 2.0)]
    ordered = lambda x: ft.io_callback(np.sin, SCALAR, x, ordered=True)
    for how in (ft.vmap, lambda f: ft.jit(ft.vmap(f)), lambda f: ft.vmap(ft.jit(f))):
        with pytest.raises(ValueError, match="ordered=True"):
            how(ordered)(X)


# --- derivatives --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", [ft.pure_callback, ft.io_callback])
def test_callbacks_have_no_derivative(call):
    f = lambda x: call(np.sin, SCALAR, x)
    transformed = (ft.grad(f), ft.grad(ft.jit(f)), ft.jit(ft.grad(f)), lambda x: ft.jvp(f, (x,), (x,)))
    for g in transformed:
        with pytest.raises(CallbackError, match="custom_jvp or custom_vjp") as caught:
            g(1.0)
        assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("how", [plain, ft.jit])
@pytest.mark.parametrize("call", [ft.pure_callback, ft.io_callback])
def test_operands_that_are_not_differentiated(call, how):
    def f(x, y):
        return x * call(np.sin, SCALAR, y) + call(np.cos, SCALAR, lax.stop_gradient(x)) * x

    g = how(f)
    expected = np.sin(2) + np.cos(0.5)
    for slope in (ft.grad(g), ft.jit(ft.grad(g))):
        np.testing.assert_allclose(slope(0.5, 2.0), expected)
    np.testing.assert_allclose(ft.jvp(lambda x: g(x, 2.0), (0.5,), (1.0,))[1], expected)
    np.testing.assert_allclose(
        ft.vmap(ft.grad(lambda x: x * call(np.sin, SCALAR, 2.0)))(X), np.full(3, np.sin(2))
    )


def test_called_once_in_reverse_mode():
    seen, note = pairs()
    f = lambda x, y: fnp.sin(x) * note("y", y)
    for g in (ft.grad(f), ft.grad(ft.jit(f)), ft.jit(ft.grad(f)), ft.grad(ft.grad(f))):
        seen.clear()
        g(1.0, 2.0)
        assert seen == [("y", 2.0)]
    seen.clear()
    y, pullback = ft.vjp(lambda x: f(x, 2.0), 1.0)
    pullback(1.0)
    pullback(y)
    y, push = ft.linearize(lambda x: f(x, 3.0), 1.0)
    push(1.0)
    push(2.0)
    assert seen == [("y", 2.0), ("y", 3.0)]


# --- order, what is kept, what is shared --------------------------------------------------------------------


def test_order_between_kernels():
    seen, note = pairs()

    def f(x):
        a = note("a", x * 2.0)
        note("b", x)  # needs no kernel: it could come first
        c = note("c", fnp.sum(a) + 1.0)
        note("d", x[0])
        note("e", c * 3.0)
        return c + fnp.sum(x)

    expected = f(X)
    order = [tag for tag, _ in seen]
    assert order == list("abcde")
    for how in (ft.jit, lambda f: ft.jit(ft.jit(f)), lambda f: lambda x: ft.jit(lambda x: ft.jit(f)(x))(x)):
        seen.clear()
        assert how(f)(X) == expected
        assert [tag for tag, _ in seen] == order


def test_order_under_stacks_of_transformations():
    seen, note = pairs()

    def f(x, y):
        note("first", y)
        z = ft.jit(lambda x, y: fnp.sin(x) * note("inner", y + 1.0))(x, y)
        note("last", y)
        return z

    for g in (ft.grad(f), ft.jit(ft.grad(ft.jit(f))), ft.grad(ft.jit(ft.grad(f)))):
        seen.clear()
        g(1.0, 2.0)
        assert seen == [("first", 2.0), ("inner", 3.0), ("last", 2.0)]
    for g in (ft.vmap(f), ft.jit(ft.vmap(ft.grad(f)))):
        seen.clear()
        g(X[:2], X[:2])
        assert [tag for tag, _ in seen] == ["first", "first", "inner", "inner", "last", "last"]


def test_effects_stay_and_unused_pure_calls_are_removed():
    seen = []

    def f(x):
        ft.pure_callback(lambda x: seen.append("pure") or x, like(x), x)
        ft.io_callback(lambda x: seen.append("io") or x, like(x), x)
        ft.jit(lambda x: ft.io_callback(lambda x: seen.append("inner"), None, x))(x)
        ft.debug.callback(lambda x: seen.append("debug"), x)
        return x + 1.0

    ft.jit(f)(X)
    assert seen == ["io", "inner", "debug"]
    assert "pure_callback" not in str(ft.make_jaxpr(f)(X))


def test_equal_io_calls_are_not_shared():
    count = iter(range(100))
    draw = lambda x: float(next(count))
    f = ft.jit(lambda x: ft.io_callback(draw, SCALAR, x) + 10 * ft.io_callback(draw, SCALAR, x))
    assert f(1.0) == 10.0
    assert f(1.0) == 32.0


def test_pure_calls_of_different_functions_are_not_shared():
    class Scale:
        def __init__(self, factor):
            self.factor = factor

        def __eq__(self, other):
            return True

        def __hash__(self):
            return 0

        def __call__(self, x):
            return self.factor * x

        method = __call__

    one, two = Scale(1.0), Scale(2.0)
    for a, b in ((one, two), (one.method, two.method), (np.sin, np.cos)):
        f = ft.jit(lambda x: (ft.pure_callback(a, SCALAR, x), ft.pure_callback(b, SCALAR, x)))  # noqa: B023
        np.testing.assert_array_equal(f(3.0), [a(3.0), b(3.0)])


def test_staging_calls_nothing():
    seen, note = pairs()
    f = lambda x: note("a", x) * 2.0
    assert ft.eval_shape(f, X).shape == (3,)
    text = str(ft.make_jaxpr(f)(X))
    assert "io_callback[callback=write]" in text
    ft.jit(f).lower(X).compile()
    assert seen == []
    with ft.disable_jit():
        ft.jit(f)(X)
    assert seen == [("a", X.tolist())]


def test_printed_as_equations():
    def f(x):
        ft.debug.print("x is {}", x)
        ft.io_callback(print, None, x, ordered=True)
        return ft.pure_callback(np.sin, like(x), x, vmap_method="expand_dims")

    assert str(ft.make_jaxpr(f)(1.0)).splitlines() == [
        "lambda a:f64[]*.",
        "  debug_callback[callback=print('x is {}')] a",
        "  io_callback[callback=print, ordered=True] a",
        "  b:f64[] = pure_callback[callback=sin, vmap_method=expand_dims] a",
        "  return (b,)",
    ]
    assert "# host call:  b:f64[] = pure_callback[callback=sin" in ft.jit(f).lower(1.0).as_text("python")


@pytest.mark.parametrize("backend", ["llvm", "python"])
def test_kernels_between_calls(backend):
    def f(x):
        a = fnp.sin(x).reshape(1, 3) @ fnp.ones((3, 2))
        b = ft.pure_callback(np.exp, like(a), a)
        c = ft.pure_callback(np.cos, like(x), x)  # independent of the one before
        d = fnp.sum(b) * c + b[0, 0]
        return ft.pure_callback(np.tanh, like(d), d) * fnp.sum(c), b

    with ft.config.patch(backend=backend):
        actual = ft.jit(f)(X)
    for y, e in zip(actual, f(X)):
        np.testing.assert_allclose(y, e, rtol=1e-13)


# --- failures in kernels ------------------------------------------------------------------------------------


def test_a_failing_kernel_repeats_no_call():
    seen, note = pairs()

    def f(x, i):
        y = note("before", fnp.sin(x))
        z = ft.pure_callback(lambda y: seen.append("pure") or y * 2.0, like(y), y)
        w = (z + 1.0)[i]
        note("after", w)
        return w

    g = ft.jit(f)
    assert g(X, 1) == 2.0 * np.sin(-1.0) + 1.0
    assert [s if s == "pure" else s[0] for s in seen] == ["before", "pure", "after"]
    seen.clear()
    with pytest.raises(IndexError, match=r"\(z \+ 1.0\)\[i\]"):
        g(X, 7)
    assert [s if s == "pure" else s[0] for s in seen] == ["before", "pure"]


def test_calls_come_before_the_failure_that_follows_them():
    seen, note = pairs()

    def f(x, i):
        note("a", fnp.sin(x) * 2.0)
        y = x[i]  # in the first kernel
        note("b", x)
        return y

    for how in (plain, ft.jit):
        seen.clear()
        with pytest.raises(IndexError):
            how(f)(X, 7)
        assert [tag for tag, _ in seen] == ["a"]


def test_calls_come_not_before_the_failure_that_precedes_them():
    seen, note = pairs()

    def f(x, i):
        y = note("a", x)
        z = y[i]
        note("b", x)  # does not need z
        return z

    g = ft.jit(f)
    assert g(X, 2) == 2.0
    assert [tag for tag, _ in seen] == ["a", "b"]
    seen.clear()
    with pytest.raises(IndexError):
        g(X, 7)
    assert [tag for tag, _ in seen] == ["a"]


def test_effects_keep_their_order_with_pure_calls_that_raise():
    seen, note = pairs()
    shape = ft.ShapeDtypeStruct((), float)

    def host(x):
        if x > 1:
            raise ZeroDivisionError
        return x

    def f(x):
        y = note("a", x) + 1.0
        note("b", y)  # behind a kernel
        z = ft.pure_callback(host, shape, x)  # needs nothing
        w = ft.pure_callback(host, shape, fnp.sin(y) + z)  # behind a kernel
        note("c", x)  # needs nothing
        return w

    for how in (plain, ft.jit):
        for x, tags in ((3.0, "ab"), (0.5, "ab"), (-2.0, "abc")):
            seen.clear()
            try:
                how(f)(x)
            except ZeroDivisionError:
                assert tags == "ab"
            assert "".join(tag for tag, _ in seen) == tags


def test_a_failing_factorisation_after_a_call():
    seen, note = pairs()

    def f(a):
        b = note("matrix", a * 1.0)
        return fnp.linalg.cholesky(b)

    g = ft.jit(f)
    with pytest.raises(np.linalg.LinAlgError):
        g(-np.eye(2))
    assert len(seen) == 1
    np.testing.assert_allclose(g(4 * np.eye(2)), 2 * np.eye(2))


# --- calls within calls -------------------------------------------------------------------------------------


def test_functrans_inside_a_callback():
    traces = []

    @ft.jit
    def inner(x):
        return fnp.sum(x**2)

    def host(x):
        traces.append(current_trace.get())
        assert not isinstance(fnp.sin(x), ft.core.trace.Tracer)
        return ft.jit(ft.grad(inner))(x) + ft.vmap(ft.grad(fnp.sin))(x)

    def f(x, y):
        return fnp.sum(x * ft.pure_callback(host, like(y), y, vmap_method="sequential"))

    expected = 2 * X + np.cos(X)
    for g in (ft.grad(f), ft.jit(ft.grad(f)), ft.grad(ft.jit(f)), ft.vmap(ft.grad(f), in_axes=(None, 0))):
        batched = X[None] if len(traces) == 3 else X
        np.testing.assert_allclose(np.squeeze(g(X, batched)), expected)
    assert len(traces) == 4
    assert all(t is eval_trace for t in traces)


def test_a_jitted_function_that_calls_itself():
    @ft.jit
    def factorial(n):
        def rest(n):
            return np.float64(1.0) if n <= 1 else np.asarray(factorial(n - 1.0))

        return n * ft.pure_callback(rest, SCALAR, n)

    assert factorial(1.0) == 1.0
    assert factorial(5.0) == 120.0


def test_lines_inside_a_callback_are_its_own():
    def host(x):
        return fnp.add(fnp.ones(3), fnp.ones(4))  # the fault

    with pytest.raises(ValueError, match="# the fault") as caught:
        ft.jit(lambda x: ft.pure_callback(host, SCALAR, x))(1.0)
    assert "'host'" in caught.value.__notes__[0]


def test_floating_point_warnings_are_the_callers():
    f = ft.jit(lambda x: ft.pure_callback(lambda x: np.log(np.asarray(x)), SCALAR, x))
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        f(0.0)
    with np.errstate(divide="ignore"):
        assert f(0.0) == -np.inf


def test_threads():
    def host(x):
        return float(np.asarray(x)) * 2.0

    f = ft.jit(lambda x: ft.pure_callback(host, SCALAR, x + 1.0) + 1.0)
    actual = {}

    def work(i):
        actual[i] = [float(f(float(i + k))) for k in range(50)]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert actual == {i: [2.0 * (i + k + 1) + 1 for k in range(50)] for i in range(6)}


def test_traced_values_do_not_come_out_of_a_callback():
    def f(x):
        return ft.pure_callback(lambda: x, SCALAR)

    with pytest.raises(ft.errors.FunctransError):
        ft.jit(f)(1.0)

"""``functrans.debug``: print and callback, under every transformation."""

import io
import logging
import sys
import threading

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.arrays.array import Array
from functrans.errors import ArgumentError, FormatError

X = np.array([0.5, -1.0])


@pytest.fixture
def printed(capsys):
    """The lines printed since the last time."""
    return lambda: capsys.readouterr().out.splitlines()


def test_namespace_loads_when_used():
    assert set(ft.debug.__all__) == {"breakpoint", "callback", "log", "print"}
    assert "debug" in dir(ft)


# --- print --------------------------------------------------------------------------------------------------


def show(x):
    y = 2.0 * x
    ft.debug.print("x = {}, y = {y:.3f}", x, y=y)
    return fnp.sin(y)


@pytest.mark.parametrize("how", [lambda f: f, ft.jit, ft.grad, lambda f: ft.jit(ft.grad(f))])
def test_print_once(how, printed):
    for _ in range(2):
        how(show)(0.25)
        assert printed() == ["x = 0.25, y = 0.500"]


def test_print_under_every_transformation_of_one_argument(printed):
    line = ["x = 0.25, y = 0.500"]
    x = 0.25
    ft.jvp(show, (x,), (1.0,))
    assert printed() == line
    y, pullback = ft.vjp(show, x)
    assert printed() == line
    pullback(y)
    pullback(y)
    assert printed() == []
    _, push = ft.linearize(ft.jit(show), x)
    assert printed() == line
    push(1.0)
    assert printed() == []
    for g in (
        ft.grad(ft.jit(show)),
        ft.grad(ft.grad(show)),
        ft.jit(ft.grad(ft.grad(ft.jit(show)))),
        ft.hessian(show),
    ):
        g(x)
        assert printed() == line
    for g in (ft.jacfwd(show), ft.jacrev(show), ft.value_and_grad(ft.jit(show))):
        g(x)
        assert printed() == line


@pytest.mark.parametrize(
    "how",
    [
        ft.vmap,
        lambda f: ft.jit(ft.vmap(f)),
        lambda f: ft.vmap(ft.jit(f)),
        lambda f: ft.vmap(ft.grad(ft.jit(f))),
    ],
)
def test_print_for_each_lane(how, printed):
    how(show)(X)
    assert printed() == ["x = 0.5, y = 1.000", "x = -1.0, y = -2.000"]


def test_print_of_nested_lanes_and_of_none(printed):
    f = lambda x, s: (ft.debug.print("{} {}", x, s), ft.debug.print("s {}", s), x * s)[2]
    ft.vmap(ft.vmap(f, in_axes=(0, None)))(np.arange(4.0).reshape(2, 2), np.array([10.0, 20.0]))
    assert printed() == ["0.0 10.0", "1.0 10.0", "2.0 20.0", "3.0 20.0", "s 10.0", "s 20.0"]
    ft.vmap(f, in_axes=(0, None))(X, 3.0)
    assert printed() == ["0.5 3.0", "-1.0 3.0", "s 3.0"]


def test_print_is_never_dropped_and_keeps_its_order(printed):
    @ft.jit
    def inner(x):
        ft.debug.print("inner {}", fnp.sum(x * 2.0))
        return 0.0

    @ft.jit
    def f(x):
        ft.debug.print("first")
        ft.debug.print("twice")
        ft.debug.print("twice")
        inner(x)
        ft.debug.print("last {x}", x=x, ordered=True)

    f(X)
    assert printed() == ["first", "twice", "twice", "inner -1.0", "last [ 0.5 -1. ]"]


def test_print_values_other_than_arrays(printed):
    def f(x):
        ft.debug.print(
            "{label}: {tree}, {0!r}, {0.shape}, {rows[0]}",
            x,
            label="loss",
            tree={"a": (x, None)},
            rows=[x, 1],
        )
        ft.debug.print("no fields:", x, "and", 3)
        ft.debug.print("{{}} {}%", 5)
        return x

    ft.jit(f)(X)
    assert printed() == [
        "loss: {'a': (Array([ 0.5, -1. ]), None)}, Array([ 0.5, -1. ]), (2,), [ 0.5 -1. ]",
        "no fields: [ 0.5 -1. ] and 3",
        "{} 5%",
    ]


def test_print_as_numpys_options_say_when_it_runs(printed):
    f = ft.jit(lambda x: ft.debug.print("{}", x))
    f(X / 3)
    with np.printoptions(precision=2):
        f(X / 3)
    assert printed() == ["[ 0.16666667 -0.33333333]", "[ 0.17 -0.33]"]


def test_print_to_the_stream_of_the_moment_with_flush(monkeypatch):
    class Stream(io.StringIO):
        flushed = ""

        def flush(self):
            self.flushed = self.getvalue()

    f = ft.jit(lambda x: ft.debug.print("{}", x))
    for _ in range(2):
        stream = Stream()
        monkeypatch.setattr(sys, "stdout", stream)
        f(1.0)
        assert stream.flushed == "1.0\n"


@pytest.mark.parametrize(
    ("fmt", "args", "kwargs", "also", "message"),
    [
        ("{x}", (), {}, KeyError, "asks for 'x'"),
        ("{x.shape} {y}", (), {"x": 1.0}, KeyError, "asks for 'y'"),
        ("{}", (), {}, IndexError, "positional argument 0"),
        ("{} {}", (1.0,), {}, IndexError, "positional argument 1"),
        ("{x:{width}}", (), {"x": 1.0}, KeyError, "asks for 'width'"),
        ("{", (), {}, ValueError, "is not a format string"),
        ("{} {0}", (1.0,), {}, ValueError, "is not a format string"),
        ("{}", (1.0, 2.0), {}, ValueError, "does not use positional argument 1"),
        ("{}", (1.0,), {"y": 2.0}, ValueError, "does not use 'y'"),
        ("x", (), {"x": 2.0}, ValueError, "does not use 'x'"),
    ],
)
def test_formats_that_do_not_fit_raise_while_tracing(fmt, args, kwargs, also, message):
    with pytest.raises(FormatError, match=message) as caught:
        ft.make_jaxpr(lambda: ft.debug.print(fmt, *args, **kwargs))()
    assert isinstance(caught.value, also)
    assert "test_debug.py" in str(caught.value)
    with pytest.raises(ArgumentError):
        ft.debug.print(1.0)


def test_formats_that_fail_when_printed():
    with pytest.raises(TypeError) as caught:
        ft.jit(lambda x: ft.debug.print("{:.2f}", x))(X)
    assert "in the callback" in caught.value.__notes__[0]


# --- log ----------------------------------------------------------------------------------------------------


def logged(x):
    ft.debug.log("x = {}, y = {y:.1f} 5%", x, y=2.0 * x)
    return fnp.sin(x)


@pytest.mark.parametrize("how", [lambda f: f, ft.jit, ft.grad, lambda f: ft.jit(ft.grad(f))])
def test_log_once_with_its_line(how, caplog):
    with caplog.at_level(logging.INFO, "functrans.debug"):
        how(logged)(0.5)
    (record,) = caplog.records
    assert (record.name, record.levelname, record.getMessage()) == (
        "functrans.debug",
        "INFO",
        "x = 0.5, y = 1.0 5%",
    )
    assert (record.filename, record.funcName) == ("test_debug.py", "logged")
    assert record.lineno == logged.__code__.co_firstlineno + 1


def test_log_of_lanes_without_fields_and_options_first(caplog):
    with caplog.at_level(logging.INFO, "functrans.debug"):
        ft.jit(ft.vmap(lambda x: ft.debug.log(ordered=True)("x is", x)))(X)
    assert caplog.messages == ["x is 0.5", "x is -1.0"]


def test_what_is_below_the_level_is_not_logged(caplog):
    f = ft.jit(logged)
    with caplog.at_level(logging.WARNING, "functrans.debug"):
        f(0.5)
    assert not caplog.records
    with caplog.at_level(logging.INFO, "functrans.debug"):
        f(0.25)
    assert caplog.messages == ["x = 0.25, y = 0.5 5%"]


def test_each_call_logs_with_its_own_line(caplog):
    """Two functions that differ in the line alone."""
    first = ft.jit(lambda x: ft.debug.log("{}", x))
    second = ft.jit(lambda x: ft.debug.log("{}", x))
    with caplog.at_level(logging.INFO, "functrans.debug"):
        first(1.0)
        second(1.0)
    lines = [record.lineno for record in caplog.records]
    assert lines[1] == lines[0] + 1


def test_bad_formats_of_logs():
    with pytest.raises(FormatError, match=r"debug\.log: '\{x\}' asks for 'x'"):
        ft.make_jaxpr(lambda: ft.debug.log("{x}", y=1.0))()
    with pytest.raises(ArgumentError, match="fmt"):
        ft.debug.log(1.0)


# --- callback -----------------------------------------------------------------------------------------------


def test_callback_receives_trees_and_keeps_values():
    seen = []

    def note(step, state, *, name):
        seen.append((step, state, name))
        return "what it returns is not looked at"

    @ft.jit
    def f(x):
        state = {"x": x, "sum": fnp.sum(x)}
        assert ft.debug.callback(note, 3, state, name="run") is None
        return x * 2.0

    x = X.copy()
    f(x)
    x[:] = 9.0
    ((step, state, name),) = seen
    assert (step, state["sum"], name) == (3, -0.5, "run")
    assert type(state["x"]) is Array
    np.testing.assert_array_equal(state["x"], X)


def test_callback_in_a_loop_of_training_steps():
    losses = []

    def loss(w, x, y):
        value = fnp.mean((x @ w - y) ** 2)
        ft.debug.callback(lambda v: losses.append(float(v)), value)
        return value

    random = np.random.default_rng(0)
    x, w = random.normal(size=(20, 3)), fnp.zeros(3)
    y = x @ np.array([1.0, 2.0, 3.0])
    step = ft.jit(lambda w: w - 0.1 * ft.grad(loss)(w, x, y))
    for _ in range(5):
        w = step(w)
    assert len(losses) == 5
    assert losses == sorted(losses, reverse=True)


def test_options_first(printed):
    seen = []
    ft.jit(lambda x: ft.debug.callback(ordered=True)(seen.append, x))(1.0)
    ft.jit(lambda x: ft.debug.print(ordered=True)("x = {x}", x=x))(1.0)
    assert seen == [1.0]
    assert printed() == ["x = 1.0"]
    assert "ordered=True" in str(ft.make_jaxpr(lambda x: ft.debug.print(ordered=True)("{}", x))(1.0))
    for wrong in (lambda: ft.debug.print(x=1.0), lambda: ft.debug.callback(None, 1.0)):
        with pytest.raises(TypeError, match="expected a"):
            wrong()


def test_callback_that_raises():
    def host(x):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        ft.jit(ft.grad(lambda x: (ft.debug.callback(host, x), x * x)[1]))(1.0)  # the line
    assert "'host' of debug.callback" in caught.value.__notes__[0]
    assert "# the line" in caught.value.__notes__[0]
    with pytest.raises(ArgumentError, match="expected a function"):
        ft.debug.callback("text", 1.0)


def test_callback_with_arrays_that_functrans_does_not_have():
    seen = []
    words, half = np.array(["a", "b"]), np.ones(2, np.longdouble)
    f = ft.jit(lambda x: ft.debug.callback(lambda *xs: seen.extend(xs), x, words, half))
    f(1.0)
    np.testing.assert_array_equal(seen[1], words)
    assert seen[2].dtype == np.longdouble


def test_transposition_passes_over_it(printed):
    def linear(x):
        ft.debug.print("{}", x)
        return 3.0 * x

    assert ft.linear_transpose(linear, 1.0)(2.0) == (6.0,)
    assert printed() == []


def test_prints_of_threads(printed):
    f = ft.jit(lambda x: ft.debug.print("{}", x))
    threads = [threading.Thread(target=f, args=(float(i),)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(printed()) == [str(float(i)) for i in range(8)]

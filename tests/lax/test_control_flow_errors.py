"""Mistakes in loops and branches: typed errors that name the leaf, both types and the line of the body."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import errors, lax

X = np.arange(3.0)
WAYS = pytest.mark.parametrize("way", ["eager", "jit", "grad", "vmap", "disable_jit"])


def fails(error, says, line, f, way="eager"):
    """`f` of a number raises, in some transformation; the message names this file and the user's line."""
    wrapped = {
        "eager": f,
        "jit": ft.jit(f),
        "grad": ft.grad(f),
        "vmap": lambda x: ft.vmap(f)(np.array([x])),
        "disable_jit": f,
    }[way]
    with ft.disable_jit(way == "disable_jit"), pytest.raises(error) as caught:
        wrapped(2.0)
    assert isinstance(caught.value, errors.FunctransError)
    message = str(caught.value)
    for part in says:
        assert part in message, message
    assert "test_control_flow_errors.py:" in message
    assert line in message, message


@WAYS
def test_a_carry_that_changes_its_shape(way):
    def f(x):
        def body(c, row):
            w = c["w"] * x
            return {"b": c["b"], "w": fnp.append(w, row)}, None  # grows

        return lax.scan(body, {"b": 0.0, "w": fnp.zeros(2)}, X)[0]["b"]

    says = ["scan of body", "the carry changes its type at ['w']", "f64[2] goes in", "f64[3] comes out"]
    fails(errors.CarryTypeError, says, "# grows", f, way)


@WAYS
def test_a_carry_that_changes_its_dtype(way):
    def f(x):
        def body(i, c):
            first, second = c
            return first * x, (second[0] + 1.5,)  # a float

        return lax.fori_loop(0, 3, body, (1.0, (np.int32(0),)))[0]

    says = ["fori_loop of body", "at [1][0]", "i32[] goes in", "f64[] comes out", ".astype('int32')"]
    fails(errors.CarryTypeError, says, "# a float", f, way)


@WAYS
def test_a_carry_that_changes_its_structure(way):
    def f(x):
        def body(c, _):
            return {"a": c["a"], "b": (c["b"], x)}, None  # a pair

        return lax.scan(body, {"a": x, "b": x}, length=3)[0]["a"]

    says = [
        "scan of body",
        "structure at ['b']",
        "a leaf goes in",
        "a tuple of length 2 comes out",
        "{'a': *, 'b': (*, *)}",
    ]
    fails(errors.CarryTypeError, says, "# a pair", f, way)


@WAYS
def test_a_body_that_returns_no_pair(way):
    def single(x):
        return lax.scan(lambda c, row: c + row, x, X)[0]  # single

    says = ["scan of <lambda>", "must return a pair (carry, y)", "an array of shape (", "(carry, None)"]
    fails(errors.ArgumentError, says, "# single", single, way)

    def triple(x):
        return lax.scan(lambda c, row: (c, row, row), x, X)[0]  # triple

    fails(errors.ArgumentError, ["must return a pair", "3 values"], "# triple", triple, way)


@WAYS
def test_rows_of_unequal_lengths(way):
    def f(x):
        rows = {"a": fnp.ones(3), "b": [fnp.ones((4, 2)) * x]}
        return lax.scan(lambda c, row: (c, None), x, rows)[0]  # unequal

    fails(
        ValueError, ["scan of <lambda>", "xs['a'] of length 3", "xs['b'][0] of length 4"], "# unequal", f, way
    )

    def g(x):
        return lax.scan(lambda c, row: (c, None), x, X, length=5)[0]  # given

    fails(errors.ArgumentValueError, ["xs of length 3", "length=5"], "# given", g, way)

    def h(x):
        return fnp.sum(lax.map(lambda rows: rows[0], (X, fnp.ones(2))))  # mapped

    fails(ValueError, ["map of <lambda>", "xs[0] of length 3", "xs[1] of length 2"], "# mapped", h, way)


def test_lengths_that_are_none():
    def scan(**options):
        return lambda x: lax.scan(lambda c, _: (c, None), x, **options)  # scan

    fails(errors.ArgumentValueError, ["must not be negative, got -1"], "# scan", scan(length=-1))
    fails(errors.ArgumentValueError, ["length is required"], "# scan", scan())
    fails(errors.ArgumentValueError, ["length is required"], "# scan", scan(xs=(None, ())))
    fails(errors.ArgumentValueError, ["xs has no axes", "capture"], "# scan", scan(xs=1.0))
    fails(errors.ArgumentValueError, ["xs[0] has no axes", "asarray"], "# scan", scan(xs=[1.0, 2.0]))
    fails(errors.ArgumentError, ["length must be an integer, got 3.0"], "# scan", scan(length=3.0))
    fails(errors.ArgumentError, ["unroll must be an integer", "'x'"], "# scan", scan(length=2, unroll="x"))
    fails(errors.ArgumentValueError, ["unroll must not be negative"], "# scan", scan(length=2, unroll=-1))
    fails(errors.ArgumentError, ["xs['a'] is 'text'"], "# scan", scan(xs={"a": "text"}))

    def traced(x):
        return ft.jit(lambda n: lax.scan(lambda c, _: (c, None), x, length=n))(3)  # traced

    fails(errors.TracerIntegerConversionError, ["length", "fori_loop"], "# traced", traced)


def test_checkpoints_and_batches_that_are_none():
    def scan(x):
        return lax.scan(lambda c, _: (c, None), x, length=3, checkpoint_every=0)  # every

    fails(errors.ArgumentValueError, ["checkpoint_every must be at least 1, got 0"], "# every", scan)
    fails(errors.ArgumentValueError, ["batch_size"], "lax.map", lambda x: lax.map(abs, X, batch_size=0))


def test_what_is_no_function():
    fails(errors.ArgumentError, ["scan", "expected a function"], "lax.scan", lambda x: lax.scan(3, x, X))
    fails(
        errors.ArgumentError,
        ["fori_loop", "expected a function"],
        "lax.fori",
        lambda x: lax.fori_loop(0, 3, x, 0),
    )
    fails(errors.ArgumentError, ["map", "expected a function"], "lax.map", lambda x: lax.map(None, X))
    fails(errors.ArgumentError, ["expected a function"], "associative", lambda x: lax.associative_scan(x, X))


def test_bounds_that_are_no_integers():
    def f(x):
        return lax.fori_loop(0, x, lambda i, c: c, 0.0)  # bound

    fails(errors.ArgumentError, ["fori_loop", "upper must be an integer", "f64[]"], "# bound", f)
    fails(errors.ArgumentError, ["upper must be an integer", "f64[]"], "# bound", f, "jit")

    def g(x):
        return lax.fori_loop(np.arange(2), 3, lambda i, c: c, 0.0)  # array

    fails(errors.ArgumentError, ["lower must be an integer", "i64[2]"], "# array", g)

    def h(x):
        return ft.jit(lambda n: lax.fori_loop(0, n, lambda i, c: c, 0.0, unroll=2))(3)  # unknown

    fails(errors.ArgumentValueError, ["unroll", "known bounds"], "# unknown", h)


def test_a_carry_that_is_no_array():
    def f(x):
        return lax.scan(lambda c, _: (c, None), {"name": "x"}, length=2)  # text

    fails(errors.ArgumentError, ["scan of <lambda>", "init['name'] is 'x'"], "# text", f)

    def g(x):
        def body(c, _):
            return "x", None  # returned

        return lax.scan(body, x, length=2)

    with pytest.raises(errors.ArgumentError, match="the result of body"):
        g(1.0)


def test_associative_scan():
    def scan(fn, elems, **options):
        return lambda x: lax.associative_scan(fn, elems, **options)  # scan

    says = ["associative_scan of add", "elems['a'] of extent 3", "elems['b'] of extent 4"]
    fails(ValueError, says, "# scan", scan(np.add, {"a": np.ones(3), "b": np.ones(4)}))
    fails(errors.AxisError, ["axis 1", "(3,)"], "# scan", scan(np.add, X, axis=1))
    fails(errors.AxisError, ["axis 0", "()"], "# scan", scan(np.add, 1.0))
    fails(errors.ArgumentError, ["no arrays"], "# scan", scan(np.add, None))

    def pair(a, b):
        return a, b  # pair

    fails(errors.CarryTypeError, ["associative_scan of pair", "a tuple of length 2"], "# pair", scan(pair, X))

    def total(a, b):
        return fnp.sum(a + b)  # total

    fails(errors.CarryTypeError, ["associative_scan of total", "f64[1]", "f64[]"], "# total", scan(total, X))


def test_errors_of_the_body_itself_name_its_line():
    def f(x):
        def body(c, row):
            return c @ row, None  # shapes

        return lax.scan(body, fnp.ones((2, 2)) * x, fnp.ones((5, 3)))[0].sum()

    fails(errors.ShapeError, ["matmul", "(2, 2)", "(3,)"], "# shapes", f)

    def g(x):
        def body(c, i):
            return c + fnp.asarray(X)[i], None  # index

        return lax.scan(body, x, np.array([0, 1, 7]))[0]

    fails(IndexError, ["index 7", "size 3"], "# index", g)
    fails(IndexError, ["index 7", "size 3"], "# index", g, "jit")
    fails(IndexError, ["index 7", "size 3"], "# index", g, "grad")

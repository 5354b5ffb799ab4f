"""`closure_convert`. Where a fact about JAX is tested, the number is the one that JAX 0.10 gives."""

import functools

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax

X = np.linspace(0.3, 1.2, 4)


def outer(w):
    converted, consts = ft.closure_convert(lambda y: y * w + 3.0, 1.0)
    return converted(2.0, *consts)


def test_numbers_that_jax_gives():
    assert (outer(4.0), ft.grad(outer)(4.0), ft.jit(outer)(4.0)) == (11.0, 2.0, 11.0)
    np.testing.assert_array_equal(ft.vmap(outer)(np.arange(3.0)), [3.0, 5.0, 7.0])


@pytest.mark.parametrize(
    "stack",
    [
        ft.grad,
        lambda f: ft.jit(ft.grad(f)),
        lambda f: ft.grad(ft.jit(f)),
        ft.jacfwd,
        lambda f: lambda w: ft.grad(lambda w: fnp.sum(ft.vmap(f)(w)))(fnp.stack([w, w]))[0],
        lambda f: lambda w: ft.vmap(ft.grad(f))(fnp.stack([w, w]))[0],
        lambda f: ft.grad(ft.checkpoint(f)),
        lambda f: ft.grad(lambda w: lax.scan(lambda c, _: (c, f(c)), w, None, length=1)[1][0]),
    ],
)
def test_derivatives_go_through_what_was_captured(stack):
    assert stack(outer)(4.0) == pytest.approx(2.0)


def test_what_is_captured():
    found = []

    def program(w, n, tree):
        array = fnp.arange(3.0)
        converted, consts = ft.closure_convert(lambda y: {"o": y * w * n + tree["t"] + array}, 1.0)
        found.append(len(consts))
        return converted(2.0, *consts)["o"]

    wanted = 2.0 * 4.0 * 3 + 5.0 + np.arange(3.0)
    np.testing.assert_allclose(program(4.0, 3, {"t": 5.0}), wanted)
    np.testing.assert_allclose(ft.jit(program)(4.0, 3, {"t": 5.0}), wanted)
    np.testing.assert_allclose(ft.jacfwd(program)(4.0, 3, {"t": 5.0}), 6.0 * np.ones(3))
    assert found[0] == 0 and found[2] == 1  # noqa: PT018


def test_the_converted_function_holds_no_traced_value():
    @functools.partial(ft.custom_vjp, nondiff_argnums=0)
    def apply(f, x, *consts):
        return f(x, *consts)

    def fwd(f, x, *consts):
        return apply(f, x, *consts), (x, consts)

    def bwd(f, kept, ct):
        x, consts = kept
        return ft.vjp(f, x, *consts)[1](10.0 * ct)

    apply.defvjp(fwd, bwd)

    def program(w, x):
        converted, consts = ft.closure_convert(lambda x: fnp.sin(w * x), x)
        return apply(converted, x, *consts)

    wanted = [10 * 0.5 * np.cos(1.0), 10 * 2.0 * np.cos(1.0)]
    for g in (ft.grad(program, (0, 1)), ft.jit(ft.grad(program, (0, 1))), ft.grad(ft.jit(program), (0, 1))):
        np.testing.assert_allclose(g(2.0, 0.5), wanted, rtol=1e-14)
    np.testing.assert_allclose(ft.vmap(ft.grad(program))(X, X), 10 * X * np.cos(X * X), rtol=1e-14)


def test_trees_and_types():
    def f(p, q):
        return p["a"] @ p["b"], q

    example = {"a": ft.ShapeDtypeStruct((2, 3), "float64"), "b": np.zeros(3)}
    converted, consts = ft.closure_convert(f, example, 1)
    a, b = np.arange(6.0).reshape(2, 3), np.ones(3)
    out, q = converted({"a": a, "b": b}, 7)
    assert not consts
    assert q == 7
    np.testing.assert_array_equal(out, a @ b)
    assert converted({"a": a.astype("float32"), "b": b}, 7)[0].dtype == np.float64


@pytest.mark.parametrize(
    ("args", "error", "text"),
    [
        (
            (np.ones(3), 1.0),
            "ShapeError",
            r"argument 0 \('y'\) has shape \(3,\), but it was converted for shape \(2,\)",
        ),
        (
            (np.ones(2), 1j),
            "DtypeError",
            r"argument 1 \('n'\) has dtype complex128, but it was converted for dtype float64",
        ),
        (
            ((np.ones(2),), 1.0),
            "PytreeError",
            r"argument 0 \('y'\) is a tuple of length 1, but .* for a leaf",
        ),
        ((np.ones(2),), "ArgumentError", r"converted for 2 arguments and captured 0 values, so it takes 2"),
        ((np.ones(2), "a"), "ArgumentError", r"argument 1 \('n'\) is 'a'"),
    ],
)
def test_wrong_arguments(args, error, text):
    converted, _ = ft.closure_convert(lambda y, n: y * n, np.ones(2), 1.0)
    with pytest.raises(getattr(ft.errors, error), match=text):
        converted(*args)


def test_wrong_calls():
    with pytest.raises(ft.errors.ArgumentError, match="closure_convert: expected a function"):
        ft.closure_convert(3)
    with pytest.raises(ft.errors.ArgumentError, match="an example argument is 'a'"):
        ft.closure_convert(lambda x: x, "a")

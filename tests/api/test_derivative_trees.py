"""Functions that `vjp` and `linearize` gave, as trees of the arrays that they keep."""

import gc
import weakref

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import errors, lax

X = np.array([0.5, 1.0, 1.5])
G = np.array([1.0, -2.0, 3.0])


def f(x):
    return fnp.sin(x) * x


SLOPE = np.cos(X) * X + np.sin(X)
CURVE = 2.0 * np.cos(X) - X * np.sin(X)


def pulled(pull, g):
    return pull(g)[0]


def test_leaves_are_the_arrays_it_keeps():
    _, pull = ft.vjp(f, X)
    leaves, tree = ft.tree.flatten(pull)
    assert leaves
    assert all(isinstance(x, ft.Array) and x.shape == (3,) for x in leaves)
    np.testing.assert_allclose(pulled(ft.tree.unflatten(tree, leaves), G), G * SLOPE)
    doubled = ft.tree.map(lambda x: 2.0 * x, ft.vjp(fnp.exp, X)[1])
    np.testing.assert_allclose(pulled(doubled, G), 2.0 * G * np.exp(X))


def test_one_structure_for_one_derivative():
    _, pull = ft.vjp(f, X)
    again = ft.tree.map(lambda x: x, pull)
    assert ft.tree.structure(pull) == ft.tree.structure(again)
    assert ft.tree.structure(pull) != ft.tree.structure(ft.vjp(f, X)[1])


def test_into_and_out_of_compiled_functions():
    _, pull = ft.vjp(f, X)
    run = ft.jit(pulled)
    for _ in range(2):
        np.testing.assert_allclose(run(pull, G), G * SLOPE)
    assert run.cache_info().traces == 1
    y, made = ft.jit(lambda x: ft.vjp(f, x))(X)
    np.testing.assert_allclose(y, np.sin(X) * X)
    np.testing.assert_allclose(pulled(made, G), G * SLOPE)
    y, push = ft.jit(lambda x: ft.linearize(f, x))(X)
    np.testing.assert_allclose(push(G), G * SLOPE)


def test_mapped():
    pulls = ft.vmap(lambda x: ft.vjp(f, x)[1])(X)
    np.testing.assert_allclose(ft.vmap(pulled)(pulls, G), G * SLOPE)


def test_through_a_loop():
    _, pull = ft.vjp(f, X)

    def step(carry, _):
        pull, g = carry
        return (pull, pulled(pull, g)), None

    (_, g), _ = lax.scan(step, (pull, fnp.asarray(G)), None, length=3)
    np.testing.assert_allclose(g, G * SLOPE**3)


def test_differentiated_in_what_it_keeps():
    gradient = ft.grad(lambda x: fnp.sum(ft.jit(pulled)(ft.vjp(f, x)[1], G)))(X)
    np.testing.assert_allclose(gradient, G * CURVE)


class Kept(ft.Function):
    """The reverse rule is a function that vjp gave."""

    @staticmethod
    def forward(ctx, x):
        y, ctx.pull = ft.vjp(f, x)
        return y

    @staticmethod
    def backward(ctx, g):
        return ctx.pull(g)


@ft.custom_vjp
def kept(x):
    return f(x)


kept.defvjp(lambda x: ft.vjp(f, x), lambda pull, g: pull(g))


@pytest.mark.parametrize("op", [Kept.apply, kept])
def test_saved_by_custom_rules(op):
    loss = lambda x: fnp.sum(G * op(x))
    for gradient in (ft.grad(loss), ft.jit(ft.grad(loss)), ft.grad(ft.jit(loss))):
        np.testing.assert_allclose(gradient(X), G * SLOPE)
    for hessian in (ft.hessian(loss), ft.jit(ft.hessian(loss)), ft.hessian(ft.jit(loss))):
        np.testing.assert_allclose(hessian(X), np.diag(G * CURVE), atol=1e-14)
    np.testing.assert_allclose(ft.vmap(ft.grad(op))(X), SLOPE)
    np.testing.assert_allclose(ft.grad(lambda x: fnp.sum(ft.vmap(op)(x)))(X), SLOPE)
    np.testing.assert_allclose(ft.jvp(op, (X,), (G,))[1], G * SLOPE)
    loop = lambda x: fnp.sum(lax.fori_loop(0, 2, lambda i, c: op(c), x))
    plain = lambda x: fnp.sum(f(f(x)))
    np.testing.assert_allclose(ft.grad(loop)(X), ft.grad(plain)(X))


def test_freed():
    _, pull = ft.vjp(f, X, retain=False)
    pull(G)
    leaves, tree = ft.tree.flatten(pull)
    assert leaves == []
    with pytest.raises(errors.SavedValuesFreedError):
        ft.tree.unflatten(tree, leaves)(G)


def test_structure_keeps_no_arrays():
    array = np.arange(3.0)
    array.flags.writeable = False
    watched = weakref.ref(array)
    _, pull = ft.vjp(fnp.multiply, X, array)
    tree = ft.tree.structure(pull)
    del pull, array
    gc.collect()
    assert watched() is None
    assert tree.num_leaves == 2

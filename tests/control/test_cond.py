"""Branches as equations: only the one taken runs, in values, derivatives and lanes."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax


def root(x):
    """A function whose other branch has no derivative, and no value."""
    return lax.cond(x > 0.0, lambda x: fnp.sqrt(x) * fnp.log(x), lambda x: 2.0 * x, x)


def root_slope(x):
    return np.log(x) / (2 * np.sqrt(x)) + 1 / np.sqrt(x) if x > 0 else 2.0


XS = np.array([-1.0, 0.0, 0.5, 2.0])


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_no_nan_from_the_other_branch(wrap):
    expected = [root_slope(x) for x in XS]
    np.testing.assert_allclose([wrap(ft.grad(root))(x) for x in XS], expected)
    np.testing.assert_allclose(wrap(ft.vmap(ft.grad(root)))(XS), expected)
    np.testing.assert_allclose(wrap(ft.grad(lambda v: fnp.sum(ft.vmap(root)(v))))(XS), expected)
    np.testing.assert_allclose(wrap(ft.vmap(lambda x: ft.jvp(root, (x,), (1.0,))[1]))(XS), expected)
    assert np.isfinite(wrap(ft.vmap(ft.grad(ft.grad(root))))(XS)).all()


def test_no_error_from_the_other_branch():
    def element(i, x):
        return lax.cond(i < 3, lambda i: x[i], lambda i: -1.0, i)

    def factor(s, a):
        return lax.cond(s > 0.0, lambda a: fnp.sum(fnp.linalg.cholesky(a)), lambda a: a[0, 0], s * a)

    x, a = np.arange(3.0), np.eye(2)
    np.testing.assert_array_equal(ft.vmap(element, in_axes=(0, None))(np.array([0, 5, 2]), x), [0, -1, 2])
    grad = ft.jit(ft.vmap(ft.grad(element, argnums=1), in_axes=(0, None)))(np.array([0, 5, 2]), x)
    np.testing.assert_array_equal(grad, [[1, 0, 0], [0, 0, 0], [0, 0, 1]])
    np.testing.assert_allclose(
        ft.jit(ft.vmap(factor, in_axes=(0, None)))(np.array([4.0, -1.0]), a), [4.0, -1.0]
    )
    grads = ft.vmap(ft.grad(factor), in_axes=(0, None))(np.array([4.0, -1.0]), a)
    np.testing.assert_allclose(grads, [0.5, 1.0])


def test_the_selected_branch_raises():
    def element(i, x):
        return lax.cond(i < 4, lambda i: x[i], lambda i: -1.0, i)

    for run in (element, ft.jit(element)):
        with pytest.raises(IndexError):
            run(np.int64(3), fnp.arange(3.0))


def test_one_kernel_for_value_and_gradient():
    text = ft.jit(ft.value_and_grad(root)).lower(1.0).as_text("python")
    assert text.count("def ") == 1
    assert "host call" not in text


@pytest.mark.parametrize("index", [-3, 0, 1, 2, 9])
def test_switch(index):
    branches = [fnp.sin, lambda x: x * x, lambda x: 5.0 + 0.0 * x]
    f = ft.jit(lambda i, x: lax.switch(i, branches, x))
    want = branches[min(max(index, 0), 2)]
    assert f(index, 0.7) == pytest.approx(float(want(0.7)))
    assert ft.grad(f, argnums=1)(index, 0.7) == pytest.approx(float(ft.grad(want)(0.7)))


def test_outputs_that_are_operands():
    f = ft.jit(lambda p, x, y: lax.cond(p, lambda x, y: (x, y, x), lambda x, y: (y, x, x), x, y))
    assert [float(v) for v in f(True, 1.0, 2.0)] == [1, 2, 1]
    assert [float(v) for v in f(False, 1.0, 2.0)] == [2, 1, 1]
    slope = ft.grad(lambda x, p: fnp.sum(fnp.stack(f(p, x, 2.0)) * np.array([1.0, 10.0, 100.0])))
    assert slope(1.0, True) == 101.0
    assert slope(1.0, False) == 110.0


def test_an_operand_that_is_given_twice_and_read_once():
    @ft.jit
    def f(p, x):
        _, v = lax.cond(p, lambda a, b: (fnp.sin(a), b * 2.0), lambda a, b: (fnp.cos(a), b * 3.0), x, x)
        return v

    assert f(True, 5.0) == 10.0
    assert f(False, 5.0) == 15.0

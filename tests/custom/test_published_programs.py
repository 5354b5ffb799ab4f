"""Programs with rules as people write them for JAX; the numbers are those that JAX 0.10 prints for them."""

import functools

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax

# --- a fixed point, differentiated by the implicit function theorem ----------------------------------------------


@functools.partial(ft.custom_vjp, nondiff_argnums=(0,))
def fixed_point(f, a, guess):
    def goes_on(pair):
        before, x = pair
        return fnp.abs(before - x) > 1e-12

    return lax.while_loop(goes_on, lambda pair: (pair[1], f(a, pair[1])), (guess, f(a, guess)))[1]


def fixed_point_fwd(f, a, guess):
    x = fixed_point(f, a, guess)
    return x, (a, x)


def _adjoint_step(f, packed, u):
    a, x, ct = packed
    return ct + ft.vjp(lambda x: f(a, x), x)[1](u)[0]


def fixed_point_bwd(f, kept, ct):
    a, x = kept
    _, pull = ft.vjp(lambda a: f(a, x), a)
    return pull(fixed_point(functools.partial(_adjoint_step, f), (a, x, ct), ct))[0], fnp.zeros_like(x)


fixed_point.defvjp(fixed_point_fwd, fixed_point_bwd)


def square_root(a):
    return fixed_point(lambda a, x: 0.5 * (x + a / x), a, 1.0)


def test_fixed_point():
    first, second = ft.grad(square_root), ft.grad(ft.grad(square_root))
    assert square_root(2.0) == pytest.approx(1.4142135624)
    for g in (first, ft.jit(first)):
        assert g(2.0) == pytest.approx(0.3535533906)
    for g in (second, ft.jit(second)):
        assert g(2.0) == pytest.approx(-0.0883883476)
    np.testing.assert_allclose(ft.vmap(first)(np.array([1.0, 2.0, 3.0])), [0.5, 0.3535533906, 0.2886751346])


# --- a minimum of a function that captured what is differentiated ------------------------------------------------


def minimum(loss, x):
    converted, consts = ft.closure_convert(loss, x)
    return _minimum(converted, x, *consts)


@functools.partial(ft.custom_vjp, nondiff_argnums=(0,))
def _minimum(loss, x, *consts):
    return lax.fori_loop(0, 60, lambda i, x: x - 0.3 * ft.grad(loss)(x, *consts), x)


def _minimum_fwd(loss, x, *consts):
    best = _minimum(loss, x, *consts)
    return best, (best, consts)


def _minimum_bwd(loss, kept, ct):
    best, consts = kept
    scale = -ct / ft.hessian(loss)(best, *consts)
    return fnp.zeros_like(best), *ft.vjp(lambda *c: ft.grad(loss)(best, *c), *consts)[1](scale)


_minimum.defvjp(_minimum_fwd, _minimum_bwd)


def test_minimum():
    def uneven(a):
        return minimum(lambda x: (x - a**2) ** 2 / 2 + fnp.cos(x) * 0.1, 0.0)

    assert ft.grad(uneven)(1.5) == pytest.approx(2.8081310352)
    assert ft.jit(ft.grad(lambda a: minimum(lambda x: (x - a**2) ** 2 / 2, 0.0)))(1.5) == pytest.approx(3.0)


# --- small ones --------------------------------------------------------------------------------------------------


def test_a_slope_that_is_finite_where_that_of_the_formula_is_not():
    @ft.custom_jvp
    def f(x):
        return x / (1 + fnp.sqrt(x))

    @f.defjvp
    def f_jvp(primals, tangents):
        (x,), (t,) = primals, tangents
        root = fnp.sqrt(x)
        return f(x), (root + 2) / (2 * (root + 1) ** 2) * t

    assert ft.grad(f)(0.0) == 1.0
    assert ft.grad(ft.grad(f))(1.0) == pytest.approx(-0.125)
    np.testing.assert_allclose(ft.jit(ft.vmap(ft.grad(f)))(np.arange(3.0)), [1.0, 0.375, 0.2928932188])


def test_clipped_gradients_with_bounds_that_are_mapped():
    @ft.custom_vjp
    def clip_gradient(low, high, x):
        return x

    clip_gradient.defvjp(
        lambda low, high, x: (x, (low, high)), lambda kept, ct: (None, None, fnp.clip(ct, kept[0], kept[1]))
    )
    slope = ft.grad(lambda x: clip_gradient(-0.75, 0.75, fnp.sin(x)) * 3)
    wanted = [0.75, 0.4052267294, -0.3121101274, -0.7424943725]
    np.testing.assert_allclose(ft.vmap(slope)(np.linspace(0, 3, 4)), wanted)
    bounded = ft.grad(lambda x, h: clip_gradient(-h, h, x) * 3)
    np.testing.assert_allclose(ft.vmap(bounded, (None, 0))(1.0, np.array([0.1, 0.2])), [0.1, 0.2])


def test_a_layer_with_parameters_in_a_tree():
    @ft.custom_vjp
    def layer(p, x):
        return {"y": p["w"] @ x + p["b"], "n": fnp.sum(x**2)}

    def bwd(kept, ct):
        w, x = kept["p"]["w"], kept["x"]
        return {"w": fnp.outer(ct["y"], x) * kept["k"], "b": ct["y"]}, w.T @ ct["y"] + 2 * ct["n"] * x

    layer.defvjp(lambda p, x: (layer(p, x), {"p": p, "x": x, "k": 3}), bwd)

    def loss(p, x):
        return fnp.sum(layer(p, x)["y"] ** 2) + layer(p, x)["n"]

    p = {"w": np.arange(6.0).reshape(2, 3), "b": np.ones(2)}
    for g in (ft.grad(loss, (0, 1)), ft.jit(ft.grad(loss, (0, 1)))):
        slopes, at_x = g(p, np.arange(3.0))
        np.testing.assert_allclose(slopes["b"], [12.0, 30.0])
        np.testing.assert_allclose(slopes["w"], [[0.0, 36.0, 72.0], [0.0, 90.0, 180.0]])
        np.testing.assert_allclose(at_x, [90.0, 134.0, 178.0])


def test_a_rule_that_asks_for_symbolic_zeros():
    product = ft.custom_jvp(lambda x, y: x * y)

    def jvp(primals, tangents):
        (x, y), (t_x, t_y) = primals, tangents
        parts = []
        if type(t_x) is not ft.custom_derivatives.SymbolicZero:
            parts.append(t_x * y)
        if type(t_y) is not ft.custom_derivatives.SymbolicZero:
            parts.append(7 * x * t_y)
        return x * y, sum(parts)

    product.defjvp(jvp, symbolic_zeros=True)
    assert ft.grad(product)(2.0, 3.0) == 3.0
    assert ft.grad(product, (0, 1))(2.0, 3.0) == (3.0, 14.0)
    assert ft.jit(ft.grad(product))(2.0, 3.0) == 3.0
    assert ft.grad(lambda y: product(2.0, y))(3.0) == 14.0


def test_complex():
    by_jvp = ft.custom_jvp(lambda z: z * z)
    by_jvp.defjvps(lambda t, out, z: 3 * z * t)
    by_vjp = ft.custom_vjp(lambda z: z * z)
    by_vjp.defvjp(lambda z: (z * z, z), lambda z, ct: (3 * z * ct,))
    for f in (by_jvp, by_vjp):
        assert ft.grad(lambda x: fnp.real(f(x + 1j)))(2.0) == 6.0  # noqa: B023
        assert ft.grad(lambda z: fnp.abs(f(z)))(1.0 + 1.0j) == pytest.approx(3 - 3j)  # noqa: B023
    assert ft.grad(by_vjp, holomorphic=True)(1.0 + 2.0j) == 3 + 6j
    assert ft.jvp(by_jvp, (1j,), (1.0 + 0.0j,)) == (-1.0, 3j)


def test_a_vector_function():
    @ft.custom_vjp
    def f(x):
        return fnp.sin(x) * x[0]

    def bwd(x, ct):
        return (ct * fnp.cos(x) * x[0] + fnp.zeros_like(x).at[0].set(fnp.sum(ct * fnp.sin(x))),)

    f.defvjp(lambda x: (fnp.sin(x) * x[0], x), bwd)
    x = np.arange(1.0, 4.0)
    wanted = np.diag(np.cos(x) * x[0])
    wanted[:, 0] += np.sin(x)
    np.testing.assert_allclose(ft.jacrev(f)(x), wanted, rtol=1e-14)
    np.testing.assert_allclose(ft.jacfwd(f)(x), wanted, rtol=1e-14)
    plain = ft.hessian(lambda x: fnp.sum(fnp.sin(x) * x[0]))(x)
    np.testing.assert_allclose(ft.hessian(lambda x: fnp.sum(f(x)))(x), plain, rtol=1e-14, atol=1e-15)

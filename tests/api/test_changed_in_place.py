"""Derivatives of order two keep their numbers if the user changes an array between forward and backward pass."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax

X, W, V = np.array([0.4, -0.7, 1.1]), np.array([1.3, 0.6, -0.9]), np.array([1.0, 2.0, -1.0])


class Weighted(ft.Function):
    """``x * x * w``, by a rule that saves its arguments."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * x * w

    @staticmethod
    def backward(ctx, ct):
        x, w = ctx.saved_tensors
        return 2 * x * w * ct, None


@ft.custom_vjp
def cube(x, w):
    return x * x * x * w


cube.defvjp(
    lambda x, w: (cube(x, w), (x, w)), lambda res, ct: (3 * res[0] ** 2 * res[1] * ct, ct * res[0] ** 3)
)


def hooked(w):
    """Its hook reads a value of the forward pass, which is a residual."""

    def f(x):
        y = x * w
        scale = y * w
        ft.register_hook(y, lambda ct: ct * scale, mode="inline")
        return fnp.sum(y * y)

    return f


#: Functions of x that capture w.
PROGRAMS = {
    "elementwise": lambda w: lambda x: fnp.sum(fnp.sin(x * w) * x * x),
    "products": lambda w: lambda x: x @ (fnp.outer(w, w) @ x) * fnp.sum(x),
    "a norm": lambda w: lambda x: fnp.linalg.norm(x * w) ** 3,
    "indices": lambda w: lambda x: fnp.sum(x[np.array([0, 1, 1])] ** 3 * w),
    "writes": lambda w: lambda x: fnp.sum(fnp.zeros(4).at[np.array([0, 2, 2])].add(x * w) ** 3),
    "a scan": lambda w: (
        lambda x: fnp.sum(
            lax.scan(lambda c, row: (fnp.tanh(c * row) * w, None), x, w[:, None] * np.ones(3))[0] ** 2
        )
    ),
    "a branch": lambda w: lambda x: lax.cond(x[0] > 0, lambda x: fnp.sum(x**3 * w), lambda x: x[0] * w[0], x),
    "a Function": lambda w: lambda x: fnp.sum(Weighted.apply(Weighted.apply(x, w), w)),
    "a custom_vjp": lambda w: lambda x: fnp.sum(cube(x, w)),
    "a hook": hooked,
}
WRAPS = {"eager": lambda f: f, "jit": ft.jit, "checkpoint": ft.checkpoint}
hvp = lambda f: lambda x: ft.jvp(ft.grad(f), (x,), (V,))[1]
#: From a function and a point to a derivative of order two or three that is computed later.
LATER = {
    "vjp of grad": lambda f, x: ft.vjp(ft.grad(f), x)[1],
    "vjp of jit of grad": lambda f, x: ft.vjp(ft.jit(ft.grad(f)), x)[1],
    "vjp of vjp": lambda f, x: ft.vjp(lambda x: ft.vjp(f, x)[1](1.0)[0], x)[1],
    "vjp of hvp": lambda f, x: ft.vjp(hvp(f), x)[1],
    "vjp of vmap": lambda f, x: (lambda pull: lambda v: pull(v[None]))(
        ft.vjp(ft.vmap(ft.grad(f)), x[None])[1]
    ),
    "linearize of grad": lambda f, x: ft.linearize(ft.grad(f), x)[1],
    "linearize of jit of grad": lambda f, x: ft.linearize(ft.jit(ft.grad(f)), x)[1],
    "linearize of vjp": lambda f, x: ft.linearize(lambda x: ft.vjp(f, x)[1](1.0)[0], x)[1],
    "vjp of linearize": lambda f, x: ft.vjp(ft.linearize(ft.grad(f), x)[1], V)[1],
}


@pytest.mark.parametrize("wrap", ["eager", "jit", pytest.param("checkpoint", marks=pytest.mark.slow)])
@pytest.mark.parametrize("program", PROGRAMS)
def test_of_order_two(program, wrap):
    f = lambda w: WRAPS[wrap](PROGRAMS[program](w))
    for name, later in LATER.items():
        want = np.ravel(later(f(W), X)(V))
        for changed in ("x", "w"):
            arrays = {"x": X.copy(), "w": W.copy()}
            derivative = later(f(arrays["w"]), arrays["x"])
            arrays[changed][:] = 77.0
            np.testing.assert_array_equal(np.ravel(derivative(V)), want, err_msg=f"{name}: {changed}")


def test_the_cotangent_of_an_outer_derivative():
    v, x = V.copy(), X.copy()
    f = PROGRAMS["elementwise"](W)
    for wrap in (lambda g: g, ft.jit):
        g = wrap(lambda c, f=f: ft.vjp(ft.grad(f), X)[1](c)[0])
        want = np.array(ft.vjp(g, V)[1](V)[0])
        _, pull = ft.vjp(g, v)
        v[:] = 77.0
        np.testing.assert_array_equal(pull(V)[0], want)
        v[:] = V
    out = ft.vjp(ft.grad(f), x)[1](v)[0]
    kept = np.array(out)
    x[:], v[:] = 77.0, 77.0
    np.testing.assert_array_equal(out, kept)

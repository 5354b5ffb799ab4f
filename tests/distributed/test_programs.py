"""Programs of all kinds on two ranks: values and derivatives are those of one process on the whole data."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.distributed import P, run_threads, shard_map
from functrans.experimental.ode import odeint
from functrans.scipy import integrate, optimize

ALL, OWN = P(), P("i")
rng = np.random.default_rng(0)
W = rng.normal(size=(3, 3)) * 0.3 + np.eye(3)
X = rng.normal(size=(4, 3))


def summed(f):
    """The sum of ``f(w, row)`` by a loop over rows."""
    return lambda w, x: lax.scan(lambda total, row: (total + f(w, row), None), 0.0, x)[0]


def mapped(f):
    return lambda w, x: fnp.sum(ft.vmap(lambda row: f(w, row))(x))


def halved(w, row):
    """A loop that takes as many steps as the row needs."""

    def step(s):
        return s[0] * 0.5, s[1] + fnp.sum((w @ s[0]) ** 2)

    return lax.while_loop(lambda s: fnp.sum(s[0] ** 2) > 0.05, step, (row, 0.0))[1]


def root(w, row):
    return lax.custom_root(
        lambda y: y**3 + y - fnp.sum(w @ row),
        0.0,
        lambda f, y: lax.fori_loop(0, 50, lambda _, y: y - f(y) / (3 * y**2 + 1), y),
        lambda g, y: y / g(1.0),
    )


def system(w, row):
    x = lax.custom_linear_solve(
        lambda v: w @ v,
        row,
        lambda _, b: fnp.linalg.solve(w, b),
        lambda _, b: fnp.linalg.solve(w.T, b),
    )
    return fnp.sum(x**2)


def decay(gradient):
    times = np.array([0.0, 1.0])
    return lambda w, row: fnp.sum(odeint(lambda y, _: -0.1 * w @ y, row, times, gradient=gradient)[-1])


def branch(w, row):
    return lax.cond(fnp.sum(row) > 0, lambda r: fnp.sum((w @ r) ** 2), lambda r: fnp.sum(w @ r), row)


def linear(w, row):
    return fnp.sum(ft.linear_call(lambda r, v: v @ r, lambda r, ct: fnp.outer(ct, r), row, w) ** 2)


PROGRAMS = {
    "scan": summed(lambda w, r: fnp.sum(fnp.sin(w @ r))),
    "rows out of a scan": lambda w, x: fnp.sum(lax.scan(lambda c, r: (c, (c @ r) ** 3), w, x)[1]),
    "vmap": mapped(lambda w, r: fnp.sum((w @ r) ** 2)),
    "while": summed(halved),
    "vmap of while": mapped(halved),
    "cond": summed(branch),
    "vmap of cond": mapped(branch),
    "checkpoint": lambda w, x: ft.checkpoint(lambda w, x: fnp.sum(fnp.sin(x @ w)))(w, x),
    "jit of captured values": lambda w, x: ft.jit(lambda x: fnp.sum(fnp.sin(x @ w)))(x),
    "eigenvalues": lambda w, x: fnp.sum(x @ fnp.linalg.eigh(w @ w.T)[0]),
    "sort": lambda w, x: fnp.sum(fnp.sort(x @ w, axis=1) * fnp.arange(3.0)),
    "gather": lambda w, x: fnp.sum(w[fnp.argmax(x, axis=1)] * x),
    "gradient": mapped(lambda w, r: fnp.sum(ft.grad(lambda v: fnp.sum(fnp.sin(w @ v)))(r) ** 2)),
    "hessian": mapped(lambda w, r: fnp.sum(ft.hessian(lambda v: fnp.sum(fnp.sin(w @ v)))(r) ** 2)),
    "jvp": lambda w, x: ft.jvp(lambda v: fnp.sum(fnp.sin(v @ w)), (x,), (x,))[1],
    "linearize": lambda w, x: ft.linearize(lambda v: fnp.sum(fnp.sin(v @ w)), x)[1](x),
    "custom_root": mapped(root),
    "custom_linear_solve": mapped(system),
    "linear_call": summed(linear),
    "brentq": summed(lambda w, r: optimize.brentq(lambda y: y**3 + y - fnp.sum(w @ r), -10.0, 10.0) ** 2),
    "quad": summed(lambda w, r: integrate.quad(lambda t: fnp.sum(fnp.sin(w @ r * t)), 0.0, 1.0)[0]),
    "odeint": mapped(decay("adjoint")),
    "odeint, its steps": summed(decay("direct")),
}


#: These compile for seconds.
SLOW = ("hessian", "odeint", "odeint, its steps")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in PROGRAMS]
)
def test_derivatives(name):
    f = PROGRAMS[name]

    def loss(w, x):
        return lax.psum(f(w, x), "i")

    def program(mesh):
        ins, outs = (ALL, OWN), (ALL, OWN)
        whole = shard_map(loss, mesh=mesh, in_specs=ins, out_specs=ALL)
        local = shard_map(ft.grad(f, (0, 1)), mesh=mesh, in_specs=ins, out_specs=outs)
        second = shard_map(
            ft.grad(lambda w, x: fnp.sum(ft.grad(loss)(w, x) ** 2)), mesh=mesh, in_specs=ins, out_specs=ALL
        )
        gradients = [ft.grad(whole, (0, 1))(W, X), ft.grad(ft.jit(whole), (0, 1))(W, X), local(W, X)]
        seconds = [second(W, X), ft.grad(lambda w: fnp.sum(ft.grad(whole)(w, X) ** 2))(W)]
        return [ft.jit(whole)(W, X)], gradients, seconds

    tolerance = 1e-6 if name == "odeint" else 1e-10
    values, gradients, seconds = run_threads((2,), ("i",), program)[0]
    expected = f(W, X), ft.grad(f, (0, 1))(W, X), ft.grad(lambda w: fnp.sum(ft.grad(f)(w, X) ** 2))(W)
    for group, one in zip((values, gradients, seconds), expected):
        for got in group:
            for a, b in zip(ft.tree.leaves(got), ft.tree.leaves(one), strict=True):
                np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)

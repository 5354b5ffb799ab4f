"""Functions and arrays of JAX and of functrans together, in an environment with both: `test_beside_jax` runs it."""

import jax
import jax.numpy as jnp
import numpy as np

import functrans as ft
import functrans.numpy as fnp


def close(found, expected):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=3e-6, atol=1e-6), found, expected)


x = np.linspace(0.1, 1.0, 4)
sums = ft.from_jax(lambda p, n: {"y": jnp.sum(jnp.sin(p["a"]) * n), "n": n + 1})
for form in (lambda f: f, ft.jit):
    gradient = form(ft.grad(lambda p: sums(p, 2)["y"]))({"a": fnp.asarray(x)})
    close(gradient["a"], 2 * np.cos(x))
    assert gradient["a"].dtype == np.float64
    sine = ft.from_jax(jax.jit(jnp.sin))
    close(form(ft.grad(ft.grad(sine)))(1.0), -np.sin(1.0))
    close(form(ft.vmap(ft.grad(sine)))(x), np.cos(x))
assert sums({"a": x}, 2)["n"] == 3

sums = ft.to_jax(lambda p, n: {"y": fnp.sum(fnp.sin(p["a"]) * n), "n": n + 1})
for form in (lambda f: f, jax.jit):
    close(form(jax.grad(lambda p: sums(p, 2)["y"]))({"a": jnp.asarray(x)})["a"], 2 * np.cos(x))
    sine = ft.to_jax(fnp.sin)
    close(form(jax.grad(jax.grad(sine)))(1.0), -np.sin(1.0))
    close(form(jax.vmap(jax.grad(sine)))(x), np.cos(x))
assert sums({"a": x}, 2)["n"] == 3


def check_both_modes(convert, np_, lib, form):
    """Forward mode, both modes of one another, and `vmap` outside and inside."""
    f, sine = convert(lambda p, n: {"y": np_.sin(p["a"]) * n, "n": n + 1}), convert(np_.sin)
    a, total = lib.numpy.asarray(x), lambda x: sine(x).sum()
    out, tangent = form(lambda a, t: lib.jvp(lambda a: f({"a": a}, 2)["y"], (a,), (t,)))(a, a)
    close(out, 2 * np.sin(x))
    close(tangent, 2 * np.cos(x) * x)
    close(form(lib.jacfwd(sine))(a), np.diag(np.cos(x)))
    close(form(lib.jacrev(sine))(a), np.diag(np.cos(x)))
    close(form(lib.hessian(total))(a), np.diag(-np.sin(x)))
    close(form(lib.jacfwd(lib.jacrev(total)))(a), np.diag(-np.sin(x)))
    close(form(lib.grad(lambda x: lib.vmap(sine)(x).sum()))(a), np.cos(x))
    close(form(lib.grad(lambda x: lib.vmap(lib.grad(sine))(x).sum()))(a), -np.sin(x))
    close(form(lib.vmap(lambda x: lib.jvp(sine, (x,), (2.0 * x,))[1]))(a), 2 * x * np.cos(x))
    slope = lambda a: lib.jvp(lambda b: lib.numpy.sum(sine(b) * sine(a)), (a,), (a,))[1]
    close(form(lib.grad(slope))(a), np.cos(2 * x) * x + np.sin(2 * x) / 2)


for own, np_, lib in ((ft.from_jax, jnp, ft), (ft.to_jax, fnp, jax)):
    check_both_modes(own, np_, lib, lambda f: f)
    check_both_modes(own, np_, lib, lib.jit)

ours, its = fnp.ones(3), jnp.ones(3)
close(jnp.sin(ours), np.sin(np.ones(3)))
close(fnp.sin(its), np.sin(np.ones(3)))
close(jax.jit(jnp.sin)(ours), ft.jit(fnp.sin)(its))
for difference in (ours - its, its - ours):
    close(difference, np.zeros(3))
close(jnp.from_dlpack(ours), fnp.from_dlpack(its))
close(ft.grad(lambda y: fnp.sum(y * its))(ours), np.ones(3))

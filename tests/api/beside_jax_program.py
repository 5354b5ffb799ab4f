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

ours, its = fnp.ones(3), jnp.ones(3)
close(jnp.sin(ours), np.sin(np.ones(3)))
close(fnp.sin(its), np.sin(np.ones(3)))
close(jax.jit(jnp.sin)(ours), ft.jit(fnp.sin)(its))
for difference in (ours - its, its - ours):
    close(difference, np.zeros(3))
close(jnp.from_dlpack(ours), fnp.from_dlpack(its))
close(ft.grad(lambda y: fnp.sum(y * its))(ours), np.ones(3))

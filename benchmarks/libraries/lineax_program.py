"""lineax: a system by conjugate gradients and one by least squares, with gradients."""

import jax
import jax.numpy as jnp
import lineax as lx


def program():
    a = jax.random.normal(jax.random.PRNGKey(0), (20, 20))
    a = a @ a.T + 20 * jnp.eye(20)
    b = jnp.linspace(-1.0, 1.0, 20)
    tall = jax.random.normal(jax.random.PRNGKey(1), (30, 5))

    @jax.jit
    @jax.value_and_grad
    def loss(b):
        positive = lx.MatrixLinearOperator(a, lx.positive_semidefinite_tag)
        x = lx.linear_solve(positive, b, lx.CG(rtol=1e-8, atol=1e-8)).value
        fit = lx.linear_solve(lx.MatrixLinearOperator(tall), jnp.concatenate([b, b[:10]]), lx.QR()).value
        return jnp.sum(x**2) + jnp.sum(jnp.sin(fit))

    return loss, (b,)

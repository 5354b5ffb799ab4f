"""jaxopt: ridge regression by L-BFGS, and the derivative of its test error with respect to the penalty."""

import jax
import jax.numpy as jnp
import jaxopt


def program():
    k1, k2, k3 = jax.random.split(jax.random.key(2), 3)
    x, noise = jax.random.normal(k1, (60, 8)), jax.random.normal(k2, (60,))
    y = x @ jax.random.normal(k3, (8,)) + noise

    def objective(w, penalty):
        return jnp.mean((x[:40] @ w - y[:40]) ** 2) + penalty * jnp.sum(w**2)

    solver = jaxopt.LBFGS(objective, maxiter=100, tol=1e-6)

    @jax.jit
    @jax.value_and_grad
    def error(penalty):
        w = solver.run(jnp.zeros(8), penalty).params
        return jnp.mean((x[40:] @ w - y[40:]) ** 2)

    return error, (jnp.array(0.1),)

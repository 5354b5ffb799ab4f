"""tinygp: the likelihood of a Gaussian process, dense and quasiseparable, and its gradient."""

import jax
import jax.numpy as jnp
from tinygp import GaussianProcess, kernels


def program():
    x = jnp.sort(10 * jax.random.uniform(jax.random.PRNGKey(0), (60,)))
    y = jnp.sin(x) + 0.1 * jax.random.normal(jax.random.PRNGKey(1), (60,))

    def loss(theta):
        kernel = jnp.exp(theta[0]) * kernels.Matern32(jnp.exp(theta[1]))
        quick = jnp.exp(theta[0]) * kernels.quasisep.Matern32(jnp.exp(theta[1]))
        noise = jnp.exp(theta[2])
        dense = GaussianProcess(kernel, x, diag=noise).log_probability(y)
        return -dense - GaussianProcess(quick, x, diag=noise).log_probability(y)

    return jax.jit(jax.value_and_grad(loss)), (jnp.array([0.1, 0.2, -2.0]),)

"""dynamax: the marginal likelihood of a linear Gaussian state space model, and its gradient."""

import jax
import jax.numpy as jnp
from dynamax.linear_gaussian_ssm import lgssm_filter
from dynamax.linear_gaussian_ssm.inference import make_lgssm_params


def program():
    emissions = jnp.sin(jnp.arange(100.0))[:, None] * jnp.ones(2) + jax.random.normal(
        jax.random.key(3), (100, 2)
    )

    def loss(theta):
        a, log_q, log_r = theta
        params = make_lgssm_params(
            jnp.zeros(3), jnp.eye(3), a * jnp.eye(3) + 0.1 * jnp.eye(3, k=1), jnp.exp(log_q) * jnp.eye(3),
            jnp.eye(2, 3), jnp.exp(log_r) * jnp.eye(2),
        )  # fmt: skip
        return -lgssm_filter(params, emissions).marginal_loglik

    return jax.jit(jax.value_and_grad(loss)), (jnp.array([0.9, -1.0, -0.5]),)

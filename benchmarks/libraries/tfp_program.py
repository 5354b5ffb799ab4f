"""TensorFlow Probability on JAX: a model's log density, its gradient, and Hamiltonian Monte Carlo."""

import jax
import jax.numpy as jnp
from tensorflow_probability.substrates import jax as tfp

tfd, tfb = tfp.distributions, tfp.bijectors


def program():
    x = jax.random.normal(jax.random.PRNGKey(0), (80, 3))
    y = x @ jnp.array([1.0, -0.5, 2.0]) + 0.3

    def density(w):
        prior = tfd.MultivariateNormalDiag(jnp.zeros(3), 2.0 * jnp.ones(3)).log_prob(w)
        return prior + tfd.StudentT(4.0, x @ w, 1.0).log_prob(y).sum()

    kernel = tfp.mcmc.HamiltonianMonteCarlo(density, step_size=0.02, num_leapfrog_steps=5)

    @jax.jit
    def sample(key):
        return tfp.mcmc.sample_chain(
            100, jnp.zeros(3), kernel=kernel, num_burnin_steps=50, trace_fn=None, seed=key
        )

    return sample, (jax.random.PRNGKey(1),)

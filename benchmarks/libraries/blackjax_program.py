"""blackjax: 100 steps of NUTS on a logistic regression."""

import blackjax
import jax
import jax.numpy as jnp


def program():
    k1, k2, key = jax.random.split(jax.random.key(1), 3)
    x = jax.random.normal(k1, (100, 4))
    y = jax.random.bernoulli(k2, jax.nn.sigmoid(x @ jnp.array([1.0, -1.0, 0.5, 0.0]))).astype(x.dtype)

    def logdensity(w):
        logits = x @ w
        return jnp.sum(y * logits - jnp.logaddexp(0.0, logits)) - 0.5 * jnp.sum(w**2)

    nuts = blackjax.nuts(logdensity, step_size=0.3, inverse_mass_matrix=jnp.ones(4))

    @jax.jit
    def sample(key):
        def step(state, key):
            state, info = nuts.step(key, state)
            return state, (state.position, info.acceptance_rate)

        return jax.lax.scan(step, nuts.init(jnp.zeros(4)), jax.random.split(key, 100))[1]

    return sample, (key,)

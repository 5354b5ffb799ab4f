"""distrax: the likelihood of a mixture and of a transformed distribution, their gradients, and samples."""

import distrax
import jax
import jax.numpy as jnp


def program():
    data = jax.random.normal(jax.random.key(0), (500,))

    def loss(p):
        mixture = distrax.MixtureSameFamily(
            distrax.Categorical(logits=p["logits"]), distrax.Normal(p["loc"], jnp.exp(p["scale"]))
        )
        flow = distrax.Transformed(
            distrax.Normal(0.0, 1.0), distrax.Chain([distrax.ScalarAffine(p["shift"], 2.0), distrax.Tanh()])
        )
        return -mixture.log_prob(data).mean() - flow.log_prob(0.5 * jnp.tanh(data) + p["shift"]).mean()

    params = {
        "logits": jnp.zeros(3),
        "loc": jnp.array([-1.0, 0.0, 1.0]),
        "scale": jnp.zeros(3),
        "shift": jnp.array(0.1),
    }

    @jax.jit
    def step(params, key):
        sample = distrax.MultivariateNormalDiag(params["loc"], jnp.exp(params["scale"])).sample(
            seed=key, sample_shape=10
        )
        return jax.value_and_grad(loss)(params), sample

    return step, (params, jax.random.PRNGKey(1))

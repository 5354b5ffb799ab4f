"""optax: a small network trained by AdamW with clipped gradients and a cosine schedule, 50 steps in a scan."""

import jax
import jax.numpy as jnp
import optax


def program():
    key = jax.random.key(0)
    k1, k2, k3 = jax.random.split(key, 3)
    params = {
        "w": jax.random.normal(k1, (16, 32)) / 4,
        "b": jnp.zeros(32),
        "v": jax.random.normal(k2, (32,)) / 6,
    }
    x = jax.random.normal(k3, (128, 16))
    y = jnp.sin(x.sum(axis=1))
    schedule = optax.cosine_decay_schedule(1e-2, 50)
    optimiser = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule))

    def loss(p):
        return jnp.mean(optax.huber_loss(jnp.tanh(x @ p["w"] + p["b"]) @ p["v"], y))

    def step(carry, _):
        p, state = carry
        value, grads = jax.value_and_grad(loss)(p)
        updates, state = optimiser.update(grads, state, p)
        return (optax.apply_updates(p, updates), state), value

    @jax.jit
    def train(p):
        (p, _), losses = jax.lax.scan(step, (p, optimiser.init(p)), None, length=50)
        return p, losses

    return train, (params,)

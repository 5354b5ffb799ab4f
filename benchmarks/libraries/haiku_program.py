"""haiku: a recurrent network over a sequence, its loss and gradient."""

import haiku as hk
import jax
import jax.numpy as jnp


def program():
    def model(xs):
        core = hk.LSTM(16)
        hs, _ = hk.dynamic_unroll(core, xs, core.initial_state(xs.shape[1]))
        return hk.nets.MLP([16, 1])(hs)

    net = hk.without_apply_rng(hk.transform(model))
    xs = jnp.sin(0.3 * jnp.arange(41.0))[:, None, None] * jnp.linspace(0.5, 1.5, 8)[:, None]
    params = net.init(jax.random.PRNGKey(0), xs)

    def loss(p):
        return jnp.mean((net.apply(p, xs[:-1]) - xs[1:]) ** 2)

    return jax.jit(jax.value_and_grad(loss)), (params,)

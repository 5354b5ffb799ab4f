"""equinox: a recurrent cell over a sequence and an MLP, a step of training by optax."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax


class Model(eqx.Module):
    """The network."""

    cell: eqx.nn.GRUCell
    head: eqx.nn.MLP

    def __init__(self, key):
        k1, k2 = jax.random.split(key)
        self.cell = eqx.nn.GRUCell(2, 16, key=k1)
        self.head = eqx.nn.MLP(16, 1, 16, 2, key=k2)

    def __call__(self, xs):
        h = jax.lax.scan(lambda h, x: (self.cell(x, h), None), jnp.zeros(16), xs)[0]
        return self.head(h)


def program():
    model = Model(jax.random.PRNGKey(0))
    optimiser = optax.adam(1e-3)
    state = optimiser.init(eqx.filter(model, eqx.is_inexact_array))
    xs = jax.random.normal(jax.random.PRNGKey(1), (32, 20, 2))
    y = xs.sum(axis=(1, 2))[:, None]

    @eqx.filter_value_and_grad
    def loss(model, xs, y):
        return jnp.mean((jax.vmap(model)(xs) - y) ** 2)

    @eqx.filter_jit
    def step(model, state, xs, y):
        value, grads = loss(model, xs, y)
        updates, state = optimiser.update(grads, state, eqx.filter(model, eqx.is_inexact_array))
        return value, eqx.filter(eqx.apply_updates(model, updates), eqx.is_inexact_array)

    return step, (model, state, xs, y)

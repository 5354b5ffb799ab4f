"""flax.nnx: a step of training of a network with dropout and batch normalisation."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx


class Network(nnx.Module):
    """The network."""

    def __init__(self, rngs):
        self.first = nnx.Linear(16, 64, rngs=rngs)
        self.norm = nnx.BatchNorm(64, rngs=rngs)
        self.drop = nnx.Dropout(0.2, rngs=rngs)
        self.last = nnx.Linear(64, 1, rngs=rngs)

    def __call__(self, x):
        return self.last(self.drop(nnx.relu(self.norm(self.first(x)))))


def program():
    model = Network(nnx.Rngs(0))
    optimiser = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
    x = jax.random.normal(jax.random.key(0), (64, 16))
    y = jnp.sin(x.sum(axis=1, keepdims=True))

    @nnx.jit
    def step(model, optimiser):
        value, grads = nnx.value_and_grad(lambda m: jnp.mean((m(x) - y) ** 2))(model)
        optimiser.update(model, grads)
        return value

    return (lambda: (step(model, optimiser), model.last.kernel[...])), ()

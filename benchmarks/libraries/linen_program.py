"""flax.linen: a convolutional network with normalisation, its loss and gradient."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax


class Network(nn.Module):
    """The network."""

    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Conv(8, (3, 3))(x))
        x = nn.avg_pool(x, (2, 2), strides=(2, 2))
        x = nn.LayerNorm()(x)
        x = nn.relu(nn.Dense(32)(x.reshape(x.shape[0], -1)))
        return nn.Dense(10)(x)


def program():
    model = Network()
    x = jax.random.normal(jax.random.key(0), (16, 12, 12, 1))
    labels = jnp.arange(16) % 10
    params = model.init(jax.random.key(1), x)

    def loss(p):
        return optax.softmax_cross_entropy_with_integer_labels(model.apply(p, x), labels).mean()

    return jax.jit(jax.value_and_grad(loss)), (params,)

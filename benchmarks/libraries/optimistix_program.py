"""optimistix: a root by Newton's method and a least-squares fit by Levenberg-Marquardt, with gradients."""

import jax
import jax.numpy as jnp
import optimistix as optx


def program():
    t = jnp.linspace(0.0, 2.0, 40)

    def residuals(p, args):
        return p[0] * jnp.exp(-p[1] * t) - args * jnp.exp(-0.7 * t) - 0.01 * jnp.sin(5 * t)

    def equation(y, args):
        return y - args * jnp.cos(y)

    @jax.jit
    @jax.value_and_grad
    def loss(scale):
        fit = optx.least_squares(
            residuals, optx.LevenbergMarquardt(1e-8, 1e-8), jnp.ones(2), args=scale
        ).value
        root = optx.root_find(equation, optx.Newton(1e-8, 1e-8), jnp.array([0.5, 0.3]), args=scale).value
        return jnp.sum(fit**2) + jnp.sum(root)

    return loss, (jnp.array(1.5),)

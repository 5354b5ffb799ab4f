"""diffrax: an ordinary differential equation by Tsit5 with adaptive steps, and the gradient of its end."""

import diffrax
import jax
import jax.numpy as jnp


def program():
    def field(t, y, args):
        a, b = args
        return jnp.stack([a * y[0] - y[0] * y[1], y[0] * y[1] - b * y[1]])

    @jax.jit
    @jax.value_and_grad
    def loss(args):
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(field), diffrax.Tsit5(), 0.0, 5.0, 0.1, jnp.array([1.0, 0.8]), args=args,
            stepsize_controller=diffrax.PIDController(rtol=1e-6, atol=1e-8),
            saveat=diffrax.SaveAt(ts=jnp.linspace(0, 5, 6)),
        )  # fmt: skip
        return jnp.sum(solution.ys[-1] ** 2) + jnp.sum(solution.ys)

    return loss, (jnp.array([1.1, 0.9]),)

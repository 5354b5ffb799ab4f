"""chex: dataclasses as states of a scan, with assertions about shapes, dtypes and trees."""

import chex
import jax
import jax.numpy as jnp


@chex.dataclass(frozen=True)
class State:
    """The state of a particle."""

    position: chex.Array
    velocity: chex.Array


def program():
    def force(x):
        chex.assert_shape(x, (3,))
        return -x + 0.1 * jnp.sin(x)

    def step(s, _):
        chex.assert_equal_shape([s.position, s.velocity])
        v = s.velocity + 0.05 * force(s.position)
        new = s.replace(position=s.position + 0.05 * v, velocity=v)
        chex.assert_trees_all_equal_structs(s, new)
        return new, jnp.sum(v**2)

    @jax.jit
    @chex.assert_max_traces(n=2)
    def run(s):
        chex.assert_tree_all_finite(jax.tree.map(jnp.shape, s))
        return jax.lax.scan(step, s, None, length=500)

    state = State(position=jnp.array([1.0, 0.0, -1.0]), velocity=jnp.zeros(3))
    return run, (state,)

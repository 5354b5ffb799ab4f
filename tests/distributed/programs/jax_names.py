"""A program for JAX over processes, and what they exchange besides."""

import numpy as np

import functrans as jax
import functrans.numpy as jnp
from functrans.errors import ShardingError
from functrans.experimental import multihost_utils
from functrans.sharding import NamedSharding

n, rank = jax.process_count(), jax.process_index()
assert n == 2
assert 0 <= rank < n
mesh = jax.sharding.Mesh(np.array(jax.devices()), ("data",))
assert mesh.devices[rank].id == jax.local_devices()[0].process_index == rank
X = np.arange(8.0).reshape(4, 2)


@jax.jit
@jax.shard_map(mesh=mesh, in_specs=(jax.P(), jax.P("data")), out_specs=jax.P())
def loss(w, x):
    return jax.lax.pmean(jnp.mean((x @ w) ** 2), "data")


np.testing.assert_allclose(jax.grad(loss)(jnp.ones(2), X), 2 * X.T @ X.sum(1) / 4)
for put in (jax.device_put, jax.lax.with_sharding_constraint):
    try:
        put(X, NamedSharding(mesh, jax.P("data")))
    except ShardingError as error:
        assert "Pass the whole array to shard_map" in str(error)  # noqa: PT017
    else:
        raise AssertionError("no process has the blocks of others")
    np.testing.assert_array_equal(put(X, NamedSharding(mesh, jax.P())), X)
try:
    jax.lax.with_sharding_constraint(X, jax.P("data"))
except ShardingError as error:
    assert "needs a mesh" in str(error)  # noqa: PT017
else:
    raise AssertionError("a spec says nothing without a mesh")
np.testing.assert_array_equal(multihost_utils.process_allgather(rank), [0, 1])
np.testing.assert_array_equal(multihost_utils.broadcast_one_to_all(X + rank), X)
multihost_utils.sync_global_devices("end")
mesh.close()
if not rank:
    print("done")

"""Meshes and what goes with them, as a program for JAX names them."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import distributed
from functrans.distributed import run_threads
from functrans.errors import ArgumentError, ArgumentValueError, CollectiveError, ShardingError
from functrans.experimental import multihost_utils
from functrans.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

X = np.arange(8.0).reshape(4, 2)


def test_they_are_the_same_things():
    assert ft.shard_map is distributed.shard_map
    assert ft.P is PartitionSpec is distributed.P
    assert Mesh is distributed.Mesh
    assert isinstance(ft.make_mesh((1,), ("i",)), Mesh)
    assert ft.NamedSharding is NamedSharding


def program(_=None):
    """Like one for JAX, with `jax` imported by another name."""
    jax, jnp, P = ft, fnp, ft.P
    n = jax.process_count()
    mesh = jax.make_mesh(axis_shapes=(n,), axis_names=("data",), axis_types=(AxisType.Auto,))
    x = jax.device_put(X, NamedSharding(mesh, P("data", None)))

    @jax.jit
    @jax.shard_map(mesh=mesh, in_specs=(P(), P("data", None)), out_specs=P())
    def loss(w, x):
        return jax.lax.pmean(jnp.mean((x @ w) ** 2), "data")

    assert mesh.axis_names == ("data",)
    assert mesh.shape["data"] == n
    return n, jax.process_index(), jax.grad(loss)(jnp.ones(2), x)


def test_a_mesh_of_devices():
    """Each process is a device."""

    def check(mesh):
        devices = ft.devices()
        assert [d.id for d in devices] == [d.process_index for d in devices] == [0, 1, 2, 3]
        assert ft.local_devices()[0].id == ft.process_index() == mesh.rank
        assert (ft.device_count(), ft.local_device_count()) == (4, 1)
        with pytest.raises(ArgumentValueError, match="that of this process"):
            ft.local_devices(process_index=mesh.rank + 1)
        square = Mesh(np.array(devices).reshape(2, 2), ("a", "b"))
        assert square.shape == {"a": 2, "b": 2}
        assert [d.id for d in square.devices[1]] == [2, 3]
        assert ft.make_mesh((4,), ("i",), devices=devices).devices.shape == (4,)
        with pytest.raises(ShardingError, match="in their order"):
            Mesh(devices[::-1], ("i",))
        f = ft.shard_map(lambda x: ft.lax.psum(x, "b"), mesh=square, in_specs=ft.P("b"), out_specs=ft.P())
        np.testing.assert_array_equal(f(X), X[:2] + X[2:])

    run_threads((4,), ("i",), check)


@pytest.mark.parametrize("n", [1, 2, 4])
def test_a_program_of_jax(n):
    for rank, (count, index, gradient) in enumerate(run_threads((n,), ("i",), program)):
        assert (count, index) == (n, rank)
        np.testing.assert_allclose(gradient, 2 * X.T @ X.sum(1) / 4)


def test_one_process():
    assert program()[:2] == (1, 0)
    np.testing.assert_allclose(program()[2], 2 * X.T @ X.sum(1) / 4)


def test_specs():
    spec = ft.P("x", None, ("y", "z"))
    assert repr(spec) == "P('x', None, ('y', 'z'))"
    assert (len(spec), spec[0], list(spec)) == (3, "x", ["x", None, ("y", "z")])
    assert spec == ft.P("x", None, ["y", "z"]) == ("x", None, ("y", "z"))
    assert len({spec, ft.P("x", None, ("y", "z"))}) == 1
    assert spec != ft.P("x")
    with pytest.raises(ArgumentError, match="an entry is the name of an axis"):
        ft.P(1)
    with pytest.raises(ArgumentValueError, match="'x' divides two axes"):
        ft.P("x", ("y", "x"))


def test_named_shardings():
    def check(mesh):
        sharding = NamedSharding(mesh, ft.P("i", None))
        assert not sharding.is_fully_replicated
        assert NamedSharding(mesh, ft.P()).is_fully_replicated
        assert sharding.shard_shape((4, 3)) == (2, 3)
        assert sharding == NamedSharding(mesh, ft.P("i", None))
        assert len({sharding, NamedSharding(mesh, ft.P("i", None))}) == 1
        with pytest.raises(ShardingError, match="cannot be divided"):
            sharding.shard_shape((3, 3))
        with pytest.raises(ShardingError, match="no axis 'k'"):
            NamedSharding(mesh, ft.P("k"))
        np.testing.assert_array_equal(ft.device_put(X, sharding), X)

    run_threads((2,), ("i",), check)
    with pytest.raises(ShardingError, match=r"from functrans\.make_mesh"):
        NamedSharding(None, ft.P())


def test_what_needs_several_devices_in_one_process():
    with pytest.raises(ShardingError, match=r"functrans\.make_mesh"):
        Mesh(ft.devices() * 2, ("i",))
    with pytest.raises(CollectiveError, match="has 2 ranks, but there is 1"):
        Mesh(np.array(ft.devices() * 2), ("i",))
    with pytest.raises(ArgumentValueError, match="1 sizes"):
        Mesh(ft.devices(), ("i", "j"))
    with pytest.raises(ArgumentValueError, match="each process of the program is one device"):
        ft.make_mesh((2,), ("i",), devices=[ft.devices()[0]] * 2)
    with pytest.raises(ArgumentValueError, match="an AxisType for each axis"):
        ft.make_mesh((1,), ("i",), axis_types=(AxisType.Auto,) * 2)
    with pytest.raises(CollectiveError, match="has 2 ranks, but there is 1"):
        ft.make_mesh((2,), ("i",), backend="self")


def test_exchanges_of_processes():
    def check(mesh):
        tree = {"a": X + mesh.rank, "b": mesh.rank}
        gathered = multihost_utils.process_allgather(tree)
        np.testing.assert_array_equal(gathered["a"], [X, X + 1, X + 2])
        np.testing.assert_array_equal(gathered["b"], [0, 1, 2])
        tiled = multihost_utils.process_allgather(X + mesh.rank, tiled=True)
        np.testing.assert_array_equal(tiled, np.concatenate([X, X + 1, X + 2]))
        first = multihost_utils.broadcast_one_to_all(tree)
        np.testing.assert_array_equal(first["a"], X)
        other = multihost_utils.broadcast_one_to_all(tree, is_source=mesh.rank == 2)
        np.testing.assert_array_equal(other["a"], X + 2)
        multihost_utils.sync_global_devices("here")
        multihost_utils.assert_equal(X)
        with pytest.raises(CollectiveError, match="one process must be the source, but 3 are"):
            multihost_utils.broadcast_one_to_all(X, is_source=True)
        with pytest.raises(CollectiveError, match=r"(?s)steps.*differ"):
            multihost_utils.assert_equal(mesh.rank, "steps")
        with pytest.raises(CollectiveError, match=r"sync_global_devices\('rank "):
            multihost_utils.sync_global_devices(f"rank {mesh.rank}")

    run_threads((3,), ("i",), check)


def test_exchanges_of_one_process():
    np.testing.assert_array_equal(multihost_utils.process_allgather(X), X[None])
    np.testing.assert_array_equal(multihost_utils.broadcast_one_to_all(X), X)
    with pytest.raises(ArgumentValueError, match="need an axis"):
        multihost_utils.process_allgather(1.0, tiled=True)


def test_over_processes(on_ranks):
    done = on_ranks(2, "jax_names.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "done\n"

"""Meshes and where arrays are, under the names of ``jax.sharding``. A mesh of N ranks has N devices, one a process."""

from __future__ import annotations

import enum
from abc import ABC, ABCMeta, abstractmethod
from collections.abc import Sequence
from math import prod
from typing import Any

from .core import ArgumentValueError, Device
from .distributed.mesh import Mesh, are_all_devices, backend_here
from .distributed.mesh import make_mesh as _make_mesh
from .distributed.specs import PartitionSpec, names_of
from .errors import ArgumentError, ShardingError
from .frontend.checked import checked
from .runtime.module_getattr import module_attributes as _module_attributes

__all__ = [
    "AxisType",
    "Mesh",
    "NamedSharding",
    "PartitionSpec",
    "Sharding",
    "SingleDeviceSharding",
    "make_mesh",
]

_ONE = "Make a mesh of processes: functrans.make_mesh(shape, names)"
__getattr__, __dir__ = _module_attributes(
    "functrans.sharding",
    globals(),
    dict.fromkeys(("AbstractMesh", "PositionalSharding", "GSPMDSharding"), _ONE),
)


class AxisType(enum.Enum):
    """How JAX's compiler treats an axis of a mesh. Here functions say it themselves, by `shard_map`.

    Examples
    --------
    >>> import functrans as ft
    >>> ft.make_mesh((1,), ("i",), axis_types=(ft.sharding.AxisType.Auto,))
    <Mesh i=1: rank 0 of 1>
    """

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()


@checked
def make_mesh(
    axis_shapes: Any, axis_names: Any, axis_types: Any = None, *, devices: Any = None, backend: Any = None
) -> Mesh:
    """Arrange the processes of the program along named axes: `functrans.distributed.make_mesh`, with JAX's arguments.

    Parameters
    ----------
    axis_shapes : sequence of int
        The number of processes along each axis.
    axis_names : sequence of str
    axis_types : sequence of AxisType, optional
        Without effect.
    devices : sequence of Device, optional
        Those of `functrans.devices`, in their order.
    backend : {'mpi', 'threads', 'self'}, optional
        By default virtual ranks inside of `run_threads`, and processes elsewhere.

    Returns
    -------
    Mesh

    Raises
    ------
    CollectiveError
        If the number of processes differs from that of the mesh.
    ArgumentValueError
        If there are other `devices`, or not a type for each axis.

    Examples
    --------
    >>> import functrans as ft
    >>> mesh = ft.make_mesh((1,), ("i",))
    >>> mesh.shape
    {'i': 1}
    """
    if devices is not None and not are_all_devices(devices):
        raise ArgumentValueError(
            "make_mesh: devices must be None: each process of the program is one device, in the order of its number"
        )
    names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
    sizes = (axis_shapes,) if isinstance(axis_shapes, int) else tuple(axis_shapes)
    count = len(names)
    if len(sizes) != count:
        raise ArgumentValueError(
            f"make_mesh: axis_shapes {sizes} has {len(sizes)} entries, axis_names {names} {count}"
        )
    if axis_types is not None and (
        len(axis_types) != count or not all(isinstance(a, AxisType) for a in axis_types)
    ):
        raise ArgumentValueError(
            f"make_mesh: axis_types must have an AxisType for each axis, got {axis_types!r}"
        )
    return _make_mesh(sizes, names, backend=backend_here() if backend is None else backend)


class Sharding(ABC):
    """What an array's devices are: a device, or a `NamedSharding`; for ``isinstance``."""

    __slots__ = ()

    @property
    @abstractmethod
    def device_set(self) -> set[Device]:
        """The devices that hold the array."""


Sharding.register(Device)


class NamedSharding(Sharding):
    """How the blocks of an array are on the ranks of a mesh.

    Parameters
    ----------
    mesh : Mesh
    spec : PartitionSpec

    Raises
    ------
    ShardingError
        If the spec names an axis that the mesh does not have.

    Notes
    -----
    Arrays of functrans are whole, on each rank, except inside of `shard_map`. So ``device_put(x, sharding)`` is `x`.
    It is refused over several processes, where JAX would divide the array: pass it to `shard_map`, or let each process
    make its block, with ``shard_map(..., local=True)``.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> mesh = ft.make_mesh((1,), ("i",))
    >>> sharding = ft.sharding.NamedSharding(mesh, ft.P("i"))
    >>> sharding.shard_shape((4, 3))
    (4, 3)
    >>> ft.device_put(fnp.arange(3.0), sharding)
    Array([0., 1., 2.])
    """

    __slots__ = ("_names", "mesh", "spec")

    def __init__(self, mesh: Mesh, spec: PartitionSpec):
        if not isinstance(mesh, Mesh):
            raise ShardingError(f"NamedSharding: mesh must be one from functrans.make_mesh, got {mesh!r}")
        self._names = names_of(spec, mesh, "NamedSharding: spec")
        self.mesh = mesh
        self.spec = spec

    @property
    def device_set(self) -> set[Device]:
        """The devices of the mesh."""
        return set(self.mesh.devices.flat)

    @property
    def is_fully_replicated(self) -> bool:
        """Whether each rank has the whole array."""
        return all(self.mesh.shape[name] == 1 for own in self._names for name in own)

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of a block of an array of this shape."""
        shape = list(global_shape)
        for d, own in enumerate(self._names):
            count = prod([self.mesh.shape[name] for name in own])
            if d >= len(shape) or shape[d] % count:
                raise ShardingError(f"{self!r}: an array of shape {tuple(global_shape)} cannot be divided so")
            shape[d] //= count
        return tuple(shape)

    def check_whole(self, where: str) -> None:
        """Raise if the ranks are processes, among which JAX would divide an array."""
        if self.mesh.size > 1 and backend_here() == "mpi" and not self.is_fully_replicated:
            raise ShardingError(
                f"{where} is {self!r}: no process has the blocks of others. Pass the whole array to shard_map, which "
                "takes the block of each rank, or make the block in each process and use shard_map(..., local=True)"
            )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamedSharding) and (self.mesh, self.spec) == (other.mesh, other.spec)

    def __hash__(self) -> int:
        return hash((self.mesh, self.spec))

    def __repr__(self) -> str:
        return f"NamedSharding({self.mesh!r}, {self.spec!r})"


class _OneDevice(ABCMeta):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Device)


class SingleDeviceSharding(Sharding, metaclass=_OneDevice):
    """The sharding of an array that one device holds: the device.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> fnp.zeros(3).sharding == ft.sharding.SingleDeviceSharding(ft.devices()[0])
    True
    """

    def __new__(cls, device: Device, *, memory_kind: str | None = None) -> Device:  # type: ignore[misc]
        """The device itself."""
        if not isinstance(device, Device):
            raise ArgumentError(
                f"SingleDeviceSharding: device must be one of functrans.devices(), got {device!r}"
            )
        return device

"""Where arrays are, under the names of ``jax.sharding``: on the one CPU."""

from __future__ import annotations

from .core import Device
from .core import Device as Sharding
from .frontend.checked import checked
from .runtime.module_getattr import module_attributes as _module_attributes

__all__ = ["Sharding", "SingleDeviceSharding"]

_ONE = "functrans computes on one CPU: leave out meshes and partitions"
__getattr__, __dir__ = _module_attributes(
    "functrans.sharding",
    globals(),
    dict.fromkeys(("Mesh", "NamedSharding", "PartitionSpec", "AbstractMesh", "PositionalSharding"), _ONE),
)


@checked
def SingleDeviceSharding(device: Device) -> Device:
    """The sharding of an array that one device holds: the device.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> fnp.zeros(3).sharding == ft.sharding.SingleDeviceSharding(ft.devices()[0])
    True
    """
    return device

"""The one device of a process, the CPU, and what an array says of it."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

__all__ = ["CPU", "Device", "OnDevice"]


class Device(str):
    """A device, with the attributes of JAX's. It equals the string ``"cpu"``, which is NumPy's name for it.

    Attributes
    ----------
    platform, device_kind : str
        ``"cpu"``.
    id, process_index : int
        The number of the process: 0, unless there are several.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> fnp.zeros(3).device
    CpuDevice(id=0)
    >>> ft.devices()[0].platform
    'cpu'
    """

    __slots__ = ("id",)

    platform = "cpu"
    device_kind = "cpu"
    id: int
    local_hardware_id = 0
    #: As the sharding of an array.
    is_fully_replicated = is_fully_addressable = True
    memory_kind = None

    def __new__(cls, process: int = 0) -> Device:
        """The device of a process."""
        device = str.__new__(cls, "cpu")
        device.id = process
        return device

    @property
    def process_index(self) -> int:
        """See the class."""
        return self.id

    @property
    def host_id(self) -> int:
        """An older name of `process_index`."""
        return self.id

    def __reduce__(self) -> tuple[type[Device], tuple[int]]:
        return Device, (self.id,)

    def __repr__(self) -> str:
        return f"CpuDevice(id={self.id})"

    @property
    def device_set(self) -> set[Device]:
        """The devices of an array that has this device for its sharding."""
        return {self}

    def memory_stats(self) -> None:
        """None: the operating system accounts for the memory of the process."""


CPU = Device()


class OnDevice:
    """What an array says of the devices that hold it, in the words of JAX's arrays: the CPU has all of it."""

    __slots__ = ()

    #: This process has all of the array, and so has each device.
    is_fully_addressable = is_fully_replicated = True

    @property
    def device(self) -> Device:
        """The CPU."""
        return CPU

    @property
    def sharding(self) -> Device:
        """The CPU, which holds every array."""
        if _asked_by_jax(sys._getframe(1)):
            raise AttributeError
        return CPU

    def devices(self) -> set[Device]:
        """The devices that hold the array: the CPU."""
        return {CPU}

    def on_device_size_in_bytes(self) -> int:
        """The bytes of its elements."""
        return int(self.nbytes)  # type: ignore[attr-defined]

    def copy_to_host_async(self) -> None:
        """Nothing: the host's memory is the device's."""

    def addressable_data(self, index: int) -> Any:
        """The part that a device has: all of it."""
        return self


def _asked_by_jax(frame: FrameType) -> bool:
    """Whether a function of JAX's reads an attribute. JAX takes an ndarray with a sharding for an array that is on one
    of JAX's devices. An `Array` is not: JAX may put it on any, as NumPy's arrays.
    """
    return frame.f_globals.get("__name__", "").startswith("jax.")

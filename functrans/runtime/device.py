"""The one device of a process: the CPU."""

from __future__ import annotations

__all__ = ["CPU", "Device"]


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

    def memory_stats(self) -> None:
        """None: the operating system accounts for the memory of the process."""


CPU = Device()

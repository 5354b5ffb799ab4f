"""The one device: the CPU."""

from __future__ import annotations

__all__ = ["CPU", "Device"]


class Device(str):
    """A device, with the attributes of JAX's. It equals the string ``"cpu"``, which is NumPy's name for it.

    Attributes
    ----------
    platform, device_kind : str
        ``"cpu"``.
    id, process_index : int
        0.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> fnp.zeros(3).device
    CpuDevice(id=0)
    >>> ft.devices()[0].platform
    'cpu'
    """

    __slots__ = ()

    platform = "cpu"
    device_kind = "cpu"
    id = 0
    process_index = 0
    local_hardware_id = 0
    host_id = 0

    def __new__(cls) -> Device:
        """The device."""
        return str.__new__(cls, "cpu")

    def __reduce__(self) -> tuple[type[Device], tuple[()]]:
        return Device, ()

    def __repr__(self) -> str:
        return "CpuDevice(id=0)"

    def memory_stats(self) -> None:
        """None: the operating system accounts for the memory of the process."""


CPU = Device()

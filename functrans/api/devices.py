"""JAX's functions of devices, on one CPU: arrays are where they are, and results are ready when a call returns."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..arrays.array import Array, read_only_copy, unwrap, wrap
from ..core import CPU, ArgumentError, ArgumentValueError, Device, Tracer, aval_of, has_jax_semantics
from ..frontend.arguments import check_function, name_of
from ..frontend.checked import checked
from ..frontend.pytree import PyTree, tree_map
from ..primitives.ops import operand
from ..runtime.module_getattr import slots


def _check(where: str, device: Any) -> None:
    check_whole = getattr(device, "check_whole", None)
    if check_whole is not None:  # a sharding over a mesh
        check_whole(where)
    elif device is not None and not (isinstance(device, str) and device == CPU):
        raise ArgumentValueError(
            f"{where} must be 'cpu' or None, got {device!r}: functrans computes on one CPU"
        )


@checked
def devices(backend: str | None = None) -> list[Device]:
    """The devices of all processes: one CPU for each.

    Parameters
    ----------
    backend : "cpu", optional

    Examples
    --------
    >>> import functrans as ft
    >>> ft.devices()
    [CpuDevice(id=0)]
    """
    _check("devices: backend", backend)
    count: int = slots.world.place()[1]
    return [CPU] if count == 1 else [Device(i) for i in range(count)]


@checked
def local_devices(
    process_index: int | None = None, backend: str | None = None, host_id: int | None = None
) -> list[Device]:
    """The devices of this process: one CPU.

    Examples
    --------
    >>> import functrans as ft
    >>> ft.local_devices()
    [CpuDevice(id=0)]
    """
    own: int = slots.world.place()[0]
    for name, number in (("process_index", process_index), ("host_id", host_id)):
        if number not in (None, own):
            raise ArgumentValueError(
                f"local_devices: {name} must be {own}, that of this process, got {number}"
            )
    return [devices(backend)[own]]


@checked
def device_count(backend: str | None = None) -> int:
    """The number of devices, one for each process.

    Examples
    --------
    >>> import functrans as ft
    >>> ft.device_count()
    1
    """
    return len(devices(backend))


@checked
def local_device_count(backend: str | None = None) -> int:
    """The number of devices of this process, which is 1.

    Examples
    --------
    >>> import functrans as ft
    >>> ft.local_device_count()
    1
    """
    return len(local_devices(backend=backend))


def default_backend() -> str:
    """The platform that programs run on: ``"cpu"``.

    Examples
    --------
    >>> import functrans as ft
    >>> ft.default_backend()
    'cpu'
    """
    return CPU.platform


@checked
def process_index(backend: str | None = None) -> int:
    """The number of this process: 0, unless MPI started several, or it is a virtual rank of `run_threads`.

    Examples
    --------
    >>> import functrans as ft
    >>> ft.process_index()
    0
    """
    _check("process_index: backend", backend)
    index: int = slots.world.place()[0]
    return index


@checked
def process_count(backend: str | None = None) -> int:
    """The number of processes: 1, unless MPI started several, or in `run_threads`, where each virtual rank is one.

    Examples
    --------
    >>> import functrans as ft
    >>> ft.process_count()
    1
    """
    _check("process_count: backend", backend)
    count: int = slots.world.place()[1]
    return count


@contextmanager
def default_device(device: Any) -> Iterator[None]:
    """A block whose arrays are made on `device`, which is the CPU.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> with ft.default_device(ft.devices("cpu")[0]):
    ...     x = fnp.zeros(2)
    """
    _check("default_device: device", device)
    yield


@checked
def device_put(
    x: PyTree, device: Any = None, *, src: Any = None, donate: bool = False, may_alias: bool | None = None
) -> PyTree:
    """The arrays and numbers of a pytree as arrays of functrans.

    Parameters
    ----------
    x : pytree of array_like
        Traced values stay as they are.
    device, src : "cpu" or Device or NamedSharding, optional
    donate, may_alias : bool, optional
        Accepted, without effect: the arrays of `x` stay valid, and later changes to them do not reach the result.

    Returns
    -------
    pytree of Array

    Examples
    --------
    >>> import functrans as ft
    >>> ft.device_put({"w": [1.0, 2.0]})
    {'w': [Array(1.), Array(2.)]}
    """
    _check("device_put: device", device)
    _check("device_put: src", src)
    return tree_map(_put, x)


def _put(leaf: Any) -> Any:
    if isinstance(leaf, Tracer | Array):
        return leaf
    value = operand(leaf, "device_put")
    return wrap(read_only_copy(value) if isinstance(value, np.ndarray) else value)


@checked
def device_get(x: PyTree) -> PyTree:
    """The arrays of a pytree as NumPy arrays; other leaves as they are.

    Returns
    -------
    pytree of numpy.ndarray
        They may share the memory of the arrays, and are read-only then.

    Raises
    ------
    TracerArrayConversionError
        If a leaf is traced; with ``config.jax_semantics`` traced leaves stay as they are.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> ft.device_get((fnp.arange(3), 1.0))
    (array([0, 1, 2]), 1.0)
    """
    return tree_map(_fetched, x)


def _fetched(leaf: Any) -> Any:
    if isinstance(leaf, Tracer):
        return leaf if has_jax_semantics() else np.asarray(leaf)  # raises, and says how to do without
    return np.asarray(unwrap(leaf)) if isinstance(leaf, Array) else leaf


def block_until_ready(x: PyTree) -> PyTree:
    """`x`: results are ready when a call returns.

    Examples
    --------
    >>> import functrans as ft
    >>> ft.block_until_ready(3.0)
    3.0
    """
    return x


def effects_barrier() -> None:
    """Wait for effects: callbacks and prints have happened when a call returns.

    Examples
    --------
    >>> import functrans as ft
    >>> ft.effects_barrier()
    """


@contextmanager
def named_scope(name: str) -> Iterator[None]:
    """A block with a name. Kernels, jaxprs and messages name your lines instead, so the name has no effect.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> with ft.named_scope("loss"):
    ...     y = fnp.sum(fnp.ones(3))
    """
    if not isinstance(name, str):
        raise ArgumentError(f"named_scope: name must be a string, got {name!r} of type {type(name).__name__}")
    yield


@checked
def named_call(fun: Callable[..., PyTree], *, name: str | None = None) -> Callable[..., PyTree]:
    """The function in a `named_scope`, under the function's name by default.

    Examples
    --------
    >>> import functrans as ft
    >>> ft.named_call(lambda x: 2.0 * x, name="double")(3.0)
    6.0
    """
    check_function("named_call", fun)
    title = name_of(fun) if name is None else name

    @functools.wraps(fun, updated=())
    def named(*args: PyTree, **kwargs: PyTree) -> Any:
        with named_scope(title):
            return fun(*args, **kwargs)

    named.__name__ = title
    return named


def typeof(x: Any) -> Any:
    """The type of a value as tracing sees it: shape, dtype, and whether it is a Python number (``*``).

    Returns
    -------
    Aval
        With ``shape``, ``dtype``, ``ndim``, ``size``, ``weak_type``. An `Array` that holds one Python number is weak.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> ft.typeof(fnp.ones((2, 3))), ft.typeof(1.0)
    (f64[2,3], f64[]*)
    """
    return aval_of(operand(x, "typeof"))

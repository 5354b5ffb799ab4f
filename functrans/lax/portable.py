"""What a program for JAX tells the compiler: code for each platform, operations that it may know, where arrays are."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..api.callback import io_callback
from ..api.devices import device_put
from ..arrays.array import Array
from ..core import ArgumentValueError, Device, DtypeError, NoRuleError, ShapeError, Tracer, boundary, is_float
from ..core.values import ArrayLike, PyTree, ShapeLike, Value
from ..distributed.specs import PartitionSpec
from ..errors import ArrayTooLargeError, ShardingError, UnexpectedTracerError
from ..frontend.arguments import check_function, flatten_values, given, results, returned_values
from ..frontend.checked import checked
from ..frontend.pytree import flatten_axes, tree_leaves, tree_unflatten
from ..frontend.pytree.nodes import keystr
from ..frontend.structs import ShapeDtypeStruct
from ..primitives.ops import as_shape, dtype_of, shape_of
from ..runtime.module_getattr import slots
from ..runtime.records import dataclass
from ..sharding import NamedSharding
from .elementwise import operands

__all__ = ["composite", "platform_dependent", "rng_uniform", "with_sharding_constraint"]


@checked
def platform_dependent(
    *args: PyTree, default: Callable[..., PyTree] | None = None, **per_platform: Callable[..., PyTree]
) -> PyTree:
    """Call the function for the platform, which is the CPU.

    Parameters
    ----------
    *args : pytree
        The arguments of the function.
    default : callable, optional
        The function for platforms that are not named.
    **per_platform : callable
        Functions by platform: ``cpu=``, ``cuda=``, ``rocm=``, ``tpu=``. Those of others than ``cpu`` are not called.

    Returns
    -------
    pytree
        What the function returns.

    Raises
    ------
    ArgumentError
        If one of them is not a function.
    ArgumentValueError
        If a platform is called ``gpu``, which is none in JAX.
    NoRuleError
        If there is neither a function for ``cpu`` nor a default.

    Notes
    -----
    The platform is known while tracing, so that the program has this function alone: JAX traces all of them under
    `jit`, and wants results of equal types.

    Examples
    --------
    >>> from functrans import lax
    >>> lax.platform_dependent(3.0, cpu=lambda x: x + 1.0, tpu=lambda x: x - 1.0)
    4.0
    >>> lax.platform_dependent(3.0, tpu=lambda x: x - 1.0, default=lambda x: x * x)
    9.0
    """
    for name, branch in per_platform.items():
        check_function(f"lax.platform_dependent: {name}", branch)
        if name == "gpu":
            raise ArgumentValueError(
                "lax.platform_dependent: the platforms with a GPU are 'cuda' and 'rocm', not 'gpu'"
            )
    chosen = per_platform.get("cpu", default)
    if chosen is None:
        raise NoRuleError(
            "lax.platform_dependent: there is no function for the platform cpu, nor a default; got "
            f"{', '.join(f'{name}=' for name in per_platform) or 'none'}. Pass cpu= or default="
        )
    return chosen(*args)


@checked
def composite(decomposition: Callable[..., PyTree], name: str, version: int = 0) -> Callable[..., PyTree]:
    """Name a function as an operation, which a compiler could replace by its own: here it is computed as written.

    Parameters
    ----------
    decomposition : callable
        ``decomposition(*args, **attributes)``: pytrees of arrays by position, and by keyword what is known while
        tracing, such as flags and axes.
    name : str
    version : int
        Without effect, as the name: the program has the operations of `decomposition`.

    Returns
    -------
    callable
        With the arguments of `decomposition`.

    Raises
    ------
    ArgumentError
        If `decomposition` is not a function, and, when it is called, if an argument is not an array.
    UnexpectedTracerError
        When it is called, if an attribute is traced.

    Notes
    -----
    Derivatives and batches are those of `decomposition`, and it may capture traced values. In JAX a composite has no
    derivative without `custom_jvp` or `custom_vjp` around it, no batch, and captures numbers alone.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functools import partial
    >>> @partial(ft.lax.composite, name="my.rms")
    ... def rms(x, /, *, axis):
    ...     return fnp.sqrt(fnp.mean(x * x, axis))
    >>> rms(fnp.asarray([[1.0, 7.0], [3.0, 4.0]]), axis=1)
    Array([5.        , 3.53553391])
    """

    @functools.wraps(decomposition)
    @boundary
    def called(*args: PyTree, **attributes: Any) -> PyTree:
        for leaf in tree_leaves(attributes):
            if isinstance(leaf, Tracer):
                raise UnexpectedTracerError(
                    f"lax.composite of {name!r}: an attribute is traced; pass it by position, as an argument"
                )
        values, tree = flatten_values(args, lambda path: f"lax.composite of {name!r}: argument{keystr(path)}")
        out = decomposition(*tree_unflatten(tree, list(map(given, values))), **attributes)
        outs, out_tree = returned_values(decomposition, out)
        return results(out_tree, outs, {id(x) for x in values})

    return called


@checked
def with_sharding_constraint(x: PyTree, shardings: Any) -> PyTree:
    """The arrays of a pytree, with a promise of how they are divided among devices: here each process has the whole.

    Parameters
    ----------
    x : pytree of array_like
    shardings : pytree of NamedSharding, Device or PartitionSpec
        A prefix of `x`: one for each array, or for all arrays of a part. A `PartitionSpec` alone, which in JAX needs a
        mesh in the context, is accepted where there is one process.

    Returns
    -------
    pytree of Array

    Raises
    ------
    ShardingError
        If a sharding is something else, has more axes than its array, or divides it among processes
        (see `functrans.sharding.NamedSharding`).

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> rows = ft.sharding.NamedSharding(ft.make_mesh((1,), ("i",)), ft.P("i"))
    >>> ft.jit(lambda x: ft.lax.with_sharding_constraint(x + 1.0, rows))(fnp.arange(3.0))
    Array([1., 2., 3.])
    """
    name = "lax.with_sharding_constraint"
    values, tree = flatten_values(x, lambda path: f"{name}: x{keystr(path)}")
    for value, sharding in zip(values, flatten_axes(f"{name} shardings", tree, shardings)):
        _check_sharding(name, value, sharding)
    return device_put(x)


def _check_sharding(name: str, value: Value, sharding: Any) -> None:
    if isinstance(sharding, NamedSharding):
        sharding.check_whole(f"{name}: one of shardings")
        spec = sharding.spec
    elif isinstance(sharding, PartitionSpec):
        if slots.world.place()[1] > 1:
            raise ShardingError(
                f"{name}: shardings: {sharding!r} needs a mesh: pass functrans.sharding.NamedSharding(mesh, spec)"
            )
        spec = sharding
    elif isinstance(sharding, Device):
        return
    else:
        raise ShardingError(
            f"{name}: shardings must be functrans.sharding.NamedSharding or devices, got {str(sharding)[:60]!r} of "
            f"type {type(sharding).__name__}"
        )
    if len(spec) > len(shape_of(value)):
        raise ShardingError(
            f"{name}: shardings: {spec!r} has {len(spec)} axes, but the array of shape {shape_of(value)} has fewer"
        )


# --- the generator of the process ---------------------------------------------------------------------------

#: It begins alike in each process, as that of JAX on a CPU.
_GENERATOR = np.random.default_rng(0)


@checked
def rng_uniform(a: ArrayLike, b: ArrayLike, shape: ShapeLike) -> Array:
    """Draw from ``[a, b)`` by a generator that the process keeps, so that each call has other numbers.

    Parameters
    ----------
    a, b : scalar
        Real numbers or integers, of one dtype.
    shape : sequence of int

    Returns
    -------
    Array
        Of the dtype of `a` and `b`. If ``b <= a``, it is filled with `a`.

    Raises
    ------
    DtypeError, ShapeError
        If `a` and `b` are not two such scalars.
    CallbackError
        If `a` or `b` is differentiated.

    Notes
    -----
    A call of Python from the program: write `functrans.random` instead, whose numbers depend on a key alone, and have
    derivatives. Under `vmap` each lane has its own numbers if `a` or `b` is mapped, else all have the same.

    Examples
    --------
    >>> from functrans import lax
    >>> x = lax.rng_uniform(2.0, 3.0, (1000,))
    >>> bool(2.0 <= x.min() < 2.1 and 2.9 < x.max() < 3.0)
    True
    """
    low, high = operands("rng_uniform", a, b)
    dtype = dtype_of(low)
    if dtype.kind not in "iu" and not is_float(dtype):
        raise DtypeError(f"lax.rng_uniform: a and b must be real numbers or integers, got {dtype}")
    if shape_of(low) or shape_of(high):
        raise ShapeError(
            f"lax.rng_uniform: a and b must be scalars, got shapes {shape_of(low)} and {shape_of(high)}"
        )
    like = ShapeDtypeStruct(as_shape(shape, "lax.rng_uniform"), dtype)
    out: Any = io_callback(_Uniform(like.shape, dtype), like, low, high)
    return out


@dataclass(frozen=True)
class _Uniform:
    """Draws numbers of a shape and dtype."""

    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def __name__(self) -> str:
        return "rng_uniform"

    def __call__(self, low: Array, high: Array) -> np.ndarray:
        try:
            return self._draw(low, high)
        except MemoryError as error:
            raise ArrayTooLargeError(f"lax.rng_uniform: {error}") from None

    def _draw(self, low: Array, high: Array) -> np.ndarray:
        if not low < high:
            return np.full(self.shape, low, self.dtype)
        if self.dtype.kind in "iu":
            return _GENERATOR.integers(low, high, self.shape, self.dtype)
        start, end = float(low), float(high)
        drawn = (start + (end - start) * _GENERATOR.random(self.shape)).astype(self.dtype)
        return np.where(drawn < high, drawn, low)  # what was rounded up to the end

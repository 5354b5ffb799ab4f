"""Abstract values: what is known about an array except its numbers.

Values that flow through interpreters are plain `ndarray`s, NumPy scalars, Python scalars and tracers. A Python
`int`, `float` or `complex` **is** the weak value: NumPy's promotion (NEP 50) then applies to it automatically.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ShapeError
from ..runtime.device import CPU
from ..runtime.unusual import unusual
from .dtypes import dtype_name, float0, is_inexact
from .jax_dtypes import is_narrow
from .values import ArrayLike, Param

#: Python's numbers, which are weak values (a bool is not), and all Python scalars.
PYTHON_NUMBERS = frozenset((int, float, complex))
PYTHON_SCALARS = PYTHON_NUMBERS | {bool}

_SHORT = {
    "bool": "bool", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16",
    "uint32": "u32", "uint64": "u64", "float16": "f16", "bfloat16": "bf16", "float32": "f32",
    "float64": "f64", "complex64": "c64", "complex128": "c128",
    "prng_key64": "key<fry>",
}  # fmt: skip


class Aval:
    """Shape, dtype and weakness of an array.

    Parameters
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    weak : bool
        Whether the dtype came from a Python scalar, and so yields to any array dtype of the same kind (NEP 50).
    """

    __slots__ = ("dtype", "shape", "weak")
    #: The axes of a mesh over which values of this type differ.
    vma: frozenset[str] = frozenset()

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype, weak: bool = False):
        if len(shape) > 64:
            raise ShapeError(f"an array of {len(shape)} axes: arrays can have at most 64, as in NumPy")
        self.shape = shape
        self.dtype = dtype
        self.weak = weak

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        n = 1
        for extent in self.shape:
            n *= extent
        return n

    @property
    def is_number(self) -> bool:
        """Whether its values are Python numbers outside a trace."""
        return self.weak and not self.shape

    @property
    def weak_type(self) -> bool:
        """Whether the dtype came from a Python scalar."""
        return self.weak

    @property
    def sharding(self) -> Any:
        """The CPU, which holds every array."""
        return CPU

    def strong(self) -> Aval:
        """The same aval without the weakness."""
        return Aval(self.shape, self.dtype) if self.weak else self

    def with_shape(self, shape: tuple[int, ...]) -> Aval:
        """The same dtype and weakness with another shape."""
        return Aval(shape, self.dtype, self.weak)

    def over(self, axes: frozenset[str]) -> Aval:
        """The same type for values that differ over these axes of a mesh."""
        if not axes or type(self) is not Aval:
            return self
        return VaryingAval(self.shape, self.dtype, self.weak, axes)

    def to_tangent_aval(self) -> Aval:
        """The type of tangents: the same and not weak; of integers and booleans, `float0`."""
        inexact = is_inexact(self.dtype)
        return self.strong() if inexact else Aval(self.shape, float0)

    def update(self, **changes: Param) -> Aval:
        """The same with another ``shape``, ``dtype`` or ``weak_type``."""
        return Aval(
            **{
                "shape": self.shape,
                "dtype": self.dtype,
                "weak": changes.pop("weak_type", self.weak),
                **changes,
            }
        )

    def str_short(self, short_dtypes: bool = False) -> str:
        """The dtype and the shape, as ``float64[3]``; with `short_dtypes`, as ``f64[3]``."""
        return (
            f"{self.strong()}" if short_dtypes else f"{_name(self.dtype)}[{','.join(map(str, self.shape))}]"
        )

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is Aval
            and self.shape == other.shape
            and self.dtype == other.dtype
            and self.weak == other.weak
        )

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype, self.weak))

    def __repr__(self) -> str:
        return f"{self}"

    def __str__(self) -> str:
        name = _SHORT.get(self.dtype.name) or _name(self.dtype)
        return f"{name}[{','.join(map(str, self.shape))}]{'*' if self.weak else ''}"


class VaryingAval(Aval):
    """The type of a value that differs between the ranks of a mesh: programs have it only while `shard_map` traces.

    Parameters
    ----------
    shape, dtype, weak
        As of an `Aval`.
    vma : frozenset of str
        The axes over which values differ.
    """

    __slots__ = ("vma",)

    def __init__(
        self, shape: tuple[int, ...], dtype: np.dtype, weak: bool = False, vma: frozenset[str] = frozenset()
    ):
        super().__init__(shape, dtype, weak)
        self.vma = vma

    def strong(self) -> Aval:
        """The same aval without the weakness."""
        return VaryingAval(self.shape, self.dtype, False, self.vma) if self.weak else self

    def with_shape(self, shape: tuple[int, ...]) -> Aval:
        """The same with another shape."""
        return VaryingAval(shape, self.dtype, self.weak, self.vma)

    def over(self, axes: frozenset[str]) -> Aval:
        """The same type for values that differ over these axes of a mesh."""
        return self if axes == self.vma else Aval(self.shape, self.dtype, self.weak).over(axes)

    def to_tangent_aval(self) -> Aval:
        """The type of tangents."""
        return super().to_tangent_aval().over(self.vma)

    def update(self, **changes: Param) -> Aval:
        """The same with another ``shape``, ``dtype``, ``weak_type`` or ``vma``."""
        axes = changes.pop("vma", self.vma)
        return super().update(**changes).over(axes)

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is VaryingAval
            and self.vma == other.vma
            and self.shape == other.shape
            and self.dtype == other.dtype
            and self.weak == other.weak
        )

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype, self.weak, self.vma))

    def __str__(self) -> str:
        return f"{super().__str__()}{{V:{','.join(sorted(self.vma))}}}"


def _name(dtype: np.dtype) -> str:
    return "float0" if dtype == float0 else dtype_name(dtype)


_WEAK: dict[type, Aval] = {
    bool: Aval((), np.dtype(bool)),
    int: Aval((), np.dtype(np.int64), weak=True),
    float: Aval((), np.dtype(np.float64), weak=True),
    complex: Aval((), np.dtype(np.complex128), weak=True),
}


#: The same while 64 bits are off.
_NARROW: dict[type, Aval] = {
    kind: Aval((), narrow, aval.weak)
    for (kind, aval), narrow in zip(_WEAK.items(), map(np.dtype, (bool, np.int32, np.float32, np.complex64)))
}

_WITH_DTYPE = (np.ndarray, np.generic)


def aval_of(x: ArrayLike) -> Aval:
    """The aval of a value that flows through interpreters (array, NumPy or Python scalar, tracer)."""
    if isinstance(x, _WITH_DTYPE):
        return Aval(x.shape, x.dtype)
    aval = _WEAK.get(type(x))
    if aval is None:
        return x.aval
    return _NARROW[type(x)] if unusual.narrow and is_narrow() else aval


class Typed:
    """What has an aval: its shape and dtype, as attributes like an ndarray's."""

    __slots__ = ()

    aval: Aval

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the axes."""
        return self.aval.shape

    @property
    def dtype(self) -> np.dtype:
        """The type of the elements."""
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.aval.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.aval.size


class Zero(Typed):
    """A symbolic zero: the tangent or cotangent of a value that does not affect the result.

    Parameters
    ----------
    like : Aval or a value
        The value or aval that the zero belongs to.
    """

    __slots__ = ("_like",)

    def __init__(self, like: Any):
        self._like = like

    @property
    def aval(self) -> Aval:  # type: ignore[override]
        """Shape and dtype of the zero (never weak)."""
        like = self._like
        return (like if isinstance(like, Aval) else aval_of(like)).strong()

    def __repr__(self) -> str:
        return f"Zero({self.aval})"

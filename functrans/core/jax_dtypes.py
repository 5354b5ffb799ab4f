"""JAX's dtypes: its lattice of promotion, and 32 bits in place of 64 while ``config.enable_x64`` is off.

Each of the functions here decides one thing for the whole package: whether `config` asks for JAX's semantics, which
dtype operands have in common, and which dtype arrays have instead of one with 64 bits.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ..runtime.config import Config, config
from ..runtime.unusual import unusual
from .low_precision import FLOAT32, LOW, is_bfloat16

_NARROW: dict[np.dtype, np.dtype] = {
    np.dtype(wide): np.dtype(narrow)
    for wide, narrow in (
        (np.int64, np.int32),
        (np.uint64, np.uint32),
        (np.float64, np.float32),
        (np.complex128, np.complex64),
    )
}
#: The default dtypes, with 64 bits, of integers, real and complex numbers.
_DEFAULTS = (np.dtype(np.bool_), np.dtype(np.int64), np.dtype(np.float64), np.dtype(np.complex128))
_BOOL, _INTEGER, _FLOAT, _COMPLEX = range(4)
_RANKS = {"b": _BOOL, "i": _INTEGER, "u": _INTEGER, "f": _FLOAT, "V": _FLOAT, "c": _COMPLEX}
_BITS = np.dtype(np.uint64)
_promotion, _semantics = Config.numpy_dtype_promotion, Config.jax_semantics


def promotes_as_jax() -> bool:
    """Whether dtypes are promoted by JAX's lattice."""
    if not (_promotion.ever_changed or _semantics.ever_changed):
        return False
    return config.numpy_dtype_promotion == "jax" or config.jax_semantics


def has_jax_semantics() -> bool:
    """Whether ``config.jax_semantics`` is on."""
    return _semantics.ever_changed and config.jax_semantics


def is_narrow() -> bool:
    """Whether arrays have no more than 32 bits an element (complex numbers 64)."""
    return unusual.narrow and not config.enable_x64


def narrowed(dtype: np.dtype) -> np.dtype:
    """The dtype that arrays have instead of one: float32 for float64 while 64 bits are off, else itself.

    Examples
    --------
    >>> narrowed(np.dtype("float64"))
    dtype('float64')
    >>> with config.patch(jax_semantics=True):
    ...     narrowed(np.dtype("float64"))
    dtype('float32')
    """
    return _NARROW.get(dtype, dtype) if unusual.narrow and not config.enable_x64 else dtype


def is_too_wide(dtype: np.dtype) -> bool:
    """Whether values have another dtype instead of this one. Those of uint64 stay: bits of random numbers are."""
    return unusual.narrow and dtype in _NARROW and dtype != _BITS and not config.enable_x64


def narrow_array(x: Any) -> Any:
    """An ndarray or a NumPy scalar in the dtype that arrays have; itself if that is its own."""
    return x.astype(_NARROW[x.dtype]) if is_too_wide(x.dtype) else x


def beside_wide(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Operands of a primitive; while 64 bits are off, Python's numbers in these where another operand has them."""
    if config.enable_x64:
        return args
    dtypes = {x.dtype for x in args if type(x) not in _OF_NUMBERS and hasattr(x, "dtype")}
    if dtypes.isdisjoint(_DEFAULTS[1:]):
        return args
    return tuple([_OF_NUMBERS[type(x)].type(x) if _OF_NUMBERS.get(type(x)) in dtypes else x for x in args])


_OF_NUMBERS: dict[type, np.dtype] = dict(zip((int, float, complex), _DEFAULTS[1:]))


def default_float(of: np.dtype | None = None) -> np.dtype:
    """The dtype of numbers for which nothing else says it: float64, or float32 while 64 bits are off.

    Parameters
    ----------
    of : numpy.dtype, optional
        The dtype of the integers that become floats: JAX makes float32 of those with less than 64 bits.
    """
    if of is not None and of.itemsize < 8 and has_jax_semantics():
        return FLOAT32
    return narrowed(_DEFAULTS[_FLOAT])


def join(operands: tuple[tuple[np.dtype, bool], ...]) -> np.dtype:
    """The common dtype of operands in JAX's lattice.

    Integers and booleans have no influence beside floating point, nor weak numbers beside strong ones of their kind.
    If only weak numbers are of the highest kind, the result has the default dtype of that kind.

    Parameters
    ----------
    operands : tuple of (numpy.dtype, bool)
        dtype and weakness of each.

    References
    ----------
    JAX, "Type promotion semantics", https://docs.jax.dev/en/latest/type_promotion.html

    Examples
    --------
    >>> join(((np.dtype("float16"), False), (np.dtype("int64"), False)))
    dtype('float16')
    >>> join(((np.dtype("int8"), False), (np.dtype("float64"), True)))
    dtype('float64')
    """
    return narrowed(_join(operands))


@lru_cache(maxsize=4096)
def _join(operands: tuple[tuple[np.dtype, bool], ...]) -> np.dtype:
    ranks = [_RANKS[dtype.kind] for dtype, _ in operands]
    top = max(ranks)
    least = _FLOAT if top == _COMPLEX else top  # strong floats decide how precise complex numbers are
    strong = {dtype for rank, (dtype, weak) in zip(ranks, operands) if not weak and rank >= least}
    if not strong:
        return _DEFAULTS[top]
    if len(strong) > 1 or top == _COMPLEX:  # bfloat16 and another: at least float32
        strong = {FLOAT32 if is_bfloat16(dtype) else dtype for dtype in strong}
    if len(strong) > 1 or not all(map(is_bfloat16, strong)):
        common = np.result_type(*strong)
    else:
        (common,) = strong
    if top == _COMPLEX and common.kind != "c":
        return np.dtype(np.complex64) if common.char in LOW or common == FLOAT32 else _DEFAULTS[_COMPLEX]
    return common

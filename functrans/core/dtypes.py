"""Supported dtypes, and NumPy 2's promotion (NEP 50) with weak Python scalars.

The rules are NumPy's, cached: `np.result_type` for promotion, `ufunc.resolve_dtypes` for the loop of a ufunc.
bfloat16, a dtype of the package ml_dtypes, promotes as that package does, except that Python numbers are weak beside it
as well, and that every ufunc has a loop for it which has one for float16.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..errors import (
    DtypeError,
    FunctransError,
    InplaceModificationError,
    MissingLibraryError,
    StaleValueError,
    UnsupportedDtypeError,
)
from ..errors.source import Place
from ..runtime.context import pass_on
from ..runtime.records import NamedTuple
from ..runtime.unusual import unusual
from .jax_dtypes import join, narrowed, promotes_as_jax
from .low_precision import FLOAT16, FLOAT32, LOW, as_dtype, bfloat16, is_bfloat16, is_low, loop_dtypes
from .values import DTypeLike, Value

BOOL = np.dtype(np.bool_)
INT32 = np.dtype(np.int32)
INT64 = np.dtype(np.int64)
FLOAT64 = np.dtype(np.float64)
COMPLEX64 = np.dtype(np.complex64)
COMPLEX128 = np.dtype(np.complex128)

SUPPORTED: tuple[np.dtype, ...] = (
    BOOL,
    *(np.dtype(f"{kind}{size}") for kind in ("int", "uint") for size in (8, 16, 32, 64)),
    FLOAT16,
    FLOAT32,
    FLOAT64,
    COMPLEX64,
    COMPLEX128,
)
# By character, for to NumPy bfloat16 is not a float: its kind is "V".
_FLOATS = LOW | frozenset("fdg")
_INEXACT = _FLOATS | frozenset("FDG")


class extended(np.void):  # type: ignore[misc]
    """The scalar type of elements that are not numbers: ``issubdtype(x.dtype, extended)``."""


class prng_key(extended):  # type: ignore[misc]
    """The scalar type of keys of random numbers: ``issubdtype(x.dtype, prng_key)``."""


#: The elements of arrays of keys (`functrans.random`): a record of one 64-bit number, so that NumPy refuses arithmetic.
KEY = np.dtype((prng_key, [("threefry2x32", np.uint64)]))
# One object for each dtype, whatever its alias (on Linux, long and long long are both int64). `is_held` adds float16
# and bfloat16 when it meets them.
_CANONICAL: dict[np.dtype, np.dtype] = {dtype: dtype for dtype in (*SUPPORTED, KEY) if dtype != FLOAT16}
#: What arrays may hold: numbers, and keys, which have no arithmetic. For a dtype that may be new ask `is_held`.
HELD = _CANONICAL.keys()

_PYTHON_SCALARS: dict[type, np.dtype] = {bool: BOOL, int: INT64, float: FLOAT64, complex: COMPLEX128}
# Stand-ins for weak dtypes in NumPy's functions. A Python bool is not weak: it acts as a bool array without axes.
_WEAK_VALUES: dict[str, Any] = {"i": 0, "u": 0, "f": 0.0, "c": 0j}
_WEAK_TYPES: dict[str, type] = {"i": int, "u": int, "f": float, "c": complex}

_CURES = {
    "g": "use float64",
    "G": "use complex128",
    "O": "convert the elements to numbers: np.asarray(x, dtype=float); ragged lists cannot be converted",
    "S": "encode text as integers, for example with np.unique(x, return_inverse=True)",
    "U": "encode text as integers, for example with np.unique(x, return_inverse=True)",
    "T": "encode text as integers, for example with np.unique(x, return_inverse=True)",
    "M": "convert dates to numbers: (x - x[0]) / np.timedelta64(1, 's')",
    "m": "convert durations to numbers: x / np.timedelta64(1, 's')",
    "V": "pass each field as a separate array, for example in a dictionary",
}


def check_supported(dtype: np.dtype, what: str) -> np.dtype:
    """The canonical form of a dtype, if functrans supports arrays of it.

    Parameters
    ----------
    dtype : numpy.dtype
    what : str
        The owner of the dtype, for the message: ``"sin: argument 0"``.

    Raises
    ------
    UnsupportedDtypeError
        If it is not supported. The message says what to use instead.
    StaleValueError
        If it is that of a donated Array.

    Examples
    --------
    >>> check_supported(np.dtype("int32"), "sum: argument 0")
    dtype('int32')
    """
    canonical_dtype = _CANONICAL.get(dtype)
    if canonical_dtype is not None:
        return canonical_dtype
    if is_held(dtype):
        return _CANONICAL[dtype]
    if is_stale(dtype):
        raise stale(dtype)
    raise UnsupportedDtypeError(
        f"{what} has dtype {_describe(dtype)}, which is not supported: {_cure(dtype)}"
    )


def is_held(dtype: np.dtype) -> bool:
    """Whether arrays may hold elements of a dtype, even if it is the first time that functrans meets it."""
    if dtype in HELD:
        return True
    if dtype == FLOAT16:
        dtype = FLOAT16
    elif not is_bfloat16(dtype) or dtype != bfloat16():
        return False
    _CANONICAL[dtype] = dtype
    unusual.used = True
    return True


#: The dtype of derivatives with respect to integers, as in JAX: elements without a value.
float0: np.dtype = np.dtype([("float0", np.void, 0)])


def is_float0(x: Value) -> bool:
    """Whether `x` is an array of dtype float0, which JAX uses for the tangents of integers."""
    dtype = getattr(x, "dtype", None)
    return isinstance(dtype, np.dtype) and dtype.kind == "V" and dtype.itemsize == 0


class Consumer(NamedTuple):
    """What a value was donated to: what it was, the name of the function, and the user's line."""

    kind: str
    shape: tuple[int, ...]
    dtype: np.dtype
    to: str
    source: Place | None

    @property
    def value(self) -> str:
        """The value in words: ``Array float64[3]``."""
        return f"{self.kind} {self.dtype.name}[{','.join(map(str, self.shape))}]"

    def error(self) -> FunctransError:
        """The error for the use of the value."""
        return StaleValueError(
            f"{self.value} was donated to {self.to} and may not be used again; use the returned value{self.line()}"
        )

    def error_in_backward(self) -> FunctransError:
        """The error for a derivative that needs the value."""
        return InplaceModificationError(
            "one of the variables needed for gradient computation has been modified by an inplace operation: "
            f"{self.value} was donated to {self.to} after it was saved. With config.dirty_residuals = 'copy' the "
            f"gradient uses the old values{self.line()}"
        )

    def line(self) -> str:
        """Where that was, for messages."""
        return "" if self.source is None else f"\n  donated at {self.source.describe()}"


def stale_dtype(error: Callable[[], FunctransError], memory: Any = None) -> np.dtype:
    """The dtype of an array that must not be used: it makes the error, and keeps the memory."""
    return np.dtype("V1", metadata={"error": error, "memory": memory})


def is_stale(dtype: np.dtype) -> bool:
    """Whether a dtype is that of an array that must not be used."""
    return dtype.metadata is not None and "error" in dtype.metadata


def stale(dtype: np.dtype) -> FunctransError:
    """The error for the use of an array of this dtype."""
    if not is_stale(dtype):
        return StaleValueError("an Array was donated to a call that still runs, and may not be used again")
    assert dtype.metadata is not None
    return dtype.metadata["error"]()


def native(x: np.ndarray, what: str) -> np.ndarray:
    """The array in native byte order, copied only if necessary.

    Raises
    ------
    UnsupportedDtypeError
        If functrans does not support its dtype.
    """
    swapped = x.dtype.newbyteorder("=")
    if x.dtype.isnative or swapped not in HELD:
        check_supported(x.dtype, what)
    return x.astype(swapped, copy=False)


def _describe(dtype: np.dtype) -> str:
    return str(dtype) if dtype.isnative or dtype.kind == "V" else f"{dtype} (not in native byte order)"


def _cure(dtype: np.dtype) -> str:
    if not dtype.isnative and dtype.newbyteorder("=") in HELD:
        return f"convert it with x.astype(np.{dtype.newbyteorder('=').name})"
    cure = _CURES.get(dtype.char)
    if cure is None:
        return f"use one of {', '.join(map(str, SUPPORTED))}"
    if dtype.char in "gG":
        return f"{cure}, as x.astype(np.{cure.rsplit(maxsplit=1)[-1]})"
    return cure


def canonical(dtype: DTypeLike, what: str = "dtype argument") -> np.dtype:
    """The supported `numpy.dtype` for what the user passes as a dtype.

    Parameters
    ----------
    dtype : dtype-like
        ``float``, ``np.float32``, ``"int8"``, a `numpy.dtype`.
    what : str
        The name of the argument, for the message.

    Raises
    ------
    UnsupportedDtypeError
        If functrans does not support the dtype, or it is not a dtype.

    Examples
    --------
    >>> canonical(int), canonical("f4")
    (dtype('int64'), dtype('float32'))
    """
    try:
        if isinstance(dtype, np.ndarray):
            raise TypeError("an array is not a dtype: write x.dtype")
        converted = as_dtype(dtype)
    except MissingLibraryError:
        raise
    except Exception as error:  # NumPy raises several classes, and reads attributes of the user's object
        pass_on(error)
        raise UnsupportedDtypeError(
            f"{what}: {dtype!r} is not a dtype ({error}); use one of {', '.join(map(str, SUPPORTED))}"
        ) from None
    return narrowed(check_supported(converted, what))


def dtype_name(dtype: np.dtype) -> str:
    """NumPy's name; ``key<fry>`` for keys."""
    return "key<fry>" if dtype == KEY else dtype.name


def refused_keys(name: str) -> DtypeError:
    """The error of an operation that would compute with keys."""
    return DtypeError(
        f"{name} does not take keys of functrans.random, which are not numbers: draw numbers with "
        "functrans.random.normal(key, shape) or another sampler; functrans.random.key_data(key) has the bits"
    )


def memory_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype as which kernels see the elements: that of a number, also for keys."""
    return np.dtype(np.uint64) if dtype == KEY else dtype


def register_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype of an element in a kernel's registers, once loaded: float32 for float16 and bfloat16."""
    return FLOAT32 if is_low(dtype) else memory_dtype(dtype)


def is_float(dtype: np.dtype) -> bool:
    """Whether the dtype is real floating point."""
    return dtype.char in _FLOATS


def dtype_kind(dtype: np.dtype) -> str:
    """NumPy's kind, ``"f"`` for all real floating point: for tables by kind, and tests of several kinds."""
    return "f" if is_bfloat16(dtype) else dtype.kind


def is_complex(dtype: np.dtype) -> bool:
    """Whether the dtype is complex."""
    return dtype.kind == "c"


def is_inexact(dtype: np.dtype) -> bool:
    """Whether the dtype is real or complex floating point, and so has derivatives."""
    return dtype.char in _INEXACT


def is_integer(dtype: np.dtype) -> bool:
    """Whether the dtype is a signed or unsigned integer (not bool)."""
    return dtype.kind in "iu"


def real_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype of the real part: float32 for complex64; a dtype that is not complex is unchanged."""
    if dtype.kind != "c":
        return dtype
    return FLOAT32 if dtype.itemsize == 8 else FLOAT64


def complex_dtype(dtype: np.dtype) -> np.dtype:
    """The smallest complex dtype that holds the values: complex64 for float16, bfloat16 and float32, complex128
    for float64 and integers.
    """
    if dtype.kind == "c":
        return dtype
    return COMPLEX64 if dtype == FLOAT32 or is_low(dtype) else COMPLEX128


def python_scalar_dtype(cls: type) -> np.dtype:
    """The default dtype of a Python scalar: bool, int64, float64 or complex128.

    Raises
    ------
    UnsupportedDtypeError
        If `cls` is not bool, int, float or complex.
    """
    dtype = _PYTHON_SCALARS.get(cls)
    if dtype is None:
        raise UnsupportedDtypeError(
            f"{cls.__name__} is not a Python scalar type: use bool, int, float or complex"
        )
    return narrowed(dtype)


def promote(dtypes_and_weak: Sequence[tuple[np.dtype, bool]]) -> tuple[np.dtype, bool]:
    """The common dtype of several operands, as ``np.result_type`` says, or JAX's lattice where `config` asks for it.

    Parameters
    ----------
    dtypes_and_weak : sequence of (numpy.dtype, bool)
        A weak dtype comes from a Python scalar: only its kind matters.

    Returns
    -------
    dtype : numpy.dtype
    weak : bool
        Whether all operands are weak.

    Raises
    ------
    DtypeError
        If there are no operands.

    Examples
    --------
    >>> promote([(np.dtype("int8"), False), (np.dtype("float64"), True)])
    (dtype('float64'), False)
    >>> promote([(np.dtype("float32"), False), (np.dtype("complex128"), True)])
    (dtype('complex64'), False)
    """
    if promotes_as_jax() and dtypes_and_weak and not any(dtype == KEY for dtype, _ in dtypes_and_weak):
        return join(tuple(dtypes_and_weak)), all(weak for _, weak in dtypes_and_weak)
    if len(dtypes_and_weak) == 2:
        return _promote_pair(*dtypes_and_weak[0], *dtypes_and_weak[1])
    return _promote_many(tuple(dtypes_and_weak))


@lru_cache(maxsize=4096)
def _promote_pair(a: np.dtype, a_weak: bool, b: np.dtype, b_weak: bool) -> tuple[np.dtype, bool]:
    return _promote_many(((a, a_weak), (b, b_weak)))


@lru_cache(maxsize=4096)
def _promote_many(operands: tuple[tuple[np.dtype, bool], ...]) -> tuple[np.dtype, bool]:
    if not operands:
        raise DtypeError("promotion of no operands: pass at least one array")
    if any(dtype == KEY for dtype, _ in operands):
        if all(dtype == KEY for dtype, _ in operands):
            return KEY, False
        raise refused_keys("an array of keys and numbers: an operation")
    values = [_WEAK_VALUES.get(dtype_kind(dtype), dtype) if weak else dtype for dtype, weak in operands]
    if any(is_bfloat16(dtype) for dtype, _ in operands):
        result = _beside_bfloat16(values)
    else:
        result = np.result_type(*values)
    return _CANONICAL.get(result, result), all(weak for _, weak in operands)


def _beside_bfloat16(values: list[Any]) -> np.dtype:
    """The common dtype, if one is bfloat16: NumPy takes a Python float beside it for a float64."""
    dtypes = [x for x in values if isinstance(x, np.dtype)]
    try:
        result = np.result_type(*dtypes)
    except TypeError:
        listed = ", ".join(str(d) for d in dict.fromkeys(dtypes))
        raise DtypeError(
            f"{listed} have no common dtype, as in ml_dtypes: convert one of the arrays, for example with "
            "x.astype(functrans.bfloat16) or x.astype('float32')"
        ) from None
    numbers = [x for x in values if not isinstance(x, np.dtype)]
    if not is_bfloat16(result):
        return np.result_type(result, *numbers)
    return COMPLEX64 if complex in map(type, numbers) else result


@lru_cache(maxsize=8192)
def resolve_ufunc(
    ufunc: np.ufunc, operands: tuple[tuple[np.dtype, bool], ...]
) -> tuple[tuple[np.dtype, ...], tuple[np.dtype, ...]]:
    """The dtypes that a NumPy ufunc computes in.

    Parameters
    ----------
    ufunc : numpy.ufunc
    operands : tuple of (numpy.dtype, bool)
        dtype and weakness of each input.

    Returns
    -------
    inputs : tuple of numpy.dtype
        The dtypes that the inputs are cast to.
    outputs : tuple of numpy.dtype

    Raises
    ------
    DtypeError
        If the ufunc has no loop for these dtypes.

    Examples
    --------
    >>> resolve_ufunc(np.true_divide, ((np.dtype("int32"), False), (np.dtype("int64"), True)))
    ((dtype('float64'), dtype('float64')), (dtype('float64'),))
    >>> resolve_ufunc(np.sin, ((np.dtype("int8"), False),))
    ((dtype('float16'),), (dtype('float16'),))
    """
    if any(dtype == KEY for dtype, _ in operands):
        raise refused_keys(ufunc.__name__)
    if len(operands) != ufunc.nin:
        raise DtypeError(f"{ufunc.__name__} takes {ufunc.nin} arrays, got {len(operands)}")
    resolved = _resolve(ufunc, operands)
    if any(dtype.char == "O" for dtype in resolved):
        # NumPy compares two Python integers as objects, because they may be large; functrans treats them as int64.
        resolved = _resolve(ufunc, tuple((dtype, False) for dtype, _ in operands))
    canonical_dtypes = tuple(check_supported(dtype, ufunc.__name__) for dtype in resolved)
    return canonical_dtypes[: ufunc.nin], canonical_dtypes[ufunc.nin :]


def _resolve(ufunc: np.ufunc, operands: tuple[tuple[np.dtype, bool], ...]) -> tuple[np.dtype, ...]:
    requested = [_WEAK_TYPES.get(dtype_kind(dtype), dtype) if weak else dtype for dtype, weak in operands]
    try:
        return loop_dtypes(ufunc, (*requested, *[None] * ufunc.nout))
    except TypeError:
        listed = ", ".join(f"{dtype}{' (weak)' if weak else ''}" for dtype, weak in operands)
        cure = _ufunc_cure(ufunc, {dtype_kind(dtype) for dtype, _ in operands})
        raise DtypeError(f"{ufunc.__name__} does not take {listed}: {cure}") from None


def _ufunc_cure(ufunc: np.ufunc, kinds: set[str]) -> str:
    loops = {loop.split("->")[0] for loop in ufunc.types}
    if "c" in kinds and not any("D" in loop for loop in loops):
        return "it is not defined for complex numbers; use x.real, x.imag or abs(x)"
    if kinds & set("fc") and not any("d" in loop for loop in loops):
        return "convert the arguments to an integer or bool dtype with .astype"
    if kinds == {"b"}:
        return "convert bool arguments with .astype(int), or use the logical functions"
    return f"convert the arguments to one dtype with .astype (NumPy's loops are {', '.join(ufunc.types)})"

"""The names that the Python form of a kernel uses: NumPy's and SciPy's functions on scalars.

Casts follow ``ndarray.astype`` (NumPy scalar types refuse to convert NaN to an integer); `min` and `max` are Python's
for integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...arrays.casts import cast
from ...core import records, reserve
from ...core.dtypes import real_dtype
from ...core.values import ArrayLike, Value
from ...passes.scalar_functions import FUNCTIONS
from ...primitives.special.formulas import FORMULAS, on_arrays
from ...primitives.special.inverse_erf import quick_erfinv
from ...runtime.libraries import numba, scipy
from ..blas import LETTERS, RETURNS, python_routine
from ..host.host_calls import from_python
from ..loops import ir, queries

_NUMPY = (
    *[name for name, f in FUNCTIONS.items() if f.numpy],
    *("less", "less_equal", "greater", "greater_equal", "minimum", "maximum", "array", "empty"),
)
_DTYPES = (
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
    "float64", "complex64", "complex128",
)  # fmt: skip
#: The functions from SciPy, by the names that kernels use.
_SCIPY = {name: f.scipy for name, f in FUNCTIONS.items() if f.scipy}
#: All names that the Python form may use (except BLAS and LAPACK routines).
NAMES = frozenset((
    *FUNCTIONS, *_NUMPY, *_DTYPES, "bits16", "bits32", "bits64", "from_bits16", "from_bits32", "from_bits64", "power",
    "range", "records", "reserve", "host", "make_complex64", "make_complex128", "bfloat16",
))  # fmt: skip


def _caster(name: str) -> Callable[[Any], Any]:
    dtype = np.dtype(name)  # bfloat16 has a name as soon as there is an array of it

    def to_dtype(x: Value) -> Value:
        return cast(np.asarray(x), dtype)[()]

    to_dtype.__name__ = name
    return to_dtype


def _power(x: Value, y: Value) -> Value:
    """C's ``pow``: for one exponent NumPy takes shortcuts that differ at infinity."""
    dtype = np.result_type(x, y)
    return np.power(np.array([x, x], dtype), np.array([y, y], dtype))[0]


def _irem(a: ArrayLike, b: Any) -> Any:
    """The remainder of truncating division of Python or NumPy integers."""
    if type(a) is int and type(b) is int:
        return abs(a) % abs(b) * (1 if a >= 0 else -1)
    return np.fmod(a, b)


def _idiv(a: Any, b: Any) -> Any:
    """Division that truncates towards zero."""
    return (a - _irem(a, b)) // b


def _bits16(x: Any) -> Any:
    """The bits of a float16 or bfloat16 as an int16."""
    return np.asarray(x).view(np.int16)[()]


def _bits32(x: Any) -> Any:
    """The bits of a float32 as an int32."""
    return np.float32(x).view(np.int32)


def _bits64(x: Any) -> Any:
    """The bits of a float64 as an int64."""
    return np.float64(x).view(np.int64)


def _from_bits16(x: Any) -> Any:
    """The float16 with the bits of an int16 or uint16."""
    return x.view(np.float16)


def _from_bits32(x: Any) -> Any:
    """The float32 with the bits of an int32 or uint32."""
    return x.view(np.float32)


def _from_bits64(x: Any) -> Any:
    """The float64 with the bits of an int64 or uint64."""
    return x.view(np.float64)


def _complex_maker(type_: Callable[[complex], Any]) -> Callable[[Any, Any], Any]:
    return lambda re, im: type_(complex(re, im))


def namespace(kernel: ir.Kernel) -> dict[str, Any]:
    """The globals of a kernel's Python form."""
    names: dict[str, Any] = {name: getattr(np, name) for name in _NUMPY}
    names.update(
        (name, _caster(name)) for name in {*_DTYPES, *[b.dtype.name for b in kernel.buffers]} - {"bool"}
    )
    # The names of dtypes are functions that cast here.
    names.update(empty=lambda shape, cast: np.empty(shape, cast.__name__))
    names.update(array=lambda items, cast: np.array(items, cast.__name__))
    names.update(inf=np.inf, nan=np.nan, records=records, reserve=reserve, host=from_python)
    names.update((name, _in_double(name)) for name in _SCIPY)
    names.update((name, on_arrays(formula)) for name, formula in FORMULAS.items())
    names.update(quick_erfinv=quick_erfinv)
    names.update(trigamma=_trigamma, power=_power, idiv=_idiv, irem=_irem)
    names.update(bits32=_bits32, bits64=_bits64, from_bits32=_from_bits32, from_bits64=_from_bits64)
    names.update(bits16=_bits16, from_bits16=_from_bits16)
    names.update(make_complex64=_complex_maker(np.complex64), make_complex128=_complex_maker(np.complex128))
    for s in queries.walk(kernel.body):
        if type(s) is ir.Call:
            names[s.letter + s.routine] = python_routine(s.letter + s.routine, _result_letter(s))
    return names


def njit_namespace() -> dict[str, Any]:
    """The globals of the Python form under ``@njit``: names that Numba knows."""
    names: dict[str, Any] = {name: getattr(np, name) for name in (*_NUMPY, *_DTYPES)}
    names.update(inf=np.inf, nan=np.nan)
    names.update(erf=math.erf, erfc=math.erfc, lgamma=math.lgamma, power=np.power)
    names.update(bool=np.bool_)  # Numba does not accept Python's as a dtype
    names.update(bits32=numba.njit(_bits32), bits64=numba.njit(_bits64))
    names.update(from_bits32=numba.njit(_from_bits32), from_bits64=numba.njit(_from_bits64))
    return names


def _in_double(name: str) -> Callable[..., Any]:
    """SciPy's function computed in double precision, as native kernels compute it."""
    function, part = getattr(scipy.special, _SCIPY[name]), FUNCTIONS[name].part

    def call(*args: Any) -> Any:
        out = function(*[np.float64(x) for x in args])
        return np.result_type(*args).type(out if part is None else out[part])

    return call


def _trigamma(x: Any) -> Any:
    wide = np.float64(x)
    if wide < 0:
        # SciPy's zeta steps up from a negative argument by ones, and never finishes from -1e20: use reflection.
        sine = np.sin(np.pi * (wide - np.rint(wide)))
        pole = np.floor(wide) == wide
        value = np.inf if pole else (np.pi / sine) ** 2 - scipy.special.polygamma(1, 1 - wide)
    else:
        value = scipy.special.polygamma(1, wide)
    return np.asarray(value).astype(np.asarray(x).dtype)[()]


def _result_letter(s: ir.Call) -> str:
    if s.value is None:
        return ""
    dtype = s.value.dtype
    return LETTERS[(real_dtype(dtype) if RETURNS[s.routine] == "real" else dtype).name]


def python_function(kernel: ir.Kernel, source: str) -> Callable[..., int]:
    """The function defined by a kernel's Python form."""
    names = namespace(kernel)
    exec(compile(source, f"<kernel {kernel.name}>", "exec"), names)
    return names[kernel.name]


def views(kernel: ir.Kernel, arrays: tuple[np.ndarray, ...], ints: tuple[int, ...]) -> list[np.ndarray]:
    """Every declared buffer as an array, from one array (of any shape) per storage."""
    memory = {place: a.reshape(-1).view(np.uint8) for place, a in zip(kernel.storages, arrays, strict=True)}
    views = []
    for b in kernel.buffers:
        if b.role in ("stack", "tape"):
            continue
        shape = tuple(n if isinstance(n, int) else ints[n.slot] for n in b.shape)
        size = int(np.prod(shape, dtype=np.int64)) * b.dtype.itemsize
        views.append(memory[b.place][:size].view(b.dtype).reshape(shape))
    return views

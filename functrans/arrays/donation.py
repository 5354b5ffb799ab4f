"""Donated arrays: the memory that may be overwritten, and the Arrays that are left without it."""

from __future__ import annotations

import ctypes
import sys
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np

from ..core import Consumer, Place, is_held, new_rlock, stale, stale_dtype
from ..core.values import ArrayLike, Param, Value
from ..errors import ArgumentError, ArgumentValueError, UnsupportedDtypeError
from .array import Array, wrap

_base: Callable[[Any], Any] = vars(np.ndarray)["base"].__get__
_dtype: Callable[[Any], np.dtype] = vars(np.ndarray)["dtype"].__get__
_lock = new_rlock()
#: NumPy's flags, as ``x.flags.num`` has them: C-contiguous, aligned, writable.
_WRITABLE = 0x1 | 0x100 | 0x400
_OWNS_DATA = 0x4


class DonatedMemory:
    """The base of an array of donated memory: results may be written there, and the user's ndarray shows them."""

    def __init__(self, array: np.ndarray):
        self.array = array
        self.__array_interface__ = array.__array_interface__


def donate(array: np.ndarray) -> Array:
    """Give the memory of an ndarray to functrans, so that a result can be written into it.

    Pass the result to a function that consumes this argument: one jitted with `donate_argnums`, or a `Function` that
    calls ``ctx.mark_dirty``. Until then it is an `Array` like any other.

    Parameters
    ----------
    array : ndarray
        C-contiguous and writable. It becomes read-only, and shows the result: the values change in place.

    Returns
    -------
    Array
        The same memory.

    Raises
    ------
    ArgumentError
        If `array` is not an ndarray, or is an `Array`, which needs no permission.
    ArgumentValueError
        If it is read-only or not C-contiguous.
    UnsupportedDtypeError
        If functrans does not support its dtype.

    Notes
    -----
    `array` shows the result that replaces the argument: the first one of its shape and dtype that replaces no earlier
    donated argument. If there is none, `array` keeps its values. It also keeps them if a slice of the returned
    `Array` is still in use when the `Array` is consumed, or it was exported as a buffer, because an `Array` never
    changes.

    Examples
    --------
    >>> import numpy as np, functrans as ft
    >>> step = ft.jit(lambda x: 2.0 * x, donate_argnums=0)
    >>> memory = np.array([1.0, 2.0, 3.0])
    >>> x = ft.donate(memory)
    >>> for _ in range(3):
    ...     x = step(x)
    >>> memory
    array([ 8., 16., 24.])
    """
    if type(array) is EmptyArray:
        raise stale(_dtype(array))
    if isinstance(array, Array) or not isinstance(array, np.ndarray):
        instead = "An Array is donated by donate_argnums of jit alone" if isinstance(array, Array) else ""
        raise ArgumentError(
            f"donate: expected an ndarray, got {type(array).__name__}. "
            f"{instead or 'Only an array has memory to write to'}"
        )
    if not is_held(array.dtype):
        raise UnsupportedDtypeError(f"donate: the array has dtype {array.dtype}, which is not supported")
    if array.flags.num & _WRITABLE != _WRITABLE:
        what = "read-only (donated before?)" if not array.flags.writeable else "not C-contiguous and aligned"
        raise ArgumentValueError(
            f"donate: the array of shape {array.shape} is {what}, so results cannot be written into it. Donate a copy: "
            "functrans.donate(np.array(x))"
        )
    memory = np.asarray(DonatedMemory(array))
    array.flags.writeable = False
    return wrap(memory)


# --- an Array that is consumed ------------------------------------------------------------------------------


class Donation:
    """An `Array` that a call consumes: using it again raises.

    Parameters
    ----------
    array : Array
    to : str
        The function that it is donated to, for messages.
    where : Place or None
        The user's line.

    Attributes
    ----------
    memory : ndarray
        Its values, in memory that nothing else reads: a copy if another array or library still views the array.
    given : ndarray or None
        `memory` if it belongs to the user (see `donate`), who must see the result in it.

    Raises
    ------
    StaleValueError
        If the array was donated before.
    """

    __slots__ = ("array", "given", "memory", "to", "where")

    def __init__(self, array: Array, to: str, where: Place | None):
        self.array = array
        self.to = to
        self.where = where
        with _lock:
            if type(array) is not Array:
                raise stale(_dtype(array))
            _become(array, EmptyArray)
        own = _own_memory(array)
        self.memory = np.array(unwrap_consumed(array), order="C") if own is None else own
        self.given = own if own is not None and type(_base(own)) is DonatedMemory else None

    def release(self) -> None:
        """Return the memory to the array: nothing was written to it."""
        _become(self.array, Array)

    def finish(self) -> None:
        """Leave the array without elements, so that functions that bypass Python's methods cannot read it either."""
        x = self.array
        # A memoryview of the array refers to the array, not to its memory, which must live as long.
        memory = _KeptMemory.of(_base(x))
        consumer = Consumer("Array", self.memory.shape, self.memory.dtype, self.to, self.where)
        _empty(x, stale_dtype(consumer.error, memory))


def modified(consumer: Consumer) -> Array:
    """Replaces a residual that must not be read any more: using it raises."""
    x = wrap(np.empty(0))
    _become(x, EmptyArray)
    _empty(x, stale_dtype(consumer.error_in_backward))
    return x


def _empty(x: Array, dtype: np.dtype) -> None:
    # NumPy 2.5 frees there what a memoryview of the array still reads. It is freed when the array dies, as ever.
    if not EXPORTS_ARE_KNOWN and hasattr(np.ndarray, "_set_dtype"):
        return  # it keeps its elements: they were copied
    note = _word.from_address(id(x) + _EXPORTS) if EXPORTS_ARE_KNOWN else _word()
    exports, note.value = note.value, 0
    np.ndarray.__setstate__(x, (1, (0,), dtype, False, b""))  # type: ignore[arg-type]
    note.value = exports


class _KeptMemory:
    """Keeps the memory of emptied Arrays alive; one for each memory, which its id finds as long as it lives."""

    __slots__ = ("__weakref__", "link")
    #: Those that die leave it without Python code, which an interrupt could leave halfway.
    living: ClassVar[dict[int, weakref.ref[_KeptMemory]]] = {}

    def __init__(self, link: Value):
        self.link = link

    @classmethod
    def of(cls, link: ArrayLike) -> _KeptMemory:
        """The one of a memory, which is made if there is none."""
        with _lock:
            known = cls.living.get(id(link))
            kept = None if known is None else known()
            if kept is None:
                kept = cls(link)
                cls.living[id(link)] = weakref.ref(kept, partial(cls.living.pop, id(link)))
            return kept


def unwrap_consumed(x: ArrayLike) -> np.ndarray:
    """The plain array of an `Array`, even after donation."""
    return np.ndarray.view(x, np.ndarray)


def _become(x: Array, kind: type) -> None:
    np.ndarray.__setattr__(x, "__class__", kind)


def _own_memory(x: Array) -> np.ndarray | None:
    """The memory of an Array, writable and in its shape, if nothing else refers to it."""
    if not EXPORTS_ARE_KNOWN or _was_exported(x):
        return None
    link = _base(x)
    while type(link) is np.ndarray:
        if sys.getrefcount(link) > _ALONE + (id(link) in _KeptMemory.living):
            return None
        below = _base(link)
        if type(below) is DonatedMemory or (below is None and link.flags.num & _OWNS_DATA):
            break
        link, below = below, None
    else:
        return None
    view = unwrap_consumed(x)
    if link.flags.num & _WRITABLE != _WRITABLE or link.nbytes != view.nbytes:
        return None
    if link.shape == view.shape and link.dtype == view.dtype:
        return link
    return np.ndarray(view.shape, view.dtype, link) if view.flags.c_contiguous else None


#: Where NumPy notes that an array was exported as a buffer (`_buffer_info`), after eight words of other fields.
_EXPORTS = object.__basicsize__ + 64
_word = ctypes.c_size_t


def _was_exported(x: np.ndarray) -> bool:
    """Whether a memoryview, or another user of the buffer protocol, has ever referred to the Array itself.

    Views and other exports refer to its memory, so they count in `_own_memory` as long as they live. A buffer refers to
    the object of which it was asked, and NumPy counts no buffers.
    """
    return bool(_word.from_address(id(x) + _EXPORTS).value)


def _knows_exports() -> bool:
    """Whether NumPy's note is where `_was_exported` reads it."""
    arrays = np.zeros(3), wrap(np.zeros((2, 3))), np.arange(6)[::2]
    if sys.implementation.name != "cpython" or np.ndarray.__basicsize__ < _EXPORTS + ctypes.sizeof(
        ctypes.c_size_t
    ):
        return False
    before = [_was_exported(x) for x in arrays]
    held = [memoryview(x) for x in arrays]
    return not any(before) and all(map(_was_exported, arrays)) and len(held) == len(arrays)


#: Otherwise every donated Array is copied.
EXPORTS_ARE_KNOWN = _knows_exports()


def _count_alone() -> int:
    """The number of references to the memory of an Array that nothing else views, as `_own_memory` counts them.

    It is measured, because Python versions count the references of local variables differently.
    """
    x = wrap(np.empty(1))
    link = _base(x)
    while type(link) is np.ndarray:
        return sys.getrefcount(link)
    raise AssertionError


_ALONE = _count_alone()


class EmptyArray(Array):
    """The class of a donated `Array`: using it raises `StaleValueError`."""

    __slots__ = ()
    __hash__ = None

    def __getattribute__(self, name: str) -> Any:
        if name in _ALLOWED:
            return object.__getattribute__(self, name)
        raise stale(_dtype(self))

    def is_deleted(self) -> bool:
        """Always True."""
        return True

    def __repr__(self) -> str:
        return f"<{stale(_dtype(self)).message.partition(' and may')[0]}>"

    __str__ = __repr__


#: Attributes that remain available after donation.
_ALLOWED = frozenset(("__class__", "is_deleted", "__repr__", "__str__", "__doc__", "__dir__"))
EmptyArray.__name__ = EmptyArray.__qualname__ = "Array"


def _refusing(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Param) -> Any:
        raise stale(_dtype(self))

    method.__name__ = name
    return method


#: Attributes that Python and NumPy need on any object.
_KEPT = {"__array_finalize__", *dir(object)}.difference(
    ("__reduce__", "__reduce_ex__", "__format__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")
)
for _name in dir(Array):
    if _name.startswith("__") and _name not in _KEPT and callable(getattr(Array, _name)):
        setattr(EmptyArray, _name, _refusing(_name))
del _name

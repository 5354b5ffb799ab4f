"""Exceptions that cross native code: Python holds the exception, and Numba's exception carries its number.

Numba raises a *dynamic* exception in two steps, when the outermost jitted function has returned: it calls an unwrapping
function with a word of ours, then it unpickles bytes of ours. So the first step, `select`, says which exception is
meant, and the second one, `take`, which the bytes `PICKLED` call, hands it over. An exception that jitted code catches
is never taken; only the last few are held.
"""

from __future__ import annotations

import pickle
import threading
from collections import OrderedDict
from itertools import count
from typing import Any

from ...core import new_lock

#: How many exceptions are held. Each thread has at most a few on their way.
_MOST = 256

_held: OrderedDict[int, BaseException] = OrderedDict()
_numbers = count(1)
_lock = new_lock()
_selected = threading.local()


def hold(error: BaseException) -> int:
    """Hold an exception until it is taken; returns its number, which is positive."""
    number = next(_numbers)
    with _lock:
        _held[number] = error
        while len(_held) > _MOST:
            _held.popitem(last=False)
    return number


def hold_pending(error: BaseException) -> int:
    """Hold an exception that native code left pending; returns minus its number."""
    return -hold(error)


def select(number: int) -> tuple[()]:
    """Say which exception this thread takes next. Returns the arguments of Numba's exception: none."""
    _selected.number = number
    return ()


def take() -> tuple[BaseException, tuple[()], None]:
    """The selected exception, as Numba unpacks one: an exception, its arguments, and the line that it adds."""
    with _lock:
        error = _held.pop(_selected.number, None)
    return error or RuntimeError("functrans lost an exception that it held"), (), None


class _Taken:
    def __reduce__(self) -> Any:
        return take, ()


#: Unpickled, it is the result of `take`.
PICKLED = pickle.dumps(_Taken())

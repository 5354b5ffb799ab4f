"""What ``np.r_[...]`` and ``np.c_[...]`` join in the place of traced values.

They convert every row by ``np.array`` before they call ``np.concatenate``, which dispatches. So `Tracer.__array__`
gives them an array without numbers, which remembers the traced value through what they do to it: they add axes of
extent 1, and cast to the common dtype.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np

from .operators import operators


class TracedRow(np.ndarray):
    """An array of the shape and dtype of a traced value, whose elements are all in one place."""

    value: Any = None

    def __array_finalize__(self, obj: Any) -> None:
        self.value = getattr(obj, "value", None)

    def __array_function__(self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        rows = [x.traced() if isinstance(x, TracedRow) else x for x in args[0]]
        return operators.function[func](rows, *args[1:], **kwargs)

    def traced(self) -> Any:
        """The traced value in the shape and dtype that this array has by now."""
        return self.value.reshape(self.shape).astype(self.dtype)


def asked_to_join(frame: FrameType) -> bool:
    """Whether the code that asks for an array is that of ``np.r_`` or ``np.c_``."""
    return frame.f_code.co_qualname == "AxisConcatenator.__getitem__"


def traced_row(tracer: Any) -> TracedRow:
    """The array that stands for a traced value."""
    row = np.broadcast_to(np.zeros((), tracer.dtype), tracer.shape).view(TracedRow)
    row.value = tracer
    return row

"""Whether this process has asked for anything that operators and methods of an `Array` must look for."""

from __future__ import annotations


class _Unusual:
    """Whether this process has ever used autocast, arrays of float16 or bfloat16, or an option such as ``debug_nans``.

    Until then, operators and methods of an `Array` are NumPy's, and look at nothing.
    """

    __slots__ = ("used",)

    def __init__(self) -> None:
        self.used = False


unusual = _Unusual()

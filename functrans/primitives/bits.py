"""Bits and integer functions: and, or, xor, not, shifts, gcd, lcm. None has a derivative."""

from __future__ import annotations

from typing import Any

import numpy as np

from .families import elementwise

and_p = elementwise("and", np.bitwise_and, kernel=lambda k, x, y: x & y, kinds="biu")
or_p = elementwise("or", np.bitwise_or, kernel=lambda k, x, y: x | y, kinds="biu")
xor_p = elementwise("xor", np.bitwise_xor, kernel=lambda k, x, y: x ^ y, kinds="biu")
not_p = elementwise("not", np.bitwise_not, kernel=lambda k, x: ~x, kinds="biu")


def _in_range(k: Any, x: Any, amount: Any) -> tuple[Any, Any]:
    """Whether a shift is by less than the width (and not negative), and an amount that always is."""
    fits = amount < 8 * x.dtype.itemsize
    if x.dtype.kind == "i":
        fits = fits & (amount >= 0)
    return fits, k.where(fits, amount, k.const(0, x.dtype))


def _shift_left_kernel(k: Any, x: Any, amount: Any) -> Any:
    fits, safe = _in_range(k, x, amount)
    return k.where(fits, x << safe, k.const(0, x.dtype))


def _shift_right_kernel(k: Any, x: Any, amount: Any) -> Any:
    fits, safe = _in_range(k, x, amount)
    # Beyond the width only copies of the sign are left.
    rest = (
        k.const(0, x.dtype)
        if x.dtype.kind == "u"
        else k.where(x < 0, k.const(-1, x.dtype), k.const(0, x.dtype))
    )
    return k.where(fits, x >> safe, rest)


shift_left_p = elementwise("shift_left", np.left_shift, kernel=_shift_left_kernel, kinds="iu")
shift_right_p = elementwise("shift_right", np.right_shift, kernel=_shift_right_kernel, kinds="iu")

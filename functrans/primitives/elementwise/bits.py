"""Bits and integer functions: and, or, xor, not, shifts, gcd, lcm. None has a derivative."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.kernel import Block, BlockEmitter, Buffer
from ...core.rewriter import inverse_pair
from ..families import elementwise
from ..structure.shape import loops

and_p = elementwise("and", np.bitwise_and, kernel=lambda k, x, y: x & y, kinds="biu", cheap=True)
or_p = elementwise("or", np.bitwise_or, kernel=lambda k, x, y: x | y, kinds="biu", cheap=True)
xor_p = elementwise("xor", np.bitwise_xor, kernel=lambda k, x, y: x ^ y, kinds="biu", cheap=True)
not_p = elementwise(
    "not", np.bitwise_not, kernel=lambda k, x: ~x, kinds="biu", cheap=True, simplify=inverse_pair
)


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


shift_left_p = elementwise("shift_left", np.left_shift, kernel=_shift_left_kernel, kinds="iu", cheap=True)
shift_right_p = elementwise("shift_right", np.right_shift, kernel=_shift_right_kernel, kinds="iu", cheap=True)

# --- greatest common divisor --------------------------------------------------------------------------------

_STEPS = {8: 13, 16: 24, 32: 47, 64: 93}
"""Euclid's algorithm takes most steps for neighbouring Fibonacci numbers; so many fit in the width."""


def _euclid(k: BlockEmitter, x: Any, y: Any) -> Any:
    """The greatest common divisor of two unsigned numbers."""
    a, b = k.local(x), k.local(y)
    with k.loop(_STEPS[8 * x.dtype.itemsize]), k.if_(b.get().ne(0)):
        divisor = b.get()
        rest = k.call("irem", a.get(), divisor)
        a.set(divisor)
        b.set(rest)
    return a.get()


def _integer_block(combine: Callable[[BlockEmitter, Any, Any], Any]) -> Block:
    """A block that applies `combine` to the sizes of all elements, unsigned (so that INT_MIN has one)."""

    def size_at(k: BlockEmitter, x: Buffer, index: Sequence[Any]) -> Any:
        own = index[len(index) - len(x.shape) :]
        number = k.load(x, [0 if n == 1 else i for n, i in zip(x.shape, own)])
        if x.dtype.kind == "u":
            return number
        unsigned = np.dtype(f"u{x.dtype.itemsize}")
        return k.cast(k.where(number < 0, -number, number), unsigned)

    def emit(k: BlockEmitter, operands: Sequence[Buffer], results: Sequence[Buffer]) -> None:
        (out,) = results
        with loops(k, out.shape) as index:
            x, y = [size_at(k, a, index) for a in operands]
            k.store(out, index, k.cast(combine(k, x, y), out.dtype))

    return Block(emit)


def _least_multiple(k: BlockEmitter, x: Any, y: Any) -> Any:
    divisor = _euclid(k, x, y)
    none = divisor.eq(0)
    quotient = k.call("idiv", x, k.where(none, k.const(1, x.dtype), divisor))
    return k.where(none, k.const(0, x.dtype), quotient * y)


gcd_p = elementwise("gcd", np.gcd, kernel=_integer_block(_euclid), kinds="iu")
lcm_p = elementwise("lcm", np.lcm, kernel=_integer_block(_least_multiple), kinds="iu")

"""Reductions in a nest: how a fold starts, adds an element, and ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..builder import StatementBuilder
from ..handles import Memory, ScalarHandle
from ..passes.blocked import block_size


def neutral(fold: str, dtype: np.dtype) -> Any:
    """The result of a fold of no elements."""
    if fold in ("sum", "any"):
        return 0
    if fold in ("prod", "all"):
        return 1
    largest = fold.endswith("min")
    if dtype.kind == "f":
        return np.inf if largest else -np.inf
    if dtype.kind == "b":
        return largest
    info = np.iinfo(dtype)
    return info.max if largest else info.min


#: The operation of the loop IR that combines two results of a fold in any order.
_OPERATIONS = {"sum": "add", "max": "max", "min": "min", "any": "or", "all": "and"}
combination = _OPERATIONS.__getitem__


def combine(
    b: StatementBuilder, fold: str, acc: ScalarHandle, x: ScalarHandle, reassoc: bool
) -> ScalarHandle:
    """The accumulator after one more element."""
    if fold == "sum":
        return b.binary("add", acc, x, reassoc=reassoc)
    if fold == "prod":  # in NumPy's order: any other may overflow midway, and multiply that by zero
        return b.binary("mul", acc, x)
    if fold in ("max", "min"):
        return b.call(fold, acc, x)
    return b.binary("or" if fold == "any" else "and", acc, x)


def is_in_any_order(fold: str, dtype: np.dtype, reassoc: bool) -> bool:
    """Whether a fold may combine elements in any order."""
    return fold in _OPERATIONS and (reassoc or fold != "sum" or dtype.kind not in "fc")


#: Sums in single precision are computed in double: in single, the sum of ten million equal numbers has three digits.
_WIDE = {np.dtype(np.float32): np.dtype(np.float64), np.dtype(np.complex64): np.dtype(np.complex128)}


def wide_dtype(fold: str, dtype: np.dtype) -> np.dtype:
    """The dtype in which a fold in a variable is computed."""
    return _WIDE.get(dtype, dtype) if fold == "sum" else dtype


class Accumulator:
    """A fold in a scalar variable."""

    def __init__(self, b: StatementBuilder, fold: str, dtype: np.dtype, reassoc: bool):
        self.builder = b
        self.fold = fold
        self.dtype = dtype
        self.reassoc = reassoc
        self.wide = wide_dtype(fold, dtype)
        size = block_size(fold, self.wide, reassoc) if self.wide is dtype else 0
        any_order = is_in_any_order(fold, self.wide, reassoc)
        self.variable = b.local(b.const(neutral(fold, self.wide), self.wide), size, fold if any_order else "")

    def take(self, x: ScalarHandle) -> None:
        """Add one element."""
        x = self.builder.cast(self.builder.cast(x, self.dtype), self.wide)
        self.variable.set(combine(self.builder, self.fold, self.variable.get(), x, self.reassoc))

    def result(self) -> ScalarHandle:
        """The result."""
        return self.builder.cast(self.variable.get(), self.dtype)


def accumulate(
    b: StatementBuilder,
    fold: str,
    buffer: Memory,
    index: Sequence[ScalarHandle],
    x: ScalarHandle,
    reassoc: bool,
) -> None:
    """Add one element to a fold in memory."""
    acc = b.load(buffer, index)
    b.store(buffer, index, combine(b, fold, acc, b.cast(x, acc.dtype), reassoc))

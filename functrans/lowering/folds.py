"""Reductions in a nest: how a fold begins, takes an element, and ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .builder import Builder, LocalHandle, Scalar
from .loopir import INT64, BufferDecl

EXTREMES = ("argmax", "argmin")


def neutral(fold: str, dtype: np.dtype) -> Any:
    """The number that a fold of no elements gives."""
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


def combine(b: Builder, fold: str, acc: Scalar, x: Scalar, reassoc: bool) -> Scalar:
    """The accumulator with one more element."""
    if fold == "sum":
        return b.binary("add", acc, x, reassoc=reassoc)
    if fold == "prod":
        return b.binary("mul", acc, x, reassoc=reassoc)
    if fold in ("max", "min"):
        return b.call(fold, acc, x)
    return b.binary("or" if fold == "any" else "and", acc, x)


def single(b: Builder, fold: str, x: Scalar, dtype: np.dtype) -> Scalar:
    """The fold of one element."""
    return b.const(0, dtype) if fold in EXTREMES else b.cast(x, dtype)


class Accumulator:
    """A fold in scalar variables."""

    def __init__(self, b: Builder, fold: str, source: np.dtype, dtype: np.dtype, reassoc: bool):
        self.builder = b
        self.fold = fold
        self.dtype = dtype
        self.reassoc = reassoc
        self.place: LocalHandle | None = None
        if fold in EXTREMES:
            self.place = b.local(b.const(0, INT64))
            dtype = source
        self.best = b.local(b.const(neutral(fold, dtype), dtype))

    def take(self, x: Scalar, index: Sequence[Scalar], extents: Sequence[int]) -> None:
        """One element, at `index` along the reduced axes."""
        b = self.builder
        if self.place is None:
            self.best.set(combine(b, self.fold, self.best.get(), b.cast(x, self.dtype), self.reassoc))
            return
        best = self.best.get()
        better = x > best if self.fold == "argmax" else x < best
        if x.dtype.kind == "b":
            better = x & ~best if self.fold == "argmax" else best & ~x
        if x.dtype.kind == "f":
            better = better | (x.ne(x) & best.eq(best))  # the first NaN wins
        flat = index[0]
        for i, n in zip(index[1:], extents[1:]):
            flat = flat * n + i
        self.place.set(b.where(better, flat, self.place.get()))
        self.best.set(b.where(better, x, best))

    def result(self) -> Scalar:
        """The folded value."""
        found = self.best if self.place is None else self.place
        return self.builder.cast(found.get(), self.dtype)


def accumulate(
    b: Builder, fold: str, buffer: BufferDecl, index: Sequence[Scalar], x: Scalar, reassoc: bool
) -> None:
    """One element into a fold that is kept in memory."""
    acc = b.load(buffer, index)
    b.store(buffer, index, combine(b, fold, acc, b.cast(x, buffer.dtype), reassoc))

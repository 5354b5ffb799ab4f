"""Report of a violated law: the law, direction, seed, largest error, and a line that reproduces it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np

from ..core import is_inexact
from ..core.jax_dtypes import narrowed
from ..runtime.context import quietly
from ..runtime.records import NamedTuple


class LawViolation(AssertionError):
    """A law does not hold, or could not be tested because of an exception, which is chained to it.

    Attributes
    ----------
    law : str
        The law in words.
    name : str
        The name of the function of `functrans.testing` that tests the law; empty if there is none.
    subject : str
        The name of the function for which the law does not hold.
    seed : int
        The seed of the random directions.
    """

    def __init__(self, message: str, law: str, seed: int, name: str = "", subject: str = ""):
        super().__init__(message)
        self.law = law
        self.name = name
        self.subject = subject
        self.seed = seed


class Margin(NamedTuple):
    """Relative and absolute tolerance."""

    rtol: float = 0.0
    atol: float = 0.0


_EXACT = Margin()


class Report:
    """Compares values, and reports differences in one form.

    Parameters
    ----------
    law : str
        The law in words.
    subject : str
        The name of the function or primitive.
    reproduce : callable
        Makes a line of Python that tests the law again.
    seed : int
    name : str
        The name of the function that tests the law.
    """

    def __init__(self, law: str, subject: str, reproduce: Callable[[], str], seed: int, name: str = ""):
        self.law = law
        self.name = name
        self.subject = subject
        self.reproduce = reproduce
        self.seed = seed

    def fail(self, where: str, what: str) -> NoReturn:
        """Raise a `LawViolation`."""
        raise self._violation(where, what)

    def _violation(self, where: str, what: str) -> LawViolation:
        return LawViolation(self._text(where, what), self.law, self.seed, self.name, self.subject)

    def _text(self, where: str, what: str) -> str:
        return (
            f"{self.subject}: the law '{self.law}' does not hold\n  where: {where}\n  {what}\n"
            f"  seed: {self.seed}\n  reproduce: {self.reproduce()}"
        )

    @contextmanager
    def chained(self) -> Iterator[None]:
        """Exceptions of the block become `LawViolation`s, chained."""
        try:
            yield
        except AssertionError:
            raise
        except Exception as error:
            what = f"{type(error).__name__} was raised: {error}"
            raise self._violation("inside the law", what) from error

    def same_type(self, where: str, got: Any, expected: Any) -> None:
        """Shapes and dtypes must be equal, where 64 bits are off those that arrays then have."""
        a, b = np.asarray(got), np.asarray(expected)
        dtype = narrowed(b.dtype)
        if a.shape != b.shape or a.dtype != dtype:
            self.fail(
                where, f"got an array of shape {a.shape} and dtype {a.dtype}, expected {b.shape}, {dtype}"
            )

    def close(
        self,
        where: str,
        got: Any,
        expected: Any,
        tolerance: Margin = _EXACT,
        *,
        error: Any = 0.0,
        estimated: np.ndarray | None = None,
        names: tuple[str, str] = ("got", "expected"),
        signed_zeros: bool = False,
        operands: Sequence[np.ndarray] = (),
        hint: str | Callable[[], str] = "",
    ) -> None:
        """Equal up to ``max(atol, rtol |expected|, error)``; NaN equals NaN, and an infinity equals itself.

        With `signed_zeros`, zeros must have equal signs. `operands` of the same shape are shown at the largest error.
        `estimated` is the error of what is expected, as finite differences estimate it: ten times as much is allowed.
        `hint` is a sentence for the message, or makes it if there is one.
        """
        a, b = np.asarray(got), np.asarray(expected)
        if a.shape != b.shape:
            self.fail(where, f"{names[0]} has shape {a.shape}, {names[1]} has shape {b.shape}")
        if estimated is not None:
            error = np.where(np.isfinite(estimated), 10 * estimated, 0.0)
        good, difference = _agreement(a, b, *tolerance, error)
        if signed_zeros and is_inexact(a.dtype):
            good = good & _equal_zeros(a, b)
        if good.all():
            return
        bad = np.where(good, -1.0, np.where(np.isnan(difference), np.inf, difference))
        place = np.unravel_index(int(np.argmax(bad)), bad.shape)
        index = tuple(int(i) for i in place)
        listed = ", ".join(str(x[index]) for x in operands if x.shape == b.shape)
        hint = hint if isinstance(hint, str) else hint()
        known = "" if estimated is None else f", with an estimated error of {estimated[index]:.1g}"
        self.fail(
            where,
            f"largest error at index {index} of shape {b.shape}: {names[0]} {a[index]}, {names[1]} {b[index]}{known} "
            f"({int((~good).sum())} of {b.size} elements differ)"
            + (f"\n  operands there: {listed}" if listed else "")
            + (f"\n  {hint}" if hint else ""),
        )


@quietly
def _agreement(a: np.ndarray, b: np.ndarray, rtol: float, atol: Any, error: Any) -> tuple[Any, Any]:
    if a.dtype.kind in "biu" and b.dtype.kind in "biu" and not rtol and not atol:
        good = np.asarray(a == b)
        return good, (~good).astype(float)
    if a.dtype.kind == "c" or b.dtype.kind == "c":
        # Part by part, so that a NaN or an infinity in one does not hide the other; the tolerance is of the whole.
        size = np.abs(b)
        size = np.where(np.isfinite(size), size, 0.0)
        atol = np.maximum(atol, rtol * size)
        real, d = _agreement(np.real(a), np.real(b), rtol, atol, error)
        imag, e = _agreement(np.imag(a), np.imag(b), rtol, atol, error)
        return real & imag, np.maximum(d, e)
    a, b = a.astype(float), b.astype(float)
    difference = np.abs(a - b)
    tolerance = np.maximum(np.maximum(atol, rtol * np.abs(b)), error)
    good = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.isfinite(b) & (difference <= tolerance))
    return np.asarray(good), np.asarray(difference)


def _equal_zeros(a: np.ndarray, b: np.ndarray) -> Any:
    if a.dtype.kind == "c":
        return _equal_zeros(a.real, b.real) & _equal_zeros(a.imag, b.imag)
    return (a != 0) | (b != 0) | (np.signbit(a) == np.signbit(b))

"""Hypothesis strategies for property tests of your own functions. Hypothesis is imported on first use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.values import DTypeLike
from ..errors import ArgumentError
from ..frontend.checked import checked
from . import laws
from .domain import MARGIN, Interval
from .report import LawViolation

Shapes = int | Sequence[tuple[int, ...]]
_WANTED = "functrans.testing strategies need Hypothesis: pip install functrans[test]"


@checked
def arrays(
    shape: tuple[int, ...] | Any = (3,), *, domain: Interval | None = None, dtype: DTypeLike = np.float64
) -> Any:
    """A strategy for arrays of numbers of a domain, without subnormals and away from the points to avoid.

    Parameters
    ----------
    shape : tuple of int, or a strategy for one
    domain : Interval, optional
        By default numbers from -2 to 2 other than 0.
    dtype : dtype
        float or complex.

    Returns
    -------
    hypothesis.strategies.SearchStrategy

    Raises
    ------
    ImportError
        If Hypothesis is not installed.
    """
    try:
        from hypothesis import strategies as st
        from hypothesis.extra import numpy as extra
    except ImportError as error:
        raise ImportError(_WANTED) from error
    dtype = np.dtype(dtype)
    domain = Interval() if domain is None else domain
    low, high = domain.complex_range if dtype.kind == "c" else (domain.low, domain.high)
    avoid = (-1.0, 0.0, 1.0) if dtype.kind == "c" else domain.avoid
    bits = 8 * dtype.itemsize // (2 if dtype.kind == "c" else 1)
    real = np.dtype(f"f{bits // 8}")
    # The bounds must be numbers of the dtype.
    first = float(np.nextafter(real.type(low), real.type(high)))
    last = float(np.nextafter(real.type(high), real.type(low)))
    parts = st.floats(first, last, width=bits, allow_subnormal=False).filter(
        lambda x: all(abs(x - p) >= MARGIN for p in avoid)
    )
    elements = st.builds(complex, parts, parts) if dtype.kind == "c" else parts
    return extra.arrays(dtype, shape, elements=elements, fill=st.nothing())


@checked
def operands(shapes: Shapes = 1, *, domain: Interval | None = None, dtype: DTypeLike = np.float64) -> Any:
    """A strategy for tuples of arrays.

    Parameters
    ----------
    shapes : int or sequence of tuple of int
        The number of arrays, which broadcast together, or their shapes.
    domain, dtype
        As for `arrays`.
    """
    try:
        from hypothesis import strategies as st
        from hypothesis.extra import numpy as extra
    except ImportError as error:
        raise ImportError(_WANTED) from error

    def tuples_of(shape_list: Sequence[tuple[int, ...]]) -> Any:
        return st.tuples(*[arrays(s, domain=domain, dtype=dtype) for s in shape_list])

    if not isinstance(shapes, int):
        return tuples_of(shapes)
    if shapes < 1:
        raise ArgumentError(
            f"operands: shapes={shapes}: expected a number of operands, at least 1, or their shapes"
        )
    several = extra.mutually_broadcastable_shapes(num_shapes=shapes, max_dims=3, max_side=4)
    return several.flatmap(lambda s: tuples_of(s.input_shapes))


@checked
def given_op(
    f: Callable[..., Any],
    *,
    shapes: Shapes = 1,
    domain: Interval | None = None,
    dtype: DTypeLike = np.float64,
    max_examples: int = 30,
) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """Decorator: run a test on many points at which `f` has a derivative.

    Parameters
    ----------
    f : callable
        Points at its kinks are skipped.
    shapes, domain, dtype
        As for `operands`.
    max_examples : int

    Returns
    -------
    callable
        A decorator for tests, which receive the operands as positional arguments.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> from functrans.testing import given_op, jvp_is_slope
    >>> @given_op(fnp.hypot, shapes=2, max_examples=5)
    ... def test_hypot(x, y):
    ...     jvp_is_slope(fnp.hypot, x, y)
    >>> test_hypot()
    """
    try:
        from hypothesis import HealthCheck, assume, given, settings
    except ImportError as error:
        raise ImportError(_WANTED) from error

    def decorate(test: Callable[..., None]) -> Callable[[], None]:
        def run(args: tuple[np.ndarray, ...]) -> None:
            assume(_is_smooth(f, args))
            test(*args)

        # Keeps only the test's name: pytest would treat its signature as fixtures.
        run.__name__, run.__qualname__, run.__doc__ = test.__name__, test.__qualname__, test.__doc__
        run.__module__ = test.__module__
        ready = given(operands(shapes, domain=domain, dtype=dtype))(run)
        slow = [HealthCheck.too_slow]  # the first draws of a process, on a busy machine
        return settings(deadline=None, max_examples=max_examples, suppress_health_check=slow)(ready)

    return decorate


def _is_smooth(f: Callable[..., Any], args: tuple[np.ndarray, ...]) -> bool:
    try:
        laws.is_smooth(f, *args)
    except LawViolation as violation:
        if violation.__cause__ is not None:
            raise
        return False
    return True

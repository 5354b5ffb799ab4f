"""Schedules: step sizes as functions of the number of the step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import numpy as fnp
from ..arrays.arguments import shown
from ..core import Tracer, aval_of, concrete, dtype_kind
from ..core.values import ArrayLike
from ..errors import ArgumentError, ArgumentValueError, ShapeError
from ..frontend.checked import checked

Schedule = Callable[[Any], Any]


def check_numbers(name: str, **numbers: Any) -> None:
    """Check that arguments are real numbers, which may be traced.

    Raises
    ------
    ArgumentError
        The message names the first that is not.
    """
    for parameter, x in numbers.items():
        where = f"{name}: {parameter}"
        aval = aval_of(x) if isinstance(x, Tracer | np.ndarray | np.generic | int | float) else None
        if aval is None or aval.shape or dtype_kind(aval.dtype) not in "iuf":
            raise ArgumentError(f"{where} must be a real number, got {shown(x)}")
        if parameter == "decay_steps" and concrete(x) == 0:
            raise ArgumentValueError(f"{where} must not be zero")


def constant(step_size: Any) -> Schedule:
    """The schedule of a step size that does not change.

    Examples
    --------
    >>> from functrans.example_libraries.optimizers import constant
    >>> constant(0.1)(7)
    0.1
    """
    check_numbers("constant", step_size=step_size)
    return lambda i: step_size


def exponential_decay(step_size: Any, decay_steps: Any, decay_rate: Any) -> Schedule:
    """The schedule ``step_size * decay_rate ** (i / decay_steps)``.

    Examples
    --------
    >>> from functrans.example_libraries.optimizers import exponential_decay
    >>> exponential_decay(1.0, 10, 0.5)(20)
    0.25
    """
    check_numbers("exponential_decay", step_size=step_size, decay_steps=decay_steps, decay_rate=decay_rate)
    return lambda i: step_size * decay_rate ** (i / decay_steps)


@checked
def inverse_time_decay(
    step_size: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False
) -> Schedule:
    """The schedule ``step_size / (1 + decay_rate * i / decay_steps)``; with `staircase` in whole periods.

    Examples
    --------
    >>> from functrans.example_libraries.optimizers import inverse_time_decay
    >>> inverse_time_decay(1.0, 10, 0.5)(20)
    0.5
    """
    check_numbers("inverse_time_decay", step_size=step_size, decay_steps=decay_steps, decay_rate=decay_rate)
    if staircase:
        return lambda i: step_size / (1 + decay_rate * fnp.floor(i / decay_steps))
    return lambda i: step_size / (1 + decay_rate * i / decay_steps)


def polynomial_decay(step_size: Any, decay_steps: Any, final_step_size: Any, power: Any = 1.0) -> Schedule:
    """The schedule from `step_size` to `final_step_size` in `decay_steps`, by a power of what remains of them.

    Examples
    --------
    >>> from functrans.example_libraries.optimizers import polynomial_decay
    >>> polynomial_decay(1.0, 10, 0.5)(5)
    Array(0.75)
    """
    check_numbers(
        "polynomial_decay",
        step_size=step_size,
        decay_steps=decay_steps,
        final_step_size=final_step_size,
        power=power,
    )

    def schedule(i: ArrayLike) -> Any:
        left = 1 - fnp.minimum(i, decay_steps) / decay_steps
        return left**power * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: Any, values: ArrayLike) -> Schedule:
    """The schedule that goes from one value to the next after each of the boundaries.

    Parameters
    ----------
    boundaries : array_like, shape (n,)
        The last steps of all values but the last.
    values : array_like, shape (n + 1,)

    Raises
    ------
    ShapeError
        If the shapes are others.

    Examples
    --------
    >>> from functrans.example_libraries.optimizers import piecewise_constant
    >>> schedule = piecewise_constant([10, 20], [1.0, 0.1, 0.01])
    >>> schedule(10), schedule(11)
    (Array(1.), Array(0.1))
    """
    ends, sizes = fnp.asarray(boundaries), fnp.asarray(values)
    if not (ends.ndim == sizes.ndim == 1 and ends.size == sizes.size - 1):
        raise ShapeError(
            "piecewise_constant: boundaries and values must be vectors, with one more value than boundaries; got "
            f"shapes {ends.shape} and {sizes.shape}"
        )
    return lambda i: sizes[fnp.sum(i > ends)]


def make_schedule(scalar_or_schedule: ArrayLike) -> Schedule:
    """A schedule from a number; a function is one already.

    Raises
    ------
    ArgumentError
        If it is not a number or a function.

    Examples
    --------
    >>> from functrans.example_libraries.optimizers import make_schedule
    >>> make_schedule(0.5)(3)
    0.5
    """
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    return constant(scalar_or_schedule)

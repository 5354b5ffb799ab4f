"""A distribution as users see it: a namespace of functions, ``stats.norm.logpdf(x, loc, scale)``.

A record (`Continuous`, `Discrete`) says what is particular to the distribution. `Distribution` makes a module of it:
functions with SciPy's signatures, checks of their arguments, docstrings with an example that runs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from ...core import DtypeError, has_jax_semantics, is_float, is_low, quietly
from ...core.jax_dtypes import default_float
from ...core.trace import key_of
from ...core.values import ArrayLike, PyTree, Value
from ...frontend.checked import checked
from ...primitives import ops
from ...primitives.ops import common_dtype, finish, operand, shape_of, strong
from .frozen import PACKAGE, Namespace


class DistributionRecord(Protocol):
    """What a namespace is made from."""

    @property
    def parameters(self) -> tuple[tuple[str, int], ...]:
        """Names and defaults of the parameters after the shape parameters."""

    @property
    def name(self) -> str:
        """In `scipy.stats`."""

    @property
    def summary(self) -> str:
        """In words."""

    @property
    def shapes(self) -> tuple[str, ...]:
        """The names of the shape parameters."""

    @property
    def example(self) -> tuple[float, ...]:
        """A point and shape parameters."""

    @property
    def functions(self) -> tuple[str, ...]:
        """The names of the functions."""

    @property
    def notes(self) -> str:
        """The formula of the density, and the conditions on the parameters."""

    def evaluate(self, function: str, x: ArrayLike, shapes: Sequence[Any], *rest: PyTree) -> Any:
        """The value of a function, for operands of one floating point dtype."""


class Distribution(Namespace):
    """The functions of one distribution of numbers.

    Parameters
    ----------
    record : DistributionRecord
    """

    def __init__(self, record: DistributionRecord):
        functions = [_published(record, function) for function in record.functions]
        super().__init__(record.name, f"{record.summary}\n\n{record.notes}\n", functions)


def floats(name: str, *given: ArrayLike, broadcast: bool = True) -> list[Any]:
    """Operands in their common floating point dtype; integers count as float64, and Python numbers have no influence.

    Parameters
    ----------
    name : str
        The function, for messages.
    broadcast : bool
        Whether they must broadcast together.

    Raises
    ------
    DtypeError
        If one of them is complex.
    ShapeError
        If they do not broadcast together.
    """
    values = [operand(x, name, i) for i, x in enumerate(given)]
    if not values:
        return []
    dtype, weak = common_dtype(tuple(map(key_of, values)))
    if dtype.kind == "c":
        at = next(i for i, x in enumerate(values) if ops.dtype_of(x).kind == "c")
        raise DtypeError(f"{name}: argument {at} is complex; take its real part, or its absolute value")
    dtype = (
        default_float() if weak or not is_float(dtype) or is_low(dtype) else dtype
    )  # float16 too, as in SciPy
    if broadcast:
        ops.broadcast_shapes(name, *map(shape_of, values))
    return [strong(x, dtype) for x in values]


#: The first argument of each function, and what the function returns.
_FUNCTIONS = {
    "logpdf": ("x", "Logarithm of the probability density at `x`."),
    "pdf": ("x", "Probability density at `x`."),
    "logpmf": ("k", "Logarithm of the probability of `k`."),
    "pmf": ("k", "Probability of `k`."),
    "logcdf": ("x", "Logarithm of the probability of a value up to `{x}`, accurate where it is tiny or near 1."),
    "cdf": ("x", "Probability of a value up to `{x}`."),
    "logsf": ("x", "Logarithm of the probability of a value above `{x}`, accurate where it is tiny or near 1."),
    "sf": ("x", "Probability of a value above `{x}`, accurate where it is tiny."),
    "ppf": ("q", "Quantile: the value whose `cdf` is `q`, from 0 to 1."),
    "isf": ("q", "The value whose `sf` is `q`, from 0 to 1; accurate where `q` is tiny."),
    "entropy": ("", "Entropy, in nats."),
}  # fmt: skip
#: An example for each function: laws that hold for every distribution.
_LAWS = {
    "logpdf": "np.allclose(np.exp({d}.logpdf({x})), {d}.pdf({x}))",
    "pdf": "np.allclose(np.log({d}.pdf({x})), {d}.logpdf({x}))",
    "logpmf": "np.allclose(np.exp({d}.logpmf({x})), {d}.pmf({x}))",
    "pmf": "np.allclose(np.log({d}.pmf({x})), {d}.logpmf({x}))",
    "logcdf": "np.allclose(np.exp({d}.logcdf({x})), {d}.cdf({x}))",
    "cdf": "np.allclose({d}.cdf({x}) + {d}.sf({x}), 1.0)",
    "logsf": "np.allclose(np.exp({d}.logsf({x})), {d}.sf({x}))",
    "sf": "np.allclose({d}.cdf({x}) + {d}.sf({x}), 1.0)",
    "ppf": "np.allclose({d}.ppf({d}.cdf({x}){s}), {x0})",
    "isf": "np.allclose({d}.isf({d}.sf({x}){s}), {x0})",
    "entropy": "np.isfinite({d}.entropy({s0}))",
}


_INVALID = "NaN where a parameter is invalid."


def _first(record: DistributionRecord, function: str) -> str:
    """The name of the first argument."""
    first = _FUNCTIONS[function][0]
    return "k" if first == "x" and "pmf" in record.functions else first


def _published(record: DistributionRecord, function: str) -> Callable[..., Any]:
    """The public function: `record.evaluate` with a signature, checks and a docstring."""
    first = _first(record, function)
    n = len(record.shapes) + bool(first)
    name = f"{record.name}.{function}"

    @quietly
    def evaluate(*arguments: ArrayLike) -> Value:
        # A location of 0 and a scale of 1 that are Python numbers need no arithmetic.
        used = [
            i
            for i, x in enumerate(arguments)
            if i < n or type(x) not in (int, float) or x != record.parameters[i - n][1]
        ]
        values = dict(zip(used, floats(name, *[arguments[i] for i in used])))
        x = values[0] if first else None
        shapes = [values[i] for i in range(bool(first), n)]
        rest = [values.get(n + i) for i in range(len(record.parameters))]
        value = record.evaluate(function, x, shapes, *rest)
        value = np.asarray(value) if type(value) is float else value
        if has_jax_semantics():
            value = ops.weakly_as(value, *[operand(arguments[i], name, i) for i in used])
        return finish(value)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = [inspect.Parameter(p, kind) for p in ((first,) if first else ()) + record.shapes]
    signature += [inspect.Parameter(p, kind, default=d) for p, d in record.parameters]
    evaluate.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
    evaluate.__annotations__ = {}
    evaluate.__module__, evaluate.__name__, evaluate.__qualname__ = PACKAGE, function, name
    evaluate.__doc__ = _docstring(record, function, first)
    return checked(evaluate)


def _docstring(record: DistributionRecord, function: str, first: str) -> str:
    """numpydoc, put together from the record."""
    summary = _FUNCTIONS[function][1].format(x=first)
    x, *shapes = map(str, record.example)
    law = _LAWS[function].format(
        d=record.name,
        x=", ".join([x, *shapes]),
        x0=x,
        s="".join(f", {v}" for v in shapes),
        s0=", ".join(shapes),
    )
    parameters = (
        [f"{', '.join(filter(None, (first, *record.shapes)))} : array_like"] if first or shapes else []
    )
    parameters += [f"{p} : array_like, default {d}" for p, d in record.parameters]
    about = record.summary[0].lower() + record.summary[1:].rstrip(".")
    return f"""{summary[:-1]}, for the {about}.

Parameters
----------
{chr(10).join(parameters)}
    They broadcast together. Integers count as float64.

Returns
-------
Array
    With the shape to which all broadcast. {_INVALID}

Notes
-----
{record.notes}

Examples
--------
>>> import numpy as np
>>> from functrans.scipy.stats import {record.name}
>>> bool({law})
True
"""

"""`sampler`: the public function of a distribution, from the formula that draws its numbers.

A new distribution is one decorated function: its parameters and their bounds, the formula, a summary and an example.
What all samplers share is said here: key, shape and dtype, checks and messages, the compiled program, the docstring.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core import aval_of, is_float
from ..core.jax_dtypes import default_float
from ..core.values import PyTree, ShapeLike, Value
from ..frontend.checked import checked
from ..frontend.docstrings import with_sections
from ..runtime.records import dataclass
from .arguments import (
    DtypeOf,
    cast,
    compiled,
    float_dtype,
    one_key,
    parameter,
    shape_of_result,
    shape_with,
    words,
)

_SIGNED = inspect.Parameter


@dataclass(frozen=True)
class Real:
    """Real parameters of a distribution, which may be arrays and may be traced.

    Parameters
    ----------
    names : str
        One name, or several with commas between them.
    about : str
        Sentences for the docstring: what they are, and whether they have derivatives.
    low, high, above : float, optional
        Known numbers must be at least `low`, at most `high`, greater than `above`.
    default : float, optional
    computes : bool
        Whether the formula computes in the dtype of the parameter, which is float64 for integers.
    """

    names: str
    about: str
    low: float | None = None
    high: float | None = None
    above: float | None = None
    default: Any = inspect.Parameter.empty
    computes: bool = False

    def operand(self, x: Value, function: str, name: str) -> Value:
        """The parameter of this name, as the formula gets it."""
        value = parameter(x, function, name, low=self.low, high=self.high, above=self.above)
        return cast(value, default_float()) if self.computes and not is_float(aval_of(value).dtype) else value


def sampler(
    *parameters: Real,
    dtype: DtypeOf = float_dtype,
    shape: tuple[int, ...] | None = None,
    sharded: bool = True,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make the public function ``name(key, *parameters, shape, dtype)`` of a formula of this name.

    The formula is ``f(word, *parameters, shape, dtype)``: it draws an array from a 64-bit number, with `stream`. It is
    compiled. Its docstring has a summary and an example; the parameters are put between them.

    Parameters
    ----------
    *parameters : Real
    dtype : DtypeOf
        Which dtypes the numbers may have.
    shape : tuple of int, optional
        The default shape, by default that of the parameters; without parameters ``()``.
    sharded : bool
        Whether it takes `out_sharding`, as JAX's function does.
    """
    default = shape if parameters else ()
    kinds = {name: real for real in parameters for name in real.names.split(", ")}

    def decorated(formula: Callable[..., Any]) -> Callable[..., Any]:
        name = formula.__name__

        def from_key(key: Value, *values: Value, shape: tuple[int, ...], dtype: np.dtype) -> Value:
            return formula(words(key, name), *values, shape, dtype)

        from_key.__name__ = from_key.__qualname__ = f"_{name}"
        run = compiled(from_key)

        def draw(key: Value, *arguments: PyTree, out_sharding: None = None) -> Value:
            *values, shape, to = arguments
            key, to = one_key(key, name), dtype(to, name)
            values = [real.operand(x, name, argument) for x, (argument, real) in zip(values, kinds.items())]
            shape = shape if default is None else shape_of_result(shape, name)
            if kinds:
                shape = shape_with(shape, name, **dict(zip(kinds, values)))
            return run(key, *values, shape=shape, dtype=to)

        signature = _signature(kinds, default, sharded)
        draw.__signature__ = signature  # type: ignore[attr-defined]
        draw.__annotations__ = {p.name: p.annotation for p in signature.parameters.values()} | {
            "return": "Any"
        }
        draw.__module__, draw.__name__, draw.__qualname__ = formula.__module__, name, name
        draw.__doc__ = with_sections(formula.__doc__, _sections(parameters, default, dtype))
        return checked(draw)

    return decorated


def _signature(kinds: dict[str, Real], shape: ShapeLike, sharded: bool) -> inspect.Signature:
    kind = _SIGNED.POSITIONAL_OR_KEYWORD
    listed = [_SIGNED("key", kind, annotation="Any")]
    listed += [_SIGNED(name, kind, default=real.default, annotation="Any") for name, real in kinds.items()]
    listed += [
        _SIGNED(name, kind, default=d, annotation="Any") for name, d in (("shape", shape), ("dtype", None))
    ]
    if sharded:
        listed.append(_SIGNED("out_sharding", _SIGNED.KEYWORD_ONLY, default=None, annotation="None"))
    return inspect.Signature(listed, return_annotation="Any")


def _sections(parameters: tuple[Real, ...], shape: ShapeLike, dtype: DtypeOf) -> str:
    """The parameters, in numpydoc."""
    lines = ["Parameters", "----------", "key : key"]
    for real in parameters:
        lines += [f"{real.names} : array_like", f"    {real.about}"]
    if shape is None:
        single = len(parameters) == 1 and ", " not in parameters[0].names
        whose = f"`{parameters[0].names}`" if single else "the parameters"
        lines += [
            "shape : int or tuple of int, optional",
            f"    By default that of {whose}, which must broadcast to it.",
        ]
    else:
        lines.append("shape : int or tuple of int")
    return "\n".join([*lines, "dtype : dtype-like", f"    {dtype.about}"])

"""Public functions of elementwise operations: NumPy's promotion around a body that computes in one dtype.

`unary`, `binary` and so on make them; `publish` gives them their docstrings.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..arrays.autocast import autocasting
from ..arrays.protocols import is_array_like
from ..core.operators import operators
from ..core.trace import PYTHON_KEYS, Key, Tracer, key_of
from ..core.values import Param, Value
from ..runtime.module_getattr import lazy_import
from ..runtime.unusual import unusual
from .operands import finish, operand
from .promotion import (
    DTYPES,
    RANKS,
    Body,
    Cast,
    Casts,
    Ready,
    has_own_rules,
    make_plan,
    operands_for,
    with_options,
    with_the_name,
)
from .ufunc_examples import EXAMPLES

#: Loads when autocast is first used.
autocast = lazy_import("functrans.primitives.autocast")


def unary(ufunc: np.ufunc, body: Body, summary: str, example: tuple[str, str] | None = None) -> Body:
    """Make a public function of one operand; `body` computes it once the operand has NumPy's dtype.

    Parameters
    ----------
    ufunc : numpy.ufunc
        The ufunc that decides the dtype.
    body : callable
        ``body(x)``, for example the `bind` of a primitive.
    summary : str
        The first line of its docstring.
    example : tuple of str, optional
        The arguments of its example and the printed result, if they do not stand in `ufunc_examples`.
    """
    called = ufunc.__name__
    plans: dict[Key, Cast] = {Ready: None}

    def function(x: Value, /, **options: Param) -> Any:
        if options:
            return with_options(function, ufunc, (x,), options)
        if not isinstance(x, Tracer):
            x = operand(x, called)
        if autocasting.used:
            (x,) = autocast.adjusted(called, x)
        key = x.dtype if type(x) is np.ndarray else key_of(x)
        if DTYPES.ever_changed:
            (key,), (x,) = operands_for(called, (key,), (x,), ufunc=ufunc)
        try:
            cast = plans[key]
        except KeyError:
            cast = plans[key] = make_plan(ufunc, (key,), keep_weak=False)[0]
        try:
            out = body(x if cast is None else cast(x))
        except OverflowError as error:
            raise with_the_name(error, called, x) from None
        return out if isinstance(out, Tracer) and not unusual.narrow else finish(out)

    return publish(function, ufunc, summary, example, 1)


def unary_operator(ufunc: np.ufunc, body: Body) -> Body:
    """Make Python's operator of one operand: like `unary`, but a weak operand gives a weak result."""
    plans: dict[Key, Cast] = {Ready: None}
    called = ufunc.__name__

    def apply(x: Value) -> Value:
        if autocasting.used:
            (x,) = autocast.adjusted(called, x)
        key = key_of(x)
        if DTYPES.ever_changed:
            (key,), (x,) = operands_for(called, (key,), (x,), ufunc=ufunc)
        try:
            cast = plans[key]
        except KeyError:
            cast = plans[key] = make_plan(ufunc, (key,), keep_weak=True)[0]
        return finish(body(x if cast is None else cast(x)))

    return apply


def binary(ufunc: np.ufunc, body: Body, summary: str, example: tuple[str, str] | None = None) -> Body:
    """Make a public function of two operands; see `unary`."""
    called = ufunc.__name__
    plans: dict[tuple[Key, Key], Casts] = {(Ready, Ready): (None, None)}

    def function(x: Value, y: Value, /, **options: Param) -> Any:
        if options:
            return with_options(function, ufunc, (x, y), options)
        if not isinstance(x, Tracer):
            x = operand(x, called, 0)
        if not isinstance(y, Tracer):
            y = operand(y, called, 1)
        if autocasting.used:
            x, y = autocast.adjusted(called, x, y)
        key = (key_of(x), key_of(y))
        if DTYPES.ever_changed or RANKS.ever_changed:
            key, (x, y) = operands_for(called, key, (x, y), ufunc=ufunc)
        try:
            cast_x, cast_y = plans[key]
        except KeyError:
            cast_x, cast_y = plans[key] = make_plan(ufunc, key, keep_weak=False)
        try:
            out = body(x if cast_x is None else cast_x(x), y if cast_y is None else cast_y(y))
        except (ValueError, OverflowError) as error:
            raise with_the_name(error, called, x, y) from None
        return out if isinstance(out, Tracer) and not unusual.narrow else finish(out)

    return publish(function, ufunc, summary, example, 2)


def ternary(ufunc: np.ufunc, body: Body, summary: str, example: tuple[str, str] | None = None) -> Body:
    """Make a public function of three operands; see `unary`."""
    apply = _of_many(ufunc, body)

    def function(x: Value, y: Value, z: Value, /, **options: Param) -> Any:
        return with_options(function, ufunc, (x, y, z), options) if options else apply(x, y, z)

    return publish(function, ufunc, summary, example, 3)


def quaternary(ufunc: np.ufunc, body: Body, summary: str, example: tuple[str, str] | None = None) -> Body:
    """Make a public function of four operands; see `unary`."""
    apply = _of_many(ufunc, body)

    def function(x: Value, y: Value, z: Value, w: Value, /, **options: Param) -> Any:
        return with_options(function, ufunc, (x, y, z, w), options) if options else apply(x, y, z, w)

    return publish(function, ufunc, summary, example, 4)


def _of_many(ufunc: np.ufunc, body: Body) -> Body:
    """`body` of operands in the dtype that the ufunc computes in."""
    plan = lru_cache(maxsize=None)(
        lambda keys: (None,) * len(keys) if Ready in keys else make_plan(ufunc, keys, keep_weak=False)
    )

    def apply(*args: Value) -> Value:
        values: Sequence[Any] = [operand(x, ufunc.__name__, i) for i, x in enumerate(args)]
        if autocasting.used:
            values = autocast.adjusted(ufunc.__name__, *values)
        keys = tuple(map(key_of, values))
        if has_own_rules():
            keys, values = operands_for(ufunc.__name__, keys, values, ufunc=ufunc)
        casts = plan(keys)
        try:
            return finish(body(*[x if cast is None else cast(x) for x, cast in zip(values, casts)]))
        except (ValueError, OverflowError) as error:
            raise with_the_name(error, ufunc.__name__, *values) from None

    return apply


def binary_operator(ufunc: np.ufunc, body: Body) -> Body:
    """Make Python's operator of two operands; it returns NotImplemented if one of them is not an array."""
    plans: dict[tuple[Key, Key], Casts] = {(Ready, Ready): (None, None)}
    called = ufunc.__name__

    def apply(x: Value, y: Value) -> Value:
        if not isinstance(x, Tracer):
            x = operator_operand(x, called, 0)
            if x is NotImplemented:
                return NotImplemented
        if not isinstance(y, Tracer):
            y = operator_operand(y, called, 1)
            if y is NotImplemented:
                return NotImplemented
        if autocasting.used:
            x, y = autocast.adjusted(called, x, y)
        key = (key_of(x), key_of(y))
        if DTYPES.ever_changed or RANKS.ever_changed:
            key, (x, y) = operands_for(called, key, (x, y), ufunc=ufunc)
        try:
            cast_x, cast_y = plans[key]
        except KeyError:
            cast_x, cast_y = plans[key] = make_plan(ufunc, key, keep_weak=True)
        try:
            out = body(x if cast_x is None else cast_x(x), y if cast_y is None else cast_y(y))
        except (ValueError, OverflowError) as error:
            raise with_the_name(error, called, x, y) from None
        return out if isinstance(out, Tracer) and not unusual.narrow else finish(out)

    return apply


def operator_operand(x: Value, name: str, position: int) -> Value:
    """Return an operator's operand as a value; NotImplemented if it is not one, so that Python tries the other.

    As for an ndarray, an object that converts to an array is an operand, unless it has NumPy's mark of one that
    computes by itself: an ``__array_ufunc__``, or an ``__array_priority__`` above that of traced values.
    """
    kind = type(x)
    if kind in PYTHON_KEYS:
        return x
    if isinstance(x, np.ndarray | np.generic | list | tuple) or (is_array_like(x) and not _computes(kind)):
        return operand(x, name, position)
    return NotImplemented


def _computes(kind: type) -> bool:
    if hasattr(kind, "__array_ufunc__"):
        return not hasattr(kind, "__pandas_priority__")  # pandas objects cannot hold traced values
    return getattr(kind, "__array_priority__", 0.0) > Tracer.__array_priority__


_DOC = """{summary}

Parameters
----------
{operands} : array_like
    {shapes}
**options
    ``dtype=`` and ``casting=`` set the dtype to compute in. `out` and `where` are not supported.

Returns
-------
Array
    With the shape and dtype of the result of `{home}.{name}`.

Raises
------
DtypeError
    If `{home}.{name}` does not support these dtypes.{errors}
"""

_EXAMPLE = """
Examples
--------
>>> import functrans as ft
>>> ft.{home}.{name}({arguments})
{printed}
"""

_SHAPE_ERROR = """
ShapeError
    If the shapes do not broadcast together."""


def publish(
    function: Body, ufunc: np.ufunc, summary: str, example: tuple[str, str] | None = None, operands: int = 1
) -> Body:
    """Name and document `function`, and let the ufunc call it for tracers."""
    name = ufunc.__name__
    function.__name__ = function.__qualname__ = name
    home = "numpy" if getattr(np, name, None) is ufunc else "scipy.special"
    function.__module__ = f"functrans.{home}"  # so that pickle can import it
    function.__doc__ = _DOC.format(
        summary=summary,
        name=name,
        home=home,
        operands=", ".join("xyzw"[:operands]),
        shapes="An array of any shape." if operands == 1 else "Arrays whose shapes broadcast together.",
        errors="" if operands == 1 else _SHAPE_ERROR,
    )
    example = example or EXAMPLES.get(name)
    if example:
        arguments, printed = example
        function.__doc__ += _EXAMPLE.format(home=home, name=name, arguments=arguments, printed=printed)
    if home == "numpy":
        operators.ufunc[ufunc] = function
    else:
        register_special(name, function)
    operators.absent.setdefault(name, f": write functrans.{home}.{name}({', '.join('xyzw'[:operands])})")
    return function


def register_special(name: str, function: Body) -> None:
    """Let a ufunc of ``scipy.special`` call a function for tracers, now or when SciPy's module loads."""
    operators.special[name] = function
    module = sys.modules.get("scipy.special")
    if hasattr(module, name):
        operators.ufunc[getattr(module, name)] = function

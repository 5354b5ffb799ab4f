"""Argument checks from annotations: `kind_of` turns one into a check whose error names the argument.

``keepdims: bool`` accepts True and False, ``axis: int | None`` an integer or None, ``fun: Callable`` anything callable.
``Any`` is not checked: arrays, dtypes and shapes are checked where they are used.
"""

from __future__ import annotations

import collections.abc
import inspect
import operator
import types
import typing
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import numpy as np

from .. import errors
from ..core import Tracer, dtype_kind
from ..core.values import ArrayLike, Value
from ..runtime.context import pass_on
from ..runtime.records import dataclass

_NO_VALUE = getattr(np, "_NoValue", None)
_LARGEST = 2**63 - 1


class Unfit(Exception):
    """Raised internally for a value that is not of a kind; never leaves this package."""


@dataclass(frozen=True)
class ArgumentKind:
    """A kind of argument: its description, and a function that converts a value or raises `Unfit`."""

    description: str
    take: Callable[[Any], Any]

    @property
    def is_function(self) -> bool:
        """Whether it accepts a function, possibly among other things."""
        return "a function" in self.description

    def check(self, value: Any, function: str, parameter: str) -> Any:
        """The value, in the form that the function expects.

        Raises
        ------
        ArgumentError
            If it is not of this kind.
        ArgumentValueError
            If it is an integer outside the range of 64 bits.
        TracerBoolConversionError, TracerIntegerConversionError
            If it must be known while tracing, but is traced.
        """
        if value is _NO_VALUE:
            return value
        try:
            return self.take(value)
        except Unfit:
            pass
        where = f"{function}: {parameter}"
        if isinstance(value, Tracer):
            error = errors.TracerBoolConversionError if self is FLAG else errors.TracerIntegerConversionError
            raise error(
                f"{where} must be {self.description} known while tracing, but is a traced value of type {value.aval}. "
                f"Mark the argument static: jit(f, static_argnames={parameter!r})"
            )
        if isinstance(value, int) and abs(value) > _LARGEST:
            raise errors.ArgumentValueError(
                f"{where} must be {self.description}: {value} does not fit into 64 bits"
            )
        actual = f"got {shown(value)} of type {type(value).__name__}"
        if self.is_function:
            raise errors.ArgumentError(f"{function}: expected a function for {parameter}, {actual}")
        if self.description.startswith("one of ") and isinstance(value, str):
            raise errors.ArgumentValueError(f"{where} must be {self.description}, {actual}")
        raise errors.ArgumentError(f"{where} must be {self.description}, {actual}")


def shown(value: Any) -> str:
    """A value as messages show it: short, and an array by its shape."""
    if isinstance(value, np.ndarray) and value.ndim:
        return f"an array of shape {value.shape}"
    try:
        text = repr(value)
    except Exception as error:  # a user's object may raise anything
        pass_on(error)
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 60 else f"{text[:57]}..."


def too_large(value: int, where: str = "") -> errors.IntegerRangeError:
    """The error for a Python integer outside the range of 64 bits."""
    return errors.IntegerRangeError(
        f"{where}the Python integer {shown(value)} does not fit into 64 bits, and functrans has no arrays of objects "
        "(NumPy computes with them). Write a float"
    )


CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe")


def one_of(value: Any, known: Sequence[str], where: str) -> None:
    """Raise if an option is not one of the known ones.

    Raises
    ------
    ArgumentError
        If it is not a string.
    ArgumentValueError
        If it is not one of them.
    """
    listed = ", ".join(map(repr, known))
    if not isinstance(value, str):
        raise errors.ArgumentError(
            f"{where} must be one of {listed}, got {shown(value)} of type {type(value).__name__}"
        )
    if value not in tuple(known):
        raise errors.ArgumentValueError(f"{where} must be one of {listed}, got {value!r}")


# --- single values ------------------------------------------------------------------------------------------


def _flag(x: Any) -> bool:
    """Booleans, 0 and 1; also as arrays without axes, which comparisons return."""
    if isinstance(x, bool | np.bool_) or (
        isinstance(x, np.ndarray) and x.shape == () and x.dtype.kind == "b"
    ):
        return bool(x)
    number = _integer(x)
    if number not in (0, 1):
        raise Unfit
    return bool(number)


def _integer(x: Any) -> int:
    if isinstance(x, Tracer):
        raise Unfit
    try:
        number = operator.index(x)
    except Exception as error:
        pass_on(error)
        raise Unfit from None
    if abs(number) > _LARGEST:
        raise Unfit
    return number


def _place(x: Any) -> int:
    """An integer in a sequence: a shape, axes. True and False are refused."""
    if isinstance(x, bool | np.bool_):
        raise Unfit
    return _integer(x)


def _real(x: ArrayLike) -> Any:
    """Numbers, including arrays without axes and traced values."""
    if isinstance(x, Tracer):
        return x
    if isinstance(x, np.ndarray | np.generic):
        if dtype_kind(x.dtype) not in "biuf" or x.ndim:
            raise Unfit
        return x
    if isinstance(x, complex) or not hasattr(x, "__float__"):
        raise Unfit
    if isinstance(x, int) and abs(x) <= _LARGEST:
        return x
    try:
        return float(x)
    except Exception as error:
        pass_on(error)
        raise Unfit from None


def _nothing(x: Any) -> None:
    if x is not None:
        raise Unfit


def _callable(x: Any) -> Any:
    if not callable(x):
        raise Unfit
    return x


def _instance(*classes: type) -> Callable[[Any], Any]:
    def take(x: Any) -> Any:
        if not isinstance(x, classes):
            raise Unfit
        return x

    return take


def _choice(*known: str) -> ArgumentKind:
    def take(x: Any) -> str:
        if not isinstance(x, str) or x not in known:
            raise Unfit
        return x

    return ArgumentKind(f"one of {', '.join(map(repr, known))}", take)


def _scalar(x: Value) -> Value:
    """A number, possibly traced, or an array without axes."""
    if x is None or isinstance(x, int | float | complex) or (isinstance(x, Tracer) and not x.aval.shape):
        return x
    if isinstance(x, np.ndarray | np.generic) and x.ndim == 0 and dtype_kind(x.dtype) in "biufc":
        return x
    raise Unfit


def _array_like(x: Any) -> Any:
    if x is None or isinstance(x, Tracer) or hasattr(type(x), "__array_function__"):
        return x
    raise Unfit


FLAG = ArgumentKind("True or False", _flag)
_INTEGER = ArgumentKind("an integer", _integer)
_PLACE = ArgumentKind("an integer", _place)
_REAL = ArgumentKind("a real number", _real)
_NOTHING = ArgumentKind("None", _nothing)
_FUNCTION = ArgumentKind("a function", _callable)
_TEXT = ArgumentKind("a string", _instance(str))
_ANYTHING = ArgumentKind("anything", lambda x: x)
_ELEMENTARY: dict[Any, ArgumentKind] = {
    bool: FLAG,
    int: _INTEGER,
    float: _REAL,
    str: _TEXT,
    type: ArgumentKind("a class", _instance(type)),
    None: _NOTHING,
    type(None): _NOTHING,
    Any: _ANYTHING,
    object: _ANYTHING,
}


# --- of several -------------------------------------------------------------------------------------------------


def _sequence(element: ArgumentKind, length: int | None = None) -> ArgumentKind:
    plural = {
        "an integer": "integers",
        "a function": "functions",
        "a string": "strings",
        "a sequence of two integers": "pairs of integers",
        "a sequence of three integers": "triples of integers",
    }.get(element.description)
    count = "" if length is None else {2: "two ", 3: "three "}.get(length, f"{length} ")
    description = f"a sequence of {count}{plural or 'values'}"

    def take(x: Any) -> Any:
        if isinstance(x, str) and element in (_TEXT, _ANYTHING):
            return x
        if isinstance(x, str | bytes | dict) and element is not _ANYTHING:
            raise Unfit
        rows = isinstance(x, Tracer) and x.aval.ndim > 0 and element is _ANYTHING
        if isinstance(x, Tracer) and not rows:
            raise Unfit
        if (isinstance(x, np.ndarray) and x.ndim == 0) or not _iterable(x):
            raise Unfit
        if element is _ANYTHING and length is None:
            return x
        if isinstance(x, collections.abc.Iterator):
            x = tuple(x)
        if length is not None and len(x) != length:
            raise Unfit
        if element is _ANYTHING or any(isinstance(part, Tracer) for part in x):
            return x  # the function itself rejects traced sizes if necessary
        return tuple([element.take(part) for part in x])

    return ArgumentKind(description, take)


def _iterable(x: Any) -> bool:
    try:
        iter(x)
    except Exception as error:
        pass_on(error)
        return False
    return True


def _union(kinds: list[ArgumentKind]) -> ArgumentKind:
    if any(kind is _ANYTHING for kind in kinds):
        return _ANYTHING
    words = [kind.description for kind in kinds]
    description = " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)

    def take(x: Any) -> Any:
        for kind in kinds:
            try:
                return kind.take(x)
            except Unfit:
                pass
        raise Unfit

    return ArgumentKind(description, take)


def kind_of(hint: Any) -> ArgumentKind | None:
    """The check for an annotation; None if it allows everything.

    Parameters
    ----------
    hint : object
        The annotation evaluated: ``bool``, ``int | None``, ``Callable[..., Any]``, ``Sequence[int]``, a class.

    Examples
    --------
    >>> kind_of(int | None).description
    'an integer or None'
    >>> kind_of(bool).check("no", "sum", "keepdims")
    Traceback (most recent call last):
    ...
    functrans.errors.ArgumentError: sum: keepdims must be True or False, got 'no' of type str...
    """
    kind = _kind(hint)
    return None if kind is _ANYTHING else kind


def _kind(hint: Any) -> ArgumentKind:
    try:
        kind = _ELEMENTARY.get(hint)
    except TypeError:
        return _ANYTHING
    if kind is not None:
        return kind
    if isinstance(hint, typing.TypeVar):
        return _kind(hint.__bound__) if hint.__bound__ is not None else _ANYTHING
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return parts[1] if isinstance(parts[1], ArgumentKind) else _kind(parts[0])
    if origin is typing.Literal:
        return _choice(*parts)
    if origin in (types.UnionType, typing.Union):
        return _union([_kind(part) for part in parts])
    if origin is collections.abc.Callable or hint is collections.abc.Callable:
        return _FUNCTION
    if origin in (collections.abc.Sequence, collections.abc.Iterable):
        return _sequence(_PLACE if parts[0] is int else _kind(parts[0]))
    if origin is tuple:
        if parts[-1] is Ellipsis:
            return _sequence(_PLACE if parts[0] is int else _kind(parts[0]))
        same = _kind(parts[0]) if len(set(parts)) == 1 else _ANYTHING
        return _sequence(same, len(parts))
    if origin is None and isinstance(hint, type) and not getattr(hint, "_is_protocol", False):
        article = "an" if hint.__name__[0] in "AEIOU" else "a"
        return ArgumentKind(f"{article} {hint.__name__}", _instance(hint))
    return _ANYTHING


#: Annotations with the same meaning in many functions.
Order = Annotated[str, _choice("C", "F", "A", "K")]
Casting = Annotated[str, _choice(*CASTINGS)]
Scalar = Annotated[Any, ArgumentKind("a number or None", _scalar)]
Like = Annotated[Any, ArgumentKind("an array or None", _array_like)]
Device = Annotated[Any, _union([_choice("cpu"), _NOTHING])]


# --- parameters of users' functions -------------------------------------------------------------------------------

POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Parameters:
    """The parameters of a user's function; for a ufunc, its operands.

    Parameters
    ----------
    fun : callable
    skip : int
        How many leading positional parameters to leave out.

    Attributes
    ----------
    signature : inspect.Signature or None
        None for a builtin without a signature.
    names : list of str
        The names of the positional parameters.
    variadic : bool
        Whether there may be more positional arguments.
    """

    __slots__ = ("names", "signature", "variadic")

    def __init__(self, fun: Callable[..., Any], skip: int = 0):
        self.signature = _signature_of(fun)
        kinds = () if self.signature is None else tuple(self.signature.parameters.values())
        if skip and kinds and kinds[0].kind in POSITIONAL:
            kinds = kinds[skip:]
            assert self.signature is not None
            self.signature = self.signature.replace(parameters=kinds)
        self.names = [p.name for p in kinds if p.kind in POSITIONAL]
        self.variadic = self.signature is None or any(p.kind is p.VAR_POSITIONAL for p in kinds)

    def place(self, position: int) -> str:
        """The name of an argument in messages: ``argument 1 ('w')``."""
        name = f" ('{self.names[position]}')" if position < len(self.names) else ""
        return f"argument {position}{name}"

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> inspect.BoundArguments:
        """The arguments by parameter, with defaults. Raises `TypeError` if they do not match the signature."""
        bound = (self.signature or _UNKNOWN).bind(*args, **kwargs)
        bound.apply_defaults()
        return bound


_UNKNOWN = inspect.Signature([inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL)])


def _signature_of(fun: Callable[..., Any]) -> inspect.Signature | None:
    if isinstance(fun, np.ufunc):  # some of its keywords exclude each other
        names = ["x"] if fun.nin == 1 else [f"x{i + 1}" for i in range(fun.nin)]
        return inspect.Signature([inspect.Parameter(name, POSITIONAL[0]) for name in names])
    try:
        return inspect.signature(fun)
    except (TypeError, ValueError):
        return None

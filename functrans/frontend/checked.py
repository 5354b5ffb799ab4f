"""`checked`: make a public function check its arguments against its signature.

The check is a front function with the same signature. It is generated at the first call: generating hundreds of them
would take a quarter of the import time. An argument that has its default value costs one comparison, any other one
call. Errors raised inside without naming an argument get an explanation.
"""

from __future__ import annotations

import functools
import inspect
import re
import typing
from collections.abc import Callable, Sequence
from types import CellType, CodeType, FunctionType, TracebackType
from typing import Any, TypeVar, cast

import numpy as np

from .. import errors
from ..arrays.arguments import FLAG, kind_of, shown, too_large
from ..arrays.autocast import ambient, autocasting, without
from ..core import KEY, Tracer, is_internal, new_rlock, refused_keys, show_users_frames
from ..core.values import ArrayLike, PyTree
from ..runtime.module_getattr import lazy_import

#: Loads at the first call.
jax_keywords = lazy_import("functrans.arrays.jax_keywords")
#: Loads when autocast is first used.
autocast = lazy_import("functrans.primitives.autocast")

F = TypeVar("F", bound=Callable[..., Any])
_Parameter = inspect.Parameter
#: Errors that pass unchanged: the last two arise only if the user asks NumPy or Python for them.
_PASSING = (errors.FunctransError, AssertionError, NotImplementedError, FloatingPointError, Warning)


def checked(function: F) -> F:
    """The function with argument checks: a typed error for each argument that its annotation does not allow.

    Parameters
    ----------
    function : callable
        An annotated function. ``Any`` allows everything.

    Returns
    -------
    callable
        The front, with the same signature, name and docstring.

    Examples
    --------
    >>> @checked
    ... def doubled(x: float, twice: bool = False) -> float:
    ...     return 4 * x if twice else 2 * x
    >>> doubled(1.0, True)
    4.0
    >>> doubled(1.0, twice="yes")
    Traceback (most recent call last):
    ...
    functrans.errors.ArgumentError: doubled: twice must be True or False, got 'yes' of type str...
    """
    return cast(F, functools.update_wrapper(_Front(function).front, function))


def _unwritten() -> CodeType:
    """The initial code of a front, which generates the real code when called."""
    _front: Any = None

    def front(*arguments: PyTree, **named: Any) -> Any:
        try:
            return _front.first_call(*arguments, **named)
        except Exception as error:
            _front.show_users_frames(error)
            raise

    return front.__code__


_UNWRITTEN = _unwritten()
_writing = new_rlock()


class _Front:
    """The data of a front, which holds this object in its only cell.

    The front remains one function object, since modules and users hold it: only its code is replaced.
    """

    __slots__ = ("casts", "dtype_at", "front", "function", "functions", "name", "operands", "parts")

    def __init__(self, function: Callable[..., PyTree]):
        self.function, self.name = function, _name(function)
        self.functions: list[str] = []
        #: Whether it is an operation, to which autocast applies, and how many of its first arguments are operands.
        self.casts, self.operands = _is_operation(function), 0
        #: The position of the argument `dtype`.
        self.dtype_at: int | None = None
        self.parts: tuple[Any, ...] = ()
        #: Its globals are those of the module, where doctests look for it.
        self.front = FunctionType(
            _UNWRITTEN, function.__globals__, function.__name__, None, (CellType(self),)
        )

    def first_call(self, *arguments: PyTree, **named: Any) -> Any:
        """Generate the front and call it."""
        with _writing:
            if self.front.__code__ is _UNWRITTEN:
                self._write()
        return self.front(*arguments, **named)

    def _write(self) -> None:
        parameters = list(inspect.signature(self.function).parameters.values())
        self.operands = sum(p.default is _Parameter.empty for p in parameters)
        positions = [
            i for i, p in enumerate(parameters) if p.name == "dtype" and p.kind is not p.KEYWORD_ONLY
        ]
        self.dtype_at = positions[0] if positions else None
        parts, lines = self._checks(parameters)
        further = jax_keywords.keywords_of(self.function)
        for name, kind in further.items():
            parts[f"_check_{name}"] = functools.partial(_check, kind.check, self.name, name)
            lines.append(f"if {name} is not None: _check_{name}({name})")
        self.parts = tuple(parts.values())
        written = _written(parameters, list(further), list(parts), lines, self.function, self.casts)
        self.front.__defaults__, self.front.__kwdefaults__ = written.__defaults__, written.__kwdefaults__
        self.front.__code__ = written.__code__  # last: until then, other threads enter `first_call`

    def _checks(self, parameters: list[inspect.Parameter]) -> tuple[dict[str, Any], list[str]]:
        """The function and the checks by name, and the lines of code that check."""
        hints = typing.get_type_hints(self.function, include_extras=True)
        parts: dict[str, Any] = {"_inner": self.function}
        if self.casts:
            parts["_autocasting"] = autocasting
        lines: list[str] = []
        for p in parameters:
            kind = jax_keywords.DEVICE if p.name == "out_sharding" else kind_of(hints.get(p.name, Any))
            if p.name == "where" and p.default is True:
                lines.append("if where is None: where = True")
            if kind is None or p.kind is _Parameter.VAR_KEYWORD:
                continue
            if p.name == "out" and p.default is None:
                parts["_refuse_out"] = functools.partial(refuse_out, self.name)
                lines.append("if out is not None: _refuse_out(out)")
                continue
            if kind.is_function:
                self.functions.append(p.name)
            parts[f"_check_{p.name}"] = functools.partial(_check, kind.check, self.name, p.name)
            if p.kind is _Parameter.VAR_POSITIONAL:
                lines.append(f"{p.name} = [_check_{p.name}(x) for x in {p.name}]")
                continue
            if kind is FLAG:
                condition = f"if {p.name} is not True and {p.name} is not False: "
            elif p.default is not _Parameter.empty:
                parts[f"_default_{p.name}"] = p.default
                condition = f"if {p.name} is not _default_{p.name}: "
            else:
                condition = ""
            lines.append(f"{condition}{p.name} = _check_{p.name}({p.name})")
        return parts, lines

    def explain(self, error: Exception, arguments: dict[str, Any]) -> None:
        """Raise a typed error that shows the arguments, if this error arose inside and shows none.

        Errors of the user's own functions, called inside, pass unchanged.
        """
        if isinstance(error, _PASSING) or not _inside(error.__traceback__):
            return
        if any(callable(arguments[p]) and not hasattr(arguments[p], "__code__") for p in self.functions):
            return  # a user's function written in C leaves no frame
        for parameter, value in arguments.items():
            _refuse_large(self.name, parameter, value, error)
        if any(_holds_keys(value) for value in arguments.values()):
            raise refused_keys(self.name) from error
        listed = ", ".join(
            f"{parameter}={_described(value)}" for parameter, value in arguments.items() if _given(value)
        )
        message = (
            f"{self.name}: {self._miscalled(error, arguments)}{_sentence(error)}. It was called with {listed}"
        )
        raise _class_for(error)(message) from error

    def _miscalled(self, error: Exception, arguments: dict[str, Any]) -> str:
        """Which function of the user's does not take the arguments that it is called with."""
        text = str(error)
        if isinstance(error, TypeError) and " argument" in text:
            called = [
                p for p, f in arguments.items() if text.startswith(f"{getattr(f, '__qualname__', None)}() ")
            ]
            return f"{' or '.join(called)} takes other arguments than it is called with: " if called else ""
        return ""

    def under_autocast(self, *args: PyTree, **keywords: Any) -> Any:
        """Call the function with what autocast makes of its arguments, and autocast off inside.

        What calls functions of the user's is no operation: its arguments and its inside are as they are.
        """
        if ambient() is None or any(map(_calls, (*args, *keywords.values()))):
            return self.function(*args, **keywords)
        if self._has_dtype(args, keywords):
            return without(self.function, *args, **keywords)
        name = self.name.removeprefix("lax.")
        cast, keywords = autocast.adjusted_arguments(name, args, self.operands, keywords)
        return without(self.function, *cast, **keywords)

    def _has_dtype(self, args: Sequence[Any], keywords: dict[str, Any]) -> bool:
        """Whether the call says which dtype to compute in."""
        at = self.dtype_at
        if at is not None and len(args) > at and args[at] is not None:
            return True
        return any(keywords.get(name) is not None for name in ("dtype", "preferred_element_type"))

    def show_users_frames(self, error: Exception) -> None:
        """Call `tracebacks.show_users_frames`."""
        show_users_frames(error)


def _name(function: Callable[..., PyTree]) -> str:
    """The name of the function in messages; for a method that creates an instance, its class."""
    if function.__name__ in ("__init__", "__new__"):
        return function.__qualname__.split(".")[-2]
    if function.__module__ == "functrans.scipy.stats":
        return function.__qualname__  # norm.logpdf
    return f"lax.{function.__name__}" if ".lax." in function.__module__ else function.__name__


#: Where operations are. Other functions transform functions, or work on pytrees.
_OPERATIONS = re.compile(r"functrans\.(numpy|scipy|lax|nn|ops|image)\b(?!\.custom_ufuncs)")


def _is_operation(function: Callable[..., PyTree]) -> bool:
    return _OPERATIONS.match(function.__module__) is not None and function.__name__ != "__init__"


def _calls(x: Any) -> bool:
    """Whether an argument is, or contains, a function."""
    if type(x) in (list, tuple):
        return any(map(_calls, x))
    return callable(x) and not isinstance(x, type)


def refuse_out(name: str, out: ArrayLike) -> None:
    """Raise if the caller passed an array to write into."""
    if out is not None:
        raise errors.ImmutableArrayError(
            f"{name}(..., out=x): functrans does not write into arrays. Use the returned value"
        )


def _check(check: Callable[[Any, str, str], Any], function: str, parameter: str, value: Any) -> Any:
    return check(value, function, parameter)


def _written(
    parameters: list[inspect.Parameter],
    further: list[str],
    parts: list[str],
    lines: list[str],
    function: Callable[..., PyTree],
    casts: bool,
) -> FunctionType:
    """The function with the same signature, and `further` keywords, whose code and defaults the front takes over."""
    header, call, shown, previous = [], [], [], None
    for p in parameters:
        default = "" if p.default is _Parameter.empty else f"=_defaults[{p.name!r}]"
        if previous is _Parameter.POSITIONAL_ONLY and p.kind is not previous:
            header.append("/")
        if p.kind is _Parameter.KEYWORD_ONLY and previous not in (
            _Parameter.KEYWORD_ONLY,
            _Parameter.VAR_POSITIONAL,
        ):
            header.append("*")
        star = (
            "*" if p.kind is _Parameter.VAR_POSITIONAL else "**" if p.kind is _Parameter.VAR_KEYWORD else ""
        )
        header.append(f"{star}{p.name}{default}")
        call.append(f"{p.name}={p.name}" if p.kind is _Parameter.KEYWORD_ONLY else f"{star}{p.name}")
        shown.append(f"{p.name!r}: {p.name}")
        previous = p.kind
    if previous is _Parameter.POSITIONAL_ONLY:
        header.append("/")
    if further:
        last = len(header) - (previous is _Parameter.VAR_KEYWORD)
        divider = [] if any(part.startswith("*") for part in header[:last]) else ["*"]
        header[last:last] = [*divider, *(f"{name}=None" for name in further)]
    body = [
        f"{', '.join(parts)}, = _front.parts",
        "try:",
        *[f"    {line}" for line in lines],
        "    try:",
        *[f"        if _autocasting.used: return _front.under_autocast({', '.join(call)})"] * casts,
        f"        return _inner({', '.join(call)})",
        "    except Exception as error:",
        f"        _front.explain(error, {{{', '.join(shown)}}})",
        "        raise",
        "except Exception as error:",
        "    _front.show_users_frames(error)",
        "    raise",
    ]
    source = [
        "def _make(_defaults, _front):",
        f"    def {function.__name__}({', '.join(header)}):",
        *[f"        {line}" for line in body],
        f"    return {function.__name__}",
    ]
    namespace: dict[str, Any] = {}
    code = compile("\n".join(source), f"<functrans arguments of {function.__name__}>", "exec")
    exec(code, {}, namespace)
    return cast(FunctionType, namespace["_make"]({p.name: p.default for p in parameters}, None))


# --- errors without a name ----------------------------------------------------------------------------------


def _class_for(error: Exception) -> type[errors.FunctransError]:
    """The typed error that the same ``except`` clauses catch."""
    if isinstance(error, MemoryError) or any(text in str(error) for text in _TOO_LARGE):
        return errors.ArrayTooLargeError
    if isinstance(error, OverflowError):
        return errors.IntegerRangeError
    if isinstance(error, np.exceptions.AxisError):
        return errors.AxisError
    if isinstance(error, IndexError):
        return errors.InvalidIndexError
    if isinstance(error, np.linalg.LinAlgError):
        return errors.LinAlgError
    if isinstance(error, ValueError | ArithmeticError | LookupError | RuntimeError):
        return errors.ArgumentValueError
    return errors.ArgumentError


_TOO_LARGE = ("array is too big", "Maximum allowed size", "Maximum allowed dimension", "Unable to allocate")


def _inside(trace: TracebackType | None) -> bool:
    """Whether all frames below the one that caught the error belong to functrans, NumPy and SciPy."""
    trace = trace.tb_next if trace is not None else None
    while trace is not None:
        if not is_internal(trace.tb_frame.f_code):
            return False
        trace = trace.tb_next
    return True


def _refuse_large(name: str, parameter: str, value: Any, error: Exception) -> None:
    if type(value) in (list, tuple):
        for part in value:
            _refuse_large(name, parameter, part, error)
    elif type(value) is int and not -(2**63) <= value < 2**64:
        raise too_large(value, f"{name}: {parameter}: ") from error


def _holds_keys(value: Any) -> bool:
    if type(value) in (list, tuple):
        return any(map(_holds_keys, value))
    return getattr(value, "dtype", None) == KEY if isinstance(value, np.ndarray | Tracer) else False


def _given(value: Any) -> bool:
    if type(value) is object:  # stands for an argument that is absent
        return False
    return not (value is None or value is False or (type(value) in (tuple, dict) and not value))


def _described(value: Any) -> str:
    if isinstance(value, Tracer):
        return str(value.aval)
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}" if value.ndim else shown(value)
    if isinstance(value, FunctionType):
        return value.__name__
    return shown(value)


def _sentence(error: Exception) -> str:
    text = str(error).strip().split("\n")[0].rstrip(".")
    if isinstance(error, KeyError | AttributeError) or not text:
        return f"{type(error).__name__}: {text}"
    return text

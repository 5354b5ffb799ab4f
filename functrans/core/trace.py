"""The current trace, and the tracers that stand for arrays in it.

Every primitive that is bound goes to one interpreter: the *current trace*, a context variable (so each thread,
and each level of nesting, has a different one). An interpreter handles the tracers that it made, and passes everything
else to its parent; the outermost, `EvalTrace`, computes with NumPy.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import partial
from types import CellType
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np
from numpy import ndarray  # a global name: `EvalTrace` looks it up for each operand

from .. import errors
from ..runtime.config import Config, config
from ..runtime.float_warnings import at_users_line, watch_warnings
from ..runtime.module_getattr import nearest_names
from ..runtime.portable import Unportable, refuse_numba
from ..runtime.unusual import unusual
from .aval import PYTHON_NUMBERS, Typed, aval_of
from .conversions import Conversions, last_refusal, refused
from .debug_nans import check_results, looks_for_faults
from .dtypes import dtype_kind
from .operators import OperatorMethods, operators
from .values import ArrayLike, Index, Param, Params, Value

if TYPE_CHECKING:
    from .attachment import Attachment
    from .dtypes import Consumer
    from .primitive_record import PrimitiveRecord


class Trace:
    """An interpreter of primitives. Subclasses set `parent` and write `process`."""

    __slots__ = ("__weakref__", "parent")

    parent: Trace
    #: Whether what is bound becomes part of a program, instead of being computed.
    stages = False

    def process(self, prim: Any, args: tuple[Any, ...], params: Params) -> Any:
        """Apply `prim`, a `Primitive`, to values, some of which may be tracers of this trace."""
        raise NotImplementedError

    def knows(self, tracer: Tracer) -> bool:
        """Whether this trace can handle a tracer."""
        return tracer._trace is self

    def stands_for(self, tracer: Tracer) -> Any:
        """The value of a tracer that a user's function captured, while it runs later; otherwise None."""
        return None

    def attach(self, attachment: Attachment) -> bool:
        """Note a hook on values that exist already; false if nothing differentiates them, or may do so later."""
        return self.parent.attach(attachment)


class EvalTrace(Trace):
    """Compute with NumPy. Ends every chain of parents."""

    __slots__ = ()

    def process(self, prim: PrimitiveRecord, args: tuple[Value, ...], params: Params) -> Any:
        weak = prim.weak
        for a in args:
            kind = type(a)
            if kind is ndarray:
                weak = False
            elif kind not in PYTHON_NUMBERS:
                weak = False
                if isinstance(a, Tracer):
                    raise leaked(a)
        try:
            impl = prim.impl_for(args) if unusual.used else prim.impl
            out = impl(*args, **params)
        except MemoryError as error:
            if isinstance(error, errors.FunctransError) or prim.effects(**params):
                raise
            raise errors.ArrayTooLargeError(f"{prim.name}: {error}") from None
        except (TypeError, ValueError) as error:
            if not isinstance(error, errors.FunctransError) and not prim.effects(**params).on_host:
                # It raises what tracing raises, if it refuses the operands.
                prim.abstract(*map(aval_of, args), **params)
            raise
        except RuntimeWarning as warning:
            if prim.effects(**params).on_host:
                raise
            out = at_users_line(warning, impl, args, params)
        if weak and args:
            out = out.item()
        if (_debug_nans.ever_changed or _debug_infs.ever_changed) and looks_for_faults():
            check_results(prim, params, args, out)
        return out

    def attach(self, attachment: Attachment) -> bool:
        """Nothing is differentiated here."""
        return False


_debug_nans, _debug_infs = Config.debug_nans, Config.debug_infs
#: What promotion depends on: a dtype, or for weak values the Python type ``int``, ``float`` or ``complex``.
Key: TypeAlias = Any
#: Promotion keys: Python types for Python's numbers, and for weak dtypes by their kind.
PYTHON_KEYS: dict[type, Any] = {int: int, float: float, complex: complex, bool: np.dtype(bool)}
WEAK_KEYS: dict[str, type] = {"i": int, "f": float, "c": complex}
eval_trace = EvalTrace()
current_trace: ContextVar[Trace] = ContextVar("functrans_trace", default=eval_trace)


def key_of(x: Value) -> Key:
    """Return the `Key` of a value that interpreters pass on."""
    key = PYTHON_KEYS.get(type(x))
    if key is not None:
        return key
    return x.key() if isinstance(x, Tracer) else x.dtype


def is_staged() -> bool:
    """Whether operations bound now become part of a program."""
    trace = current_trace.get()
    while trace is not eval_trace:
        if trace.stages:
            return True
        trace = trace.parent
    return False


def tracing(trace: Trace, f: Callable[..., Any], *args: Any) -> Any:
    """``f(*args)`` with `trace` as the current trace."""
    outer = current_trace.get()
    watch_warnings()
    try:  # as in `run_with`
        current_trace.set(trace)
        return f(*args)
    except errors.FunctransError:
        raise
    except Exception as error:
        refusal = last_refusal.get()
        if refusal is not None and refusal[3] is not None and refusal[3].is_in(error.__traceback__):
            raise refused(*refusal) from error
        raise
    finally:
        current_trace.set(outer)


def depends_on(x: Value) -> str:
    """The arguments of the user's functions on which a traced value depends, in words; empty if they are not known."""
    names = x.origins() if isinstance(x, Tracer) else None
    if names is None:
        return ""
    if not names:
        return "it depends on no argument: while tracing, functions of functrans are traced; use NumPy for constants"
    listed = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
    return f"it depends on {listed}"


def because(x: Any) -> str:
    """The same in brackets, to add to a message."""
    depends = depends_on(x)
    return f" ({depends})" if depends else ""


def leaked(tracer: Tracer) -> errors.FunctransError:
    """The error for a tracer that outlived its trace, or was donated."""
    if tracer.consumer is not None:
        return tracer.consumer.error()
    return errors.UnexpectedTracerError(
        f"a traced value of type {tracer.aval} was used after the function it was traced in had returned "
        f"(a leak from {tracer.describe()}). Return the value from that function instead of storing it in a global, "
        "a list or an attribute"
    )


#: How many arguments a message names.
_NAMED = 4
_leaks = Config.check_tracer_leaks


def refuse_leaks(trace: Trace, *known: Any) -> None:
    """With ``config.check_tracer_leaks``, raise if a tracer outlives its trace, besides those in `known`."""
    if not (_leaks.ever_changed and config.check_tracer_leaks):
        return
    gc.collect()
    expected = {id(x) for group in known for x in group}
    for x in gc.get_objects():
        if issubclass(type(x), Tracer) and getattr(x, "_trace", None) is trace and id(x) not in expected:
            holders = [
                type(h).__name__ for h in gc.get_referrers(x) if type(h) in (list, dict, set, CellType)
            ]
            held = f", held by a {holders[-1]}" if holders else ""
            raise errors.UnexpectedTracerError(
                f"a traced value of type {x.aval} (traced by {x.describe()}) outlives the function it was traced in"
                f"{held}. Return it from that function instead of storing it in a global, a list or an attribute"
            )


def consume(tracer: Tracer, consumer: Consumer) -> None:
    """Donate a traced value: no trace knows it any more."""
    kind = type(tracer)
    object.__setattr__(
        tracer, "__class__", type(kind.__name__, (kind,), {"__slots__": (), "consumer": consumer})
    )


#: Attributes of tracers themselves, besides `Operators.property` and `Operators.method`.
_ARRAY_ATTRIBUTES = ("at", "dtype", "ndim", "shape", "size")


class Tracer(Typed, Conversions, OperatorMethods, Unportable):
    """A value in a trace: it has a shape and a dtype, and behaves like an immutable ndarray."""

    __slots__ = ("__weakref__", "_trace")
    _instead = "Return it from the function that is being transformed, and pickle the result"
    __array_priority__ = 1000.0
    #: Above a DataFrame's: pandas leaves operators with a traced value to the traced value.
    __pandas_priority__ = 5000
    _trace: Trace
    #: Whether it is a tangent known only by its position on a tape.
    is_symbolic = False
    #: Whether a number taken from it would lose a derivative.
    differentiated = True
    #: How an argument is passed so that its number is known.
    static = "mark the argument static (`jit(f, static_argnums=...)`)"
    #: What it was donated to.
    consumer: Consumer | None = None

    def concrete(self) -> Any:
        """The tracer's value if it is known (eager differentiation), else None."""
        return None

    def known(self) -> Value | None:
        """As `concrete`; also the value of one that a rule or a hook captured, while that runs."""
        value = self.stand_in()
        return self.concrete() if value is None else concrete(value)

    def stand_in(self) -> Any:
        """What stands for a tracer that a rule or a hook captured, while that runs; otherwise None."""
        trace = current_trace.get()
        while trace is not eval_trace:
            value = trace.stands_for(self)
            if value is not None:
                return value
            trace = trace.parent
        return None

    def handed(self) -> Value:
        """What a user's function receives for the value."""
        return self

    @property
    def _numba_type_(self) -> NoReturn:
        """Numba asks for it when a jitted function is called on the tracer."""
        refuse_numba(self._not_compiled)

    def _not_compiled(self) -> errors.NumbaTranslationError:
        return errors.NumbaTranslationError(
            f"a function compiled by Numba was called on a traced value of type {self.aval}. Wrap it: "
            "functrans.numba_call(f), or decorate it with functrans.njit instead of numba.njit"
        )

    def describe(self) -> str:
        """The name of the transformation that made the tracer, for messages."""
        return type(self._trace).__name__

    def history(self) -> str:
        """The transformation that made it, and the arguments on which it depends."""
        depends = depends_on(self)
        return f"traced by {self.describe()}{'; ' * bool(depends)}{depends}"

    def origins(self) -> list[str] | None:
        """The names of the user's arguments on which the value depends, for messages; None if they are not known."""
        return None

    @property
    def weak_type(self) -> bool:
        """Whether the dtype came from a Python scalar, and so yields to an array's."""
        return self.aval.weak

    def key(self) -> Key:
        """The promotion key: the dtype, or the Python type if weak."""
        aval = self.aval
        return WEAK_KEYS[dtype_kind(aval.dtype)] if aval.weak else aval.dtype

    def __setitem__(self, index: Index, value: Any) -> None:
        raise errors.ImmutableArrayError(
            "a traced value cannot be changed in place: write `x = x.at[i].set(v)` (or .add, .multiply, .min, .max)"
        )

    def __len__(self) -> int:
        if not self.aval.shape:
            raise TypeError("len() of unsized object")
        return self.aval.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.aval.shape:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(self.aval.shape[0]))

    def __contains__(self, value: object) -> bool:
        return operators.operator["contains"](self, value)

    def __hash__(self) -> int:
        raise TypeError(f"unhashable type: a traced array ({self.aval})")

    def _called(self) -> str:
        return f"a traced value of type {self.aval} (traced by {self.describe()})"

    def __repr__(self) -> str:
        value = self.known()
        kind = f"Traced<{self.aval}> by {self.describe()}"
        return kind if value is None else f"{kind}: {value}"

    def __format__(self, spec: str) -> str:
        value = self.known()
        return repr(self) if value is None else format(value, spec)

    # --- NumPy's protocols ----------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *args: Any, **kwargs: Param) -> Value:
        implementation = operators.ufunc.get(ufunc)
        if implementation is None:
            missing = operators.function.get(NotImplemented)
            if missing is not None:
                missing(ufunc, args, kwargs)
            raise errors.NoRuleError(
                f"np.{ufunc.__name__} of a traced value of type {self.aval}: functrans has no such function"
            )
        if method == "__call__":
            return implementation(*args, **kwargs)
        return operators.function[np.ufunc](implementation, ufunc, method, *args, **kwargs)

    def __array_function__(self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        implementation = operators.function.get(func)
        if implementation is None:
            return operators.function[NotImplemented](func, args, kwargs)
        return implementation(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        attribute = operators.attribute.get(name)
        if attribute is not None:
            return attribute.fget(self) if type(attribute) is property else partial(attribute, self)  # type: ignore[misc]
        if name.startswith("__"):  # protocols look these up often: users never see the error
            raise AttributeError(name)
        known = {*operators.attribute, *_ARRAY_ATTRIBUTES}
        close = nearest_names(name, known)
        hint = operators.absent.get(name) or (f". Nearest: {', '.join(close)}" if close else "")
        raise errors.NoAttributeError(f"a traced array has no attribute '{name}'{hint}")


def concrete(x: ArrayLike) -> Any:
    """The known numbers of a value; None while tracing without them."""
    return x.known() if isinstance(x, Tracer) else x


def is_abstract(x: Value | None) -> bool:
    """Whether the numbers of a value are unknown."""
    return isinstance(x, Tracer) and x.known() is None

"""Where Python wants the number of a traced value: ``if x``, ``float(x)``, ``range(x)``, ``np.asarray(x)``.

It is known while differentiating eagerly, and to functions that run later on what they captured. Otherwise an error
says what to write instead.
"""

from __future__ import annotations

import builtins
import operator
import sys
import weakref
from contextvars import ContextVar
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import errors
from ..errors.source import Source
from ..runtime.explicit_float import asker, called, is_explicit, is_users
from ..runtime.module_getattr import counterpart
from .operators import asked_to_join, operators, traced_row
from .values import DTypeLike

if TYPE_CHECKING:
    from .aval import Aval

#: Rebuilds the last error raised for a tracer whose number was needed: compiled code may replace the error by another.
last_refusal: ContextVar[tuple[Any, ...] | None] = ContextVar("functrans_refusal", default=None)


def refused(
    error: type[errors.ConcretizationTypeError],
    message: str,
    trace: weakref.ref[Any],
    source: Source | None = None,
) -> errors.ConcretizationTypeError:
    """The error for a tracer whose number was needed. It stores how to rebuild the error, not its traceback."""
    refusal = error(message, source)
    refusal.trace = trace
    last_refusal.set((error, message, trace, refusal.source))
    return refusal


#: Packages whose functions convert their arguments to arrays.
_CONVERTERS = ("numpy", "scipy", "pandas")
_SCALAR_CURE = (
    "Use functions of functrans.numpy instead of float(), the math module or C code, `.astype` to change the dtype, "
    "`x = x.at[i].set(v)` instead of `x[i] = v` to write it into an array, a `functrans.pure_callback` or a "
    "`functrans.Function` with `host = True` for code that needs numbers"
)
_ARRAY_CURE = (
    "Build arrays with `functrans.numpy.stack`/`asarray` instead of `np.array`, write into them with "
    "`x.at[i].set(v)` instead of `x[i] = v`, index a NumPy array `X` as `functrans.numpy.asarray(X)[i]`, and call "
    "functions of functrans instead of those of other libraries. Code that needs numbers runs in a "
    "`functrans.pure_callback`, or in a `functrans.Function` with `host = True`"
)


def _cure(taker: str) -> str:
    """What to write instead of a function that needs a number."""
    module, _, name = taker.rpartition(".")
    if module in ("math", "cmath") and hasattr(np, name):
        return f"Write functrans.numpy.{name}"
    return operators.converting.get(taker) or counterpart(taker) or _SCALAR_CURE


#: What chooses in Python, and does the same for each element in functrans.numpy.
_CHOOSERS = {
    "max": "maximum(a, b)",
    "min": "minimum(a, b)",
    "sorted": "sort(x)",
    "any": "any(x)",
    "all": "all(x)",
}


def _chooser(frame: FrameType) -> str:
    """What to write instead of a choice that Python makes, in this frame."""
    name = getattr(called(frame), "__name__", "") if is_users(frame.f_code) else ""
    if name in _CHOOSERS and getattr(builtins, name) is called(frame):
        return f"Write functrans.numpy.{_CHOOSERS[name]} instead of Python's {name}"
    return (
        "Choose with `where(condition, a, b)`, or with `lax.cond(condition, f, g, *operands)` if only one side may "
        "run; combine conditions with & | ~; loop with `lax.while_loop`"
    )


class Conversions:
    """The methods of a traced value by which Python, NumPy and others ask for its number."""

    __slots__ = ()
    _trace: object
    aval: Aval
    differentiated: bool
    static: str

    def known(self) -> Any:
        """See `Tracer`."""
        raise NotImplementedError

    def stand_in(self) -> Any:
        """See `Tracer`."""
        raise NotImplementedError

    def history(self) -> str:
        """See `Tracer`."""
        raise NotImplementedError

    def describe(self) -> str:
        """See `Tracer`."""
        raise NotImplementedError

    def _need(self, error: type[errors.ConcretizationTypeError], what: str, cure: str) -> Any:
        value = self.known()
        if value is None:
            raise self._unknown(error, f"{what} of", f": {cure}")
        return value

    def _unknown(self, error: type[errors.ConcretizationTypeError], before: str, after: str) -> Exception:
        """The error for an operation that needs the number of this value."""
        message = f"{before} a traced value of type {self.aval} ({self.history()}){after}".lstrip()
        return refused(error, message, weakref.ref(self._trace))

    def __bool__(self) -> bool:
        return bool(
            self._need(
                errors.TracerBoolConversionError,
                "truth value",
                f"its value is unknown while tracing. {_chooser(sys._getframe(1))}; or {self.static}",
            )
        )

    def _scalar(self, kind: str) -> Any:
        value, frame, captured = self.known(), sys._getframe(2), self.stand_in()
        if captured is not None and not isinstance(captured, Conversions):
            return value
        if value is None:
            taker = asker(frame)[0]
            asked = f"x.{taker}" if taker in ("item()", "tolist()") else f"{kind}()"
            why = f": its value is unknown while tracing. {_cure(taker)}, or {self.static}"
            raise self._unknown(errors.TracerScalarConversionError, f"{asked} of", why)
        if self.differentiated and not is_explicit(frame):
            raise self._lost(kind, frame)
        return value

    def _lost(self, kind: str, frame: FrameType) -> Exception:
        """The error for a conversion that the user's code did not request."""
        taker, source = asker(frame)
        by = self.describe()
        message = (
            f"{taker or 'compiled code'} asked for the number of a value of type {self.aval} that is being "
            f"differentiated (by {by}): its derivative would be lost. {_cure(taker)}. If you mean a constant, write "
            f"functrans.lax.stop_gradient(x), or {kind}(x) in your own code"
        )
        return refused(errors.TracerScalarConversionError, message, weakref.ref(self._trace), source)

    def __float__(self) -> float:
        return float(self._scalar("float"))

    def __int__(self) -> int:
        return int(self._scalar("int"))

    def __complex__(self) -> complex:
        return complex(self._scalar("complex"))

    def __index__(self) -> int:
        value = self._need(
            errors.TracerIntegerConversionError,
            "integer value",
            "its value is unknown while tracing. To index a NumPy array `X` with it, write "
            "`functrans.numpy.asarray(X)[i]`; instead of `for i in range(n)`, write "
            f"`lax.fori_loop(0, n, lambda i, c: ..., start)`, or {self.static}, as for shapes",
        )
        return operator.index(value)

    def __array__(self, dtype: DTypeLike = None, copy: Any = None) -> np.ndarray:
        captured = self.stand_in()
        if captured is not None and not isinstance(captured, Conversions):
            return np.array(captured, dtype, copy=copy)
        caller: FrameType | None = sys._getframe(1)
        if asked_to_join(sys._getframe(1)):
            return traced_row(self)
        taker = asker(caller)[0]
        cure = operators.converting.get(taker)
        converters = "scipy" if taker.startswith("scipy.") else _CONVERTERS
        while (
            not cure and caller is not None and caller.f_globals.get("__name__", "").startswith(_CONVERTERS)
        ):
            if caller.f_globals["__name__"].startswith(converters):
                cure = operators.converting.get(caller.f_code.co_qualname.partition(".")[0])
            caller = caller.f_back
        cure = cure or counterpart(taker) or _ARRAY_CURE
        raise self._unknown(errors.TracerArrayConversionError, "", f" cannot become a NumPy array. {cure}")

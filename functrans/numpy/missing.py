"""What happens to NumPy functions that have no counterpart here, when they meet a traced value."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from ..core.errors import NoRuleError
from ..core.trace import Tracer, operators


def _name(func: Callable[..., Any]) -> str:
    module = getattr(func, "__module__", "numpy") or "numpy"
    return f"{module.replace('numpy', 'np', 1)}.{getattr(func, '__name__', func)}"


def nearest(func: Callable[..., Any]) -> list[str]:
    """Names of functions that exist for tracers, most similar first."""
    known = {f.__name__: _name(f) for f in operators.function if callable(f) and not isinstance(f, type)}
    return [known[n] for n in difflib.get_close_matches(func.__name__, known, n=3, cutoff=0.6)]


_RESULT = "it has no numbers yet: call it on the result, outside of the function, or through io_callback"
_VECTORIZE = (
    "Write functrans.numpy.vectorize(f), which traces the Python function, or call it through pure_callback"
)
#: What to write instead of functions to which no name is near.
_HINTS: dict[Callable[..., Any], str] = {
    np.copyto: "It writes in place, also for np.full_like(x, v): write functrans.numpy.full_like(x, v), or "
    "where(mask, v, x)",
    np.save: _RESULT,
    np.savez: _RESULT,
    np.savez_compressed: _RESULT,
    np.savetxt: _RESULT,
    np.array2string: "See functrans.debug.print to print numbers, and np.array_str for the type",
    np.busday_count: "Dates are not supported: convert them to numbers first",
    np.busday_offset: "Dates are not supported: convert them to numbers first",
    np.is_busday: "Dates are not supported: convert them to numbers first",
    np.datetime_as_string: "Dates are not supported: convert them to numbers first",
}


def _missing(func: Callable[..., Any], args: Any, kwargs: Any) -> NoReturn:
    traced = next((x for x in _flat((args, kwargs)) if isinstance(x, Tracer)), None)
    what = "a traced value" if traced is None else f"a traced value of type {traced.aval}"
    if isinstance(func, np.ufunc):
        _missing_ufunc(func, what)
    close = nearest(func)
    hint = f"Nearest: {', '.join(close)}" if close else "See functrans.numpy for what there is"
    raise NoRuleError(f"{_name(func)} of {what}: functrans has no such function. {_HINTS.get(func, hint)}")


def _missing_ufunc(ufunc: np.ufunc, what: str) -> NoReturn:
    name = ufunc.__name__
    if name.endswith("(vectorized)"):
        raise NoRuleError(f"{name[:-13]}, made by np.frompyfunc, of {what}: {_VECTORIZE}")
    own = getattr(np, name, None) is ufunc
    known = {u.__name__ for u in operators.ufunc}
    close = [f"np.{n}" for n in difflib.get_close_matches(name, known, n=3, cutoff=0.6)] if own else []
    if name in {u.__name__ for u in operators.ufunc}:
        close = [f"functrans.numpy.{name}"]  # SciPy's ufunc of the name of one of NumPy's
    hint = (
        f"Nearest: {', '.join(close)}"
        if close
        else "See functrans.numpy and functrans.scipy for what there is"
    )
    shown = f"np.{name}" if own else f"the ufunc {name}"
    raise NoRuleError(f"{shown} of {what}: functrans has no such function. {hint}")


def _flat(x: Any) -> Any:
    if isinstance(x, tuple | list):
        for part in x:
            yield from _flat(part)
    elif isinstance(x, dict):
        yield from _flat(list(x.values()))
    else:
        yield x


operators.function[NotImplemented] = _missing
# Functions of NumPy that make arrays of their arguments before anybody is asked, by the names of their code.
_OWN_NAMES = ("bartlett", "blackman", "fromfunction", "hamming", "hanning", "kaiser")
operators.converting.update({name: f"Write functrans.numpy.{name}" for name in _OWN_NAMES})
operators.converting.update(
    {
        "asarray_chkfinite": "Write functrans.numpy.asarray",
        "asmatrix": "There are no matrices: write functrans.numpy.atleast_2d",
        "bmat": "There are no matrices: write functrans.numpy.block",
        "matrix": "There are no matrices: write functrans.numpy.atleast_2d",
        "vectorize": _VECTORIZE,
    }
)

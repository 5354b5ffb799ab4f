"""How NumPy's functions reach tracers, what happens to those without a counterpart, and to other libraries' methods."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

import numpy as np

from ..arrays.array import Array, WeakArray
from ..core.aval import aval_of
from ..core.dtypes import canonical, promote
from ..core.errors import ArgumentValueError, NoRuleError
from ..core.trace import PYTHON_KEYS, Tracer, current_trace, eval_trace, operators
from ..frontend.checked import checked
from ..primitives import ops
from ..primitives.axes import one_axis
from ..primitives.operands import WEAK_DTYPES, finish, key_of, operand, strong
from ..primitives.structure.linear import shape_of

F = TypeVar("F", bound=Callable[..., Any])
#: What stands for arguments that were not given where NumPy's functions and methods call each other.
NO_VALUE = getattr(np, "_NoValue", None)


def implements(*functions: Callable[..., Any], method: str | None = None) -> Callable[[F], F]:
    """Register a function, `checked`, as what NumPy's functions, and a method of that name, do to tracers."""

    def register(f: F) -> F:
        f = checked(f)
        for g in functions:
            operators.function[g] = f
        if method is not None:
            operators.method[method] = f
        return f

    return register


def staging() -> bool:
    """Whether arrays should be made by the program: else NumPy makes them at once."""
    return current_trace.get() is not eval_trace


def given(value: Any, default: Any) -> Any:
    """An argument, or its default where it was not given."""
    return default if value is NO_VALUE else value


def on_cpu(device: Any, name: str) -> None:
    """Refuse any device but the one there is."""
    if device is not None and device != "cpu":
        raise ArgumentValueError(f"{name}: device must be 'cpu' or None, got {device!r}: there is no other")


def array_operand(x: Any, name: str, position: int = 0) -> Any:
    """`x` as a value with a dtype of its own: an ndarray, NumPy number or tracer, never weak."""
    if not isinstance(x, Tracer):
        x = operand(x, name, position)
        if type(x) in PYTHON_KEYS:
            return strong(x, aval_of(x).dtype)
    elif x.key() in WEAK_DTYPES:
        return strong(x, x.dtype)
    return x


def in_one_dtype(values: list[Any], dtype: Any, name: str) -> list[Any]:
    """Values in `dtype`, or in their common one. Python numbers are float64, int64, ... here, as NumPy's functions
    other than ufuncs take them.
    """
    if dtype is not None:
        to = canonical(dtype, f"{name}: dtype")
    else:
        keys = {key_of(v) for v in values}
        if len(keys) == 1 and keys.isdisjoint(WEAK_DTYPES) and type(values[0]) is not bool:
            return values
        to, _ = promote([(aval_of(v).dtype, False) for v in values])
    return [strong(v, to) for v in values]


def along(x: Any, axis: Any, name: str) -> tuple[Any, int]:
    """An array and the axis to work along; the flat array for None."""
    if axis is None:
        return ops.flat(x), 0
    return x, one_axis(axis, len(shape_of(x)), name)


def owned(out: Any, *given: Any) -> Any:
    """`finish`, of a copy where `out` is a view of what the caller gave and may still change."""
    if isinstance(out, Tracer):
        return out
    if type(out) is np.ndarray:
        for x in given:
            if type(x) in _SAFE or isinstance(x, Tracer):
                continue
            if np.may_share_memory(out, x if isinstance(x, np.ndarray) else np.asarray(x)):
                return finish(out.copy())
    return finish(out)


_SAFE = frozenset((Array, WeakArray, int, float, complex, bool, list, tuple))


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


_NUMPY = (
    "abs", "acos", "asin", "atan", "atan2", "broadcast_to", "ceil", "cos", "cosh", "diff", "exp",
    "expm1", "flip", "floor", "fmod", "isfinite", "isinf", "isnan", "log", "log10", "log1p", "log2",
    "logaddexp", "maximum", "median", "minimum", "moveaxis", "outer", "reciprocal", "remainder", "roll",
    "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh", "tile", "tril", "triu", "trunc", "unique",
    "where",
)  # fmt: skip
_AS_IT_IS = ": an array never changes, so use it as it is"
_GRADIENT = ": a derivative is a function. Write functrans.grad(f)(x)"
_TYPE = ": write x.astype(dtype)"

operators.absent.update({name: f": write functrans.numpy.{name}(x)" for name in _NUMPY})
operators.absent.update(
    {
        **dict.fromkeys(("clone", "contiguous", "cpu", "cuda", "pin_memory"), _AS_IT_IS),
        **dict.fromkeys(("grad", "backward", "requires_grad", "requires_grad_", "retain_grad"), _GRADIENT),
        **dict.fromkeys(("double", "float", "half", "int", "long", "bool", "to", "type", "type_as"), _TYPE),
        **dict.fromkeys(("mm", "bmm", "mv", "matmul"), ": write x @ y"),
        **dict.fromkeys(("expand", "expand_as"), ": write functrans.numpy.broadcast_to(x, shape)"),
        "addmm": ": write x + a @ b",
        "cat": ": write functrans.numpy.concatenate",
        "clamp": ": write x.clip(low, high)",
        "data_ptr": ": it has no memory of its own",
        "detach": ": write functrans.lax.stop_gradient(x). In forward and backward of a Function, nothing is needed",
        "dim": ": write x.ndim",
        "gather": ": write functrans.numpy.take_along_axis(x, indices, axis)",
        "index_select": ": write functrans.numpy.take(x, indices, axis)",
        "masked_fill": ": write functrans.numpy.where(mask, value, x)",
        "neg": ": write -x",
        "new_ones": ": write functrans.numpy.ones(shape, x.dtype)",
        "new_zeros": ": write functrans.numpy.zeros(shape, x.dtype)",
        "norm": ": write functrans.numpy.linalg.norm(x)",
        "numel": ": write x.size",
        "numpy": ": write np.asarray(x), where its numbers are known. A Function that calls NumPy has host = True",
        "permute": ": write x.transpose(axes)",
        "pow": ": write x**n",
        "rsqrt": ": write 1.0 / functrans.numpy.sqrt(x)",
        "scatter_add": ": write x.at[indices].add(values)",
        "sigmoid": ": write functrans.scipy.special.expit(x)",
        "softmax": ": write functrans.scipy.special.softmax(x, axis)",
        "t": ": write x.T",
        "topk": ": write functrans.numpy.argsort(x)[..., -k:]",
        "unsqueeze": ": write functrans.numpy.expand_dims(x, axis)",
        "view_as": ": write x.reshape(y.shape)",
    }
)
for _method in ("add", "sub", "mul", "div", "zero", "fill", "copy", "clamp", "masked_fill"):
    operators.absent[f"{_method}_"] = ": an array never changes. Compute a new one, or write x.at[i].set(v)"

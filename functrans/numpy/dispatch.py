"""How NumPy's functions dispatch on tracers, and the errors of functions and methods without a counterpart."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

import numpy as np

from ..arrays.array import Array, WeakArray
from ..core import (
    PYTHON_KEYS,
    Tracer,
    aval_of,
    canonical,
    current_trace,
    eval_trace,
    operators,
    promote,
    promotes_as_jax,
)
from ..core.trace import key_of
from ..core.values import ArrayLike, AxisLike, DTypeLike, PyTree, Value
from ..errors import ArgumentValueError, NoRuleError
from ..frontend.checked import checked
from ..primitives import ops
from ..primitives.ops import WEAK_DTYPES, finish, one_axis, operand, shape_of, strong

F = TypeVar("F", bound=Callable[..., Any])
#: The default by which NumPy's functions and methods, when they call each other, mark an argument as not passed.
NO_VALUE = getattr(np, "_NoValue", None)


def implements(*functions: Callable[..., Any], method: str | None = None) -> Callable[[F], F]:
    """Register a function, `checked`, as the implementation of NumPy's functions, and of a method, for tracers."""

    def register(f: F) -> F:
        f = checked(f)
        for g in functions:
            operators.function[g] = f
        if method is not None:
            operators.attribute[method] = f
        return f

    return register


def staging() -> bool:
    """Whether arrays should be created in the traced program; otherwise NumPy creates them at once."""
    return current_trace.get() is not eval_trace


def given(value: ArrayLike, default: ArrayLike) -> Any:
    """An argument, or its default if it was not passed."""
    return default if value is NO_VALUE else value


def on_cpu(device: Any, name: str) -> None:
    """Raise an error for any device but the CPU."""
    if device is not None and not (isinstance(device, str) and device == "cpu"):
        raise ArgumentValueError(
            f"{name}: device must be 'cpu' or None, got {device!r}; functrans has only the CPU"
        )


def array_operand(x: ArrayLike, name: str, position: int = 0) -> Any:
    """Convert `x` to a value that is not weak: an ndarray, NumPy number or tracer."""
    if not isinstance(x, Tracer):
        x = operand(x, name, position)
        if type(x) in PYTHON_KEYS:
            return strong(x, aval_of(x).dtype)
    elif x.key() in WEAK_DTYPES:
        return strong(x, x.dtype)
    return x


def in_one_dtype(values: list[ArrayLike], dtype: DTypeLike, name: str) -> list[ArrayLike]:
    """Convert values to `dtype`, or to their common one. Python numbers count as float64, int64, ... here, as in
    NumPy's functions other than ufuncs.
    """
    if dtype is not None:
        to = canonical(dtype, f"{name}: dtype")
    else:
        keys = {key_of(v) for v in values}
        if len(keys) == 1 and keys.isdisjoint(WEAK_DTYPES) and type(values[0]) is not bool:
            return values
        to, _ = promote([(a.dtype, a.weak and promotes_as_jax()) for a in map(aval_of, values)])
    return [strong(v, to) for v in values]


def along(x: ArrayLike, axis: AxisLike, name: str) -> tuple[Value, int]:
    """Return an array and the axis to work along; for None, the flattened array."""
    if axis is None:
        return ops.flat(x), 0
    return x, one_axis(axis, len(shape_of(x)), name)


def owned(out: ArrayLike, *given: Any) -> Any:
    """Finish `out`; copy it if it is a view of an argument that the caller may still change."""
    if isinstance(out, Tracer):
        return finish(out)
    if type(out) is np.ndarray:
        for x in given:
            if type(x) in _SAFE or isinstance(x, Tracer):
                continue
            if np.may_share_memory(out, x if isinstance(x, np.ndarray) else np.asarray(x)):
                return finish(out.copy())
    return finish(out)


_SAFE = frozenset((Array, WeakArray, int, float, complex, bool, list, tuple))


def _name(func: Callable[..., PyTree]) -> str:
    module = getattr(func, "__module__", "numpy") or "numpy"
    return f"{module.replace('numpy', 'np', 1)}.{getattr(func, '__name__', func)}"


def nearest(func: Callable[..., PyTree]) -> list[str]:
    """Names of similar functions that support tracers, most similar first."""
    known = {f.__name__: _name(f) for f in operators.function if callable(f) and not isinstance(f, type)}
    return [known[n] for n in difflib.get_close_matches(func.__name__, known, n=3, cutoff=0.6)]


_RESULT = "its values are unknown while tracing: call it on the result, outside the function, or through io_callback"
_VECTORIZE = (
    "Write functrans.numpy.vectorize(f), which traces the Python function, or call it through pure_callback"
)
_FROM_THE_HOST = (
    "To call it as it is, write a functrans.Function with host = True, which may have a derivative, or call it "
    "through functrans.pure_callback"
)
#: What to write instead of functions without a similar name.
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


def _missing(func: Callable[..., PyTree], args: ArrayLike, kwargs: Any) -> NoReturn:
    traced = next((x for x in _flat((args, kwargs)) if isinstance(x, Tracer)), None)
    what = "a traced value" if traced is None else f"a traced value of type {traced.aval}"
    if isinstance(func, np.ufunc):
        _missing_ufunc(func, what)
    close = nearest(func)
    hint = f"Nearest: {', '.join(close)}" if close else "See functrans.numpy for the supported functions"
    raise NoRuleError(f"{_name(func)} of {what}: functrans has no such function. {_HINTS.get(func, hint)}")


def _missing_ufunc(ufunc: np.ufunc, what: str) -> NoReturn:
    name = ufunc.__name__
    if name.endswith("(vectorized)"):
        raise NoRuleError(f"{name[:-13]}, made by np.frompyfunc, of {what}: {_VECTORIZE}")
    own = getattr(np, name, None) is ufunc
    known = {u.__name__ for u in operators.ufunc}
    close = [f"np.{n}" for n in difflib.get_close_matches(name, known, n=3, cutoff=0.6)] if own else []
    if name in {u.__name__ for u in operators.ufunc}:
        close = [f"functrans.numpy.{name}"]  # SciPy's ufunc with the name of a NumPy function
    hint = (
        f"Nearest: {', '.join(close)}"
        if close
        else "See functrans.numpy and functrans.scipy for the supported functions"
    )
    if own:
        raise NoRuleError(f"np.{name} of {what}: functrans has no such function. {hint}")
    raise NoRuleError(f"the ufunc {name} of {what}: functrans has no such function. {hint}. {_FROM_THE_HOST}")


def _flat(x: ArrayLike) -> Any:
    if isinstance(x, tuple | list):
        for part in x:
            yield from _flat(part)
    elif isinstance(x, dict):
        yield from _flat(list(x.values()))
    else:
        yield x


operators.function[NotImplemented] = _missing
# Functions of NumPy that convert their arguments to arrays before they dispatch, by the names of their code.
_OWN_NAMES = ("bartlett", "blackman", "fromfunction", "hamming", "hanning", "kaiser")
operators.converting.update({name: f"Write functrans.numpy.{name}" for name in _OWN_NAMES})
operators.converting.update(
    {
        "asarray_chkfinite": "Write functrans.numpy.asarray",
        "asmatrix": "functrans has no matrix class: write functrans.numpy.atleast_2d",
        "bmat": "functrans has no matrix class: write functrans.numpy.block",
        "DataFrame": "Write functrans.numpy.asarray(frame) in place of the pandas object",
        "Series": "Write functrans.numpy.asarray(series) in place of the pandas object",
        "matrix": "functrans has no matrix class: write functrans.numpy.atleast_2d",
        "vectorize": _VECTORIZE,
    }
)


#: Methods of PyTorch's tensors besides the ufuncs, which `primitives.promotion.publish` adds.
_NUMPY = (
    "abs", "acos", "asin", "atan", "atan2", "broadcast_to", "diff", "flip", "median", "moveaxis", "outer", "roll",
    "tile", "tril", "triu", "unique", "where",
)  # fmt: skip
_AS_IT_IS = ": arrays are immutable, so use it directly"
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
        "data_ptr": ": a traced value has no memory",
        "detach": ": write functrans.lax.stop_gradient(x). In forward and backward of a Function, it is not needed",
        "dim": ": write x.ndim",
        "gather": ": write functrans.numpy.take_along_axis(x, indices, axis)",
        "index_select": ": write functrans.numpy.take(x, indices, axis)",
        "masked_fill": ": write functrans.numpy.where(mask, value, x)",
        "neg": ": write -x",
        "new_ones": ": write functrans.numpy.ones(shape, x.dtype)",
        "new_zeros": ": write functrans.numpy.zeros(shape, x.dtype)",
        "norm": ": write functrans.numpy.linalg.norm(x)",
        "numel": ": write x.size",
        "numpy": ": write np.asarray(x), outside traced code. A Function that calls NumPy has host = True",
        "permute": ": write x.transpose(axes)",
        "pow": ": write x**n",
        "register_hook": ": write functrans.register_hook(x, hook)",
        "register_post_accumulate_grad_hook": ": write functrans.post_accumulate_hook(x, hook)",
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
    operators.absent[f"{_method}_"] = ": arrays are immutable. Compute a new one, or write x.at[i].set(v)"

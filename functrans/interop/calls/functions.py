"""Callables that jitted code calls: Python's, ``math``'s, NumPy's, methods of arrays, other jitted functions."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from types import ModuleType
from typing import Any

import numba
import numpy as np

from ... import numpy as fnp
from ...core import Primitive, operators
from ...core.values import DTypeLike, PyTree
from ...errors import FunctransError, NumbaTranslationError
from ...primitives.elementwise.arithmetic import first_max_p, first_min_p
from ...runtime.private.numba_names import (
    EXCEPTIONS,
    Dispatcher,
    as_dtype,
    empty_inferred,
    length_of_iterator,
    signature_of,
    types,
)
from ...runtime.records import dataclass
from ...scipy import special
from ..numba_parts import Expression, Signature
from .flow import END, RESULT, VIEWS
from .slices import Slices
from .state import Frame
from .typed_ir import typed_function
from .values import ArrayView, Counted, Places, Range, Zipped, cast, is_known, is_number, is_slice, strong

_MATH: dict[Any, Callable[..., Any]] = {
    math.acos: fnp.arccos,
    math.acosh: fnp.arccosh,
    math.asin: fnp.arcsin,
    math.asinh: fnp.arcsinh,
    math.atan: fnp.arctan,
    math.atan2: fnp.arctan2,
    math.atanh: fnp.arctanh,
    math.erf: special.erf,
    math.erfc: special.erfc,
    math.fabs: fnp.abs,
    math.gamma: special.gamma,
    math.lgamma: special.gammaln,
    math.pow: fnp.power,
}
#: Callables of ``math`` that are ufuncs under the same name; ``math.remainder`` rounds the quotient in another way.
_OF_BOTH = vars(math).keys() & {*fnp.__all__}
_SAME = {u.__name__ for u in operators.ufunc if u.nout == 1 and u.__name__ in _OF_BOTH} - {"remainder"}
_ALLOCATES = frozenset({"empty", "zeros", "ones", "full"})
_LIKE = frozenset({"empty_like", "zeros_like", "ones_like", "full_like"})
_ATTRIBUTES = frozenset({"shape", "size", "ndim", "T", "dtype", "real", "imag", "itemsize", "nbytes"})
_RANGES = (builtins.range, numba.prange)


@dataclass(frozen=True, eq=False)
class BoundMethod:
    """A method of an array or a number."""

    owner: Any
    name: str


@dataclass(frozen=True, eq=False)
class Made:
    """An exception that was made, to be raised."""

    kind: type[BaseException]


class Callables(Slices):
    """Calls and attributes, for `Machine`."""

    # ---------------------------------------------------------------- attributes

    def _getattr(self, expr: Expression) -> Any:
        value = self.variables[expr.value.name]
        if isinstance(value, ArrayView):
            return self._array_attribute(value, expr.attr)
        if is_number(value):
            if expr.attr in ("real", "imag"):
                return self.content(getattr(fnp, expr.attr)(value))
            return BoundMethod(value, expr.attr)
        if isinstance(value, (ModuleType, type, tuple, np.dtype)) or hasattr(value, "__module__"):
            return self.constant(getattr(value, expr.attr), expr.value)
        raise self.unsupported(f"the attribute '{expr.attr}'")

    def _array_attribute(self, view: ArrayView, name: str) -> Any:
        if name == "T":
            return replace(view, order=view.order[::-1])
        if name == "shape":
            return view.shape
        if name == "ndim":
            return len(view.shape)
        if name == "size":
            return math.prod(view.shape)
        if name not in _ATTRIBUTES:
            return BoundMethod(view, name)
        dtype = np.dtype(self.state.heap[view.storage].value.dtype)
        if name in ("dtype", "itemsize"):
            return getattr(dtype, name, dtype)
        if name == "nbytes":
            return math.prod(view.shape) * dtype.itemsize
        return self.elementwise(getattr(fnp, name), view)

    # ---------------------------------------------------------------- calls

    def _call(self, expr: Expression) -> Any:
        f = self.variables[expr.func.name]
        args = [self.variables[v.name] for v in expr.args]
        if expr.vararg is not None:
            args += self.variables[expr.vararg.name]
        kwargs = {name: self.variables[v.name] for name, v in expr.kws}
        signature = self.function.calltypes[expr]
        inner = getattr(f, "_numba_dispatcher", f)
        if isinstance(inner, Dispatcher):
            return self.call_jitted(inner, signature, args, kwargs)
        if isinstance(self.type_of(expr.func), types.RecursiveCall):
            raise self.unsupported("recursion", "write it as a loop")
        try:
            return self.call(f, args, kwargs, signature)
        except (NumbaTranslationError, AssertionError):
            raise
        except (FunctransError, TypeError, ValueError, AttributeError, NotImplementedError) as error:
            name = getattr(f, "__name__", f)
            raise self.unsupported(f"this call of '{name}' ({error})") from error

    def call(self, f: Any, args: list[Any], kwargs: dict[str, Any], signature: Signature) -> Any:
        """Call a function that is not jitted."""
        if isinstance(f, type) and issubclass(f, BaseException):
            return Made(f)
        if isinstance(f, BoundMethod):
            return self._method(f, args, kwargs)
        if f is empty_inferred:  # of an array comprehension
            return self._allocated("empty", signature, args, kwargs)
        if f in _RANGES:
            return self._range(args)
        own = _BUILTINS.get(f)
        if own is not None:
            return own(self, *args)
        if isinstance(f, types.Type) or (isinstance(f, type) and issubclass(f, np.generic)):
            return self._converted(args[0], np.dtype(as_dtype(f) if isinstance(f, types.Type) else f))
        module = getattr(f, "__module__", None) or ""
        if module == EXCEPTIONS:
            raise self.unsupported("try", "test for the failure with if")
        if f in _MATH or module == "math":
            return self._of_math(f, args, signature)
        if _is_random(f):
            raise self.unsupported("a random number", "pass the numbers as an argument")
        if not (module.startswith("numpy") or isinstance(f, np.ufunc)):
            raise self.unsupported(f"'{getattr(f, '__name__', f)}'")
        return self._of_numpy(f, args, kwargs, signature)

    def call_jitted(
        self, dispatcher: Dispatcher, signature: Signature, args: list[Any], kwargs: dict[str, Any]
    ) -> Any:
        """Translate the body of another jitted function instead of the call."""
        key = id(dispatcher)
        if key in [p[0] for p in self.path]:
            raise self.unsupported("recursion", "write it as a loop")
        bound = signature_of(dispatcher).bind(*args, **kwargs)
        bound.apply_defaults()
        kinds = signature.args
        callee = typed_function(dispatcher, tuple(kinds))
        caller, path, here = self.state.frame, self.path, self.here
        self.path = (*path, (key, str(here)))
        result = self.run_function(callee, list(bound.arguments.values()), self.new_number())
        self.state.frame, self.path, self.here = caller, path, here
        return result

    def run_function(self, function: Any, values: list[Any], first_own: int = 0) -> Any:
        """Run a function from its first block to its end, and return its result."""
        names = function.ir.arg_names
        variables = {f"arg.{n}": v for n, v in zip(names, values, strict=True)}
        self.state.frame = Frame(function, variables, first_own)
        self.run(self.flow.entry, frozenset())
        if END not in self.flow.order or RESULT not in self.variables:
            return None
        return self.typed(self.variables[RESULT], function.return_type)

    def _method(self, method: BoundMethod, args: list[Any], kwargs: dict[str, Any]) -> Any:
        view, name = method.owner, method.name
        if not isinstance(view, ArrayView):
            if name == "conjugate":
                return fnp.conj(view)
            raise self.unsupported(f"the method '{name}'")
        if name == "fill":
            return self.store(view, args[0])
        if name == "sort":
            return self.store(view, fnp.sort(self.content(view)))
        if name == "copy":
            return self.elementwise(lambda x: x, view)
        if name == "flatten":
            return self.fresh(fnp.ravel(self.content(view)))
        if name == "astype":
            return self.elementwise(lambda x: x.astype(_dtype(args[0])), view)
        if name == "item" and not args:
            return self.content(view).reshape(())
        if name == "view":
            raise self.unsupported("the method 'view'")
        if name == "reshape" and not kwargs:
            args = [args[0] if len(args) == 1 else tuple(args)]
        return self._of_numpy(getattr(np, name), [view, *args], kwargs, None)

    # ---------------------------------------------------------------- Python

    def _range(self, args: list[Any]) -> Range:
        start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
        if is_known(start) and is_known(stop) and is_known(step):
            return Range(len(range(start, stop, step)), start, step)
        length = strong(_trips(start, stop, step), np.dtype(np.int64))
        return Range(fnp.maximum(length, 0), start, step)

    def _len(self, value: Any) -> Any:
        if isinstance(value, ArrayView):
            return value.shape[0]
        return value.length if isinstance(value, Counted) else len(value)

    def _enumerate(self, value: Any, start: Any = 0) -> Counted:
        inner = self.counted_of(value)
        return Zipped(inner.length, (Range(inner.length, start, 1), inner))

    def _zip(self, *values: Any) -> Counted:
        parts = tuple([self.counted_of(v) for v in values])
        return Zipped(reduce(_smaller, [p.length for p in parts]), parts)

    def _ndindex(self, *shape: Any) -> Places:
        sizes = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], tuple) else shape
        if not all(map(is_known, sizes)):
            raise self.unsupported(
                "'ndindex' of sizes that depend on the run", "write nested loops over ranges"
            )
        return Places(math.prod(sizes), sizes)

    def _ndenumerate(self, view: ArrayView) -> Places:
        return replace(self._ndindex(*view.shape), view=view)

    def _largest(self, *args: PyTree) -> Any:
        return self._extreme(args, first_max_p, max)

    def _smallest(self, *args: PyTree) -> Any:
        return self._extreme(args, first_min_p, min)

    def _extreme(self, args: tuple[Any, ...], prim: Primitive, known: Any) -> Any:
        values = list(args[0]) if len(args) == 1 and isinstance(args[0], (tuple, list)) else list(args)
        if any(isinstance(v, ArrayView) for v in values):
            raise self.unsupported(f"'{known.__name__}' of an array", "use the array's method")
        if all(map(is_known, values)):
            return known(values)
        dtype = np.result_type(*[np.asarray(v).dtype if is_known(v) else v.dtype for v in values])
        values = [cast(v, dtype) for v in values]
        return reduce(prim.bind, values)

    def _absolute(self, x: Any) -> Any:
        if is_known(x):
            return abs(x)
        return self.elementwise(fnp.abs, x)

    def _rounded(self, x: Any, digits: Any = None) -> Any:
        if is_known(x):
            return round(x) if digits is None else round(x, digits)
        return fnp.round(x) if digits is None else fnp.round(x, digits)

    def _sum(self, values: Any, start: Any = 0) -> Any:
        if isinstance(values, ArrayView):
            return self._of_numpy(np.sum, [values], {}, None) + start
        return reduce(lambda a, b: a + b, values, start)

    def _tuple(self, value: Any = ()) -> tuple[Any, ...]:
        if isinstance(value, (tuple, list)):
            return tuple(value)
        raise self.unsupported("'tuple' of this value")

    def _to_type(self, dtype: DTypeLike, x: Any = 0) -> Any:
        if isinstance(x, ArrayView):
            x = self.content(x)
        return cast(x, np.dtype(dtype))

    def _divmod(self, x: Any, y: Any) -> tuple[Any, Any]:
        self.check_divisor(y)
        return x // y, x % y

    def _slice(self, *args: PyTree) -> slice:
        return slice(*args)

    def _complex(self, real: Any, imag: Any = 0.0) -> Any:
        if is_known(real) and is_known(imag):
            return complex(real, imag)
        return real + cast(imag, np.dtype(np.complex128)) * 1j

    def _converted(self, x: Any, dtype: np.dtype) -> Any:
        value = self.content(x)
        return cast(value, dtype) if is_number(value) else self.fresh(fnp.asarray(value).astype(dtype))

    # ---------------------------------------------------------------- math and NumPy

    def _of_math(self, f: Any, args: list[Any], signature: Signature) -> Any:
        values = [self.operand(a, k) for a, k in zip(args, signature.args, strict=False)]
        if all(map(is_known, values)):
            try:
                return f(*values)
            except (ValueError, OverflowError):  # jitted code returns NaN or infinity
                values = [np.asarray(v) for v in values]
        if f is math.log:
            return fnp.log(values[0]) if len(values) == 1 else fnp.log(values[0]) / fnp.log(values[1])
        own = _MATH.get(f) or (getattr(fnp, f.__name__) if f.__name__ in _SAME else None)
        if own is None:
            raise self.unsupported(f"'math.{f.__name__}'")
        return own(*values)

    def _of_numpy(self, f: Any, args: list[Any], kwargs: dict[str, Any], signature: Signature) -> Any:
        name = getattr(f, "__name__", str(f))
        if name in _ALLOCATES:
            return self._allocated(name, signature, args, kwargs)
        if name in _LIKE:
            fill = self.content(args[1]) if name == "full_like" else int(name == "ones_like")
            given = kwargs.get("dtype", args[2] if len(args) > 2 else None)
            dtype = None if given is None else _dtype(given)
            return self.elementwise(lambda x: fnp.full(np.shape(x), fill, dtype or x.dtype), args[0])
        if name == "copyto":
            return self.store(args[0], args[1])
        place = str(getattr(f, "__module__", ""))
        module: Any = fnp.linalg if "linalg" in place else fnp.fft if "fft" in place else fnp
        own = getattr(module, name, None) or (getattr(fnp, name, None) if hasattr(np, name) else None)
        if own is None:
            raise self.unsupported(f"'{name}'")
        if any(map(is_slice, args)):
            return self.of_slices(name, own, args, kwargs, isinstance(f, np.ufunc))
        if signature is not None and isinstance(f, np.ufunc):
            values = [self.operand(a, k) for a, k in zip(args, signature.args, strict=False)]
        else:
            values = [self.content(a) for a in args]
        value = own(*values, **{k: self.content(v) for k, v in kwargs.items()})
        return self._memory_of(name, args, value)

    def _memory_of(self, name: str, args: list[Any], value: Any) -> Any:
        """Arrays that a function returned, as new storages; possible views of an argument must not be written."""
        if isinstance(value, (tuple, list)):
            parts = [self._memory_of(name, args, v) for v in value]
            return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
        if is_number(value) or not hasattr(value, "shape"):
            return value.item() if isinstance(value, np.generic) else value
        result = self.fresh(value)
        if name in VIEWS and args and isinstance(args[0], ArrayView):
            self.tie(result, args[0])
        return result

    def _allocated(self, name: str, signature: Signature, args: list[Any], kwargs: dict[str, Any]) -> Any:
        shape = args[0] if args else kwargs["shape"]
        sizes = shape if isinstance(shape, tuple) else (shape,)
        if not all(map(is_known, sizes)):
            raise SizeUnknown(
                self.unsupported(
                    "an array whose size depends on the run",
                    "pass sizes as Python integers, or take them from shapes",
                )
            )
        fill: Any = int(name == "ones")
        if name == "full":
            fill = args[1] if len(args) > 1 else kwargs["fill_value"]
        dtype = as_dtype(signature.return_type.dtype)
        return self.fresh(fnp.full(tuple(map(int, sizes)), cast(fill, dtype), dtype))


class SizeUnknown(BaseException):
    """The size of an array is a traced number; the argument is the error for the user. As `Learned`, no `Exception`."""


def _trips(start: Any, stop: Any, step: Any) -> Any:
    """How many numbers a range has, of which something is known only when it runs; negative if it has none."""
    if not is_known(step):
        return -((start - stop) // step)
    if step == 1:
        return stop if is_known(start) and start == 0 else stop - start
    if step > 0:
        return (stop - start + (step - 1)) // step
    return (start - stop + (-step - 1)) // -step


def _is_random(f: Any) -> bool:
    """Whether a callable, or the generator that it is a method of, is one of Python's or NumPy's random numbers."""
    modules = [str(getattr(x, "__module__", "")) for x in (f, type(f), type(getattr(f, "__self__", None)))]
    return any(m == "random" or m.startswith("numpy.random") for m in modules)


def _smaller(a: Any, b: Any) -> Any:
    return min(a, b) if is_known(a) and is_known(b) else fnp.minimum(a, b)


def _dtype(x: Any) -> np.dtype:
    return np.dtype(as_dtype(x) if isinstance(x, types.Type) else x)


_BUILTINS: dict[Any, Any] = {
    builtins.len: Callables._len,
    builtins.enumerate: Callables._enumerate,
    builtins.zip: Callables._zip,
    np.ndindex: Callables._ndindex,
    np.ndenumerate: Callables._ndenumerate,
    length_of_iterator: Callables._len,
    builtins.max: Callables._largest,
    builtins.min: Callables._smallest,
    builtins.abs: Callables._absolute,
    builtins.round: Callables._rounded,
    builtins.sum: Callables._sum,
    builtins.tuple: Callables._tuple,
    builtins.slice: Callables._slice,
    builtins.divmod: Callables._divmod,
    builtins.complex: Callables._complex,
    builtins.bool: lambda machine, x=False: machine._to_type(bool, x),
    builtins.int: lambda machine, x=0: machine._to_type(np.int64, x),
    builtins.float: lambda machine, x=0.0: machine._to_type(np.float64, x),
}

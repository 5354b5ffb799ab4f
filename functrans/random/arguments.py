"""What samplers accept: keys, shapes, dtypes and parameters of distributions."""

from __future__ import annotations

from functools import wraps
from typing import Any

import numpy as np

from ..api.compiled.jit import jit
from ..control import key_uses
from ..core import (
    FLOAT32,
    FLOAT64,
    INT64,
    KEY,
    Aval,
    Tracer,
    aval_of,
    canonical,
    dtype_kind,
    is_low,
    narrowed,
)
from ..core.values import ArrayLike, DTypeLike, Param, PyTree, ShapeLike, Value
from ..errors import ArgumentError, ArgumentValueError, DtypeError, FunctransError, ShapeError
from ..primitives import ops
from ..primitives.ops import finish, operand, positive_shape
from ..runtime.records import dataclass

U32 = np.dtype(np.uint32)
U64 = np.dtype(np.uint64)


def compiled(body: Any, draws_low: bool = False) -> Any:
    """The body of a sampler as a compiled function: all arguments by keyword except the key and traced parameters.

    It draws float16 and bfloat16 numbers in float32 and rounds them, unless the body draws them itself (`draws_low`).
    """
    run = jit(body, static_argnames=_static_names(body))

    @wraps(body)
    def in_float32(*args: PyTree, dtype: np.dtype, **kwargs: Any) -> Value:
        return cast(body(*args, dtype=FLOAT32, **kwargs), dtype)

    run_in_float32 = jit(in_float32, static_argnames=_static_names(body))

    def sample(*args: ArrayLike, **kwargs: Any) -> Value:
        dtype = kwargs.get("dtype")
        low = dtype is not None and is_low(dtype) and not draws_low
        # Without jit, the body returns plain values.
        return finish((run_in_float32 if low else run)(*args, **kwargs))

    return sample


def _static_names(body: Any) -> tuple[str, ...]:
    code = body.__code__
    first = code.co_argcount
    return code.co_varnames[first : first + code.co_kwonlyargcount]


# --- keys -----------------------------------------------------------------------------------------------------


def is_raw(aval: Aval) -> bool:
    """Whether an array holds keys as `PRNGKey` returns them: pairs of uint32."""
    return aval.dtype == U32 and aval.shape[-1:] == (2,)


def keys(key: Value, name: str) -> Any:
    """One key or an array of keys, of either form.

    Raises
    ------
    ArgumentError
        If it is something else.
    """
    try:
        value = operand(key, f"random.{name}")
        aval = aval_of(value)
    except FunctransError:
        value, aval = None, None
    if aval is None or not (aval.dtype == KEY or is_raw(aval)):
        shown = f"type {aval}" if isinstance(key, Tracer) else _shown(key)
        raise ArgumentError(f"random.{name}: key must be a key from functrans.random.key(seed), got {shown}")
    return value


def _shown(x: Value) -> str:
    if isinstance(x, np.ndarray | np.generic):
        return f"an array of dtype {x.dtype} and shape {x.shape}"
    text = repr(x)
    return f"{text if len(text) <= 40 else text[:37] + '...'} of type {type(x).__name__}"


def one_key(key: Value, name: str) -> Value:
    """A single key, of either form.

    Raises
    ------
    ArgumentError
        If it is not a key.
    ShapeError
        If it is an array of keys.
    """
    value = keys(key, name)
    aval = aval_of(value)
    shape = aval.shape if aval.dtype == KEY else aval.shape[:-1]
    if shape:
        raise ShapeError(
            f"random.{name} takes one key, got an array of keys of shape {shape}: choose one, as in keys[0], or map "
            f"over them: functrans.vmap(lambda key: random.{name}(key, ...))(keys)"
        )
    return value


def words(key: Value, name: str = "") -> Value:
    """Keys as 64-bit numbers, which all bodies compute with; the function `name`, if any, uses them up."""
    if aval_of(key).dtype == KEY:
        numbers = ops.bitcast_p.bind(key, dtype=U64)
        return key_uses.used(numbers, name) if name else numbers
    swapped = ops.rev_p.bind(key, dimensions=(aval_of(key).ndim - 1,))
    return ops.bitcast_p.bind(swapped, dtype=U64)


def as_given(word: Any, key: Value) -> Value:
    """New keys in the form of `key`."""
    return typed(word) if aval_of(key).dtype == KEY else raw(word)


def typed(word: ArrayLike) -> Value:
    """64-bit numbers as new keys."""
    return ops.bitcast_p.bind(key_uses.made(word), dtype=KEY)


def raw(word: ArrayLike) -> Value:
    """64-bit numbers as pairs of uint32, the upper half first."""
    pairs = ops.bitcast_p.bind(word, dtype=U32)
    return ops.rev_p.bind(pairs, dimensions=(aval_of(pairs).ndim - 1,))


# --- dtypes and shapes ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DtypeOf:
    """Which dtypes numbers may have: calling it checks a choice.

    Parameters
    ----------
    what : str
        In words, with an article.
    kinds : str
        NumPy's letters of the kinds.
    default : dtype
        What None stands for.
    """

    what: str
    kinds: str
    default: np.dtype

    def __call__(self, dtype: DTypeLike, name: str) -> np.dtype:
        """The dtype that the user chose for the function `name`."""
        if dtype is None:
            return narrowed(self.default)
        chosen = canonical(dtype, f"random.{name}: dtype")
        if dtype_kind(chosen) not in self.kinds:
            raise DtypeError(f"random.{name}: dtype must be {self.what} dtype, got {chosen}")
        return chosen

    @property
    def about(self) -> str:
        """A sentence for docstrings."""
        return f"{self.what[0].upper()}{self.what[1:]} dtype, by default {self.default}."


float_dtype = DtypeOf("a float", "f", FLOAT64)
inexact_dtype = DtypeOf("a float or complex", "fc", FLOAT64)
integer_dtype = DtypeOf("an integer", "iu", INT64)
bits_dtype = DtypeOf("an unsigned integer", "u", U64)
number_dtype = DtypeOf("a number", "iufc", INT64)


def shape_of_result(shape: ShapeLike, name: str) -> tuple[int, ...]:
    """A shape that the user gave; an integer is a shape of one axis."""
    return positive_shape(shape, f"random.{name}")


def shape_with(shape: ShapeLike, name: str, **parameters: Param) -> tuple[int, ...]:
    """The shape that the user gave, or else that of the parameters, which must broadcast to it.

    Raises
    ------
    ShapeError
        The message shows the shapes of the parameters.
    """
    return shapes_broadcast(shape, name, **{k: aval_of(x).shape for k, x in parameters.items()})


def shapes_broadcast(shape: ShapeLike, name: str, **shapes: tuple[int, ...]) -> tuple[int, ...]:
    """As `shape_with`, from the shapes of the parameters."""
    wanted = None if shape is None else shape_of_result(shape, name)
    if wanted is not None and not any(shapes.values()):
        return wanted
    try:
        joint = np.broadcast_shapes(*([] if wanted is None else [wanted]), *shapes.values())
    except ValueError:
        joint = None
    if joint is not None and wanted in (None, joint):
        return joint
    listed = ", ".join(f"{k} {s}" for k, s in shapes.items())
    if wanted is None:
        raise ShapeError(f"random.{name}: the shapes of {listed} do not broadcast")
    raise ShapeError(
        f"random.{name}: the parameters do not broadcast to shape {wanted}: {listed}. Shape is that of the whole "
        "result; put the number of draws in front of the parameters' axes"
    )


# --- parameters -----------------------------------------------------------------------------------------------


def parameter(
    x: ArrayLike,
    name: str,
    argument: str,
    *,
    low: float | None = None,
    high: float | None = None,
    above: float | None = None,
) -> Value:
    """A real parameter of a distribution, which may be an array and may be traced.

    Parameters
    ----------
    x : array_like
    name, argument : str
        The function and its argument, for messages.
    low, high, above : float, optional
        Known numbers must be at least `low`, at most `high`, greater than `above`. NaN passes.

    Raises
    ------
    DtypeError
        If it is complex, or holds keys.
    ArgumentValueError
        If a number is out of range.
    """
    value = operand(x, f"random.{name}: {argument}")
    kind = dtype_kind(aval_of(value).dtype)
    if kind not in "biuf":
        raise DtypeError(f"random.{name}: {argument} must be real, got dtype {aval_of(value).dtype}")
    if not isinstance(value, Tracer):
        numbers = np.asarray(value)
        for bound, wrong, words in (
            (low, numbers < (low or 0), "at least"),
            (high, numbers > (high or 0), "at most"),
            (above, numbers <= (above or 0), "greater than"),
        ):
            if bound is not None and wrong.any():
                first = numbers[wrong].flat[0] if numbers.ndim else numbers[()]
                raise ArgumentValueError(
                    f"random.{name}: {argument} must be {words} {bound:g}, got {first:g}"
                )
    return value


def cast(x: Value, dtype: np.dtype) -> Value:
    """A parameter as the numbers that a body computes with."""
    return ops.strong(x, dtype)


def spread(x: Value, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """A parameter of the dtype, broadcast to a shape."""
    return ops.broadcast_to(cast(x, dtype), shape)


def choice_of(value: ArrayLike, known: tuple[str, ...], name: str, argument: str) -> str:
    """One of several words.

    Raises
    ------
    ArgumentValueError
        If it is none of them.
    """
    if value not in known:
        raise ArgumentValueError(
            f"random.{name}: {argument} must be {' or '.join(map(repr, known))}, got {value!r}"
        )
    return value

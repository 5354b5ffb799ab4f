"""NumPy's promotion of the operands of elementwise operations.

Besides NumPy itself, this is where an eager program spends its time. So what promotion decides is looked up by the
operands' keys (dtype, or Python type if weak), and after the first call costs one dictionary access.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..arrays.arguments import CASTINGS, FLAG, one_of, too_large
from ..arrays.autocast import without
from ..core import dtype_kind
from ..core.dtypes import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT32,
    KEY,
    canonical,
    check_supported,
    is_inexact,
    loop_dtypes,
    memory_dtype,
    promote,
    resolve_ufunc,
)
from ..core.jax_dtypes import default_float, join, promotes_as_jax
from ..core.trace import PYTHON_KEYS, WEAK_KEYS, Key, key_of
from ..core.values import ArrayLike, Params, Value
from ..errors import ArgumentError, DtypeError, ImmutableArrayError, IntegerRangeError, ShapeError
from ..errors.source import warn_user
from ..runtime.config import Config, config
from ..runtime.libraries import SpecialUfunc
from ..runtime.module_getattr import lazy_import
from .axes import broadcast_shapes
from .elementwise.arithmetic import convert_element_type_p
from .elementwise.bits import bitcast_p
from .operands import WEAK_DTYPES, number, operand, strong
from .structure.linear import shape_of

#: Loads when autocast is first used.
autocast = lazy_import("functrans.primitives.autocast")

Cast = Callable[[Any], Any] | None
Casts = tuple[Cast, ...]
Body = Callable[..., Any]


def resolved(ufunc: np.ufunc, keys: tuple[Key, ...]) -> tuple[np.dtype, ...]:
    """Return the dtypes that the ufunc casts its operands to."""
    operands = tuple(
        [
            (WEAK_DTYPES[k], True)
            if k in WEAK_DTYPES
            else (check_supported(k, f"{ufunc.__name__}: argument {i}"), False)
            for i, k in enumerate(keys)
        ]
    )
    return resolve_ufunc(ufunc, operands)[0]


def make_plan(ufunc: np.ufunc, keys: tuple[Key, ...], keep_weak: bool) -> Casts:
    """Return the cast of each operand to the dtype that the ufunc computes in; None where none is needed.

    If all operands are weak, the result is weak with `keep_weak` (operators) and strong without (functions).
    """
    if set(keys) == {KEY} and ufunc in (np.equal, np.not_equal):
        return (_bits, _bits)
    dtypes = _of_special(keys) if isinstance(ufunc, SpecialUfunc) and ufunc.floats else None
    dtypes = resolved(ufunc, keys) if dtypes is None else dtypes
    weak = [k in WEAK_DTYPES for k in keys]
    if all(weak):
        return tuple([_weak_cast(k, d) if keep_weak else _strong_cast(d) for k, d in zip(keys, dtypes)])
    return tuple([_cast(k, d) for k, d in zip(keys, dtypes)])


def _of_special(keys: tuple[Key, ...]) -> tuple[np.dtype, ...] | None:
    """The dtypes in which SciPy's ufuncs compute with floating-point numbers; None if SciPy must say."""
    if all(k in (float, FLOAT64) for k in keys):
        return (FLOAT64,) * len(keys)
    return tuple(keys) if set(keys) == {FLOAT32} else None


def _bits(x: Value) -> Value:
    """Keys as numbers, to compare them."""
    return bitcast_p.bind(x, dtype=memory_dtype(KEY))


def _cast(key: Key, dtype: np.dtype) -> Cast:
    """Return the cast of an operand beside a strong one. A weak float64 needs none: it takes part as a number."""
    if WEAK_DTYPES.get(key, key) == dtype:
        return None

    def cast(x: ArrayLike) -> Any:
        if type(x) not in PYTHON_KEYS:
            return convert_element_type_p.bind(x, dtype=dtype, weak=False)
        # NumPy multiplies fastest by a Python float. A bool is not weak, so it must not become a Python number.
        return float(x) if dtype is FLOAT64 and type(x) is float else number(x, dtype)

    return cast


def _strong_cast(dtype: np.dtype) -> Cast:
    return lambda x: strong(x, dtype)


def common_dtype(keys: tuple[Key, ...]) -> tuple[np.dtype, bool]:
    """Return the dtype that ``np.result_type`` gives, and whether all operands are weak."""
    return promote([(WEAK_DTYPES[k], True) if k in WEAK_DTYPES else (k, False) for k in keys])


@lru_cache(maxsize=4096)
def _common_plan(keys: tuple[Key, ...]) -> tuple[Cast, ...]:
    dtype, weak = common_dtype(keys)
    return tuple([_strong_cast(dtype) if weak else _cast(k, dtype) for k in keys])


#: `jax_semantics` counts as a change of the first, so that operations test no third option.
DTYPES, RANKS = Config.numpy_dtype_promotion, Config.numpy_rank_promotion


def has_own_rules() -> bool:
    """Whether options may ask for another promotion than NumPy's."""
    return DTYPES.ever_changed or RANKS.ever_changed


class Ready:
    """The key of operands that are cast already, as JAX's lattice says."""


def computed_in(ufunc: np.ufunc, keys: tuple[Key, ...]) -> np.dtype:
    """The dtype to which a ufunc casts its first operand: by NumPy's rules, or in JAX's lattice."""
    return _in_lattice(ufunc, keys) if promotes_as_jax() else resolved(ufunc, keys)[0]


def _in_lattice(ufunc: np.ufunc, keys: tuple[Key, ...]) -> np.dtype:
    """The dtype in which JAX computes what a ufunc computes."""
    joined = join(tuple([(WEAK_DTYPES[k], True) if k in WEAK_DTYPES else (k, False) for k in keys]))
    if is_inexact(joined) or ufunc in (np.floor, np.ceil, np.trunc):  # of integers, they are of NumPy 2.1
        return joined
    if ufunc is not np.reciprocal:
        loop = resolve_ufunc(ufunc, ((joined, False),) * ufunc.nin)[0][0]
        if not is_inexact(loop):  # NumPy computes with booleans in int8, where it has no operation for them
            return joined if joined != BOOL or loop == BOOL else INT32
    return default_float(joined)


def _as_jax(ufunc: np.ufunc, keys: tuple[Key, ...], values: Sequence[Any]) -> tuple[tuple[Key, ...], Any]:
    """The operands in the dtype in which JAX computes; weak if all are."""
    if KEY in keys or ufunc is np.ldexp:
        return keys, values
    for i, key in enumerate(keys):
        if key not in WEAK_DTYPES:
            check_supported(key, f"{ufunc.__name__}: argument {i}")
    dtype = _in_lattice(ufunc, keys)
    if all(k in WEAK_DTYPES for k in keys):
        values = [weakly_in(x, dtype) for x in values]
    else:
        values = [strong(x, dtype) for x in values]
    return (Ready,) * len(keys), values


def weakly_in(x: Value, dtype: np.dtype) -> Value:
    """A weak value in a dtype, weak."""
    if type(x) in PYTHON_KEYS:
        return WEAK_KEYS[dtype_kind(dtype)](x)
    return x if x.dtype == dtype else convert_element_type_p.bind(x, dtype=dtype, weak=True)


def operands_for(
    name: str, keys: tuple[Key, ...], values: Sequence[Any], ranks: bool = True, ufunc: np.ufunc | None = None
) -> tuple[tuple[Key, ...], Any]:
    """The operands and their keys under the options that ask for another promotion than NumPy's.

    In JAX's lattice those of `ufunc` are cast, and ready for its body.

    Raises
    ------
    DtypeError, ShapeError
        For what that option, or ``config.numpy_rank_promotion``, does not allow.
    """
    own = {k for k in keys if k not in WEAK_DTYPES}
    if config.numpy_dtype_promotion == "strict" and own and own != {common_dtype(keys)[0]}:
        raise DtypeError(
            f"{name}: no promotion from {', '.join(map(_key_name, keys))} with numpy_dtype_promotion='strict'; "
            "convert the arguments with .astype"
        )
    if ufunc is not None and promotes_as_jax():
        keys, values = _as_jax(ufunc, keys, values)
    if ranks and len({len(shape_of(x)) for x in values} - {0}) > 1 and config.numpy_rank_promotion != "allow":
        shapes = " and ".join([str(shape_of(x)) for x in values])
        message = f"{name}: operands of shapes {shapes} have different ranks; reshape one of them"
        if config.numpy_rank_promotion == "raise":
            raise ShapeError(f"{message} (numpy_rank_promotion='raise')")
        warn_user(message)
    return keys, values


def common(*values: ArrayLike) -> list[Value]:
    """Cast the values to the dtype that ``np.result_type`` gives, on which Python numbers have no influence."""
    keys = tuple(map(key_of, values))
    if has_own_rules():
        keys, values = operands_for("a function of several arrays", keys, values, ranks=False)
        if promotes_as_jax():
            to = common_dtype(keys)[0]
            return [strong(x, to) for x in values]
    plan = _common_plan(keys)
    return [x if cast is None else cast(x) for x, cast in zip(values, plan)]


def _weak_cast(key: Key, dtype: np.dtype) -> Cast:
    if WEAK_DTYPES[key] == dtype:
        return None
    number = WEAK_KEYS[dtype_kind(dtype)]

    def cast(x: Value) -> Value:
        if type(x) in PYTHON_KEYS:
            return number(x)
        return convert_element_type_p.bind(x, dtype=dtype, weak=True)

    return cast


def with_options(function: Body, ufunc: np.ufunc, args: tuple[Value, ...], options: Params) -> Any:
    """Call `function` on the arguments, cast to the dtypes that the keyword arguments of NumPy's ufuncs request.

    Raises
    ------
    ArgumentError
        For `where`, and for an unknown keyword.
    DtypeError
        If `casting` does not allow a cast that is needed, or the ufunc has no loop for `dtype`.
    """
    name = function.__name__
    refuse_out(name, options.pop("out", None))
    where = options.pop("where", True)
    if where is not True and where is not np.True_:
        raise ArgumentError(
            f"{name}: where= leaves elements of the result undefined; write "
            f"functrans.numpy.where(condition, {name}(...), other)"
        )
    casting = options.pop("casting", "same_kind")
    one_of(casting, CASTINGS, f"{name}: casting")
    one_of(options.pop("order", "K"), "KACF", f"{name}: order")
    FLAG.check(options.pop("subok", True), name, "subok")
    dtype = options.pop("dtype", None)
    if options:
        raise ArgumentError(
            f"{name}: unknown keyword argument {next(iter(options))!r}; dtype= and casting= are supported"
        )
    values = [operand(x, name, i) for i, x in enumerate(args)]
    if dtype is None and casting == "same_kind":
        return function(*values)
    to = None if dtype is None else canonical(dtype, f"{name}: dtype")
    return without(function, *_cast_to(name, ufunc, values, to, casting))  # in the dtype that was requested


def _cast_to(name: str, ufunc: np.ufunc, values: list[Value], to: np.dtype | None, casting: Any) -> list[Any]:
    """Cast the operands to the dtypes of the loop whose result has dtype `to`, if `casting` allows it."""
    keys = [key_of(x) for x in values]
    if to is None:
        dtypes = resolved(ufunc, tuple(keys))
    else:
        unresolved = (*keys, *[None] * ufunc.nout)
        signature = (*[None] * ufunc.nin, *[to] * ufunc.nout)
        try:
            dtypes = loop_dtypes(ufunc, unresolved, signature=signature, casting=casting)[: ufunc.nin]
        except TypeError as error:
            raise DtypeError(
                f"{name}: with dtype={to} and casting={casting!r} it has no loop for "
                f"{', '.join(map(_key_name, keys))}: {error}. Convert the arguments with .astype"
            ) from None
    for i, (key, dtype) in enumerate(zip(keys, dtypes)):
        if key not in WEAK_DTYPES and not np.can_cast(key, dtype, casting):
            raise DtypeError(
                f"{name}: argument {i} of dtype {key} cannot be cast to {dtype} with casting={casting!r}; "
                "convert it with .astype"
            )
    return [strong(x, check_supported(d, f"{name}: dtype")) for x, d in zip(values, dtypes)]


def _key_name(key: Key) -> str:
    return key.__name__ if isinstance(key, type) else str(key)


def refuse_out(name: str, out: ArrayLike) -> None:
    """Raise if the caller passed an array to write into."""
    if out is not None and not (type(out) is tuple and len(out) > 0 and all(x is None for x in out)):
        raise ImmutableArrayError(
            f"{name}(..., out=x): functrans does not write into arrays. Use the returned value"
        )


def with_the_name(error: Exception, name: str, *args: ArrayLike) -> Exception:
    """Return an error that names the function, for shapes that do not broadcast and for numbers out of range.
    Other errors are returned unchanged.
    """
    if isinstance(error, OverflowError):
        for i, x in enumerate(args):
            if type(x) is int and not -(2**63) <= x < 2**64:
                return too_large(x, f"{name}: argument {i}: ")
        return IntegerRangeError(
            f"{name}: {error.message if isinstance(error, IntegerRangeError) else error}"
        )
    try:
        broadcast_shapes(name, *[shape_of(x) for x in args])
    except ShapeError as better:
        return better
    return error

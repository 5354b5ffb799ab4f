"""Options as context managers, under JAX's names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from ..arrays.arguments import FLAG
from ..core import Attachment, Primitive, Trace, Tracer, boundary
from ..core.trace import current_trace, eval_trace, tracing
from ..core.values import Params
from ..frontend.checked import checked
from ..runtime.config import config
from ..runtime.context import Override
from ..runtime.module_getattr import lazy_import

_key_uses = lazy_import("functrans.control.key_uses")


@checked
def debug_nans(new_val: bool = True) -> Override:
    """Raise `NaNError` where a NaN appears, within a block: ``config.patch(debug_nans=new_val)``.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> with ft.debug_nans(True):
    ...     ft.jit(lambda x: fnp.sqrt(x) + 1.0)(-1.0)
    Traceback (most recent call last):
    ...
    functrans.errors.NaNError: sqrt returned NaN...
    """
    return config.patch(debug_nans=new_val)


@checked
def debug_infs(new_val: bool = True) -> Override:
    """Raise `InfError` where an infinity appears, within a block: ``config.patch(debug_infs=new_val)``.

    Examples
    --------
    >>> import functrans as ft
    >>> with ft.debug_infs(True):
    ...     ft.jit(lambda x: 1.0 / x)(0.0)
    Traceback (most recent call last):
    ...
    functrans.errors.InfError: div returned inf...
    """
    return config.patch(debug_infs=new_val)


@contextmanager
def debug_key_reuse(val: bool = True) -> Iterator[None]:
    """Raise an error when a key of `functrans.random` is used twice within the block.

    Parameters
    ----------
    val : bool

    Raises
    ------
    KeyReuseError
        When the second use runs, also in a compiled function, a loop, or a lane of `vmap`.

    Examples
    --------
    >>> import functrans as ft
    >>> from functrans import random
    >>> with ft.debug_key_reuse():
    ...     first, second = random.split(random.key(0))
    ...     x = random.normal(first) + random.normal(second)
    """
    val = FLAG.check(val, "debug_key_reuse", "val")
    if val and not config.debug_key_reuse:
        _key_uses.forget()
    with config.patch(debug_key_reuse=val):
        yield


@checked
def log_compiles(new_val: bool = True) -> Override:
    """Log compilations to the logger ``functrans``, within a block: ``config.patch(log_compiles=new_val)``.

    Examples
    --------
    >>> import functrans as ft
    >>> with ft.log_compiles():
    ...     ft.jit(lambda x: x + 1.0)(2.0)
    Array(3.)
    """
    return config.patch(log_compiles=new_val)


@checked
def check_tracer_leaks(new_val: bool = True) -> Override:
    """Find traced values that outlive their traces, within a block: ``config.patch(check_tracer_leaks=new_val)``.

    Examples
    --------
    >>> import functrans as ft
    >>> kept = []
    >>> with ft.check_tracer_leaks():
    ...     ft.jit(lambda x: kept.append(x * 2.0))(1.0)
    Traceback (most recent call last):
    ...
    functrans.errors.UnexpectedTracerError: a traced value of type f64[]* (traced by jit of <lambda>) outlives...
    """
    return config.patch(check_tracer_leaks=new_val)


@checked
def checking_leaks() -> Override:
    """The same as ``check_tracer_leaks(True)``.

    Examples
    --------
    >>> import functrans as ft
    >>> with ft.checking_leaks():
    ...     ft.jit(lambda x: x * 2.0)(1.0)
    Array(2.)
    """
    return config.patch(check_tracer_leaks=True)


@checked
def no_tracing(new_val: bool = True) -> Override:
    """Refuse to trace, within a block, so that only compiled programs run: ``config.patch(no_tracing=new_val)``.

    Examples
    --------
    >>> import functrans as ft
    >>> f = ft.jit(lambda x: 2.0 * x)
    >>> _ = f(1.0)
    >>> with ft.no_tracing():
    ...     f(3.0)
    Array(6.)
    """
    return config.patch(no_tracing=new_val)


@checked
def enable_x64(new_val: bool = True) -> Override:
    """Whether arrays may have 64 bits, within a block: ``config.patch(enable_x64=new_val)``.

    Raises
    ------
    ConfigError
        For ``enable_x64(False)`` without ``config.jax_semantics``: make the arguments float32 instead.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> with ft.enable_x64(True):
    ...     fnp.ones(2).dtype
    dtype('float64')
    """
    return config.patch(enable_x64=new_val)


@checked
def numpy_dtype_promotion(new_val: str) -> Override:
    """How arithmetic combines dtypes, within a block: ``config.patch(numpy_dtype_promotion=new_val)``.

    Parameters
    ----------
    new_val : {'standard', 'strict'}
        NumPy's promotion, or an error.

    Notes
    -----
    It applies to traced values and functions of ``functrans.numpy``. Operators between arrays outside of
    transformations are NumPy's.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> with ft.numpy_dtype_promotion("strict"):
    ...     fnp.add(fnp.ones(2), fnp.ones(2, "float32"))
    Traceback (most recent call last):
    ...
    functrans.errors.DtypeError: add: no promotion from float64, float32...
    """
    return config.patch(numpy_dtype_promotion=new_val)


@checked
def numpy_rank_promotion(new_val: str) -> Override:
    """How arithmetic combines arrays of different ranks, within a block.

    The same as ``config.patch(numpy_rank_promotion=new_val)``.

    Parameters
    ----------
    new_val : {'allow', 'warn', 'raise'}

    Notes
    -----
    It applies to traced values and functions of ``functrans.numpy``. Operators between arrays outside of
    transformations are NumPy's.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> with ft.numpy_rank_promotion("raise"):
    ...     fnp.add(fnp.ones((2, 3)), fnp.ones(3))
    Traceback (most recent call last):
    ...
    functrans.errors.ShapeError: add: operands of shapes (2, 3) and (3,) have different ranks...
    """
    return config.patch(numpy_rank_promotion=new_val)


@checked
def default_matmul_precision(new_val: Any) -> Override:
    """Accepted for compatibility with JAX: on a CPU, products always have the precision of their dtype.

    Examples
    --------
    >>> import functrans as ft
    >>> with ft.default_matmul_precision("float32"):
    ...     ft.numpy.dot(2.0, 3.0)
    Array(6.)
    """
    return config.patch(default_matmul_precision="" if new_val is None else str(new_val))


class _CompileTime(Trace):
    """Computes operations on known values now, whatever is being traced; those on traced values belong outside."""

    __slots__ = ("outer",)

    def __init__(self, outer: Trace | None):
        self.outer = current_trace.get()
        self.parent = eval_trace

    def process(self, prim: Primitive, args: tuple[Any, ...], params: Params) -> Any:
        if any(isinstance(a, Tracer) for a in args):
            return tracing(self.outer, partial(self.outer.process, prim, args, params))
        return eval_trace.process(prim, args, params)

    def attach(self, attachment: Attachment) -> bool:
        return self.outer.attach(attachment)


@boundary
@checked
def ensure_compile_time_eval() -> Override:
    """Compute the operations of a block at once, even while a function is being traced.

    Operations on traced values cannot be computed at once. They are traced as outside of the block.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> @ft.jit
    ... def f(x):
    ...     with ft.ensure_compile_time_eval():
    ...         n = int(fnp.sum(fnp.arange(4)))  # a number, not a traced value
    ...     return x * fnp.ones(n)
    >>> f(2.0).shape
    (6,)
    """
    return Override(current_trace, _CompileTime)

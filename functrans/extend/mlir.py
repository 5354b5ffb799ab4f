"""Lowering rules in the form of ``jax.interpreters.mlir``, as far as they are functions that can be traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..arrays.array import wrap
from ..runtime.module_getattr import module_attributes as _module_attributes
from ..runtime.records import dataclass
from .primitive import ExtendedPrimitive
from .registries import primitive_example

__all__ = ["lower_fun", "register_lowering"]
__getattr__, __dir__ = _module_attributes(
    "functrans.extend.mlir",
    globals(),
    {
        "emit_python_callback": "Call functrans.pure_callback in the implementation of the primitive: def_impl",
        "ir": "functrans lowers to LLVM: give the primitive an implementation by functions of functrans, def_impl",
    },
)


@dataclass(frozen=True)
class LoweredFunction:
    """A lowering by a function of arrays."""

    fun: Callable[..., Any]
    multiple_results: bool


@primitive_example
def lower_fun(fun: Callable[..., Any], multiple_results: bool = True) -> LoweredFunction:
    """A lowering rule from a function of arrays, for `register_lowering`.

    Examples
    --------
    >>> _ = extend.mlir.register_lowering(p, extend.mlir.lower_fun(lambda x: x * x * x, multiple_results=False))
    >>> ft.jit(p.bind)(2.0)
    Array(8.)
    """
    return LoweredFunction(fun, multiple_results)


@primitive_example
def register_lowering(
    prim: ExtendedPrimitive, rule: Any = None, platform: str | None = None, **options: Any
) -> Any:
    """Say what a primitive is in compiled programs.

    Parameters
    ----------
    prim : functrans.extend.core.Primitive
    rule : callable
        What `lower_fun` returns. Any other rule makes code for another compiler: it is ignored, and the primitive's
        implementation (`def_impl`) is compiled.
    platform : str, optional
        A rule for another platform than ``"cpu"`` is ignored.

    Returns
    -------
    callable
        `rule`; without one, a decorator.

    Examples
    --------
    >>> _ = extend.mlir.register_lowering(p, extend.mlir.lower_fun(lambda x: x * x * x, multiple_results=False))
    >>> ft.jit(p.bind)(2.0)
    Array(8.)
    """
    if rule is None:
        return lambda given: register_lowering(prim, given, platform, **options)
    if (
        isinstance(rule, LoweredFunction)
        and platform in (None, "cpu")
        and isinstance(prim, ExtendedPrimitive)
    ):
        fun = rule.fun
        prim.lowered = lambda *args, **params: prim._results(fun(*map(wrap, args), **params))
    return rule

"""Derivative rules in the form of ``jax.interpreters.ad``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..arrays.array import wrap
from ..core import Linear, Zero
from ..primitives.structure.linear import added, instantiate
from ..runtime.module_getattr import module_attributes as _module_attributes
from ..transforms.jvp import JVPTracer
from .primitive import ExtendedPrimitive, typed, unwrapped
from .registries import Registry, primitive_example

__all__ = [
    "JVPTracer", "UndefinedPrimal", "Zero", "add_tangents", "defjvp", "deflinear2", "instantiate_zeros",
    "is_undefined_primal", "primitive_jvps", "primitive_transposes", "zeros_like_aval",
]  # fmt: skip
__getattr__, __dir__ = _module_attributes("functrans.extend.ad", globals())

#: A linear argument of a transpose rule.
UndefinedPrimal = Linear


def is_undefined_primal(x: Any) -> bool:
    """Whether an argument of a transpose rule is one that the operation is linear in.

    Examples
    --------
    >>> from functrans import extend
    >>> extend.ad.is_undefined_primal(1.0)
    False
    """
    return type(x) is Linear


def instantiate_zeros(t: Any) -> Any:
    """A tangent as an array, even if it is a symbolic zero.

    Examples
    --------
    >>> from functrans import extend
    >>> extend.ad.instantiate_zeros(extend.ad.Zero(1.0))
    Array(0.)
    """
    return wrap(instantiate(t)) if isinstance(t, Zero) else t


def zeros_like_aval(aval: Any) -> Any:
    """An array of zeros of this type.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> from functrans import extend
    >>> extend.ad.zeros_like_aval(extend.core.get_aval(fnp.ones(2)))
    Array([0., 0.])
    """
    return wrap(instantiate(Zero(aval)))


def add_tangents(x: Any, y: Any) -> Any:
    """The sum of two tangents, either of which may be a symbolic zero.

    Examples
    --------
    >>> from functrans import extend
    >>> extend.ad.add_tangents(extend.ad.Zero(1.0), 2.0)
    Array(2.)
    """
    return wrap(added(unwrapped(x), unwrapped(y)))


def _user(x: Any) -> Any:
    return x if isinstance(x, Zero | Linear) else wrap(x)


def _jvp(prim: ExtendedPrimitive, rule: Callable[..., Any]) -> Callable[..., Any]:
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        out, tangent = rule(tuple(map(wrap, primals)), tuple(map(_user, tangents)), **params)
        if not prim.multiple_results:
            return unwrapped(out), unwrapped(tangent)
        return list(map(unwrapped, out)), list(map(unwrapped, tangent))

    return jvp


def _transpose(prim: ExtendedPrimitive, rule: Callable[..., Any]) -> Callable[..., Any]:
    def transpose(ct: Any, *args: Any, **params: Any) -> list[Any]:
        cts = list(map(_user, ct)) if prim.multiple_results else _user(ct)
        return list(map(unwrapped, rule(cts, *map(_user, args), **params)))

    return transpose


#: ``rule(primals, tangents, **params) -> (out, tangent)``; a tangent may be a `Zero`.
primitive_jvps = Registry("ad.primitive_jvps", "jvp", _jvp)
#: ``rule(ct, *args, **params)``: a cotangent, or None, for each argument; linear ones are `UndefinedPrimal`.
primitive_transposes = Registry("ad.primitive_transposes", "transpose", _transpose)


@primitive_example
def defjvp(prim: ExtendedPrimitive, *rules: Callable[..., Any] | None) -> None:
    """Set the derivative of a primitive of one result from one rule for each argument.

    Parameters
    ----------
    prim : functrans.extend.core.Primitive
    *rules : callable or None
        ``rule(tangent, *primals, **params)``; None where the derivative is zero.

    Examples
    --------
    >>> extend.ad.defjvp(p, lambda t, x: 3.0 * x**2 * t)
    >>> ft.grad(p.bind)(2.0)
    Array(12.)
    """

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        out = prim.bind(*primals, **params)
        total: Any = Zero(typed(out))
        for rule, t in zip(rules, tangents):
            if rule is not None and not isinstance(t, Zero):
                total = add_tangents(total, rule(t, *primals, **params))
        return out, total

    primitive_jvps[prim] = jvp


def _linear(prim: ExtendedPrimitive, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
    out = prim.bind(*primals, **params)
    if all(isinstance(t, Zero) for t in tangents):
        return out, ([Zero(typed(x)) for x in out] if prim.multiple_results else Zero(typed(out)))
    return out, prim.bind(*map(instantiate_zeros, tangents), **params)


@primitive_example
def deflinear2(prim: ExtendedPrimitive, transpose: Callable[..., Any]) -> None:
    """Declare a primitive linear in all arguments, with its transpose.

    Examples
    --------
    >>> extend.ad.deflinear2(double, lambda ct, x: [2.0 * ct])
    >>> ft.grad(double.bind)(1.0)
    Array(2.)
    """
    primitive_jvps[prim] = partial(_linear, prim)
    primitive_transposes[prim] = transpose

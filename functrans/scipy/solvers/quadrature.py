"""Integrals over an interval, by QUADPACK, with the derivatives of Leibniz's rule.

The derivative of ``F(a, b, c) = integral of f(t, c) for t from a to b`` is ::

    dF = f(b, c) db - f(a, c) da + integral of (df/dc)(t, c) dc

whose last term is another integral: of one number in forward mode, of as many as `c` has in reverse mode. So one
`Function` serves derivatives of any order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from ...core.aval import aval_of
from ...core.values import ArrayLike, PyTree, Value
from ...custom.closures import Sealed
from ...custom.function import Function
from ...frontend.structs import ShapeDtypeStruct, struct_of
from ...passes.masks import scatter
from ...runtime.libraries import scipy
from ...runtime.records import dataclass
from ..patched import unpatched
from .callbacks import Callback, as_array, is_differentiable, pulled, pushed


class Integrand:
    """A function of a number and flat operands, whose values are a list of arrays."""

    def values(self, t: ArrayLike, operands: Sequence[Any]) -> list[Any]:
        """The values at `t`."""
        raise NotImplementedError

    def types(self, operands: Sequence[Any]) -> list[ShapeDtypeStruct]:
        """Their shapes and dtypes."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class UserIntegrand(Integrand):
    """The user's integrand."""

    callback: Callback

    def values(self, t: ArrayLike, operands: Sequence[Value]) -> list[Value]:
        """The values at `t`."""
        return [as_array(self.callback(operands, t))]

    def types(self, operands: Sequence[Any]) -> list[ShapeDtypeStruct]:
        """Their shapes and dtypes."""
        return [ShapeDtypeStruct((), np.dtype(float))]


@dataclass(frozen=True, eq=False)
class TangentIntegrand(Integrand):
    """The tangents of an integrand; the tangents of marked operands follow the operands."""

    of: Integrand
    has_tangent: tuple[bool, ...]

    def values(self, t: ArrayLike, operands: Sequence[Any]) -> list[Any]:
        """The values at `t`."""
        count = len(self.has_tangent)
        tangents = scatter(self.has_tangent, operands[count:])
        return pushed(lambda *cs: self.of.values(t, cs), operands[:count], tangents)

    def types(self, operands: Sequence[Any]) -> list[ShapeDtypeStruct]:
        """Their shapes and dtypes."""
        return self.of.types(operands[: len(self.has_tangent)])


@dataclass(frozen=True, eq=False)
class Pulled(Integrand):
    """The cotangents of the marked operands; the cotangents of the values follow the operands."""

    of: Integrand
    has_tangent: tuple[bool, ...]

    def values(self, t: ArrayLike, operands: Sequence[Value]) -> list[Value]:
        """The values at `t`."""
        count = len(self.has_tangent)
        return pulled(lambda *cs: self.of.values(t, cs), operands[:count], self.has_tangent, operands[count:])

    def types(self, operands: Sequence[Any]) -> list[ShapeDtypeStruct]:
        """Their shapes and dtypes."""
        return [_like(x) for x, m in zip(operands, self.has_tangent) if m]


@dataclass(frozen=True, eq=False)
class Integral(Sealed):
    """An integrand and the options of its integration.

    Attributes
    ----------
    integrand : Integrand
    options : dict
        Arguments of ``scipy.integrate.quad``.
    """

    integrand: Integrand
    options: dict[str, Any] = field(default_factory=dict)

    def of(self, integrand: Integrand) -> Integral:
        """The integral of another integrand, with the same options."""
        return Integral(integrand, self.options)

    def computed(self, a: Value, b: Value, operands: Sequence[Value]) -> tuple[tuple[Any, ...], Any]:
        """The integrals, and the estimate of the largest error."""
        if isinstance(self.integrand, UserIntegrand):
            callback = self.integrand.callback
            solver = unpatched(scipy.integrate.quad)
            value, error = callback.reading(
                operands, lambda for_scipy: solver(for_scipy(callback.fun), a, b, **self.options)[:2]
            )
            return (np.asarray(value, float),), np.asarray(error)
        return self._each(a, b, operands)

    def _each(self, a: Value, b: Value, operands: Sequence[ArrayLike]) -> tuple[tuple[Any, ...], Any]:
        """Integrates number by number; all share the evaluations of the integrand."""
        computed: dict[float, np.ndarray] = {}

        def at(t: float) -> np.ndarray:
            value = computed.get(t)
            if value is None:
                values = self.integrand.values(t, operands)
                value = computed[t] = np.concatenate([np.ravel(np.asarray(v)) for v in values])
            return value

        def number(i: int) -> Callable[[float], float]:
            return lambda t: at(t)[i]

        types = self.integrand.types(operands)
        sizes = [int(np.prod(s.shape)) for s in types]
        results = [
            unpatched(scipy.integrate.quad)(number(i), a, b, **self.options)[:2] for i in range(sum(sizes))
        ]
        values = np.array([value for value, _ in results], float)
        parts = np.split(values, np.cumsum(sizes)[:-1])
        shaped = tuple([p.reshape(s.shape).astype(s.dtype) for p, s in zip(parts, types)])
        return shaped, np.asarray(max([error for _, error in results], default=0.0))


class Quad(Function):
    """Integrals over one variable, differentiable in the limits and in the values that the integrand reads."""

    host = True
    vmap_method = "sequential"

    @staticmethod
    def forward(integral: Integral, a: ArrayLike, b: ArrayLike, *operands: ArrayLike) -> PyTree:
        """The solution."""
        return integral.computed(a, b, operands)

    @staticmethod
    def shape(integral: Integral, a: ArrayLike, b: ArrayLike, *operands: ArrayLike) -> Any:
        """Its shape and dtype."""
        return tuple(integral.integrand.types(operands)), ShapeDtypeStruct((), np.dtype(float))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: ArrayLike) -> None:
        """Save the values that the rules need."""
        ctx.integral, ctx.a, ctx.b, *operands = inputs
        ctx.operands = tuple(operands)
        ctx.mark_non_differentiable(output[1])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, cts: ArrayLike, _: object) -> tuple[ArrayLike, ...]:
        """Reverse mode."""
        integrand, operands = ctx.integral.integrand, ctx.operands
        needs_a, needs_b, *needs = ctx.needs_input_grad[1:]
        if all(ct is None for ct in cts):
            return (None,) * (3 + len(operands))
        cts = [_zeros(s) if ct is None else ct for s, ct in zip(integrand.types(operands), cts)]
        has_tangent = tuple([n and is_differentiable(x) for n, x in zip(needs, operands)])
        back: Iterator[Any] = iter(())
        if any(has_tangent):
            pull = ctx.integral.of(Pulled(integrand, has_tangent))
            back = iter(Quad.apply(pull, ctx.a, ctx.b, *operands, *cts)[0])

        def at(x: Value) -> Any:
            return sum([(v * ct).sum() for v, ct in zip(integrand.values(x, operands), cts)])

        limits = -at(ctx.a) if needs_a else None, at(ctx.b) if needs_b else None
        return (None, *limits, *scatter(has_tangent, back))

    @staticmethod
    def jvp(ctx: Any, _: object, a: Value, b: Value, *tangents: Any) -> Any:
        """Forward mode."""
        integrand, operands = ctx.integral.integrand, ctx.operands
        has_tangent = tuple([t is not None for t in tangents])
        total: list[Any] = [_zeros(s) for s in integrand.types(operands)]
        if any(has_tangent):
            push = ctx.integral.of(TangentIntegrand(integrand, has_tangent))
            given = [t for t in tangents if t is not None]
            total = list(Quad.apply(push, ctx.a, ctx.b, *operands, *given)[0])
        for x, t, sign in ((ctx.a, a, -1.0), (ctx.b, b, 1.0)):
            if t is not None:
                total = [y + sign * t * v for y, v in zip(total, integrand.values(x, operands))]
        return tuple(total), None


def _like(x: Value) -> ShapeDtypeStruct:
    return x if isinstance(x, ShapeDtypeStruct) else struct_of(aval_of(x).strong())


def _zeros(like: ShapeDtypeStruct) -> np.ndarray:
    return np.zeros(like.shape, like.dtype)

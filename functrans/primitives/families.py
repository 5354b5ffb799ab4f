"""Rules that follow from a primitive's family, written once.

`elementwise` supplies broadcasting, batching, the jvp (from the derivative in each operand), and transposition where
the operation is linear. A derivative has one of two forms. None stands for an operand on which the output does not
depend smoothly (``floor``).

* A *factor*, as in ``factors=(lambda ans, x: cos(x),)``, multiplies the operand's tangent.
* A *term*, as in ``terms=(lambda t, ans, x: div(t, x),)``, is the contribution of the operand's tangent `t`.

A *transpose*, as in ``transposes=(lambda ct, x, y: div(ct, y), None)``, takes the output's cotangent to that
operand's, for operands in which the operation is linear.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

import numpy as np

from ..core import (
    FLOAT64,
    Aval,
    KernelRule,
    Linear,
    Pointwise,
    Primitive,
    Zero,
    current_trace,
)
from ..core.values import ArrayLike, Param, Params, Tangent, Value
from ..errors import NoRuleError
from ..passes.rewriter import Hole, Yields
from .axes import broadcast_shapes, same_dtype
from .structure.linear import (
    Rule,
    add_p,
    added,
    broadcast_to,
    dtype_of,
    elementwise_batch,
    shape_of,
    unbroadcast,
)


def elementwise(
    name: str,
    impl: Rule,
    *,
    factors: Sequence[Rule | None] | None = None,
    terms: Sequence[Rule | None] | None = None,
    transposes: Sequence[Rule | None] = (),
    linear: bool = False,
    taylor: Rule | None = None,
    guard: Rule | None = None,
    kernel: Rule | KernelRule | None = None,
    kinds: str = "biufc",
    out: Callable[[np.dtype], np.dtype] | None = None,
    weak: bool = True,
    moves_data: bool = False,
    tests_equality: bool = False,
    simplify: Rule | None = None,
    commutes: bool = False,
) -> Primitive:
    """An elementwise primitive over operands of one dtype that broadcast together.

    Parameters
    ----------
    name : str
    impl : callable
        NumPy's function (the ufunc itself, where one exists).
    factors : sequence of callable or None, optional
        For each operand ``factor(ans, *operands)``. Without `factors` and `terms` the derivative is 0 everywhere
        (comparisons).
    terms : sequence of callable or None, optional
        For each operand ``term(t, ans, *operands)``, instead of `factors`.
    transposes : sequence of callable or None
        For each operand ``transpose(ct, *operands)`` with `Linear` in place of the linear one.
    linear : bool
        Whether it is linear in its only operand; then `factors` and `terms` are not needed.
    taylor : callable, optional
        The recurrence of its Taylor coefficients, if that of its jvp rule takes more operations.
    guard : callable, optional
        What can fail; see `functrans.core.primitive`.
    kernel : callable or KernelRule
        ``emit(k, *scalars, **params)``.
    kinds : str
        The dtype kinds that it accepts, as in `numpy.dtype.kind`.
    out : callable, optional
        Maps the operands' dtype to the output's; by default they are equal.
    weak : bool
        Whether weak operands give a weak output (false for comparisons).
    moves_data, tests_equality, simplify, commutes
        See `functrans.core.primitive`.
    """
    if linear:
        terms = (lambda t, ans, x: prim.bind(t),)
    elif terms is None:
        factors = (None,) * _MOST_OPERANDS if factors is None else factors
        terms = [None if factor is None else _product(factor) for factor in factors]
    # The jvp rule needs the primitive, which is made after it.
    this: list[Primitive] = []
    prim: Primitive = Primitive(
        name,
        _elementwise_abstract(name, kinds, out, weak),
        impl,
        jvp={1: _unary_jvp, 2: _binary_jvp}.get(len(terms), _sum_of_terms)(this, terms),
        factors=None if factors is None else tuple(factors),
        linear=linear,
        taylor=taylor,
        guard=guard,
        transpose=_elementwise_transpose(transposes) if transposes else None,
        batch=lambda size, args, dims, **params: elementwise_batch(prim, args, dims, **params),
        kernel=Pointwise(kernel) if callable(kernel) else kernel,
        weak=weak,
        moves_data=moves_data,
        tests_equality=tests_equality,
        # NumPy's and ml_dtypes' loops for float16 and bfloat16 compute in float32 themselves.
        in_float32=not (isinstance(impl, np.ufunc) or moves_data),
        simplify=simplify,
        commutes=commutes,
        file=sys._getframe(1).f_code.co_filename,
    )
    this.append(prim)
    return prim


_MOST_OPERANDS = 3


def literal(value: float, like: ArrayLike) -> Any:
    """Return `value` in the dtype of `like`, so that a rule can combine the two."""
    dtype = dtype_of(like)
    # NumPy combines arrays with a Python float faster than with NumPy's scalars.
    return float(value) if dtype is FLOAT64 else dtype.type(value)


def _elementwise_abstract(
    name: str, kinds: str, out: Callable[[np.dtype], np.dtype] | None, weak: bool
) -> Rule:
    def abstract(*avals: Aval, **params: Param) -> Aval:
        first = avals[0]
        dtype = first.dtype
        if out is None and dtype.kind in kinds:
            # In almost all calls an operand's aval is the answer.
            if len(avals) == 1:
                return first if weak or not first.weak else first.strong()
            if len(avals) == 2:
                second = avals[1]
                if second.dtype is dtype and not first.weak and second.shape in (first.shape, ()):
                    return first
        dtype = same_dtype(name, avals, kinds)
        shape = broadcast_shapes(name, *[a.shape for a in avals])
        return Aval(shape, dtype if out is None else out(dtype), weak and all(a.weak for a in avals))

    return abstract


# --- derivatives -------------------------------------------------------------------------------------------

# One jvp per number of operands: eager differentiation spends its time here.


def _product(factor: Rule) -> Rule:
    def term(t: Value, ans: Value, *operands: Value, **params: Param) -> Value:
        return mul_p.bind(t, factor(ans, *operands, **params))

    return term


def _unary_jvp(this: list[Primitive], terms: Sequence[Rule | None]) -> Rule:
    (term,) = terms

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Param) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        ans = current_trace.get().process(this[0], (x,), params)
        if term is None or type(t) is Zero:
            return ans, Zero(ans)
        return ans, term(t, ans, x, **params)

    return jvp


def _binary_jvp(this: list[Primitive], terms: Sequence[Rule | None]) -> Rule:
    first, second = terms

    def jvp(primals: Sequence[Any], tangents: Sequence[Tangent], **params: Param) -> tuple[Any, Any]:
        (x, y), (s, t) = primals, tangents
        ans = current_trace.get().process(this[0], (x, y), params)
        total = None
        if type(s) is not Zero and first is not None:
            total = first(s, ans, x, y, **params)
        if type(t) is not Zero and second is not None:
            part = second(t, ans, x, y, **params)
            total = part if total is None else add_p.bind(total, part)
        if total is None:
            return ans, Zero(ans)
        return ans, broadcast_to(total, shape_of(ans))

    return jvp


def _sum_of_terms(this: list[Primitive], terms: Sequence[Rule | None]) -> Rule:
    def jvp(primals: Sequence[Any], tangents: Sequence[Tangent], **params: Param) -> tuple[Any, Any]:
        ans = this[0].bind(*primals, **params)
        total = None
        for term, t in zip(terms, tangents):
            if type(t) is not Zero and term is not None:
                part = term(t, ans, *primals, **params)
                total = part if total is None else add_p.bind(total, part)
        return ans, Zero(ans) if total is None else broadcast_to(total, shape_of(ans))

    return jvp


def _elementwise_transpose(transposes: Sequence[Rule | None]) -> Rule:
    def transpose(ct: Any, *args: Any, **params: Param) -> list[Any]:
        cts: list[Tangent] = [None] * len(args)
        for i, a in enumerate(args):
            if type(a) is Linear:
                rule = transposes[i]
                if rule is None:
                    raise NoRuleError(f"it divides by a value of type {a.aval} that depends on its arguments")
                cts[i] = unbroadcast(rule(ct, *args, **params), a.aval)
        return cts

    first = transposes[0]
    return transpose if first is None or len(transposes) != 2 else _short_transpose(first, transpose)


def _short_transpose(first: Rule, general: Rule) -> Rule:
    """Return a fast transpose for the commonest case: two operands, linear in the first."""

    def transpose(ct: Value, x: Any, y: Any) -> list[Any]:
        if type(y) is Linear:
            return general(ct, x, y)
        out = first(ct, x, y)
        return [out if shape_of(out) == x.aval.shape else unbroadcast(out, x.aval), None]

    return transpose


# --- the product, which all derivatives are made with ------------------------------------------------------


def of_product(prim: Primitive, out: Any, operands: Sequence[Any], params: Params) -> Iterator[Any]:
    """Taylor coefficients of an operation that is linear in each of two operands: Cauchy's product."""
    x, y = operands
    for k in count(1):
        total: Any = Zero(out[0])
        for j in range(k + 1):
            if type(x[j]) is not Zero and type(y[k - j]) is not Zero:
                total = added(total, prim.bind(x[j], y[k - j], **params))
        yield total


mul_p: Primitive = elementwise(
    "mul",
    np.multiply,
    factors=(lambda ans, x, y: y, lambda ans, x, y: x),
    transposes=(lambda ct, x, y: mul_p.bind(ct, y), lambda ct, x, y: mul_p.bind(x, ct)),
    taylor=of_product,
    kernel=lambda k, x, y: x & y if x.dtype.kind == "b" else x * y,
    simplify=Yields(1, Hole("x")),
    commutes=True,
)

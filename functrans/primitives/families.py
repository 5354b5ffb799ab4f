"""What follows from a primitive's family, so that no rule is written twice.

`elementwise` fills in broadcasting, batching, the jvp from one term for each operand, and transposition where the
operation is linear.

A *term*, as in ``terms=(lambda t, ans, x: mul(t, cos(x)),)``, is the contribution of one operand's tangent `t`; None
marks an operand on which the output does not depend smoothly (``floor``). A *transpose*, as in ``transposes=(lambda ct, x,
y: mul(ct, y), ...)``, takes the output's cotangent to that operand's, for operands in which the operation is linear.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.aval import Aval, Zero
from ..core.dtypes import FLOAT64
from ..core.kernel import KernelRule, Pointwise
from ..core.primitive import Linear, Primitive
from ..core.trace import current_trace
from .linear import (
    Rule,
    add_p,
    broadcast_shapes,
    broadcast_to,
    dtype_of,
    elementwise_batch,
    same_dtype,
    shape_of,
    unbroadcast,
)


def elementwise(
    name: str,
    impl: Rule,
    *,
    terms: Sequence[Rule | None] = (),
    transposes: Sequence[Rule | None] = (),
    kernel: Rule | KernelRule | None = None,
    kinds: str = "biufc",
    out: Callable[[np.dtype], np.dtype] | None = None,
    weak: bool = True,
) -> Primitive:
    """An elementwise primitive over operands of one dtype that broadcast together.

    Parameters
    ----------
    name : str
    impl : callable
        NumPy's function (a ufunc as it is, where one exists).
    terms : sequence of callable or None
        For each operand ``term(t, ans, *operands)``; empty where no derivative exists anywhere (comparisons).
    transposes : sequence of callable or None
        For each operand ``transpose(ct, *operands)`` with `Linear` in the place of the linear one.
    kernel : callable or KernelRule
        ``emit(k, *scalars, **params)``.
    kinds : str
        The dtype kinds that it takes, as in `numpy.dtype.kind`.
    out : callable, optional
        The output's dtype from the operands'; by default the same.
    weak : bool
        Whether the output of weak operands is weak (false for comparisons).
    """

    def abstract(*avals: Aval, **params: Any) -> Aval:
        first = avals[0]
        dtype = first.dtype
        if out is None and dtype.kind in kinds:
            # Nearly always nothing has to be built.
            if len(avals) == 1:
                return first if weak or not first.weak else first.strong()
            if len(avals) == 2:
                second = avals[1]
                if second.dtype is dtype and not first.weak and second.shape in (first.shape, ()):
                    return first
        dtype = same_dtype(name, avals, kinds)
        shape = broadcast_shapes(name, *[a.shape for a in avals])
        return Aval(shape, dtype if out is None else out(dtype), weak and all(a.weak for a in avals))

    this: list[Primitive] = []
    prim: Primitive = Primitive(
        name,
        abstract,
        impl,
        jvp={1: _unary_jvp, 2: _binary_jvp}.get(len(terms), _sum_of_terms)(this, terms),
        transpose=_elementwise_transpose(transposes) if transposes else None,
        batch=lambda size, args, dims, **params: elementwise_batch(prim, args, dims, **params),
        kernel=Pointwise(kernel) if callable(kernel) else kernel,
        weak=weak,
        file=sys._getframe(1).f_code.co_filename,
    )
    this.append(prim)
    return prim


def literal(value: float, like: Any) -> Any:
    """`value` in the dtype of `like`, so that a rule can combine the two."""
    dtype = dtype_of(like)
    # NumPy takes a Python float faster than any scalar of its own.
    return value if dtype is FLOAT64 else dtype.type(value)


# One jvp for each number of operands: this is where eager differentiation spends its time. `this` will hold the
# primitive that the rule belongs to.


def _unary_jvp(this: list[Primitive], terms: Sequence[Rule | None]) -> Rule:
    (term,) = terms

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        ans = current_trace.get().process(this[0], (x,), params)
        if term is None or type(t) is Zero:
            return ans, Zero(ans)
        return ans, term(t, ans, x, **params)

    return jvp


def _binary_jvp(this: list[Primitive], terms: Sequence[Rule | None]) -> Rule:
    first, second = terms

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
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
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        ans = this[0].bind(*primals, **params)
        total = None
        for term, t in zip(terms, tangents):
            if type(t) is not Zero and term is not None:
                part = term(t, ans, *primals, **params)
                total = part if total is None else add_p.bind(total, part)
        return ans, Zero(ans) if total is None else broadcast_to(total, shape_of(ans))

    return jvp


def _elementwise_transpose(transposes: Sequence[Rule | None]) -> Rule:
    def of_two(ct: Any, x: Any, y: Any) -> list[Any]:
        if type(y) is not Linear:
            out = first(ct, x, y)
            aval = x.aval
            return [out if shape_of(out) == aval.shape else unbroadcast(out, aval), None]
        return transpose(ct, x, y)

    if len(transposes) == 2:
        first = transposes[0]
        assert first is not None, "linear in the first operand at least"

    def transpose(ct: Any, *args: Any, **params: Any) -> list[Any]:
        cts: list[Any] = [None] * len(args)
        for i, a in enumerate(args):
            if type(a) is Linear:
                rule = transposes[i]
                assert rule is not None, "linear in an operand without a transpose"
                cts[i] = unbroadcast(rule(ct, *args, **params), a.aval)
        return cts

    return of_two if len(transposes) == 2 else transpose

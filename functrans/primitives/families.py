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
        dtype = same_dtype(name, avals, kinds)
        shape = broadcast_shapes(name, *[a.shape for a in avals])
        return Aval(shape, dtype if out is None else out(dtype), weak and all(a.weak for a in avals))

    prim = Primitive(
        name,
        abstract,
        impl,
        jvp=lambda primals, tangents, **params: _sum_of_terms(prim, terms, primals, tangents, **params),
        transpose=_elementwise_transpose(transposes) if transposes else None,
        batch=lambda size, args, dims, **params: elementwise_batch(prim, args, dims, **params),
        kernel=Pointwise(kernel) if callable(kernel) else kernel,
        weak=weak,
        file=sys._getframe(1).f_code.co_filename,
    )
    return prim


def literal(value: float, like: Any) -> Any:
    """`value` in the dtype of `like`, so that a rule can combine the two."""
    dtype = dtype_of(like)
    # NumPy takes a Python float faster than any scalar of its own.
    return value if dtype is FLOAT64 else dtype.type(value)


def _sum_of_terms(
    prim: Primitive,
    terms: Sequence[Rule | None],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    **params: Any,
) -> tuple[Any, Any]:
    """The jvp of a primitive from one term for each operand."""
    ans = prim.bind(*primals, **params)
    total = None
    for term, t in zip(terms, tangents):
        if type(t) is not Zero and term is not None:
            part = term(t, ans, *primals, **params)
            total = part if total is None else add_p.bind(total, part)
    if total is None:
        return ans, Zero(ans)
    shape = shape_of(ans)
    return ans, total if shape_of(total) == shape else broadcast_to(total, shape)


def _elementwise_transpose(transposes: Sequence[Rule | None]) -> Rule:
    def transpose(ct: Any, *args: Any, **params: Any) -> list[Any]:
        cts: list[Any] = [None] * len(args)
        for i, a in enumerate(args):
            if type(a) is Linear:
                rule = transposes[i]
                assert rule is not None, "linear in an operand without a transpose"
                cts[i] = unbroadcast(rule(ct, *args, **params), a.aval)
        return cts

    return transpose

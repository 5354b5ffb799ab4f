"""Where float16 and bfloat16 numbers are rounded.

Memory holds them in two bytes; registers hold them as float32 (`loops.arithmetic`). An equation between values of one
of these dtypes passes its float32 result on as it is, and only what is stored is rounded. Two kinds of equation differ:

* Sums, products of many elements and matrix products compute in float32 from end to end (`widened`). So an array that
  holds partial sums has four bytes for each, and matrices are multiplied by the BLAS for float32, after conversion.
* What depends on the exact number reads it as memory would give it back (`reads_rounded`): comparisons, casts,
  whatever else makes another dtype, and functions with steps.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...core import Aval, Eqn, Pointwise, Primitive, Var
from ...core.dtypes import FLOAT32, is_low
from ...passes.toolkit import new_equation
from ...primitives.elementwise.arithmetic import mul_p
from ...primitives.elementwise.rounding import fmod_p, remainder_p
from ...primitives.products.dot import dot_general_p, free_axes
from ...primitives.reductions.cumulative import cumlogsumexp_p, cumprod_p, cumsum_p, recurrence_p
from ...primitives.reductions.reduce import others_p, reduce_prod_p
from ...primitives.structure.linear import broadcast_in_dim_p, reduce_sum_p
from ...primitives.windows.conv import conv_p
from ...primitives.windows.reduce_window import reduce_window_prod_p, reduce_window_sum_p

#: Primitives whose partial results would be rounded many times.
_ACCUMULATE = frozenset((
    dot_general_p, conv_p, reduce_sum_p, reduce_prod_p, others_p, cumsum_p, cumprod_p, cumlogsumexp_p, recurrence_p,
    reduce_window_sum_p, reduce_window_prod_p,
))  # fmt: skip
#: Goes from float16 or bfloat16 to float32, or back, without rounding what is in a register.
unrounded_p = Primitive(
    "unrounded",
    lambda x, *, dtype, weak=False: Aval(x.shape, dtype, weak),
    lambda x, *, dtype, weak=False: np.asarray(x).astype(dtype)[()],
    kernel=Pointwise(lambda k, x, *, dtype, weak=False: x),
    moves_data=True,
)
#: Functions with steps that have derivatives; those without are known by that.
_STEPS: frozenset[Primitive] = frozenset((remainder_p, fmod_p))


def widened(eqns: list[Eqn]) -> list[Eqn]:
    """The equations, with those that add or multiply many elements of float16 or bfloat16 in float32."""
    if not any(_accumulates(e) for e in eqns):
        return eqns
    return [new for e in eqns for new in (_in_float32(e) if _accumulates(e) else (e,))]


def _accumulates(e: Eqn) -> bool:
    return e.primitive in _ACCUMULATE and is_low(e.outvars[0].aval.dtype)


def _in_float32(e: Eqn) -> Iterator[Eqn]:
    wide = []
    for a in e.invars:
        from_low = new_equation(unrounded_p, [a], {"dtype": FLOAT32}, e.source)
        yield from_low
        wide.append(from_low.outvars[0])
    out = e.outvars[0].aval
    computed = _by_sums(e, wide) or [
        e.replace(invars=wide, outvars=[Var(e.primitive.abstract(*[v.aval for v in wide], **e.params))])
    ]
    yield from computed
    params = {"dtype": out.dtype, "weak": out.weak}
    yield e.replace(primitive=unrounded_p, invars=computed[-1].outvars, params=params)


def _by_sums(e: Eqn, operands: list[Var]) -> list[Eqn] | None:
    """The product of a matrix and a vector as sums of elementwise products; None for anything else.

    Such a product takes as long as reading the matrix, which has half as many bytes as a float32 copy for BLAS.
    """
    if e.primitive is not dot_general_p:
        return None
    contracts, batches = e.params["dimension_numbers"]
    free = [free_axes(v.aval.ndim, c, b) for v, c, b in zip(operands, contracts, batches)]
    if all(free):
        return None
    i = 1 if free[1] else 0  # the matrix
    matrix, vector = operands[i], operands[1 - i]
    place = dict(zip((*contracts[1 - i], *batches[1 - i]), (*contracts[i], *batches[i])))
    along = [place[d] for d in range(vector.aval.ndim)]
    kept = [d for d in range(matrix.aval.ndim) if d not in contracts[i]]
    if along != sorted(along) or kept != [*batches[i], *free[i]]:
        return None
    params = {"shape": matrix.aval.shape, "broadcast_dimensions": tuple(along)}
    spread = new_equation(broadcast_in_dim_p, [vector], params, e.source)
    product = new_equation(mul_p, [matrix, *spread.outvars], {}, e.source)
    total = new_equation(reduce_sum_p, product.outvars, {"axes": tuple(sorted(contracts[i]))}, e.source)
    return [spread, product, total]


def reads_rounded(e: Eqn) -> bool:
    """Whether an equation reads float16 and bfloat16 numbers as memory would give them back."""
    low = [a.aval.dtype for a in e.invars if is_low(a.aval.dtype)]
    if not low or e.primitive is unrounded_p:
        return False
    prim = e.primitive
    has_steps = prim in _STEPS or prim.jvp is None or (prim.factors is not None and not any(prim.factors))
    return has_steps or any(dtype != e.outvars[0].aval.dtype for dtype in low)

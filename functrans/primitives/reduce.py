"""Reductions along axes: prod, max, min, all, any, argmax, argmin. reduce_sum stands in ``linear.py``.

Each takes ``axes``, a tuple of non-negative axes, and keeps the operand's dtype (argmax and argmin give int64):
sums and products of small integers are widened by the public functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.aval import Aval, Zero
from ..core.dtypes import BOOL, INT64
from ..core.errors import DtypeError, ShapeError
from ..core.kernel import Reduction
from ..core.primitive import Primitive
from .elementwise import convert, div_p, eq_p, mul_p
from .linear import (
    Rule,
    add_p,
    broadcast_in_dim_p,
    dtype_of,
    reduce_sum_p,
    reduced_shape,
    reduction_batch,
    reshape_p,
    shape_of,
    transpose_p,
)
from .shape import slice_p


def _abstract(name: str, kinds: str, out: np.dtype | None = None, identity: bool = True) -> Rule:
    def abstract(x: Aval, *, axes: tuple[int, ...]) -> Aval:
        shape = reduced_shape(name, x, axes)
        if x.dtype.kind not in kinds:
            raise DtypeError(
                f"{name}: dtype {x.dtype} is not supported; convert the operand with .astype first"
            )
        if not identity and any(x.shape[d] == 0 for d in axes):
            raise ShapeError(
                f"{name}: an array of shape {x.shape} has no elements along axes {axes}, and there is no value to "
                "begin with. Give `initial=`, or treat the empty array apart"
            )
        return Aval(shape, x.dtype if out is None else out)

    return abstract


def _no_jvp(prim: Callable[[], Primitive]) -> Rule:
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], *, axes: tuple[int, ...]) -> tuple[Any, Any]:
        ans = prim().bind(*primals, axes=axes)
        return ans, Zero(ans)

    return jvp


# --- prod ---------------------------------------------------------------------------------------------------


def _product_tangent(x: Any, t: Any) -> tuple[Any, Any]:
    """The product along the first axis and its tangent, by halves: no division, so zeros do no harm."""
    n, *rest = shape_of(x)

    def part(start: int, stop: int) -> list[Any]:
        low, high, steps = (start, *[0] * len(rest)), (stop, *rest), (1, *[1] * len(rest))
        return [slice_p.bind(a, start_indices=low, limit_indices=high, strides=steps) for a in (x, t)]

    def times(a: Any, s: Any, b: Any, u: Any) -> tuple[Any, Any]:
        return mul_p.bind(a, b), add_p.bind(mul_p.bind(s, b), mul_p.bind(a, u))

    if n == 1:
        return x, t
    half = n // 2
    product = _product_tangent(*times(*part(0, half), *part(half, 2 * half)))
    return times(*product, *part(n - 1, n)) if n % 2 else product


def _prod_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, axes: tuple[int, ...]) -> tuple[Any, Any]:
    (x,), (t,) = primals, tangents
    ans = reduce_prod_p.bind(x, axes=axes)
    shape = shape_of(x)
    kept = [d for d in range(len(shape)) if d not in axes]
    n = int(np.prod([shape[d] for d in axes], dtype=int))
    if type(t) is Zero or n == 0:
        return ans, Zero(ans)
    order = (*axes, *kept)
    straight = order == tuple(range(len(shape)))
    flat = [a if straight else transpose_p.bind(a, permutation=order) for a in (x, t)]
    flat = [reshape_p.bind(a, shape=(n, *[shape[d] for d in kept])) for a in flat]
    return ans, reshape_p.bind(_product_tangent(*flat)[1], shape=shape_of(ans))


reduce_prod_p: Primitive = Primitive(
    "reduce_prod",
    _abstract("reduce_prod", "iufc"),
    lambda x, *, axes: np.multiply.reduce(x, axis=axes, dtype=x.dtype),
    jvp=_prod_jvp,
    batch=reduction_batch(lambda: reduce_prod_p),
    kernel=Reduction("prod"),
)

# --- max and min --------------------------------------------------------------------------------------------


def _extremum(name: str, ufunc: np.ufunc, fold: str) -> Primitive:
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], *, axes: tuple[int, ...]) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        ans = prim.bind(x, axes=axes)
        if type(t) is Zero:
            return ans, Zero(ans)
        shape = shape_of(x)
        kept = tuple([d for d in range(len(shape)) if d not in axes])
        spread = broadcast_in_dim_p.bind(ans, shape=shape, broadcast_dimensions=kept)
        chosen = convert(eq_p.bind(x, spread), dtype_of(x))
        total = reduce_sum_p.bind(mul_p.bind(t, chosen), axes=axes)
        return ans, div_p.bind(total, reduce_sum_p.bind(chosen, axes=axes))

    prim = Primitive(
        name,
        _abstract(name, "biufc", identity=False),
        lambda x, *, axes: ufunc.reduce(x, axis=axes),
        jvp=jvp,
        batch=reduction_batch(lambda: prim),
        kernel=Reduction(fold),
    )
    return prim


reduce_max_p = _extremum("reduce_max", np.maximum, "max")
reduce_min_p = _extremum("reduce_min", np.minimum, "min")

# --- without derivative -------------------------------------------------------------------------------------


def _discrete(name: str, impl: Rule, fold: str, kinds: str, out: np.dtype, identity: bool) -> Primitive:
    prim = Primitive(
        name,
        _abstract(name, kinds, out, identity),
        impl,
        jvp=_no_jvp(lambda: prim),
        batch=reduction_batch(lambda: prim),
        kernel=Reduction(fold),
    )
    return prim


reduce_and_p = _discrete(
    "reduce_and", lambda x, *, axes: np.logical_and.reduce(x, axis=axes), "all", "b", BOOL, identity=True
)
reduce_or_p = _discrete(
    "reduce_or", lambda x, *, axes: np.logical_or.reduce(x, axis=axes), "any", "b", BOOL, identity=True
)
# argmax and argmin take one axis: the public functions flatten first where NumPy does.
argmax_p = _discrete(
    "argmax", lambda x, *, axes: np.argmax(x, axis=axes[0]), "argmax", "biufc", INT64, identity=False
)
argmin_p = _discrete(
    "argmin", lambda x, *, axes: np.argmin(x, axis=axes[0]), "argmin", "biufc", INT64, identity=False
)

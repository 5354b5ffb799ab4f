"""Scatters whose derivative depends on the values: products, minima and maxima of all that meets at a place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ..core.aval import Aval, Zero, aval_of
from ..core.primitive import Primitive
from .bits import and_p
from .bounds import raises
from .create import iota
from .elementwise import convert_element_type_p, div_p, eq_p, max_p, min_p, mul_p, ne_p, select_p
from .index import gathered, scatter_add_p
from .linear import Rule, dtype_of, instantiate, reshape_p, shape_of, zeros
from .reduce import reduce_prod_p
from .scatter_rules import scatter_abstract, scatter_batch, scatter_impl, scatter_kernel

#: Up to so many updates their products are formed pair by pair, which is differentiable to any order; beyond, by
#: division, whose second derivatives miss terms where a factor is zero and its index repeats.
_PAIRED = 128


def _others_by_pairs(x: Any, updates: Any, indices: Sequence[Any], axes: tuple[int, ...], mode: str) -> Any:
    shape, dtype = shape_of(updates), dtype_of(x)
    n = prod(shape_of(indices[0]))
    rows = (n, prod(shape) // n if n else 0)
    size = prod(shape_of(x))
    numbers = iota((size,), 0)
    places = gathered(reshape_p.bind(numbers, shape=shape_of(x)), indices, axes, mode, -1)
    column = reshape_p.bind(places, shape=(n, 1, rows[1]))
    row = reshape_p.bind(places, shape=(1, *rows))
    another = and_p.bind(eq_p.bind(column, row), ne_p.bind(iota((n, 1, 1), 0), iota((1, n, 1), 1)))
    factors = select_p.bind(another, reshape_p.bind(updates, shape=(1, *rows)), dtype.type(1))
    product = reshape_p.bind(reduce_prod_p.bind(factors, axes=(1,)), shape=shape)
    return mul_p.bind(gathered(x, indices, axes, mode), product)


def _others(x: Any, updates: Any, indices: Sequence[Any], params: dict[str, Any]) -> Any:
    """For each update the product of all else at its place: what its tangent is multiplied with."""
    axes, mode = params["axes"], params["mode"]
    if params.get("unique_indices") or prod(shape_of(indices[0])) == 1:
        return gathered(x, indices, axes, mode)
    if prod(shape_of(indices[0])) <= _PAIRED:
        return _others_by_pairs(x, updates, indices, axes, mode)
    dtype = dtype_of(x)
    zero, one = dtype.type(0), dtype.type(1)
    is_zero = eq_p.bind(updates, zero)
    nonzero = select_p.bind(is_zero, one, updates)
    product = gathered(scatter_mul_p.bind(x, nonzero, *indices, **params), indices, axes, mode)
    nothing = zeros(Aval(shape_of(x), dtype))
    ones = convert_element_type_p.bind(is_zero, dtype=dtype)
    zeros_met = gathered(
        scatter_add_p.bind(nothing, ones, *indices, axes=axes, mode=mode), indices, axes, mode
    )
    # All others are nonzero where no zero was met, or none but the update itself.
    all_nonzero = eq_p.bind(zeros_met, ones)
    return select_p.bind(all_nonzero, div_p.bind(product, nonzero), zero)


def _scatter_mul_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    x, updates, *indices = primals
    t_x, t_u = tangents[:2]
    ans = scatter_mul_p.bind(x, updates, *indices, **params)
    if type(t_x) is Zero and type(t_u) is Zero:
        return ans, Zero(ans)
    t = zeros(aval_of(ans)) if type(t_x) is Zero else scatter_mul_p.bind(t_x, updates, *indices, **params)
    if type(t_u) is not Zero:
        t = scatter_add_p.bind(t, mul_p.bind(_others(x, updates, indices, params), t_u), *indices, **params)
    return ans, t


def _scatter_mul_transpose(ct: Any, x: Any, updates: Any, *indices: Any, **params: Any) -> list[Any]:
    return [scatter_mul_p.bind(ct, updates, *indices, **params), None, *[None] * len(indices)]


scatter_mul_p: Primitive = Primitive(
    "scatter_mul",
    scatter_abstract("scatter_mul"),
    scatter_impl(np.multiply),
    jvp=_scatter_mul_jvp,
    transpose=_scatter_mul_transpose,
    batch=scatter_batch(lambda: scatter_mul_p),
    kernel=scatter_kernel(mul_p),
    effects=raises,
)


def _extremal_jvp(prim: Callable[[], Primitive]) -> Rule:
    """The tangent of the extreme element; equal ones share it evenly."""

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        x, updates, *indices = primals
        ans = prim().bind(*primals, **params)
        if all(type(t) is Zero for t in tangents):
            return ans, Zero(ans)
        t_x, t_u = map(instantiate, tangents[:2])
        dtype = dtype_of(ans)
        met = gathered(ans, indices, params["axes"], params["mode"])
        here = convert_element_type_p.bind(eq_p.bind(x, ans), dtype=dtype)
        there = convert_element_type_p.bind(eq_p.bind(updates, met), dtype=dtype)
        number = scatter_add_p.bind(here, there, *indices, **params)
        t = scatter_add_p.bind(mul_p.bind(t_x, here), mul_p.bind(t_u, there), *indices, **params)
        return ans, div_p.bind(t, number)

    return jvp


def _extremal(name: str, ufunc: np.ufunc, combine: Primitive) -> Primitive:
    prim: Primitive = Primitive(
        name,
        scatter_abstract(name),
        scatter_impl(ufunc),
        jvp=_extremal_jvp(lambda: prim),
        batch=scatter_batch(lambda: prim),
        kernel=scatter_kernel(combine),
        effects=raises,
    )
    return prim


scatter_min_p = _extremal("scatter_min", np.minimum, min_p)
scatter_max_p = _extremal("scatter_max", np.maximum, max_p)

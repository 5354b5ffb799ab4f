"""Scatters whose derivative depends on the values: products, quotients, minima and maxima of all that meets at a
place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ...core.aval import Zero, aval_of
from ...core.primitive import Primitive
from ..elementwise.arithmetic import convert_element_type_p, div_p, eq_p, max_p, min_p, mul_p, neg_p
from ..structure.linear import Rule, dtype_of, instantiate, shape_of, zeros
from .bounds import raises
from .gather_scatter import gathered, scatter_add_p
from .repeated import all_different, flat_places, products_of_others
from .scatter_rules import scatter_abstract, scatter_batch, scatter_impl, scatter_kernel


def _others(x: Any, updates: Any, indices: Sequence[Any], params: dict[str, Any]) -> Any:
    """For each update the product of all else at its place: what its tangent is multiplied with."""
    axes, mode = params["axes"], params["mode"]
    if params.get("unique_indices") or prod(shape_of(indices[0])) <= 1:
        return gathered(x, indices, axes, mode)
    if all_different(shape_of(x), indices, axes, mode):
        return gathered(x, indices, axes, mode)
    places = flat_places(shape_of(x), indices, axes, mode)
    size = prod([shape_of(x)[d] for d in axes])
    return mul_p.bind(gathered(x, indices, axes, mode), products_of_others(updates, places, size))


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


def _scatter_div_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    """A divisor contributes minus the result by itself, wherever among the divisors of its place it stands."""
    x, updates, *indices = primals
    t_x, t_u = tangents[:2]
    ans = scatter_div_p.bind(x, updates, *indices, **params)
    if type(t_x) is Zero and type(t_u) is Zero:
        return ans, Zero(ans)
    t = zeros(aval_of(ans)) if type(t_x) is Zero else scatter_div_p.bind(t_x, updates, *indices, **params)
    if type(t_u) is not Zero:
        met = gathered(ans, indices, params["axes"], params["mode"])
        slope = neg_p.bind(div_p.bind(met, updates))
        t = scatter_add_p.bind(t, mul_p.bind(slope, t_u), *indices, **params)
    return ans, t


def _scatter_div_transpose(ct: Any, x: Any, updates: Any, *indices: Any, **params: Any) -> list[Any]:
    return [scatter_div_p.bind(ct, updates, *indices, **params), None, *[None] * len(indices)]


scatter_div_p: Primitive = Primitive(
    "scatter_div",
    scatter_abstract("scatter_div"),
    scatter_impl(np.divide),
    jvp=_scatter_div_jvp,
    transpose=_scatter_div_transpose,
    batch=scatter_batch(lambda: scatter_div_p),
    kernel=scatter_kernel(div_p),
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

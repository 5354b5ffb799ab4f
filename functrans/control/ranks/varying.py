"""Over which axes of a mesh values differ, while ``shard_map`` traces (`Aval.vma`).

An operation on values that differ between ranks makes operands differ that do not, by `pvary`, whose transpose sums
over ranks. So the gradient in what all ranks have is summed, and nothing else needs to know of it. `install` fills the
slots of `core.named_axes.differing`; before that, programs pay for one test an operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.aval import Aval, VaryingAval
from ...core.ir import Eqn, Jaxpr, Literal, Var, has_subjaxprs
from ...core.named_axes import MeshAxes, differing, mesh_in_scope
from ...core.primitive import Primitive
from ...core.trace import Tracer
from ...core.values import ArrayLike, Params, Value
from ...passes.toolkit import map_subjaxprs
from .collectives import psum_p, pvary_p

Axes = frozenset[str]
_NONE: Axes = frozenset()


def install() -> None:
    """Let operations look at which values differ."""
    differing.adapt, differing.typed, differing.reduced = _adapt, _typed, _reduced


def axes_among(names: Axes) -> MeshAxes:
    """Axes of the mesh in scope, in its order."""
    mesh = mesh_in_scope.get()
    return MeshAxes(mesh, tuple([name for name in mesh.names if name in names]))


def axes_of_value(x: Value) -> Axes:
    """The axes over which a value differs."""
    return x.aval.vma if isinstance(x, Tracer) else _NONE


def differ(x: Value, axes: Axes) -> Value:
    """A value that differs over these axes, also as far as its type tells."""
    missing = axes - axes_of_value(x)
    if not missing or (isinstance(x, Tracer) and type(x.aval) not in (Aval, VaryingAval)):
        return x
    return pvary_p.bind(x, axis_name=axes_among(missing))


def alike(values: Sequence[Value]) -> list[Any]:
    """Values that all differ over the axes over which any of them does."""
    axes = _NONE.union(*map(axes_of_value, values))
    return [differ(x, axes) if isinstance(x, Tracer) else x for x in values]


def _adapt(prim: Primitive, args: tuple[Value, ...], params: Params) -> tuple[Any, dict[str, Any]]:
    if mesh_in_scope.get() is None:
        return args, params
    axes = list(map(axes_of_value, args))
    if prim.vary is not None:
        needed, params = prim.vary(axes, params)
    else:
        needed = [_NONE.union(*axes)] * len(axes)
    if needed == axes:
        return args, params
    # Numbers and arrays are the same on all ranks, and have no cotangents.
    return tuple([differ(x, n) if isinstance(x, Tracer) else x for x, n in zip(args, needed)]), params


def _typed(prim: Primitive, avals: Sequence[Aval], params: Params, out: Value) -> Any:
    if mesh_in_scope.get() is None:
        return _mapped(out, prim, lambda a: a.over(_NONE))
    if prim.vary is not None and prim.varies is None:
        return out
    union = _NONE.union(*[a.vma for a in avals])
    if prim.varies is not None:
        union = prim.varies(union, params)
        return _mapped(out, prim, lambda a: a.over(union))
    return _mapped(out, prim, lambda a: a.over(a.vma | union)) if union else out


def _mapped(out: ArrayLike, prim: Primitive, change: Any) -> Any:
    return [change(a) for a in out] if prim.multiple_results else change(out)


def _reduced(ct: Value, aval: Aval) -> Value:
    if mesh_in_scope.get() is None:
        return ct
    more = axes_of_value(ct) - aval.vma
    return psum_p.bind(ct, axis_name=axes_among(more), groups=None) if more else ct


# --- outside --------------------------------------------------------------------------------------------------


def without_axes(jaxpr: Jaxpr) -> Jaxpr:
    """The program of one rank, as any other: all that differs is in its equations."""

    def build() -> Jaxpr:
        new: dict[Any, Any] = {}

        def plain(v: ArrayLike) -> Any:
            if type(v) is Literal or type(v.aval) is not VaryingAval:
                return v
            if v not in new:
                new[v] = Var(v.aval.over(_NONE))
            return new[v]

        def equation(e: Eqn) -> Eqn:
            invars, outvars = [plain(a) for a in e.invars], [plain(v) for v in e.outvars]
            params = map_subjaxprs(e.params, without_axes) if has_subjaxprs(e.params) else e.params
            return e.replace(invars=invars, outvars=outvars, params=params)

        return jaxpr.replace(
            invars=[plain(v) for v in jaxpr.invars],
            eqns=[equation(e) for e in jaxpr.eqns],
            outvars=[plain(v) for v in jaxpr.outvars],
            constants=[(plain(v), c) for v, c in jaxpr.constants],
        )

    return jaxpr.derive("without axes", build)

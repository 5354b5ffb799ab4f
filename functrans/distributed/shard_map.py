"""`shard_map`: a function of blocks, one a rank, as a function of whole arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

from ..control.ranks import varying
from ..control.ranks.collectives import all_gather_invariant_p, own_block_p, pvary_p, unvary_p
from ..core import Aval, Transformed, aval_of, current_trace, eval_trace, run_with
from ..core.evaluation import evaluate
from ..core.ir import Jaxpr, subjaxprs
from ..core.named_axes import MeshAxes, mesh_in_scope
from ..core.values import ArrayLike, AxisName, PyTree
from ..errors import ArgumentValueError, CollectiveError, ShardingError
from ..frontend.arguments import (
    Flat,
    argument_place,
    check_function,
    check_positional,
    flatten_values,
    name_of,
    results,
)
from ..frontend.checked import checked
from ..frontend.pytree import PyTreeDef, flatten_axes, leaf_path, tree_structure
from ..frontend.pytree.nodes import SequenceKey, keystr
from ..primitives.structure.linear import move_axis, reshape_p, shape_of
from ..runtime.config import config
from ..transforms.stage import stage
from .mesh import Mesh
from .specs import Names, names_of


@checked
def shard_map(
    f: Callable[..., PyTree] | None = None,
    /,
    *,
    mesh: Any = None,
    in_specs: Any = None,
    out_specs: Any = None,
    axis_names: AxisName = frozenset(),
    check_vma: bool = True,
    local: bool = False,
) -> Any:
    """A function of whole arrays, each rank of a mesh computing with its own blocks of them.

    Every rank calls it, with the same arguments: it takes its blocks of the arguments, and runs `f` on them. `f` may
    exchange values by the collectives of `functrans.lax`, which refer to the axes of the mesh by name. The results are
    put together from those of all ranks, and every rank gets them.

    Parameters
    ----------
    f : callable
        A function of blocks. Without it, the result is a decorator.
    mesh : Mesh
    in_specs : pytree of P
        How the arguments are divided: a tuple with an entry for each argument, which is a `P`, or a tree of them like
        the argument, or like the upper part of it. One `P` is for all arguments.
    out_specs : pytree of P
        How the results are put together. An axis of the mesh that is not in it must not matter: `f` returns the same on
        all its ranks, as functrans can tell from how it was computed.
    axis_names : set of str, optional
        JAX's: the axes over which `f` computes with blocks. Here they are always all axes of the mesh.
    check_vma : bool
        JAX's: with False, a result that seems to differ over an axis that is not in `out_specs` is taken as it is.
    local : bool
        Whether arguments and results are blocks, those of this rank. Then no array is ever whole on a rank.

    Returns
    -------
    callable
        It composes with all transformations, from inside and from outside.

    Raises
    ------
    CollectiveError
        If a size cannot be divided by the ranks; if a result differs over an axis that is not in `out_specs`; with
        ``config.check_collectives``, if ranks call different collectives.
    ShardingError
        If a spec names an axis that the mesh does not have, or the mesh is closed.

    See Also
    --------
    functrans.lax.psum, functrans.lax.all_gather : collectives.
    functrans.distributed.make_mesh : meshes.

    Notes
    -----
    The type of a value says over which axes of the mesh it differs: ``functrans.typeof(x).vma``. Arguments differ over
    the axes in their spec; an operation on values of which some differ makes the others differ (`functrans.lax.pvary`);
    `psum`, `pmax` and `pmin` return what is the same for all. Derivatives follow: the transpose of `psum` is `pvary`,
    and that of `pvary` is `psum`. So the gradient in an argument that all ranks have, such as parameters, is summed
    over the ranks, unasked.

    A collective must not be in a branch or loop whose condition differs between ranks.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functrans import lax
    >>> from functrans.distributed import P, make_mesh, run_threads, shard_map
    >>> def program(mesh):
    ...     def loss(w, x):
    ...         return lax.psum(fnp.sum((w * x) ** 2), "dp")
    ...     total = shard_map(loss, mesh=mesh, in_specs=(P(), P("dp")), out_specs=P())
    ...     return ft.grad(total)(2.0, fnp.arange(4.0))
    >>> run_threads((2,), ("dp",), program)
    [Array(56.), Array(56.)]
    """
    if f is None:
        options = {"axis_names": axis_names, "check_vma": check_vma, "local": local}
        return partial(shard_map, mesh=mesh, in_specs=in_specs, out_specs=out_specs, **options)
    check_function("shard_map", f)
    if not isinstance(mesh, Mesh):
        raise ShardingError(
            f"shard_map of {name_of(f)}: mesh must be a mesh from functrans.distributed.make_mesh, got {mesh!r}"
        )
    missing = set(axis_names) ^ set(mesh.shape) if axis_names else ()
    if missing:
        raise ShardingError(
            f"shard_map of {name_of(f)}: axis_names must be all axes of the mesh, {', '.join(map(repr, mesh.shape))}, "
            f"got {axis_names!r}"
        )
    return _Sharded(f, mesh, in_specs, out_specs, check_vma, local)


class _Sharded(Transformed):
    def __init__(
        self,
        fun: Callable[..., PyTree],
        mesh: Mesh,
        in_specs: Any,
        out_specs: Any,
        check_vma: bool,
        local: bool,
    ):
        super().__init__("shard_map", fun)
        self._mesh = mesh
        self._in_specs = in_specs
        self._out_specs = out_specs
        self._check_vma = check_vma
        self._local = local

    def __call__(self, *args: Any, **keywords: PyTree) -> Any:
        """The results of all ranks."""
        fun, mesh = self._fun, self._mesh
        check_positional(str(self), keywords)
        self._check_scope()
        values, treedef = flatten_values(
            args, lambda path: f"shard_map of {name_of(fun)}: {self._place(path)}"
        )
        specs = self._specs(args)
        ins = [names_of(s, mesh, f"{self}: in_specs of {self._at(treedef, i)}") for i, s in enumerate(specs)]
        for i, (x, names) in enumerate(zip(values, ins)):
            self._check_argument(shape_of(x), names, partial(self._at, treedef, i))
        blocks = values if self._local else [_block(x, mesh, names) for x, names in zip(values, ins)]
        avals = [aval_of(x).over(_all(names)) for x, names in zip(blocks, ins)]
        jaxpr, out_tree = self._traced(avals, treedef)
        outs = evaluate(varying.without_axes(jaxpr), blocks)
        return results(out_tree, self._put_together(outs, jaxpr, out_tree), {id(x) for x in values})

    def __str__(self) -> str:
        return f"shard_map of {name_of(self._fun)}"

    def _check_scope(self) -> None:
        if self._mesh.closed:
            raise ShardingError(f"{self}: the mesh is closed. Make a new one, or close it later")
        if mesh_in_scope.get() is not None:
            raise ShardingError(
                f"{self} is called inside of another shard_map, whose ranks compute with blocks already. Make one mesh "
                "of all axes, and call the function itself"
            )

    def _place(self, path: Any) -> str:
        return argument_place(self._fun, (SequenceKey(0), *path))

    def _at(self, treedef: PyTreeDef, i: int) -> str:
        return self._place(leaf_path(treedef, i))

    def _specs(self, args: tuple[Any, ...]) -> list[Any]:
        specs = self._in_specs
        if isinstance(specs, list | tuple) and len(specs) != len(args):
            raise ArgumentValueError(f"{self}: in_specs has {len(specs)} entries for {len(args)} arguments")
        return flatten_axes(f"{self}: in_specs", tree_structure(args), specs)

    def _check_argument(
        self, shape: tuple[int, ...], names: Sequence[Names], place: Callable[[], str]
    ) -> None:
        if len(names) > len(shape):
            raise CollectiveError(
                f"{self}: {place()} has the shape {shape}, but its spec has {len(names)} entries, one an axis"
            )
        for d, own in enumerate(names):
            count = prod([self._mesh.shape[name] for name in own])
            if not self._local and shape[d] % count:
                raise CollectiveError(
                    f"{self}: axis {d} of {place()} of shape {shape} cannot be divided among the {count} ranks along "
                    f"{', '.join(map(repr, own))}: {shape[d]} is not a multiple of {count}. Pad it, or choose another "
                    "spec"
                )

    def _traced(self, avals: Sequence[Aval], treedef: PyTreeDef) -> tuple[Jaxpr, PyTreeDef]:
        varying.install()
        flat = Flat(self._fun, treedef, lambda f, args: f(*args))
        jaxpr = run_with(mesh_in_scope, self._mesh, stage, flat, avals, name_of(self._fun))
        if config.check_collectives and current_trace.get() is eval_trace:
            everyone = self._mesh.communicator(tuple(self._mesh.shape))
            everyone.agree("\n".join([str(self), *_sequence(jaxpr)]))
        return jaxpr, flat.out_tree

    # --- results ----------------------------------------------------------------------------------------------

    def _put_together(self, outs: Sequence[Any], jaxpr: Jaxpr, out_tree: PyTreeDef) -> list[Any]:
        specs = flatten_axes(f"{self}: out_specs", out_tree, self._out_specs)
        whole = []
        for i, (x, aval, spec) in enumerate(zip(outs, jaxpr.out_avals, specs)):
            place = f"{self}: out_specs of result{keystr(leaf_path(out_tree, i))}"
            names = names_of(spec, self._mesh, place)
            if len(names) > aval.ndim:
                raise CollectiveError(f"{place} is {spec!r}, but the result has the shape {aval.shape}")
            x = self._same(x, aval.vma - _all(names), f"{place} is {spec!r}")
            if missing := _all(names) - aval.vma:
                x = pvary_p.bind(x, axis_name=self._axes(missing))
            whole.append(x if self._local else _whole(x, self._mesh, names))
        return whole

    def _axes(self, names: frozenset[str]) -> MeshAxes:
        return MeshAxes(self._mesh, tuple([name for name in self._mesh.shape if name in names]))

    def _same(self, x: ArrayLike, more: frozenset[str], place: str) -> Any:
        if not more:
            return x
        if not self._check_vma:
            return unvary_p.bind(x, axis_name=self._axes(more))
        listed = ", ".join(map(repr, self._axes(more).names))
        raise CollectiveError(
            f"{place}, but the result differs over the axis {listed} of the mesh. Combine the values of its ranks "
            f"(lax.psum, lax.pmean, lax.all_gather(..., to='invariant')), or name the axis in the spec"
        )


def _all(names: Sequence[Names]) -> frozenset[str]:
    return frozenset([name for own in names for name in own])


def _block(x: ArrayLike, mesh: Mesh, names: Sequence[Names]) -> Any:
    """This rank's part of a value that all ranks have."""
    for d, own in enumerate(names):
        if own:
            axes = MeshAxes(mesh, own)
            shape = shape_of(x)
            x = reshape_p.bind(x, shape=(*shape[:d], axes.size, shape[d] // axes.size, *shape[d + 1 :]))
            x = own_block_p.bind(move_axis(x, d, 0), axis_name=axes)
    return x


def _whole(x: ArrayLike, mesh: Mesh, names: Sequence[Names]) -> Any:
    """The value of which ranks have these parts."""
    for d, own in enumerate(names):
        if own:
            axes = MeshAxes(mesh, own)
            shape = shape_of(x)
            x = move_axis(all_gather_invariant_p.bind(x, axis_name=axes, number=axes.size), 0, d)
            x = reshape_p.bind(x, shape=(*shape[:d], axes.size * shape[d], *shape[d + 1 :]))
    return x


def _sequence(jaxpr: Jaxpr, indent: str = "") -> list[str]:
    """A line for each collective of a program, in order."""
    lines = []
    for eqn in jaxpr.eqns:
        bodies = list(subjaxprs(eqn.params))
        if bodies and eqn.effects.collective:
            lines.append(f"{indent}{eqn.primitive.name}:")
            lines += [line for body in bodies for line in _sequence(body, f"{indent}  ")]
        elif eqn.effects.collective:
            types = " ".join([str(a.aval.over(frozenset())) for a in eqn.invars])
            lines.append(f"{indent}{eqn.primitive.name} over {eqn.params['axis_name']} of {types}")
    return lines

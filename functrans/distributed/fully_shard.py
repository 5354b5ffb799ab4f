"""`fully_shard`: each rank holds one share of the parameters, their gradients and what an optimizer keeps of them.

::

    program of fun          of FullySharded
    --------------          ---------------
    a = f(x, root)          root' = gather(root)                            kept until the end
    b = g(a, p)             a = f(x, root')
    c = h(b, q)             b = checkpoint(p, a: p' = gather(p); g(a, p'))  p' is gathered again in the backward pass
                            c = checkpoint(q, b: q' = gather(q); h(b, q'))

The program is cut where a group is used first. A checkpoint keeps everything but what was gathered, so that the
backward pass gathers the groups in reverse order, each before its use. Transposed, a `gather` is a sum over ranks
of which each rank gets its rows. Messages go out early: each gather starts those that follow (`gathering.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from ..arrays.array import wrap
from ..checkpoint_policies import everything_saveable
from ..control import checkpoint
from ..core import Aval, Transformed, aval_of, canonical, is_float, is_inexact
from ..core.evaluation import run_equations
from ..core.ir import Jaxpr, Literal
from ..core.named_axes import MeshAxes, mesh_in_scope
from ..core.values import PyTree
from ..errors import ArgumentError, ArgumentValueError, DtypeError, ShardingError
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
from ..frontend.pytree import PyTreeDef, tree_structure, tree_unflatten
from ..frontend.pytree.nodes import SequenceKey
from ..primitives.elementwise.arithmetic import convert
from ..primitives.structure.linear import shape_of
from ..transforms.stage import stage
from .gathering import CommContext, Group, Ways, begin_p, end_p, gather_p, gather_rows_p
from .layout import ShardLayout, checked_prefixes, described, make_layout, rebuilt, sharded_tree
from .mesh import Mesh
from .segments import Segment, SegmentedProgram
from .shards import load as read
from .shards import read_notes
from .shards import save as write
from .states import FSDPState


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """Which dtypes `fully_shard` computes in; the shards keep theirs.

    Parameters
    ----------
    param_dtype : dtype, optional
        Of whole parameters, and so of messages and computations.
    reduce_dtype : dtype, optional
        Of the sums of gradients over ranks; by default that of the whole parameters.
    output_dtype : dtype, optional
        Of results that are floats.
    cast_forward_inputs : bool
        Whether the other arguments that are floats have `param_dtype`, too.

    Raises
    ------
    DtypeError
        If one is not a dtype of real floats.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans.distributed import MixedPrecisionPolicy
    >>> MixedPrecisionPolicy(param_dtype=np.float32, reduce_dtype=np.float64).param_dtype
    dtype('float32')
    """

    param_dtype: Any = None
    reduce_dtype: Any = None
    output_dtype: Any = None
    cast_forward_inputs: bool = True

    def __post_init__(self) -> None:
        for name in ("param_dtype", "reduce_dtype", "output_dtype"):
            value = getattr(self, name)
            if value is None:
                continue
            dtype = canonical(value, f"MixedPrecisionPolicy: {name}")
            if not is_float(dtype):
                raise DtypeError(f"MixedPrecisionPolicy: {name} must be a dtype of real floats, got {dtype}")
            object.__setattr__(self, name, dtype)
        if self.reduce_dtype == self.param_dtype:
            object.__setattr__(self, "reduce_dtype", None)


@checked
def fully_shard(
    fun: Callable[..., PyTree],
    mesh: Any,
    *,
    axis: str = "dp",
    groups: Any = None,
    reshard_after_forward: bool = True,
    mp_policy: Any = None,
    prefetch: int = 1,
    reduce: Any = "mean",
) -> FullySharded:
    """A function whose parameters are divided among the ranks of a mesh.

    Parameters
    ----------
    fun : callable
        ``fun(params, *args)``, with a pytree of arrays for `params`. Each rank calls it with arguments of its own, such
        as its part of a batch.
    mesh : Mesh
    axis : str
        The axis of the mesh along whose ranks the parameters are divided.
    groups : list of tuple, optional
        Key-path prefixes, such as ``[("blocks", 0), ("blocks", 1)]``. The parameters of a group are collected in one
        message, before their first use, and freed after the last. What is in none is the root's, which stays.
    reshard_after_forward : bool
        Whether the backward pass collects groups again. Otherwise they stay until then.
    mp_policy : MixedPrecisionPolicy, optional
    prefetch : int
        How many of the groups that come next are collected while one computes.
    reduce : {'mean', 'sum'} or float
        What the gradient is of what ranks compute: the mean, the sum, or the sum times a number.

    Returns
    -------
    FullySharded

    Raises
    ------
    ShardingError
        If the mesh has no such axis or is closed, or if groups have the same parameters.

    See Also
    --------
    functrans.distributed.shard_map : the exchange of values is yours.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functrans.distributed import fully_shard, run_threads
    >>> def loss(params, x):
    ...     return fnp.sum((x @ params["w"]) ** 2)
    >>> def train(mesh):
    ...     model = fully_shard(loss, mesh)
    ...     shards = model.init({"w": fnp.arange(3.0)})
    ...     gradient = ft.grad(model)(shards, fnp.ones((4, 3)) * (mesh.rank + 1))
    ...     return model.full(gradient)["w"]
    >>> run_threads((2,), ("dp",), train)
    [Array([60., 60., 60.]), Array([60., 60., 60.])]
    """
    check_function("fully_shard", fun)
    if not isinstance(mesh, Mesh):
        raise ShardingError(
            f"fully_shard: mesh must be a mesh from functrans.distributed.make_mesh, got {mesh!r}"
        )
    if axis not in mesh.shape:
        axes = ", ".join(map(repr, mesh.shape))
        raise ShardingError(f"fully_shard: the mesh has no axis {axis!r}. Its axes are {axes}")
    if not isinstance(prefetch, int) or prefetch < 0:
        raise ArgumentValueError(f"fully_shard: prefetch must be an integer from 0 on, got {prefetch!r}")
    policy = MixedPrecisionPolicy() if mp_policy is None else mp_policy
    if not isinstance(policy, MixedPrecisionPolicy):
        raise ArgumentValueError(f"fully_shard: mp_policy must be a MixedPrecisionPolicy, got {policy!r}")
    size = mesh.shape[axis]
    factors = {"mean": 1 / size, "sum": 1.0}
    if isinstance(reduce, str) and reduce not in factors:
        raise ArgumentValueError(f"fully_shard: reduce must be 'mean', 'sum' or a number, got {reduce!r}")
    if not isinstance(reduce, str | int | float | np.number):
        raise ArgumentError(f"fully_shard: reduce must be 'mean', 'sum' or a number, got {reduce!r}")
    factor = factors[reduce] if isinstance(reduce, str) else float(reduce)
    context = CommContext(MeshAxes(mesh, (axis,)))
    return FullySharded(
        fun, context, checked_prefixes(groups), policy, bool(reshard_after_forward), prefetch, factor
    )


class FullySharded(Transformed):
    """A function of sharded parameters; made by `fully_shard`.

    Calling it takes a tree of shards where the function takes parameters. All ranks call it, together.

    Attributes
    ----------
    states : list of FSDPState
        One for each group, the root first.
    events : list of (str, str)
        What happened, in order: the event, and the name of the group.
    """

    def __init__(
        self,
        fun: Callable[..., PyTree],
        context: CommContext,
        prefixes: tuple[Any, ...],
        policy: MixedPrecisionPolicy,
        reshard: bool,
        prefetch: int,
        factor: float,
    ):
        super().__init__("fully_shard", fun)
        self._context = context
        self._prefixes = prefixes
        self._policy = policy
        self._reshard = reshard
        self._prefetch = prefetch
        self._factor = factor
        self._layout: ShardLayout | None = None

    def __str__(self) -> str:
        return f"fully_shard of {name_of(self._fun)}"

    @property
    def states(self) -> list[FSDPState]:
        """See the class."""
        return self._context.states

    @property
    def events(self) -> list[tuple[str, str]]:
        """See the class."""
        return self._context.events

    # --- shards -----------------------------------------------------------------------------------------------

    def init(self, params: Any) -> Any:
        """The shards of parameters.

        Parameters
        ----------
        params : pytree of arrays
            The same on all ranks.

        Returns
        -------
        pytree of arrays
            Of the same structure, with this rank's rows of each array: its axis 0 is divided, and padded with zeros
            where ranks would have different numbers of rows. Numbers are copied.

        Raises
        ------
        ShardingError
            If a group has no parameters, has different dtypes, or shares an array with another one.
        """
        self._check_open()
        self._layout, leaves = make_layout(params, None, self._prefixes, self._ways, self._context)
        axes = self._context.axes
        return sharded_tree(self._layout, leaves, axes.index, axes.size)

    def save(self, path: Any, shards: Any) -> None:
        """Write shards to a folder: one file a rank, and an index. All ranks call it.

        Parameters
        ----------
        path : str or path-like
            The folder, which all ranks see. A checkpoint that is there stays whole until the new one is.
        shards : pytree of arrays
            As from `init`; also gradients, or a part of an optimizer's state that has the parameters' structure.

        Raises
        ------
        CheckpointError
            If a rank cannot write.
        """
        layout, values, _ = self._flat(shards)
        arrays = {name: np.asarray(x) for name, x in zip(layout.paths, values, strict=True)}
        rows = {name: shape[0] for name, shape in zip(layout.paths, layout.shapes) if shape}
        notes = {"tree": described(shards), "shapes": [list(shape) for shape in layout.shapes]}
        write(path, arrays, rows, self._context.communicator, notes)

    def load(self, path: Any) -> Any:
        """The shards that `save` wrote, on any number of ranks.

        Raises
        ------
        CheckpointError
            If a file is missing or damaged; it is named.
        ShardingError
            If the parameters have another structure than those of `init`; or if `init` was not called, and their tree
            has nodes other than dicts with str keys, lists and tuples.
        """
        self._check_open()
        arrays = read(path, self._context.communicator)
        notes = read_notes(path)
        if self._layout is None:
            if notes["tree"] is None:
                raise ShardingError(
                    f"{self}: load: the parameters are a tree of classes that the checkpoint cannot name. Call "
                    "init(params) first, with parameters of that structure"
                )
            tree = rebuilt(notes["tree"], list(arrays.values()))
            shapes = [tuple(shape) for shape in notes["shapes"]]
            self._layout, _ = make_layout(tree, shapes, self._prefixes, self._ways, self._context)
        layout = self._layout
        if list(arrays) != list(layout.paths):
            raise ShardingError(
                f"{self}: load: the checkpoint has {', '.join(arrays)}, and the parameters are "
                f"{', '.join(layout.paths)}"
            )
        return tree_unflatten(layout.treedef, [wrap(x) for x in arrays.values()])

    def full(self, shards: Any) -> Any:
        """The whole parameters, or gradients, from the shards of all ranks, on every rank."""
        layout, values, _ = self._flat(shards)
        whole: list[Any] = list(values)
        for group in layout.groups:
            if group.places:
                dtype = aval_of(values[group.places[0]]).dtype
                ways = Ways(dtype, dtype, dtype, 1.0)
                rows = [values[i] for i in group.places]
                for i, x in zip(group.places, gather_rows_p.bind(*rows, group=group, ways=ways, first=False)):
                    whole[i] = x
        return results(layout.treedef, whole, {id(x) for x in values})

    def _flat(self, shards: Any, args: tuple[Any, ...] = ()) -> tuple[ShardLayout, list[Any], PyTreeDef]:
        """The layout, the values of shards and other arguments, and the structure of all."""
        self._check_open()
        layout = self._layout
        if layout is None:
            raise ShardingError(
                f"{self}: its parameters are not known. Call init(params) or load(path) first"
            )
        values, treedef = flatten_values((shards, *args), self._place)
        found = tree_structure(shards)
        if found != layout.treedef:
            raise ShardingError(
                f"{self}: the shards have another structure than the parameters of init:\n  {found}\n  {layout.treedef}"
            )
        ranks = self._context.axes.size
        for i in range(layout.treedef.num_leaves):
            expected = layout.shard_shape(i, ranks)
            if shape_of(values[i]) != expected:
                raise ShardingError(
                    f"{self}: {layout.paths[i]} has the shape {shape_of(values[i])}, but the shard of an array of "
                    f"shape {layout.shapes[i]} on one of {ranks} ranks has {expected}. Pass what init returned"
                )
        return layout, values, treedef

    def _place(self, path: Any) -> str:
        return f"{self}: {argument_place(self._fun, (SequenceKey(0), *path))}"

    def _check_open(self) -> None:
        if self._context.axes.mesh.closed:
            raise ShardingError(f"{self}: the mesh is closed. Make a new one, or close it later")
        if mesh_in_scope.get() is not None:
            raise ShardingError(
                f"{self} cannot be called inside of shard_map. Call it outside, or gather parameters by lax.all_gather"
            )

    def _ways(self, dtype: np.dtype) -> Ways:
        """How parameters of this dtype travel."""
        if not is_inexact(dtype):
            return Ways(dtype, dtype, dtype, 1.0)
        policy = self._policy if is_float(dtype) else MixedPrecisionPolicy()
        param = dtype if policy.param_dtype is None else policy.param_dtype
        return Ways(dtype, param, param if policy.reduce_dtype is None else policy.reduce_dtype, self._factor)

    # --- calls ------------------------------------------------------------------------------------------------

    def __call__(self, params: Any, *args: PyTree, **keywords: PyTree) -> Any:
        """The result of the function, on this rank."""
        check_positional(str(self), keywords)
        layout, values, treedef = self._flat(params, args)
        policy, count = self._policy, layout.treedef.num_leaves
        shards, others = values[:count], values[count:]
        if policy.param_dtype is not None and policy.cast_forward_inputs:
            others = [_cast(x, policy.param_dtype) for x in others]
        dtypes = {i: g.ways.param for g in layout.groups for i in g.places}
        whole = [Aval(shape, dtypes[i]) for i, shape in enumerate(layout.shapes)]
        flat = Flat(self._fun, treedef, lambda f, tree: f(*tree))
        jaxpr = stage(flat, [*whole, *map(aval_of, others)], name_of(self._fun))
        outs = self._run(layout, jaxpr, shards, others)
        if policy.output_dtype is not None:
            outs = [_cast(x, policy.output_dtype) for x in outs]
        return results(flat.out_tree, outs, {id(x) for x in others})

    def _run(
        self, layout: ShardLayout, jaxpr: Jaxpr, shards: Sequence[Any], others: Sequence[Any]
    ) -> list[Any]:
        program = SegmentedProgram(jaxpr, layout.groups, self._prefetch, self._reshard)
        number = begin_p.bind(context=self._context)
        env: dict[Any, Any] = dict(zip(jaxpr.constvars, jaxpr.consts))
        env.update(zip(jaxpr.invars[len(shards) :], others))
        root = layout.groups[0]

        def rows(group: Group) -> list[Any]:
            return [shards[i] for g in program.around(group) for i in g.places]

        if root.places:
            env.update(zip(program.variables(root), self._gather(program, root, number, rows(root))))
        for part in program.parts:
            if not part.groups:
                run_equations(part.eqns, env)
                continue
            values = [number, *[env[v] for v in part.read], *[x for g in part.groups for x in rows(g)]]
            run = partial(self._run_part, program, part)
            if self._reshard:
                body = stage(run, list(map(aval_of, values)), name_of(self._fun))
                outs = checkpoint.bind(body, values, policy=everything_saveable, prevent_cse=False)
            else:
                outs = run(*values)
            number = outs[0]
            env.update(zip(part.written, outs[1:]))
        end_p.bind(number, group=root, reshard=False)
        return [a.value if type(a) is Literal else env[a] for a in jaxpr.outvars]

    def _run_part(self, program: SegmentedProgram, part: Segment, number: Any, *values: Any) -> list[Any]:
        """One part of the program, from the number of the pass, what it reads, and rows of groups."""
        env: dict[Any, Any] = dict(zip(part.read, values))
        at, eqns = len(part.read), iter(part.eqns)
        for group, count in zip(part.groups, part.counts, strict=True):
            run_equations(islice(eqns, count), env)
            until = at + sum([len(g.places) for g in program.around(group)])
            env.update(zip(program.variables(group), self._gather(program, group, number, values[at:until])))
            at = until
        run_equations(eqns, env)
        written = [env[v] for v in part.written]
        for group in part.groups:
            number = end_p.bind(number, *written, group=group, reshard=self._reshard)
        return [number, *written]

    def _gather(self, program: SegmentedProgram, group: Group, number: Any, rows: Sequence[Any]) -> list[Any]:
        return gather_p.bind(
            number,
            *rows,
            group=group,
            first=group is program.order[0],
            ahead=program.ahead(group),
            behind=program.behind(group),
            again=False,
        )


def _cast(x: Any, dtype: np.dtype) -> Any:
    """A floating-point value in this dtype; any other as it is."""
    aval = aval_of(x)
    return convert(x, dtype) if is_float(aval.dtype) and aval.dtype != dtype else x

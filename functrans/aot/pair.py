"""`trace_pair`: the forward and the backward program of a function, and what is between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from typing import Any

from ..control.checkpoint import Policy
from ..control.residuals.partitioner import Joint, Partitioner, checked_choice, cut_in_two, partition
from ..control.residuals.rematerialize import selected
from ..core import Aval, Eqn, Jaxpr, Var, boundary, evaluate
from ..core.dtypes import is_inexact
from ..core.values import ArrayLike, PyTree
from ..frontend.arguments import Flat, argument_place, check_function, name_of, struct_aval
from ..frontend.checked import checked
from ..frontend.pytree import tree_flatten_with_path
from ..passes.masks import scatter
from ..primitives.structure.linear import zeros
from ..transforms.linearize_jaxpr import LinearizedJaxpr, linearize_jaxpr
from ..transforms.stage import stage
from ..transforms.transpose import transpose_jaxpr
from .draw import drawn


@dataclass(frozen=True)
class SavedValue:
    """A value that the forward program hands to the backward program.

    Attributes
    ----------
    kind : str
        ``"input"``, ``"output"``, or ``"value"`` for any other.
    index : int
        Its number among the inputs, or among the outputs of the forward program.
    aval : Aval
        Its shape and dtype.
    source : str
        The name of the argument, or the line that computes the value.
    """

    kind: str
    index: int
    aval: Aval
    source: str

    @property
    def bytes(self) -> int:
        """The memory that saving it takes: none for an input, which exists anyway."""
        return 0 if self.kind == "input" else self.aval.size * self.aval.dtype.itemsize


@dataclass(frozen=True, eq=False)
class Pair:
    """The forward and the backward program of a function.

    Attributes
    ----------
    forward : Jaxpr
        From the inputs (the leaves of the arguments) to the outputs, then the other saved values.
    backward : Jaxpr
        From all that is saved, then the cotangents of the float outputs, to the gradients of the float inputs.
    num_outputs : int
        The number of the function's outputs.
    saved : tuple of SavedValue
    recomputed : tuple of Eqn
        The equations that are in both programs.
    """

    forward: Jaxpr
    backward: Jaxpr
    num_outputs: int
    saved: tuple[SavedValue, ...]
    recomputed: tuple[Eqn, ...]

    @property
    def residual_bytes(self) -> int:
        """The memory of the saved values besides the inputs."""
        return sum(s.bytes for s in self.saved)

    def draw(self, path: str | PathLike[str]) -> None:
        """Draw both programs and the values that cross from one to the other, with their bytes.

        Parameters
        ----------
        path : str or path
            Its ending decides the form: ``.svg`` for a picture, ``.dot`` for Graphviz. Equal pairs give equal files.
        """
        drawn(self.forward, self.backward, self.saved, self.recomputed, path)


@boundary
@checked
def trace_pair(fun: Callable[..., PyTree], *args: PyTree, partition_fn: Partitioner | None = None) -> Pair:
    """The forward and the backward program of a function.

    Parameters
    ----------
    fun : callable
        A function of arrays and pytrees of arrays.
    *args
        Its arguments, or `ShapeDtypeStruct`s in their place.
    partition_fn : callable, optional
        ``partition_fn(joint)`` returns the variables of ``joint.primal`` to save; everything else that the backward
        program needs is computed again. By default ``config.partitioner`` and ``config.activation_memory_budget``
        decide.

    Returns
    -------
    Pair

    Raises
    ------
    PartitionError
        If `partition_fn` returns something else, or something that a callback returned would have to be computed again.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> x = ft.ShapeDtypeStruct((1000,), "float64")
    >>> def f(x):
    ...     return fnp.sin(fnp.sin(fnp.sin(x)))
    >>> pair = ft.aot.trace_pair(f, x)
    >>> pair.residual_bytes, len(pair.recomputed)
    (0, 2)
    >>> ft.aot.trace_pair(f, x, partition_fn=ft.aot.save_all).residual_bytes
    24000
    """
    check_function("trace_pair", fun)
    paths, treedef = tree_flatten_with_path((args, {}))
    avals = [struct_aval(x, lambda: f"trace_pair of {name_of(fun)}: an argument") for _, x in paths]
    jaxpr = stage(Flat(fun, treedef, lambda f, dynamic: f(*dynamic[0])), avals, name_of(fun))
    parts = linearize_jaxpr(jaxpr, tuple([is_inexact(a.dtype) for a in avals]))
    parts, again = cut_in_two(parts, partition if partition_fn is None else checked_choice(partition_fn))
    names = [argument_place(fun, path) for path, _ in paths]
    saved = tuple([_described(parts, names, len(jaxpr.outvars), place) for place in parts.residuals])
    forward = set(parts.primal.eqns)
    recomputed = tuple([e for e in again if e in forward])
    return Pair(parts.primal, _backward(jaxpr, parts), len(jaxpr.outvars), saved, recomputed)


def _described(
    parts: LinearizedJaxpr, names: list[str], num_outputs: int, place: tuple[str, int]
) -> SavedValue:
    where, i = place
    if where == "in":
        return SavedValue("input", i, parts.primal.invars[i].aval, names[i])
    v = parts.primal.outvars[i]
    source = next((e.source for e in parts.primal.eqns if v in e.outvars), None)
    return SavedValue(
        "output" if i < num_outputs else "value", i, v.aval, "" if source is None else str(source)
    )


def _backward(jaxpr: Jaxpr, parts: LinearizedJaxpr) -> Jaxpr:
    """From the residuals and all cotangents to all gradients; those that do not depend on each other are zero."""
    count = len(parts.residuals)
    inputs = [a for a in jaxpr.in_avals if is_inexact(a.dtype)]
    outputs = [is_inexact(a.dtype) for a in jaxpr.out_avals]
    linear = (False,) * count + (True,) * len(inputs)
    body, has = transpose_jaxpr(parts.linear, linear, (True,) * len(parts.linear.outvars))

    def gradients(*values: ArrayLike) -> list[Any]:
        residuals, cotangents = values[:count], scatter(outputs, values[count:])
        used = [ct for ct, nonzero in zip(cotangents, parts.nonzero) if nonzero]
        outs = scatter(has, evaluate(body, [*residuals, *used]))
        return [zeros(a.strong()) if ct is None else ct for a, ct in zip(inputs, outs)]

    avals = [v.aval for v in parts.linear.invars[:count]]
    avals += [a.strong() for a, m in zip(jaxpr.out_avals, outputs) if m]
    return stage(gradients, avals, f"backward({jaxpr.name})", jaxpr.stats)


@checked
def by_policy(policy: Policy) -> Partitioner:
    """The partitioner that saves what a policy of `functrans.checkpoint_policies` selects.

    Parameters
    ----------
    policy : callable
        ``policy(primitive, *avals, **params)`` returns whether to save the results of an equation.

    Returns
    -------
    callable
        A `partition_fn`. It also saves what callbacks return.

    Examples
    --------
    >>> import functrans as ft
    >>> dots = ft.aot.by_policy(ft.checkpoint_policies.dots_saveable)
    >>> x = ft.ShapeDtypeStruct((10, 10), "float64")
    >>> ft.aot.trace_pair(lambda x: (x @ x) ** 2 @ x, x, partition_fn=dots).residual_bytes
    800
    """

    def choose(joint: Joint) -> set[Var]:
        def keep(eqn: Eqn) -> bool:
            return policy(eqn.primitive, *[a.aval for a in eqn.invars], **eqn.params)

        chosen = selected(joint.primal, keep)
        return {v for v in chosen if type(v) is Var}

    return choose

"""`checkpoint`: less memory in reverse mode, at the cost of recomputation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from ..control.checkpoint import bind
from ..core import ArgumentError, Attachment, Transformed, aval_of
from ..core.values import ArrayLike, PyTree
from ..frontend.arguments import (
    Flat,
    argument_at,
    check_function,
    flatten_values,
    name_of,
    result,
    results,
    value_of,
)
from ..frontend.checked import checked
from ..frontend.pytree import tree_map
from ..passes.toolkit import lift_tracers
from ..primitives.elementwise.identities import name_p
from ..transforms.stage import Uses, attached, stage
from .compiled.static import StaticArguments
from .refs import has_refs, put_back, with_values


@checked
def checkpoint(
    fun: Callable[..., PyTree] | None = None,
    *,
    prevent_cse: bool = True,
    policy: Callable[..., bool] | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Iterable[str] = (),
) -> Any:
    """The same function, but reverse mode stores only its arguments and computes the rest again in the backward pass.

    Parameters
    ----------
    fun : callable
        Without it, a decorator.
    prevent_cse : bool
        Whether a compiled program must really compute twice. With False, the compiler may merge the second
        computation with the first and store its results. Use it if the two are in different loops anyway, as in the
        body of a scan.
    policy : callable, optional
        Selects values to store besides the arguments: one of `functrans.checkpoint_policies`, or a function
        ``policy(primitive, *avals, **params) -> bool`` of the operation that computes a value. By default none.
    static_argnums, static_argnames : int or str, or sequences of them
        Arguments that are not traced (flags, functions, numbers in a Python ``if``).

    Returns
    -------
    callable

    Notes
    -----
    Values and derivatives are those of `fun`, in both modes and to all orders; forward mode stores nothing anyway.
    `fun` is traced at each call, as by `jit`: inside, only shapes and dtypes are known. A loop inside is recomputed as
    a whole. So is a jitted function, unless there is a policy, which then decides about its operations. Results of
    `io_callback`, and of a loop that calls the host, are stored; a `pure_callback` may be called again. For a chain of
    n steps, checkpoints around blocks of sqrt(n) need memory for 2 sqrt(n) of them; see also
    ``lax.scan(..., checkpoint_every=k)``.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> block = ft.checkpoint(lambda x: fnp.sin(fnp.sin(x)))
    >>> ft.grad(lambda x: block(block(x)))(1.0)
    Array(0.20593521)

    Store named values:

    >>> policy = ft.checkpoint_policies.save_only_these_names("angle")
    >>> @ft.checkpoint(policy=policy)
    ... def f(x):
    ...     return fnp.sin(ft.checkpoint_name(fnp.exp(x), "angle"))
    >>> ft.grad(f)(0.0)
    Array(0.54030231)
    """
    if fun is None:
        return partial(
            checkpoint,
            prevent_cse=prevent_cse,
            policy=policy,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
        )
    check_function("checkpoint", fun)
    if policy is not None and not callable(policy):
        raise ArgumentError(
            f"checkpoint of {name_of(fun)}: policy must be a function, got {str(policy)[:60]!r} of type "
            f"{type(policy).__name__}; see functrans.checkpoint_policies"
        )
    static = StaticArguments(
        fun,
        None if static_argnums == () else static_argnums,
        None if static_argnames == () else static_argnames,
    )
    return _Checkpointed(fun, static, policy, prevent_cse)


class _Checkpointed(Transformed):
    _copied_names = (*Transformed._copied_names, "__doc__")

    def __init__(
        self,
        fun: Callable[..., PyTree],
        signature: StaticArguments,
        policy: Callable[..., bool] | None,
        prevent_cse: bool,
    ):
        super().__init__("checkpoint", fun)
        self._signature = signature
        self._policy = policy
        self._prevent_cse = prevent_cse

    def __call__(self, *args: Any, **kwargs: PyTree) -> PyTree:
        """The results of the function."""
        fun = self._fun
        split = self._signature.split(fun, args, kwargs)
        if has_refs(split.dynamic):
            return with_values("checkpoint", fun, self._of_values, args, kwargs)
        values, treedef = flatten_values(split.dynamic, partial(argument_at, "checkpoint", fun))
        flat = Flat(fun, treedef, split.call)
        hooks: list[Attachment] = []
        avals = [aval_of(x) for x in values]
        uses = Uses()
        jaxpr, captured = lift_tracers(
            stage(flat, avals, name_of(fun), hooks=hooks, uses=uses, argument=flat.argument)
        )
        operands = [*values, *[ref.take() for ref in uses.refs]]
        outs = bind(jaxpr, [*captured, *operands], policy=self._policy, prevent_cse=self._prevent_cse)
        outs = put_back(uses, attached(hooks, operands, outs))
        return results(flat.out_tree, outs, {id(x) for x in values})

    def _of_values(self, fun: Callable[..., PyTree], _: object) -> _Checkpointed:
        return _Checkpointed(fun, self._signature, self._policy, self._prevent_cse)


remat = checkpoint


@checked
def checkpoint_name(x: ArrayLike, name: str) -> PyTree:
    """Return `x`, named for the policies of `checkpoint`.

    Parameters
    ----------
    x : array, or pytree of arrays
    name : str

    Returns
    -------
    The same pytree. The name costs nothing in a compiled function.

    Examples
    --------
    >>> import functrans as ft
    >>> ft.checkpoint_name(2.0, "two")
    Array(2.)
    """
    if not isinstance(name, str):
        raise ArgumentError(
            f"checkpoint_name: the name must be a string, got {name!r} of type {type(name).__name__}"
        )

    def named(leaf: ArrayLike) -> PyTree:
        value = value_of(leaf, lambda: "checkpoint_name: x")
        return result(name_p.bind(value, name=name), {id(value)})

    return tree_map(named, x)

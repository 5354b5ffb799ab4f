"""The states of optimisers of trees, from those of optimisers of one array."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .. import numpy as fnp
from ..arrays.arguments import shown
from ..core import aval_of
from ..core.values import ArrayLike, PyTree
from ..errors import ArgumentError, PytreeError
from ..frontend.arguments import name_of
from ..frontend.checked import checked
from ..frontend.pytree import tree_flatten, tree_unflatten
from ..runtime.records import NamedTuple
from ..tree_util import register_pytree_node


class OptimizerState(NamedTuple):
    """The state of an optimiser: a tree whose leaves are those of the states of all parameters.

    Attributes
    ----------
    packed_state : list of lists of arrays
        For each parameter the leaves of its state.
    tree_def : PyTreeDef
        Of the parameters.
    subtree_defs : tuple of PyTreeDef
        For each parameter that of its state.
    """

    packed_state: Any
    tree_def: Any
    subtree_defs: Any


register_pytree_node(
    OptimizerState,
    lambda state: ((state.packed_state,), (state.tree_def, state.subtree_defs)),
    lambda aux, children: OptimizerState(children[0], *aux),
)


class Optimizer(NamedTuple):
    """An optimiser.

    Attributes
    ----------
    init_fn : callable
        ``init_fn(params) -> state``
    update_fn : callable
        ``update_fn(step, grads, state) -> state``
    params_fn : callable
        ``params_fn(state) -> params``
    """

    init_fn: Callable[[Any], OptimizerState]
    update_fn: Callable[[Any, Any, OptimizerState], OptimizerState]
    params_fn: Callable[[OptimizerState], Any]


@checked
def optimizer(opt_maker: Callable[..., Any]) -> Callable[..., Optimizer]:
    """Decorator: turn an optimiser for one array into one for trees of arrays.

    Parameters
    ----------
    opt_maker : callable
        Returns a triple of functions of one parameter: ``init(x) -> state``, ``update(step, grad, state) -> state``,
        ``get_params(state) -> x``. A state is a tree of arrays.

    Returns
    -------
    callable
        With the arguments of `opt_maker`; it returns an `Optimizer`.

    Raises
    ------
    PytreeError
        From ``update_fn``: if the gradients are of another structure than the parameters, or the new state of another
        structure than the old one.

    Notes
    -----
    The arrays of a state keep their dtypes, whatever `update` computes.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> from functrans.example_libraries.optimizers import optimizer
    >>> @optimizer
    ... def signed(step_size):
    ...     return lambda x: x, lambda i, g, x: x - step_size * fnp.sign(g), lambda x: x
    >>> init, update, get_params = signed(0.5)
    >>> get_params(update(0, [2.0, -3.0], init([1.0, 1.0])))
    [Array(0.5), Array(1.5)]
    """

    @functools.wraps(opt_maker)
    def make(*args: ArrayLike, **kwargs: PyTree) -> Optimizer:
        name = name_of(opt_maker)
        made = opt_maker(*args, **kwargs)
        if not (isinstance(made, tuple | list) and len(made) == 3):
            raise ArgumentError(f"{name} must return init, update and get_params, got {shown(made)}")
        init, update, get_params = made

        def init_fn(params: PyTree) -> OptimizerState:
            leaves, tree = tree_flatten(params)
            return _packed([init(fnp.asarray(x)) for x in leaves], tree)

        def update_fn(step: ArrayLike, grads: Any, state: OptimizerState) -> OptimizerState:
            leaves, tree = tree_flatten(grads)
            if tree != state.tree_def:
                raise PytreeError(
                    f"{name}: the gradients must be a tree like the parameters, {state.tree_def}, got {tree}"
                )
            new = _packed([update(step, g, old) for g, old in zip(leaves, _states(state))], tree)
            for before, after in zip(state.subtree_defs, new.subtree_defs):
                if before != after:
                    raise PytreeError(
                        f"{name}: update must return a state like the one that it was given, {before}, got {after}"
                    )
            kept = [
                [fnp.asarray(x).astype(aval_of(y).dtype) for x, y in zip(ours, theirs)]
                for ours, theirs in zip(new.packed_state, state.packed_state)
            ]
            return new._replace(packed_state=kept)

        def params_fn(state: OptimizerState) -> PyTree:
            return tree_unflatten(state.tree_def, [get_params(x) for x in _states(state)])

        return Optimizer(init_fn, update_fn, params_fn)

    return make


def _packed(states: Sequence[Any], tree: PyTree) -> OptimizerState:
    pairs = [tree_flatten(s) for s in states]
    return OptimizerState([leaves for leaves, _ in pairs], tree, tuple([t for _, t in pairs]))


def _states(state: OptimizerState) -> list[Any]:
    """The state of each parameter."""
    return [tree_unflatten(t, leaves) for t, leaves in zip(state.subtree_defs, state.packed_state)]


class JoinPoint:
    """A leaf of a tree, in which another tree begins.

    Parameters
    ----------
    subtree
        The tree.
    """

    def __init__(self, subtree: Any):
        self.subtree = subtree

    def __iter__(self) -> Iterator[Any]:
        yield self.subtree


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """A tree like the parameters, with a `JoinPoint` for each that holds its state: a form to be stored.

    Examples
    --------
    >>> from functrans.example_libraries import optimizers
    >>> init, update, get_params = optimizers.momentum(0.1, 0.9)
    >>> optimizers.unpack_optimizer_state(init({"a": 1.0}))["a"].subtree
    (Array(1.), Array(0.))
    """
    if not isinstance(opt_state, OptimizerState):
        raise ArgumentError(
            f"unpack_optimizer_state: opt_state must be an OptimizerState, got {shown(opt_state)} of type "
            f"{type(opt_state).__name__}"
        )
    return tree_unflatten(opt_state.tree_def, [JoinPoint(s) for s in _states(opt_state)])


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """The state from the tree that `unpack_optimizer_state` returns.

    Raises
    ------
    PytreeError
        If a leaf is not a `JoinPoint`.

    Examples
    --------
    >>> from functrans.example_libraries import optimizers
    >>> state = optimizers.sgd(0.1).init_fn([1.0, 2.0])
    >>> optimizers.pack_optimizer_state(optimizers.unpack_optimizer_state(state)) == state
    True
    """
    leaves, tree = tree_flatten(marked_pytree)
    for leaf in leaves:
        if not isinstance(leaf, JoinPoint):
            raise PytreeError(
                f"pack_optimizer_state: each leaf must be a JoinPoint, got {shown(leaf)}; unpack_optimizer_state makes "
                "such trees"
            )
    return _packed([leaf.subtree for leaf in leaves], tree)

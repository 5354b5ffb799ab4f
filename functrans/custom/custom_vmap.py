"""``custom_vmap``: a function with a rule for `vmap` of its own.

Derivatives keep the rule: that of the function becomes a function whose rule is the derivative of the rule; see
`mapped`. So ``vmap(jvp(f))``, ``jvp(vmap(f))``, ``vmap(grad(f))`` and ``grad(vmap(f))`` all differentiate what the rule
computes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..control.bodies import Mask
from ..core.aval import Aval, aval_of
from ..core.errors import ConcretizationError, VmapRuleError
from ..core.portable import Bound, Portable
from ..core.pytree import PyTree, PyTreeDef, tree_unflatten
from ..core.trace import current_trace, eval_trace, is_abstract
from ..core.tracebacks import boundary
from ..core.tree_nodes import KeyPath, keystr
from ..transforms.stage import stage
from ..transforms.values import (
    argument_name,
    check_function,
    flatten_values,
    given,
    name_of,
    results,
    returned_values,
)
from .map_returns import MapReturned, Types
from .mapped import WithMap
from .positions import Positions
from .record import CustomRule, Values
from .rule import bind_rule

#: Types of arguments for which it is kept what a function returns.
_MOST = 256
_OF_FUNCTIONS_INSIDE = ("defvjp", "defjvp", "defjvps")
Rule = Callable[..., tuple[PyTree, PyTree]]


class custom_vmap(Portable):
    r"""A function that `vmap` treats by a rule of its own.

    Parameters
    ----------
    fun : callable
        Of arrays and trees of arrays. Arguments by name are resolved to positions by its signature.

    Attributes
    ----------
    fun : callable
    vmap_rule : callable or None
        What `def_vmap` was given.

    Raises
    ------
    VmapRuleError
        Under `vmap`: no rule was given, or it does not return what it should.

    Notes
    -----
    The rule is asked where an argument is mapped; arguments that are not it gets as they are. Nested maps ask it once,
    for the innermost; the others map the operations that it is made of. Its derivative is that of what it computes:
    under ``vmap(grad(f))`` as well as ``grad(vmap(f))``. Without a map the function itself is differentiated. An
    argument that is being differentiated counts as mapped where its tangent or cotangent is.

    JAX has no reverse mode through such a function unless it is mapped first.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> @ft.custom_vmap
    ... def distances(x, y):
    ...     return fnp.sum((x - y) ** 2)
    >>> @distances.def_vmap
    ... def rule(axis_size, in_batched, x, y):
    ...     print(axis_size, in_batched)
    ...     if in_batched == [True, False]:  # by one product of matrices instead of an array of differences
    ...         return fnp.sum(x * x, axis=1) - 2 * x @ y + y @ y, True
    ...     return fnp.sum((x - y) ** 2, axis=-1), True
    >>> x = fnp.asarray([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> ft.vmap(distances, in_axes=(0, None))(x, x[0])
    3 [True, False]
    Array([ 0.,  8., 32.])
    >>> distances(x[1], x[0])
    Array(8.)
    """

    _transient = frozenset(("_types",))

    def __init__(self, fun: Callable[..., Any]):
        check_function("custom_vmap", fun)
        functools.update_wrapper(self, fun, updated=())
        self.fun = fun
        self.vmap_rule: Rule | None = None
        self._positions = Positions("custom_vmap", fun)
        self._arrived()

    def _arrived(self) -> None:
        self._types: dict[Any, Types] = {}

    def def_vmap(self, vmap_rule: Rule) -> Rule:
        """Set the rule; may stand above it as a decorator.

        Parameters
        ----------
        vmap_rule : callable
            ``vmap_rule(axis_size, in_batched, *args) -> (out, out_batched)``. Mapped arguments have the mapped axis in
            front. `in_batched` is a list with an entry for each argument: True or False, in the tree of the argument.
            So is `out_batched` in the tree of `out`; a single bool serves a whole part. Results that are not mapped
            have the shape of a single one.

        Returns
        -------
        callable
            The rule.

        Examples
        --------
        >>> import functrans as ft, functrans.numpy as fnp
        >>> f = ft.custom_vmap(fnp.cos)
        >>> _ = f.def_vmap(lambda axis_size, in_batched, x: (fnp.cos(x), True))
        >>> ft.vmap(f)(fnp.zeros(2))
        Array([1., 1.])
        """
        check_function("def_vmap", vmap_rule)
        self.vmap_rule = vmap_rule
        return vmap_rule

    @boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function at these arguments."""
        values, tree = flatten_values(self._positions.resolved(args, kwargs), self._place)
        call = _Call(self.fun, self.vmap_rule, tree, self._types)
        if current_trace.get() is eval_trace:  # nothing is differentiated, mapped or traced
            outs = call.fwd(values)
        else:
            outs = bind_rule(call.rule(values), values, functions=(self.fun, self.vmap_rule))
        return results(call.out_tree, outs, {id(x) for x in values})

    def _place(self, path: KeyPath) -> str:
        return f"{self._positions.what}: {argument_name(self.fun, path[0].idx)}{keystr(path[1:])}"

    def __getattr__(self, name: str) -> Any:
        """``defvjp`` and its like, of a function inside that takes such rules."""
        if name in _OF_FUNCTIONS_INSIDE:
            return getattr(self.fun, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """The method of an instance, which is the first argument of the function and its rule."""
        return self if instance is None else Bound.of(self, instance)

    def __repr__(self) -> str:
        return f"<{self._positions.what}>"


class _Call:
    """One call: the function and its rule on flat values.

    Attributes
    ----------
    known : dict
        What the function returned before, by the structure and types of its arguments.
    out_tree : PyTreeDef
        What was returned last, by one of the two.
    """

    def __init__(
        self, fun: Callable[..., Any], vmap_rule: Rule | None, tree: PyTreeDef, known: dict[Any, Types]
    ):
        self.fun = fun
        self.vmap_rule = vmap_rule
        self.tree = tree
        self.known = known
        self.out_tree: Any = None

    def rule(self, values: Values) -> CustomRule:
        """The rule for these operands. With numbers behind all of them nothing can be mapped any more."""
        name, arity = name_of(self.fun), len(values)
        if not any(is_abstract(x) for x in values):
            return CustomRule(name, arity, self.fwd, plain=self.fwd)
        return WithMap(name, arity, self.fwd, self.mapped, (self.fun, self.vmap_rule)).rule()

    def fwd(self, values: Values) -> list[Any]:
        """The leaves of what the function returns."""
        out = self.fun(*tree_unflatten(self.tree, [given(x) for x in values]))
        leaves, self.out_tree = returned_values(self.fun, out)
        return leaves

    def mapped(self, size: int, batched: Mask, values: Values) -> tuple[list[Any], Mask]:
        """The leaves of what the rule returns, and which of them are mapped."""
        rule = self.vmap_rule
        if rule is None:
            raise VmapRuleError(
                f"custom_vmap of {name_of(self.fun)}: it is mapped by vmap, but has no rule. Define one: "
                f"@{name_of(self.fun)}.def_vmap"
            )
        args = tree_unflatten(self.tree, [given(x) for x in values])
        out = rule(size, list(tree_unflatten(self.tree, batched)), *args)
        found = MapReturned.of(self.fun, rule, size, out)
        found.check_axes()
        wanted = self._checked(found, batched, values)
        self.out_tree = found.tree
        return found.leaves if wanted is None else found.typed(wanted.avals), found.flags

    def _checked(self, found: MapReturned, batched: Mask, values: Values) -> Types | None:
        """What the function would return for one example; raises where the rule returned anything else."""
        avals = [aval_of(x) for x in values]
        one = tuple([a.with_shape(a.shape[1:]) if b else a for a, b in zip(avals, batched)])
        wanted = self.known.get((self.tree, one))
        if wanted is not None and found.problem(wanted) is None:
            return wanted
        wanted = self._types(one)  # anew: it may return something else by now
        if wanted is None:
            return None
        problem = found.problem(wanted)
        if problem is not None:
            found.refuse(problem)
        if len(self.known) >= _MOST:
            self.known.clear()
        self.known[self.tree, one] = wanted
        return wanted

    def _types(self, avals: Sequence[Aval]) -> Types | None:
        """What the function returns for arguments of these types; None where it wants their numbers."""
        other = _Call(self.fun, None, self.tree, {})
        try:
            found = stage(lambda *xs: other.fwd(xs), avals, name_of(self.fun)).out_avals
        except ConcretizationError:
            return None
        return Types(other.out_tree, found)

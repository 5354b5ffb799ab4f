"""``custom_vmap``: a function with a rule for `vmap` that you write.

Derivatives keep the rule: the rule for the tangent of the function is the tangent of the rule, and that for its
pullback is the pullback of the rule. A pullback computes the function again from its operands, since the function and
the rule would keep different residuals. So ``vmap(jvp(f))``, ``jvp(vmap(f))``, ``vmap(grad(f))`` and ``grad(vmap(f))``
all differentiate what the rule computes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from .. import errors
from ..core.aval import Aval, Zero, aval_of
from ..core.dtypes import is_inexact
from ..core.trace import current_trace, eval_trace, is_abstract
from ..core.values import Tangent
from ..errors.source import last_line
from ..frontend.arguments import check_function, given, name_of, results, returned_values
from ..frontend.binding import RuledFunction
from ..frontend.pytree import PyTree, PyTreeDef, flatten_axes, tree_unflatten
from ..frontend.tree_spec import Mismatch, TreeSpec, same_kind
from ..passes.masks import Mask, chosen, perturbed, scatter, with_zeros
from ..primitives.elementwise.arithmetic import mul_p
from ..primitives.operands import strong
from ..primitives.reductions.reduce import reduce_sum_p
from ..primitives.structure.linear import batched_first, instantiate
from ..runtime.records import NamedTuple
from ..runtime.tracebacks import boundary
from ..transforms import jvp as forward
from ..transforms.linearize import linearize
from ..transforms.stage import stage
from ..transforms.transpose import backward
from .custom_call import bind_rule
from .rule import Again, CustomRule, Dims, Forward, Pushed, Values

#: ``run(size, batched, values) -> (outs, batched)``: values that are mapped have the axis in front. Without a size the
#: function itself, with one its rule.
Run = Callable[[int | None, Sequence[bool], Values], tuple[list[Any], Sequence[bool]]]


class Mappable(CustomRule):
    """A function of flat values, and its rule for `vmap`.

    Parameters
    ----------
    name : str
    arity : int
    run : callable
        See `Run`.
    functions : tuple
        The user's functions that it calls.
    """

    has_reverse = has_forward = has_vmap = has_plain = True

    def __init__(self, name: str, arity: int, run: Run, functions: tuple[Any, ...]):
        self.name = name
        self.arity = arity
        self._run = run
        self.functions = functions

    def run(
        self, size: int | None, batched: Sequence[bool], values: Values
    ) -> tuple[list[Any], Sequence[bool]]:
        """See `Run`."""
        return self._run(size, batched, values)

    def apply(self, values: Values) -> list[Any]:
        """The outputs; the rule holds for all transformations outside."""
        return bind_rule(self, values, self.functions)

    def fwd(self, values: Values) -> list[Any]:
        """The outputs."""
        return self.run(None, (False,) * len(values), values)[0]

    def fwd_res(self, values: Values, perturbed: Mask, again: Again) -> Forward:
        """The outputs; `bwd` computes the function again from its operands."""
        return Forward(again(), list(values), perturbed)

    def vmap(self, size: int, values: Values, dims: Dims) -> Pushed:
        """Outputs for all examples, by the rule."""
        fronted = [x if d is None else batched_first(size, x, d) for x, d in zip(values, dims)]
        outs, batched = self.run(size, [d is not None for d in dims], fronted)
        return outs, [0 if b else None for b in batched]

    def _recorded(
        self, size: int | None, batched: Sequence[bool]
    ) -> tuple[Callable[..., list[Any]], list[bool]]:
        """A run as a function of values alone, and a list that gets which of its outputs are mapped."""
        flags: list[bool] = []

        def fun(*values: PyTree) -> list[Any]:
            outs, flags[:] = self.run(size, tuple(batched), values)
            return outs

        return fun, flags

    # --- forward mode --------------------------------------------------------------------------------------------

    def jvp(self, values: Values, tangents: Values, again: Again) -> Pushed:
        """Outputs and their tangents."""
        mask = perturbed(tangents)
        both = self._jvp(mask).apply([*values, *chosen(tangents, mask)])
        inexact = [is_inexact(aval_of(x).dtype) for x in both]
        # Outputs come first, then the tangents of those that have one.
        count = next(n for n in range(len(both) + 1) if n + sum(inexact[:n]) == len(both))
        outs = both[:count]
        return outs, with_zeros(inexact[:count], both[count:], outs)

    def _jvp(self, mask: Mask) -> Mappable:
        """From values, and tangents of those in the mask, to outputs, and tangents of those that can have one."""

        def run(
            size: int | None, batched: Sequence[bool], values: Values
        ) -> tuple[list[Any], Sequence[bool]]:
            tangents = iter(range(self.arity, len(values)))
            values, own = list(values), list(batched[: self.arity])
            for i, m in enumerate(mask):
                if m and own[i] != batched[t := next(tangents)]:
                    shared = t if own[i] else i
                    assert size is not None
                    values[shared] = batched_first(size, values[shared], None)
                    own[i] = True
            fun, flags = self._recorded(size, own)
            primals = values[: self.arity]
            outs, ts = forward.jvp(fun, primals, with_zeros(mask, values[self.arity :], primals))
            inexact = [is_inexact(aval_of(x).dtype) for x in outs]
            return [*outs, *map(instantiate, chosen(ts, inexact))], (*flags, *chosen(flags, inexact))

        return Mappable(f"jvp of {self.name}", self.arity + sum(mask), run, self.functions)

    # --- reverse mode --------------------------------------------------------------------------------------------

    def bwd(self, token: Mask, residuals: Values, cts: Values) -> list[Any]:
        """Cotangents of the operands."""
        given = perturbed(cts)
        if not any(given):
            return [None] * self.arity
        cotangents = scatter(token, self._vjp(token, given).apply([*residuals, *chosen(cts, given)]))
        return [ct if is_inexact(aval_of(x).dtype) else None for x, ct in zip(residuals, cotangents)]

    def _vjp(self, mask: Mask, given: Mask) -> Mappable:
        """From values, and cotangents of the outputs in `given`, to cotangents of the values in the mask."""

        def run(
            size: int | None, batched: Sequence[bool], values: Values
        ) -> tuple[list[Any], Sequence[bool]]:
            primals, own = values[: self.arity], batched[: self.arity]
            cts = iter(zip(values[self.arity :], batched[self.arity :]))
            if size is not None:
                own = [b or m for b, m in zip(own, mask)]
                primals = [
                    x if b == o else batched_first(size, x, None) for x, b, o in zip(primals, batched, own)
                ]
            fun, flags = self._recorded(size, own)
            linear = linearize(fun, primals, mask)
            cotangents = [
                _shared(size, *next(cts), b) if g else Zero(x) for x, g, b in zip(linear.outs, given, flags)
            ]
            back = backward(linear.tape, linear.tangents, cotangents, linear.inputs)
            outs = list(map(instantiate, chosen(back, mask)))
            return outs, (size is not None,) * len(outs)

        return Mappable(f"vjp of {self.name}", self.arity + sum(given), run, self.functions)


def _shared(size: int | None, ct: Tangent, batched: bool, mapped: bool) -> Any:
    """The cotangent of an output that is mapped, or is the same for all examples."""
    if size is None or (batched and mapped):
        return ct
    if mapped:
        return batched_first(size, ct, None)
    return reduce_sum_p.bind(ct, axes=(0,)) if batched else mul_p.bind(ct, aval_of(ct).dtype.type(size))


#: For how many types of arguments the types of the results are kept.
_MOST = 256
Rule = Callable[..., tuple[PyTree, PyTree]]


class custom_vmap(RuledFunction):
    r"""A function that `vmap` treats by a rule that you write.

    Parameters
    ----------
    fun : callable
        Of arrays and trees of arrays. Arguments by name are resolved to positions by its signature.

    Attributes
    ----------
    fun : callable
    vmap_rule : callable or None
        What `def_vmap` received.

    Raises
    ------
    VmapRuleError
        Under `vmap`: there is no rule, or it does not return what it should.

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

    _front = "custom_vmap"
    _of_function_inside = frozenset(("defvjp", "defjvp", "defjvps"))
    _transient = frozenset(("_types",))

    def __init__(self, fun: Callable[..., PyTree]):
        self._wrap(fun)
        self.fun = fun
        self.vmap_rule: Rule | None = None
        self._arrived()

    def _arrived(self) -> None:
        self._types: dict[Any, TreeSpec] = {}

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
    def __call__(self, *args: PyTree, **kwargs: PyTree) -> Any:
        """The function at these arguments."""
        values, tree = self._flattened(self._positions.resolved(args, kwargs))
        call = _MappableCall(self.fun, self.vmap_rule, tree, self._types)
        if current_trace.get() is eval_trace:  # nothing is differentiated, mapped or traced
            outs = call.fwd(values)
        else:
            # If the numbers of all operands are known, nothing can be mapped.
            call.has_vmap = call.has_reverse = call.has_forward = any(map(is_abstract, values))
            outs = call.apply(values)
        return results(call.out_tree, outs, {id(x) for x in values})


class _MappableCall(Mappable):
    """One call: the function and its rule on flat values.

    Attributes
    ----------
    known : dict
        What the function returned before, by the structure and types of its arguments.
    out_tree : PyTreeDef
        What was returned last, by one of the two.
    """

    def __init__(
        self, fun: Callable[..., PyTree], vmap_rule: Rule | None, tree: PyTreeDef, known: dict[Any, TreeSpec]
    ):
        self.name = name_of(fun)
        self.arity = tree.num_leaves
        self.functions = (fun, vmap_rule)
        self.fun = fun
        self.vmap_rule: Any = vmap_rule
        self.tree = tree
        self.known = known
        self.out_tree: Any = None

    def run(
        self, size: int | None, batched: Sequence[bool], values: Values
    ) -> tuple[list[Any], Sequence[bool]]:
        """The leaves of what the function or its rule returns, and which of them are mapped."""
        args = tree_unflatten(self.tree, [given(x) for x in values])
        if size is None:
            leaves, self.out_tree = returned_values(self.fun, self.fun(*args))
            return leaves, (False,) * len(leaves)
        if self.vmap_rule is None:
            raise errors.VmapRuleError(
                f"custom_vmap of {self.name}: it is mapped by vmap, but has no rule. Define one: "
                f"@{self.name}.def_vmap"
            )
        out = self.vmap_rule(size, list(tree_unflatten(self.tree, tuple(batched))), *args)
        returned = self._returned(size, out)
        spec = self._checked(returned, size, batched, values)
        self.out_tree = returned.tree
        if spec is None:
            return returned.leaves, returned.flags
        return [strong(x, a.dtype) for x, a in zip(returned.leaves, spec.avals)], returned.flags

    def _returned(self, size: int, out: Any) -> _Returned:
        """What the rule returned, taken apart."""
        if not (isinstance(out, tuple | list) and len(out) == 2):
            got = f"{len(out)} values" if isinstance(out, tuple | list) else type(out).__name__
            self._refuse(f"must return a pair (out, out_batched), but returned {got}")
        try:
            leaves, tree = returned_values(self.vmap_rule, out[0])
        except (errors.ArgumentError, errors.DtypeError) as error:
            self._refuse(f"must return a tree of arrays: {error.message}")
        try:
            flags = flatten_axes("out_batched", tree, out[1])
        except errors.PytreeError as error:
            self._refuse(f"returned an out_batched of another structure than its out: {error.message}")
        for i, (x, flag) in enumerate(zip(leaves, flags)):
            if not isinstance(flag, bool | np.bool_):
                self._refuse(f"returned {flag!r} in out_batched; expected True or False for each result")
            shape = aval_of(x).shape
            if flag and shape[:1] != (size,):
                self._refuse(
                    f"returned the shape {shape}{_at(tree, i)}, which has no axis of size {size} in front"
                )
        return _Returned(leaves, tree, tuple(map(bool, flags)))

    def _checked(
        self, returned: _Returned, size: int, batched: Sequence[bool], values: Values
    ) -> TreeSpec | None:
        """What the function would return for one example; raises where the rule returned anything else."""
        one = tuple([a.with_shape(a.shape[1:]) if b else a for a, b in zip(map(aval_of, values), batched)])
        spec = self.known.get((self.tree, one))
        if spec is not None and returned.mismatch(spec, size) is None:
            return spec
        spec = self._spec(one)  # again: it may return something else by now
        if spec is None:
            return None
        mismatch = returned.mismatch(spec, size)
        if mismatch is not None:
            self._refuse_mismatch(returned, mismatch, spec)
        if len(self.known) >= _MOST:
            self.known.clear()
        self.known[self.tree, one] = spec
        return spec

    def _spec(self, avals: Sequence[Aval]) -> TreeSpec | None:
        """What the function returns for arguments of these types; None where it needs their numbers."""
        other = _MappableCall(self.fun, None, self.tree, {})
        try:
            out_avals = stage(lambda *xs: other.fwd(xs), avals, self.name).out_avals
        except errors.ConcretizationTypeError:
            return None
        return TreeSpec(other.out_tree, out_avals)

    def _refuse_mismatch(self, returned: _Returned, mismatch: Mismatch, spec: TreeSpec) -> NoReturn:
        aspect, _, expected, got, i = mismatch
        if aspect == "structure":
            self._refuse(
                f"returned another structure than the function{mismatch.at}: expected {expected}, got {got}\n"
                f"  function: {spec.tree}\n  rule:     {returned.tree}"
            )
        at = _at(returned.tree, i)
        if aspect == "dtype":
            self._refuse(f"returned the dtype {got.dtype}{at}, where the function returns {expected.dtype}")
        self._refuse(
            f"returned the shape {got.shape}{at}, {'mapped' if returned.flags[i] else 'not mapped'}, where the "
            f"function's makes it {expected.shape}"
        )

    def _refuse(self, problem: str) -> NoReturn:
        """Raise `VmapRuleError` at the end of the rule."""
        rule = self.vmap_rule
        raise errors.VmapRuleError(
            f"custom_vmap of {self.name}: its rule ({name_of(rule)}) {problem}", last_line(rule)
        )


class _Returned(NamedTuple):
    """Leaves and structure of a rule's results, and which of them are mapped."""

    leaves: list[Any]
    tree: PyTreeDef
    flags: Mask

    def mismatch(self, spec: TreeSpec, size: int) -> Mismatch | None:
        """Where the results differ from those of the function, mapped over an axis of this size."""
        avals = [a.with_shape((size, *a.shape)) if m else a for a, m in zip(spec.avals, self.flags)]
        return TreeSpec(spec.tree, avals).mismatch(self.tree, map(aval_of, self.leaves), _takes_on)


def _takes_on(own: Aval, aval: Aval) -> bool:
    """Whether it is a number that takes on the dtype."""
    return own.weak and same_kind(own, aval)


def _at(tree: PyTreeDef, i: int) -> str:
    return "" if tree.num_leaves == 1 else f" as result {i} of {tree}"

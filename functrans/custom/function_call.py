"""One call of ``MyOp.apply``: the slots of its rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

import numpy as np

from .. import errors
from ..core import Aval, Linear, Zero, aval_of, blamed, debug_nans_active, is_inexact, last_line
from ..core.values import ArrayLike, PyTree, Tangent
from ..frontend.arguments import given
from ..frontend.partition import SIMPLE, Arguments, Outputs, own_value
from ..frontend.pytree import flatten_axes, tree_structure
from ..frontend.pytree.nodes import KeyPath, keystr
from ..passes.masks import chosen, perturbed, scatter
from ..primitives.structure.linear import instantiate
from ..runtime.context import pass_on
from ..runtime.records import NamedTuple
from ..transforms.stage import stage
from .closures import Apart, StandInTracer
from .context import Phase
from .custom_call import bind_rule
from .forward import HostForward, Run, run_and_keep
from .function_class import Definition
from .returned import GRADIENT, TANGENT, Gradients, Tangents, exact, gradient_given
from .rule import Again, CustomRule, Dims, Forward, Mask, Pushed, UserFunction, Values
from .saving import Kept


class FunctionCall(CustomRule):
    """A call of a `Function` with these arguments.

    Parameters
    ----------
    definition : Definition
    arguments : Arguments
    """

    outputs: Any = None
    host: HostForward | None = None
    no_forward = "You must implement the jvp method for it to be differentiated in forward mode"

    def __init__(self, definition: Definition, arguments: Arguments):
        d = definition
        self.definition = d
        self.name = d.name
        self.arguments = arguments
        self.arity = arguments.layout.count
        self.has_reverse, self.has_forward, self.has_vmap, self.has_transpose, self.derive_jvp = d.slots
        self.backward_autocast = d.backward_autocast

    def place(self, position: int) -> str:
        """How messages call an argument."""
        layout, _, keywords = self.arguments
        return self.definition.place(position, keywords, len(layout.parts))

    def place_of_array(self, number: int) -> str:
        """How messages call the argument that holds an array."""
        parts = self.arguments.layout.parts
        return self.place(next(i for i, p in enumerate(parts) if p.first <= number < p.last))

    def output_name(self) -> str:
        """How messages call an output."""
        return f"an output of {self.name}.forward"

    def bind(self, values: Values, rule: CustomRule | None = None) -> list[Any]:
        """Apply the rule, or another one of the same arguments, in the current trace."""
        layout, static, _ = self.arguments
        rule = rule or self
        if layout.plain:
            return bind_rule(rule, values, self.definition.capturing)
        objects: list[Apart] = []  # they may hold traced values; with the names of the arguments
        for i, part in enumerate(layout.parts):
            for x in static.leaves[part.leaves]:
                if x is not None and type(x) not in SIMPLE:
                    place = self.place(i)
                    objects.append(Apart(place.partition("'")[2].partition("'")[0] or place, x))
        return bind_rule(rule, values, self.definition.capturing, objects)

    # --- slots ----------------------------------------------------------------------------------------------------

    def fwd(self, values: Values) -> list[Any]:
        """The outputs."""
        return Run(self, values, (False,) * len(values)).outs

    # --- reverse mode ---------------------------------------------------------------------------------------------

    def fwd_res(self, values: Values, perturbed: Mask, again: Again) -> Forward:
        """The outputs, and what `bwd` needs."""
        result = run_and_keep(self, values, perturbed, again, Phase.BACKWARD)
        if self.definition.backward is None:
            self._refuse_moving(result.outs, result.differentiable, "reverse", _NO_REVERSE)
        return result

    def bwd(self, token: Kept, residuals: Values, cts: Values) -> list[Tangent]:
        """Gradients of the arguments."""
        d = self.definition
        if (not token.materialize or d.backward is None) and all(type(ct) is Zero for ct in cts):
            return [None] * self.arity
        if not d.once:
            return self._gradients(token, residuals, cts)
        # Values go in as operands: what `flat` holds itself counts as captured.
        count = len(residuals)
        given = perturbed(cts)
        zeros = [None if m else ct for ct, m in zip(cts, given)]
        mask: list[bool] = []

        def flat(values: Values) -> list[Any]:
            gradients = self._gradients(token, values[:count], scatter(given, values[count:], zeros))
            mask[:] = perturbed(gradients)
            return chosen(gradients, mask)

        return scatter(mask, once(d.name, flat, [*residuals, *chosen(cts, given)], d.capturing))

    def _gradients(self, token: Kept, residuals: Values, cts: Values) -> list[Tangent]:
        d = self.definition
        assert d.backward is not None
        ctx = token.context(d, residuals)
        backward = d.backward
        checks_nans = debug_nans_active()
        if checks_nans:
            backward = blamed(d.context.__name__)(backward)
        gradients = [gradient_given(ct, token.materialize) for ct in cts]
        outputs = token.outputs.layout
        returned = backward(ctx, *(gradients if outputs.plain else outputs.filled(gradients)))
        if self.arguments.layout.plain and not checks_nans:
            values = exact(returned if type(returned) is tuple else (returned,), token.avals, "f")
            if values is not None:
                return values
        return self._checked(d.context.__name__, d.backward, token.avals, token.perturbed, returned)

    def _checked(
        self, name: str, rule: UserFunction, avals: Sequence[Aval], used: Sequence[bool], returned: Any
    ) -> list[Tangent]:
        """The gradients that a rule returned."""
        layout, static, _ = self.arguments
        title = f"function {name}"
        return Gradients(GRADIENT, title, rule, self._place_of, layout, static, avals, used).checked(returned)

    def _place_of(self, path: KeyPath) -> str:
        return f"{self.place(path[0].idx)}{keystr(path[1:])}"

    def transpose(self, cts: Values, values: Values) -> list[Any]:
        """Cotangents of the operands that are `Linear`, by the user's ``transpose``; None for all others."""
        d = self.definition
        assert d.transpose is not None
        layout, static, _ = self.arguments
        linear = [type(x) is Linear for x in values]
        inputs = layout.filled([None if m else given(x) for x, m in zip(values, linear)], static)
        returned = d.transpose(inputs, *self.outputs.layout.filled(list(map(gradient_given, cts))))
        avals = [(x.aval if m else aval_of(x)).strong() for x, m in zip(values, linear)]
        gradients = self._checked(f"{d.name}.transpose", d.transpose, avals, linear, returned)
        return [g if m else None for g, m in zip(gradients, linear)]

    # --- forward mode ---------------------------------------------------------------------------------------------

    def jvp(self, values: Values, tangents: Values, again: Again) -> Pushed:
        """Outputs and their tangents."""
        d = self.definition
        mask = perturbed(tangents)
        if d.jvp is None and d.transpose is not None:
            return self._linear_jvp(values, tangents, mask, again)
        if d.jvp is None:  # nor any other rule: outputs that have no derivative need none
            run = Run(self, values, mask, again)
            self._refuse_moving(run.outs, run.differentiable, "forward", self.no_forward)
            return run.outs, [Zero(x) for x in run.outs]
        outs, residuals, token, differentiable, _ = run_and_keep(self, values, mask, again, Phase.JVP)
        ctx = token.context(d, residuals)
        given_tangents = [_tangent(x, t, token.materialize) for x, t in zip(values, tangents)]
        returned = ctx.apply_jvp(*self.arguments.layout.filled(given_tangents))
        outputs, avals = self.outputs, [aval_of(x).strong() for x in outs]
        used = _moving(outs, differentiable)
        title = f"the jvp of {d.name}"
        layout, static = outputs.layout, outputs.static
        check = Tangents(TANGENT, title, d.jvp, outputs.place_of, layout, static, avals, used)
        return outs, check.checked(returned)

    def _linear_jvp(self, values: Values, tangents: Values, perturbed: Mask, again: Again) -> Pushed:
        """The same for an operation that is linear in all operands with a tangent: the rule applied to tangents."""
        outs = again()
        avals = [aval_of(x).strong() for x in outs]
        if sum(perturbed) > 1:
            self._check_together(values, perturbed, avals)
        pushed = self.bind([t if m else x for x, t, m in zip(values, tangents, perturbed)])
        return outs, [t if is_inexact(a.dtype) else Zero(a) for t, a in zip(pushed, avals)]

    def _check_together(self, values: Values, moving: Sequence[bool], avals: Sequence[Aval]) -> None:
        """Refuse what is linear in each operand alone: a product of two operands that both have a tangent."""
        mixed = [Linear(aval_of(x).strong()) if m else x for x, m in zip(values, moving)]

        def nonzero(*cts: Any) -> list[Any]:
            return [g for g in self.transpose(cts, mixed) if g is not None and type(g) is not Zero]

        try:
            if not stage(nonzero, avals).outvars:
                raise errors.GradientError(f"{self.name}: transpose returned None for all of them")
        except Exception as error:
            pass_on(error)
            parts = enumerate(self.arguments.layout.parts)
            names = [self.place(i) for i, p in parts if any(moving[p.first : p.last])]
            raise errors.MissingRuleError(
                f"{self.name}: transpose fails for {' and '.join(names)} together, so the derivative in both needs "
                "another rule. Define backward (or jvp), or let transpose take None for both, if forward is linear in "
                f"them together, as a sum is. It raised {type(error).__name__}: {str(error).partition(chr(10))[0]}"
            ) from error

    def _refuse_moving(self, outs: Values, differentiable: Mask | None, mode: str, what: str) -> None:
        if any(_moving(outs, differentiable)):
            raise errors.MissingRuleError(f"{mode} mode through {self.name}: {what}")

    # --- batching -------------------------------------------------------------------------------------------------

    def vmap(self, size: int, values: Values, dims: Dims) -> Pushed:
        """Outputs and their batch axes, by the user's ``vmap``."""
        d = self.definition
        if d.vmap is None:
            cure = "set generate_vmap_rule=True, or leave it at None"
            if d.host:
                cure = "say how to call a host forward by vmap_method = 'sequential' or 'broadcast'"
            raise errors.MissingRuleError(
                f"You tried to vmap over {d.name}, but it does not have vmap support. Please override and implement "
                f"the vmap staticmethod or {cure}"
            )
        args = self.arguments.filled([given(x) for x in values])
        returned = self.arguments.call(d.vmap, args, VmapInfo(size), self.arguments.layout.filled(dims))
        base = (
            "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure "
            "compatible with the output."
        )
        if not isinstance(returned, tuple):
            self._refuse_vmap(f"{base} Got a {type(returned).__name__} instead")
        if len(returned) != 2:
            self._refuse_vmap(f"{base} Got {len(returned)} returns instead")
        output, out_dims = returned
        self.outputs, arrays = Outputs.of(output)
        outs = [own_value(x, lambda: f"{d.name}: an output of vmap") for x in arrays]
        return outs, self._out_dims(output, out_dims, size, outs)

    def _out_dims(self, output: ArrayLike, out_dims: Any, size: int, arrays: Values) -> list[int | None]:
        tree = tree_structure(output)
        try:
            axes = flatten_axes("out_dims", tree, out_dims)
        except errors.PytreeError:
            self._refuse_vmap(
                "The vmap staticmethod returned an incompatible (output, out_dims) tuple. Expected "
                f"out_dims={out_dims!r} to be compatible with the structure of `output`. `out_dims` has structure "
                f"{tree_structure(out_dims)} but `output` has structure {tree}"
            )
        dims: list[int | None] = []
        places = [n for part in self.outputs.layout.parts for n in part.arrays]
        for dim, place in zip(axes, places):
            if place is None:
                continue
            shape = arrays[place].shape
            if dim is not None and (type(dim) is not int or not -len(shape) <= dim < len(shape)):
                self._refuse_vmap(
                    f"The vmap staticmethod returned out_dims={out_dims!r}, but {dim!r} is not an axis of an output of "
                    f"shape {shape}; each must be an axis or None"
                )
            if dim is not None and shape[dim] != size:
                self._refuse_vmap(
                    f"The vmap staticmethod returned an output of shape {shape} with the batch axis at {dim}, where "
                    f"it has size {shape[dim]} instead of {size}"
                )
            dims.append(None if dim is None else dim % len(shape))
        return dims

    def _refuse_vmap(self, problem: str) -> NoReturn:
        raise errors.VmapRuleError(
            f"{self.name}: {problem}", last_line(self.definition.vmap or self.definition.forward)
        )


_NO_REVERSE = (
    "You must implement either the backward or vjp method for it to be differentiated in reverse mode"
)


def _moving(outs: Values, differentiable: Mask | None) -> list[bool]:
    """Which outputs have a derivative."""
    inexact = [is_inexact(aval_of(x).dtype) for x in outs]
    return inexact if differentiable is None else [a and b for a, b in zip(inexact, differentiable)]


def _tangent(x: ArrayLike, t: ArrayLike, materialize: bool) -> PyTree:
    """A tangent as users' rules get it; integers have none."""
    if not is_inexact(aval_of(x).dtype):
        return None
    if type(t) is Zero:
        return given(instantiate(t)) if materialize else None
    return given(t)


class VmapInfo(NamedTuple):
    """What a ``vmap`` staticmethod knows of the transformation.

    Attributes
    ----------
    batch_size : int
        The size of the mapped axis.
    randomness : str
        Always ``'error'``: examples share no hidden random state.
    axis_name : None
        Mapped axes have no names.
    """

    batch_size: int
    randomness: str = "error"
    axis_name: str | None = None


def once(
    name: str, fun: Callable[[Values], list[Any]], values: Values, functions: Iterable[Any] = ()
) -> list[Any]:
    """Apply a function of flat values; a derivative that goes through its result raises.

    `fun` runs below all transformations that differentiate: eagerly, with plain arrays.
    """
    return bind_rule(_Once(name, fun, len(values)), values, [fun, *functions])


class _Once(CustomRule):
    """A function whose result must not be differentiated."""

    has_reverse = has_forward = True

    def __init__(self, name: str, fun: Callable[[Values], list[Any]], arity: int):
        self.name = f"{name}Backward"
        self.arity = arity
        self._what = name
        self._fun = fun

    def fwd(self, values: Values) -> list[Any]:
        """The outputs."""
        return self._fun([np.asarray(x.value) if type(x) is StandInTracer else x for x in values])

    def fwd_res(self, values: Values, perturbed: Mask, again: Again) -> Forward:
        """The outputs; nothing is kept."""
        return Forward(again(), [])

    def bwd(self, token: Any, residuals: Values, cts: Values) -> NoReturn:
        """Refuse the derivative."""
        raise errors.OnceDifferentiableError(
            f"trying to differentiate twice a function that was marked with @once_differentiable ({self._what}). The "
            "mark says that its backward has no derivative: remove it if there is one, or call a function with a rule "
            "there. Forward mode differentiates backward, too, unless the class has a jvp"
        )

    def jvp(self, values: Values, tangents: Values, again: Again) -> Pushed:
        """Refuse the derivative."""
        self.bwd(None, values, tangents)

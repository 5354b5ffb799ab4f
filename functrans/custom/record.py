"""The record that every front end builds: a function of flat values, with its rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..control.interned import UserCode
from ..core.aval import Aval
from .capture import Capture

Mask = tuple[bool, ...]
Values = Sequence[Any]


class Forward(NamedTuple):
    """What a rule's forward pass gives when the reverse pass is to follow.

    Attributes
    ----------
    outs : list of values
    residuals : list of values
        What `bwd` gets again; of the same trace as `outs`.
    token : object
        What else `bwd` gets again: structures, flags, anything that is no array.
    differentiable : tuple of bool or None
        Which outputs have a derivative; None: all of float or complex dtype.
    materialized : bool
        Whether `bwd` takes a symbolic zero for zeros. Then residuals that it does not read are not kept.
    """

    outs: list[Any]
    residuals: list[Any]
    token: Any = None
    differentiable: Mask | None = None
    materialized: bool = True


@dataclass(frozen=True, eq=False)
class CustomRule(UserCode):
    """A function of flat values, with rules of its own. What an absent slot means is said beside it.

    Slots are called with values (arrays, NumPy scalars, tracers; Python numbers arrive as tracers with a concrete
    value) one level down: what they bind is computed, differentiated or staged by the transformations outside.

    Attributes
    ----------
    name : str
        For messages and printing.
    arity : int
        The number of operands that the slots get.
    fwd : callable
        ``fwd(values) -> outs``.
    fwd_res : callable
        ``fwd_res(values, perturbed, again) -> Forward``. ``again()`` applies the rule one level down and returns its
        outputs: so that the rule holds at every level of differentiation.
    bwd : callable
        ``bwd(token, residuals, cts) -> cts``: cotangents, each a value or `Zero` (or None), an entry an operand.
        Absent: reverse mode transposes `jvp`.
    jvp : callable
        ``jvp(values, tangents, again) -> (outs, tangents)``, tangents being values or `Zero`. Absent: forward mode
        transposes `bwd`.
    vmap : callable
        ``vmap(size, values, dims) -> (outs, dims)``. Absent: all other slots are batched.
    transpose : callable
        ``transpose(cts, values) -> cts`` where the function is linear in the operands that are `Linear`. Absent: `bwd`,
        if that does not read their values; without `bwd`, the traced `fwd` transposed.
    derive_jvp : bool
        Whether `bwd` may be transposed for forward mode.
    plain : callable
        What is differentiated, like any other function, where there is no `bwd` (in forward mode: no `jvp`), or a
        captured value is being differentiated; mostly `fwd` itself. None: a mode without a rule, and a captured value
        that is read, are errors.
    no_reverse, no_forward : str
        What the error says where a mode has no rule.
    outs : tuple of Aval or None
        The types of the outputs, where they are known before it runs: it is then not traced to find them.
    captured_constant : bool
        Whether derivatives in captured values are none of the rule's business: those of a solver, say, that is told by
        an equation what it solves. Otherwise a captured value that is being differentiated must not be read.
    captures : tuple of Capture
        Tracers that the slots' functions captured; their values are leading operands, which slots do not get.
    """

    name: str
    arity: int
    fwd: Callable[[Values], list[Any]]
    fwd_res: Callable[[Values, Mask, Callable[[], list[Any]]], Forward] | None = None
    bwd: Callable[[Any, Values, Values], Sequence[Any]] | None = None
    jvp: Callable[[Values, Values, Callable[[], list[Any]]], tuple[Sequence[Any], Sequence[Any]]] | None = (
        None
    )
    vmap: Callable[[int, Values, Sequence[int | None]], tuple[Sequence[Any], Sequence[int | None]]] | None = (
        None
    )
    transpose: Callable[[Values, Values], Sequence[Any]] | None = None
    derive_jvp: bool = True
    plain: Callable[[Values], list[Any]] | None = None
    no_reverse: str = "it has no rule for reverse mode"
    no_forward: str = "it has no rule for forward mode"
    outs: tuple[Aval, ...] | None = None
    captured_constant: bool = False
    captures: tuple[Capture, ...] = ()

    @property
    def operands(self) -> int:
        """The number of operands of the primitive, captured ones included."""
        return len(self.captures) + self.arity

    def __repr__(self) -> str:
        return self.name

"""A primitive: one frozen record with every rule in sight.

Interpreters look nowhere else: no tables of rules exist. Each slot and how it is called:

============== =========================================================== ======================================
slot           call                                                        returns
============== =========================================================== ======================================
``abstract``   ``(*avals, **params)``                                      Aval (tuple of Avals if `multiple_results`)
``impl``       ``(*arrays, **params)``, NumPy or Python scalars too        ndarray or NumPy scalar (tuple)
``jvp``        ``(primals, tangents, **params)``, a tangent may be a Zero  ``(out, tangent)`` (tuples)
``transpose``  ``(ct, *args, **params)``, linear args are `Linear`         list: a cotangent or None for each arg
``accumulate`` ``(ct, totals, *args, **params)``, each total may be None   as `transpose`, with the totals added
``rewind``     ``(eqn, operand, result, after)``, places and an atom        a `functrans.passes.rewind.Back`, or None
``batch``      ``(size, args, dims, **params)``, dims are int or None      ``(out, dim)`` (tuples)
``kernel``     a rule of `functrans.core.kernel`                           see there
``factors``    each ``(ans, *arrays, **params)``, or None; elementwise     what multiplies that operand's tangent
``linearize``  ``(primals, tangents, **params)``, higher-order only        ``(outs, tangents)``
``taylor``     ``(prim, out, operands, params)``, all series               an iterator over coefficients 1, 2, ...
``jet``        ``(primals, series, **params)``, higher-order only          ``(outs, series)``
``guard``      ``(categories, args, params)``, what can fail               ``(failures, params)`` that do not raise
``checked``    ``(check, args, **params)``, higher-order only              ``(outs, Errors)``
``narrow``     ``(eqn, needed, strict)``, of several outputs               an Eqn for the `needed` ones, or None
``simplify``   ``(rewriter, eqn)``, see `functrans.passes.rewriter`          an Atom, an Eqn, or None
``transposed`` ``(turn, eqn)``: `turn` transposes the output of `eqn`      an Eqn for the output of `turn`, or None
``cost``       ``(*avals, **params)``; else counted from `kernel`          a `Workload`
``into``       ``(arrays, outs, **params)``, memory of the outputs          None: it has written the outputs
``again``      ``(params)``, for a second run in the backward pass         its params
``vary``       ``(axes, params)``, the axes of a mesh of each operand      the axes they must have, and params
``varies``     ``(axes, params)``, all axes of a mesh of the operands      the axes of the outputs
``call``       see `CallRules`; for equations that apply a jaxpr
============== =========================================================== ======================================

`moves_data`: the outputs are numbers from the operands, so a NaN cannot originate here (implied by an
`Indexed` or a `Reshape` kernel rule). `tests_equality`: the output depends on whether operands are equal, so a kernel
must not compute an operand in two places, where it could round differently. `repeats`: each element of the output is
one of the operand's, so the output is uniform if the operand is. `in_float32`: `impl` would round float16
and bfloat16 more than once, so `impl_for` converts these operands to float32, and the results back. `narrow` returns a
cheaper equation if only some outputs are needed; with `strict`, only one with bitwise identical results. `commutes`:
patterns match with the first two operands in either order.

`jvp`, `transpose` and `batch` bind primitives (never functions of ``functrans.numpy``); by then the interpreter has
stepped down one level.

A primitive needs `accumulate` only where adding its cotangent to a large array takes less work than computing it and
the sum: a look-up adds to the elements that it read. The rule adds each total to the cotangent.

A primitive needs `rewind` if a result is an operand with some elements overwritten: the way back from the one to the
other.

Over which axes of a mesh a value differs (`Aval.vma`) follows from the operands: all operands differ alike, and so do
the outputs. A primitive needs `vary` if its operands may differ in this (it applies jaxprs, or it is a collective), and
`varies` if its outputs do not follow them. Outputs of a jaxpr have the types that these have in it.

A primitive needs `again` only if a checkpoint is never to store its results, nor what is computed from them alone,
though its effect could be counted: it runs again.

A primitive needs `taylor` (see `functrans.primitives.series`) only where its jvp rule, from which Taylor mode derives
the coefficients otherwise, takes more operations than products, quotients and linear operations need.
"""

from __future__ import annotations

import enum
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NoReturn

from ..errors import NoRuleError
from ..errors.source import Source
from ..runtime.records import NamedTuple
from .aval import PYTHON_NUMBERS, Aval
from .kernel import KernelRule
from .low_precision import LOW, run_in_float32
from .named_axes import differing
from .trace import current_trace
from .values import DTypeLike, Param, Params, Rule


class Effect(enum.Flag):
    """What an equation does besides computing its outputs.

    A pass tests the property that it depends on:

    ============ ================================================================ ===== ==== ==== ==========
    property     what a pass may do, or must respect                              RAISE HOST HOOK COLLECTIVE
    ============ ================================================================ ===== ==== ==== ==========
    `removable`  an equation with unused outputs may be dropped                   no    no   yes  no
    `shareable`  running it once or twice makes no difference                     yes   no   yes  no
    `movable`    it may run where the program would not, such as before a loop    no    no   no   no
    `ordered`    it keeps its place among the others of this kind                 no    yes  no   yes
    `on_host`    Python runs it, also in a kernel                                 no    yes  no   yes
    `may_raise`  it can stop the program (bad index, singular matrix, callback)   yes   yes  no   yes
    `collective` other ranks of a mesh wait for it                                no    no   no   yes
    ============ ================================================================ ===== ==== ==== ==========

    An equation without effects may be removed, shared and moved. If it has several, each restricts what a pass may do.
    """

    NONE = 0
    RAISE = enum.auto()
    HOST = enum.auto()
    HOOK = enum.auto()
    COLLECTIVE = enum.auto()

    @property
    def removable(self) -> bool:
        """Whether an equation with unused outputs may be removed."""
        return not self._value_ & _STOPS

    @property
    def shareable(self) -> bool:
        """Whether it makes no difference how often the equation runs, as long as it runs."""
        return not self._value_ & _HOST

    @property
    def movable(self) -> bool:
        """Whether the equation may run where the program would not run it, or on other values."""
        return self is Effect.NONE

    @property
    def ordered(self) -> bool:
        """Whether the equation keeps its order among those with this effect."""
        return bool(self._value_ & _HOST)

    @property
    def on_host(self) -> bool:
        """Whether Python runs the equation, even from inside a kernel."""
        return bool(self._value_ & _HOST)

    @property
    def may_raise(self) -> bool:
        """Whether the equation can stop the program."""
        return bool(self._value_ & _STOPS)

    @property
    def collective(self) -> bool:
        """Whether other ranks of a mesh wait for it."""
        return bool(self._value_ & _COLLECTIVE)


_COLLECTIVE = Effect.COLLECTIVE.value
_HOST = (Effect.HOST | Effect.COLLECTIVE).value
_STOPS = (Effect.RAISE | Effect.HOST | Effect.COLLECTIVE).value


class Linear:
    """A linear argument of a transpose rule: only its aval is known.

    `source`, the user's line that computes it, is set only if ``config.debug_nans`` may need it.
    """

    __slots__ = ("aval", "source")
    aval: Aval
    source: Source | None

    def __init__(self, aval: Aval):
        self.aval = aval

    @property
    def dtype(self) -> NoReturn:
        """Raise: a rule asks for the value of a linear argument, which does not exist."""
        self._refuse()

    def __array__(self, dtype: DTypeLike = None, copy: Any = None) -> NoReturn:
        """Raise, for the same reason; NumPy would treat the object as true."""
        self._refuse()

    def __array_ufunc__(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise, for the same reason."""
        self._refuse()

    def __int__(self) -> NoReturn:
        """Raise, for the same reason: it would be the index of a branch."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise NoRuleError(
            "it is not linear: both operands of a product, a quotient or a choice depend on its arguments"
        )

    def __repr__(self) -> str:
        return f"Linear({self.aval})"


def _no_effects(**params: Param) -> Effect:
    return Effect.NONE


def _file_of_caller() -> str:
    """The file that contains the record."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename in (__file__, "<string>"):
        frame = frame.f_back
    return frame.f_code.co_filename


def _in_package(file: str) -> str:
    """A file of this package relative to the package's parent folder; any other unchanged."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return os.path.relpath(file, root) if file.startswith(root) else file


class Workload(NamedTuple):
    """What an equation does, as its record knows it.

    Attributes
    ----------
    flops : int
        Operations on numbers. A product and the sum that it is added to are two.
    transcendentals : int
        Functions of a maths library.
    additions : int, optional
        The time that it takes, in additions of vectors of float64; by default it follows from the other two.
    """

    flops: int = 0
    transcendentals: int = 0
    additions: int | None = None


@dataclass(frozen=True)
class CallRules:
    """How to treat an equation that stands for a jaxpr, whose equations replace it in a kernel.

    Attributes
    ----------
    opaque : bool
        Whether it defines derivatives, so that nothing looks inside before lowering.
    trace : callable, optional
        ``trace(trace, args, params) -> (args, params)``: traces parameters that are still functions.
    expand : callable, optional
        ``expand(*avals, **params) -> Jaxpr``, if the jaxpr is not the parameter `jaxpr`.
    """

    opaque: bool = False
    trace: Callable[..., Any] | None = None
    expand: Callable[..., Any] | None = None


@dataclass(frozen=True, eq=False)
class Primitive:
    """One operation with all its rules; see the module's table for how each slot is called."""

    name: str
    abstract: Rule
    impl: Rule
    jvp: Rule | None = None
    transpose: Rule | None = None
    accumulate: Callable[..., Any] | None = None
    rewind: Callable[..., Any] | None = None
    batch: Callable[..., Any] | None = None
    kernel: KernelRule | None = None
    factors: tuple[Callable[..., Any] | None, ...] | None = None  # equivalent to jvp, cheaper to linearize
    linear: bool = False  # in the first operand, with the others fixed: tangents take the same path as values
    linearize: Rule | None = None
    taylor: Callable[..., Any] | None = None
    jet: Callable[..., Any] | None = None
    guard: Rule | None = None
    checked: Callable[..., Any] | None = None
    effects: Callable[..., Effect] = _no_effects
    multiple_results: bool = False
    call: CallRules | None = None
    weak: bool = False  # the output is weak (a Python scalar) if every operand is
    cost: Callable[..., Workload] | None = None
    moves_data: bool = False
    tests_equality: bool = False
    in_float32: bool = False
    narrow: Callable[..., Any] | None = None
    into: Callable[..., None] | None = None
    again: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    vary: Callable[..., Any] | None = None
    varies: Callable[..., frozenset[str]] | None = None
    simplify: Rule | None = None
    transposed: Callable[..., Any] | None = None
    repeats: bool = False
    commutes: bool = False  # the first two operands may change places
    show: Callable[..., str] | None = None
    each_lane: bool = False  # under `vmap` each example gets a different result, even if no operand is mapped
    file: str = field(default_factory=_file_of_caller)

    @property
    def is_call(self) -> bool:
        """Whether it applies the jaxpr in its parameter `jaxpr`."""
        return self.call is not None and self.call.expand is None

    @property
    def is_transparent(self) -> bool:
        """Whether it does nothing else, so that any pass may inline it."""
        return self.call is not None and self.call.expand is None and not self.call.opaque

    def bind(self, *args: Any, **params: Param) -> Any:
        """Apply the primitive in the current trace."""
        if differing.adapt is not None:
            args, params = differing.adapt(self, args, params)
        return current_trace.get().process(self, args, params)

    def result_avals(self, avals: Sequence[Aval], params: Params) -> Any:
        """What `abstract` gives, with the axes of a mesh over which outputs differ."""
        out = self.abstract(*avals, **params)
        return out if differing.typed is None else differing.typed(self, avals, params, out)

    def impl_for(self, operands: Sequence[Any]) -> Callable[..., Any]:
        """`impl`, or if `in_float32` what computes in float32 for operands of float16 and bfloat16."""
        if self.in_float32:
            first = operands[0]
            if type(first) not in PYTHON_NUMBERS and first.dtype.char in LOW:
                return partial(run_in_float32, self.impl)
        return self.impl

    def get_bind_params(self, params: Params) -> tuple[list[Any], dict[str, Any]]:
        """The functions and the parameters to pass to `bind`, for interpreters written for JAX: ``[], params``."""
        return [], params

    def rule(self, slot: str) -> Callable[..., Any]:
        """The rule in `slot`; raises a `NoRuleError` that names the file to edit if it is missing."""
        rule = getattr(self, slot)
        if rule is None:
            raise NoRuleError(
                f"primitive '{self.name}' has no {slot} rule; write it in its record in {_in_package(self.file)}"
            )
        return rule

    def __repr__(self) -> str:
        return self.name

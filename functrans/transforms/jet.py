"""Taylor mode: each value carries the coefficients of a polynomial in one variable.

The coefficients of a primitive's result follow from its jvp rule. Along ``x(t)`` the output ``y(t)`` satisfies
``y' = jvp(x, x')``, so ``y[k] = y'[k - 1] / k``. The rule runs once, on series whose coefficients are computed when
first needed, and where it binds the primitive again it gets the series under computation. So ``exp``, whose rule is
``y' = y x'``, becomes ``y[k] = (x[1] y[k-1] + ... + k x[k] y[0]) / k``; ``sin`` and ``cos``, whose rules refer to each
other, become their coupled recurrences. These are the recurrences of Griewank and Walther, *Evaluating Derivatives*
(2nd ed., 2008), tables 13.1 and 13.2, and cost O(d**2) operations up to order d. Only products, quotients and linear
operations need rules, in the slot ``taylor``.

Coefficients are those of the polynomial, ``x^(k) / k!``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

from ..core.attachment import Attachment
from ..core.aval import PYTHON_SCALARS, Aval, Zero, aval_of
from ..core.dtypes import is_inexact
from ..core.evaluation import evaluate
from ..core.ir import Jaxpr, has_subjaxprs
from ..core.primitive import Primitive
from ..core.tape import TapeAval
from ..core.trace import Key, Trace, Tracer, current_trace, key_of, tracing
from ..core.values import Params, Tangent, Value
from ..passes.masks import Masks, chosen_terms, nested, terms_mask
from ..primitives.elementwise.arithmetic import div_p
from ..primitives.families import literal, mul_p
from ..primitives.series import of_linear
from ..primitives.structure.linear import instantiate
from ..runtime.context import run_with
from .stage import stage


class Series:
    """The coefficients of a value, each computed when it is first asked for.

    Parameters
    ----------
    known : list
        The first coefficients: values, or `Zero`.
    order : int
        The number of the last coefficient that can be asked for.
    recurrence : Recurrence, optional
        Appends to `known`; without one, the other coefficients are zero.
    """

    __slots__ = ("_slope", "known", "order", "recurrence")

    def __init__(self, known: list[Tangent], order: int, recurrence: Recurrence | None = None):
        self.known = known
        self.order = order
        self.recurrence = recurrence
        self._slope: Series | None = None

    def __getitem__(self, k: int) -> Any:
        while len(self.known) <= k:
            if self.recurrence is None:
                return Zero(self.known[0])
            self.recurrence.advance()
        return self.known[k]

    def slope(self, trace: JetTrace) -> Series:
        """The series of the derivative; always the same object."""
        if self._slope is None:
            slope = Series([self[1]], self.order - 1)
            slope.follow(trace, [slope], ([_times(self[k + 1], k + 1)] for k in count(1)))
            self._slope = slope
        return self._slope

    @staticmethod
    def follow(trace: JetTrace, series: Sequence[Series], steps: Iterator[Sequence[Any]]) -> None:
        """Take the further coefficients of several series from an iterator."""
        recurrence = Recurrence(trace, [s.known for s in series], steps)
        for s in series:
            s.recurrence = recurrence

    def cut(self, order: int) -> Series:
        """The first coefficients, all known."""
        return Series([self[k] for k in range(order + 1)], order)


class Recurrence:
    """Computes the next coefficient of one or several series, one level down."""

    __slots__ = ("columns", "steps", "trace")

    def __init__(self, trace: JetTrace, columns: list[list[Any]], steps: Iterator[Sequence[Any]]):
        self.trace = trace
        self.columns = columns
        self.steps = steps

    def advance(self) -> None:
        """Append a coefficient to each column."""
        values = run_with(current_trace, self.trace.parent, next, self.steps)
        for column, x in zip(self.columns, values):
            column.append(x)


class JetTracer(Tracer):
    """A value and its series."""

    __slots__ = ("series",)
    _trace: JetTrace

    def __init__(self, trace: JetTrace, series: Series):
        self._trace = trace
        self.series = series

    @property
    def primal(self) -> Value:
        """The coefficient of order 0."""
        return self.series.known[0]

    @property
    def aval(self) -> Aval:  # type: ignore[override]
        return aval_of(self.primal)

    def key(self) -> Key:
        return key_of(self.primal)

    def concrete(self) -> Any:
        value = self.primal
        return value.concrete() if isinstance(value, Tracer) else value

    @property
    def is_symbolic(self) -> bool:  # type: ignore[override]
        return any(isinstance(x, Tracer) and x.is_symbolic for x in self.series.known)

    def describe(self) -> str:
        return "jet"


class JetTrace(Trace):
    """Computes Taylor coefficients along with the values.

    What the user's program binds is computed at once, up to the order of its operands. What a jvp rule binds meanwhile
    is computed on demand, and one series serves all equal operations: so a rule may refer to its result.
    """

    __slots__ = ("_known",)

    def __init__(self, parent: Trace):
        self.parent = parent
        self._known: dict[Any, list[Series]] | None = None

    def process(self, prim: Primitive, args: tuple[Value, ...], params: Params) -> Any:
        mine = [type(a) is JetTracer and a._trace is self for a in args]
        if True not in mine:
            return self.parent.process(prim, args, params)
        if has_subjaxprs(params) or prim.call is not None:
            return self._whole(prim, args, params)
        if self._known is not None:
            return self._results(prim, self._lazily(prim, args, params, self._known))
        try:
            self._known = {}
            outs = self._lazily(prim, args, params, self._known)
            for k in range(1, outs[0].order + 1 if outs else 0):
                for s in outs:
                    s[k]
        finally:
            self._known = None
        for s in outs:
            s.recurrence = s._slope = None  # they hold the operands
        return self._results(prim, outs)

    def _results(self, prim: Primitive, outs: list[Series]) -> Any:
        values = [self.tracer(s) for s in outs]
        return values if prim.multiple_results else values[0]

    def tracer(self, series: Series) -> Value:
        """A tracer for a series; the value alone if all else is known to be zero."""
        rest = series.known[1:] if series.recurrence is None else [series]
        if all(type(x) is Zero for x in rest):
            return series.known[0]
        return JetTracer(self, series)

    def series(self, x: Value) -> Series:
        """The series of any value; that of a constant has one coefficient."""
        if type(x) is JetTracer and x._trace is self:
            return x.series
        return Series([x], 0)

    # --- one operation -------------------------------------------------------------------------------------------

    def _lazily(
        self, prim: Primitive, args: tuple[Value, ...], params: Params, known: dict[Any, Any]
    ) -> list[Series]:
        """The series of the results, computed up to order 0, or those of an equal operation before."""
        operands = [self.series(a) for a in args]
        key = _key(prim, args, operands, params)
        if key is not None and key in known:
            return known[key][0]
        order = min([s.order for s, a in zip(operands, args) if type(a) is JetTracer and a._trace is self])
        values = self.parent.process(prim, tuple([s.known[0] for s in operands]), params)
        outs = [Series([x], order) for x in (values if prim.multiple_results else [values])]
        rule = prim.taylor or (of_linear if prim.linear else None)
        moving = any(_has_derivative(s.known[0]) for s in outs)
        if moving and rule is not None:
            Series.follow(self, outs, ([x] for x in rule(prim, outs[0], operands, params)))
        elif moving:
            Series.follow(self, outs, self._by_jvp(prim, args, operands, params))
        if key is not None:
            known[key] = outs, args  # kept, since the key has their identities
        return outs

    def _by_jvp(
        self, prim: Primitive, args: Sequence[Value], operands: Sequence[Series], params: Params
    ) -> Iterator[Sequence[Any]]:
        """The coefficients of an operation by its jvp rule, which runs when the first is needed."""
        slopes = self._pushed(prim, args, operands, params)[1]
        for k in count(1):
            yield [_over(s[k - 1], k) for s in slopes]

    def _pushed(
        self, prim: Primitive, args: Sequence[Any], operands: Sequence[Series], params: Params
    ) -> tuple[Any, list[Series]]:
        """Run the jvp rule: the outputs, and the series of their derivatives."""
        tangents = [self._slope(a, s) for a, s in zip(args, operands)]
        out, slope = run_with(current_trace, self, prim.rule("jvp"), list(args), tangents, **params)
        return out, [self.series(t) for t in (slope if prim.multiple_results else [slope])]

    def _slope(self, a: Value, series: Series) -> Tangent:
        if type(a) is not JetTracer or a._trace is not self or (series.order == 0 and series._slope is None):
            return Zero(a)
        slope = series.slope(self)
        if slope.recurrence is None and all(type(x) is Zero for x in slope.known):
            return slope.known[0]
        if type(slope.known[0]) is Zero:
            slope.known[0] = run_with(current_trace, self.parent, instantiate, slope.known[0])
        return JetTracer(self, slope)

    # --- equations that apply jaxprs -------------------------------------------------------------------------------

    def _whole(self, prim: Primitive, args: tuple[Value, ...], params: Params) -> Any:
        """All coefficients at once, by the slot ``jet``; without one, by the jvp rule at one order less."""
        operands = [self.series(a) for a in args]
        order = min([s.order for s, a in zip(operands, args) if type(a) is JetTracer and a._trace is self])
        values = [s.known[0] for s in operands]
        if order == 0:
            return self.parent.process(prim, tuple(values), params)
        known, self._known = self._known, None
        try:
            if prim.jet is not None:
                given = [[s[k] for k in range(1, order + 1)] for s in operands]
                outs, series = run_with(current_trace, self.parent, prim.jet, values, given, **params)
                return [self._joined(x, s) for x, s in zip(outs, series)]
            return self._at_one_order_less(prim, args, operands, order, params)
        finally:
            self._known = known

    def _at_one_order_less(
        self,
        prim: Primitive,
        args: tuple[Value, ...],
        operands: Sequence[Series],
        order: int,
        params: Params,
    ) -> Any:
        mine = [type(a) is JetTracer and a._trace is self for a in args]
        cut = [s.cut(order - 1) if m else s for s, m in zip(operands, mine)]
        below = [JetTracer(self, s) if m else a for a, s, m in zip(args, cut, mine)]
        for s, own, m in zip(cut, operands, mine):
            if m:
                s._slope = Series(self._below(_times, [own[k] for k in range(1, order + 1)]), order - 1)
        outs, slopes = self._pushed(prim, below, cut, params)
        series = [self._below(_over, [s[k] for k in range(order)]) for s in slopes]
        return [self._joined(self.series(x).known[0], s) for x, s in zip(outs, series)]

    def _below(self, scale: Callable[[Any, int], Any], coefficients: Sequence[Any]) -> list[Any]:
        """Coefficients scaled by their numbers, from 1 on, one level down."""
        return [run_with(current_trace, self.parent, scale, x, k) for k, x in enumerate(coefficients, 1)]

    def _joined(self, value: Value, rest: Sequence[Tangent]) -> Value:
        return self.tracer(Series([value, *rest], len(rest)))

    def attach(self, attachment: Attachment) -> bool:
        """A hook belongs to its value at every level; coefficients are not cotangents."""

        def mine(x: Value) -> bool:
            return type(x) is JetTracer and x._trace is self

        below = attachment.lowered(lambda x: x.primal if mine(x) else x)
        return self.parent.attach(below) or any(map(mine, attachment.values))


def _has_derivative(x: Value) -> bool:
    aval = aval_of(x)
    return is_inexact(aval.dtype) or isinstance(aval, TapeAval)


def _times(x: Tangent, k: int) -> Tangent:
    return x if type(x) is Zero or k == 1 else mul_p.bind(x, literal(k, x))


def _over(x: Tangent, k: int) -> Tangent:
    return x if type(x) is Zero or k == 1 else div_p.bind(x, literal(k, x))


def _key(prim: Primitive, args: Sequence[Value], operands: Sequence[Series], params: Params) -> Any:
    """What makes two operations equal: the primitive, the identities of the operands, the parameters."""
    same = [
        (type(a), repr(a)) if type(a) in PYTHON_SCALARS else id(s) if isinstance(a, JetTracer) else id(a)
        for a, s in zip(args, operands)
    ]
    key = (prim, *same, tuple(sorted(params.items(), key=lambda item: item[0])))
    try:
        hash(key)
    except TypeError:
        return None
    return key


def jet(
    fun: Callable[..., Sequence[Any]], primals: Sequence[Value], series: Sequence[Sequence[Tangent]]
) -> tuple[list[Any], list[list[Any]]]:
    """Outputs and their coefficients (values or `Zero`) of a function of flat values, of which some have a series.

    Parameters
    ----------
    fun : callable
    primals : sequence of values
    series : sequence of sequences
        For each value, the same number of coefficients from the first on: values or `Zero`.
    """
    order = len(series[0]) if series else 0
    trace = JetTrace(current_trace.get())
    outs = tracing(trace, fun, *[trace._joined(x, s) for x, s in zip(primals, series)])
    found = [trace.series(x) for x in outs]
    return [s.known[0] for s in found], [[s[k] for k in range(1, order + 1)] for s in found]


def jet_jaxpr(jaxpr: Jaxpr, masks: Masks) -> tuple[Jaxpr, Masks]:
    """The jaxpr from (inputs, their coefficients in `masks`) to (outputs, their nonzero coefficients).

    Returns
    -------
    Jaxpr
    tuple of tuple of bool
        For each output, which coefficients it has.
    """

    def build() -> tuple[Jaxpr, Masks]:
        out_masks: list[tuple[bool, ...]] = []

        def pushed(*values: Value) -> list[Any]:
            primals = values[: len(jaxpr.invars)]
            series = nested(masks, values[len(primals) :], primals)
            outs, out_series = jet(lambda *xs: evaluate(jaxpr, xs), primals, series)
            out_masks.extend(terms_mask(out_series))
            return [*outs, *map(instantiate, chosen_terms(out_series, out_masks))]

        avals = [*jaxpr.in_avals, *[a for a, m in zip(jaxpr.in_avals, masks) for given in m if given]]
        return stage(pushed, avals, f"jet({jaxpr.name})", jaxpr.stats), tuple(out_masks)

    return jaxpr.derive(("jet", masks), build)

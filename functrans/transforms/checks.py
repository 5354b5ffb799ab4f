"""Errors as values: each operation that can fail also computes whether it did.

A `CheckTrace` collects the checks of the operations bound while it is current. The state is the number of the first
check that failed, and for each check the values of its message. Equations that apply jaxprs do the same inside, by
their slot ``checked``, and return the state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..core.attachment import Attachment
from ..core.aval import PYTHON_SCALARS, Aval, aval_of
from ..core.debug_nans import only_moves, title
from ..core.dtypes import is_inexact
from ..core.evaluation import evaluate
from ..core.ir import Jaxpr
from ..core.primitive import Primitive
from ..core.trace import Trace, concrete, current_trace, tracing
from ..core.values import Params, Value
from ..errors.source import user_source
from ..passes.masks import split
from ..primitives.checks import Check, check_p
from ..primitives.elementwise.arithmetic import convert_element_type_p, eq_p, ne_p, select_p
from ..primitives.elementwise.bits import not_p
from ..primitives.indexing.gather_scatter import gather_p
from ..primitives.reductions.reduce import argmax_p, reduce_and_p
from ..primitives.structure.linear import add_p, flat, reshape_p, shape_of, zeros
from ..runtime.context import run_with
from ..runtime.failures import Failure
from ..runtime.records import NamedTuple
from .held import HeldTracer
from .stage import stage

NONE = np.int64(0)


class Errors(NamedTuple):
    """The state: the number of the first failed check, from 1 on (0: none), the checks, and the values of each."""

    code: Any = NONE
    checks: tuple[Check, ...] = ()
    values: tuple[tuple[Any, ...], ...] = ()

    def flat(self) -> list[Any]:
        """The code and all values; empty without checks."""
        return [self.code, *[x for own in self.values for x in own]] if self.checks else []

    def with_flat(self, flat: Sequence[Any]) -> Errors:
        """The same checks with another code and other values."""
        if not self.checks:
            return self
        groups = split(flat[1:], *[len(own) for own in self.values])
        return Errors(flat[0], self.checks, tuple(map(tuple, groups[:-1])))

    def then(self, after: Errors) -> Errors:
        """These checks, and others after them."""
        checks, values = (*self.checks, *after.checks), (*self.values, *after.values)
        if not after.checks:
            return self
        code = after.code
        if self.checks:
            moved = add_p.bind(code, np.int64(len(self.checks)))
            code = select_p.bind(eq_p.bind(code, NONE), NONE, moved)
            code = select_p.bind(ne_p.bind(self.code, NONE), self.code, code)
        return Errors(code, checks, values)

    def unless_failed(self, now: Errors) -> Errors:
        """The state `now` of the same checks, unless one failed earlier."""
        failed = ne_p.bind(self.code, NONE)
        pairs = zip(self.flat(), now.flat())
        return now.with_flat([select_p.bind(failed, old, new) for old, new in pairs])

    def cleared(self) -> Errors:
        """The same checks before any ran."""
        if not self.checks:
            return self
        return self.with_flat([NONE, *[zeros(aval_of(x).strong()) for x in self.flat()[1:]]])


class CheckedJaxpr(NamedTuple):
    """A jaxpr that returns the state after its outputs.

    Attributes
    ----------
    jaxpr : Jaxpr
    errors : Errors
        Its checks, with variables for values.
    """

    jaxpr: Jaxpr
    errors: Errors
    categories: tuple[str, ...]

    @property
    def outputs(self) -> int:
        """The number of the outputs proper."""
        return len(self.jaxpr.outvars) - len(self.errors.flat())

    @property
    def quiet(self) -> Jaxpr:
        """The jaxpr without checks: it does not raise or return the state."""
        return self.jaxpr.replace(outvars=self.jaxpr.outvars[: self.outputs])

    def separate(self, results: Sequence[Any]) -> tuple[list[Any], Errors]:
        """The outputs, and the state, from its results."""
        outs, state = split(results, self.outputs)
        return outs, self.errors.with_flat(state)

    def apply(self, args: Sequence[Value]) -> tuple[list[Any], Errors]:
        """Evaluate it."""
        return self.separate(evaluate(self.jaxpr, args))


class CheckTracer(HeldTracer):
    """A value. As a tracer it reaches functrans whichever function is applied to it."""

    __slots__ = ()
    _trace: CheckTrace

    def __init__(self, trace: CheckTrace, value: Value):
        self._trace = trace
        self.value = value

    @property
    def aval(self) -> Aval:  # type: ignore[override]
        return aval_of(self.value)

    def describe(self) -> str:
        return "checkify"


class CheckTrace(Trace):
    """Collects the checks of some categories.

    Parameters
    ----------
    parent : Trace
    categories : tuple of str
        See `functrans.runtime.failures.CATEGORIES`. Failures of others stay as they are.
    """

    __slots__ = ("categories", "errors")

    def __init__(self, parent: Trace, categories: tuple[str, ...]):
        self.parent = parent
        self.categories = categories
        self.errors = Errors()

    def process(self, prim: Primitive, args: tuple[Any, ...], params: Params) -> Any:
        values = [self.lower(a) for a in args]
        out = run_with(current_trace, self.parent, self._checked, prim, values, params)
        return [self.lift(x) for x in out] if prim.multiple_results else self.lift(out)

    def lift(self, x: Value) -> Value:
        """A tracer for a value."""
        return CheckTracer(self, x)

    def lower(self, x: Value) -> Value:
        """The value of a tracer, or any other value."""
        return x.value if type(x) is CheckTracer and x._trace is self else x

    def _checked(self, prim: Primitive, values: list[Any], params: Params) -> Any:
        if prim.checked is not None:
            outs, errors = prim.checked(partial(checked_jaxpr, categories=self.categories), values, **params)
            self._after(errors)
            return outs
        if prim is check_p:
            if "user" in self.categories:
                self._check(values, params["check"])
            return []  # those that are not asked for are ignored, as in JAX
        if prim.guard is not None:
            failures, params = prim.guard(self.categories, values, params)
            for category, ok, template, shown in failures:
                self._check([ok, *shown], Failure(category, template, None, user_source()))
        out = prim.bind(*values, **params)
        if "nan" in self.categories and prim.call is None and not only_moves(prim):
            for x in out if prim.multiple_results else [out]:
                self._not_nan(title(prim, params), x)
        return out

    def _not_nan(self, name: str, x: Value) -> None:
        if is_inexact(aval_of(x).dtype):
            number = eq_p.bind(x, x)
            ok = reduce_and_p.bind(number, axes=tuple(range(len(shape_of(number)))))
            template = f"nan generated by primitive: {name.replace('{', '{{').replace('}', '}}')}"
            self.add(ok, Failure("nan", template, None, user_source()), ())

    def _check(self, values: Sequence[Value], check: Check) -> None:
        """A check of the program; under `vmap` in any lane."""
        ok, *shown = values
        lanes = len(shape_of(ok))
        if lanes and aval_of(ok).size:
            self.add(*first_failure(ok, shown, lanes, check))
        elif not lanes:
            self.add(ok, check, shown)

    def add(self, ok: Value, check: Check, shown: Sequence[Any]) -> None:
        """Add a check that holds if `ok`, with the values for its message."""
        known = concrete(ok)
        if known is not None and (known or concrete(self.errors.code)):
            return
        code = select_p.bind(ok, NONE, np.int64(1))
        self._after(Errors(code, (check,), (tuple(map(_strong, shown)),)))

    def _after(self, errors: Errors) -> None:
        self.errors = self.errors.then(errors)

    def attach(self, attachment: Attachment) -> bool:
        return self.parent.attach(attachment.lowered(self.lower))


def first_failure(ok: Any, values: Sequence[Value], axes: int, check: Any) -> tuple[Any, Any, list[Any]]:
    """Whether all lanes are `ok`, the check, and the values of the first lane that is not."""
    everywhere = reduce_and_p.bind(ok, axes=tuple(range(axes)))
    place = argmax_p.bind(not_p.bind(flat(ok)), axes=(0,))
    return everywhere, check, [element(x, place, axes) for x in values]


def element(x: Value, place: Any, axes: int) -> Value:
    """The entry at a place of the first axes, counted as one axis."""
    shape = shape_of(x)
    size = int(np.prod(shape[:axes], dtype=np.int64))
    rows = reshape_p.bind(x, shape=(size, *shape[axes:])) if axes != 1 else x
    return gather_p.bind(rows, place, axes=(0,), mode="promise_in_bounds")


def _strong(x: Value) -> Any:
    if type(x) in PYTHON_SCALARS:
        return np.asarray(x)[()]
    aval = aval_of(x)
    return convert_element_type_p.bind(x, dtype=aval.dtype, weak=False) if aval.weak else x


def checkify(
    fun: Callable[..., Sequence[Any]], args: Sequence[Any], categories: tuple[str, ...]
) -> tuple[list[Any], Errors]:
    """Outputs of a function of flat values, and the state of its checks."""
    trace = CheckTrace(current_trace.get(), categories)
    outs = tracing(trace, fun, *map(trace.lift, args))
    return [trace.lower(x) for x in outs], trace.errors


def checked_jaxpr(jaxpr: Jaxpr, categories: tuple[str, ...]) -> CheckedJaxpr:
    """The jaxpr with the state after its outputs, cached on it."""

    def build() -> CheckedJaxpr:
        found: list[Errors] = []

        def run(*values: Value) -> list[Any]:
            outs, errors = checkify(lambda *xs: evaluate(jaxpr, xs), values, categories)
            found.append(errors)
            return [*outs, *errors.flat()]

        checked = stage(run, jaxpr.in_avals, f"checkify({jaxpr.name})", jaxpr.stats)
        errors = found[0].with_flat(checked.outvars[len(jaxpr.outvars) :])
        return CheckedJaxpr(checked, errors, categories)

    return jaxpr.derive(("checked", categories), build)

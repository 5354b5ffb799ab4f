"""The current trace, for libraries that compare or change it."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..core import Trace, Tracer, current_trace, eval_trace
from ..runtime.module_getattr import module_attributes as _module_attributes

__all__ = [
    "OpaqueTraceState", "find_top_trace", "get_opaque_trace_state", "set_current_trace", "take_current_trace",
    "trace_state_clean",
]  # fmt: skip
__getattr__, __dir__ = _module_attributes("functrans.extend.tracing", globals())


class OpaqueTraceState:
    """Which trace was current: two are equal if it was the same."""

    __slots__ = ("_trace",)

    def __init__(self, trace: Trace):
        self._trace = weakref.ref(trace)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpaqueTraceState) and self._trace() is other._trace()

    def __hash__(self) -> int:
        return hash(self._trace)

    def __repr__(self) -> str:
        return f"OpaqueTraceState({type(self._trace()).__name__})"


def get_opaque_trace_state(convention: str | None = None) -> OpaqueTraceState:
    """The state of tracing, to compare with a later one.

    Examples
    --------
    >>> import functrans as ft
    >>> from functrans import extend
    >>> outside = extend.core.get_opaque_trace_state()
    >>> ft.vmap(lambda x: x if outside != extend.core.get_opaque_trace_state() else -x)(ft.numpy.ones(2))
    Array([1., 1.])
    """
    return OpaqueTraceState(current_trace.get())


def trace_state_clean() -> bool:
    """Whether nothing is being traced.

    Examples
    --------
    >>> import functrans as ft
    >>> from functrans import extend
    >>> clean = []
    >>> _ = ft.make_jaxpr(lambda x: clean.append(extend.core.trace_state_clean()))(1.0)
    >>> clean, extend.core.trace_state_clean()
    ([False], True)
    """
    return current_trace.get() is eval_trace


def _depth(trace: Trace) -> int:
    depth = 0
    while trace is not eval_trace:
        trace, depth = trace.parent, depth + 1
    return depth


def find_top_trace(values: Sequence[Any]) -> Trace:
    """The innermost trace among those of traced values; that of plain NumPy if there are none.

    Examples
    --------
    >>> from functrans import extend
    >>> type(extend.core.find_top_trace([1.0, 2.0])).__name__
    'EvalTrace'
    """
    traces = [x._trace for x in values if isinstance(x, Tracer)]
    return max(traces, key=_depth, default=eval_trace)


@contextmanager
def take_current_trace() -> Iterator[Trace]:
    """A block in which nothing is traced; it gives the trace that was current.

    Examples
    --------
    >>> import functrans as ft
    >>> from functrans import extend
    >>> def f(x):
    ...     with extend.core.take_current_trace():
    ...         known = float(ft.numpy.sin(0.0))  # a number, also under jit
    ...     return x + known
    >>> ft.jit(f)(1.0)
    Array(1.)
    """
    outer = current_trace.get()
    token = current_trace.set(eval_trace)
    try:
        yield outer
    finally:
        current_trace.reset(token)


@contextmanager
def set_current_trace(trace: Trace) -> Iterator[None]:
    """A block in which `trace` is the current one.

    Examples
    --------
    >>> from functrans import extend
    >>> with extend.core.take_current_trace() as outer, extend.core.set_current_trace(outer):
    ...     extend.core.trace_state_clean()
    True
    """
    token = current_trace.set(trace)
    try:
        yield
    finally:
        current_trace.reset(token)

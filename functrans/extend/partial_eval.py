"""Tracing where some inputs are known: ``trace_to_jaxpr_nounits`` of ``jax.interpreters.partial_eval``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..api.flags import ensure_compile_time_eval
from ..arrays.array import unwrap, wrap
from ..core import Aval, Jaxpr, Tracer, aval_of
from ..runtime.module_getattr import module_attributes as _module_attributes
from ..runtime.records import NamedTuple
from ..transforms.stage import stage
from .linear_util import WrappedFun

__all__ = ["PartialVal", "trace_to_jaxpr_nounits"]
__getattr__, __dir__ = _module_attributes("functrans.extend.partial_eval", globals())


class PartialVal(NamedTuple):
    """A value that is known, or of which only the type is.

    Attributes
    ----------
    aval : Aval or None
        Its type; None if the value is known.
    const : Any
        The value, if it is known.

    Examples
    --------
    >>> from functrans.extend import partial_eval as pe
    >>> pe.PartialVal.known(2.0).is_known()
    True
    """

    aval: Aval | None
    const: Any

    @classmethod
    def known(cls, const: Any) -> PartialVal:
        """A known value."""
        return cls(None, const)

    @classmethod
    def unknown(cls, aval: Aval) -> PartialVal:
        """One whose type is known."""
        return cls(aval, None)

    def is_known(self) -> bool:
        """Whether the value is known."""
        return self.aval is None


def trace_to_jaxpr_nounits(
    fun: WrappedFun, pvals: Sequence[PartialVal], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[PartialVal], list[Any]]:
    """Trace a function of flat values; what depends on known values alone is computed.

    Parameters
    ----------
    fun : WrappedFun
    pvals : sequence of PartialVal
        Its arguments.
    instantiate : bool or sequence of bool
        Which known results to treat as unknown ones.

    Returns
    -------
    jaxpr : Jaxpr
        From the unknown arguments to the unknown results.
    out_pvals : list of PartialVal
        All results.
    consts : list
        Nothing: a jaxpr has its constants.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functrans.extend import linear_util as lu, partial_eval as pe
    >>> fun = lu.wrap_init(lambda x, y: (fnp.sin(x) * y, x + 1.0))
    >>> pvals = [pe.PartialVal.known(0.0), pe.PartialVal.unknown(ft.typeof(1.0))]
    >>> jaxpr, outs, _ = pe.trace_to_jaxpr_nounits(fun, pvals)
    >>> [out.is_known() for out in outs], outs[1].const
    ([False, True], Array(1.))
    >>> print(jaxpr)
    lambda a:f64[] ; b:f64[]*.
      c:f64[] = mul a b
      return (c,)
    """
    unknown = [p.aval for p in pvals if p.aval is not None]
    out_pvals: list[PartialVal] = []

    def staged(*tracers: Any) -> list[Any]:
        rest = iter(tracers)
        with ensure_compile_time_eval():
            outs = fun.call_wrapped(*[next(rest) if p.aval is not None else p.const for p in pvals])
        wanted = [instantiate] * len(outs) if isinstance(instantiate, bool) else instantiate
        for out, as_unknown in zip(outs, wanted, strict=True):
            is_known = not isinstance(out, Tracer) and not as_unknown
            pval = PartialVal.known(out) if is_known else PartialVal.unknown(aval_of(unwrap(out)))
            out_pvals.append(pval)
        return [unwrap(out) for out, p in zip(outs, out_pvals) if p.aval is not None]

    jaxpr = stage(staged, unknown, fun.__name__)
    return jaxpr, [PartialVal(p.aval, wrap(p.const)) for p in out_pvals], []

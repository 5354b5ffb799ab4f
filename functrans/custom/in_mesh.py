"""Custom rules of functions that ranks of a mesh call: their slots may use collectives wherever they run.

The program of a rank holds the rule, and a transformation outside of ``shard_map`` runs it later. Then the axes of the
mesh are bound again, values have types that say over which of them they differ, and the cotangent of what all ranks
have is the sum of those that ranks return.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ..control.ranks.rank_trace import RankTrace
from ..control.ranks.varying import Axes, axes_of_value
from ..core.aval import Zero, aval_of
from ..core.named_axes import differing, mesh_in_scope
from ..core.primitive import Linear
from ..core.trace import current_trace, tracing
from ..core.values import PyTree
from ..errors import UnexpectedTracerError
from ..runtime.context import run_with
from ..runtime.records import NamedTuple
from ..transforms.stage import stage
from .rule import Again, CustomRule, Dims, Forward, Mask, Pushed, Values, lowered

_SLOTS = frozenset(("fwd", "plain", "fwd_res", "bwd", "jvp", "vmap", "transpose", "dirty", "outs"))


class _MeshToken(NamedTuple):
    """The token of a rule, and the axes over which residuals and outputs differ."""

    inner: Any
    residuals: list[Axes]
    outs: list[Axes]


class InMesh(CustomRule):
    """A rule that a rank applies to these operands while ``shard_map`` traces.

    The types of its outputs are always those of a trace: what a rule declares does not say over which axes they differ.
    """

    def __init__(self, rule: CustomRule, operands: Values):
        for name in vars(CustomRule):
            if not name.startswith("_") and name not in _SLOTS:
                setattr(self, name, getattr(rule, name))
        self.name, self.arity = rule.name, rule.arity
        self._rule = rule
        self._mesh = mesh_in_scope.get()
        self._avals = list(map(aval_of, operands))
        self._ins = list(map(axes_of_value, operands))
        self._outs: list[Axes] | None = None

    @property
    def dirty(self) -> Mapping[int, int]:  # type: ignore[override]
        """See `CustomRule`."""
        return self._rule.dirty

    @property
    def _all(self) -> Axes:
        return frozenset().union(*self._ins)

    @property
    def _inside(self) -> bool:
        return mesh_in_scope.get() is self._mesh

    def _run(self, trace: RankTrace, slot: Callable[..., Any], *args: PyTree) -> Any:
        return lowered(run_with(mesh_in_scope, self._mesh, tracing, trace, slot, *args), trace)

    def _again(self, trace: RankTrace, again: Again) -> list[Any]:
        outs = run_with(mesh_in_scope, None, tracing, trace.parent, again)
        if self._outs is None:
            self._outs = self._traced_outs(len(outs))
        return _lifted(trace, outs, self._outs)

    def _traced_outs(self, count: int) -> list[Axes]:
        def fwd(*values: PyTree) -> Values:
            return self._rule.fwd(values)

        try:
            return [
                a.vma
                for a in run_with(mesh_in_scope, self._mesh, stage, fwd, self._avals, self.name).out_avals
            ]
        except UnexpectedTracerError:  # it captured traced values
            return [self._all] * count

    # --- slots ------------------------------------------------------------------------------------------------

    def fwd(self, values: Values) -> Values:
        """See `CustomRule`."""
        return self._outputs(self._rule.fwd, values)

    def plain(self, values: Values) -> Values:
        """See `CustomRule`."""
        return self._outputs(self._rule.plain, values)

    def _outputs(self, slot: Callable[..., Any], values: Values) -> Values:
        if self._inside:
            return slot(values)
        trace = RankTrace(current_trace.get())
        return self._run(trace, slot, _lifted(trace, values, self._ins))

    def fwd_res(self, values: Values, perturbed: Mask, again: Again) -> Forward:
        """See `CustomRule`."""
        if self._inside:
            return self._rule.fwd_res(values, perturbed, again)
        trace = RankTrace(current_trace.get())

        def slot(values: Values) -> Forward:
            result = self._rule.fwd_res(values, perturbed, partial(self._again, trace, again))
            residuals, outs = (
                list(map(axes_of_value, result.residuals)),
                list(map(axes_of_value, result.outs)),
            )
            return result._replace(token=_MeshToken(result.token, residuals, outs))

        return self._run(trace, slot, _lifted(trace, values, self._ins))

    def bwd(self, token: Any, residuals: Values, cts: Values) -> Values:
        """See `CustomRule`."""
        if self._inside:
            return self._rule.bwd(token, residuals, cts)
        if type(token) is not _MeshToken:
            token = _MeshToken(token, [self._all] * len(residuals), [self._all] * len(cts))
        trace = RankTrace(current_trace.get())

        def slot(residuals: Values, cts: Values) -> Values:
            return self._reduced(self._rule.bwd(token.inner, residuals, cts))

        return self._run(
            trace, slot, _lifted(trace, residuals, token.residuals), _lifted(trace, cts, token.outs)
        )

    def jvp(self, values: Values, tangents: Values, again: Again) -> Pushed:
        """See `CustomRule`."""
        if self._inside:
            return self._rule.jvp(values, tangents, again)
        trace = RankTrace(current_trace.get())
        operands = [_lifted(trace, group, self._ins) for group in (values, tangents)]
        outs, pushed = self._run(trace, self._rule.jvp, *operands, partial(self._again, trace, again))
        return outs, pushed

    def vmap(self, size: int, values: Values, dims: Dims) -> Pushed:
        """See `CustomRule`."""
        if self._inside:
            return self._rule.vmap(size, values, dims)
        trace = RankTrace(current_trace.get())
        outs, out_dims = self._run(trace, self._rule.vmap, size, _lifted(trace, values, self._ins), dims)
        return outs, out_dims

    def transpose(self, cts: Values, values: Values) -> Values:
        """See `CustomRule`."""
        if self._inside:
            return self._rule.transpose(cts, values)
        trace = RankTrace(current_trace.get())

        def slot(cts: Values, values: Values) -> Values:
            return self._reduced(self._rule.transpose(cts, values))

        outs = [self._all] * len(cts)
        return self._run(trace, slot, _lifted(trace, cts, outs), _lifted(trace, values, self._ins))

    def _reduced(self, cts: Values) -> list[Any]:
        """Cotangents that differ over no more axes than the operands."""
        reduced = differing.reduced
        assert reduced is not None
        return [ct if ct is None or type(ct) is Zero else reduced(ct, a) for ct, a in zip(cts, self._avals)]


def _lifted(trace: RankTrace, values: Values, axes: Sequence[Axes]) -> list[Any]:
    return [x if type(x) in (Zero, Linear) else trace.lift(x, a) for x, a in zip(values, axes, strict=True)]

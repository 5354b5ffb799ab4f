"""Values as they are, marked: with a name, as a place that equal computations are not shared across, or as free of
NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.aval import Aval, Zero, aval_of
from ...core.context import run_with
from ...core.debug_nans import describe, has_nan
from ...core.dtypes import is_inexact
from ...core.errors import NaNError
from ...core.kernel import Indexed, Reshape
from ...core.primitive import Effect, Primitive
from ...core.source import Source, replayed
from ...passes.rewriter import identity


def _identity(x: Any, **params: Any) -> Any:
    return x


def _barrier_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    (t,) = tangents
    ans = barrier_p.bind(*primals)
    return ans, Zero(ans) if type(t) is Zero else barrier_p.bind(t)


#: The operand. What is computed behind a barrier is not shared with what is computed before it, nor fused with loops
#: before it: so that a value that is computed anew is not kept instead.
barrier_p: Primitive = Primitive(
    "barrier",
    _identity,
    _identity,
    jvp=_barrier_jvp,
    transpose=lambda ct, x: [barrier_p.bind(ct)],
    batch=lambda size, args, dims: (barrier_p.bind(*args), dims[0]),
    kernel=Reshape(),
    cheap=True,
)


def _name_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, name: str) -> tuple[Any, Any]:
    (t,) = tangents
    ans = name_p.bind(*primals, name=name)
    return ans, Zero(ans) if type(t) is Zero else name_p.bind(t, name=name)


#: The operand, under a name by which the policy of a checkpoint knows it.
name_p: Primitive = Primitive(
    "name",
    _identity,
    _identity,
    jvp=_name_jvp,
    transpose=lambda ct, x, *, name: [ct],
    batch=lambda size, args, dims, *, name: (name_p.bind(*args, name=name), dims[0]),
    kernel=Reshape(),
    cheap=True,
    simplify=identity,
)


def check_nans(x: Any, what: str, source: Source | None = None) -> Any:
    """The value itself; a `NaNError` where it has a NaN, also where a compiled function computes it.

    Parameters
    ----------
    x : value
        Of any dtype; integers are not looked at.
    what : str
        What the message calls it: ``gradient 0 ('x') returned by MyOpBackward``.
    source : Source, optional
        The line that the message shows; by default the user's line now.
    """
    if not is_inexact(aval_of(x).dtype):
        return x
    return run_with(replayed, source or replayed.get(), check_nans_p.bind, x, what=what)


def _check(x: Any, *, what: str) -> Any:
    if has_nan(x):
        raise NaNError(f"{what} is NaN{describe(x)}")
    return x


def _check_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, what: str) -> tuple[Any, Any]:
    (t,) = tangents
    ans = check_nans_p.bind(*primals, what=what)
    return ans, Zero(ans) if type(t) is Zero else check_nans_p.bind(t, what=f"the derivative of {what}")


def _check_kernel(k: Any, index: Any, x: Any, *, out: Aval, what: str) -> Any:
    value = x[index]
    k.fail_if(value.ne(value))
    return value


#: The operand, if it has no NaN. Bound while ``config.debug_nans`` is on only: it keeps loops from being fused.
check_nans_p: Primitive = Primitive(
    "check_nans",
    _identity,
    _check,
    jvp=_check_jvp,
    transpose=lambda ct, x, *, what: [ct],
    batch=lambda size, args, dims, *, what: (check_nans_p.bind(*args, what=what), dims[0]),
    kernel=Indexed(_check_kernel),
    effects=lambda *, what: Effect.RAISE,
    moves_data=True,
)

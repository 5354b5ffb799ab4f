"""Identities that mark a value: with a name, as a barrier to common-subexpression elimination, or as free of NaN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.aval import Aval, Zero, aval_of
from ...core.debug_nans import describe, has_nan
from ...core.dtypes import is_inexact
from ...core.kernel import Indexed, IndexEmitter, Reshape
from ...core.primitive import Effect, Primitive
from ...core.values import Param, Tangent, Value
from ...errors import NaNError
from ...errors.source import Source, replayed
from ...passes.rewriter import identity
from ...runtime.context import run_with
from ..series import of_linear


def _identity(x: Value, **params: Param) -> Value:
    return x


def _barrier_jvp(primals: Sequence[Value], tangents: Sequence[Tangent]) -> tuple[Value, Tangent]:
    (t,) = tangents
    ans = barrier_p.bind(*primals)
    return ans, Zero(ans) if type(t) is Zero else barrier_p.bind(t)


#: The operand. Values computed after a barrier are not shared with equal ones computed before it, nor fused with loops
#: before it, so a rematerialized value is really computed again.
barrier_p: Primitive = Primitive(
    "barrier",
    _identity,
    _identity,
    jvp=_barrier_jvp,
    taylor=of_linear,
    transpose=lambda ct, x: [barrier_p.bind(ct)],
    batch=lambda size, args, dims: (barrier_p.bind(*args), dims[0]),
    kernel=Reshape(),
)


def _name_jvp(primals: Sequence[Value], tangents: Sequence[Tangent], *, name: str) -> tuple[Value, Tangent]:
    (t,) = tangents
    ans = name_p.bind(*primals, name=name)
    return ans, Zero(ans) if type(t) is Zero else name_p.bind(t, name=name)


#: The operand, under a name that checkpoint policies can refer to.
name_p: Primitive = Primitive(
    "name",
    _identity,
    _identity,
    jvp=_name_jvp,
    taylor=of_linear,
    transpose=lambda ct, x, *, name: [ct],
    batch=lambda size, args, dims, *, name: (name_p.bind(*args, name=name), dims[0]),
    kernel=Reshape(),
    simplify=identity,
)


def check_nans(x: Value, what: str, source: Source | None = None) -> Any:
    """Return the value; raise `NaNError` if it contains NaN, in compiled functions too.

    Parameters
    ----------
    x : value
        Of any dtype; integers are not checked.
    what : str
        The name of the value in the message: ``gradient 0 ('x') returned by MyOpBackward``.
    source : Source, optional
        The line that the message shows; by default the user's current line.
    """
    if not is_inexact(aval_of(x).dtype):
        return x
    return run_with(replayed, source or replayed.get(), check_nans_p.bind, x, what=what)


def _check(x: Value, *, what: str) -> Value:
    if has_nan(x):
        raise NaNError(f"{what} is NaN{describe(x)}")
    return x


def _check_jvp(primals: Sequence[Value], tangents: Sequence[Tangent], *, what: str) -> tuple[Value, Tangent]:
    (t,) = tangents
    ans = check_nans_p.bind(*primals, what=what)
    return ans, Zero(ans) if type(t) is Zero else check_nans_p.bind(t, what=f"the derivative of {what}")


def _check_kernel(k: IndexEmitter, index: Value, x: Value, *, out: Aval, what: str) -> Any:
    value = x[index]
    k.fail_if(value.ne(value))
    return value


#: The operand, if it has no NaN. Bound only while ``config.debug_nans`` is on, because it prevents loop fusion.
check_nans_p: Primitive = Primitive(
    "check_nans",
    _identity,
    _check,
    jvp=_check_jvp,
    taylor=of_linear,
    transpose=lambda ct, x, *, what: [ct],
    batch=lambda size, args, dims, *, what: (check_nans_p.bind(*args, what=what), dims[0]),
    kernel=Indexed(_check_kernel),
    effects=lambda *, what: Effect.RAISE,
    moves_data=True,
)

"""Values as they are, marked: with a name, or as a place that equal computations are not shared across."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.aval import Zero
from ..core.kernel import Reshape
from ..core.primitive import Primitive


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
)

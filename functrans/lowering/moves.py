"""Operations that only lowering knows: forms of a primitive that suit a kernel better. `algebra` puts them
in.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..core.aval import Aval
from ..core.kernel import Indexed, IndexEmitter, Operand, Scalar
from ..core.primitive import Primitive
from ..primitives.shape import pad_p


def _window_kernel(
    k: IndexEmitter,
    index: Sequence[Scalar],
    x: Operand,
    value: Operand,
    *,
    out: Aval,
    padding_config: tuple[tuple[int, int, int], ...],
) -> Scalar:
    inside: Scalar | None = None
    place = []
    for i, n, (lo, hi, _) in zip(index, x.aval.shape, padding_config):
        j = i - lo if lo else i
        place.append(j)
        for needed, condition in ((lo > 0, lambda j=j: j >= 0), (hi > 0, lambda j=j, n=n: j < n)):
            if needed:
                inside = condition() if inside is None else inside & condition()
    return x[place] if inside is None else k.guarded(inside, lambda: x[place], value[()])


#: ``pad`` without gaps between elements, read through its index: it fuses, and a sum of pads is one pass.
window_p = Primitive("window", pad_p.abstract, pad_p.impl, kernel=Indexed(_window_kernel))

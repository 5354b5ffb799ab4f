"""The order in which QR with column pivoting takes the columns of a matrix: large ones first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.linalg.lapack import get_lapack_funcs

from ...core.aval import Aval, Zero
from ...core.dtypes import INT32, real_dtype
from ...core.errors import LinAlgError
from ...core.kernel import Block, BlockEmitter, Buffer
from ...core.primitive import Primitive
from ..structure.linear import move_axis
from ..structure.shape import loops
from .matrices import check_kind

_BLOCK = 32


def _abstract(x: Aval) -> Aval:
    if x.ndim < 2:
        raise LinAlgError(f"qr: expected matrices (at least two axes), got shape {x.shape}")
    check_kind("qr", x.dtype)
    return Aval((*x.shape[:-2], x.shape[-1]), INT32)


def _impl(x: Any) -> np.ndarray:
    n = x.shape[-1]
    out = np.empty((*x.shape[:-2], n), INT32)
    out[...] = np.arange(n)
    if x.size:
        geqp3 = get_lapack_funcs("geqp3", dtype=x.dtype)
        for place in np.ndindex(x.shape[:-2]):
            out[place] = geqp3(x[place])[1] - 1
    return out


def _jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    ans = column_order_p.bind(*primals)
    return ans, Zero(ans)


def _kernel(k: BlockEmitter, operands: Any, results: Sequence[Buffer]) -> None:
    (a,), (out,) = operands, results
    *batch, m, n = a.shape
    work, taus = k.scratch((n, m), a.dtype), k.scratch((max(min(m, n), 1),), a.dtype)
    memory = k.scratch(((_BLOCK + 2) * n + _BLOCK,), a.dtype)
    order = k.scratch((n,), INT32)
    reals = (k.scratch((2 * n,), real_dtype(a.dtype)),) if a.dtype.kind == "c" else ()
    with loops(k, batch) as b:
        with k.loop(n) as j:
            k.store(order, [j], k.const(0, INT32))
            with k.loop(m) as i:
                k.store(work, [j, i], k.load(a, [*b, i, j]))
        info = k.local(k.const(0, INT32))
        k.extern("geqp3", m, n, work, max(m, 1), order, taus, memory, memory.shape[0], *reals, info)
        with k.loop(n) as j:
            # Of a matrix without rows LAPACK leaves the order as it was given.
            k.store(out, [*b, j], k.load(order, [j]) - 1 if m else k.cast(j, INT32))


column_order_p: Primitive = Primitive(
    "column_order",
    _abstract,
    _impl,
    jvp=_jvp,
    batch=lambda size, args, dims: (column_order_p.bind(move_axis(args[0], dims[0], 0)), 0),
    kernel=Block(_kernel),
)

"""The product of all elements of a long array, in parts.

Floats are multiplied in NumPy's order, since another one may overflow midway: ``1e300 * 1e-300 * 1e300 * 1e-300`` is 1,
but the two large factors have no product. A processor that multiplies one number after the other waits for each result.
So parts of the array are multiplied side by side, and in several threads, where no order can overflow.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...core import Workload
from ...core.aval import Aval
from ...core.dtypes import BOOL
from ...core.ir import Eqn
from ...core.kernel import Block, BlockEmitter, Buffer, Local, Scalar
from ...core.primitive import Primitive
from ...passes.rewriter import Rewriter
from ..structure.linear import reshape_p

#: From so many elements on, a product of floats is one of chunks, each of which is several parts side by side: the
#: processor need not wait for one multiplication to begin the next, and threads share the chunks.
_LONG, _CHUNKS, _PARTS = 1 << 15, 16, 8


def long_product(rw: Rewriter, eqn: Eqn) -> Eqn | None:
    """Rewrite the product of all elements of a long array."""
    x, out = eqn.invars[0], eqn.outvars[0].aval
    if out.size != 1 or x.aval.size < _LONG or x.aval.dtype.char not in "fd":
        return None
    flat = rw.new(reshape_p, x, shape=(x.aval.size,))
    whole = rw.new(long_prod_p, flat)
    return eqn.replace(primitive=reshape_p, invars=[whole], params={"shape": out.shape})


def _long_product_kernel(k: BlockEmitter, operands: Sequence[Buffer], results: Sequence[Buffer]) -> None:
    """Multiply parts of the array, and these in their order, if no product of first elements leaves the normal numbers.

    With the least and the largest product of each part's first elements, the least and the largest of the array's
    follow. Where these might leave the normal numbers, or something is zero, infinite or NaN, the order decides what
    the result is: then all elements are multiplied one after the other, as by NumPy.
    """
    (x,), (out,) = operands, results
    total, normal = k.local(k.const(1, x.dtype)), k.local(k.const(not k.in_order, BOOL))
    if not k.in_order:
        _multiply_parts(k, x, total, normal)
    with k.if_(~(normal.get() & total.get().eq(total.get()))):
        total.set(k.const(1, x.dtype))
        with k.loop(x.shape[0]) as i:
            total.set(total.get() * k.load(x, [i]))
    k.store(out, [], total.get())


def _multiply_parts(k: BlockEmitter, x: Buffer, total: Local, normal: Local) -> None:
    """Multiply by all elements; `normal` becomes false where a product of first elements might not be normal."""
    kind = np.finfo(x.dtype)
    least, most = k.const(2 * kind.tiny, x.dtype), k.const(kind.max / 2, x.dtype)
    length = x.shape[0] // (_CHUNKS * _PARTS)
    products = k.scratch((_CHUNKS, 3 * _PARTS), x.dtype)
    with k.loop(_CHUNKS, separate=True) as chunk:
        _write_chunk(k, x, k.row(products, chunk), chunk * (_PARTS * length), length)

    def multiply(factor: Scalar, low: Scalar, high: Scalar) -> None:
        before = k.call("abs", total.get())
        normal.set(normal.get() & (least <= before * low) & (before * high <= most))
        total.set(total.get() * factor)

    with k.loop(_CHUNKS) as chunk, k.loop(_PARTS) as part:
        multiply(*[k.load(products, [chunk, part + i * _PARTS]) for i in range(3)])
    with k.loop(x.shape[0], _CHUNKS * _PARTS * length) as i:
        factor = k.load(x, [i])
        multiply(factor, k.call("abs", factor), k.call("abs", factor))


def _write_chunk(k: BlockEmitter, x: Buffer, products: Buffer, start: Scalar, length: int) -> None:
    """Store the products of a chunk's parts, and of their first elements the least and the largest magnitudes."""
    one = k.const(1, x.dtype)
    parts = [[k.local(one) for _ in range(3)] for _ in range(_PARTS)]
    with k.loop(length) as i:
        for number, (product, low, high) in enumerate(parts):
            product.set(product.get() * k.load(x, [start + number * length + i]))
            size = k.call("abs", product.get())
            low.set(k.where(size < low.get(), size, low.get()))
            high.set(k.where(high.get() < size, size, high.get()))
    for number, values in enumerate(parts):
        for place, value in enumerate(values):
            k.store(products, [number + place * _PARTS], value.get())


long_prod_p = Primitive(
    "long_prod",
    lambda x: Aval((), x.dtype),
    lambda x: np.multiply.reduce(x, dtype=x.dtype),
    in_float32=True,
    kernel=Block(_long_product_kernel),
    cost=lambda x: Workload(x.size),
)

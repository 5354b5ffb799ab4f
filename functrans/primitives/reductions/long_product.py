"""The product of all elements of a long array, in parts; and those of long rows, several at once.

Floats are multiplied in NumPy's order, since another one may overflow midway: ``1e300 * 1e-300 * 1e300 * 1e-300`` is 1,
but the two large factors have no product. A processor that multiplies one number after the other waits for each result.
So parts of the array are multiplied side by side, and in several threads, where no order can overflow. So are rows,
each in its order.
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
#: From so many elements in a row on, so many rows are multiplied at once.
_LONG_ROW, _ROWS = 32, 8


def long_product(rw: Rewriter, eqn: Eqn) -> Eqn | None:
    """Rewrite the product of all elements of a long array, or those of the long rows of one that is in memory."""
    x, out = eqn.invars[0], eqn.outvars[0].aval
    if x.aval.dtype.char not in "fd":
        return None
    if out.size == 1 and x.aval.size >= _LONG:
        flat = rw.new(reshape_p, x, shape=(x.aval.size,))
    elif (
        eqn.params["axes"] == (x.aval.ndim - 1,)
        and x.aval.shape[-1] >= _LONG_ROW
        and out.size >= _ROWS
        and x not in rw.producer
    ):
        flat = rw.new(reshape_p, x, shape=(out.size, x.aval.shape[-1]))
    else:
        return None
    products = rw.new(long_prod_p, flat)
    return eqn.replace(primitive=reshape_p, invars=[products], params={"shape": out.shape})


def _long_product_kernel(k: BlockEmitter, operands: Sequence[Buffer], results: Sequence[Buffer]) -> None:
    (x,), (out,) = operands, results
    (_multiply_all if len(x.shape) == 1 else _multiply_rows)(k, x, out)


def _multiply_rows(k: BlockEmitter, x: Buffer, out: Buffer) -> None:
    """Multiply the elements of some rows at a time, which need not wait for each other."""
    rows, length = x.shape
    parts = ((_ROWS, 0, rows // _ROWS), (1, rows - rows % _ROWS, rows))
    for at_once, start, stop in [part for part in parts if part[1] < part[2]]:
        with k.loop(stop, start, separate=True) as block:
            numbers = [block * at_once + number for number in range(at_once)]
            totals = [k.local(k.const(1, x.dtype)) for _ in numbers]
            with k.loop(length) as i:
                for number, total in zip(numbers, totals):
                    total.set(total.get() * k.load(x, [number, i]))
            for number, total in zip(numbers, totals):
                k.store(out, [number], total.get())


def _multiply_all(k: BlockEmitter, x: Buffer, out: Buffer) -> None:
    """Multiply parts of the array, and these in their order, if no product of first elements leaves the normal numbers.

    With the least and the largest product of each part's first elements, the least and the largest of the array's
    follow. Where these might leave the normal numbers, or something is zero, infinite or NaN, the order decides what
    the result is: then all elements are multiplied one after the other, as by NumPy.
    """
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
    lambda x: Aval(x.shape[:-1], x.dtype),
    lambda x: np.multiply.reduce(x, axis=-1, dtype=x.dtype),
    in_float32=True,
    kernel=Block(_long_product_kernel),
    cost=lambda x: Workload(x.size),
)

"""Attention in blocks, which never stores the weights or their derivatives.

The softmax of a row of logits is computed online, one block of keys after the other: when the maximum grows, the sums
so far are scaled down. Reverse mode computes each block of weights again, from the logarithms of the rows' sums.

Everything is in blocks here, with one row of `q`, `k`, `v` for each pair of an example and a key/value head::

    q      (rows, query blocks, group, queries, features)     group: the query heads of one key/value head
    k, v   (rows, key blocks, keys, features)
    bias   (examples, heads, group, query blocks, queries, key blocks, keys), each extent full or 1; also `mask`
    limit  (rows,), the number of keys of each example
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from .. import lax
from .. import numpy as fnp
from ..core.kernel import BlockEmitter, IndexEmitter, ScalarEmitter
from ..core.values import ArrayLike, Value
from ..custom.function import Function
from ..runtime.records import dataclass


@dataclass(frozen=True)
class Band:
    """Which keys a query may attend to, by their positions.

    Attributes
    ----------
    causal : bool
        Whether only those up to the query's position.
    window : tuple of int, or None
        How far they may lie before and after it.
    """

    causal: bool = False
    window: tuple[int, int] | None = None

    def mask(self, queries: Value, keys: Value) -> bool:
        """Which pairs take part; True for all."""
        mask: Any = True
        if self.causal:
            mask = keys <= queries
        if self.window is not None:
            before, after = self.window
            mask = (keys >= queries - before) & (keys <= queries + after) & mask
        return mask

    def reaches(self, queries: tuple[Any, Any], keys: tuple[Any, Any]) -> Any:
        """Whether any pair of a block takes part, from its first and last positions; True for certainly."""
        some: Any = True
        if self.causal:
            some = keys[0] <= queries[1]
        if self.window is not None:
            before, after = self.window
            some = (keys[1] >= queries[0] - before) & (keys[0] <= queries[1] + after) & some
        return some


@dataclass(frozen=True)
class _Block:
    """One block of logits: where it lies, and what changes them."""

    band: Band
    heads: int
    row: Any
    limit: ArrayLike
    bias: Any
    mask: Any
    i: Any
    j: Any
    queries: int
    keys: int

    @property
    def first(self) -> tuple[Any, Any]:
        """The positions of the first query and the first key."""
        return self.i * self.queries, self.j * self.keys

    def start(self, x: Value) -> list[Any]:
        """Where the block begins in a bias or mask."""
        places = (self.row // self.heads, self.row % self.heads, 0, self.i, 0, self.j, 0)
        return [0 if n == 1 else place for n, place in zip(x.shape, places)]

    def part(self, x: ArrayLike) -> Value:
        """The block of a bias or mask."""
        return lax.dynamic_slice(x, self.start(x), self.sizes(x)).reshape(x.shape[2], x.shape[4], x.shape[6])

    def sizes(self, x: Value) -> tuple[int, ...]:
        """The extents of a block of a bias or mask."""
        return (1, 1, x.shape[2], 1, x.shape[4], 1, x.shape[6])

    def logits(self, q: ArrayLike, k: ArrayLike) -> Any:
        """The block's logits, ``-inf`` where a pair does not take part."""
        out = product(q, k.T)
        if self.bias is not None:
            out = out + self.part(self.bias)
        taken: Any = True if self.mask is None else self.part(self.mask)
        i, j = self.first
        keys = j + fnp.arange(self.keys)
        taken = self.band.mask((i + fnp.arange(self.queries))[:, None], keys) & taken
        if self.limit is not None:
            taken = (keys < self.limit) & taken
        return out if taken is True else fnp.where(taken, out, out.dtype.type(-math.inf))

    @property
    def is_needed(self) -> Any:
        """Whether any pair takes part."""
        i, j = self.first
        some = self.band.reaches((i, i + self.queries - 1), (j, j + self.keys - 1))
        return some if self.limit is None else (j < self.limit) & some

    def step(self, function: Any, carry: ArrayLike) -> Any:
        """``function(carry)`` if the block is needed, else the carry."""
        needed = self.is_needed
        return function(carry) if needed is True else lax.cond(needed, function, lambda c: c, carry)


def product(x: ArrayLike, y: ArrayLike) -> Any:
    """``x @ y`` for stacked rows `x` and a matrix, as one product of matrices."""
    return (x.reshape(-1, x.shape[-1]) @ y).reshape(*x.shape[:-1], y.shape[-1])


def summed_over_group(x: Value, y: Value) -> Any:
    """``x.T @ y`` for stacked rows."""
    return x.reshape(-1, x.shape[-1]).T @ y.reshape(-1, y.shape[-1])


def _finite(x: ArrayLike) -> Any:
    """0 instead of ``-inf``: what is left of a row of logits without any key."""
    return fnp.where(x == -math.inf, x.dtype.type(0), x)


@dataclass(frozen=True)
class Blocks:
    """The loops over the blocks.

    Attributes
    ----------
    band : Band
    heads : int
        The number of key/value heads.
    bias, mask, limit : arrays or None
    """

    band: Band
    heads: int
    bias: Any
    mask: Any
    limit: ArrayLike

    def block(
        self, row: ArrayLike, limit: ArrayLike, i: ArrayLike, j: ArrayLike, q: ArrayLike, k: ArrayLike
    ) -> _Block:
        """The block of rows `q` and `k`, number (`i`, `j`)."""
        return _Block(self.band, self.heads, row, limit, self.bias, self.mask, i, j, q.shape[-2], k.shape[-2])

    def over_rows(self, function: Any, carry: ArrayLike, *arrays: Value) -> Any:
        """A scan of ``function(carry, row, limit, *parts)`` over the rows."""

        def step(c: ArrayLike, x: ArrayLike) -> Any:
            row, limit, *parts = x
            return function(c, row, limit, *parts)

        return lax.scan(step, carry, (fnp.arange(arrays[0].shape[0]), self.limit, *arrays))

    def forward(self, q: ArrayLike, k: ArrayLike, v: ArrayLike) -> tuple[Any, Any]:
        """The result, and the logarithm of each row's sum of exponentials."""
        n = k.shape[1]

        def queries(
            row: ArrayLike, limit: ArrayLike, k: IndexEmitter, v: ArrayLike, i: ArrayLike, q: ArrayLike
        ) -> Any:
            def keys(carry: ArrayLike, x: ArrayLike) -> Any:
                j, k, v = x
                block = self.block(row, limit, i, j, q, k)
                return block.step(lambda c: _online(block.logits(q, k), v, *c), carry), None

            rest = fnp.zeros((*q.shape[:-1], 1), q.dtype)
            start = fnp.zeros(q.shape, q.dtype), rest - math.inf, rest
            (out, top, total), _ = lax.scan(keys, start, (fnp.arange(n), k, v))
            empty = total == 0.0
            total = fnp.where(empty, total.dtype.type(1), total)
            lse = fnp.where(empty, total.dtype.type(-math.inf), top + fnp.log(total))
            return out / total, lse[..., 0]

        def rows(
            carry: ArrayLike, row: ArrayLike, limit: ArrayLike, q: ArrayLike, k: IndexEmitter, v: ArrayLike
        ) -> Any:
            of_keys = partial(queries, row, limit, k, v)
            return carry, lax.scan(lambda c, x: (c, of_keys(*x)), None, (fnp.arange(q.shape[0]), q))[1]

        return self.over_rows(rows, None, q, k, v)[1]

    def backward(
        self,
        q: ArrayLike,
        k: ArrayLike,
        v: ArrayLike,
        out: ArrayLike,
        lse: Any,
        cts: tuple[Any, Any],
        bias_needed: bool,
    ) -> tuple[Any, ...]:
        """The cotangents of `q`, `k`, `v` and the bias (None unless needed), for those of the results."""
        ct, ct_lse = cts
        inner = fnp.sum(ct * out, axis=-1) - ct_lse
        n = k.shape[1]

        def queries(
            carry: ArrayLike, row: ArrayLike, limit: ArrayLike, k: IndexEmitter, v: ArrayLike, x: ArrayLike
        ) -> Any:
            i, q, lse, inner, ct = x
            ct_k, ct_v, ct_bias = carry

            def keys(carry: ArrayLike, x: ArrayLike) -> Any:
                j, k, v, *kept = x
                block = self.block(row, limit, i, j, q, k)

                def step(c: ArrayLike) -> Any:
                    ct_q, ct_bias, ct_k, ct_v = c
                    weights = fnp.exp(block.logits(q, k) - _finite(lse)[..., None])
                    ct_logits = weights * (product(ct, v.T) - inner[..., None])
                    if ct_bias is not None:
                        ct_bias = _added(ct_bias, ct_logits, block)
                    ct_k = ct_k + summed_over_group(ct_logits, q)
                    ct_v = ct_v + summed_over_group(weights, ct)
                    return ct_q + product(ct_logits, k), ct_bias, ct_k, ct_v

                ct_q, ct_bias, *kept = block.step(step, (*carry, *kept))
                return (ct_q, ct_bias), tuple(kept)

            start = fnp.zeros(q.shape, q.dtype), ct_bias
            (ct_q, ct_bias), (ct_k, ct_v) = lax.scan(keys, start, (fnp.arange(n), k, v, ct_k, ct_v))
            return (ct_k, ct_v, ct_bias), ct_q

        def rows(
            ct_bias: Any,
            row: ArrayLike,
            limit: ArrayLike,
            q: ArrayLike,
            k: ArrayLike,
            v: ArrayLike,
            *others: Any,
        ) -> Any:
            start = fnp.zeros(k.shape, k.dtype), fnp.zeros(v.shape, v.dtype), ct_bias
            (ct_k, ct_v, ct_bias), ct_q = lax.scan(
                lambda c, x: queries(c, row, limit, k, v, x), start, (fnp.arange(q.shape[0]), q, *others)
            )
            return ct_bias, (ct_q, ct_k, ct_v)

        start = fnp.zeros(self.bias.shape, q.dtype) if bias_needed else None
        ct_bias, (ct_q, ct_k, ct_v) = self.over_rows(rows, start, q, k, v, lse, inner, ct)
        return ct_q, ct_k, ct_v, ct_bias

    def jvp(self, primals: tuple[Any, ...], lse: Any, tangents: tuple[Any, ...], t_bias: Any) -> Any:
        """The tangents of the results, for those of `q`, `k`, `v` and the bias."""
        n = primals[1].shape[1]

        def queries(row: ArrayLike, limit: ArrayLike, of_keys: Any, x: ArrayLike) -> Any:
            i, q, out, lse, t_q = x

            def keys(carry: ArrayLike, x: ArrayLike) -> Any:
                j, k, v, t_k, t_v = x
                block = self.block(row, limit, i, j, q, k)

                def step(c: ArrayLike) -> Any:
                    total, shift = c
                    weights = fnp.exp(block.logits(q, k) - _finite(lse)[..., None])
                    t_logits = product(q, t_k.T) + product(t_q, k.T)
                    if t_bias is not None:
                        t_logits = t_logits + block.part(t_bias)
                    moved = weights * t_logits
                    total = total + product(moved, v) + product(weights, t_v)
                    return total, shift + fnp.sum(moved, axis=-1, keepdims=True)

                return block.step(step, carry), None

            start = fnp.zeros(q.shape, q.dtype), fnp.zeros((*q.shape[:-1], 1), q.dtype)
            (total, shift), _ = lax.scan(keys, start, (fnp.arange(n), *of_keys))
            return total - shift * out, shift[..., 0]

        def rows(
            carry: ArrayLike,
            row: ArrayLike,
            limit: ArrayLike,
            q: ArrayLike,
            k: ScalarEmitter,
            v: ArrayLike,
            out: ArrayLike,
            lse: Any,
            *tangents: Any,
        ) -> Any:
            t_q, t_k, t_v = tangents
            of_keys = partial(queries, row, limit, (k, v, t_k, t_v))
            return carry, lax.scan(
                lambda c, x: (c, of_keys(x)), None, (fnp.arange(q.shape[0]), q, out, lse, t_q)
            )[1]

        return self.over_rows(rows, None, *primals, lse, *tangents)[1]


def _online(logits: Value, v: Value, out: ArrayLike, top: Any, total: ArrayLike) -> tuple[Any, Any, Any]:
    """Add a block to a row's weighted sum of values, its largest logit and its sum of exponentials."""
    new = fnp.maximum(top, fnp.max(logits, axis=-1, keepdims=True))
    shift = _finite(new)
    weights, scale = fnp.exp(logits - shift), fnp.exp(top - shift)
    total = total * scale + fnp.sum(weights, axis=-1, keepdims=True)
    return out * scale + product(weights, v), new, total


def _added(total: ArrayLike, part: Any, block: _Block) -> Any:
    """Add a block's cotangent to that of the bias, summed over the axes along which the bias is repeated."""
    sizes = block.sizes(total)
    axes = tuple([axis for axis, d in enumerate((2, 4, 6)) if total.shape[d] == 1])
    part = fnp.sum(part, axis=axes, keepdims=True).reshape(sizes) if axes else part.reshape(sizes)
    start = block.start(total)
    return lax.dynamic_update_slice(total, lax.dynamic_slice(total, start, sizes) + part, start)


class BlockedAttention(Function):
    """Attention of blocks; see `Blocks`. The results are the weighted values, and the logarithms of the rows' sums."""

    @staticmethod
    def forward(
        band: Band,
        heads: int,
        q: ArrayLike,
        k: BlockEmitter,
        v: ArrayLike,
        bias: Any,
        mask: ArrayLike,
        limit: ArrayLike,
    ) -> tuple[Any, Any]:
        """The value."""
        return Blocks(band, heads, bias, mask, limit).forward(q, k, v)

    @staticmethod
    def setup_context(ctx: Any, inputs: ArrayLike, output: ArrayLike) -> None:
        """Save the arguments, the result, and the sums."""
        band, heads, *arrays = inputs
        ctx.band, ctx.heads = band, heads
        ctx.save_for_backward(*arrays, *output)
        ctx.save_for_forward(*arrays, *output)

    @staticmethod
    def backward(ctx: Any, *cts: Any) -> tuple[Any, ...]:
        """The cotangents."""
        q, k, v, bias, mask, limit, out, lse = ctx.saved_tensors
        bias_needed = bias is not None and ctx.needs_input_grad[5]
        blocks = Blocks(ctx.band, ctx.heads, bias, mask, limit)
        return (None, None, *blocks.backward(q, k, v, out, lse, (cts[0], cts[1]), bias_needed), None, None)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> tuple[Any, Any]:
        """The tangents."""
        q, k, v, bias, mask, limit, out, lse = ctx.saved_tensors
        blocks = Blocks(ctx.band, ctx.heads, bias, mask, limit)
        t_q, t_k, t_v, t_bias = tangents[2:6]
        return blocks.jvp((q, k, v, out), lse, (t_q, t_k, t_v), t_bias)

"""Attention: queries that average values by the softmax of their products with keys."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import lax
from .. import numpy as fnp
from ..arrays.arguments import one_of
from ..core import ArgumentError, ArgumentValueError, DtypeError, ShapeError, finfo
from ..core.values import ArrayLike, ShapeLike, Value
from ..frontend.checked import checked
from ..numpy.dispatch import array_operand
from ..primitives import ops
from ..primitives.ops import dtype_of, finish, shape_of
from ..runtime.records import NamedTuple
from .attention_blocks import Band, BlockedAttention
from .operands import parameter, real_operand

#: The largest number of queries, and of keys, whose weights are stored.
_SHORT = 256
#: How many queries of a group, and how many keys, make a block: it stays in the processor's cache.
_BLOCK = 256
#: The logits of what is left out in JAX, as the residual of a query without keys shows.
_LEFT_OUT = -0.7 * float(np.finfo(np.float32).max)


def _left_out(dtype: np.dtype) -> Any:
    """The same, within the range of float16."""
    return dtype.type(max(_LEFT_OUT, -0.7 * float(finfo(dtype).max)))


class _Problem(NamedTuple):
    """The arguments, with all axes: (examples, tokens, heads, features); and what limits the pairs."""

    q: ArrayLike
    k: ArrayLike
    v: ArrayLike
    bias: Any
    mask: Any
    band: Band
    query_lengths: Any
    key_lengths: Any

    @property
    def sizes(self) -> tuple[int, int, int, int, int, int]:
        """Examples, queries, keys, key/value heads, query heads for each of them, features."""
        examples, queries, heads, features = shape_of(self.q)
        _, keys, own, _ = shape_of(self.k)
        return examples, queries, keys, own, heads // own, features

    @property
    def is_limited(self) -> bool:
        """Whether a query may be left without keys."""
        return any(x is not None for x in (self.bias, self.mask, self.key_lengths, self.band.window))


@checked
def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike = None,
    mask: ArrayLike = None,
    *,
    scale: ArrayLike = None,
    is_causal: bool = False,
    query_seq_lengths: Any = None,
    key_value_seq_lengths: Any = None,
    local_window_size: Any = None,
    implementation: str | None = None,
    return_residual: bool = False,
) -> Any:
    r"""Scaled dot-product attention, :math:`\mathrm{softmax}(Q K^T / \sqrt{d} + B)\, V`, of each head.

    Parameters
    ----------
    query : array_like, shape (examples, t, heads, d) or (t, heads, d)
    key, value : array_like, shape (examples, s, own, d) or (s, own, d)
        `own` divides `heads`: each key/value head serves ``heads // own`` consecutive query heads.
    bias : array_like, optional
        Added to the logits; it broadcasts to (examples, heads, t, s).
    mask : array_like of bool, optional
        The pairs that take part; it broadcasts to (examples, heads, t, s).
    scale : float, optional
        By default ``1 / sqrt(d)``.
    is_causal : bool
        Whether query i attends only to keys up to i.
    query_seq_lengths, key_value_seq_lengths : array_like of int, shape (examples,), optional
        The numbers of queries and keys of each example; the rest is padding. The result of padding is 0.
    local_window_size : int or tuple of int, optional
        How many keys before and after the query's position a query attends to.
    implementation : {None, 'xla'}
        Accepted for JAX.
    return_residual : bool
        Whether to return the logarithm of each query's sum of exponentials, too. It has no derivative.

    Returns
    -------
    Array
        With the shape of `query`.
    residual : Array, shape (examples, t, heads) or (t, heads)
        Only if `return_residual`.

    Raises
    ------
    ShapeError, DtypeError
        If shapes or dtypes do not match.
    ArgumentValueError
        If `heads` is not a multiple of `own`, or for `implementation='cudnn'`.

    Notes
    -----
    Up to 256 queries and keys the weights are stored. Longer sequences are processed in blocks, by a softmax that is
    computed online [1]_; reverse mode computes the weights again [2]_. So memory grows with the number of tokens, not
    with its square; and blocks in which no pair takes part cost nothing. (Second derivatives store the weights.)

    All is computed in the dtype of the arguments; JAX computes the softmax of float64 in float32. A query that has no
    key left gets the mean of all values, as in JAX.

    References
    ----------
    .. [1] M. N. Rabe, C. Staats: Self-attention does not need O(n^2) memory. arXiv:2112.05682, 2021.
    .. [2] T. Dao et al.: FlashAttention: fast and memory-efficient exact attention with IO-awareness. NeurIPS 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import nn
    >>> query, key = np.array([[[0.0]], [[50.0]]]), np.array([[[1.0]], [[2.0]]])
    >>> nn.dot_product_attention(query, key, np.array([[[1.0]], [[3.0]]]))
    Array([[[2.]],
    <BLANKLINE>
           [[3.]]])
    """
    if implementation == "cudnn":
        raise ArgumentValueError(
            "dot_product_attention: implementation='cudnn' is for Nvidia's devices; leave it out on a CPU"
        )
    if implementation is not None:
        one_of(implementation, ("xla",), "dot_product_attention: implementation")
    arrays = [real_operand(x, "dot_product_attention", i) for i, x in enumerate((query, key, value))]
    shape = shape_of(arrays[0])
    q, k, v = [_with_examples(x, n) for x, n in zip(arrays, ("query", "key", "value"))]
    _check_shapes(q, k, v)
    examples = shape_of(q)[0]
    band = Band(is_causal, _window(local_window_size))
    full = (examples, shape_of(q)[2], shape_of(q)[1], shape_of(k)[1])
    biases = (
        None if bias is None else _pairs(ops.convert(real_operand(bias, _NAME, 3), dtype_of(q)), full, "bias")
    )
    masks = None if mask is None else _pairs(_booleans(mask), full, "mask")
    lengths = [
        _lengths(x, examples, n)
        for x, n in (
            (query_seq_lengths, "query_seq_lengths"),
            (key_value_seq_lengths, "key_value_seq_lengths"),
        )
    ]
    factor = (
        1.0 / math.sqrt(max(shape_of(q)[-1], 1)) if scale is None else parameter(scale, f"{_NAME}: scale", 0)
    )
    problem = _Problem(ops.convert(q * factor, dtype_of(q)), k, v, biases, masks, band, *lengths)
    out, lse = _attention(problem)
    out = finish(out.reshape(shape))
    return (out, finish(lax.stop_gradient(lse).reshape(shape[:-1]))) if return_residual else out


_NAME = "dot_product_attention"


# --- arguments ----------------------------------------------------------------------------------------------


def _with_examples(x: Value, name: str) -> Value:
    shape = shape_of(x)
    if len(shape) not in (3, 4):
        raise ShapeError(
            f"{_NAME}: {name} must have axes (examples, tokens, heads, features), or the last three, got shape {shape}"
        )
    return x if len(shape) == 4 else ops.reshape_p.bind(x, shape=(1, *shape))


def _check_shapes(q: Value, k: Value, v: Value) -> None:
    (examples, _, heads, features), own = shape_of(q), shape_of(k)
    if shape_of(v) != own or (own[0], own[3]) != (examples, features):
        raise ShapeError(
            f"{_NAME}: query {shape_of(q)}, key {own} and value {shape_of(v)} do not match: key and value need one "
            "shape, with the examples and features of query"
        )
    if not dtype_of(q) == dtype_of(k) == dtype_of(v):
        raise DtypeError(
            f"{_NAME}: query, key and value must have one dtype, got {dtype_of(q)}, {dtype_of(k)} and {dtype_of(v)}"
        )
    if not own[2] or heads % own[2]:
        raise ArgumentValueError(
            f"{_NAME}: the number of query heads must be a multiple of that of key heads, got {heads} and {own[2]}"
        )


def _window(size: ShapeLike) -> tuple[int, int] | None:
    if size is None:
        return None
    sizes = size if isinstance(size, tuple) else (size, size)
    try:
        before, after = [np.asarray(n).__index__() for n in sizes]
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{_NAME}: local_window_size must be an integer or two of them, got {size!r}"
        ) from None
    return before, after


def _booleans(mask: ArrayLike) -> Any:
    value = array_operand(mask, _NAME, 4)
    if dtype_of(value).kind != "b":
        raise DtypeError(
            f"{_NAME}: mask must be an array of booleans, got dtype {dtype_of(value)}; pass numbers to add as bias"
        )
    return value


def _pairs(x: Value, full: tuple[int, ...], name: str) -> Value:
    """A bias or mask with four axes, each full or of extent 1."""
    shape = shape_of(x)
    shape = (*[1] * (4 - len(shape)), *shape)
    if len(shape) > 4 or any(n not in (1, m) for n, m in zip(shape, full)):
        raise ShapeError(
            f"{_NAME}: {name} of shape {shape_of(x)} does not broadcast to (examples, heads, t, s) = {full}"
        )
    return ops.reshape_p.bind(x, shape=shape)


def _lengths(x: Value, examples: int, name: str) -> Value:
    if x is None:
        return None
    value = array_operand(x, f"{_NAME}: {name}")
    if dtype_of(value).kind not in "iu":
        raise DtypeError(f"{_NAME}: {name} must be integers, got dtype {dtype_of(value)}")
    if shape_of(value) != (examples,):
        raise ShapeError(f"{_NAME}: {name} must have shape ({examples},), got {shape_of(value)}")
    return ops.convert(value, np.dtype(np.int64))


# --- both ways ----------------------------------------------------------------------------------------------


def _attention(p: _Problem) -> tuple[Any, Any]:
    """The result and the residual, with axes (examples, queries, heads, features)."""
    examples, queries, keys, own, group, features = p.sizes
    way = _stored if max(queries, keys) <= _SHORT else _blocked
    if not math.prod(p.sizes):  # nothing to add up
        out = fnp.zeros((examples, queries, own, group, features), dtype_of(p.q))
        lse = fnp.full(out.shape[:-1], -math.inf, dtype_of(p.q))
    else:
        out, lse = way(p)
    if p.is_limited and keys:
        empty = lse == -math.inf
        mean = fnp.mean(p.v, axis=1)[:, None, :, None]
        out = fnp.where(empty[..., None], mean, out)
        lse = fnp.where(empty, _left_out(dtype_of(lse)), lse)
    if p.query_lengths is not None:
        real = (fnp.arange(queries) < p.query_lengths[:, None])[:, :, None, None]
        out = fnp.where(real[..., None], out, dtype_of(out).type(0))
        lse = fnp.where(real, lse, _left_out(dtype_of(lse)))
    shape = (examples, queries, own * group)
    return out.reshape(*shape, features), lse.reshape(shape)


def _stored(p: _Problem) -> tuple[Any, Any]:
    examples, queries, keys, own, group, features = p.sizes
    q = p.q.reshape(examples, queries, own, group, features)
    logits = fnp.einsum("bqhgd,bkhd->bhgqk", q, p.k)

    def grouped(x: Value) -> Any:
        first, heads, *rest = shape_of(x)
        return x.reshape(first, *_grouped(heads, own, group), *rest)

    if p.bias is not None:
        logits = logits + grouped(p.bias)
    taken: Any = True if p.mask is None else grouped(p.mask)
    taken = p.band.mask(fnp.arange(queries)[:, None], fnp.arange(keys)) & taken
    if p.key_lengths is not None:
        taken = (fnp.arange(keys) < p.key_lengths[:, None])[:, None, None, None] & taken
    low = dtype_of(logits).type(-math.inf)
    logits = logits if taken is True else fnp.where(taken, logits, low)
    top = lax.stop_gradient(fnp.max(logits, axis=-1, keepdims=True))
    top = fnp.where(top == -math.inf, dtype_of(logits).type(0), top)
    weights = fnp.exp(logits - top)
    total = fnp.sum(weights, axis=-1, keepdims=True)
    empty = total == 0.0
    total = fnp.where(empty, dtype_of(total).type(1), total)
    out = fnp.einsum("bhgqk,bkhd->bqhgd", weights / total, p.v)
    lse = fnp.where(empty, low, top + fnp.log(total))[..., 0]
    return out, fnp.transpose(lse, (0, 3, 1, 2))


def _grouped(heads: int, own: int, group: int) -> tuple[int, int]:
    return (1, 1) if heads == 1 else (own, group)


def _blocked(p: _Problem) -> tuple[Any, Any]:
    examples, queries, keys, own, group, features = p.sizes
    across, per = _division(queries, max(_BLOCK // group, 1))
    along, block = _division(keys, _BLOCK)
    q = fnp.transpose(p.q.reshape(examples, queries, own, group, features), (0, 2, 1, 3, 4))
    q = _padded(q, 2, across * per).reshape(examples * own, across, per, group, features)
    q = fnp.transpose(q, (0, 1, 3, 2, 4))
    k, v = [
        _padded(fnp.transpose(x, (0, 2, 1, 3)), 2, along * block).reshape(
            examples * own, along, block, features
        )
        for x in (p.k, p.v)
    ]

    def cut(x: Value) -> Any:
        """A bias or mask in blocks."""
        if x is None:
            return None
        a, h, t, s = shape_of(x)
        x = x if t == 1 else _padded(x, 2, across * per)
        x = x if s == 1 else _padded(x, 3, along * block)
        return x.reshape(
            a,
            *_grouped(h, own, group),
            *((1, 1) if t == 1 else (across, per)),
            *((1, 1) if s == 1 else (along, block)),
        )

    limit = None
    if p.key_lengths is not None:
        limit = fnp.repeat(p.key_lengths, own)
    elif along * block != keys:
        limit = fnp.full(examples * own, keys)
    out, lse = BlockedAttention.apply(p.band, own, q, k, v, cut(p.bias), cut(p.mask), limit)
    out = fnp.transpose(out.reshape(examples, own, across, group, per, features), (0, 2, 4, 1, 3, 5))
    lse = fnp.transpose(lse.reshape(examples, own, across, group, per), (0, 2, 4, 1, 3))
    flat = (examples, across * per, own, group)
    return out.reshape(*flat, features)[:, :queries], lse.reshape(flat)[:, :queries]


def _division(size: int, largest: int) -> tuple[int, int]:
    """The number of equal blocks, and their extent: the last one has little padding."""
    number = -(-size // largest)
    return number, -(-size // number)


def _padded(x: Value, axis: int, size: int) -> Value:
    """Zeros appended to an axis."""
    missing = size - shape_of(x)[axis]
    return x if not missing else fnp.pad(x, [(0, missing if d == axis else 0) for d in range(x.ndim)])

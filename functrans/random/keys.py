"""Keys: make them, split them, look into them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..arrays.array import Array
from ..core import KEY, aval_of
from ..core.values import ArrayLike, DTypeLike, Value
from ..errors import ArgumentError, ArgumentValueError, DtypeError, IntegerRangeError, ShapeError
from ..frontend.checked import checked
from ..primitives import ops
from ..primitives.ops import finish, operand, positive_shape
from . import stream
from .arguments import U32, U64, as_given, compiled, is_raw, keys, one_key, raw, typed, words

__all__ = [
    "PRNGKey", "clone", "fold_in", "key", "key_data", "key_dtype", "key_impl", "split", "wrap_key_data",
]  # fmt: skip

_NAME = "threefry2x32"


def _check_impl(spec: Any, name: str) -> None:
    """Raise unless `spec` names the one generator, by its name or its dtype."""
    if spec is None or spec == _NAME or (isinstance(spec, np.dtype) and spec == KEY):
        return
    raise ArgumentValueError(
        f"random.{name}: the generator {spec!r} does not exist: there is {_NAME!r}, as in JAX's default"
    )


def _either(impl: Any, dtype: DTypeLike, name: str) -> None:
    if impl is not None and dtype is not None:
        raise ArgumentError(f"random.{name}: pass impl or dtype, not both")
    _check_impl(impl if dtype is None else dtype, name)


def _seed(seed: ArrayLike, name: str) -> Any:
    """A seed as a 64-bit number."""
    if type(seed) is int:
        if not -(2**63) <= seed < 2**64:
            raise IntegerRangeError(f"random.{name}: seed {seed} does not fit in 64 bits")
        return np.array(seed % 2**64, U64)[()]
    value = operand(seed, f"random.{name}: seed")
    aval = aval_of(value)
    if aval.dtype == KEY:
        raise ArgumentError(f"random.{name}: seed must be an integer, got a key: use it as it is")
    if aval.dtype.kind not in "iu":
        raise DtypeError(f"random.{name}: seed must be an integer, got dtype {aval.dtype}")
    if aval.shape:
        raise ShapeError(
            f"random.{name}: seed must be one integer, got shape {aval.shape}: map over seeds with vmap"
        )
    if aval.dtype.itemsize < 8:  # as JAX does: the high word is 0, also of negative numbers
        value = ops.convert_element_type_p.bind(value, dtype=U32)
    return ops.convert_element_type_p.bind(value, dtype=U64)


@checked
def key(seed: ArrayLike, *, impl: Any = None, dtype: DTypeLike = None) -> Array:
    """Make a key from a seed.

    Parameters
    ----------
    seed : int
        Of up to 64 bits; equal seeds make equal keys. May be traced.
    impl, dtype : optional
        The generator, ``'threefry2x32'``.

    Returns
    -------
    Array
        A key: an array without axes, of dtype `functrans.dtypes.prng_key`.

    Raises
    ------
    DtypeError, ShapeError, IntegerRangeError
        If the seed is not one integer of at most 64 bits.

    Examples
    --------
    >>> from functrans import random
    >>> random.normal(random.key(0), 2)
    Array([-0.20584214, -0.78476578])
    """
    _either(impl, dtype, "key")
    return finish(typed(_seed(seed, "key")))


@checked
def PRNGKey(seed: ArrayLike, *, impl: Any = None) -> Any:
    """Make a key in the older form: an array of two uint32, which every function takes as well.

    Parameters
    ----------
    seed : int
    impl : optional
        The generator, ``'threefry2x32'``.

    Examples
    --------
    >>> from functrans import random
    >>> random.PRNGKey(7)
    Array([0, 7], dtype=uint32)
    """
    _check_impl(impl, "PRNGKey")
    return finish(raw(_seed(seed, "PRNGKey")))


@compiled
def _split(key: Value, *, shape: tuple[int, ...]) -> Value:
    return as_given(stream.split(words(key, "split"), shape), key)


@checked
def split(key: ArrayLike, num: int | Sequence[int] = 2) -> Array:
    """Make new keys from one; the old one should not be used any more.

    Parameters
    ----------
    key : key
    num : int or tuple of int
        How many keys, or the shape of an array of keys.

    Returns
    -------
    Array, shape (num,)
        Keys in the form of `key`. The first keys do not depend on `num`.

    Examples
    --------
    >>> from functrans import random
    >>> carry, draw = random.split(random.key(0))
    >>> random.split(carry, (2, 3)).shape
    (2, 3)
    """
    return _split(one_key(key, "split"), shape=positive_shape(num, "random.split"))


@compiled
def _fold_in(key: Value, data: Value) -> Value:
    return as_given(stream.fold(words(key), data), key)


@checked
def fold_in(key: ArrayLike, data: ArrayLike) -> Any:
    """Make a new key from a key and a number, such as that of an iteration.

    Parameters
    ----------
    key : key
    data : int
        Its lower 32 bits count. May be traced.

    Examples
    --------
    >>> from functrans import random
    >>> step = random.fold_in(random.key(0), 10)
    """
    number = operand(data, "random.fold_in: data")
    aval = aval_of(number)
    if aval.dtype.kind not in "iu" or aval.shape:
        raise ArgumentError(f"random.fold_in: data must be one integer, got type {aval}")
    if type(number) is int:
        if not 0 <= number < 2**32:
            raise IntegerRangeError(f"random.fold_in: data {number} does not fit in uint32")
        number = np.uint32(number)
    return _fold_in(one_key(key, "fold_in"), number)


@checked
def clone(key: ArrayLike) -> Any:
    """The same key, for `debug_key_reuse`: one that may be used again, on purpose.

    Examples
    --------
    >>> from functrans import random
    >>> key = random.key(0)
    >>> bool(random.clone(key) == key)
    True
    """
    value = keys(key, "clone")
    return finish(typed(words(value)) if aval_of(value).dtype == KEY else value)


@checked
def key_data(keys: ArrayLike) -> Any:
    """The bits of keys, as `PRNGKey` returns them: pairs of uint32 along a new last axis.

    Examples
    --------
    >>> from functrans import random
    >>> random.key_data(random.key(7))
    Array([0, 7], dtype=uint32)
    """
    value = _keys(keys, "key_data")
    return finish(raw(words(value)) if aval_of(value).dtype == KEY else value)


_keys = keys


@checked
def wrap_key_data(key_bits_array: Any, *, impl: Any = None, dtype: DTypeLike = None) -> Any:
    """Keys with these bits; the inverse of `key_data`.

    Parameters
    ----------
    key_bits_array : array_like of uint32, shape (..., 2)
    impl, dtype : optional
        The generator, ``'threefry2x32'``.

    Raises
    ------
    ArgumentError
        If the array has another dtype or shape.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import random
    >>> random.wrap_key_data(np.array([0, 7], np.uint32)) == random.key(7)
    Array(True)
    """
    _either(impl, dtype, "wrap_key_data")
    value = operand(key_bits_array, "random.wrap_key_data")
    aval = aval_of(value)
    if not is_raw(aval):
        raise ArgumentError(
            f"random.wrap_key_data: expected uint32 of shape (..., 2), got {aval.dtype} of shape {aval.shape}"
        )
    return finish(typed(words(value)))


@checked
def key_impl(keys: ArrayLike) -> str:
    """The name of the generator of keys.

    Examples
    --------
    >>> from functrans import random
    >>> random.key_impl(random.key(0))
    'threefry2x32'
    """
    _keys(keys, "key_impl")
    return _NAME


@checked
def key_dtype(impl_spec: Any = None) -> Any:
    """The dtype of keys.

    Examples
    --------
    >>> from functrans import random
    >>> random.key(0).dtype == random.key_dtype()
    True
    """
    _check_impl(impl_spec, "key_dtype")
    return KEY

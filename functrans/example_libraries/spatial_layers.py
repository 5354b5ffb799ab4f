"""Convolutions and pools."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import lax, random
from .. import numpy as fnp
from ..api.compiled.stages import eval_shape
from ..core.values import ArrayLike, PyTree
from ..errors import ArgumentValueError
from ..frontend.checked import checked
from ..frontend.structs import ShapeDtypeStruct
from ..nn.initializers import glorot_normal, normal
from .combinators import Layer, Shape, without_params

_SMALL = normal(1e-6)


def _convolution(
    convolve: Callable[..., Any],
    numbers: ArrayLike,
    out_chan: int,
    filter_shape: Sequence[int],
    W_init: Any,
    b_init: Any,
) -> Layer:
    """A layer that convolves and adds a bias to each channel."""
    lhs, rhs, out = numbers
    if len(filter_shape) != len(rhs) - 2:
        raise ArgumentValueError(
            f"a convolution: filter_shape must have {len(rhs) - 2} sizes, one for each spatial axis of {rhs!r}, got "
            f"{tuple(filter_shape)}"
        )
    W_init = W_init or glorot_normal(rhs.index("I"), rhs.index("O"))

    def init_fun(rng: ArrayLike, input_shape: Shape) -> PyTree:
        sizes = {"O": out_chan, "I": input_shape[lhs.index("C")]}
        spatial = iter(filter_shape)
        kernel_shape = tuple([sizes[c] if c in sizes else next(spatial) for c in rhs])
        k1, k2 = random.split(rng)
        params = (
            W_init(k1, kernel_shape),
            b_init(k2, tuple([out_chan if c == "C" else 1 for c in out])),
        )
        batch = lhs.index("N")
        known = tuple([1 if i == batch else n for i, n in enumerate(input_shape)])
        shape = eval_shape(
            convolve, ShapeDtypeStruct(known, float), ShapeDtypeStruct(kernel_shape, float)
        ).shape
        return tuple([input_shape[batch] if c == "N" else n for c, n in zip(out, shape)]), params

    def apply_fun(params: Any, inputs: ArrayLike, **kwargs: PyTree) -> Any:
        weights, start = params
        return convolve(inputs, weights) + start

    return init_fun, apply_fun


@checked
def GeneralConv(
    dimension_numbers: Any,
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    W_init: Callable[..., PyTree] | None = None,
    b_init: Callable[..., PyTree] = _SMALL,
) -> Layer:
    """A convolution with a bias.

    Parameters
    ----------
    dimension_numbers : tuple of str
        The axes of inputs, kernels and results, such as ``('NHWC', 'HWIO', 'NHWC')``.
    out_chan : int
        The number of channels of the result.
    filter_shape : tuple of int
        The spatial shape of the kernel.
    strides : tuple of int, optional
    padding : str or sequence of pairs
        As for ``lax.conv_general_dilated``.
    W_init, b_init : initializer

    Returns
    -------
    init_fun, apply_fun

    Examples
    --------
    >>> from functrans import random
    >>> from functrans.example_libraries.stax import GeneralConv
    >>> init, apply = GeneralConv(("NCHW", "OIHW", "NCHW"), 5, (3, 3))
    >>> init(random.key(0), (-1, 1, 8, 8))[0]
    (-1, 5, 6, 6)
    """
    one = (1,) * len(filter_shape)

    def convolve(inputs: ArrayLike, weights: ArrayLike) -> PyTree:
        return lax.conv_general_dilated(
            inputs, weights, strides or one, padding, one, one, dimension_numbers=dimension_numbers
        )

    return _convolution(convolve, dimension_numbers, out_chan, filter_shape, W_init, b_init)


Conv = functools.partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))


@checked
def GeneralConvTranspose(
    dimension_numbers: Any,
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    W_init: Callable[..., PyTree] | None = None,
    b_init: Callable[..., PyTree] = _SMALL,
) -> Layer:
    """A transposed convolution with a bias; the arguments are those of `GeneralConv`.

    Examples
    --------
    >>> from functrans import random
    >>> from functrans.example_libraries.stax import GeneralConvTranspose
    >>> init, apply = GeneralConvTranspose(("NHWC", "HWIO", "NHWC"), 5, (2, 2), strides=(2, 2))
    >>> init(random.key(0), (-1, 4, 4, 1))[0]
    (-1, 8, 8, 5)
    """
    one = (1,) * len(filter_shape)

    def convolve(inputs: ArrayLike, weights: ArrayLike) -> PyTree:
        return lax.conv_transpose(
            inputs, weights, strides or one, padding, dimension_numbers=dimension_numbers
        )

    return _convolution(convolve, dimension_numbers, out_chan, filter_shape, W_init, b_init)


Conv1DTranspose = functools.partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))
ConvTranspose = functools.partial(GeneralConvTranspose, ("NHWC", "HWIO", "NHWC"))


def _pooling(window_shape: Sequence[int], strides: Any, spec: str | None, pool: Callable[..., Any]) -> Layer:
    """A layer that reduces windows: ``pool(inputs, window, strides)``."""
    places = (0, len(window_shape) + 1) if spec is None else (spec.index("N"), spec.index("C"))
    window, steps = list(window_shape), list(strides or (1,) * len(window_shape))
    for i in sorted(places):
        window.insert(i, 1)
        steps.insert(i, 1)

    def shape(input_shape: Shape) -> Shape:
        batch = places[0]
        known = tuple([1 if i == batch else n for i, n in enumerate(input_shape)])
        out = eval_shape(lambda x: pool(x, window, steps), ShapeDtypeStruct(known, float)).shape
        return tuple([input_shape[batch] if i == batch else n for i, n in enumerate(out)])

    return without_params(shape, lambda inputs: pool(inputs, window, steps))


@checked
def MaxPool(
    window_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    spec: str | None = None,
) -> Layer:
    """The largest element of each window.

    Parameters
    ----------
    window_shape : tuple of int
        The spatial shape.
    strides : tuple of int, optional
        By default 1.
    padding : str or sequence of pairs
        As for ``lax.reduce_window``.
    spec : str, optional
        The axes of the inputs, such as ``'NCHW'``; by default the batch comes first, and the channels last.

    Returns
    -------
    init_fun, apply_fun

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> from functrans.example_libraries.stax import MaxPool
    >>> init, apply = MaxPool((2,))
    >>> apply((), fnp.asarray([1.0, 5.0, 3.0, 2.0]).reshape(1, 4, 1)).ravel()
    Array([5., 5., 3.])
    """
    return _pooling(
        window_shape, strides, spec, lambda x, w, s: lax.reduce_window(x, -np.inf, lax.max, w, s, padding)
    )


@checked
def SumPool(
    window_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    spec: str | None = None,
) -> Layer:
    """The sum of each window; the arguments are those of `MaxPool`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> from functrans.example_libraries.stax import SumPool
    >>> init, apply = SumPool((2,))
    >>> apply((), fnp.asarray([1.0, 5.0, 3.0, 2.0]).reshape(1, 4, 1)).ravel()
    Array([6., 8., 5.])
    """
    return _pooling(
        window_shape, strides, spec, lambda x, w, s: lax.reduce_window(x, 0.0, lax.add, w, s, padding)
    )


@checked
def AvgPool(
    window_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    spec: str | None = None,
) -> Layer:
    """The mean of each window, without its padding; the arguments are those of `MaxPool`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> from functrans.example_libraries.stax import AvgPool
    >>> init, apply = AvgPool((2,))
    >>> apply((), fnp.asarray([1.0, 5.0, 3.0, 2.0]).reshape(1, 4, 1)).ravel()
    Array([3. , 4. , 2.5])
    """

    def mean(x: ArrayLike, window: Sequence[int], steps: Sequence[int]) -> PyTree:
        one = fnp.ones([1 if w == 1 else n for n, w in zip(x.shape, window)], x.dtype)
        counts = lax.reduce_window(one, 0.0, lax.add, window, steps, padding)
        return lax.reduce_window(x, 0.0, lax.add, window, steps, padding) / counts

    return _pooling(window_shape, strides, spec, mean)

"""Neural networks as pairs of functions, with the interface of ``jax.example_libraries.stax``.

A layer is a pair ``(init_fun, apply_fun)``: ``init_fun(key, input_shape) -> (output_shape, params)`` draws parameters,
and ``apply_fun(params, inputs, **kwargs) -> outputs`` computes. `serial` and `parallel` compose layers to layers.
Shapes include the batch; a size of -1 there stands for any. `Dropout` needs a key: ``apply_fun(params, x, rng=key)``.

Examples
--------
>>> from functrans import random
>>> from functrans.example_libraries import stax
>>> init, apply = stax.serial(stax.Dense(16), stax.Relu, stax.Dense(3), stax.LogSoftmax)
>>> shape, params = init(random.key(0), (-1, 4))
>>> shape
(-1, 3)
>>> import functrans.numpy as fnp
>>> fnp.exp(apply(params, fnp.ones((2, 4)))).sum(axis=1).round(12)
Array([1., 1.])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import numpy as fnp
from .. import random
from ..core.values import ArrayLike, PyTree
from ..errors import ArgumentValueError
from ..frontend.checked import checked
from ..nn import elu, gelu, leaky_relu, log_softmax, relu, selu, sigmoid, softmax, softplus, standardize
from ..nn.initializers import glorot_normal, normal, ones, zeros
from ..runtime.module_getattr import module_attributes as _module_attributes
from .combinators import (
    FanInConcat,
    FanInSum,
    FanOut,
    Flatten,
    Identity,
    Layer,
    Shape,
    elementwise,
    parallel,
    serial,
    shape_dependent,
    without_params,
)
from .spatial_layers import (
    AvgPool,
    Conv,
    Conv1DTranspose,
    ConvTranspose,
    GeneralConv,
    GeneralConvTranspose,
    MaxPool,
    SumPool,
)

__all__ = [
    "AvgPool", "BatchNorm", "Conv", "Conv1DTranspose", "ConvTranspose", "Dense", "Dropout", "Elu", "Exp", "FanInConcat",
    "FanInSum", "FanOut", "Flatten", "Gelu", "GeneralConv", "GeneralConvTranspose", "Identity", "LeakyRelu",
    "LogSoftmax", "MaxPool", "Relu", "Selu", "Sigmoid", "Softmax", "Softplus", "SumPool", "Tanh", "elementwise",
    "glorot", "logsoftmax", "parallel", "randn", "serial", "shape_dependent",
]  # fmt: skip

glorot = glorot_normal
randn = normal
logsoftmax = log_softmax


_GLOROT, _NORMAL = glorot_normal(), normal()

Tanh = elementwise(fnp.tanh)
Relu = elementwise(relu)
Exp = elementwise(fnp.exp)
LogSoftmax = elementwise(log_softmax, axis=-1)
Softmax = elementwise(softmax, axis=-1)
Softplus = elementwise(softplus)
Sigmoid = elementwise(sigmoid)
Elu = elementwise(elu)
LeakyRelu = elementwise(leaky_relu)
Selu = elementwise(selu)
Gelu = elementwise(gelu)


@checked
def Dense(
    out_dim: int, W_init: Callable[..., PyTree] = _GLOROT, b_init: Callable[..., PyTree] = _NORMAL
) -> Layer:
    """The layer ``inputs @ W + b``.

    Parameters
    ----------
    out_dim : int
        The size of the last axis of the result.
    W_init, b_init : initializer
        ``init(key, shape)`` draws the parameters `W`, shape (in_dim, out_dim), and `b`, shape (out_dim,).

    Returns
    -------
    init_fun, apply_fun

    Examples
    --------
    >>> from functrans import random
    >>> from functrans.example_libraries.stax import Dense
    >>> init, apply = Dense(3)
    >>> shape, (weights, start) = init(random.key(0), (-1, 2))
    >>> shape, weights.shape, start.shape
    ((-1, 3), (2, 3), (3,))
    """

    def init_fun(rng: ArrayLike, input_shape: Shape) -> PyTree:
        k1, k2 = random.split(rng)
        params = W_init(k1, (input_shape[-1], out_dim)), b_init(k2, (out_dim,))
        return (*input_shape[:-1], out_dim), params

    def apply_fun(params: Any, inputs: ArrayLike, **kwargs: PyTree) -> Any:
        weights, start = params
        return fnp.dot(inputs, weights) + start

    return init_fun, apply_fun


@checked
def BatchNorm(
    axis: int | Sequence[int] = (0, 1, 2),
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    beta_init: Callable[..., PyTree] = zeros,
    gamma_init: Callable[..., PyTree] = ones,
) -> Layer:
    """Batch normalisation: mean 0 and variance 1 over some axes, then scaled and shifted by parameters.

    Parameters
    ----------
    axis : int or tuple of int
        The axes of the mean and the variance.
    epsilon : float
        Is added to the variance.
    center, scale : bool
        Whether there is a parameter for the shift, and one for the scale.
    beta_init, gamma_init : initializer

    Returns
    -------
    init_fun, apply_fun

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> from functrans import random
    >>> from functrans.example_libraries.stax import BatchNorm
    >>> init, apply = BatchNorm(axis=0)
    >>> apply(init(random.key(0), (2, 1))[1], fnp.asarray([[1.0], [3.0]])).round(4).ravel()
    Array([-1.,  1.])
    """
    axes = (axis,) if isinstance(axis, int) else tuple(axis)

    def init_fun(rng: Any, input_shape: Shape) -> Any:
        shape = tuple([n for i, n in enumerate(input_shape) if i not in axes])
        k1, k2 = random.split(rng)
        return input_shape, (beta_init(k1, shape) if center else (), gamma_init(k2, shape) if scale else ())

    def apply_fun(params: Any, x: ArrayLike, **kwargs: PyTree) -> Any:
        shift, factor = params
        z = standardize(x, axes, epsilon=epsilon)
        if scale:
            z = fnp.expand_dims(factor, axes) * z
        return z + fnp.expand_dims(shift, axes) if center else z

    return init_fun, apply_fun


@checked
def Dropout(rate: float, mode: str = "train") -> Layer:
    """The layer that keeps elements with probability `rate`, and divides them by it; the others become zero.

    Parameters
    ----------
    rate : float
        The probability to *keep* an element.
    mode : str
        ``'train'``; otherwise the inputs are returned.

    Returns
    -------
    init_fun, apply_fun
        ``apply_fun(params, inputs, rng=key)``

    Raises
    ------
    ArgumentValueError
        From ``apply_fun``, if `rng` is missing.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> from functrans import random
    >>> from functrans.example_libraries.stax import Dropout
    >>> apply = Dropout(0.5)[1]
    >>> bool(fnp.isin(apply((), fnp.ones(8), rng=random.key(0)), fnp.asarray([0.0, 2.0])).all())
    True
    """

    def apply_fun(params: Any, inputs: ArrayLike, rng: Any = None, **kwargs: PyTree) -> Any:
        if rng is None:
            raise ArgumentValueError(
                "Dropout: apply_fun needs a key: apply_fun(params, inputs, rng=functrans.random.key(0))"
            )
        if mode != "train":
            return inputs
        return fnp.where(random.bernoulli(rng, rate, inputs.shape), inputs / rate, 0)

    return without_params(lambda shape: shape, lambda inputs: inputs)[0], apply_fun


__getattr__, __dir__ = _module_attributes("functrans.example_libraries.stax", globals())

"""Layers of no parameters, and compositions of layers."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from .. import numpy as fnp
from .. import random
from ..core.values import ArrayLike, PyTree, ShapeLike
from ..errors import ArgumentError, ArgumentValueError, AxisError
from ..frontend.checked import checked

#: The most inputs of a layer.
_MANY = 1 << 16

Shape = tuple[int, ...]
Layer = tuple[Callable[..., Any], Callable[..., Any]]


@checked
def elementwise(fun: Callable[..., PyTree], **fun_kwargs: Any) -> Layer:
    """The layer ``fun(inputs, **fun_kwargs)``, whose result has the shape of the inputs.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> from functrans.example_libraries import stax
    >>> init, apply = stax.elementwise(fnp.square)
    >>> apply((), 3.0)
    Array(9.)
    """
    return without_params(lambda shape: shape, lambda inputs: fun(inputs, **fun_kwargs))


def without_params(shape: Callable[[Any], Any], fun: Callable[[Any], Any]) -> Layer:
    """The layer that computes `fun`, whose result has the shape ``shape(input_shape)``."""

    def init_fun(rng: Any, input_shape: Any) -> Any:
        return shape(input_shape), ()

    def apply_fun(params: Any, inputs: ArrayLike, **kwargs: PyTree) -> Any:
        return fun(inputs)

    return init_fun, apply_fun


Identity = without_params(lambda shape: shape, lambda inputs: inputs)
Flatten = without_params(
    lambda shape: (shape[0], math.prod(shape[1:])), lambda inputs: fnp.reshape(inputs, (inputs.shape[0], -1))
)
FanInSum = without_params(lambda shapes: shapes[0], lambda inputs: functools.reduce(operator.add, inputs))


@checked
def FanOut(num: int) -> Layer:
    """The layer that returns a list of `num` times its inputs, for `parallel`.

    Examples
    --------
    >>> from functrans.example_libraries.stax import FanOut
    >>> FanOut(2)[1]((), 1.5)
    [1.5, 1.5]
    """
    if not 0 < num <= _MANY:
        raise ArgumentValueError(f"FanOut: num must be between 1 and {_MANY}, got {num}")
    return without_params(lambda shape: [shape] * num, lambda inputs: [inputs] * num)


@checked
def FanInConcat(axis: int = -1) -> Layer:
    """The layer that concatenates a list of inputs along an axis.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> from functrans.example_libraries.stax import FanInConcat
    >>> FanInConcat()[1]((), [fnp.ones(1), fnp.zeros(2)])
    Array([1., 0., 0.])
    """

    def shape(shapes: Sequence[Shape]) -> Shape:
        first = list(shapes[0])
        if not -len(first) <= axis < len(first):
            raise AxisError(f"FanInConcat: axis {axis} is out of bounds for inputs of {len(first)} axes")
        first[axis] = sum([s[axis] for s in shapes])
        return tuple(first)

    return without_params(shape, lambda inputs: fnp.concatenate(inputs, axis))


def _separated(name: str, layers: Sequence[Layer]) -> tuple[list[Any], list[Any]]:
    pairs = [_pair(layer, f"{name}: layer {i} must be") for i, layer in enumerate(layers)]
    return [init for init, _ in pairs], [apply for _, apply in pairs]


def _pair(layer: Layer, rule: str) -> Layer:
    if not (isinstance(layer, tuple) and len(layer) == 2 and all(map(callable, layer))):
        raise ArgumentError(
            f"{rule} a pair (init_fun, apply_fun), got one of type {type(layer).__name__}"
            + ("; call it to make the layer" if callable(layer) else "")
        )
    return layer


def _keys(rng: Any, count: int) -> Any:
    return [None] * count if rng is None else random.split(rng, count)


def serial(*layers: Layer) -> Layer:
    """The layers one after the other.

    Parameters
    ----------
    *layers
        Pairs ``(init_fun, apply_fun)``.

    Returns
    -------
    init_fun, apply_fun
        The parameters are a list of those of the layers.

    Raises
    ------
    ArgumentError
        If a layer is not such a pair.

    Examples
    --------
    >>> from functrans.example_libraries.stax import Exp, Tanh, serial
    >>> init, apply = serial(Tanh, Exp)
    >>> apply([(), ()], 0.0)
    Array(1.)
    """
    inits, applies = _separated("serial", layers)

    def init_fun(rng: Any, input_shape: Any) -> Any:
        params = []
        for init in inits:
            rng, own = random.split(rng)
            input_shape, param = init(own, input_shape)
            params.append(param)
        return input_shape, params

    def apply_fun(params: Any, inputs: ArrayLike, rng: Any = None, **kwargs: PyTree) -> Any:
        for apply, param, key in zip(applies, params, _keys(rng, len(applies))):
            inputs = apply(param, inputs, rng=key, **kwargs)
        return inputs

    return init_fun, apply_fun


def parallel(*layers: Layer) -> Layer:
    """The layers side by side: each has an input of a list, and an output.

    Parameters
    ----------
    *layers
        Pairs ``(init_fun, apply_fun)``.

    Returns
    -------
    init_fun, apply_fun
        The parameters are a tuple of those of the layers.

    Raises
    ------
    ArgumentError
        If a layer is not such a pair.

    Examples
    --------
    A residual block:

    >>> from functrans import random
    >>> from functrans.example_libraries.stax import Dense, FanInSum, FanOut, Identity, Relu, parallel, serial
    >>> init, apply = serial(FanOut(2), parallel(serial(Dense(4), Relu), Identity), FanInSum)
    >>> init(random.key(0), (2, 4))[0]
    (2, 4)
    """
    inits, applies = _separated("parallel", layers)

    def init_fun(rng: Any, input_shape: Any) -> Any:
        pairs = [init(key, shape) for init, key, shape in zip(inits, _keys(rng, len(inits)), input_shape)]
        return tuple(zip(*pairs))

    def apply_fun(params: Any, inputs: ArrayLike, rng: Any = None, **kwargs: PyTree) -> Any:
        parts = zip(applies, params, inputs, _keys(rng, len(applies)))
        return [apply(param, x, rng=key, **kwargs) for apply, param, x, key in parts]

    return init_fun, apply_fun


@checked
def shape_dependent(make_layer: Callable[[Any], Layer]) -> Layer:
    """A layer that is made when the shape of its inputs is known.

    Parameters
    ----------
    make_layer : callable
        ``make_layer(input_shape)`` returns a pair ``(init_fun, apply_fun)``.

    Returns
    -------
    init_fun, apply_fun

    Raises
    ------
    ArgumentError
        When they are called, if `make_layer` does not return such a pair.

    Examples
    --------
    >>> from functrans import random
    >>> from functrans.example_libraries.stax import Dense, shape_dependent
    >>> init, apply = shape_dependent(lambda shape: Dense(2 * shape[-1]))
    >>> init(random.key(0), (-1, 3))[0]
    (-1, 6)
    """

    def made(shape: ShapeLike) -> Layer:
        return _pair(make_layer(shape), "shape_dependent: make_layer must return")

    def init_fun(rng: Any, input_shape: Any) -> Any:
        return made(input_shape)[0](rng, input_shape)

    def apply_fun(params: Any, inputs: ArrayLike, **kwargs: PyTree) -> Any:
        return made(inputs.shape)[1](params, inputs, **kwargs)

    return init_fun, apply_fun

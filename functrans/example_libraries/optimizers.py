"""First-order optimisers as triples of pure functions, with the interface of ``jax.example_libraries.optimizers``.

An optimiser is an `Optimizer`: ``init_fn(params)`` makes a state, ``update_fn(step, grads, state)`` the next one, and
``params_fn(state)`` returns the parameters, a tree of arrays. The state is a tree, too.

Examples
--------
>>> import functrans as ft, functrans.numpy as fnp
>>> from functrans.example_libraries import optimizers
>>> init, update, get_params = optimizers.adam(0.1)
>>> def loss(params):
...     return (params["slope"] - 2.0) ** 2 + params["start"] ** 2
>>> @ft.jit
... def step(i, state):
...     return update(i, ft.grad(loss)(get_params(state)), state)
>>> state = init({"slope": 0.0, "start": 1.0})
>>> for i in range(300):
...     state = step(i, state)
>>> get_params(state)["slope"].round(3)
Array(2.)
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

from .. import numpy as fnp
from ..arrays.array import Array
from ..core import aval_of
from ..core.values import ArrayLike, PyTree, Value
from ..frontend.arguments import flatten_values
from ..frontend.pytree import tree_map
from ..frontend.pytree.nodes import keystr
from ..runtime.module_getattr import module_attributes as _module_attributes
from .schedules import (
    check_numbers,
    constant,
    exponential_decay,
    inverse_time_decay,
    make_schedule,
    piecewise_constant,
    polynomial_decay,
)  # fmt: skip
from .states import (
    JoinPoint,
    Optimizer,
    OptimizerState,
    optimizer,
    pack_optimizer_state,
    unpack_optimizer_state,
)  # fmt: skip

__all__ = [
    "JoinPoint", "Optimizer", "OptimizerState", "adagrad", "adam", "adamax", "clip_grads", "constant",
    "exponential_decay", "inverse_time_decay", "l2_norm", "make_schedule", "momentum", "nesterov", "optimizer",
    "pack_optimizer_state", "piecewise_constant", "polynomial_decay", "rmsprop", "rmsprop_momentum", "sgd", "sm3",
    "unpack_optimizer_state",
]  # fmt: skip


def _first(state: PyTree) -> Array:
    return state[0]


def _started(count: int) -> Callable[[Any], Any]:
    """The state at the beginning: the parameter, and zeros like it."""
    return lambda x: (x, *[fnp.zeros_like(x) for _ in range(count)])


def _power(base: float, step: Any, x: ArrayLike) -> Any:
    """``base ** (step + 1)`` in the precision of `x`."""
    return fnp.asarray(base, x.dtype) ** fnp.asarray(step + 1).astype(x.dtype)


# --- optimisers ---------------------------------------------------------------------------------------------


@optimizer
def sgd(step_size: Any) -> Any:
    """Stochastic gradient descent: ``x -= step_size * g``.

    Parameters
    ----------
    step_size : float or callable
        A number, or a schedule: a function of the number of the step.

    Returns
    -------
    Optimizer

    Examples
    --------
    >>> from functrans.example_libraries.optimizers import sgd
    >>> init, update, get_params = sgd(0.1)
    >>> get_params(update(0, 2.0, init(1.0))).round(6)
    Array(0.8)
    """
    rate = make_schedule(step_size)
    return lambda x: x, lambda i, g, x: x - rate(i) * g, lambda x: x


@optimizer
def momentum(step_size: Any, mass: float) -> Any:
    """Gradient descent with momentum: ``v = mass * v + g``, ``x -= step_size * v``.

    Parameters
    ----------
    step_size : float or callable
        As for `sgd`.
    mass : float
        The part of the velocity that is kept.

    Returns
    -------
    Optimizer

    Examples
    --------
    >>> from functrans.example_libraries.optimizers import momentum
    >>> init, update, get_params = momentum(0.1, 0.9)
    >>> get_params(update(0, 2.0, init(1.0))).round(6)
    Array(0.8)
    """
    check_numbers("momentum", mass=mass)
    rate = make_schedule(step_size)

    def update(i: ArrayLike, g: ArrayLike, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + g
        return x - rate(i) * velocity, velocity

    return _started(1), update, _first


@optimizer
def nesterov(step_size: Any, mass: float) -> Any:
    """Gradient descent with Nesterov's momentum: ``v = mass * v + g``, ``x -= step_size * (mass * v + g)``.

    Parameters
    ----------
    step_size, mass
        As for `momentum`.

    Returns
    -------
    Optimizer

    Examples
    --------
    >>> from functrans.example_libraries.optimizers import nesterov
    >>> init, update, get_params = nesterov(0.1, 0.9)
    >>> get_params(update(0, 2.0, init(1.0))).round(6)
    Array(0.62)
    """
    check_numbers("nesterov", mass=mass)
    rate = make_schedule(step_size)

    def update(i: ArrayLike, g: ArrayLike, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + g
        return x - rate(i) * (mass * velocity + g), velocity

    return _started(1), update, _first


def _inverse_root(squares: ArrayLike) -> Any:
    """``1 / sqrt(squares)``, and 0 where there was no gradient yet."""
    seen = squares > 0
    return fnp.where(seen, 1.0 / fnp.sqrt(fnp.where(seen, squares, 1.0)), 0.0)


@optimizer
def adagrad(step_size: ArrayLike, momentum: float = 0.9) -> Any:
    """AdaGrad: gradients divided by the root of the sum of their squares, averaged by momentum.

    Parameters
    ----------
    step_size : float or callable
        As for `sgd`.
    momentum : float
        The part of the average that is kept.

    Returns
    -------
    Optimizer

    References
    ----------
    J. Duchi, E. Hazan & Y. Singer: Adaptive subgradient methods for online learning and stochastic optimization.
    JMLR 12, 2121-2159, 2011.

    Examples
    --------
    >>> from functrans.example_libraries.optimizers import adagrad
    >>> init, update, get_params = adagrad(0.1)
    >>> get_params(update(0, 2.0, init(1.0))).round(6)
    Array(0.99)
    """
    check_numbers("adagrad", momentum=momentum)
    rate = make_schedule(step_size)

    def update(i: ArrayLike, g: Value, state: PyTree) -> PyTree:
        x, squares, mean = state
        squares = squares + g * g
        mean = (1.0 - momentum) * (g * _inverse_root(squares)) + momentum * mean
        return x - rate(i) * mean, squares, mean

    return _started(2), update, _first


@optimizer
def rmsprop(step_size: Any, gamma: float = 0.9, eps: float = 1e-8) -> Any:
    """RMSProp: gradients divided by the root of the decaying mean of their squares.

    Parameters
    ----------
    step_size : float or callable
        As for `sgd`.
    gamma : float
        The part of the mean square that is kept.
    eps : float
        Is added to the mean square.

    Returns
    -------
    Optimizer

    Examples
    --------
    >>> from functrans.example_libraries.optimizers import rmsprop
    >>> init, update, get_params = rmsprop(0.1)
    >>> get_params(update(0, 2.0, init(1.0))).round(6)
    Array(0.683772)
    """
    check_numbers("rmsprop", gamma=gamma, eps=eps)
    rate = make_schedule(step_size)

    def update(i: ArrayLike, g: ArrayLike, state: Any) -> Any:
        x, squares = state
        squares = gamma * squares + (1.0 - gamma) * g * g
        return x - rate(i) * g / fnp.sqrt(squares + eps), squares

    return _started(1), update, _first


@optimizer
def rmsprop_momentum(step_size: Any, gamma: float = 0.9, eps: float = 1e-8, momentum: float = 0.9) -> Any:
    """RMSProp with momentum.

    Parameters
    ----------
    step_size, gamma, eps
        As for `rmsprop`.
    momentum : float
        The part of the last step that is added to the next one.

    Returns
    -------
    Optimizer

    Examples
    --------
    >>> from functrans.example_libraries.optimizers import rmsprop_momentum
    >>> init, update, get_params = rmsprop_momentum(0.1)
    >>> get_params(update(0, 2.0, init(1.0))).round(6)
    Array(0.683772)
    """
    check_numbers("rmsprop_momentum", gamma=gamma, eps=eps, momentum=momentum)
    rate = make_schedule(step_size)

    def update(i: ArrayLike, g: ArrayLike, state: Any) -> Any:
        x, squares, step = state
        squares = gamma * squares + (1.0 - gamma) * g * g
        step = momentum * step + rate(i) * g / fnp.sqrt(squares + eps)
        return x - step, squares, step

    return _started(2), update, _first


@optimizer
def adam(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Any:
    """Adam: the mean of gradients divided by the root of their mean square, both corrected for their start at zero.

    Parameters
    ----------
    step_size : float or callable
        As for `sgd`.
    b1, b2 : float
        The parts of the mean and of the mean square that are kept.
    eps : float
        Is added to the root.

    Returns
    -------
    Optimizer

    References
    ----------
    D. P. Kingma & J. Ba: Adam, a method for stochastic optimization. ICLR 2015, algorithm 1.

    Examples
    --------
    >>> from functrans.example_libraries.optimizers import adam
    >>> init, update, get_params = adam(0.1)
    >>> get_params(update(0, 2.0, init(1.0))).round(6)
    Array(0.9)
    """
    check_numbers("adam", b1=b1, b2=b2, eps=eps)
    rate = make_schedule(step_size)

    def update(i: ArrayLike, g: ArrayLike, state: Any) -> Any:
        x, mean, squares = state
        mean = b1 * mean + (1.0 - b1) * g
        squares = b2 * squares + (1.0 - b2) * g * g
        corrected = mean / (1.0 - _power(b1, i, mean))
        root = fnp.sqrt(squares / (1.0 - _power(b2, i, mean)))
        return x - rate(i) * corrected / (root + eps), mean, squares

    return _started(2), update, _first


@optimizer
def adamax(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Any:
    """AdaMax: Adam with the decaying maximum of gradients for the root of their mean square.

    Parameters
    ----------
    step_size, b1, b2, eps
        As for `adam`.

    Returns
    -------
    Optimizer

    References
    ----------
    D. P. Kingma & J. Ba: Adam, a method for stochastic optimization. ICLR 2015, algorithm 2.

    Examples
    --------
    >>> from functrans.example_libraries.optimizers import adamax
    >>> init, update, get_params = adamax(0.1)
    >>> get_params(update(0, 2.0, init(1.0))).round(6)
    Array(0.9)
    """
    check_numbers("adamax", b1=b1, b2=b2, eps=eps)
    rate = make_schedule(step_size)

    def update(i: ArrayLike, g: ArrayLike, state: Any) -> Any:
        x, mean, largest = state
        mean = b1 * mean + (1.0 - b1) * g
        largest = fnp.maximum(b2 * largest, fnp.abs(g))
        return x - rate(i) / (1.0 - _power(b1, i, mean)) * mean / (largest + eps), mean, largest

    return _started(2), update, _first


@optimizer
def sm3(step_size: Any, momentum: float = 0.9) -> Any:
    """SM3: AdaGrad that stores one sum of squares for each index of each axis.

    Parameters
    ----------
    step_size, momentum
        As for `adagrad`.

    Returns
    -------
    Optimizer

    References
    ----------
    R. Anil, V. Gupta, T. Koren & Y. Singer: Memory-efficient adaptive optimization. NeurIPS 2019.

    Examples
    --------
    >>> from functrans.example_libraries.optimizers import sm3
    >>> init, update, get_params = sm3(0.1)
    >>> get_params(update(0, 2.0, init(1.0))).round(6)
    Array(0.99)
    """
    check_numbers("sm3", momentum=momentum)
    rate = make_schedule(step_size)

    def init(x: ArrayLike) -> Any:
        return x, fnp.zeros_like(x), [fnp.zeros(n, x.dtype) for n in x.shape or (1,)]

    def update(i: ArrayLike, g: ArrayLike, state: Any) -> Any:
        x, mean, largest = state
        steep = fnp.atleast_1d(g)
        axes = range(steep.ndim)
        others = [tuple([b for b in axes if b != a]) for a in axes]
        bounds = [fnp.expand_dims(row, rest) for row, rest in zip(largest, others)]
        squares = functools.reduce(fnp.minimum, bounds) + steep * steep
        scaled = (steep * _inverse_root(squares)).reshape(x.shape)
        mean = (1.0 - momentum) * scaled + momentum * mean
        return x - rate(i) * mean, mean, [fnp.max(squares, axis=rest) for rest in others]

    return init, update, _first


# --- gradients ---------------------------------------------------------------------------------------------


def l2_norm(tree: PyTree) -> Any:
    """The Euclidean norm of all elements of a tree of arrays.

    Examples
    --------
    >>> from functrans.example_libraries.optimizers import l2_norm
    >>> l2_norm({"a": [3.0], "b": 4.0})
    Array(5.)
    """
    leaves, _ = flatten_values(tree, lambda path: f"the tree of gradients{keystr(path)}")
    squares = [fnp.vdot(x, x).real for x in leaves]
    return fnp.sqrt(functools.reduce(operator.add, squares, 0.0))


def clip_grads(grad_tree: Any, max_norm: Any) -> Any:
    """Gradients scaled to the norm `max_norm`, if theirs is larger.

    Examples
    --------
    >>> from functrans.example_libraries.optimizers import clip_grads
    >>> clip_grads([3.0, 4.0], 1.0)
    [Array(0.6), Array(0.8)]
    """
    check_numbers("clip_grads", max_norm=max_norm)
    norm = l2_norm(grad_tree)
    small = norm < max_norm
    scale = max_norm / fnp.where(small, 1.0, norm)
    return tree_map(lambda g: fnp.where(small, g, g * scale).astype(aval_of(g).dtype), grad_tree)


__getattr__, __dir__ = _module_attributes("functrans.example_libraries.optimizers", globals())

"""The programs of which `record` writes JAX's results, for either library."""

from typing import Any

import numpy as np

_RNG = np.random.default_rng(0)
PARAMS = {"a": _RNG.normal(size=(2, 3)), "b": [_RNG.normal(size=3), np.float64(0.3)]}
STEPS = 5
OPTIMIZERS: dict[str, tuple[Any, ...]] = {
    "sgd": (0.1,), "momentum": (0.1, 0.9), "nesterov": (0.1, 0.9), "adagrad": (0.1,), "rmsprop": (0.1,),
    "rmsprop_momentum": (0.1,), "adam": (0.1,), "adamax": (0.1,), "sm3": (0.1,),
}  # fmt: skip
SCHEDULES: dict[str, tuple[Any, ...]] = {
    "constant": (0.3,), "exponential_decay": (0.1, 10, 0.5), "inverse_time_decay": (0.1, 10, 0.5),
    "inverse_time_decay staircase": (0.1, 10, 0.5, True), "polynomial_decay": (0.1, 10, 0.01, 2.0),
    "piecewise_constant": ([3, 6], [1.0, 0.5, 0.2]),
}  # fmt: skip


def gradient(step, x):
    """Of a parameter, at a step."""
    return np.sin(np.asarray(x) * (step + 1)) + 0.1


def networks(s):
    """Layers with the shapes of their inputs, in either library."""
    return {
        "dense": (s.serial(s.Dense(5), s.Tanh, s.Dense(3), s.LogSoftmax), (2, 4)),
        "convolutions": (
            s.serial(
                s.Conv(3, (2, 3), padding="SAME"), s.BatchNorm(), s.Relu, s.MaxPool((2, 2), strides=(2, 2)),
                s.Conv(2, (2, 2), strides=(2, 1)), s.Flatten, s.Dense(2), s.Softmax,
            ),
            (2, 8, 9, 2),
        ),
        "normalized": (s.serial(s.BatchNorm(axis=0, scale=False), s.BatchNorm((0, 1), center=False)), (3, 2)),
        "pools": (s.serial(s.AvgPool((2, 3), padding="SAME"), s.SumPool((2, 2))), (1, 4, 3, 2)),
        "channels first": (
            s.serial(s.AvgPool((2, 3), padding="SAME", spec="NCHW"), s.MaxPool((2, 2), (2, 1), spec="NCHW")),
            (1, 2, 4, 4),
        ),
        "transposed": (
            s.serial(
                s.ConvTranspose(2, (2, 3), strides=(2, 2)), s.Elu, s.Selu, s.Gelu, s.LeakyRelu, s.Sigmoid, s.Softplus,
                s.Exp, s.Identity,
            ),
            (1, 3, 2, 2),
        ),
        "transposed in one axis": (s.Conv1DTranspose(2, (2,), strides=(2,), padding="SAME"), (1, 3, 2)),
        "fans": (
            s.serial(
                s.FanOut(3), s.parallel(s.Dense(4), s.Identity, s.Dropout(0.6)), s.FanInConcat(), s.FanOut(2),
                s.parallel(s.Dense(2), s.Dense(2)), s.FanInSum, s.shape_dependent(lambda shape: s.Dense(shape[-1])),
            ),
            (2, 3),
        ),
    }  # fmt: skip


def inputs(shape):
    """Numbers for a network."""
    return np.cos(np.arange(np.prod(shape)) * 1.7).reshape(shape)

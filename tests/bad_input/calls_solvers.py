"""Valid calls of solvers, which take functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import functrans as ft
import functrans.numpy as fnp
from functrans.example_libraries import optimizers, stax

X = np.array([0.25, 0.5, 0.75])
T = np.array([0.0, 0.1])


def decay(y, t):
    return -y


def square(x):
    return x * x - 0.5


def sgd():
    return lambda x: x, lambda i, g, x: x - 0.1 * g, lambda x: x


def decayed(x):
    return -x


def then_weights(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What the initializer that the function returns draws."""
    return function(*args, **kwargs)(ft.random.key(0), (2, 2))


def bowl(x):
    return fnp.sum((x - 1.0) ** 2)


def stepped(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """One step of the optimiser that the function returns."""
    init, update, get_params = function(*args, **kwargs)
    return get_params(update(0, X, init(X)))


def scheduled(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """A step size of the schedule that the function returns."""
    return function(*args, **kwargs)(3)


def applied(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The result of the layer that the function returns."""
    return run_layer(function(*args, **kwargs), IMAGE)


def applied_twice(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The same for a layer of several inputs."""
    return run_layer(stax.serial(stax.FanOut(2), function(*args, **kwargs)), IMAGE)


def run_layer(layer, x):
    init, apply = layer
    return apply(init(ft.random.key(0), x.shape)[1], x, rng=ft.random.key(1))


IMAGE = np.arange(24.0).reshape(1, 4, 3, 2)
STATE = optimizers.sgd(0.1).init_fn(X)
NUMBERS = ("NHWC", "HWIO", "NHWC")

OWN: dict[str, list[tuple[str, Callable[..., Any] | None, tuple[Any, ...], dict[str, Any]]]] = {
    "functrans.experimental.ode": [("odeint", None, (decay, X, T), {})],
    "functrans.scipy.optimize": [
        *[(name, None, (square, 0.0, 5.0), {}) for name in ("bisect", "brenth", "brentq", "ridder")],
        ("fsolve", None, (square, X), {}),
        ("least_squares", None, (square, X), {}),
        ("minimize", None, (bowl, X), {}),
        ("root", None, (square, X), {}),
        ("root_scalar", None, (square,), {"bracket": (0.0, 5.0)}),
    ],
    "functrans.example_libraries.optimizers": [
        *[
            (name, stepped, (0.1,), {})
            for name in ("adagrad", "adam", "adamax", "rmsprop", "rmsprop_momentum", "sgd", "sm3")
        ],
        *[(name, stepped, (0.1, 0.9), {}) for name in ("momentum", "nesterov")],
        ("optimizer", lambda function, *args: stepped(function(*args)), (sgd,), {}),
        ("clip_grads", None, (X, 1.0), {}),
        ("l2_norm", None, (X,), {}),
        ("pack_optimizer_state", None, (optimizers.unpack_optimizer_state(STATE),), {}),
        ("unpack_optimizer_state", None, (STATE,), {}),
        *[(name, scheduled, (0.1,), {}) for name in ("constant", "make_schedule")],
        *[(name, scheduled, (0.1, 10, 0.5), {}) for name in ("exponential_decay", "inverse_time_decay")],
        ("polynomial_decay", scheduled, (0.1, 10, 0.01), {}),
        ("piecewise_constant", scheduled, ([3], [0.1, 0.01]), {}),
    ],
    "functrans.example_libraries.stax": [
        *[(name, applied, ((2, 2),), {}) for name in ("AvgPool", "MaxPool", "SumPool")],
        *[(name, applied, (3, (2, 2)), {}) for name in ("Conv", "ConvTranspose")],
        *[(name, applied, (NUMBERS, 3, (2, 2)), {}) for name in ("GeneralConv", "GeneralConvTranspose")],
        (
            "Conv1DTranspose",
            lambda f, *args, **kwargs: run_layer(f(*args, **kwargs), IMAGE[0]),
            (3, (2,)),
            {},
        ),
        ("BatchNorm", applied, (), {}),
        ("Dense", applied, (3,), {}),
        ("Dropout", applied, (0.5,), {}),
        ("FanInConcat", applied_twice, (), {}),
        ("FanOut", applied, (2,), {}),
        ("elementwise", applied, (decayed,), {}),
        ("parallel", applied_twice, (stax.Relu, stax.Relu), {}),
        ("serial", applied, (stax.Relu, stax.Relu), {}),
        ("shape_dependent", applied, (lambda shape: stax.Relu,), {}),
        *[(name, then_weights, (), {}) for name in ("glorot", "randn")],
        ("logsoftmax", None, (X,), {}),
    ],
}
LEFT_OUT: dict[str, set[str]] = {
    "functrans.scipy.optimize": {"OptimizeResults"},
    "functrans.example_libraries.optimizers": {"JoinPoint", "Optimizer", "OptimizerState"},
}

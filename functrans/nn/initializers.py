"""Initial values of parameters: ``initializer(key, shape, dtype)`` draws an array.

The numbers are JAX's, for the same key and dtype.

Examples
--------
>>> from functrans import nn, random
>>> weights = nn.initializers.he_normal()
>>> weights(random.key(0), (3, 2)).shape
(3, 2)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from .. import numpy as fnp
from .. import random
from ..arrays.arguments import one_of
from ..core import (
    FLOAT32,
    ArgumentError,
    ArgumentValueError,
    DtypeError,
    canonical,
    dtype_kind,
    is_inexact,
    is_low,
)
from ..core.values import ArrayLike, DTypeLike, ShapeLike, Value
from ..frontend.checked import checked
from ..frontend.docstrings import described, with_sections
from ..primitives.ops import as_shape, finish, one_axis
from ..runtime.module_getattr import module_attributes as _module_attributes

__all__ = [
    "Initializer", "constant", "delta_orthogonal", "glorot_normal", "glorot_uniform", "he_normal", "he_uniform",
    "kaiming_normal", "kaiming_uniform", "lecun_normal", "lecun_uniform", "normal", "ones", "orthogonal",
    "truncated_normal", "uniform", "variance_scaling", "xavier_normal", "xavier_uniform", "zeros",
]  # fmt: skip


@runtime_checkable
class Initializer(Protocol):
    """What draws an array: ``initializer(key, shape, dtype=None, out_sharding=None)``."""

    def __call__(
        self, key: ArrayLike, shape: ShapeLike, dtype: DTypeLike = None, out_sharding: Any = None
    ) -> Any:
        """Draw an array."""


def _dtype(dtype: DTypeLike, name: str) -> np.dtype:
    to = canonical(float if dtype is None else dtype, f"{name}: dtype")
    if not is_inexact(to):
        raise DtypeError(f"{name}: dtype must be a float or complex dtype, got {to}")
    return to


def _one_device(out_sharding: Any, name: str) -> None:
    if out_sharding is not None:
        raise ArgumentError(f"{name}: out_sharding must be None, got {out_sharding!r}; there is one device")


def _initializer(
    name: str, default: Any, draw: Callable[[Any, tuple[int, ...], np.dtype], Any]
) -> Callable[..., Any]:
    """The initializer that draws by a function of key, shape and dtype."""
    own = _dtype(default, name)

    def init(key: Value, shape: ShapeLike, dtype: DTypeLike = None, out_sharding: Any = None) -> Value:
        """Draw an array of a shape and dtype."""
        _one_device(out_sharding, name)
        return finish(draw(key, as_shape(shape, name), own if dtype is None else _dtype(dtype, name)))

    init.__name__ = init.__qualname__ = name
    return checked(init)


_DRAWN = """
Parameters
----------
key : key
    Not used.
shape : tuple of int
dtype : dtype, optional
    By default float64.
out_sharding : None
    Accepted for JAX.

Returns
-------
Array
"""
_MADE = """
Parameters
----------
dtype : dtype, optional
    The default dtype of what it draws; float64.

Returns
-------
Initializer
"""


@checked
@described(_DRAWN)
def zeros(key: ArrayLike, shape: ShapeLike, dtype: DTypeLike = None, out_sharding: Any = None) -> Any:
    """Zeros.

    Examples
    --------
    >>> from functrans import nn, random
    >>> nn.initializers.zeros(random.key(0), (2,))
    Array([0., 0.])
    """
    _one_device(out_sharding, "zeros")
    return fnp.zeros(shape, float if dtype is None else dtype)


@checked
@described(_DRAWN)
def ones(key: ArrayLike, shape: ShapeLike, dtype: DTypeLike = None, out_sharding: Any = None) -> Any:
    """Ones.

    Examples
    --------
    >>> from functrans import nn, random
    >>> nn.initializers.ones(random.key(0), (2,))
    Array([1., 1.])
    """
    _one_device(out_sharding, "ones")
    return fnp.ones(shape, float if dtype is None else dtype)


@checked
@described(_MADE)
def constant(value: ArrayLike, dtype: DTypeLike = None) -> Any:
    """An initializer that repeats a value.

    Parameters
    ----------
    value : array_like
        Broadcast to the shape that is asked for.

    Examples
    --------
    >>> from functrans import nn, random
    >>> nn.initializers.constant(7.0)(random.key(0), (2,))
    Array([7., 7.])
    """
    return _initializer("constant", dtype, lambda key, shape, to: fnp.full(shape, value, to))


@checked
@described(_MADE)
def uniform(scale: ArrayLike = 0.01, dtype: DTypeLike = None) -> Any:
    """An initializer that draws uniform numbers in ``[0, scale)``.

    Parameters
    ----------
    scale : float

    Examples
    --------
    >>> from functrans import nn, random
    >>> bool(nn.initializers.uniform(0.5)(random.key(0), (100,)).max() < 0.5)
    True
    """
    return _initializer(
        "uniform", dtype, lambda key, shape, to: random.uniform(key, shape, to) * to.type(scale)
    )


@checked
@described(_MADE)
def normal(stddev: Any = 0.01, dtype: DTypeLike = None) -> Any:
    """An initializer that draws normal numbers of mean 0.

    Parameters
    ----------
    stddev : float

    Examples
    --------
    >>> from functrans import nn, random
    >>> nn.initializers.normal(0.1)(random.key(0), (2, 3)).shape
    (2, 3)
    """
    return _initializer(
        "normal", dtype, lambda key, shape, to: random.normal(key, shape, to) * to.type(stddev)
    )


@checked
@described(_MADE)
def truncated_normal(
    stddev: Any = 0.01, dtype: DTypeLike = None, lower: ArrayLike = -2.0, upper: ArrayLike = 2.0
) -> Any:
    """An initializer that draws normal numbers of mean 0 between two bounds.

    Parameters
    ----------
    stddev : float
        Before the bounds.
    lower, upper : float
        The bounds, in multiples of `stddev`.

    Examples
    --------
    >>> from functrans import nn, random
    >>> bool(abs(nn.initializers.truncated_normal(0.1)(random.key(0), (100,))).max() < 0.2)
    True
    """

    def draw(key: Value, shape: tuple[int, ...], to: np.dtype) -> Value:
        return random.truncated_normal(key, lower, upper, shape, to) * to.type(stddev)

    return _initializer("truncated_normal", dtype, draw)


# --- scaled by the number of inputs and outputs -------------------------------------------------------------

_MODES = {
    "fan_in": lambda inputs, outputs: inputs,
    "fan_out": lambda inputs, outputs: outputs,
    "fan_avg": lambda inputs, outputs: (inputs + outputs) / 2,
    "fan_geo_avg": lambda inputs, outputs: math.sqrt(inputs * outputs),
}
#: The standard deviation of a normal number between -2 and 2, and of a complex one whose modulus is at most 2.
_TRUNCATED = {"f": 0.87962566103423978, "c": 0.95311164380491208}

_FANS = """
Parameters
----------
in_axis, out_axis : int or sequence of int
    The axes of inputs and outputs; all others but `batch_axis` are the receptive field, which multiplies both.
batch_axis : int or sequence of int
    Axes that do not count.
"""


@checked
@described(_MADE)
@described(_FANS)
def variance_scaling(
    scale: ArrayLike,
    mode: str,
    distribution: str,
    in_axis: Any = -2,
    out_axis: Any = -1,
    batch_axis: Any = (),
    dtype: DTypeLike = None,
) -> Any:
    """An initializer whose variance is `scale` divided by the number of inputs, outputs, or both.

    Parameters
    ----------
    scale : float
        Positive.
    mode : {'fan_in', 'fan_out', 'fan_avg', 'fan_geo_avg'}
        Divide by the number of inputs, of outputs, or by their arithmetic or geometric mean.
    distribution : {'truncated_normal', 'normal', 'uniform'}
        The normal distribution is truncated at two standard deviations. A complex dtype is drawn from a disk.

    Raises
    ------
    ArgumentValueError
        For an unknown mode or distribution, and for a shape without the axes.

    References
    ----------
    X. Glorot, Y. Bengio: Understanding the difficulty of training deep feedforward neural networks. AISTATS 2010.
    K. He et al.: Delving deep into rectifiers. ICCV 2015.

    Examples
    --------
    >>> from functrans import nn, random
    >>> weights = nn.initializers.variance_scaling(2.0, "fan_in", "normal")(random.key(0), (1000, 10))
    >>> bool(abs(weights.var() - 2 / 1000) < 1e-4)
    True
    """
    return _scaling("variance_scaling", scale, mode, distribution, (in_axis, out_axis, batch_axis), dtype)


def _scaling(
    name: str, scale: ArrayLike, mode: str, distribution: str, axes: Sequence[Any], dtype: DTypeLike
) -> Any:
    one_of(mode, tuple(_MODES), f"{name}: mode")
    one_of(distribution, ("truncated_normal", "normal", "uniform"), f"{name}: distribution")

    def draw(key: Value, shape: tuple[int, ...], to: np.dtype) -> Value:
        variance = to.type(scale / max(_MODES[mode](*_fans(name, shape, axes)), 1e-300))
        if distribution == "normal":
            return random.normal(key, shape, to) * np.sqrt(variance)
        if distribution == "truncated_normal":
            deviation = np.sqrt(variance) / to.type(_TRUNCATED[dtype_kind(to)])
            if to.kind == "c":
                return _disk(key, shape, to, truncated=True) * deviation
            return random.truncated_normal(key, -2.0, 2.0, shape, to) * deviation
        if to.kind == "c":
            return _disk(key, shape, to, truncated=False) * np.sqrt(variance)
        return random.uniform(key, shape, to, -1.0) * np.sqrt(to.type(3) * variance)

    return _initializer(name, dtype, draw)


def _fans(name: str, shape: tuple[int, ...], axes: Sequence[Any]) -> tuple[float, float]:
    """The numbers of inputs and outputs of an array of weights."""
    if len(shape) < 2 and axes[0] == -2:
        raise ArgumentValueError(
            f"{name}: weights need an axis of inputs and one of outputs, got shape {shape}; pass in_axis="
        )
    sizes = []
    for given in axes:
        several = given if isinstance(given, Sequence) else (given,)
        sizes.append(math.prod([shape[one_axis(a, len(shape), name)] for a in several]))
    inputs, outputs, batch = sizes
    field = math.prod(shape) / max(inputs * outputs * batch, 1)
    return inputs * field, outputs * field


def _disk(key: ArrayLike, shape: tuple[int, ...], to: np.dtype, truncated: bool) -> Value:
    """Complex numbers of variance 1: uniform on a disk, or normal with a modulus of at most 2."""
    real = np.dtype(np.float32 if to.itemsize == 8 else np.float64)
    first, second = random.split(key)
    u = random.uniform(first, shape, real)
    if truncated:
        radius = fnp.sqrt(-fnp.log(1.0 - real.type(-math.expm1(-4.0)) * u))
    else:
        radius = fnp.sqrt(2.0 * u)
    angle = real.type(2.0 * math.pi) * random.uniform(second, shape, real)
    return (radius * fnp.exp(1j * angle)).astype(to)


_SCALED = """{summary}

Notes
-----
It is ``variance_scaling({scale}, {mode!r}, {distribution!r}, ...)``.

Examples
--------
>>> from functrans import nn, random
>>> nn.initializers.{name}()(random.key(0), (3, 2)).shape
(3, 2)
"""


def _scaled(name: str, scale: float, mode: str, distribution: str, summary: str) -> Callable[..., Any]:
    def function(
        in_axis: ArrayLike = -2, out_axis: ArrayLike = -1, batch_axis: ArrayLike = (), dtype: DTypeLike = None
    ) -> Any:
        return _scaling(name, scale, mode, distribution, (in_axis, out_axis, batch_axis), dtype)

    function.__name__ = function.__qualname__ = name
    own = _SCALED.format(summary=summary, scale=scale, mode=mode, distribution=distribution, name=name)
    function.__doc__ = with_sections(with_sections(own, _FANS), _MADE)
    return checked(function)


glorot_uniform = xavier_uniform = _scaled(
    "glorot_uniform", 1.0, "fan_avg", "uniform", "Glorot's uniform initializer, also named after Xavier."
)
glorot_normal = xavier_normal = _scaled(
    "glorot_normal",
    1.0,
    "fan_avg",
    "truncated_normal",
    "Glorot's normal initializer, also named after Xavier.",
)
lecun_uniform = _scaled("lecun_uniform", 1.0, "fan_in", "uniform", "LeCun's uniform initializer.")
lecun_normal = _scaled("lecun_normal", 1.0, "fan_in", "truncated_normal", "LeCun's normal initializer.")
he_uniform = kaiming_uniform = _scaled(
    "he_uniform", 2.0, "fan_in", "uniform", "He's uniform initializer, also named after Kaiming."
)
he_normal = kaiming_normal = _scaled(
    "he_normal", 2.0, "fan_in", "truncated_normal", "He's normal initializer, also named after Kaiming."
)


# --- orthogonal ---------------------------------------------------------------------------------------------


@checked
@described(_MADE)
def orthogonal(scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike = None) -> Any:
    """An initializer that draws matrices with orthonormal columns or rows, whichever are fewer.

    It takes shapes of at least two axes.

    Parameters
    ----------
    scale : float
        Of all elements.
    column_axis : int
        The axis of columns; all others are rows.

    References
    ----------
    F. Mezzadri: How to generate random matrices from the classical compact groups. Notices of the AMS 54, 2007.

    Examples
    --------
    >>> from functrans import nn, random
    >>> q = nn.initializers.orthogonal()(random.key(0), (3, 2))
    >>> (q.T @ q).round(12) + 0.0
    Array([[1., 0.],
           [0., 1.]])
    """
    return _initializer(
        "orthogonal", dtype, lambda key, shape, to: _orthogonal(key, shape, to, column_axis) * to.type(scale)
    )


def _orthogonal(key: Value, shape: tuple[int, ...], dtype: np.dtype, column_axis: int) -> Value:
    if len(shape) < 2:
        raise ArgumentValueError(f"orthogonal: expected a shape of at least two axes, got {shape}")
    axis = one_axis(column_axis, len(shape), "orthogonal")
    columns = shape[axis]
    rest = (*shape[:axis], *shape[axis + 1 :])
    rows = math.prod(rest)
    wide = FLOAT32 if is_low(dtype) else dtype  # in which there is a QR decomposition
    q, r = fnp.linalg.qr(random.normal(key, (max(rows, columns), min(rows, columns)), wide))
    turn = fnp.diagonal(r)
    q = q * (turn / fnp.abs(turn))  # else the distribution would not be uniform
    q = q.T if rows < columns else q
    return fnp.moveaxis(fnp.astype(q, dtype).reshape(*rest, columns), -1, axis)


@checked
@described(_MADE)
def delta_orthogonal(scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike = None) -> Any:
    """An initializer of convolutions: an orthogonal matrix at the centre of the window, zeros elsewhere.

    It takes shapes (..., inputs, outputs) of three to five axes, with at most as many inputs as outputs.

    Parameters
    ----------
    scale : float
        Of all elements.
    column_axis : int
        The axis of columns of the matrix.

    References
    ----------
    L. Xiao et al.: Dynamical isometry and a mean field theory of CNNs. ICML 2018.

    Examples
    --------
    >>> from functrans import nn, random
    >>> window = nn.initializers.delta_orthogonal()(random.key(0), (3, 2, 2))
    >>> abs(window[:, :, 0]).sum(1).round(2) > 0
    Array([False,  True, False])
    """

    def draw(key: Value, shape: tuple[int, ...], to: np.dtype) -> Value:
        if len(shape) not in (3, 4, 5):
            raise ArgumentValueError(f"delta_orthogonal: expected a shape of three to five axes, got {shape}")
        inputs, outputs = shape[-2:]
        if inputs > outputs:
            raise ArgumentValueError(
                f"delta_orthogonal: shape {shape} has more inputs ({inputs}) than outputs ({outputs})"
            )
        matrix = _orthogonal(key, (inputs, outputs), to, column_axis) * to.type(scale)
        centre = tuple([(n - 1) // 2 for n in shape[:-2]])
        return fnp.zeros(shape, to).at[centre].set(matrix)

    return _initializer("delta_orthogonal", dtype, draw)


__getattr__, __dir__ = _module_attributes("functrans.nn.initializers", globals())

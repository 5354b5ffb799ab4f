"""``functrans.scipy.interpolate``: interpolation on a rectangular grid."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import product
from typing import Any

import numpy as np

from .. import numpy as fnp
from ..arrays.arguments import one_of
from ..core import (
    ArgumentError,
    ArgumentValueError,
    DtypeError,
    ShapeError,
    concrete,
    default_float,
    is_float,
    is_inexact,
)
from ..core.values import ArrayLike, PyTree, Value
from ..frontend.checked import checked
from ..frontend.pytree.register import register_pytree_node_class
from ..numpy.dispatch import array_operand
from ..primitives import ops
from ..primitives.ops import dtype_of, finish, shape_of
from ..runtime.module_getattr import module_attributes as _module_attributes

__all__ = ["RegularGridInterpolator"]
__getattr__, __dir__ = _module_attributes("functrans.scipy.interpolate", globals())

_NAME = "RegularGridInterpolator"
_METHODS = ("linear", "nearest")


@register_pytree_node_class
class RegularGridInterpolator:
    """Interpolate between values on a rectangular grid, whose lines may be unevenly spaced.

    Parameters
    ----------
    points : sequence of array_like, shapes (m1,), ..., (mn,)
        The positions of the grid along each axis, strictly increasing; or decreasing, if they are known. At least two.
    values : array_like, shape (m1, ..., mn, ...)
        Real or complex.
    method : {'linear', 'nearest'}
    bounds_error : bool
        Whether to raise an error for positions outside of the grid, which then must be known: not under `jit`.
    fill_value : number, optional
        The result outside of the grid, by default NaN. With None, extrapolate.

    Raises
    ------
    ArgumentValueError
        If the points are not in order, the method is unknown, or `fill_value` does not fit the values.
    ShapeError
        If points and values do not match.

    Notes
    -----
    An instance is a pytree: its grid, values and fill value may be traced, mapped and differentiated. Differentiable in
    the values, in the positions (for ``'linear'``), and in the grid. On a line of the grid, the slope is that of the
    cell before it. `bounds_error` is False by default, as in JAX; SciPy's is True.

    Examples
    --------
    >>> import functrans as ft
    >>> from functrans.scipy.interpolate import RegularGridInterpolator
    >>> f = RegularGridInterpolator(([1.0, 2.0, 3.0], [4.0, 6.0]), [[10.0, 20.0], [30.0, 40.0], [50.0, 60.0]])
    >>> f([[1.5, 5.0], [3.0, 4.0], [0.0, 4.0]])
    Array([25., 50., nan])
    >>> ft.grad(lambda x: f((x, 5.0)))(1.5)
    Array(20.)
    """

    @checked
    def __init__(
        self,
        points: ArrayLike,
        values: ArrayLike,
        method: str = "linear",
        bounds_error: bool = False,
        fill_value: ArrayLike = np.nan,
    ):
        one_of(method, _METHODS, f"{_NAME}: method")
        grid, samples = _grid(points), array_operand(values, f"{_NAME}: values")
        if not is_inexact(dtype_of(samples)):
            samples = ops.convert(samples, default_float(dtype_of(samples)))
        shape = shape_of(samples)
        if len(grid) > len(shape):
            raise ShapeError(f"{_NAME}: {len(grid)} arrays of points for values of shape {shape}")
        for d, p in enumerate(grid):
            if p.shape[0] != shape[d]:
                raise ShapeError(
                    f"{_NAME}: points {d} are {p.shape[0]} positions, but values has shape {shape}; expected {shape[d]}"
                )
        self.grid, self.values = _ascending(grid, finish(samples))
        self.method = method
        self.bounds_error = bounds_error
        self.fill_value = fill_value if fill_value is None else _filling(fill_value, dtype_of(samples))

    def tree_flatten(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The arrays, and the options."""
        return (self.grid, self.values, self.fill_value), (self.method, self.bounds_error)

    @classmethod
    def tree_unflatten(cls, aux_data: PyTree, children: Any) -> RegularGridInterpolator:
        """An instance of these parts, which are not checked."""
        self = object.__new__(cls)
        self.method, self.bounds_error = aux_data
        self.grid, self.values, self.fill_value = children
        return self

    @checked
    def __call__(self, xi: ArrayLike, method: str | None = None) -> Any:
        """Interpolate at some positions.

        Parameters
        ----------
        xi : array_like, shape (..., n), or tuple of n array_like
            The positions, or their coordinates along each axis, which are broadcast.
        method : {'linear', 'nearest'}, optional
            By default that of the interpolator.

        Returns
        -------
        Array, shape (..., and the further axes of the values)
            NaN where a position is.

        Raises
        ------
        ArgumentValueError
            With `bounds_error`, if a position is outside of the grid, or not known.
        ShapeError
            If positions do not have `n` coordinates.
        """
        method = self.method if method is None else method
        one_of(method, _METHODS, f"{_NAME}: method")
        at = _coordinates(xi, len(self.grid))
        if self.bounds_error:
            self._check_bounds(at)
        cells = [_cell(g, x) for g, x in zip(self.grid, at)]
        further = (1,) * (self.values.ndim - len(at))
        if method == "linear":
            out = self._linear(cells, further)
        else:
            # Of two lines at one distance, the first one.
            out = self._gathered([fnp.where(t <= 0.5, i, i + 1) for i, t in cells])
        if self.fill_value is not None and not self.bounds_error:
            outside = reduce(fnp.logical_or, [(x < g[0]) | (x > g[-1]) for g, x in zip(self.grid, at)])
            out = fnp.where(_spread(outside, further), fnp.astype(self.fill_value, out.dtype), out)
        unknown = reduce(fnp.logical_or, [fnp.isnan(x) for x in at])
        return fnp.where(_spread(unknown, further), fnp.astype(np.nan, out.dtype), out)

    def _linear(self, cells: Sequence[tuple[Any, Any]], further: tuple[int, ...]) -> Value:
        """The sum over the corners of the cells."""
        total: ArrayLike = None
        for corner in product((0, 1), repeat=len(cells)):
            weight = reduce(fnp.multiply, [t if c else 1.0 - t for c, (_, t) in zip(corner, cells)])
            term = self._gathered([i + c for c, (i, _) in zip(corner, cells)]) * _spread(weight, further)
            total = term if total is None else total + term
        return total

    def _gathered(self, indices: Sequence[Any]) -> Value:
        places = [ops.operand(i, _NAME) for i in indices]
        samples = ops.operand(self.values, _NAME)
        axes = tuple(range(len(places)))
        return finish(ops.gather_p.bind(samples, *places, axes=axes, mode="promise_in_bounds"))

    def _check_bounds(self, at: Sequence[Any]) -> None:
        for d, (g, x) in enumerate(zip(self.grid, at)):
            low, high, known = (concrete(ops.operand(v, _NAME)) for v in (g[0], g[-1], x))
            if low is None or high is None or known is None:
                raise ArgumentValueError(
                    f"{_NAME}: bounds_error=True needs positions that are known, but xi or the grid is traced; pass "
                    "bounds_error=False, and look for NaN in the result"
                )
            outside = ~((low <= known) & (known <= high))
            if np.any(outside):
                raise ArgumentValueError(
                    f"{_NAME}: xi is out of bounds along axis {d}: {np.asarray(known)[outside].flat[0]} is not within "
                    f"{low} and {high}; with bounds_error=False the result is fill_value there"
                )


def _grid(points: ArrayLike) -> list[Value]:
    """The positions along each axis as floating-point vectors."""
    try:
        parts = list(points)
    except TypeError:
        raise ArgumentError(f"{_NAME}: points must be a sequence of arrays, got {points!r}") from None
    if not parts:
        raise ArgumentValueError(f"{_NAME}: points must be a sequence of at least one array, got {points!r}")
    grid = []
    for d, part in enumerate(parts):
        value = array_operand(part, f"{_NAME}: points {d}")
        if len(shape_of(value)) != 1 or shape_of(value)[0] < 2:
            raise ShapeError(
                f"{_NAME}: points {d} must be a vector of at least two positions, got shape {shape_of(value)}"
            )
        if dtype_of(value).kind == "c":
            raise DtypeError(f"{_NAME}: points {d} must be real, got {dtype_of(value)}")
        grid.append(
            finish(value if is_float(dtype_of(value)) else ops.convert(value, default_float(dtype_of(value))))
        )
    return grid


def _ascending(grid: list[Value], values: Value) -> tuple[tuple[Any, ...], Any]:
    """Reverse the axes along which the known positions decrease."""
    for d, g in enumerate(grid):
        known = concrete(ops.operand(g, _NAME))
        if known is None:
            continue
        steps = np.diff(known)
        if not (np.all(steps > 0) or np.all(steps < 0)):
            raise ArgumentValueError(
                f"{_NAME}: points {d} must be strictly increasing or decreasing, got {known}"
            )
        if steps[0] < 0:
            grid[d], values = fnp.flip(g), fnp.flip(values, d)
    return tuple(grid), values


def _filling(fill_value: Value, dtype: np.dtype) -> Value:
    value = array_operand(fill_value, f"{_NAME}: fill_value")
    if shape_of(value):
        raise ShapeError(f"{_NAME}: fill_value must be a number, got an array of shape {shape_of(value)}")
    if not np.can_cast(dtype_of(value), dtype, "same_kind"):
        raise ArgumentValueError(
            f"{_NAME}: fill_value of dtype {dtype_of(value)} does not fit values of {dtype}"
        )
    return finish(ops.convert(value, dtype))


def _coordinates(xi: Value, n: int) -> list[Any]:
    """The coordinates along each axis, of one shape."""
    if isinstance(xi, tuple) and len(xi) == 1:
        (xi,) = xi
    if isinstance(xi, tuple):
        parts = [_real(x) for x in xi]
        if len(parts) == n:
            return list(fnp.broadcast_arrays(*parts))
        shape: tuple[int, ...] = (len(parts),)
    else:
        x = _real(xi)
        if x.ndim < 2:
            x = fnp.reshape(x, (-1, 1)) if n == 1 else fnp.reshape(x, (-1, n)) if x.size % n == 0 else x
        if x.ndim and x.shape[-1] == n:
            return [x[..., d] for d in range(n)]
        shape = x.shape
    raise ShapeError(
        f"{_NAME}: xi must be positions with {n} coordinates along the last axis, or a tuple of {n} arrays, got "
        f"{'a tuple of ' + str(shape[0]) if isinstance(xi, tuple) else 'shape ' + str(shape)}"
    )


def _real(x: Value) -> Value:
    value = array_operand(x, f"{_NAME}: xi")
    if dtype_of(value).kind == "c":
        raise DtypeError(f"{_NAME}: xi must be real, got {dtype_of(value)}")
    return finish(value if is_float(dtype_of(value)) else ops.convert(value, default_float(dtype_of(value))))


def _cell(g: ArrayLike, x: ArrayLike) -> tuple[Any, Any]:
    """The line of the grid before each position, and how far it is on the way to the next one."""
    i = fnp.clip(fnp.searchsorted(g, x) - 1, 0, g.shape[0] - 2)
    low, high = (finish(_taken(g, k)) for k in (i, i + 1))
    return i, (x - low) / (high - low)


def _taken(g: Any, i: Any) -> Value:
    return ops.gather_p.bind(
        ops.operand(g, _NAME), ops.operand(i, _NAME), axes=(0,), mode="promise_in_bounds"
    )


def _spread(x: Any, further: tuple[int, ...]) -> Value:
    return fnp.reshape(x, (*x.shape, *further))

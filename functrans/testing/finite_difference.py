"""Numerical derivatives with an error estimate: the oracle that every derivative rule is tested against.

Central differences over a sequence of halved steps are extrapolated to step zero (Richardson). Each element
of each output uses the entry of its table with the smallest estimated error. The estimate is the disagreement
of neighbouring entries, and at least the rounding error of the differences themselves.

It uses only values, from plain callables that map a list of NumPy arrays to a list of NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from functrans.errors import ArgumentError, DtypeError, ShapeError

from ..core import finfo, is_inexact
from ..frontend.checked import checked
from ..runtime.context import quietly, run_quietly

ArrayFunction = Callable[[list[np.ndarray]], Sequence[ArrayLike]]
_Side = tuple[float, np.ndarray, np.ndarray]
"""A step, and the values above and below."""

_HALVINGS = 8
"""Halvings of the first step; the table has one row more."""
_MOST_HALVINGS = 48
"""Halvings tried while an element is still outside its domain (the logarithm of 1e-12 needs 30)."""
_KINK_STEP = 1e-6
"""Relative step of the one-sided differences in double precision: below the last step of the table."""
_KINK_SHRINKS = 8
"""How often to divide the steps by 32 where they leave the domain of the function."""
_KINK_GAP = 1e-3
"""One-sided slopes further apart than this fraction of the slope are a kink."""
_NOISE_SAMPLES = 6
"""Neighbours at which rounding errors are measured on either side."""
_NOISE_STEP = 1e-6
"""Distance of neighbours, as a fraction of the step: far enough to round differently, too near for slopes to matter.
"""
_NOISE_FACTOR = 16
"""How many times the measured rounding error a gap must exceed: the samples rarely include the largest error."""


_JUMP = 1e-2
"""Neighbours a few roundings apart whose values differ by more than this fraction are at a jump: the sign of an
eigenvector, for example, may depend on rounding."""
_JUMP_ROUNDINGS = 1e6
"""And by more than so many roundings of the point."""


@checked
def directional_derivative(
    f: ArrayFunction, x: Sequence[ArrayLike], v: Sequence[ArrayLike | None]
) -> tuple[list[NDArray], list[NDArray]]:
    """Derivative of ``f(x + t v)`` in the real number ``t`` at ``t = 0``, with an error estimate.

    Parameters
    ----------
    f : callable
        Takes a list of arrays with the shapes and dtypes of `x`, returns a list of arrays of any shapes.
    x : sequence of array_like
        The point. float, complex, integer or bool, any shapes (0-d and empty ones too).
    v : sequence of array_like or None
        The direction: one entry per array of `x`, with its shape. Inputs with None, and integer or bool inputs, are
        held fixed. Complex where `x` is complex.

    Returns
    -------
    value : list of ndarray
        One per output of `f`, with its shape; float64, or complex128 for a complex output. Outputs of integer or bool
        dtype are constant almost everywhere: their derivative is 0.
    error : list of ndarray of float64
        Estimated absolute error of each element; ``inf`` where `f` is not finite.

    Raises
    ------
    ArgumentError
        `v` and `x` differ in length, or `f` does not return a list or tuple.
    ShapeError
        An entry of `v` has another shape than that of `x`, or the outputs of `f` change their shapes.
    DtypeError
        A complex direction for a real input.

    See Also
    --------
    is_kink : detects kinks, which the estimate misses. At 1e-9 the slope of ``max(x, 0)`` is computed as 0.5.

    Notes
    -----
    The first step is ``eps**(1/5) * max(1, max|x|) / max|v|``, rounded down to a power of two so that most
    ``x + h v`` are exact; `eps` is that of the coarsest floating dtype among inputs and outputs. It is halved
    8 times, and more often where a step leaves the domain of `f`. `f` is evaluated in the dtypes of `x`,
    differences are taken in float64.

    Typical relative errors in double precision are 1e-12, 1e-6 in single.

    References
    ----------
    C. J. F. Ridders, "Accurate computation of F'(x) and F'(x)F''(x)", Advances in Engineering Software 4
    (1982) 75-76.

    Examples
    --------
    >>> value, error = directional_derivative(lambda x: [np.sin(x[0])], [1.0], [1.0])
    >>> bool(abs(value[0] - np.cos(1.0)) < 1e-11), bool(error[0] < 1e-10)
    (True, True)
    """
    point, direction = _check_arguments(x, v)
    base = _evaluate(f, point)
    value, error = _zeros_like_outputs(base)
    floating = [i for i, y in enumerate(base) if _is_inexact(y)]
    if not floating or not any(d is not None and d.any() for d in direction):
        return value, error
    moving = [p for p, d in zip(point, direction, strict=True) if d is not None]
    eps, size = _coarsest_eps(moving, base), _largest(moving)
    tables = {i: _Table(base[i], eps) for i in floating}
    for level, h in enumerate(_steps(eps ** (1 / 5) * max(1.0, size) / _largest(direction))):
        if level > _HALVINGS and all(table.settled() for table in tables.values()):
            break
        above = _evaluate(f, _moved(point, direction, h), like=base)
        below = _evaluate(f, _moved(point, direction, -h), like=base)
        rounding = eps * size / (h * _largest(direction))
        for i, table in tables.items():
            table.add(above[i], below[i], h, rounding)
    for i, table in tables.items():
        value[i], error[i] = table.value, table.error
    return value, error


@checked
def jacobian(f: ArrayFunction, x: Sequence[ArrayLike]) -> tuple[list[list[NDArray]], list[list[NDArray]]]:
    """All partial derivatives of `f`, with error estimates.

    Parameters
    ----------
    f : callable
        As in `directional_derivative`.
    x : sequence of array_like
        The point.

    Returns
    -------
    value : list of list of ndarray
        ``value[i][j]`` is the derivative of output `i` in input `j`, of shape ``output.shape + input.shape``.
        A complex input adds a last axis of length 2: the derivatives in its real and in its imaginary part.
        Zero for an integer or bool input.
    error : list of list of ndarray of float64
        Estimated absolute errors, of the same shapes.

    Notes
    -----
    About 18 evaluations of `f` for each element of `x`, 36 for a complex one.

    Examples
    --------
    >>> value, error = jacobian(lambda x: [x[0] * x[1]], [np.array([1.0, 2.0]), np.array(3.0)])
    >>> value[0][0].round(9)
    array([[3., 0.],
           [0., 3.]])
    >>> value[0][1].round(9)
    array([1., 2.])
    """
    point = [np.asarray(a) for a in x]
    outputs = [_zeros_like_outputs([y])[0][0] for y in _evaluate(f, point)]
    value: list[list[NDArray]] = [[] for _ in outputs]
    error: list[list[NDArray]] = [[] for _ in outputs]
    for j, a in enumerate(point):
        units = (1.0, 1j) if np.iscomplexobj(a) else (1.0,)
        columns = [_unit_direction(a, k, u) for k in range(a.size) for u in units] if _is_inexact(a) else []
        fixed: list[ArrayLike | None] = [None] * len(point)
        derivatives = [directional_derivative(f, point, [*fixed[:j], e, *fixed[j + 1 :]]) for e in columns]
        tail = a.shape + ((2,) if len(units) == 2 else ())
        for i, y in enumerate(outputs):
            for rows, which, dtype in ((value[i], 0, y.dtype), (error[i], 1, np.dtype(float))):
                block = np.zeros((y.size, int(np.prod(tail))), dtype)
                for k, column in enumerate(derivatives):
                    block[:, k] = column[which][i].ravel()
                rows.append(block.reshape(y.shape + tail))
    return value, error


@checked
def is_kink(f: ArrayFunction, x: Sequence[ArrayLike], v: Sequence[ArrayLike | None]) -> bool:
    """Whether `f` is not differentiable at `x` along `v`, or so near to `x` that differences are affected.

    Parameters
    ----------
    f, x, v
        As in `directional_derivative`.

    Returns
    -------
    bool
        True where the slopes to either side of an element of an output differ by more than 1e-3 of the slope,
        where the slope grows without bound (``cbrt`` at 0), and where `f` is not finite at `x` or next to it
        (``sqrt`` at 0).

    Notes
    -----
    The gap between the one-sided slopes of a smooth function shrinks with the step, that of a kink does not.
    The gaps at steps `h` and ``4 h`` (and ``4 h`` and ``16 h``) are extrapolated to step zero, which removes
    the curvature of a smooth function. `h` is 1e-6 in double precision, so that kinks up to about 1e-5 away
    are noticed.

    A gap counts if it exceeds the rounding error. This depends on the function (its conditioning, the order in which a
    library adds), so it is measured at each gap: as the largest change of each output between neighbouring numbers, at
    a distance of ``4 h`` to either side, where a kink at `x` has no influence.

    Examples
    --------
    >>> is_kink(lambda x: [np.abs(x[0])], [0.0], [1.0])
    True
    >>> is_kink(lambda x: [np.abs(x[0])], [0.1], [1.0])
    False
    """
    return kink_beside(f, x, v)


def kink_beside(
    f: ArrayFunction,
    x: Sequence[ArrayLike],
    v: Sequence[ArrayLike | None],
    values: Sequence[np.ndarray] | None = None,
) -> bool:
    """`is_kink`, with the values at the point where they are known: another evaluation may give others.

    (The sign of an eigenvector, for example, may depend on where an array lies in memory.)
    """
    point, direction = _check_arguments(x, v)
    base = _evaluate(f, point) if values is None else list(values)
    floating = [i for i, y in enumerate(base) if _is_inexact(y)]
    if not floating or not any(d is not None and d.any() for d in direction):
        return False
    if not all(np.isfinite(base[i]).all() for i in floating):
        return True
    moving = [p for p, d in zip(point, direction, strict=True) if d is not None]
    eps = _coarsest_eps(moving, base)
    # In single precision 1e-6 is below the spacing of numbers: use the same place between eps and the widest step.
    narrow = _KINK_STEP if eps < 1e-12 else eps**0.4
    scale = max(1.0, _largest(moving)) / _largest(direction)
    for _ in range(_KINK_SHRINKS):
        sides = []
        for h in (narrow, 4 * narrow, 16 * narrow, eps ** (1 / 5)):
            above = _evaluate(f, _moved(point, direction, h * scale), like=base)
            below = _evaluate(f, _moved(point, direction, -h * scale), like=base)
            sides.append((h, above, below))
        if all(np.isfinite(y[i]).all() for _, *pair in sides for y in pair for i in floating):
            suspects = [i for i in floating if _has_gap(base[i], _side_of(sides, i), eps)]
            if not suspects:
                return False
            noise = _noise(f, base, point, direction, 4 * narrow * scale)
            least = _JUMP_ROUNDINGS * eps * max(1.0, _largest(moving))
            return any(
                _has_gap(base[i], _side_of(sides, i), eps, noise[i])
                or noise[i].max() > max(_JUMP * np.abs(_wide(base[i])).max(), least)
                for i in suspects
            )
        # The edge of the domain is within reach: come closer, unless x lies on it.
        scale /= 32
    return True


def one_sided_slopes(
    f: ArrayFunction, x: Sequence[ArrayLike], v: Sequence[ArrayLike | None]
) -> tuple[list[NDArray], list[NDArray]]:
    """The slopes below and above the point along `v`, by one-sided differences over the least step of `is_kink`."""
    point, direction = _check_arguments(x, v)
    base = _evaluate(f, point)
    moving = [p for p, d in zip(point, direction, strict=True) if d is not None]
    eps = _coarsest_eps(moving, base)
    h = (_KINK_STEP if eps < 1e-12 else eps**0.4) * max(1.0, _largest(moving)) / _largest(direction)

    def slopes(step: float) -> list[NDArray]:
        ends = _evaluate(f, _moved(point, direction, step), like=base)
        return [(_wide(end) - _wide(y)) / step for end, y in zip(ends, base, strict=True)]

    return run_quietly(slopes, -h), run_quietly(slopes, h)


def _side_of(sides: list[tuple[float, list[np.ndarray], list[np.ndarray]]], i: int) -> list[_Side]:
    return [(h, above[i], below[i]) for h, above, below in sides]


@quietly
def _noise(
    f: ArrayFunction,
    base: list[np.ndarray],
    point: list[np.ndarray],
    direction: list[np.ndarray | None],
    distance: float,
) -> list[np.ndarray]:
    """For each output, the largest change between numbers at a distance to either side and their neighbours: a few
    units in the last place away, and a little further along the direction.
    """
    rng = np.random.default_rng(0)
    noise = [np.zeros(y.shape) for y in base]
    for side in (distance, -distance):
        middle = _evaluate(f, _moved(point, direction, side), like=base)
        for n in range(_NOISE_SAMPLES):
            further = side * (1 + _NOISE_STEP * rng.uniform(-1, 1) * (n % 2))
            center = _moved(point, direction, further)
            beside = [a if d is None else _jittered(a, rng) for a, d in zip(center, direction, strict=True)]
            for most, y, z in zip(noise, middle, _evaluate(f, beside, like=base), strict=True):
                if _is_inexact(y):
                    np.fmax(most, np.abs(_wide(z) - _wide(y)), out=most)
    return noise


def _jittered(a: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The numbers of an array moved by at most three units in the last place."""
    real = np.array(a).reshape(-1).view(finfo(a.dtype).dtype)
    real *= 1 + rng.integers(-3, 4, real.shape) * finfo(real.dtype).eps
    return real.view(a.dtype).reshape(a.shape)


def _has_gap(y: np.ndarray, sides: list[_Side], eps: float, measured: np.ndarray | float = 0.0) -> bool:
    """Whether the one-sided slopes of one output disagree; `measured` are its rounding errors, if known."""
    if y.size == 0:
        return False
    y = _wide(y)
    above = [(_wide(a) - y) / h for h, a, _ in sides]
    below = [(y - _wide(b)) / h for h, _, b in sides]
    gaps = [a - b for a, b in zip(above, below, strict=True)]
    # The slope over the widest step counts too: at the bottom of x**4 the narrow ones are almost zero.
    slope = np.abs(above + below).max(axis=0)
    mean = [np.abs(a + b) / 2 for a, b in zip(above, below, strict=True)]
    noise = np.maximum(16 * eps * max(1.0, np.abs(y).max()), _NOISE_FACTOR * measured) / sides[0][0]
    extrapolated = [(4 * gaps[k] - gaps[k + 1]) / 3 for k in (0, 1)]
    vertical = (mean[0] > 1.5 * mean[1] + noise) & (mean[1] > 1.5 * mean[2]) & (mean[2] > 1.5 * mean[3])
    if vertical.any():
        return True
    return any(bool((np.abs(g) > _KINK_GAP * slope + noise).any()) for g in extrapolated)


class _Table:
    """The Richardson table of one output: the last row only, and the best entry so far of each element."""

    def __init__(self, y: np.ndarray, eps: float):
        self.magnitude = np.abs(_wide(y))
        self.eps = eps
        self.value = np.zeros_like(_wide(y))
        self.error = np.full(y.shape, np.inf)
        self.row: list[np.ndarray] = []
        self.finite_rows = np.where(np.isfinite(self.magnitude), 0, _HALVINGS)

    def settled(self) -> bool:
        """Whether each element has had a table of rows inside its domain (or will never have one)."""
        return bool((self.finite_rows >= _HALVINGS).all())

    @quietly
    def add(self, above: np.ndarray, below: np.ndarray, h: float, rounding: float) -> None:
        """Add the row of step `h`; `rounding` is the relative error of a slope by rounding of ``x + h v``."""
        row = [(_wide(above) - _wide(below)) / (2 * h)]
        self.finite_rows += np.isfinite(row[0])
        for k, older in enumerate(self.row, start=1):
            row.append(row[-1] + (row[-1] - older) / (4.0**k - 1))
            disagreement = np.maximum(np.abs(row[k] - row[k - 1]), np.abs(row[k] - older))
            floor = self.eps * self.magnitude / h + rounding * np.abs(row[k])
            estimate = np.maximum(disagreement, floor)
            # A comparison with nan is False: rows outside the domain are never chosen.
            better = estimate < self.error
            self.value = np.where(better, row[k], self.value)
            self.error = np.where(better, estimate, self.error)
        self.row = row


def _check_arguments(
    x: Sequence[ArrayLike], v: Sequence[ArrayLike | None]
) -> tuple[list[np.ndarray], list[np.ndarray | None]]:
    """Arrays of the point and the direction; None in the direction for an input that is held fixed."""
    if not isinstance(x, list | tuple) or not isinstance(v, list | tuple):
        raise ArgumentError(
            f"x and v must be lists of arrays, got {type(x).__name__} and {type(v).__name__}. Write [x], [v]."
        )
    if len(x) != len(v):
        raise ArgumentError(f"v has {len(v)} entries for {len(x)} arrays of x. Pass None for a fixed input.")
    point = [np.asarray(a) for a in x]
    direction: list[np.ndarray | None] = []
    for k, (a, d) in enumerate(zip(point, v, strict=True)):
        if d is None or not _is_inexact(a):
            direction.append(None)
            continue
        d = np.asarray(d)
        if d.shape != a.shape:
            raise ShapeError(f"v[{k}] has shape {d.shape}, but x[{k}] has shape {a.shape}.")
        if np.iscomplexobj(d) and not np.iscomplexobj(a):
            raise DtypeError(
                f"v[{k}] is {d.dtype}, but x[{k}] is {a.dtype}: a real input needs a real direction."
            )
        direction.append(_wide(d))
    return point, direction


def _evaluate(
    f: ArrayFunction, x: list[np.ndarray], like: list[np.ndarray] | None = None
) -> list[np.ndarray]:
    """Outputs of `f` at `x` as arrays; `f` gets copies, which it may change."""
    y = run_quietly(f, [np.array(a) for a in x])
    if not isinstance(y, list | tuple):
        raise ArgumentError(f"f must return a list of arrays, got {type(y).__name__}. Return [y].")
    outputs = [np.array(a) for a in y]
    if like is not None and [a.shape for a in outputs] != [a.shape for a in like]:
        shapes, expected = [a.shape for a in outputs], [a.shape for a in like]
        raise ShapeError(f"the outputs of f changed their shapes from {expected} to {shapes} near x.")
    return outputs


def _moved(point: list[np.ndarray], direction: list[np.ndarray | None], t: float) -> list[np.ndarray]:
    """``point + t * direction`` in the dtypes of `point`."""
    return [a if d is None else (a + t * d).astype(a.dtype) for a, d in zip(point, direction, strict=True)]


def _steps(first: float) -> Iterator[float]:
    """Halved steps from the power of two below `first`."""
    h = 2.0 ** np.floor(np.log2(first))
    for k in range(_MOST_HALVINGS + 1):
        yield float(h / 2**k)


def _unit_direction(a: np.ndarray, k: int, unit: complex) -> np.ndarray:
    """Zeros of the shape of `a` with `unit` at flat position `k`."""
    e = np.zeros(a.size, np.result_type(a.dtype, np.float64))
    e[k] = unit
    return e.reshape(a.shape)


def _zeros_like_outputs(outputs: list[np.ndarray]) -> tuple[list[NDArray], list[NDArray]]:
    """Zero derivatives and zero errors, float64 or complex128, of the shapes of `outputs`."""
    value: list[NDArray] = [np.zeros(y.shape, complex if np.iscomplexobj(y) else float) for y in outputs]
    error: list[NDArray] = [np.zeros(y.shape) for y in outputs]
    return value, error


def _coarsest_eps(inputs: list[np.ndarray], outputs: list[np.ndarray]) -> float:
    return max(float(finfo(a.dtype).eps) for a in inputs + outputs if _is_inexact(a))


def _largest(arrays: Sequence[np.ndarray | None]) -> float:
    """The largest finite magnitude among all elements; 0 if there are none."""
    sizes = [np.abs(a[np.isfinite(a)]).max(initial=0) for a in arrays if a is not None and _is_inexact(a)]
    return float(max(sizes, default=0.0))


def _is_inexact(a: np.ndarray) -> bool:
    return is_inexact(a.dtype)


def _wide(a: np.ndarray) -> np.ndarray:
    """`a` in double precision, so that differences of close values add no rounding."""
    return a.astype(complex if np.iscomplexobj(a) else float)

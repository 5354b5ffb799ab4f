"""Convolution and correlation of arrays with any number of axes, as in `scipy.signal`."""

from __future__ import annotations

from typing import Any

from ..core import BOOL, ArgumentValueError, DtypeError, ShapeError
from ..core.module_getattr import module_attributes as _module_attributes
from ..frontend.checked import checked
from ..numpy.dispatch import array_operand, in_one_dtype
from ..primitives import ops
from ..primitives.ops import dtype_of, finish, shape_of

__all__ = ["convolve", "convolve2d", "correlate", "correlate2d"]
__getattr__, __dir__ = _module_attributes("functrans.scipy.signal", globals())


@checked
def convolve(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """The convolution of two arrays with the same number of axes.

    Parameters
    ----------
    in1, in2 : array_like
    mode : {'full', 'same', 'valid'}
        'full': all positions at which they overlap. 'same': the middle positions, as many as `in1` has elements.
        'valid': positions at which one lies within the other.
    method : str
        Ignored: the sums are always computed directly.

    Returns
    -------
    Array
        In the common dtype.

    Raises
    ------
    ShapeError
        If they have different numbers of axes, or if with ``valid`` no array fits within the other.
    ArgumentValueError
        If the mode is unknown.
    DtypeError
        If they are boolean.

    Notes
    -----
    Linear in each argument. The cost is the product of the sizes; for two large arrays multiply their transforms
    (`functrans.numpy.fft`).

    Examples
    --------
    >>> import functrans.scipy.signal
    >>> functrans.scipy.signal.convolve([1.0, 2.0, 3.0], [1.0, 1.0], "same")
    Array([1., 3., 5.])
    """
    return _convolved("convolve", in1, in2, mode, reverse=True)


@checked
def correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """The cross-correlation of two arrays: `convolve` with the conjugate of `in2`, reversed along all axes.

    Examples
    --------
    >>> import functrans.scipy.signal
    >>> functrans.scipy.signal.correlate([1.0, 2.0, 3.0], [1.0, 0.0], "valid")
    Array([1., 2.])
    """
    return _convolved("correlate", in1, in2, mode, reverse=False)


@checked
def convolve2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: float = 0) -> Any:
    """`convolve` of two matrices, padded with zeros (``boundary="fill"``).

    Raises
    ------
    ArgumentValueError
        For any other boundary: pad `in1` first, with `functrans.numpy.pad`.

    Examples
    --------
    >>> import functrans.scipy.signal
    >>> functrans.scipy.signal.convolve2d([[1.0, 2.0]], [[1.0], [1.0]])
    Array([[1., 2.],
           [1., 2.]])
    """
    _check_matrices("convolve2d", in1, in2, boundary, fillvalue)
    return _convolved("convolve2d", in1, in2, mode, reverse=True)


@checked
def correlate2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: float = 0) -> Any:
    """`correlate` of two matrices; see `convolve2d`.

    Notes
    -----
    With ``same`` and an even extent of `in2`, the middle is rounded up, as in SciPy. With ``valid`` and a complex `in1`
    that lies within `in2`, SciPy conjugates `in1` instead; functrans always conjugates `in2`.

    Examples
    --------
    >>> import functrans.scipy.signal
    >>> functrans.scipy.signal.correlate2d([[1.0, 2.0]], [[1.0, 1.0]], "valid")
    Array([[3.]])
    """
    _check_matrices("correlate2d", in1, in2, boundary, fillvalue)
    return _convolved("correlate2d", in1, in2, mode, reverse=False)


def _check_matrices(name: str, in1: Any, in2: Any, boundary: str, fillvalue: float) -> None:
    for i, x in enumerate((in1, in2)):
        shape = shape_of(array_operand(x, name, i))
        if len(shape) != 2:
            raise ShapeError(
                f"{name}: expected matrices, but argument {i} has shape {shape}; use {name[:-2]}"
            )
    if boundary != "fill" or fillvalue != 0:
        raise ArgumentValueError(
            f"{name}: boundary={boundary!r}, fillvalue={fillvalue}: only zero padding is supported; pad in1 first with "
            "functrans.numpy.pad, and use mode='valid'"
        )


def _convolved(name: str, in1: Any, in2: Any, mode: str, *, reverse: bool) -> Any:
    x, y = in_one_dtype([array_operand(in1, name), array_operand(in2, name, 1)], None, name)
    if dtype_of(x) == BOOL:
        raise DtypeError(f"{name}: booleans are not supported; convert with .astype(int)")
    a, b = shape_of(x), shape_of(y)
    if len(a) != len(b):
        raise ShapeError(f"{name}: arrays of shapes {a} and {b} must have the same number of axes")
    if mode not in ("full", "same", "valid"):
        raise ArgumentValueError(f"{name}: mode must be 'full', 'same' or 'valid', got {mode!r}")
    if not reverse and dtype_of(y).kind == "c":
        y = ops.conj_p.bind(y)
    if not a:
        return finish(ops.mul_p.bind(x, y))
    axes = tuple(range(len(a)))
    window = ops.rev_p.bind(y, dimensions=axes) if reverse else y
    if mode == "valid" and any(n < m for n, m in zip(a, b)):
        if any(n > m for n, m in zip(a, b)):
            raise ShapeError(
                f"{name}: mode 'valid' needs one array that fits within the other, got shapes {a} and {b}"
            )
        # in2 slides under in1 as in1 over in2, but the other way round.
        flipped = ops.rev_p.bind(x, dimensions=axes)
        return finish(
            _slid(y, flipped, "valid") if reverse else ops.rev_p.bind(_slid(y, x, "valid"), dimensions=axes)
        )
    return finish(_slid(x, window, mode, late=name == "correlate2d"))


def _slid(x: Any, window: Any, mode: str, late: bool = False) -> Any:
    a, b = shape_of(x), shape_of(window)
    padding = [(0, 0) if mode == "valid" else (m - 1, m - 1) for m in b]
    if mode == "same":
        # The middle of the full result: the cut in front is half of the surplus, rounded down.
        # Of correlate2d SciPy rounds it up.
        cut = [m // 2 if late else (m - 1) // 2 for m in b]
        padding = [(m - 1 - c, c) for m, c in zip(b, cut)]
    ones = (1,) * len(a)
    out = ops.conv_p.bind(
        ops.reshape_p.bind(x, shape=(1, 1, 1, *a)),
        ops.reshape_p.bind(window, shape=(1, 1, 1, *b)),
        window_strides=ones,
        padding=tuple(padding),
        lhs_dilation=ones,
        rhs_dilation=ones,
    )
    extents = tuple([n + low + high - m + 1 for n, m, (low, high) in zip(a, b, padding)])
    return ops.reshape_p.bind(out, shape=extents)

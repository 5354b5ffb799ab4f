"""`derivative_is_right`: a derivative that came from elsewhere, against that of functrans or finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..api.derivatives import jvp
from ..api.vmap import vmap
from ..arrays.array import unwrap
from ..core import is_inexact
from ..errors import ArgumentError
from ..frontend.arguments import name_of
from ..frontend.checked import checked
from ..frontend.pytree import tree_leaves
from .finite_difference import jacobian
from .setting import CONJUGATED, CONVENTION, Setting, Wrt, proving

_Blocks = list[list[np.ndarray]]
"""A derivative for each output and each argument; a last axis of length 2 for a complex argument: its two parts."""


@checked
def derivative_is_right(
    f: Callable[..., Any],
    *args: Any,
    derivative: Callable[..., Any],
    rng: int = 0,
    wrt: Wrt = None,
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """A derivative from elsewhere is that of the function.

    It is compared with forward mode where `f` can be traced, and with finite differences where it cannot: `f` may be
    any Python function of arrays or numbers.

    Parameters
    ----------
    f : callable
        Takes and returns arrays or pytrees of arrays.
    *args
        The point.
    derivative : callable
        Takes the arguments of `f`. For a number it returns the gradient: an array of the shape of the argument, a
        tuple for several. For an array it returns the Jacobian, of shape ``output.shape + argument.shape``. In a
        complex argument ``x + iy``, the derivative of a real output is ``df/dx - i df/dy``, as that of `grad`.
    rng : int
        Part of the report; nothing is random.
    wrt : int, sequence of int or None
        The arguments whose derivatives it returns; None for all float and complex leaves.
    rtol, atol : float, optional
        Tolerances, by default 1e-7, or 1e-3 in single precision. Of finite differences, ten times their estimated
        error is allowed, too.

    Raises
    ------
    LawViolation
        An `AssertionError` that names the argument, the element and both numbers.
    ArgumentError
        If the derivative returns another number of arrays, or `f` is complex without being holomorphic.

    Examples
    --------
    >>> import math
    >>> import numpy as np
    >>> from functrans.testing import derivative_is_right
    >>> derivative_is_right(np.linalg.det, np.array([[1.0, 2.0], [3.0, 5.0]]),
    ...                     derivative=lambda a: np.array([[a[1, 1], -a[1, 0]], [-a[0, 1], a[0, 0]]]))
    >>> derivative_is_right(math.erf, 0.3, derivative=lambda x: 2 / math.sqrt(math.pi) * math.exp(-x * x))
    """
    title = "the derivative is that of the function"
    with proving(title, "derivative_is_right", f, args, rng, wrt) as s:
        outs = s.values
        expected, errors, source = _expected(s)
        given = [np.asarray(unwrap(x)) for x in tree_leaves(derivative(*args))]
        tolerance = s.tolerance(rtol, atol, 1e-7)
        direction = s.like(s.primals)
    if len(given) != len(outs) * len(s.primals):
        raise ArgumentError(
            f"derivative_is_right: the derivative of {name_of(f)} must return {_wanted(s, len(outs))}, got "
            f"{len(given)} arrays. Choose arguments with wrt="
        )
    for n, got in enumerate(given):
        k, j = divmod(n, len(s.primals))
        output = f" of output {k}" if len(outs) > 1 else ""
        where = f"the derivative{output} in {s.names[s.active[j]]}, against {source}"
        value, error = _as_one(f, s, outs[k], j, expected[k][j], None if errors is None else errors[k][j])
        if got.shape != np.shape(value):
            s.report.fail(
                where,
                f"it has shape {got.shape}, expected {np.shape(value)}: the shape of the output, then that of the "
                "argument. Of a function that acts on each element give that matrix (np.diag of its slopes for a "
                "vector), or check its sum",
            )
        hint = ""
        if s.primals[j].dtype.kind == "c":
            near = np.allclose(np.conj(got), value, rtol=1e-5)
            hint = CONJUGATED if near else CONVENTION
        with s.kinks_told(where, direction):
            s.report.close(
                where, got, value, tolerance, estimated=error, names=("it gives", "expected"), hint=hint
            )


def _wanted(s: Setting, outputs: int) -> str:
    several = f"{len(s.primals)} arrays, for {', '.join(s.names[i] for i in s.active)}"
    one = f"an array for {s.names[s.active[0]]}" if len(s.primals) == 1 else several
    return one if outputs == 1 else f"for each of {outputs} outputs {one}"


def _expected(s: Setting) -> tuple[_Blocks, _Blocks | None, str]:
    """The derivative, the estimated errors of finite differences, and which it is."""
    try:
        return _pushed(s), None, "forward mode"
    except Exception as error:  # whatever a function that cannot be traced raises
        reason = type(error).__name__
    values, errors = jacobian(s.evaluate, s.primals)
    return values, errors, f"finite differences (a trace raised {reason})"


def _pushed(s: Setting) -> _Blocks:
    """The derivative by forward mode, in the form of `jacobian`."""
    columns: list[list[np.ndarray]] = []
    for j, x in enumerate(s.primals):
        units = [1.0, 1j] if x.dtype.kind == "c" else [1.0]
        basis = np.stack([np.eye(x.size).reshape(x.size, *x.shape) * u for u in units], 1).astype(x.dtype)

        def push(v: Any, j: int = j) -> Any:
            tangents = [v if n == j else None for n in range(len(s.primals))]
            return jvp(s.smooth, tuple(s.primals), tuple(tangents))[1]

        outs = vmap(push)(basis.reshape(-1, *x.shape))
        parts = (2,) if len(units) == 2 else ()
        columns.append(
            [np.moveaxis(np.asarray(y), 0, -1).reshape(y.shape[1:] + x.shape + parts) for y in outs]
        )
    return [list(row) for row in zip(*columns)]


def _as_one(
    f: Callable[..., Any], s: Setting, out: np.ndarray, j: int, value: np.ndarray, error: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray | None]:
    """The derivatives in the two parts of a complex argument as one complex derivative."""
    if s.primals[j].dtype.kind != "c":
        return value, error
    real, imag = value[..., 0], value[..., 1]
    spread = None if error is None else error.sum(-1)
    if is_inexact(out.dtype) and out.dtype.kind != "c":
        return real - 1j * imag, spread
    if not np.allclose(imag, 1j * real, rtol=1e-5, atol=1e-5):
        raise ArgumentError(
            f"derivative_is_right: {name_of(f)} is complex and not holomorphic in {s.names[s.active[j]]}, so that no "
            "one number is its derivative. Test its real and its imaginary part"
        )
    return real, spread

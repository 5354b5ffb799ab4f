"""A law for rules that are wrong in single precision alone, which points in double precision do not show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..api.derivatives import vjp
from ..core import run_quietly
from ..core.values import ArrayLike
from ..frontend.checked import checked
from .report import Margin
from .setting import Setting, Wrt, proving

_SINGLE = {"float64": np.dtype(np.float32), "complex128": np.dtype(np.complex64)}
#: How many times the change of a gradient between neighbours in single precision its error may be.
_AMPLIFIED = 64
_NEIGHBOURS = 3


@checked
def single_precision_agrees(
    f: Callable[..., Any],
    *args: ArrayLike,
    rng: int = 0,
    wrt: Wrt = None,
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """Gradients in single precision are those in double precision, up to its rounding.

    Both are at the same point, whose numbers are rounded. What rounding may change is measured: as the largest change
    of the gradient, in double precision, between neighbours of single precision. A function that takes no single
    precision, or whose values or gradients overflow in it, has no such law; nor one whose arguments are not double.
    """
    title = "gradients in single precision = in double"
    with proving(title, "single_precision_agrees", f, args, rng, wrt) as s:
        weights = s.like(s.values)
        if not all(x.dtype.name in _SINGLE for x in s.primals):
            return
        narrow = [x.astype(_SINGLE[x.dtype.name]) for x in s.primals]
        wide = [x.astype(y.dtype) for x, y in zip(narrow, s.primals)]
        expected = _gradients(s, wide, weights)
        found = _in_single_precision(s, narrow, weights)
        if found is None:
            return
        spread = [np.zeros(g.shape) for g in expected]
        for _ in range(_NEIGHBOURS):
            near = [x * (1 + 2.0**-23 * s.random.uniform(-1, 1, x.shape)) for x in wide]
            for most, g, own in zip(spread, _gradients(s, near, weights), expected):
                np.fmax(most, np.abs(g - own), out=most)
        for k, (got, own, most) in enumerate(zip(found, expected, spread)):
            size = float(np.abs(own[np.isfinite(own)]).max(initial=0))
            tolerance = Margin(
                1e-3 if rtol is None else rtol, 1e-3 * max(1.0, size) if atol is None else atol
            )
            where = f"gradient in {s.names[s.active[k]]}"
            known = np.isfinite(got) & np.isfinite(own) & np.isfinite(most)
            names = ("in single precision it is", "in double")
            s.report.close(
                where,
                np.where(known, got, 0.0),
                np.where(known, own, 0.0),
                tolerance,
                error=_AMPLIFIED * np.where(known, most, 0.0),
                names=names,
            )


def _gradients(s: Setting, x: Sequence[np.ndarray], weights: Sequence[np.ndarray]) -> list[np.ndarray]:
    return run_quietly(lambda: [np.asarray(g) for g in vjp(s.smooth, *x)[1](tuple(weights))])


def _in_single_precision(
    s: Setting, x: Sequence[np.ndarray], weights: Sequence[np.ndarray]
) -> list[np.ndarray] | None:
    """The gradients there; None if the function is not one of single precision, or overflows."""
    try:
        outs = s.evaluate(x)
        if [y.shape for y in outs] != [w.shape for w in weights] or not all(
            np.isfinite(y).all() for y in outs
        ):
            return None
        return _gradients(s, x, [w.astype(y.dtype) for w, y in zip(weights, outs)])
    except Exception:  # whatever it raises at numbers that it does not take
        return None

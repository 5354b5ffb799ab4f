"""Discrete cosine and sine transforms of types 1 to 4: dct.

The matrices are those of SciPy (Makhoul, IEEE Trans. ASSP 28, 1980). With `orthogonalize`, types 1 and 4 are symmetric,
and types 2 and 3 are transposes of each other. Without, the terms at the ends of an axis count half as much in one
direction, which the transpose makes up for. There is no kernel rule: SciPy's pocketfft runs between kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core import Aval, Linear, Primitive
from ..core.errors import ArgumentValueError, DtypeError, ShapeError
from ..core.libraries import scipy
from .axes import check_axes
from .elementwise.arithmetic import eq_p, mul_p, select_p
from .elementwise.bits import or_p
from .structure.linear import linear_jvp, move_axis, shape_of
from .structure.shape import iota

#: The type whose matrix is the transpose, up to weights at the ends.
TRANSPOSED = {1: 1, 2: 3, 3: 2, 4: 4}


def _abstract(
    x: Aval, *, kind: str, type: int, axes: tuple[int, ...], norm: str, orthogonalize: bool
) -> Aval:
    if x.dtype.kind not in "fc":
        raise DtypeError(
            f"{kind}: expected float or complex numbers, got {x.dtype}; convert them with .astype"
        )
    check_axes(kind, axes, x.shape)
    least = 2 if (kind, type) == ("dct", 1) else 1
    for d in axes:
        if x.shape[d] < least:
            raise ArgumentValueError(
                f"{kind}: type {type} needs at least {least} points along an axis, got {x.shape[d]}"
            )
    if not axes:
        raise ShapeError(f"{kind}: axes must name at least one axis")
    return x.strong()


def _impl(x: Any, *, kind: str, **params: Any) -> np.ndarray:
    transform = getattr(scipy.fft, f"{kind}n")
    if x.dtype.kind == "c":  # of complex numbers, SciPy ignores `orthogonalize`
        out = np.empty_like(x)
        out.real, out.imag = transform(x.real, **params), transform(x.imag, **params)
        return out
    return np.asarray(transform(x, **params))


def _weighted(x: Any, kind: str, type: int, axes: tuple[int, ...], factor: float) -> Any:
    """Multiply the ends of each axis that occur once in the periodic extension: for type 1 both, else one."""
    number = x.dtype.type
    for d in axes:
        n = shape_of(x)[d]
        k = iota(tuple([n if e == d else 1 for e in range(len(shape_of(x)))]), d)
        end = eq_p.bind(k, np.int64(0 if kind == "dct" else n - 1))
        if type == 1:
            end = or_p.bind(end, eq_p.bind(k, np.int64(n - 1)))
        x = mul_p.bind(x, select_p.bind(end, number(factor), number(1)))
    return x


def _transpose(
    ct: Any, x: Linear, *, kind: str, type: int, axes: tuple[int, ...], norm: str, orthogonalize: bool
) -> list[Any]:
    same = {"kind": kind, "axes": axes, "norm": norm, "orthogonalize": orthogonalize}
    lopsided = not orthogonalize and (type in (2, 3) or (kind, type) == ("dct", 1))
    if lopsided and type != 3:
        ct = _weighted(ct, kind, type, axes, 2.0)
    back = dct_p.bind(ct, type=TRANSPOSED[type], **same)
    return [_weighted(back, kind, type, axes, 0.5) if lopsided and type != 2 else back]


def _batch(
    size: int, args: Sequence[Any], dims: Sequence[int], *, axes: tuple[int, ...], **params: Any
) -> tuple[Any, int]:
    x = move_axis(args[0], dims[0], 0)
    return dct_p.bind(x, axes=tuple([d + 1 for d in axes]), **params), 0


dct_p: Primitive = Primitive(
    "dct",
    _abstract,
    _impl,
    jvp=linear_jvp(lambda: dct_p),
    linear=True,
    transpose=_transpose,
    batch=_batch,
)

"""Discrete Fourier transforms along any axes: one primitive with four kinds.

With ``w = exp(-2 pi i / n)`` along each axis: ``fft`` is ``y_k = sum_j x_j w^(jk)``, ``rfft`` returns its first
``n//2 + 1`` outputs for a real `x`, ``ifft`` and ``irfft`` are the inverses. As in NumPy, `norm` says which direction
carries the factor ``1/n`` (or that both carry its square root). It has no kernel rule: SciPy's pocketfft runs
between kernels, or its successor ducc0 where that is installed, which takes half to nine tenths of the time (Reinecke,
https://gitlab.mpcdf.mpg.de/mtr/ducc), and writes to memory that is there, in loops to the kernel's.

The cosine and sine transforms of types 1 to 4, `dct`, have the matrices of SciPy (Makhoul, IEEE Trans. ASSP 28, 1980).
With `orthogonalize`, types 1 and 4 are symmetric, and types 2 and 3 are transposes of each other. Without, the terms at
the ends of an axis count half as much in one direction, which the transpose makes up for.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import log2, prod
from typing import Any

import numpy as np

from ..core import Aval, Linear, Primitive, Workload, complex_dtype, dtype_kind, is_inexact, real_dtype
from ..core.values import ArrayLike, Param, Params, Value
from ..errors import ArgumentValueError, DtypeError, ShapeError
from ..runtime.config import config
from ..runtime.libraries import ducc0, has_ducc0, scipy
from .axes import check_axes
from .elementwise.arithmetic import eq_p, ge_p, le_p, mul_p, select_p
from .elementwise.bits import and_p, or_p
from .elementwise.complexes import conj_p, real_p
from .structure.linear import linear_jvp, move_axis, shape_of
from .structure.shape import iota

#: The norm that gives the opposite direction the factor that this one has.
SWAPPED = {"backward": "forward", "ortho": "ortho", "forward": "backward"}

#: The elements for which a thread is worth its start.
SHARE = 1 << 14


def _abstract(x: Aval, *, kind: str, axes: tuple[int, ...], lengths: tuple[int, ...], norm: str) -> Aval:
    dtype_kinds = "f" if kind == "rfft" else "c" if kind == "irfft" else "fc"
    if dtype_kind(x.dtype) not in dtype_kinds:
        need = {"f": "float", "c": "complex"}.get(dtype_kinds, "float or complex")
        raise DtypeError(f"{kind}: expected {need} numbers, got {x.dtype}; convert them with .astype")
    if not axes:
        raise ShapeError(f"{kind}: axes must name at least one axis")
    check_axes(kind, axes, x.shape)
    if any(n < 1 for n in lengths):
        raise ArgumentValueError(f"{kind}: lengths must be at least 1, got {lengths}")
    half = (*lengths[:-1], lengths[-1] // 2 + 1)
    before, after = {"rfft": (lengths, half), "irfft": (half, lengths)}.get(kind, (lengths, lengths))
    extents = tuple([x.shape[d] for d in axes])
    if extents != before:
        raise ShapeError(
            f"{kind}: an array of shape {x.shape} has extents {extents} along axes {axes}, where the lengths "
            f"{lengths} require {before}"
        )
    shape = list(x.shape)
    for d, n in zip(axes, after):
        shape[d] = n
    return Aval(tuple(shape), real_dtype(x.dtype) if kind == "irfft" else complex_dtype(x.dtype))


def _impl(x: Value, *, kind: str, axes: tuple[int, ...], lengths: tuple[int, ...], norm: str) -> np.ndarray:
    if _is_for_ducc0(x):
        return _by_ducc0(x, kind, axes, lengths, norm)
    # SciPy's, not NumPy's: as exact, and up to four times as fast in single precision.
    return getattr(scipy.fft, f"{kind}n")(x, s=lengths, axes=axes, norm=norm, workers=_workers(x))


def _into(arrays: Sequence[np.ndarray], outs: Sequence[np.ndarray], **params: Any) -> None:
    (x,), (out,) = arrays, outs
    if _is_for_ducc0(x):
        _by_ducc0(x, **params, out=out)
    else:
        np.copyto(out, _impl(x, **params))


def _is_for_ducc0(x: Value) -> bool:
    return has_ducc0() and x.dtype.char in "fdFD" and x.size > 0


def _by_ducc0(
    x: Value,
    kind: str,
    axes: tuple[int, ...],
    lengths: tuple[int, ...],
    norm: str,
    out: np.ndarray | None = None,
) -> np.ndarray:
    x = np.ascontiguousarray(x)  # the order of the axes follows from strides, and some bits from that order
    forward = kind in ("fft", "rfft")
    inorm = 1 if norm == "ortho" else 2 if (norm == "forward") == forward else 0
    options: Params = {
        "axes": axes,
        "forward": forward,
        "inorm": inorm,
        "nthreads": _workers(x),
        "out": out,
    }
    if kind == "rfft":
        return ducc0.fft.r2c(x, **options)
    if kind == "irfft":
        return ducc0.fft.c2r(x, lastsize=lengths[-1], **options)
    return ducc0.fft.c2c(x, **options)


def _workers(x: Value) -> int:
    """How many threads transform rows; each transform is one thread's, so they alter no bit."""
    return max(min(config.num_threads, x.size // SHARE), 1)


def _transpose(
    ct: Value, x: Linear, *, kind: str, axes: tuple[int, ...], lengths: tuple[int, ...], norm: str
) -> list[Value | None]:
    if kind in ("fft", "ifft"):  # symmetric matrices
        back = fft_p.bind(ct, kind=kind, axes=axes, lengths=lengths, norm=norm)
        return [back if x.aval.dtype.kind == "c" else real_p.bind(back)]
    other = {"axes": axes, "lengths": lengths, "norm": SWAPPED[norm]}
    if kind == "rfft":
        # x_j <- Re sum_k ct_k w^(jk) over half of the k: irfft counts all but the ends twice.
        halved = mul_p.bind(conj_p.bind(ct), _weights(ct, axes, lengths, 0.5))
        return [fft_p.bind(halved, kind="irfft", **other)]
    spectrum = fft_p.bind(ct, kind="rfft", **other)
    return [mul_p.bind(conj_p.bind(spectrum), _weights(spectrum, axes, lengths, 2.0))]


def _weights(z: ArrayLike, axes: tuple[int, ...], lengths: tuple[int, ...], mirrored: float) -> Any:
    """Return factors along the halved axis: 1 for self-conjugate frequencies, `mirrored` for the others."""
    shape = [1] * len(shape_of(z))
    shape[axes[-1]] = shape_of(z)[axes[-1]]
    k = iota(tuple(shape), axes[-1])
    number = z.dtype.type
    last = (lengths[-1] - 1) // 2
    inside = and_p.bind(ge_p.bind(k, np.int64(1)), le_p.bind(k, np.int64(last)))
    return select_p.bind(inside, number(mirrored), number(1))


def _batch(
    size: int,
    args: Sequence[Value],
    dims: Sequence[int],
    *,
    kind: str,
    axes: tuple[int, ...],
    lengths: tuple[int, ...],
    norm: str,
) -> tuple[Value, int]:
    x = move_axis(args[0], dims[0], 0)
    return fft_p.bind(x, kind=kind, axes=tuple([d + 1 for d in axes]), lengths=lengths, norm=norm), 0


def _work(x: Aval, axes: Sequence[int], lengths: Sequence[int], real: bool) -> Workload:
    """Cooley and Tukey's count: 5 n log2(n) for a transform of n complex numbers, half of it for one of real ones."""
    n = prod(lengths)
    transforms = x.size // max(prod([x.shape[d] for d in axes]), 1)
    return Workload(int(transforms * 5 * n * log2(n)) // (2 if real else 1) if n else 0)


fft_p: Primitive = Primitive(
    "fft",
    _abstract,
    _impl,
    jvp=linear_jvp(lambda: fft_p),
    linear=True,
    transpose=_transpose,
    batch=_batch,
    into=_into if has_ducc0() else None,
    cost=lambda x, *, kind, axes, lengths, **params: _work(x, axes, lengths, kind in ("rfft", "irfft")),
)


# --- cosine and sine transforms --------------------------------------------------------------------------------

#: The type whose matrix is the transpose, up to weights at the ends.
TRANSPOSED = {1: 1, 2: 3, 3: 2, 4: 4}


def _dct_abstract(
    x: Aval, *, kind: str, type: int, axes: tuple[int, ...], norm: str, orthogonalize: bool
) -> Aval:
    if not is_inexact(x.dtype):
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


def _dct_impl(x: Value, *, kind: str, **params: Param) -> np.ndarray:
    transform = partial(getattr(scipy.fft, f"{kind}n"), workers=_workers(x))
    if x.dtype.kind == "c":  # of complex numbers, SciPy ignores `orthogonalize`
        out = np.empty_like(x)
        out.real, out.imag = transform(x.real, **params), transform(x.imag, **params)
        return out
    return np.asarray(transform(x, **params))


def _weighted(x: Value, kind: str, type: int, axes: tuple[int, ...], factor: float) -> Value:
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


def _dct_transpose(
    ct: Value, x: Linear, *, kind: str, type: int, axes: tuple[int, ...], norm: str, orthogonalize: bool
) -> list[Value | None]:
    same = {"kind": kind, "axes": axes, "norm": norm, "orthogonalize": orthogonalize}
    lopsided = not orthogonalize and (type in (2, 3) or (kind, type) == ("dct", 1))
    if lopsided and type != 3:
        ct = _weighted(ct, kind, type, axes, 2.0)
    back = dct_p.bind(ct, type=TRANSPOSED[type], **same)
    return [_weighted(back, kind, type, axes, 0.5) if lopsided and type != 2 else back]


def _dct_batch(
    size: int, args: Sequence[Value], dims: Sequence[int], *, axes: tuple[int, ...], **params: Param
) -> tuple[Value, int]:
    x = move_axis(args[0], dims[0], 0)
    return dct_p.bind(x, axes=tuple([d + 1 for d in axes]), **params), 0


dct_p: Primitive = Primitive(
    "dct",
    _dct_abstract,
    _dct_impl,
    jvp=linear_jvp(lambda: dct_p),
    linear=True,
    transpose=_dct_transpose,
    batch=_dct_batch,
    cost=lambda x, *, axes, **params: _work(x, axes, [x.shape[d] for d in axes], True),
)

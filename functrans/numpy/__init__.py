# ruff: noqa: F401
"""NumPy's functions for arrays and traced values, with NumPy's signatures and dtypes.

``import functrans.numpy as fnp``. Results are `Array`, an immutable ndarray. NumPy's own functions also work on traced
values: ``np.sum(t)`` calls the function here.
"""

from __future__ import annotations

from types import ModuleType as _ModuleType

import numpy as np

# fmt: off
# isort: off
from ..arrays.array import Array as ndarray
from ..core.operators import operators as _operators
from ..runtime.module_getattr import lazy_import as _lazy_import
from ..runtime.module_getattr import module_attributes as _module_attributes
from ..runtime.module_getattr import on_demand as _on_demand
from .registered import Registered as _Registered

with _on_demand(globals()) as _later:
    from ..primitives.products.matmul import matmul, matvec, vecdot, vecmat
    from ..primitives.ufuncs import (
        absolute, add, arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh, bitwise_and, bitwise_or,
        bitwise_xor, cbrt, ceil, conjugate, copysign, cos, cosh, deg2rad, degrees, divide, divmod, equal,
        exp, exp2, expm1, fabs, float_power, floor, floor_divide, fmax, fmin, fmod, gcd, greater,
        greater_equal, heaviside, hypot, invert, isfinite, isinf, isnan, lcm, ldexp, left_shift, less,
        less_equal, log, log1p, log2, log10, logaddexp, logaddexp2, logical_and, logical_not, logical_or,
        logical_xor, maximum, minimum, mod, modf, multiply, negative, nextafter, not_equal, positive, power,
        rad2deg, radians, reciprocal, remainder, right_shift, rint, sign, signbit, sin, sinh, spacing, sqrt,
        square, subtract, tan, tanh, true_divide, trunc,
    )
    from . import fft, linalg
    from .calling import apply_along_axis, apply_over_axes, choose, fromfunction, piecewise, vectorize
    from .custom_ufuncs import frompyfunc, ufunc
    from .creation.filled import (
        array, asarray, astype, copy, empty, empty_like, eye, full, full_like, identity, ones, ones_like,
        tri, zeros, zeros_like,
    )
    from .creation.grids import block, c_, mgrid, ogrid, r_
    from .creation.ranges import arange, geomspace, indices, linspace, logspace, meshgrid
    from .elementwise.packing import bitwise_count, frexp, packbits, unpackbits
    from .elementwise.selection import (
        allclose, angle, around, array_equal, array_equiv, clip, fix, imag, isclose, iscomplex, isneginf,
        isposinf, isreal, nan_to_num, real, round, select, where,
    )
    from .indexing.nonzero import argwhere, compress, extract, flatnonzero, nonzero
    from .indexing.positions import (
        diag_indices, diag_indices_from, ix_, mask_indices, ravel_multi_index, tril_indices,
        tril_indices_from, triu_indices, triu_indices_from, unravel_index,
    )
    from .indexing.take import diag, diagflat, diagonal, take, take_along_axis, trace, tril, triu
    from .indexing.writing import fill_diagonal, place, put, put_along_axis, putmask
    from .polynomials import (
        poly, polyadd, polyder, polydiv, polyfit, polyint, polymul, polysub, polyval, roots, vander,
    )
    from .products import cross, dot, einsum, einsum_path, inner, kron, outer, tensordot, vdot
    from .reductions.cumulative import (
        cumprod, cumsum, cumulative_prod, cumulative_sum, nancumprod, nancumsum,
    )
    from .reductions.nanreductions import (
        nanargmax, nanargmin, nanmax, nanmean, nanmin, nanprod, nanstd, nansum, nanvar,
    )
    from .reductions.reductions import (
        all, amax, amin, any, argmax, argmin, count_nonzero, max, min, prod, ptp, sum,
    )
    from .shaping.editing import delete, insert, resize, trim_zeros
    from .shaping.joining import (
        append, array_split, column_stack, concat, concatenate, dsplit, dstack, hsplit, hstack, split, stack,
        unstack, vsplit, vstack,
    )
    from .shaping.moving import flip, fliplr, flipud, repeat, roll, rot90, tile
    from .shaping.padding import pad
    from .shaping.reshaping import (
        atleast_1d, atleast_2d, atleast_3d, broadcast_arrays, broadcast_shapes, broadcast_to, expand_dims,
        matrix_transpose, moveaxis, permute_dims, ravel, reshape, rollaxis, squeeze, swapaxes, transpose,
    )
    from .signal.differences import diff, ediff1d, gradient, trapezoid
    from .signal.sequences import convolve, correlate, interp, unwrap
    from .signal.windows import bartlett, blackman, hamming, hanning, i0, kaiser, sinc
    from .sorting.sets import (
        intersect1d, isin, setdiff1d, setxor1d, union1d, unique, unique_all, unique_counts, unique_inverse,
        unique_values,
    )
    from .sorting.sorting import (
        argpartition, argsort, digitize, lexsort, partition, searchsorted, sort, sort_complex,
    )
    from .standard import (
        array_repr, array_str, asanyarray, ascontiguousarray, common_type, from_dlpack, frombuffer, fromfile, fromiter,
        fromstring, load, may_share_memory, min_scalar_type, real_if_close, shares_memory,
    )
    from .statistics.averages import average, corrcoef, cov, mean, std, var
    from .statistics.histograms import bincount, histogram, histogram2d, histogram_bin_edges, histogramdd
    from .statistics.medians import median, nanmedian
    from .statistics.quantiles import nanpercentile, nanquantile, percentile, quantile
    from .types import (
        can_cast, finfo, iscomplexobj, isdtype, isrealobj, isscalar, issubdtype, ndim, promote_types, result_type,
        shape, size,
    )
    # Other names of the same functions.
    from ..primitives.ufuncs import (
        absolute as abs, arccos as acos, arccosh as acosh, arcsin as asin, arcsinh as asinh, arctan as atan,
        arctan2 as atan2, arctanh as atanh, conjugate as conj, invert as bitwise_invert, invert as bitwise_not,
        left_shift as bitwise_left_shift, power as pow, right_shift as bitwise_right_shift,
    )
    # Types of numbers.
    from .scalar_types import (
        bool_, bool_ as bool, complex64, complex64 as csingle, complex128, complex128 as cdouble,
        complex128 as complex_, float16, float16 as half, float32, float32 as single, float64,
        float64 as double, float64 as float_, int8, int16, int32, int64, int64 as int_, uint8, uint16,
        uint32, uint64, uint64 as uint,
    )
# isort: on
# fmt: on

_operators.load = _Registered(_later)

# --- what is NumPy's own ------------------------------------------------------------------------------------

pi, e, euler_gamma, inf, nan, newaxis = np.pi, np.e, np.euler_gamma, np.inf, np.nan, np.newaxis
character, flexible, object_, ComplexWarning = (
    np.character,
    np.flexible,
    np.object_,
    np.exceptions.ComplexWarning,
)
number, inexact, floating, complexfloating = np.number, np.inexact, np.floating, np.complexfloating
integer, signedinteger, unsignedinteger, generic = (
    np.integer,
    np.signedinteger,
    np.unsignedinteger,
    np.generic,
)
dtype, iinfo = np.dtype, np.iinfo
s_, index_exp = np.s_, np.index_exp
set_printoptions, get_printoptions, printoptions = np.set_printoptions, np.get_printoptions, np.printoptions
iterable, errstate, save, savez = np.iterable, np.errstate, np.save, np.savez
__array_api_version__ = np.__array_api_version__
if hasattr(np, "__array_namespace_info__"):  # since NumPy 2.1
    __array_namespace_info__ = np.__array_namespace_info__

__all__ = [
    name
    for name, value in {**_later.homes, **globals()}.items()
    if not (name.startswith("_") or name == "annotations" or isinstance(value, _ModuleType))
]
_scalar_types = _lazy_import("functrans.numpy.scalar_types")
__getattr__, __dir__ = _module_attributes(
    "functrans.numpy",
    globals(),
    {
        "random": "Write functrans.random, whose functions take a key, or draw with numpy.random outside the function",
        "matrix": "functrans has no matrix class: write array, and @ for products",
        "poly1d": "Write coefficients as arrays, and polyval(p, x), polyadd, polymul, polyder",
        "copyto": "Arrays are immutable: write broadcast_to(v, x.shape), or where(mask, v, x)",
        **dict.fromkeys(
            ("int1", "uint1"), "Integers of one bit are not supported: use bool_, or int8 and uint8"
        ),
        **dict.fromkeys(
            ("int2", "uint2", "int4", "uint4"), "Integers of so few bits are not supported: use int8 or uint8"
        ),
        "longdouble": "longdouble is not supported: use float64",
    },
    later=_later,
    further=lambda name: _scalar_types.low_scalar_type(name),
)

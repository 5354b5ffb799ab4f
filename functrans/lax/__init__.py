# ruff: noqa: F401
"""``functrans.lax``: the operations themselves, under JAX's names.

Unlike `functrans.numpy` they do not promote: operands must have one dtype (Python numbers get it). Only elementwise
operations broadcast, and only extents of 1: operands have equally many axes, or none. Arrays and dtypes are NumPy's.

Examples
--------
>>> from functrans import lax
>>> import numpy as np
>>> lax.mul(np.array([1.0, 2.0]), 3.0)
Array([3., 6.])
"""

# fmt: off
# isort: off
from ..runtime.module_getattr import lazy_import as _lazy_import
from ..runtime.module_getattr import module_attributes as _module_attributes
from ..runtime.module_getattr import on_demand as _on_demand

with _on_demand(globals()) as _later:
    from . import linalg
    from .arrays import (
        broadcast, broadcast_in_dim, broadcast_shapes, broadcasted_iota, collapse, concatenate,
        expand_dims, full, full_like, iota, pad, reshape, rev, squeeze, transpose, zeros_like_array,
    )
    from .slicing import (
        Precision, RoundingMethod, broadcast_to_rank, dynamic_index_in_dim, dynamic_slice,
        dynamic_slice_in_dim, dynamic_update_index_in_dim, dynamic_update_slice,
        dynamic_update_slice_in_dim, empty, index_in_dim, optimization_barrier, slice, slice_in_dim,
        split, stack, tile, unstack,
    )
    from .reducing import (
        argmax, argmin, batch_matmul, cumlogsumexp, cummax, cummin, cumprod, cumsum, dot,
        dot_general, reduce_and, reduce_max, reduce_min, reduce_or, reduce_prod, reduce_sum,
    )
    from .ragged import RaggedDotDimensionNumbers, ragged_dot, ragged_dot_general
    from .elementwise import (
        abs, acos, acosh, add, asin, asinh, atan, atan2, atanh, bitwise_and, bitwise_not,
        bitwise_or, bitwise_xor, cbrt, ceil, clamp, complex, conj, convert_element_type, cos, cosh,
        digamma, div, eq, erf, erfc, exp, exp2, expm1, floor, ge, gt, imag, integer_pow, is_finite,
        le, lgamma, log, log1p, logistic, lt, max, min, mul, ne, neg, nextafter, pow, real,
        reciprocal, rem, round, rsqrt, select, select_n, shift_left, shift_right_arithmetic,
        shift_right_logical, sign, sin, sinh, sqrt, square, stop_gradient, sub, tan, tanh,
    )
    from .convolution import (
        ConvDimensionNumbers, conv, conv_dimension_numbers, conv_general_dilated, conv_transpose,
        conv_with_general_padding,
    )
    from .gathering import (
        GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers, gather, index_take,
    )
    from .scattering import (
        scatter, scatter_add, scatter_apply, scatter_max, scatter_min, scatter_mul, scatter_sub,
    )
    from .windows import padtype_to_pads, reduce, reduce_window
    from .bitwise import bitcast_convert_type, clz, mulhi, population_count, reduce_precision, reduce_xor
    from .special import (
        FftType, bessel_i0e, bessel_i1e, betainc, erf_inv, fft, igamma, igamma_grad_a, igammac,
        polygamma, random_gamma_grad, zeta,
    )
    from .sorting import approx_max_k, approx_min_k, sort, sort_key_val, top_k
    from .control_flow.loops import map, scan
    from .control_flow.while_loops import fori_loop, while_loop
    from .control_flow.associative import associative_scan
    from .control_flow.branching import cond, switch
    from .collectives import axis_index, axis_size, pbroadcast, pmax, pmean, pmin, psum
    from .exchanges import all_gather, all_to_all, pcast, ppermute, pshuffle, psum_scatter, pswapaxes, pvary
    from .equations.solving import custom_linear_solve, custom_root
    from .portable import composite, platform_dependent, rng_uniform, with_sharding_constraint
    from .shapes import (
        AccuracyMode, DotDimensionNumbers, Tolerance, broadcast_like, conv_general_permutations,
        conv_general_shape_tuple, conv_shape_tuple, conv_transpose_shape_tuple, dtype,
        reduce_window_shape_tuple, shape_as_value,
    )
    from .patches import conv_general_dilated_local, conv_general_dilated_patches
# isort: on
# fmt: on

__all__ = list(_later.homes)
_primitive_names = _lazy_import("functrans.lax.primitive_names")
__getattr__, __dir__ = _module_attributes(
    "functrans.lax", globals(), later=_later, further=lambda name: _primitive_names.primitive(name)
)

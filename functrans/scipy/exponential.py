"""The exponential of matrices."""

from __future__ import annotations

import math
from functools import partial, reduce
from typing import Any

import numpy as np

from ..core.checked import checked
from ..core.dtypes import INT64
from ..core.trace import concrete
from ..lax.branching import switch
from ..lax.counted import fori_loop
from ..lax.loops import map as map_matrices
from ..primitives.elementwise.arithmetic import (
    convert_element_type_p,
    div_p,
    gt_p,
    max_p,
    mul_p,
    neg_p,
    select_p,
    stop_gradient_p,
    sub_p,
)
from ..primitives.elementwise.complexes import abs_p
from ..primitives.elementwise.exp_log import exp2_p, log2_p
from ..primitives.elementwise.rounding import ceil_p, is_finite_p
from ..primitives.linalg.matrices import check_square, matrix_product
from ..primitives.linalg.solve import solve_p
from ..primitives.operands import finish
from ..primitives.reductions.reduce import reduce_max_p
from ..primitives.structure.create import eye
from ..primitives.structure.linear import (
    add_p,
    broadcast_to,
    dtype_of,
    reduce_sum_p,
    reshape_p,
    shape_of,
)
from .arguments import inexact

_THETAS = {
    3: 1.495585217958292e-2,
    5: 2.539398330063230e-1,
    7: 9.504178996162932e-1,
    9: 2.097847961257068,
    13: 5.371920351148152,
}
"""Largest 1-norm for which the Pade approximant of a degree is exact in double precision (Higham 2005, table 2.3)."""


@checked
def expm(A: Any) -> Any:
    """The exponential of square matrices.

    Parameters
    ----------
    A : array_like, shape (..., n, n)

    Returns
    -------
    Array, shape (..., n, n)

    Notes
    -----
    Scaling and squaring around a Pade approximant (Higham 2005, The scaling and squaring method for the matrix
    exponential revisited), with derivatives of all orders through its operations. The 1-norm determines the degree and
    the number of squarings; for a traced matrix, at run time.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans.scipy.linalg import expm
    >>> expm([[0.0, np.pi], [-np.pi, 0.0]]).round(12)
    Array([[-1.,  0.],
           [-0., -1.]])
    """
    (x,) = inexact("expm", False, A)
    if shape_of(x) in ((), (1,)):  # SciPy treats a number as a matrix of one element
        x = reshape_p.bind(x, shape=(1, 1))
    check_square("expm", x)
    if 0 in shape_of(x):
        return finish(x)
    norm = _norm(x)
    known = concrete(norm)
    if known is None:
        *batch, n, _ = shape_of(x)
        if not batch:
            return finish(_by_norm(x))
        out = map_matrices(_by_norm, reshape_p.bind(x, shape=(math.prod(batch), n, n)))
        return finish(reshape_p.bind(out, shape=(*batch, n, n)))
    steps = _steps(norm)
    largest = np.max(known)
    out = _pade(_scaled(x, steps), next((d for d, theta in _THETAS.items() if not largest > theta), 13))
    most, every = int(np.max(concrete(steps))), np.min(concrete(steps)) == np.max(concrete(steps))
    steps = reshape_p.bind(steps, shape=(*shape_of(steps), 1, 1))
    for i in range(most):
        out = matrix_product(out, out) if every else _squared(out, gt_p.bind(steps, dtype_of(steps).type(i)))
    return finish(out)


def _norm(x: Any) -> Any:
    """The 1-norms of matrices, for decisions only."""
    rank = len(shape_of(x))
    sums = reduce_sum_p.bind(abs_p.bind(stop_gradient_p.bind(x)), axes=(rank - 2,))
    return reduce_max_p.bind(sums, axes=(rank - 2,))


def _steps(norm: Any) -> Any:
    """How often the exponential of the scaled matrix is squared; never where the norm is infinite or NaN."""
    real = dtype_of(norm)
    excess = max_p.bind(div_p.bind(norm, real.type(_THETAS[13])), real.type(1))
    steps = ceil_p.bind(log2_p.bind(excess))
    return select_p.bind(is_finite_p.bind(steps), steps, real.type(0))


def _scaled(x: Any, steps: Any) -> Any:
    scale = convert_element_type_p.bind(exp2_p.bind(neg_p.bind(steps)), dtype=dtype_of(x))
    return mul_p.bind(x, reshape_p.bind(scale, shape=(*shape_of(scale), 1, 1)))


def _by_norm(x: Any) -> Any:
    """The exponential of one matrix whose norm is known only at run time."""
    norm = _norm(x)
    steps, real = _steps(norm), dtype_of(norm)
    above = [gt_p.bind(norm, real.type(theta)) for theta in list(_THETAS.values())[:-1]]
    which = reduce(add_p.bind, [convert_element_type_p.bind(a, dtype=INT64) for a in above])
    out = switch(which, [partial(_pade, degree=d) for d in _THETAS], _scaled(x, steps))
    count = convert_element_type_p.bind(steps, dtype=INT64)
    return fori_loop(0, count, lambda _, y: matrix_product(y, y), out)


def _squared(x: Any, wanted: Any) -> Any:
    """The square where `wanted`; elsewhere the square of zero, so that neither values nor derivatives overflow."""
    wanted = broadcast_to(wanted, shape_of(x))
    safe = select_p.bind(wanted, x, dtype_of(x).type(0))
    return select_p.bind(wanted, matrix_product(safe, safe), x)


def _coefficients(degree: int) -> list[float]:
    """Of the numerator of the diagonal Pade approximant, lowest first, the highest one 1."""
    f, m = math.factorial, degree
    return [float(f(2 * m - k) // (f(k) * f(m - k))) for k in range(m + 1)]


def _pade(x: Any, degree: int) -> Any:
    dtype, c = dtype_of(x), _coefficients(degree)
    unit = eye(shape_of(x)[-1], shape_of(x)[-1], 0, dtype)
    two = matrix_product(x, x)
    powers = [unit, two]
    while len(powers) <= min(degree // 2, 4 if degree < 13 else 3):
        powers.append(matrix_product(powers[-1], two))

    def combined(first: int, chosen: list[Any]) -> Any:
        """Every second coefficient from one on, times even powers."""
        terms = [mul_p.bind(dtype.type(c[first + 2 * i]), power) for i, power in enumerate(chosen)]
        return reduce(add_p.bind, terms)

    odd, even = combined(1, powers), combined(0, powers)
    if degree == 13:
        odd = add_p.bind(matrix_product(powers[3], combined(9, powers[1:])), odd)
        even = add_p.bind(matrix_product(powers[3], combined(8, powers[1:])), even)
    odd = matrix_product(x, odd)
    return solve_p.bind(sub_p.bind(even, odd), add_p.bind(even, odd), on_error="nan", name="expm")

"""``functrans.scipy.cluster.vq``: vector quantization."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import numpy as fnp
from ...core import DtypeError, ShapeError
from ...core.values import ArrayLike, Value
from ...frontend.checked import checked
from ...primitives import ops
from ...primitives.ops import dtype_of, finish, shape_of
from ...runtime.module_getattr import module_attributes as _module_attributes
from ..linalg.arguments import inexact

__all__ = ["vq"]
__getattr__, __dir__ = _module_attributes("functrans.scipy.cluster.vq", globals())


@checked
def vq(obs: ArrayLike, code_book: Any, check_finite: bool = True) -> tuple[Any, Any]:
    """The nearest code to each observation.

    Parameters
    ----------
    obs : array_like, shape (m, n) or (m,)
        The observations, one in each row; numbers, if there is one axis.
    code_book : array_like, shape (k, n) or (k,)
        The codes.
    check_finite : bool
        Whether to raise an error for NaN and infinities, where numbers are known.

    Returns
    -------
    code : Array of int32, shape (m,)
        The row of the nearest code; of several, the first.
    dist : Array, shape (m,)
        Its Euclidean distance.

    Raises
    ------
    ShapeError
        If the shapes do not match, or the code book is empty.
    ArgumentValueError
        If numbers are not finite.

    Notes
    -----
    The distances are differentiable in both arguments, except where a distance is 0 or two codes are equally near.

    Examples
    --------
    >>> from functrans.scipy.cluster.vq import vq
    >>> vq([[1.1, 2.1], [5.9, 4.8]], [[1.0, 2.0], [6.0, 5.0]])
    (Array([0, 1], dtype=int32), Array([0.14142136, 0.2236068 ]))
    """
    x, codes = (finish(v) for v in inexact("vq", check_finite, obs, code_book))
    if dtype_of(x).kind == "c":
        raise DtypeError(f"vq: obs and code_book must be real, got {dtype_of(x)}")
    a, b = shape_of(x), shape_of(codes)
    if len(a) != len(b) or len(a) not in (1, 2):
        raise ShapeError(f"vq: obs and code_book must both have one or two axes, got shapes {a} and {b}")
    if len(a) == 1:
        x, codes = x[:, None], codes[:, None]
    if a[1:] != b[1:] or not b[0]:
        raise ShapeError(
            f"vq: code_book of shape {b} must have at least one row, and the columns of obs, of shape {a}"
        )
    code = fnp.argmin(
        _squares(*(finish(ops.stop_gradient_p.bind(ops.operand(v, "vq"))) for v in (x, codes))), 1
    )
    return fnp.astype(code, np.int32), fnp.linalg.norm(x - fnp.take(codes, code, 0, mode="clip"), axis=1)


def _squares(x: Value, codes: Any) -> Value:
    """The squared distances, shape (m, k); column by column, so that no array has three axes."""
    total: ArrayLike = None
    if x.shape[1] > 8:
        return fnp.sum((x[:, None, :] - codes[None, :, :]) ** 2, -1)
    for i in range(x.shape[1]):
        term = (x[:, i, None] - codes[None, :, i]) ** 2
        total = term if total is None else total + term
    return fnp.zeros((x.shape[0], codes.shape[0]), x.dtype) if total is None else total

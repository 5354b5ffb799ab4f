"""``functrans.numpy.linalg``: NumPy's linear algebra, batched and differentiable."""

from ...errors import LinAlgError
from ...primitives.products.matmul import matmul, vecdot
from ...runtime.module_getattr import module_attributes as _module_attributes
from ..products import cross, tensordot
from ..shaping.reshaping import matrix_transpose
from .least_squares import cond, lstsq, matrix_rank, pinv
from .norms import QRResult, cholesky, matrix_norm, norm, qr, vector_norm
from .products import diagonal, multi_dot, outer, trace
from .spectra import (
    EighResult,
    EigResult,
    SVDResult,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    svd,
    svdvals,
)
from .systems import SlogdetResult, det, inv, matrix_power, slogdet, solve, tensorinv, tensorsolve

__all__ = [
    "EigResult", "EighResult", "LinAlgError", "QRResult", "SVDResult", "SlogdetResult", "cholesky",
    "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq", "matmul",
    "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot", "norm", "outer",
    "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "tensorinv", "tensorsolve",
    "trace", "vecdot", "vector_norm",
]  # fmt: skip

__getattr__, __dir__ = _module_attributes("functrans.numpy.linalg", globals())

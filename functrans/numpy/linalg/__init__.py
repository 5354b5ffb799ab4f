"""``functrans.numpy.linalg``: NumPy's linear algebra, in batches and with derivatives."""

from ...core.errors import LinAlgError
from ...primitives.products import matmul, vecdot
from ..products import cross, tensordot
from ..shaping import matrix_transpose
from .factors import cholesky
from .least_squares import cond, lstsq, matrix_rank, pinv
from .norms import matrix_norm, norm, vector_norm
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
from .systems import matrix_power

__all__ = [
    "EigResult", "EighResult", "LinAlgError", "SVDResult", "cholesky", "cond", "cross", "diagonal",
    "eig", "eigh", "eigvals", "eigvalsh", "lstsq", "matmul", "matrix_norm", "matrix_power",
    "matrix_rank", "matrix_transpose", "multi_dot", "norm", "outer", "pinv", "svd", "svdvals",
    "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip

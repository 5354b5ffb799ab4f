"""``functrans.numpy.linalg``: NumPy's linear algebra, in batches and with derivatives."""

from ...core.errors import LinAlgError
from ...primitives.products import matmul, vecdot
from ..products import cross, tensordot
from ..shaping import matrix_transpose
from .factors import cholesky
from .norms import matrix_norm, norm, vector_norm
from .products import diagonal, multi_dot, outer, trace
from .systems import matrix_power

__all__ = [
    "LinAlgError", "cholesky", "cross", "diagonal", "matmul", "matrix_norm", "matrix_power",
    "matrix_transpose", "multi_dot", "norm", "outer", "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip

"""``functrans.scipy.linalg``: SciPy's names for linear algebra, in batches and with derivatives.

`overwrite_a` and `overwrite_b` are ignored: arguments never change. `check_finite` checks numbers that are known;
inside compiled functions NaN propagates.
"""

from ..core.module_getattr import module_attributes as _module_attributes
from .factors import cho_factor, cho_solve, cholesky, lu, lu_factor, lu_solve, qr
from .matrix_functions import block_diag, expm, solve_sylvester, sqrtm, toeplitz
from .spectra import eigh, eigvalsh, pinv, polar, svd, svdvals
from .systems import det, inv, solve, solve_triangular

__all__ = [
    "block_diag", "cho_factor", "cho_solve", "cholesky", "det", "eigh", "eigvalsh", "expm", "inv", "lu", "lu_factor",
    "lu_solve", "pinv", "polar", "qr", "solve", "solve_sylvester", "solve_triangular", "sqrtm",
    "svd", "svdvals", "toeplitz",
]  # fmt: skip

__getattr__, __dir__ = _module_attributes("functrans.scipy.linalg", globals())

"""``functrans.scipy.linalg``: SciPy's names for linear algebra, in batches and with derivatives.

`overwrite_a` and `overwrite_b` are ignored: arguments never change. `check_finite` checks numbers that are known;
inside compiled functions NaN propagates.
"""

from ...runtime.module_getattr import module_attributes as _module_attributes
from .condensed import eigh_tridiagonal, eigvalsh_tridiagonal, hessenberg, qr_multiply, rsf2csf, schur
from .factors import cho_factor, cho_solve, cholesky, lu, lu_factor, lu_solve, qr
from .matrix_calculus import expm_frechet, funm
from .matrix_functions import block_diag, expm, solve_sylvester, sqrtm, toeplitz
from .special_matrices import (
    circulant,
    companion,
    convolution_matrix,
    dft,
    fiedler,
    fiedler_companion,
    hadamard,
    hankel,
    helmert,
    hilbert,
    invhilbert,
    invpascal,
    leslie,
    pascal,
)
from .spectra import eigh, eigvalsh, pinv, polar, svd, svdvals
from .systems import det, inv, solve, solve_triangular

__all__ = [
    "block_diag", "cho_factor", "cho_solve", "cholesky", "circulant", "companion", "convolution_matrix", "det", "dft",
    "eigh", "eigh_tridiagonal", "eigvalsh", "eigvalsh_tridiagonal", "expm", "expm_frechet", "fiedler",
    "fiedler_companion", "funm", "hadamard", "hankel", "helmert", "hessenberg", "hilbert", "inv", "invhilbert",
    "invpascal", "leslie", "lu", "lu_factor", "lu_solve", "pascal", "pinv", "polar", "qr", "qr_multiply", "rsf2csf",
    "schur", "solve", "solve_sylvester", "solve_triangular", "sqrtm", "svd", "svdvals", "toeplitz",
]  # fmt: skip

__getattr__, __dir__ = _module_attributes("functrans.scipy.linalg", globals())

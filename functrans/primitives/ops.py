"""Every operation, and the helpers to call them, in one place for the namespaces above: ``ops.add_p``, ``operand``.

To write a primitive, import from the files of the operations instead.
"""

# ruff: noqa: F401
from ..runtime.module_getattr import on_demand
from .axes import *
from .elementwise.arithmetic import *
from .elementwise.bits import *
from .elementwise.complexes import *
from .elementwise.composed import *
from .elementwise.exp_log import *
from .elementwise.identities import *
from .elementwise.rounding import *
from .elementwise.trig import *
from .families import *
from .fft import *
from .indexing.expressions import *
from .indexing.gather_scatter import *
from .indexing.index_entries import *
from .indexing.index_shapes import *
from .indexing.item import *
from .indexing.placed_windows import *
from .indexing.scatter_folds import *
from .operands import *
from .products.dot import *
from .products.matmul import *
from .promotion import *
from .reductions.cumulative import *
from .reductions.reduce import *
from .sorting.sort import *
from .special.functions import *
from .structure.dynamic import *
from .structure.linear import *
from .structure.shape import *
from .ufunc_fronts import *
from .windows.conv import *
from .windows.reduce_window import *
from .windows.window_geometry import *

# Programs without linear algebra load none of it.
# isort: off
# fmt: off
with on_demand(globals()) as later:
    from .linalg.cholesky import cholesky_p
    from .linalg.cofactors import cofactors_p
    from .linalg.condensed import complex_schur_p, hessenberg_p, schur_p, tridiagonal_p
    from .linalg.det import det_p, slogdet_p
    from .linalg.eig import eig_p
    from .linalg.eigh import eigh_p
    from .linalg.least_squares import lstsq_p, pinv_p
    from .linalg.lu import columns_taken, lu_p, permutation_p, rows_taken
    from .linalg.matrices import (
        adjoint, check_matrix, check_square, columns_of, diagonal_of, matrix_product,
        matrix_transpose, rows_of, symmetrized, triangle,
    )
    from .linalg.qr import column_order_p, compact, geqrf_p, householder_product, qr_p, qr_triangle_p
    from .linalg.solve import batch_of_systems, lu_solve_p, solve_p
    from .linalg.spectral import as_column, as_row, cast, column_products, hermitian, real_part
    from .linalg.svd import polar_p, svd_p
    from .linalg.sylvester import solve_sylvester, sqrtm_p, sylvester_p
    from .linalg.triangular import solve, triangular_solve_p
    from .linalg.tridiagonal import eigh_tridiagonal_p, tridiagonal_solve_p
# isort: on
# fmt: on


def __getattr__(name: str) -> object:
    if name in later.homes:
        return later.load(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""Every operation, and the helpers to call them, in one place for the namespaces above: ``ops.add_p``, ``operand``.

To write a primitive, import from the files of the operations instead.
"""

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
from .linalg.cholesky import *
from .linalg.cofactors import *
from .linalg.condensed import *
from .linalg.det import *
from .linalg.eig import *
from .linalg.eigh import *
from .linalg.least_squares import *
from .linalg.lu import *
from .linalg.matrices import *
from .linalg.qr import *
from .linalg.solve import *
from .linalg.spectral import *
from .linalg.svd import *
from .linalg.sylvester import *
from .linalg.triangular import *
from .linalg.tridiagonal import *
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

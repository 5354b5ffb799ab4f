"""First-order primitives, one folder per mathematical family, each record with every rule in sight.

Importing any of them fills the tables of `core.trace.operators`: Python's operators, NumPy's ufuncs and indexing of
tracers.
"""

from . import ufuncs as ufuncs
from .indexing import expressions as expressions
from .products import matmul as matmul

"""First-order primitives, one folder per mathematical family. Each record shows all its rules in one place.

Importing any of them fills the tables of `core.operators`: what Python's operators, NumPy's ufuncs and indexing
do to tracers.
"""

from . import ufuncs as ufuncs
from .indexing import expressions as expressions
from .products import matmul as matmul

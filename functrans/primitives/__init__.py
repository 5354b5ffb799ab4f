"""First-order primitives, one file per mathematical family, each record with every rule in sight.

Importing any of them fills the tables of `core.trace.operators`: Python's operators, NumPy's ufuncs and indexing of
tracers.
"""

from . import indexing as indexing
from . import products as products
from . import ufuncs as ufuncs

"""The special functions that load with the first namespace that has them, as `ops` has the other operations."""

from .special.distribution_functions import *
from .special.from_scipy import *
from .special.incomplete import *

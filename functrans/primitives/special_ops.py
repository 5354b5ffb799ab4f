"""The special functions that load with the first namespace that has them, as `ops` has the other operations."""

from .special.bessel import *
from .special.distribution_functions import *
from .special.error_functions import *
from .special.exponential_integrals import *
from .special.from_scipy import *
from .special.gammas import *
from .special.hypergeometric import *
from .special.incomplete import *
from .special.spherical import *

"""The foundation: avals, jaxprs, primitives, traces, options, errors.

The rooms above import its names from here: ``from ..core import Aval, ShapeError``. Only `config` has the name of its
file, so options come from ``..core.config``.
"""

from .attachment import *
from .aval import *
from .backward_state import *
from .context import *
from .debug_nans import *
from .device import *
from .dtypes import *
from .errors import *
from .evaluation import *
from .guards import *
from .ir import *
from .kernel import *
from .low_precision import *
from .named_axes import *
from .operators import *
from .portable import *
from .primitive import *
from .scalar_functions import *
from .source import *
from .tape import *
from .trace import *
from .tracebacks import *

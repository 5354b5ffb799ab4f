"""The foundation: avals, jaxprs, primitives, traces, options, errors.

The rooms above import its names from here: ``from ..core import Aval, ShapeError``. Only `config` has the name of its
file, so options come from ``..core.config``.
"""

from ..errors import *
from ..errors.source import *
from ..runtime.context import *
from ..runtime.device import *
from ..runtime.guards import *
from ..runtime.portable import *
from ..runtime.tracebacks import *
from .attachment import *
from .aval import *
from .backward_state import *
from .debug_nans import *
from .dtypes import *
from .evaluation import *
from .ir import *
from .jax_dtypes import *
from .kernel import *
from .low_precision import *
from .named_axes import *
from .operators import *
from .primitive import *
from .tape import *
from .trace import *

"""The foundation: avals, dtypes, jaxprs, primitives, traces, the tape of reverse mode, operators of traced values.

The rooms above import its names from here, and those of the two rooms below: ``from ..core import Aval, ShapeError``.
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

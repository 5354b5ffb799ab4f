"""``functrans.lax``: the operations themselves, under JAX's names.

Unlike `functrans.numpy` they do not promote: operands must have one dtype (Python numbers get it). Only elementwise
operations broadcast, and only extents of 1: operands have equally many axes, or none. Arrays and dtypes are NumPy's.

Examples
--------
>>> from functrans import lax
>>> import numpy as np
>>> lax.mul(np.array([1.0, 2.0]), 3.0)
Array([3., 6.])
"""

# fmt: off
# isort: off
from ..runtime.module_getattr import module_attributes as _module_attributes
from . import arrays, bitwise, collectives, convolution, elementwise, exchanges, gathering, linalg, patches
from . import reducing, scattering, shapes, slicing, sorting, special, windows
from .control_flow import associative, branching, loops, while_loops
from .equations import solving
from .arrays import *  # noqa: F403
from .control_flow.associative import *  # noqa: F403
from .bitwise import *  # noqa: F403
from .control_flow.branching import *  # noqa: F403
from .collectives import *  # noqa: F403
from .convolution import *  # noqa: F403
from .elementwise import *  # noqa: F403
from .exchanges import *  # noqa: F403
from .gathering import *  # noqa: F403
from .control_flow.loops import *  # noqa: F403
from .patches import *  # noqa: F403
from .primitive_names import primitive as _primitive
from .reducing import *  # noqa: F403
from .scattering import *  # noqa: F403
from .shapes import *  # noqa: F403
from .slicing import *  # noqa: F403
from .equations.solving import *  # noqa: F403
from .sorting import *  # noqa: F403
from .special import *  # noqa: F403
from .control_flow.while_loops import *  # noqa: F403
from .windows import *  # noqa: F403
# isort: on
# fmt: on

__all__ = ["linalg"]
__all__ += arrays.__all__
__all__ += slicing.__all__
__all__ += reducing.__all__
__all__ += elementwise.__all__
__all__ += convolution.__all__
__all__ += gathering.__all__
__all__ += scattering.__all__
__all__ += windows.__all__
__all__ += bitwise.__all__
__all__ += special.__all__
__all__ += sorting.__all__
__all__ += loops.__all__
__all__ += while_loops.__all__
__all__ += associative.__all__
__all__ += branching.__all__
__all__ += collectives.__all__
__all__ += exchanges.__all__
__all__ += solving.__all__
__all__ += shapes.__all__
__all__ += patches.__all__

__getattr__, __dir__ = _module_attributes("functrans.lax", globals(), further=_primitive)

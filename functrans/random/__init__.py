"""Random numbers from keys: `key`, `split`, and a function for each distribution, with JAX's names and numbers."""

from ..runtime.module_getattr import module_attributes as _module_attributes

# The order is that of the page of functions: see docs/scripts/generate_coverage.py.
# isort: off
# fmt: off
from . import keys, uniforms, normals, inversion, choices, gammas, counts
from .keys import *  # noqa: F403
from .uniforms import *  # noqa: F403
from .normals import *  # noqa: F403
from .inversion import *  # noqa: F403
from .choices import *  # noqa: F403
from .gammas import *  # noqa: F403
from .counts import *  # noqa: F403
# isort: on
# fmt: on

__all__ = []
__all__ += keys.__all__
__all__ += uniforms.__all__
__all__ += normals.__all__
__all__ += inversion.__all__
__all__ += choices.__all__
__all__ += gammas.__all__
__all__ += counts.__all__

__getattr__, __dir__ = _module_attributes("functrans.random", globals())

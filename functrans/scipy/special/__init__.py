"""Functions of `scipy.special` for arrays and traced values.

SciPy's own ufuncs work on traced values too: ``scipy.special.erf(t)`` calls the function defined here.
"""

from ...runtime.module_getattr import module_attributes as _module_attributes
from . import bessel, error_functions, gammas, integrals, reductions
from .bessel import *  # noqa: F403
from .error_functions import *  # noqa: F403
from .gammas import *  # noqa: F403
from .integrals import *  # noqa: F403
from .reductions import *  # noqa: F403

__all__ = []
__all__ += bessel.__all__
__all__ += error_functions.__all__
__all__ += gammas.__all__
__all__ += integrals.__all__
__all__ += reductions.__all__

#: SciPy's names for functions that are in functrans.numpy.
_IN_NUMPY = ("cbrt", "deg2rad", "exp2", "expm1", "log1p", "logaddexp", "rad2deg", "sinc", "sign")
__getattr__, __dir__ = _module_attributes(
    "functrans.scipy.special", globals(), {name: f"Write functrans.numpy.{name}" for name in _IN_NUMPY}
)

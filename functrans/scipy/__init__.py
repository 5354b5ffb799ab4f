"""SciPy's functions for arrays and traced values: `special`, `linalg`, `signal`, `integrate`, `optimize` and others."""

from ..runtime.module_getattr import module_attributes as _module_attributes
from .patched import patch, unpatch

__all__ = [
    "cluster",
    "fft",
    "integrate",
    "interpolate",
    "linalg",
    "ndimage",
    "optimize",
    "patch",
    "signal",
    "sparse",
    "spatial",
    "special",
    "stats",
    "unpatch",
]

__getattr__, __dir__ = _module_attributes(
    "functrans.scipy", globals(), parts=[name for name in __all__ if name not in ("patch", "unpatch")]
)

patch()

"""SciPy's functions for arrays and traced values: `special`, `linalg`, `signal`, `integrate`, `optimize` and others."""

from ..runtime.module_getattr import module_attributes as _module_attributes
from ..runtime.module_getattr import on_demand as _on_demand
from .patched import patch, unpatch

with _on_demand(globals()) as _later:
    from . import (
        cluster,
        fft,
        integrate,
        interpolate,
        linalg,
        ndimage,
        optimize,
        signal,
        sparse,
        spatial,
        special,
        stats,
    )

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

__getattr__, __dir__ = _module_attributes("functrans.scipy", globals(), later=_later)

patch()

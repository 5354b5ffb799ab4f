"""Where the time of a program goes, by the user's own lines: `functrans.profile`, and the names of `jax.profiler`.

Examples
--------
>>> import functrans as ft
>>> import functrans.numpy as fnp
>>> with ft.profile() as p:
...     y = ft.jit(fnp.sin)(1.0)
>>> p.seconds > 0.0
True
"""

from ..runtime.module_getattr import module_attributes as _module_attributes
from .annotations import (
    StepTraceAnnotation,
    TraceAnnotation,
    annotate_function,
    start_trace,
    stop_trace,
    trace,
)
from .session import Profile, profile

__all__ = [
    "Profile", "StepTraceAnnotation", "TraceAnnotation", "annotate_function", "profile", "start_trace", "stop_trace",
    "trace",
]  # fmt: skip
__getattr__, __dir__ = _module_attributes("functrans.profiler", globals())

"""Tools that JAX keeps under ``jax.experimental``: an ODE solver, Taylor mode, checks, calls of Python with effects,
and exchanges between processes.
"""

from ..api.callback import io_callback
from ..runtime.module_getattr import module_attributes as _module_attributes
from ..runtime.module_getattr import on_demand as _on_demand

with _on_demand(globals()) as _later:
    from . import checkify, jet, multihost_utils, ode

__all__ = ["checkify", "io_callback", "jet", "multihost_utils", "ode"]
__getattr__, __dir__ = _module_attributes("functrans.experimental", globals(), later=_later)

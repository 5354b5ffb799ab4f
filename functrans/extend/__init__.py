"""JAX's ``jax.extend`` and ``jax.interpreters``: primitives with rules in registries, for libraries that define such.

In functrans a primitive is one record with all its rules (docs/primitives.md). `core.Primitive` here is such a record,
whose rules are filled in by `ad`, `batching` and `mlir`.
"""

from ..runtime.module_getattr import module_attributes as _module_attributes
from ..runtime.module_getattr import on_demand as _on_demand

with _on_demand(globals()) as _later:
    from . import ad, batching, core, hijax, linear_util, mlir, partial_eval, tracing

__all__ = ["ad", "batching", "core", "hijax", "linear_util", "mlir", "partial_eval", "tracing"]
__getattr__, __dir__ = _module_attributes("functrans.extend", globals(), later=_later)

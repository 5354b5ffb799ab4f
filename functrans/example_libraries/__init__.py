"""Small libraries for examples, with the interface of JAX's: first-order optimisers, and neural networks."""

from ..runtime.module_getattr import module_attributes as _module_attributes
from ..runtime.module_getattr import on_demand as _on_demand

with _on_demand(globals()) as _later:
    from . import optimizers, stax

__all__ = ["optimizers", "stax"]
__getattr__, __dir__ = _module_attributes("functrans.example_libraries", globals(), later=_later)

"""Small libraries for examples, with the interface of JAX's: first-order optimisers, and neural networks."""

from ..runtime.module_getattr import module_attributes as _module_attributes

__all__ = ["optimizers", "stax"]
__getattr__, __dir__ = _module_attributes(
    "functrans.example_libraries", globals(), parts=("optimizers", "stax")
)

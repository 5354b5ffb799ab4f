"""``functrans.image``: images resized, scaled and translated, as in `jax.image`."""

from ..runtime.module_getattr import module_attributes as _module_attributes
from .kernels import ResizeMethod
from .resampling import resize, scale_and_translate

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]

__getattr__, __dir__ = _module_attributes("functrans.image", globals())

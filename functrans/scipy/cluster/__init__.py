"""``functrans.scipy.cluster``: vector quantization, in `vq`."""

from ...runtime.module_getattr import module_attributes as _module_attributes

__all__ = ["vq"]

__getattr__, __dir__ = _module_attributes("functrans.scipy.cluster", globals(), parts=("vq",))

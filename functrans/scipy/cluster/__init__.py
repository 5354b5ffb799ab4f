"""``functrans.scipy.cluster``: vector quantization, in `vq`."""

from ...runtime.module_getattr import module_attributes as _module_attributes
from ...runtime.module_getattr import on_demand as _on_demand

with _on_demand(globals()) as _later:
    from . import vq

__all__ = ["vq"]

__getattr__, __dir__ = _module_attributes("functrans.scipy.cluster", globals(), later=_later)

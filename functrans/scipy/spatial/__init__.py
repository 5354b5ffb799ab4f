"""``functrans.scipy.spatial``: rotations, in `transform`."""

from ...runtime.module_getattr import module_attributes as _module_attributes
from ...runtime.module_getattr import on_demand as _on_demand

with _on_demand(globals()) as _later:
    from . import transform

__all__ = ["transform"]

__getattr__, __dir__ = _module_attributes("functrans.scipy.spatial", globals(), later=_later)

"""``functrans.scipy.spatial``: rotations, in `transform`."""

from ...runtime.module_getattr import module_attributes as _module_attributes

__all__ = ["transform"]

__getattr__, __dir__ = _module_attributes("functrans.scipy.spatial", globals(), parts=("transform",))

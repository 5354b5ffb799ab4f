"""``functrans.scipy.spatial.transform``: rotations in three dimensions, and interpolation between them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import numpy as fnp
from ...core import ArgumentError, ArgumentValueError, ShapeError, concrete
from ...core.values import ArrayLike, PyTree
from ...frontend.checked import checked
from ...frontend.pytree.register import register_pytree_node_class
from ...primitives import ops
from ...runtime.module_getattr import module_attributes as _module_attributes
from .rotation import Rotation

__all__ = ["Rotation", "Slerp"]
__getattr__, __dir__ = _module_attributes("functrans.scipy.spatial.transform", globals())


@register_pytree_node_class
class Slerp:
    """Interpolation of rotations with constant angular velocity between times.

    Parameters
    ----------
    times : array_like, shape (n,)
        Strictly increasing, at least two.
    rotations : Rotation
        An array of `n` rotations.

    Attributes
    ----------
    times, timedelta : Array, shapes (n,) and (n - 1,)
        The times, and their differences.
    rotations : Rotation
        The first ``n - 1``.
    rotvecs : Array, shape (n - 1, 3)
        From each rotation to the next one.

    Raises
    ------
    ArgumentError
        If `rotations` is not a `Rotation`.
    ArgumentValueError
        If times are known not to increase.
    ShapeError
        If times and rotations do not match, or there are fewer than two.

    Notes
    -----
    An instance is a pytree. Differentiable in the rotations, the times, and the times at which it is called. A time
    that is known must be within `times`; beyond them, under `jit`, the first and the last motion continue.

    Examples
    --------
    >>> from functrans.scipy.spatial.transform import Rotation, Slerp
    >>> turn = Slerp([0.0, 2.0], Rotation.from_euler("z", [[0.0], [90.0]], degrees=True))
    >>> turn([0.5, 1.0]).as_rotvec(degrees=True).round(9)
    Array([[ 0. ,  0. , 22.5],
           [ 0. ,  0. , 45. ]])
    """

    @checked
    def __init__(self, times: ArrayLike, rotations: Any):
        if not isinstance(rotations, Rotation):
            raise ArgumentError(f"Slerp: rotations must be a Rotation, got {rotations!r}")
        if len(rotations.shape) != 1 or len(rotations) < 2:
            raise ShapeError(
                f"Slerp: rotations must be at least two, along one axis, got shape {rotations.shape}"
            )
        t = fnp.asarray(times, rotations.quat.dtype)
        if t.shape != rotations.shape:
            raise ShapeError(
                f"Slerp: times must be one for each of {len(rotations)} rotations, got shape {t.shape}"
            )
        self.times, self.timedelta = t, fnp.diff(t)
        known = concrete(ops.operand(self.timedelta, "Slerp"))
        if known is not None and not np.all(known > 0):
            raise ArgumentValueError(f"Slerp: times must be strictly increasing, got {t}")
        self.rotations = rotations[:-1]
        self.rotvecs = (self.rotations.inv() * rotations[1:]).as_rotvec()

    @classmethod
    def init(cls, times: ArrayLike, rotations: Any) -> Slerp:
        """``Slerp(times, rotations)``, under JAX's name."""
        return cls(times, rotations)

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        """The attributes."""
        return (self.times, self.timedelta, self.rotations, self.rotvecs), None

    @classmethod
    def tree_unflatten(cls, aux_data: PyTree, children: Any) -> Slerp:
        """An instance with these attributes, which are not checked."""
        self = object.__new__(cls)
        self.times, self.timedelta, self.rotations, self.rotvecs = children
        return self

    @checked
    def __call__(self, times: Any) -> Rotation:
        """The rotations at some times, a number or an array of shape (m,)."""
        at = fnp.asarray(times, self.times.dtype)
        if at.ndim > 1:
            raise ShapeError(f"Slerp: times must be a number or have one axis, got shape {at.shape}")
        low, high, known = (concrete(ops.operand(v, "Slerp")) for v in (self.times[0], self.times[-1], at))
        if None not in (low, high) and known is not None and not np.all((low <= known) & (known <= high)):
            raise ArgumentValueError(f"Slerp: times must be within {low} and {high}, got {at}")
        i = fnp.clip(fnp.searchsorted(self.times, at) - 1, 0, self.timedelta.shape[0] - 1)
        t0, span, rotvecs, quat = (
            fnp.take(v, i, 0, mode="clip")
            for v in (self.times, self.timedelta, self.rotvecs, self.rotations.quat)
        )
        step = Rotation.from_rotvec(rotvecs * ((at - t0) / span)[..., None])
        return Rotation.tree_unflatten(None, (quat,)) * step

"""What jitted functions offer to code that Numba compiles. `functrans.interop`, which loads when asked, provides it."""

from __future__ import annotations

from typing import Any

from ..core.portable import Portable

_door: list[Any] = []


def set_numba_door(module: Any) -> None:
    """Fill the slot: the module `functrans.interop.jitted_type`, which is above this layer."""
    _door[:] = [module]


class CalledFromNumba(Portable):
    """A jitted function that code compiled by Numba may call."""

    @property
    def _numba_type_(self) -> Any:
        """What Numba makes of the function in code that it compiles."""
        return _door[0].forms_of(self).type

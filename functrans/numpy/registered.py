"""What the tables of `core.operators` lack until the parts of `functrans.numpy` have loaded.

NumPy's functions, ufuncs, methods and attributes act on traced values through these tables, which the parts fill. A
part loads when its own function is used, or when NumPy's function of that name meets a traced value.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ..runtime.module_getattr import OnDemand, load_module

#: The parts that register what no public function of the same name has.
_PARTS: dict[Any, str] = {
    **dict.fromkeys(("T", "mT", "flatten"), "shaping.reshaping"),
    **dict.fromkeys(("conj", "conjugate"), "elementwise.selection"),
    **dict.fromkeys(("item", "itemsize", "nbytes"), "types"),
    **dict.fromkeys(("__array_namespace__", "__dlpack__", "__dlpack_device__", "contains"), "methods"),
    "at": "indexing.at",
    np.ufunc: "ufunc_methods",
}


class Registered:
    """Loads the part that registers something.

    Parameters
    ----------
    names : OnDemand
        The public names.
    """

    def __init__(self, names: OnDemand):
        self._names = names
        self._complete = False

    def __call__(self, key: Any) -> bool:
        """Load the part for an attribute, an operator or a function of NumPy's; all parts, if that one has loaded.

        Returns
        -------
        bool
            Whether something was left to load.
        """
        if self._complete or (type(key) is str and key.startswith("__") and key not in _PARTS):
            return False  # the latter are protocols of other libraries
        part = self._part(key)
        if part is None or part in sys.modules:
            self._load_all()
        else:
            load_module(part)
        return True

    def _part(self, key: Any) -> str | None:
        """The module that is the likeliest to register something."""
        home = getattr(key, "__module__", None)
        if key in _PARTS:
            return f"{__package__}.{_PARTS[key]}"
        if home in ("numpy.linalg", "numpy.fft"):
            return f"functrans.{home}"
        name = self._names.homes.get(key if type(key) is str else getattr(key, "__name__", ""))
        return None if name is None else name.module

    def _load_all(self) -> None:
        self._complete = True
        self._names.load_all()
        for part in {*_PARTS.values()}:
            load_module(f"{__package__}.{part}")

"""Primitives by name."""

from __future__ import annotations

from ..api.encoding import known_primitives
from ..core import Primitive, RewriteError
from ..frontend.checked import checked
from ..lax.primitive_names import primitive as jax_primitive
from ..runtime.module_getattr import nearest_names

_found: dict[str, Primitive] = {}


@checked
def primitive(name: str) -> Primitive:
    """Find a primitive by name.

    Parameters
    ----------
    name : str
        As programs print it: ``"sin"``, ``"dot_general"``. JAX's names of functions that NumPy calls otherwise, such
        as ``"acos"``, are understood.

    Returns
    -------
    Primitive

    Raises
    ------
    RewriteError
        If there is none; the message suggests the nearest names.

    Examples
    --------
    >>> from functrans import ir
    >>> ir.primitive("cumsum").linear
    True
    >>> ir.primitive("sinus")
    Traceback (most recent call last):
    ...
    functrans.errors.RewriteError: there is no primitive 'sinus'. Nearest: sin...
    """
    found = _found.get(name)
    if found is None:
        _found.update(known_primitives())
        found = _found.get(name) or jax_primitive(f"{name}_p")
    if found is None:
        close = nearest_names(name, _found)
        hint = (
            f"Nearest: {', '.join(close)}" if close else "Print a program to see the names of its primitives"
        )
        raise RewriteError(f"there is no primitive {name!r}. {hint}")
    return found

"""Objects that stand for functions, and that pickle as functions do.

`pickle` writes a function that is a global of a module by name, and refuses any other. ``cloudpickle`` includes the
code of a function that the other process cannot import, such as one of ``__main__``. Only the pickler knows which of
the two it does, and it does so for functions only. So an object that is a global hands the pickler two functions,
*signposts*, which are attributes of that global: `pickle` writes their names, and finds the object by them;
``cloudpickle`` writes their contents.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any, ClassVar, NoReturn, TypeVar

from ..errors import NumbaTranslationError, PicklingError
from .context import cached_property
from .tracebacks import boundary

_Object = TypeVar("_Object", bound="Portable")
_Anything = TypeVar("_Anything")


def _global_named(module: Any, path: Any) -> Any:
    """The object with a dotted name in a module; None if it does not exist."""
    owner = sys.modules.get(module) if isinstance(path, str) else None
    for name in path.split(".") if owner is not None else ():
        owner = getattr(owner, name, None)
    return owner


class Portable:
    """An object that stands for a function: pickled by name if it is a global, else by its state.

    Copying returns the object itself, as for functions. Subclasses call `functools.update_wrapper`, and define in
    `__getstate__` and `__setstate__` what is pickled besides attributes.
    """

    #: Attributes that each process creates for itself.
    _transient: ClassVar[frozenset[str]] = frozenset()

    @cached_property
    def _which(self) -> FunctionType:
        """The signpost that leads to the object."""
        return _signpost(self, "_which")

    @cached_property
    def _what(self) -> FunctionType:
        """The signpost that carries its state."""
        return _signpost(self, "_what")

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        name = getattr(self, "__qualname__", None)
        if _global_named(self.__module__, name) is not self:
            return _blank, (type(self),), self.__getstate__()
        self._which.__dict__["kind"] = type(self)
        self._what.__dict__["state"] = self.__getstate__()
        return _named, (self._which,), self._what

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k not in self._transient and k not in _SIGNPOSTS}

    def __setstate__(self, state: Any) -> None:
        if isinstance(state, FunctionType):
            if state is vars(self).get("_what"):
                return  # the global found by name already has its state
            state = vars(state)["state"]
        vars(self).update(state)
        self._arrived()

    def _arrived(self) -> None:
        """Create what is not pickled."""

    def __copy__(self: _Object) -> _Object:
        return self

    def __deepcopy__(self: _Object, memo: dict[int, Any]) -> _Object:
        return self


_SIGNPOSTS = frozenset(("_which", "_what"))


def _signpost(owner: Any, attribute: str) -> FunctionType:
    def signpost() -> None:
        """Only carries attributes."""

    signpost.__module__ = owner.__module__
    signpost.__name__ = attribute
    signpost.__qualname__ = f"{owner.__qualname__}.{attribute}"
    return signpost  # type: ignore[return-value]


def _named(signpost: FunctionType) -> Any:
    """The object of a signpost: the global itself if it was pickled by name; a blank one if it was pickled by value."""
    owner = _global_named(signpost.__module__, signpost.__qualname__.rpartition(".")[0])
    if isinstance(owner, Portable) and vars(owner).get("_which") is signpost:
        return owner
    return _blank(vars(signpost)["kind"])


def _blank(kind: type[_Object]) -> _Object:
    # __setstate__ fills it later: the functions in the state may refer to the object.
    return object.__new__(kind)


class Bound(functools.partial[Any]):
    """A portable object bound as a method to an instance; it pickles as these two.

    Python pickles a bound method by its name: ``slope = grad(energy)`` would arrive as ``energy``.
    """

    @classmethod
    def of(cls, method: Any, instance: Any) -> Bound:
        """Call the function on the instance."""
        bound = cls(method, instance)
        vars(bound).update(__doc__=method.__doc__, __module__=method.__module__)
        return bound

    @property
    def __self__(self) -> Any:
        return self.args[0]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.func, name)


class Transformed(Portable):
    """A function made by a transformation: ``grad(f)``, ``vmap(f)``. In a class it acts as a method.

    Parameters
    ----------
    what : str
        The name of the transformation.
    fun : callable
    """

    #: The attributes that `functools.wraps` copies; the docstring is a new one, and names the transformation.
    _copied_names: ClassVar[tuple[str, ...]] = ("__module__", "__name__", "__qualname__")

    def __init_subclass__(cls) -> None:
        if "__call__" in vars(cls):
            cls.__call__ = boundary(cls.__call__)  # type: ignore[method-assign]

    def __init__(self, what: str, fun: Callable[..., Any]):
        functools.update_wrapper(self, fun, assigned=self._copied_names, updated=())
        self._made_by = what
        self._fun = fun
        if "__doc__" not in self._copied_names:
            own = getattr(fun, "__doc__", None)
            self.__doc__ = f"{what} of {in_words(fun)}." + (f"\n\n{own}" if isinstance(own, str) else "")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Apply the transformation to one call."""
        raise NotImplementedError

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else Bound.of(self, instance)

    @property
    def _numba_type_(self) -> NoReturn:
        """Numba asks for it where code that it compiles calls the function."""
        refuse_numba(self._not_compiled)

    def _not_compiled(self) -> NumbaTranslationError:
        return NumbaTranslationError(
            f"code compiled by Numba calls {self._made_by} of {in_words(self._fun)}, which is not compiled: make it "
            f"with functrans.jit, as jit({self._made_by}(f))"
        )

    def __repr__(self) -> str:
        return f"<{self._made_by} of {in_words(self._fun)}>"


class Unportable:
    """An immutable object that belongs to this process, and cannot be pickled. Copying returns the object itself."""

    __slots__ = ()
    #: What to pickle instead.
    _instead: ClassVar[str] = "Send the function and its arguments, and call it there"

    def _called(self) -> str:
        """What messages call this object."""
        return f"a {type(self).__name__}"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise PicklingError(f"{self._called()} cannot be pickled: it belongs to its process. {self._instead}")

    def __copy__(self: _Anything) -> _Anything:
        return self

    def __deepcopy__(self: _Anything, memo: dict[int, Any]) -> _Anything:
        return self


def in_words(fun: Any) -> str:
    """The name of a function in representations of what was made from it: ``f``, ``grad of f``."""
    if isinstance(fun, Portable):
        return repr(fun)[1:-1]
    name, owner = getattr(fun, "__name__", None), getattr(fun, "__self__", None)
    if not isinstance(name, str):
        return type(fun).__name__
    return f"{owner.__name__}.{name}" if isinstance(owner, type) else name


def refuse_numba(why: Callable[[], Exception]) -> NoReturn:
    """What the attribute ``_numba_type_`` of an object does that Numba cannot take: it raises an error that says so.

    Numba's C code looks for the attribute first, and lets no exception but AttributeError pass: since 3.13, Python
    prints the others and ignores them. Then Numba's Python code reads it, and raises what it meets.
    """
    reader = sys._getframe(2).f_globals.get("__name__", "")
    raise why() if reader.startswith("numba.") else AttributeError("_numba_type_")

"""The class of `Function` classes: what is checked when one is written, and its ``MyOpBackward``."""

from __future__ import annotations

from typing import Any, NoReturn

from ..core.errors import FunctionDefinitionError
from .context import Context
from .function_rules import OPTIONS, RULES, Definition, check_class

_WATCHED = frozenset((*RULES, *OPTIONS))


class BackwardFunction(Context):
    """The class of a function's contexts, one for each function: ``MyOpBackward``.

    Its methods are what reverse mode and forward mode call.
    """

    __slots__ = ()
    _forward_cls: Any

    def apply(self, *cotangents: Any) -> Any:
        """What the function's ``vjp`` or ``backward`` returns."""
        rule = definition_of(self._forward_cls).backward
        if rule is None:
            rule = self._forward_cls.backward  # which raises
        return rule(self, *cotangents)

    def apply_jvp(self, *tangents: Any) -> Any:
        """What the function's ``jvp`` returns."""
        return self._forward_cls.jvp(self, *tangents)


class FunctionMeta(type):
    """Checks a function's class, and makes its ``MyOpBackward``."""

    #: Counts changes of rules and options of classes, after which definitions are read anew.
    changes = 0

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]):
        super().__init__(name, bases, namespace)
        if bases:
            check_class(cls, _base(cls))
        kind = type(f"{name}Backward", (BackwardFunction,), {"__slots__": (), "_forward_cls": cls})
        kind.__module__ = cls.__module__
        type.__setattr__(cls, "_backward_cls", kind)
        mixed = not all(isinstance(c, FunctionMeta) for c in cls.__mro__[:-1])
        type.__setattr__(cls, "_mixed", mixed)

    def __setattr__(cls, name: str, value: Any) -> None:
        type.__setattr__(cls, name, value)
        cls._changed(name)

    def __delattr__(cls, name: str) -> None:
        type.__delattr__(cls, name)
        cls._changed(name)

    def _changed(cls, name: str) -> None:
        if name in _WATCHED:
            FunctionMeta.changes += 1
            check_class(cls, _base(cls))

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused: a function has no instances."""
        raise FunctionDefinitionError(f"Function is never instantiated; use {cls.__name__}.apply")


def definition_of(cls: Any) -> Definition:
    """The rules of a class, as they are now."""
    found, version = cls.__dict__.get("_definition", (None, -1))
    now: Any = FunctionMeta.changes
    if cls._mixed:  # changes of other classes are not counted
        now = (now, *[getattr(cls, name) for name in (*RULES, *OPTIONS)])
    if version != now:
        found = Definition(cls, _base(cls))
        type.__setattr__(cls, "_definition", (found, now))
    return found


def _base(cls: type) -> type:
    """`Function` itself."""
    return next(c for c in reversed(cls.__mro__) if isinstance(c, FunctionMeta))

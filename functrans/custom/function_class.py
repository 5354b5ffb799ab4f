"""The class of `Function` classes, and what one defines: checked once, and again when the class changes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NoReturn

from ..arrays.arguments import Parameters
from ..control.callbacks.callback import VMAP_METHODS
from ..core.values import PyTree, Value
from ..errors import FunctionDefinitionError, MissingRuleError
from ..frontend.binding import Binder
from .closures import may_capture
from .context import Context

#: What a class may set.
OPTIONS = ("generate_vmap_rule", "generate_jvp_rule", "host", "vmap_method", "clear_saved_tensors_on_access")
#: The static methods that a class may define.
RULES = ("forward", "setup_context", "backward", "vjp", "jvp", "vmap", "transpose", "shape")
#: What users call the context.
_CONTEXTS = ("ctx", "context")
_VMAP_METHODS = {**{name: name for name in VMAP_METHODS}, "broadcast": "broadcast_all"}


class Definition:
    """The rules of a `Function` class, absent ones None.

    Attributes
    ----------
    name : str
    forward : callable
    setup : callable or None
        ``setup_context``; None: `forward` takes the context.
    backward : callable or None
        ``backward`` or ``vjp``.
    jvp, vmap, transpose, shape : callable or None
    once : bool
        Whether `backward` is differentiable once only.
    backward_autocast : str or None
        See `CustomRule`.
    host : bool
    vmap_method : str or None
        As `pure_callback` takes it.
    derive_jvp, derive_vmap : bool
    clear : bool
        Whether saved values can be read once only.
    context : type
        The class of its contexts, ``MyOpBackward``.
    binder : Binder
        Of the parameters of `forward` without its context.
    capturing : tuple of callables
        The rules that may hold values from around them.
    writes : bool
        Whether a host `forward` has written to its arguments.
    """

    def __init__(self, cls: Any, base: Any):
        rules = {name: _overridden(cls, base, name) for name in RULES}
        if rules["forward"] is None:
            raise MissingRuleError(
                f"{cls.__name__}: You must implement the forward function for custom Function: "
                "forward(ctx, ...), or forward(...) and setup_context(ctx, inputs, output)"
            )
        self.name: str = cls.__name__
        self.forward: Callable[..., Any] = rules["forward"]
        self.setup = rules["setup_context"]
        self.backward = rules["backward"] or rules["vjp"]
        self.jvp, self.vmap, self.shape = rules["jvp"], rules["vmap"], rules["shape"]
        self.transpose = rules["transpose"]
        self.once = getattr(self.backward, "once_differentiable", False)
        casts = getattr(self.forward, "casts_inputs", False)
        follows = getattr(self.backward, "follows_forward", False)
        self.backward_autocast = ("off" if casts else "forward") if follows else None
        self.host: bool = cls.host
        self.writes = False
        self.vmap_method = _VMAP_METHODS.get(cls.vmap_method)
        self.derive_jvp = cls.generate_jvp_rule is not False
        self.derive_vmap = cls.generate_vmap_rule is not False and not (
            self.host and self.vmap_method is None
        )
        self.clear: bool = cls.clear_saved_tensors_on_access
        self.context: type[Context] = cls._backward_cls
        self.binder = Binder(
            f"{self.name}.apply", self.forward, FunctionDefinitionError, int(self.setup is None), self._hint
        )
        ruled = bool(self.backward or self.jvp or self.transpose)
        reverse = not ruled or self.backward is not None
        #: Of the rule of a call: reverse, forward, vmap, transpose, and whether forward mode may transpose backward.
        self.slots = (
            reverse,
            not ruled or self.jvp is not None or not reverse,
            self.vmap is not None or not self.derive_vmap,
            self.transpose is not None,
            self.derive_jvp,
        )
        self.capturing = tuple([f for f in rules.values() if f is not None and may_capture(f)])
        if self.host and self.setup is None:
            raise FunctionDefinitionError(
                f"{self.name}: host forward needs setup_context: write forward(...) without ctx, and save in "
                "setup_context(ctx, inputs, output), which is traced. Without a derivative, call "
                "functrans.pure_callback(f, result_shape, *args) instead"
            )

    def _hint(self) -> str:
        """What arguments that do not match ``forward`` may come from."""
        names = Parameters(self.forward).names
        signature = self.binder.parameters.signature
        takes: Any = "(*args)"
        if signature is not None:
            takes = signature.replace(return_annotation=inspect.Signature.empty)
        if self.setup is not None and names[:1] and names[0] in _CONTEXTS:
            return (
                ". Since setup_context is defined, forward takes no ctx: write forward(...) and save in "
                "setup_context(ctx, inputs, output), or remove setup_context"
            )
        if self.setup is None and names[:1] and names[0] not in (*_CONTEXTS, "_"):
            return (
                f". forward takes {takes} after its context, which is '{names[0]}', since setup_context is not "
                "defined: write forward(ctx, ...), or define setup_context(ctx, inputs, output)"
            )
        return f". forward takes {takes}"

    def place(self, position: int, keywords: tuple[str, ...] = (), count: int = 0) -> str:
        """``argument 1 ('w')``; of `count` arguments the last ones go by these keywords."""
        by_keyword = position - (count - len(keywords))
        if keywords and by_keyword >= 0:
            return f"argument {position} ('{keywords[by_keyword]}')"
        return self.binder.parameters.place(position)


def _overridden(cls: Any, base: Any, name: str) -> Callable[..., Any] | None:
    rule = getattr(cls, name)
    return None if rule is getattr(base, name) else rule


def check_class(cls: Any, base: Any) -> None:
    """Raise `FunctionDefinitionError` where a class defines things that exclude each other."""
    name = cls.__name__
    if _overridden(cls, base, "backward") and _overridden(cls, base, "vjp"):
        raise FunctionDefinitionError(
            f"{name}: Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only "
            "implement one of them"
        )
    for option in ("generate_vmap_rule", "generate_jvp_rule"):
        if getattr(cls, option) not in (None, True, False):
            raise FunctionDefinitionError(
                f"{name}: {option} must be None, True or False, got {getattr(cls, option)!r}"
            )
    for rule in ("vmap", "jvp"):
        if getattr(cls, f"generate_{rule}_rule") and _overridden(cls, base, rule):
            raise FunctionDefinitionError(
                f"{name} has both generate_{rule}_rule=True and a {rule} staticmethod. Set generate_{rule}_rule=False "
                f"or delete the {rule} staticmethod to avoid ambiguity"
            )
    if cls.vmap_method is not None and cls.vmap_method not in _VMAP_METHODS:
        raise FunctionDefinitionError(
            f"{name}: vmap_method must be None or one of {', '.join(map(repr, _VMAP_METHODS))}, got {cls.vmap_method!r}"
        )
    if cls.host and cls.generate_vmap_rule:
        raise FunctionDefinitionError(
            f"{name}: generate_vmap_rule=True, but a host forward cannot be batched. Write a vmap staticmethod, or say "
            "how to call forward by vmap_method = 'sequential' or 'broadcast'"
        )


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

    def apply_jvp(self, *tangents: PyTree) -> Value | None:
        """What the function's ``jvp`` returns."""
        return self._forward_cls.jvp(self, *tangents)


class FunctionMeta(type):
    """Checks a function's class, and makes its ``MyOpBackward``."""

    #: Counts changes of rules and options of classes, after which definitions are read again.
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

    def __call__(cls, *args: PyTree, **kwargs: PyTree) -> NoReturn:
        """Refused: a function has no instances."""
        raise FunctionDefinitionError(f"Function is never instantiated; use {cls.__name__}.apply")


def definition_of(cls: Any) -> Definition:
    """The rules of a class, as they are now."""
    definition, version = cls.__dict__.get("_definition", (None, -1))
    now: Any = FunctionMeta.changes
    if cls._mixed:  # changes of other classes are not counted
        now = (now, *[getattr(cls, name) for name in (*RULES, *OPTIONS)])
    if version != now:
        definition = Definition(cls, _base(cls))
        type.__setattr__(cls, "_definition", (definition, now))
    return definition


def _base(cls: type) -> type:
    """`Function` itself."""
    return next(c for c in reversed(cls.__mro__) if isinstance(c, FunctionMeta))

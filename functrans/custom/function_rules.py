"""What a `Function` class defines, checked once and kept until the class is changed."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from ..control.callback import VMAP_METHODS
from ..core.errors import FunctionDefinitionError, MissingRuleError
from .context import Context
from .signature import Signature

#: What a class may set beside them.
OPTIONS = ("generate_vmap_rule", "generate_jvp_rule", "host", "vmap_method", "clear_saved_tensors_on_access")
#: The static methods that a class may define.
RULES = ("forward", "setup_context", "backward", "vjp", "jvp", "vmap", "transpose", "shape")
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
    host : bool
    vmap_method : str or None
        As `pure_callback` takes it.
    derive_jvp, derive_vmap : bool
    clear : bool
        Whether saved values can be read once only.
    context : type
        The class of its contexts, ``MyOpBackward``.
    signature : Signature
    capturing : tuple of callables
        The rules that may hold values from around them.
    """

    __slots__ = (
        "backward", "capturing", "clear", "context", "derive_jvp", "derive_vmap", "forward", "host", "jvp", "name",
        "once", "setup", "shape", "signature", "transpose", "vmap", "vmap_method",
    )  # fmt: skip

    def __init__(self, cls: Any, base: Any):
        found = {name: _overridden(cls, base, name) for name in RULES}
        if found["forward"] is None:
            raise MissingRuleError(
                f"{cls.__name__}: You must implement the forward function for custom Function: "
                "forward(ctx, ...), or forward(...) and setup_context(ctx, inputs, output)"
            )
        self.name: str = cls.__name__
        self.forward: Callable[..., Any] = found["forward"]
        self.setup = found["setup_context"]
        self.backward = found["backward"] or found["vjp"]
        self.jvp, self.vmap, self.shape = found["jvp"], found["vmap"], found["shape"]
        self.transpose = found["transpose"]
        self.once = getattr(self.backward, "once_differentiable", False)
        self.host: bool = cls.host
        self.vmap_method = _VMAP_METHODS.get(cls.vmap_method)
        self.derive_jvp = cls.generate_jvp_rule is not False
        self.derive_vmap = cls.generate_vmap_rule is not False and not (
            self.host and self.vmap_method is None
        )
        self.clear: bool = cls.clear_saved_tensors_on_access
        self.context: type[Context] = cls._backward_cls
        self.signature = Signature(self.name, self.forward, takes_context=self.setup is None)
        rules = [f for f in found.values() if f is not None]
        self.capturing = tuple([f for f in rules if _captures(f)])
        if self.host and self.setup is None:
            raise FunctionDefinitionError(
                f"{self.name}: host forward needs setup_context: write forward(...) without ctx, and save in "
                "setup_context(ctx, inputs, output), which is traced. Without a derivative, call "
                "functrans.pure_callback(f, result_shape, *args) instead"
            )


def _overridden(cls: Any, base: Any, name: str) -> Callable[..., Any] | None:
    found = getattr(cls, name)
    return None if found is getattr(base, name) else found


def _captures(f: Any) -> bool:
    """Whether a function may hold traced values: in its closure, its defaults, its attributes."""
    if type(f) is not FunctionType:
        return True
    return bool(f.__closure__ or f.__defaults__ or f.__kwdefaults__ or f.__dict__)


def check_class(cls: Any, base: Any) -> None:
    """Raise `FunctionDefinitionError` where a class defines what excludes each other."""
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

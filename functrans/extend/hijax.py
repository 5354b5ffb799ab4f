"""The names of ``jax.experimental.hijax``, so that libraries can define types of values with state.

flax.nnx defines its variables so, and uses them only where its option ``flax_hijax_variable`` is set. Programs of
functrans have arrays alone: to bind such a primitive raises.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from ..core import Aval as AbstractValue
from ..core import Zero
from ..errors import NoRuleError
from ..runtime.module_getattr import module_attributes as _module_attributes
from ..runtime.records import NamedTuple
from .ad import instantiate_zeros, is_undefined_primal

__all__ = [
    "AbstractValue", "AvalMutableQDD", "AvalQDD", "EffectTypes", "HiPrimitive", "HiType", "MutableHiType", "Zero",
    "aval_method", "aval_property", "control_flow_allowed_effects", "cur_qdd", "instantiate_zeros",
    "is_undefined_primal", "register_hitype",
]  # fmt: skip
__getattr__, __dir__ = _module_attributes("functrans.extend.hijax", globals())


class HiType:
    """The base of types of values other than arrays."""


class MutableHiType(HiType):
    """The base of types of values with state."""


class AvalQDD(NamedTuple):
    """A type and the state of a value of it."""

    aval: Any
    qdd: Any


class AvalMutableQDD(NamedTuple):
    """A type and the state, which changes, of a value of it."""

    aval: Any
    mutable_qdd: Any


class HiPrimitive:
    """The base of operations on such values.

    Parameters
    ----------
    name : str
    """

    multiple_results = False

    def __init__(self, name: str):
        self.name = name

    def bind(self, *args: Any, **params: Any) -> NoReturn:
        """Raise: programs have arrays alone."""
        raise NoRuleError(
            f"primitive '{self.name}' computes with values that are no arrays, which functrans's programs do not "
            "have: leave hijax off (flax.config.flax_hijax_variable = False)"
        )


class EffectTypes:
    """The kinds of effects that loops and branches may have: all."""

    def __init__(self) -> None:
        self._types: list[type] = []

    def add_type(self, kind: type) -> None:
        """Add a kind."""
        self._types.append(kind)

    def contains(self, effect: Any) -> bool:
        """Whether an effect is of a kind that was added."""
        return isinstance(effect, tuple(self._types))


control_flow_allowed_effects = EffectTypes()


class aval_method:
    """A method of values that a type offers to tracers of it."""

    def __init__(self, fun: Callable[..., Any]):
        self.fun = fun


class aval_property:
    """A property of values that a type offers to tracers of it."""

    def __init__(self, fget: Any):
        self.fget = fget


def register_hitype(kind: type, typeof: Callable[[Any], Any]) -> None:
    """Note a type of values; they cannot be traced."""


def cur_qdd(x: Any) -> NoReturn:
    """Raise: no value has state."""
    raise NoRuleError(f"cur_qdd: {type(x).__name__} is not a value with state: functrans has arrays alone")

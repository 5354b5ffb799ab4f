"""A function and its rules as the user wrote them, in JAX's form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..core.errors import TangentCountError
from .positions import Positions


@dataclass(frozen=True, eq=False)
class Declared:
    """A function and its rules, as the user wrote them.

    Attributes
    ----------
    fun : callable
    positions : Positions
    fwd, bwd : callable
        Both or none.
    jvp : callable
    partials : tuple of (callable or None)
        Instead of `jvp` a rule for each argument.
    symbolic_vjp, symbolic_jvp : bool
        Whether the rules take symbolic zeros.
    """

    fun: Callable[..., Any]
    positions: Positions
    fwd: Callable[..., Any] | None = None
    bwd: Callable[..., Any] | None = None
    jvp: Callable[..., Any] | None = None
    partials: tuple[Callable[..., Any] | None, ...] | None = None
    symbolic_vjp: bool = False
    symbolic_jvp: bool = False

    @property
    def has_forward(self) -> bool:
        """Whether there is a rule for forward mode."""
        return self.jvp is not None or self.partials is not None

    @property
    def functions(self) -> tuple[Any, ...]:
        """What may have captured traced values."""
        return self.fun, self.fwd, self.bwd, self.jvp, *(self.partials or ())


def check_partials(positions: Positions, rules: int, arguments: int) -> None:
    """Raise `TangentCountError` where ``defjvps`` was given too few or too many rules."""
    if rules != arguments:
        raise TangentCountError(
            f"{positions.what}: defjvps was given {rules} rules, but the function has {arguments} arguments. Give one "
            "for each, None where its derivative is zero"
        )

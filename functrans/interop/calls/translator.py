"""What all parts of a translation share: the state, the memory of arrays, and errors.

`Machine` is made in layers: `Translator`, `Slices`, `Callables`, `Expressions`, `Machine`. Each uses those before
it. The methods of later ones that an earlier one calls are declared here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ...errors import NumbaTranslationError
from .flow import ControlFlow, Stops
from .state import Frame, Passed, State
from .typed_ir import TypedFunction
from .values import ArrayView, Counted, Label, Storage, read, whole

_CURE = "write it with loops over ranges, branches, arrays and numbers"


class Translator:
    """The state of a translation, and what to do with the arrays in it."""

    state: State
    #: The calls that lead to the function, and the line of the statement.
    path: tuple[tuple[int, str], ...]
    here: Any
    # Of `Expressions` and `Machine`.
    operand: Callable[[Any, Any], Any]
    result: Callable[[Any], Any]
    typed: Callable[[Any, Any], Any]
    constant: Callable[..., Any]
    counted_of: Callable[[Any], Counted]
    check_divisor: Callable[[Any], None]
    run: Callable[[int, Stops], Label]
    fail: Callable[[Any, type[BaseException], tuple[Any, ...]], None]

    def __init__(self) -> None:
        self.state = State(Frame(None, {}))  # type: ignore[arg-type]
        self.plans: dict[Any, Passed] = {}
        self.path = ()
        self.iterations: dict[str | None, tuple[Any, bool]] = {}
        self.failures: dict[Any, tuple[int, type[BaseException], tuple[Any, ...]]] = {}
        self.here = None
        #: Integers that are another plus a known number, by identity; the values keep themselves alive.
        self.offsets: dict[int, tuple[Any, int]] = {}
        self._kept: list[Any] = []
        self._numbers = 0

    @property
    def function(self) -> TypedFunction:
        """The function that is being translated."""
        return self.state.frame.function

    @property
    def flow(self) -> ControlFlow:
        """Its control flow."""
        return self.function.flow

    @property
    def variables(self) -> dict[str, Any]:
        """Its variables."""
        return self.state.frame.variables

    def type_of(self, var: Any) -> Any:
        """Numba's type of a variable."""
        return self.function.typemap[var.name]

    def unsupported(self, construct: str, cure: str = _CURE) -> Exception:
        """The error for a construct at the current line."""
        line = f"{self.here.filename}:{self.here.line}" if self.here else self.function.file
        return NumbaTranslationError(
            f"numba_call of {self.function.name}: {construct} has no translation ({line}). For derivatives and vmap, "
            f"{cure}; or give numba_call a rule: vjp=, or jvp="
        )

    # ---------------------------------------------------------------- memory

    def new_number(self) -> int:
        """A number for a new storage."""
        self._numbers += 1
        return self._numbers

    def fresh(self, array: Any, argument: str | None = None) -> ArrayView:
        """A new array that holds the elements of `array`."""
        key = self.new_number()
        self.state.heap[key] = Storage(array, argument)
        return whole(key, array.shape)

    def load(self, view: ArrayView) -> Any:
        """The element that a view selects; or the view, if it has axes."""
        return view if view.order else self.content(view)

    def content(self, value: Any) -> Any:
        """A value with the elements of arrays instead of the arrays."""
        if isinstance(value, ArrayView):
            return read(self.state.heap[value.storage].value, value)
        if isinstance(value, list):
            return [self.content(v) for v in value]
        if isinstance(value, tuple):
            parts = [self.content(v) for v in value]
            return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
        return value

    def tie(self, *views: ArrayView) -> None:
        """Forbid writes to arrays that may be the same memory."""
        for view in views:
            old = self.state.heap[view.storage]
            self.state.heap[view.storage] = replace(old, tied=True)

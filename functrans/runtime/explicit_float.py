"""Detect whether the user's own code converts a value with ``float``, ``int`` or ``complex``.

Converting a value under differentiation loses its derivative. ``float(t)`` in the user's code asks for exactly that. C
code (``math.sin``, ``map(float, ts)``, SciPy's solvers) calls the same methods ``__float__``, ``__int__`` and
``__complex__``, although the user never asked for a number. The bytecode of the calling frame tells the two apart: its
current instruction must be a call, and the callee one of the three built-in classes.

The callee is the value that one instruction, a *load*, pushed below the arguments. To find it, we follow the stack
depth from each load up to the call. Bytecode that we do not understand proves nothing: under a future Python,
conversions are then refused, and no derivative is lost.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import takewhile
from types import CodeType, FrameType, ModuleType
from typing import Any

from ..errors.source import Source, is_installed, is_internal
from .records import NamedTuple

_NUMBERS = (float, int, complex)

#: Since 3.13 the slot for `self` is above the callee; before, it was below.
_SELF_ABOVE = int(sys.version_info >= (3, 13))
#: The number of stack entries above the arguments. (3.11 calls in two steps, either of which may be current.)
_CALLS = {"PRECALL": 0, "CALL": 0, "CALL_KW": 1}
_LOCAL = {"LOAD_NAME", "LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW", "LOAD_DEREF", "LOAD_CLASSDEREF"}
_NAMES = {*_LOCAL, "LOAD_GLOBAL"}
_ATTRIBUTES = {"LOAD_ATTR", "LOAD_METHOD"}
#: Instructions that leave the rest of the stack unchanged, even where nothing lies on the callee.
_HARMLESS = {"NOP", "CACHE", "EXTENDED_ARG", "KW_NAMES", "PUSH_NULL", "POP_TOP", "NOT_TAKEN"}
_JUMPS = {*dis.hasjrel, *dis.hasjabs}
_UNCONDITIONAL = {"JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"}


class CalleeLoad(NamedTuple):
    """The source of the callee on the stack: ``name``, or ``name.attribute.attribute``."""

    kind: str
    name: str
    attributes: tuple[str, ...]

    def value(self, frame: FrameType) -> Any:
        """The object that the names refer to in a frame; None if finding it takes more than looking into modules."""
        spaces = [frame.f_globals, frame.f_builtins]
        if self.kind in _LOCAL:
            spaces = [frame.f_locals, *(spaces if self.kind == "LOAD_NAME" else ())]
        value = next((space[self.name] for space in spaces if self.name in space), None)
        for attribute in self.attributes:
            value = vars(value).get(attribute) if isinstance(value, ModuleType) else None
        return value


class Site(NamedTuple):
    """The current instruction of a frame.

    Attributes
    ----------
    name : str
    operator : str
        The operator of a binary operation, else empty.
    callee : CalleeLoad or None
        For a call, the one load of its callee; None if that is uncertain.
    """

    name: str
    operator: str = ""
    callee: CalleeLoad | None = None


def is_explicit(frame: FrameType) -> bool:
    """Whether a frame is the user's and calls ``float``, ``int`` or ``complex``, or formats a number with ``%``.

    A ``%`` that asks for a number is string formatting: a traced operand implements all other uses itself.
    """
    if site(frame.f_code, frame.f_lasti).operator in ("%", "%="):
        return True
    return is_users(frame.f_code) and any(called(frame) is kind for kind in _NUMBERS)


def is_users(code: CodeType) -> bool:
    """Whether code belongs to the user: not to functrans, Python's library or an installed package."""
    return not (is_internal(code) or is_installed(code))


def called(frame: FrameType) -> Any:
    """What a frame is calling; None if it is not calling anything, or if that is uncertain."""
    callee = site(frame.f_code, frame.f_lasti).callee
    return None if callee is None else callee.value(frame)


def asker(frame: FrameType | None) -> tuple[str, Source | None]:
    """What asks for a number, by the name that the user knows, and the user's line.

    Parameters
    ----------
    frame : FrameType
        The innermost frame.

    Returns
    -------
    str
        Empty if the callee has no certain name.
    Source or None
    """
    inner = None
    while frame is not None and not is_users(frame.f_code):
        inner, frame = frame, frame.f_back
    source = None if frame is None else Source(frame.f_code, frame.f_lasti)
    if inner is not None:
        module, name = inner.f_globals.get("__name__", ""), inner.f_code.co_name
        # A transformation called C code: math.sin, or a functools.partial of it.
        if module.endswith(".tracebacks"):
            return "", source
        if module.startswith(f"{__name__.partition('.')[0]}."):  # methods of traced values
            return f"{name.lstrip('_')}()", source
        at = None if frame is None else site(frame.f_code, frame.f_lasti).callee
        callee = None if frame is None or at is None else at.value(frame)
        if name == "__call__" and at is not None and callee is not None:
            name = [at.name, *at.attributes][-1]  # an object that is called by its name in a module
        return _name_of(callee) or f"{_public(module)}{name}", source
    assert frame is not None
    if site(frame.f_code, frame.f_lasti).name.startswith("STORE_SUBSCR"):
        return "an assignment into an array", source
    return _name_of(called(frame)), source


def _name_of(callee: Any) -> str:
    """The public name of a function or class; empty for other objects."""
    known = getattr(callee, "__qualname__", None)
    return f"{_public(callee.__module__)}{known}" if known else ""


def _public(module: str | None) -> str:
    """A module's name with a dot, up to the first private part; empty for built-in functions."""
    first, *rest = (module or "").split(".")
    parts = [first.lstrip("_"), *takewhile(lambda part: not part.startswith("_"), rest)]
    return "".join(f"{part}." for part in parts if part not in ("", "builtins"))


@lru_cache(maxsize=4096)
def site(code: CodeType, at: int) -> Site:
    """The instruction at an offset."""
    steps = list(dis.get_instructions(code))
    place = {step.offset: i for i, step in enumerate(steps)}
    while at not in place:  # before 3.13, a frame that calls Python code stands in the call's inline cache
        at -= 2
    call = place[at]
    if call and steps[call - 1].opname == "PRECALL":
        call -= 1
    step = steps[call]
    if step.opname == "BINARY_OP":
        return Site(step.opname, step.argrepr)
    if step.opname not in _CALLS:
        return Site(step.opname)
    entries = (step.arg or 0) + _CALLS[step.opname] + _SELF_ABOVE
    for i in range(call - 1, -1, -1):
        name = steps[i].opname
        if (name in _NAMES or name in _ATTRIBUTES) and _reaches(steps, place, i, call, entries):
            return Site(step.opname, callee=_load(steps, i))
    return Site(step.opname)


def _load(steps: Sequence[dis.Instruction], i: int) -> CalleeLoad | None:
    attributes: list[str] = []
    while steps[i].opname in _ATTRIBUTES:
        attributes.insert(0, steps[i].argval)
        i -= 1
    step = steps[i]
    return CalleeLoad(step.opname, step.argval, tuple(attributes)) if step.opname in _NAMES else None


def _reaches(
    steps: Sequence[dis.Instruction], place: dict[int, int], load: int, call: int, entries: int
) -> bool:
    """Whether the call's callee is the value that a load pushed, on every path between them.

    Depth counts the entries above the loaded value; None once the value has been consumed.
    """
    effect = dis.stack_effect(steps[load].opcode, steps[load].arg)
    pushed = effect - 1 if steps[load].opname in _NAMES else effect
    depths: dict[int, int | None] = {load + 1: pushed * _SELF_ABOVE}
    todo = [load + 1]
    while todo:
        i = todo.pop()
        if i == call:
            continue
        untouched = steps[i].opname in _HARMLESS or steps[i].opcode in _JUMPS
        lowest = 0 if untouched else 1 + _SELF_ABOVE
        for target, depth in _following(steps, place, i, depths[i]):
            if depth is not None and depth < lowest:
                depth = None
            if depths.get(target, depth) != depth:
                return False
            if target not in depths and load < target <= call:
                depths[target] = depth
                todo.append(target)
    if depths.get(call) != entries or len(depths) != call - load:
        return False
    outside = [step for i, step in enumerate(steps) if not load < i < call and step.opcode in _JUMPS]
    return not any(load < place.get(step.argval, load) <= call for step in outside)


def _following(
    steps: Sequence[dis.Instruction], place: dict[int, int], i: int, depth: int | None
) -> Iterator[tuple[int, int | None]]:
    """Where an instruction leads, with the stack depth there."""
    step = steps[i]
    if step.opname.startswith(("RETURN_", "RAISE_", "RERAISE")) and step.opname != "RETURN_GENERATOR":
        return
    jumps = step.opcode in _JUMPS
    for jump in (True, False) if jumps else (False,):
        if jump or step.opname not in _UNCONDITIONAL:
            effect = dis.stack_effect(step.opcode, step.arg, jump=jump)
            yield place[step.argval] if jump else i + 1, None if depth is None else depth + effect

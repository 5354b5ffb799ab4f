"""Whether the user's code itself converts a value by ``float``, ``int`` or ``complex``.

Converting a value under differentiation loses its derivative. ``float(t)`` in the user's code asks for exactly that. C
code (``math.sin``, ``map(float, ts)``, SciPy's solvers) calls the same methods ``__float__``, ``__int__`` and
``__complex__``, although the user never asked for a number. The bytecode of the calling frame separates the two: its
current instruction must be a call, and the callee one of the three built-in classes.

The callee is the value that one instruction, a *load*, pushed below the arguments. To find it, the depth of the stack
is followed from each load before the call. Anything that is not understood on the way proves nothing: with the bytecode
of a future Python, conversions are refused, and no derivative is lost.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import takewhile
from types import CodeType, FrameType, ModuleType
from typing import Any, NamedTuple

from .source import Source, is_installed, is_internal

_NUMBERS = (float, int, complex)

#: Since 3.13 a call has a place for `self` above the callee, before that beneath it.
_SELF_ABOVE = int(sys.version_info >= (3, 13))
#: How many entries of the stack lie above the arguments. (3.11 calls in two steps, of which either may be current.)
_CALLS = {"PRECALL": 0, "CALL": 0, "CALL_KW": 1}
_LOCAL = {"LOAD_NAME", "LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW", "LOAD_DEREF", "LOAD_CLASSDEREF"}
_NAMES = {*_LOCAL, "LOAD_GLOBAL"}
_ATTRIBUTES = {"LOAD_ATTR", "LOAD_METHOD"}
#: Instructions that leave the rest of the stack as it is, even where nothing lies on the callee.
_HARMLESS = {"NOP", "CACHE", "EXTENDED_ARG", "KW_NAMES", "PUSH_NULL", "POP_TOP", "NOT_TAKEN"}
_JUMPS = {*dis.hasjrel, *dis.hasjabs}
_UNCONDITIONAL = {"JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"}


class CalleeLoad(NamedTuple):
    """What puts the callee on the stack: ``name``, or ``name.attribute.attribute``."""

    kind: str
    name: str
    attributes: tuple[str, ...]

    def value(self, frame: FrameType) -> Any:
        """What the names refer to in a frame; None where that takes more than looking at modules."""
        spaces = [frame.f_globals, frame.f_builtins]
        if self.kind in _LOCAL:
            spaces = [frame.f_locals, *(spaces if self.kind == "LOAD_NAME" else ())]
        value = next((space[self.name] for space in spaces if self.name in space), None)
        for attribute in self.attributes:
            value = vars(value).get(attribute) if isinstance(value, ModuleType) else None
        return value


class Site(NamedTuple):
    """The instruction at which a frame stands.

    Attributes
    ----------
    name : str
    operator : str
        Of a binary operation, else empty.
    callee : CalleeLoad or None
        Of a call: the one load of what it calls, None where that is not certain.
    """

    name: str
    operator: str = ""
    callee: CalleeLoad | None = None


def is_explicit(frame: FrameType) -> bool:
    """Whether a frame is the user's and calls ``float``, ``int`` or ``complex``, or formats a number by ``%``.

    A ``%`` that asks for a number is that of a string: a traced operand defines all the others itself.
    """
    if site(frame.f_code, frame.f_lasti).operator in ("%", "%="):
        return True
    return is_users(frame.f_code) and any(called(frame) is kind for kind in _NUMBERS)


def is_users(code: CodeType) -> bool:
    """Whether code belongs neither to functrans, nor to Python's library, nor to an installed package."""
    return not (is_internal(code) or is_installed(code))


def called(frame: FrameType) -> Any:
    """What a frame calls at the moment; None where it calls nothing, or that is not certain."""
    callee = site(frame.f_code, frame.f_lasti).callee
    return None if callee is None else callee.value(frame)


def asker(frame: FrameType | None) -> tuple[str, Source | None]:
    """What asks for a number, by the name under which the user knows it, and the user's line.

    Parameters
    ----------
    frame : FrameType
        The innermost.

    Returns
    -------
    str
        Empty where what the line calls has no certain name.
    Source or None
    """
    inner = None
    while frame is not None and not is_users(frame.f_code):
        inner, frame = frame, frame.f_back
    source = None if frame is None else Source(frame.f_code, frame.f_lasti)
    if inner is not None:
        module, name = inner.f_globals.get("__name__", ""), inner.f_code.co_name
        if module.endswith(
            ".tracebacks"
        ):  # a transformation called C code: math.sin itself, a functools.partial of it
            return "", source
        if module.startswith(f"{__name__.partition('.')[0]}."):  # methods of traced values
            return f"{name.lstrip('_')}()", source
        return f"{_public(module)}{name}", source
    assert frame is not None
    if site(frame.f_code, frame.f_lasti).name.startswith("STORE_SUBSCR"):
        return "an assignment into an array", source
    callee = called(frame)
    known = getattr(callee, "__qualname__", None)
    return (f"{_public(callee.__module__)}{known}" if known else ""), source


def _public(module: str | None) -> str:
    """A module's name with a dot, up to the first private part; nothing for built-in functions."""
    first, *rest = (module or "").split(".")
    parts = [first.lstrip("_"), *takewhile(lambda part: not part.startswith("_"), rest)]
    return "".join(f"{part}." for part in parts if part not in ("", "builtins"))


@lru_cache(maxsize=4096)
def site(code: CodeType, at: int) -> Site:
    """The instruction at an offset."""
    steps = list(dis.get_instructions(code))
    place = {step.offset: i for i, step in enumerate(steps)}
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
    """Whether the call calls what a load pushed, whichever way it is reached.

    Depths are counted in entries above the value that was loaded; None once that has been used.
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
    """Where an instruction leads, with the depth of the stack there."""
    step = steps[i]
    if step.opname.startswith(("RETURN_", "RAISE_", "RERAISE")) and step.opname != "RETURN_GENERATOR":
        return
    jumps = step.opcode in _JUMPS
    for jump in (True, False) if jumps else (False,):
        if jump or step.opname not in _UNCONDITIONAL:
            effect = dis.stack_effect(step.opcode, step.arg, jump=jump)
            yield place[step.argval] if jump else i + 1, None if depth is None else depth + effect

"""A compiled program as text, in each of the forms that it passes through, with the user's lines above each kernel."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Sequence

from ...core import ArgumentValueError, Eqn, Jaxpr, Place, Var, show, subjaxprs
from ...passes.toolkit import extract
from ..backend import Options
from ..llvm.backend import assembly_of
from ..llvm.emit import emit_llvm
from ..loops import show as loops
from ..lower import LoweredKernel
from ..python.emit import emit_python
from ..steps import HostStep, ViewStep

#: What begins a comment in each form.
_COMMENTS = {"jaxpr": "#", "loops": "#", "python": "#", "llvm": ";", "asm": "#"}
#: The most lines above one kernel.
_MOST_LINES = 60


def check_dialect(what: str, dialect: str, compiled: bool) -> None:
    """Raise `ArgumentValueError` unless this is the name of a form."""
    names = [name for name in _COMMENTS if compiled or name != "asm"]
    if dialect not in names:
        more = "" if compiled else "; after .compile() also 'asm'"
        raise ArgumentValueError(
            f"as_text of {what}: dialect must be one of {', '.join(map(repr, names))}{more}, got {dialect!r}"
        )


def text_of(
    jaxpr: Jaxpr, steps: Sequence[LoweredKernel | HostStep | ViewStep], options: Options, dialect: str
) -> str:
    """The kernels and the host calls between them."""
    written: dict[str, Callable[[LoweredKernel], str]] = {
        "jaxpr": lambda step: show(
            extract(jaxpr, step.eqns, [v for v in step.outvars if isinstance(v, Var)])
        ),
        "loops": lambda step: loops.show(step.kernel),
        "python": lambda step: emit_python(step.kernel),
        "llvm": lambda step: emit_llvm(step.kernel, options).text,
        "asm": lambda step: assembly_of(step.kernel, options),
    }
    number, count = 0, sum(isinstance(step, LoweredKernel) for step in steps)
    parts = []
    for step in steps:
        if not isinstance(step, LoweredKernel):
            kind = "view" if isinstance(step, ViewStep) else "host call"
            call = show(extract(jaxpr, [step.eqn], step.eqn.outvars)).splitlines()[1]
            lines = [f"{kind}:{call}", *_lines([step.eqn])]
            text = ""
        else:
            number += 1
            lines = [f"kernel {number} of {count}, which computes", *_lines(step.eqns)]
            text = written[dialect](step).rstrip("\n")
        parts.append(
            "\n".join([*[f"{_comment(dialect)} {line}".rstrip() for line in lines], text]).rstrip("\n")
        )
    return "\n\n".join(parts) + "\n"


def _comment(dialect: str) -> str:
    on_arm = dialect == "asm" and platform.machine().lower() in ("arm64", "aarch64")
    return "//" if on_arm else _COMMENTS[dialect]


def _lines(eqns: Sequence[Eqn]) -> list[str]:
    """The user's lines of equations, each once, in order."""
    lines = []
    for shown, text in dict.fromkeys((str(place), place.parts()[3]) for place in _places(eqns)):
        lines.append(f"  {shown}: {text}" if text else f"  {shown}")
    rest = len(lines) - _MOST_LINES
    return [*lines[:_MOST_LINES], f"  ... and {rest} more"] if rest > 0 else lines


def _places(eqns: Sequence[Eqn]) -> Iterator[Place]:
    for e in eqns:
        if e.source is not None:
            yield e.source
        for body in subjaxprs(e.params):
            yield from _places(body.eqns)

"""Lowered programs as JSON: their steps, and how they call their kernels.

What a process needs to run a program whose kernels it has as object code, without lowering it again.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..core import Atom, Aval, Eqn, ExportError, FunctransError, Jaxpr, Var
from ..lowering.llvm.objects import LoadedCode, ObjectCode
from ..lowering.llvm.symbols import own_products
from ..lowering.run.filed import FiledKernel
from ..lowering.steps import HostStep, Step, ViewStep, packed_numbers
from ..primitives.structure.linear import reshape_p
from ..runtime.config import config
from .encoding import decode_jaxpr, encode_jaxpr

if TYPE_CHECKING:
    from ..lowering.run.unit import KernelUnit

#: What data that describe no program, or one that this version cannot have written, make fail.
UNFIT = (
    LookupError, TypeError, ValueError, AttributeError, ImportError, ArithmeticError, AssertionError, RecursionError,
    NotImplementedError, FunctransError,
)  # fmt: skip


def key_text(version: str, jaxpr: dict[str, Any], threads: int | None) -> str:
    """What a lowered program depends on besides versions of libraries and the processor: see `store.key_of`.

    Parameters
    ----------
    version : str
        Of functrans.
    jaxpr : dict
        The program, encoded.
    threads : int or None
        The number of threads that it is lowered for; None if the number makes no difference.
    """
    with config.patch(num_threads=threads or 1):
        options = [sorted(v) if isinstance(v, frozenset) else v for v in config.trace_key()]
    return json.dumps(["program", version, threads, options, jaxpr], default=str)


def encode_program(
    jaxpr: Jaxpr,
    steps: Sequence[Step],
    codes: Mapping[KernelUnit, tuple[str, ObjectCode]],
    consts: Sequence[Any],
) -> dict[str, Any] | None:
    """The steps of a simplified program as JSON data; None if they need what only this process has.

    Parameters
    ----------
    jaxpr : Jaxpr
    steps : sequence of Step
    codes : mapping
        The object code of its native kernels, and the keys of that.
    consts : sequence
        Constants that the reader has: they are written by number.
    """
    variables = _variables(jaxpr)
    number = {v: i for i, v in enumerate(variables)}
    place = {e: i for i, e in enumerate(jaxpr.eqns)}
    units: dict[Step, KernelUnit] = {unit: unit for unit in codes}
    encoded: list[Any] = []
    for step in steps:
        if isinstance(step, HostStep):
            encoded.append(["host", place[step.eqn]])
        elif isinstance(step, ViewStep):
            encoded.append(["view", number[_variable(step.eqn.invars[0])], number[step.eqn.outvars[0]]])
        elif (unit := units.get(step)) is not None and _is_plain(unit):
            encoded.append(["kernel", _encode_call(unit, codes[unit][0], number)])
        else:
            return None
    if any(type(v.aval) is not Aval for v in variables):
        return None
    try:
        program = encode_jaxpr(jaxpr, consts)
    except ExportError:  # a stage of lowering made an operation that has no encoding
        return None
    symbols = [name for _, code in codes.values() for name in code.symbols]
    return {
        "jaxpr": program, "steps": encoded, "own products": own_products(symbols),
    }  # fmt: skip


def decode_program(
    data: dict[str, Any], load: Callable[[str], LoadedCode], consts: Sequence[Any]
) -> tuple[Jaxpr, list[Step]] | None:
    """The program and its steps, with their kernels loaded; None if this machine would lower it otherwise.

    Parameters
    ----------
    data : dict
        What `encode_program` returned.
    load : callable
        Loads the kernel of a key.
    consts : sequence
        The constants that `encode_program` had.

    Raises
    ------
    RuntimeError, MissingRoutineError
        If a kernel cannot be loaded here.
    """
    own = data["own products"]
    if own_products([*own]) != own:
        return None
    jaxpr = decode_jaxpr(data["jaxpr"], consts)
    variables = _variables(jaxpr)
    steps: list[Step] = []
    for kind, *parts in data["steps"]:
        if kind == "host":
            steps.append(HostStep(jaxpr.eqns[parts[0]]))
        elif kind == "view":
            old, new = (variables[i] for i in parts)
            steps.append(ViewStep(Eqn(reshape_p, [old], [new], {"shape": new.aval.shape})))
        else:
            steps.append(_decode_call(parts[0], load, variables))
    return jaxpr, steps


def _variables(jaxpr: Jaxpr) -> list[Var]:
    """All variables, in the order of their numbers in `encode_jaxpr`."""
    return [*jaxpr.invars, *jaxpr.constvars, *[v for e in jaxpr.eqns for v in e.outvars]]


def _is_plain(unit: KernelUnit) -> bool:
    """Whether a call of the kernel needs its arguments alone."""
    return not (unit.checked or unit.calls or unit.updates or unit.counters)


def _variable(a: Atom) -> Var:
    assert isinstance(a, Var)
    return a


def _encode_call(unit: KernelUnit, key: str, number: Mapping[Var, int]) -> dict[str, Any]:
    return {
        "key": key,
        "numbers": base64.b64encode(packed_numbers(unit.ints, unit.floats)).decode(),
        "storages": list(unit.storages),
        "outvars": [number[_variable(a)] for a in unit.outvars],
        "interface": [[name, number[v], int(i)] for name, (v, i) in unit.interface.items()],
        "scratch": {name: int(n) for name, n in unit.scratch.items()},
        "large": bool(unit.large),
        "may_fail": unit.may_fail,
    }


def _decode_call(
    call: dict[str, Any], load: Callable[[str], LoadedCode], variables: Sequence[Var]
) -> FiledKernel:
    return FiledKernel(
        storages=call["storages"],
        outvars=tuple([variables[i] for i in call["outvars"]]),
        interface={name: (variables[v], i) for name, v, i in call["interface"]},
        updates={},
        scratch=call["scratch"],
        calls=(),
        large=call["large"],
        may_fail=call["may_fail"],
        numbers=base64.b64decode(call["numbers"]),
        code=load(call["key"]),
    )

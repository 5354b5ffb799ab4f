"""Calls with one bad argument, and what came of each: run in a process of its own, which may hang or die.

    python tests/bad_input/probing.py out.jsonl first stop step

writes a line for each `step`-th call from number `first` to `stop`: that of a call that ends the process is missing.
"""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from bad_values import FOREIGN, VALUES
from base_calls import Base, bases, parameters, places

import functrans as ft
from functrans.arrays.array import Array
from functrans.errors import ConcretizationTypeError, FunctransError, ImmutableArrayError, LinAlgError
from functrans.testing import LawViolation

SECONDS = 5.0
MEMORY = 8 << 30
TESTS = str(Path(__file__).parents[1])


class TooLong(BaseException):
    """Raised by the alarm."""


@dataclass(frozen=True)
class Probe:
    """One call: `place` of `base` holds the bad value."""

    base: Base
    parameter: str
    place: int | str
    value: str

    @property
    def id(self) -> str:
        """As in a report."""
        at = self.place if isinstance(self.place, str) else f"{self.place}:{self.parameter}"
        shape = "".join(f", {k}=" for k in self.base.kwargs if k != self.place)
        return f"{self.base.name}({at}={self.value}{shape})"

    def arguments(self) -> tuple[list[Any], dict[str, Any]]:
        """Those of the call, made anew."""
        args, kwargs = (
            [_copied(a) for a in self.base.args],
            {k: _copied(v) for k, v in self.base.kwargs.items()},
        )
        bad = VALUES[self.value]()
        if isinstance(self.place, int):
            args[self.place] = bad
        else:
            kwargs[self.place] = bad
        return args, kwargs


@dataclass(frozen=True)
class Outcome:
    """What a call did: ``ok`` with a result, ``raised`` an error, ``hung``."""

    kind: str
    result: Any = None
    error: BaseException | None = None

    @property
    def typed(self) -> bool:
        """Whether the error is one of functrans: also a law that does not hold."""
        return isinstance(self.error, FunctransError | LawViolation)

    def __str__(self) -> str:
        if self.error is None:
            return self.kind
        return (
            f"{type(self.error).__name__}: {str(self.error).splitlines()[0][:200] if str(self.error) else ''}"
        )


#: What takes as long as was asked for.
ENDLESS = {
    ("fori_loop", "upper", "2**40"),
    ("fori_loop", "lower", "-2**62"),
    ("while_loop", "init_val"),
    ("check", "order", "7"),
    ("check_grads", "order", "7"),
    ("check_grads", "order", "2**40"),
    ("check", "order", "2**40"),
}


def probes() -> list[Probe]:
    """All of them, in a fixed order."""
    seen: set[str] = set()
    found = []
    for base in bases():
        for parameter, place in places(base):
            for value in VALUES:
                name = base.name.rsplit(".", 1)[-1]
                if (name, parameter) in ENDLESS or (name, parameter, value) in ENDLESS:
                    continue
                probe = Probe(base, parameter, place, value)
                if probe.id not in seen:
                    seen.add(probe.id)
                    found.append(probe)
    return found


def _copied(x: Any) -> Any:
    if isinstance(x, np.ndarray):
        return x.copy()
    if type(x) in (list, tuple):
        return type(x)(_copied(part) for part in x)
    return {k: _copied(v) for k, v in x.items()} if type(x) is dict else x


def _ring(*_: Any) -> None:
    raise TooLong


def outcome(call: Any) -> Outcome:
    """Call, for some seconds of processor time."""
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        return Outcome("ok", call())
    except TooLong as error:
        return Outcome("hung", error=error)
    except Exception as error:
        return Outcome("raised", error=error)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)


# --- judging ------------------------------------------------------------------------------------------------


def of_the_users_own(error: BaseException, probe: Probe) -> bool:
    """Whether a function that the user passed raised it, or an object that fails as an array."""
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    inside = next((i for i, file in enumerate(files) if not file.startswith(TESTS)), len(files))
    if inside == len(files) or any(file.startswith(TESTS) for file in files[inside:]):
        return True
    if probe.parameter == "bar":  # an object of the user's, whose methods are called
        return True
    given = [*probe.base.args, VALUES[probe.value]()]
    return any(callable(x) and not hasattr(x, "__code__") and not hasattr(x, "__array__") for x in given)


def names(error: BaseException, probe: Probe) -> bool:
    """Whether the message says which argument is bad: by its name, its position, or what was met."""
    text = str(error).split("\n")[0]
    stem = probe.parameter.rstrip("_")
    if re.search(rf"\b{re.escape(stem)}\b", text, re.IGNORECASE):
        return True
    if re.search(
        r"\b(argument|operand|input|array|list|leaf|axis|axes|shapes?|dtypes?|index|indices|size)\b", text
    ):
        return True
    value = VALUES[probe.value]()
    try:
        return repr(value)[:30] in text
    except Exception:
        return False


def same(got: Any, expected: Any) -> bool:
    """Whether two results are equal: containers, arrays with their dtypes, Python's numbers."""
    if isinstance(expected, (tuple, list)):
        return len(got) == len(expected) and all(map(same, got, expected))
    if isinstance(expected, dict):
        return got.keys() == expected.keys() and all(same(got[k], expected[k]) for k in expected)
    if isinstance(expected, (np.ndarray, np.generic)) or isinstance(got, np.ndarray):
        got, expected = np.asarray(got), np.asarray(expected)
        if (got.shape, got.dtype) != (expected.shape, expected.dtype):
            return False
        if got.dtype.kind in "fc":
            single = got.dtype in (np.float16, np.float32, np.complex64)
            return bool(np.allclose(got, expected, rtol=1e-3 if single else 1e-7, atol=1e-6, equal_nan=True))
        return bool(np.array_equal(got, expected))
    try:
        return bool(got == expected)
    except Exception:
        return True


def plain(x: Any) -> Any:
    """Arrays as NumPy's."""
    return np.array(x) if isinstance(x, Array) else x


def judge(probe: Probe) -> tuple[str, str]:
    """The class of what happened, and a line about it. Empty where all is well."""
    args, kwargs = probe.arguments()
    base = probe.base
    ours = outcome(lambda: base.run(base.function, args, kwargs))
    if ours.kind == "hung":
        return "hang", ""
    if isinstance(ours.error, MemoryError) and not ours.typed:
        return "memory", str(ours)
    if ours.kind == "raised" and not ours.typed:
        if of_the_users_own(ours.error, probe):
            return "", ""
        return "internal", str(ours)
    theirs = _theirs(probe)
    if ours.typed:
        if theirs is not None and theirs.kind == "ok" and not refused_on_purpose(probe, ours.error):
            return "refused", str(ours)
        if not isinstance(ours.error, LawViolation) and not names(ours.error, probe):
            return "unnamed", str(ours)
    elif theirs is not None and theirs.kind == "raised":
        if not accepted_on_purpose(probe, theirs.error):
            return "accepted", str(theirs)
    elif theirs is not None and not same(ours.result, theirs.result) and "empty" not in base.name:
        return "differs", f"{ours.result!r:.100} for {theirs.result!r:.100}"
    return _traced(probe, ours) if base.traceable else ("", "")


def refused_on_purpose(probe: Probe, error: BaseException) -> bool:
    """Whether docs/sharp_bits.md says that NumPy takes this and functrans does not."""
    text = str(error)
    return (
        probe.value in FOREIGN
        or isinstance(error, ImmutableArrayError)
        or "must be True or False" in text
        or "must be an integer" in text
        or "must be a real number" in text
        or "out= is not supported" in text
        or "where= leaves elements" in text
        or "must be of dtype bool" in text
        or "must be a string" in text
        or isinstance(error, LinAlgError)  # SciPy takes numbers for matrices here and there
        or probe.value == "(1,)*40"
    )


def accepted_on_purpose(probe: Probe, error: BaseException) -> bool:
    """Whether functrans takes more than NumPy, as sharp_bits.md says, or NumPy's error is one of its code."""
    if isinstance(error, AttributeError) or any(accident in str(error) for accident in ACCIDENTS):
        return True
    annotation = next(
        (p.annotation for p in parameters(probe.base.function) if p.name == probe.parameter), ""
    )
    if "bool" in str(annotation) or probe.parameter == "subok":
        return probe.value in ("True", "np.True_", "0", "0-d int", "np.int64(1)", "None")
    return probe.parameter in ("axis", "axes") and probe.value in ("[]", "range(3)")


#: What NumPy's Python code says where it meets what it did not expect.
ACCIDENTS = (
    "len() of unsized",
    "dispatcher for __array_function__",
    "takes exactly",
    "not enough values to unpack",
    "object is not iterable",
    "loop of ufunc does not support",
    "has no len()",
    "is not subscriptable",
)


def _theirs(probe: Probe) -> Outcome | None:
    """NumPy's or SciPy's; None where it has no such function or parameter, or does not end."""
    base = probe.base
    if (
        base.counterpart is None
        or probe.parameter == "out"
        or (probe.parameter == "where" and isinstance(base.counterpart, np.ufunc))
    ):
        return None  # functrans refuses these, and NumPy writes where it should not
    args, kwargs = probe.arguments()
    with np.errstate(all="ignore"):
        found = outcome(lambda: base.run(base.counterpart, args, kwargs))
    if found.kind == "hung" or isinstance(found.error, MemoryError):
        return None
    if isinstance(found.error, TypeError) and "keyword argument" in str(found.error):
        return None
    return found


def _traced(probe: Probe, ours: Outcome) -> tuple[str, str]:
    """The same while tracing: the arrays of the call are traced, but for the bad one."""
    args, kwargs = probe.arguments()
    where = [
        k
        for k, x in [*enumerate(args), *kwargs.items()]
        if k != probe.place and isinstance(x, np.ndarray) and x.dtype.kind in "fc"
    ]
    if not where:
        return "", ""

    def f(*values: Any) -> Any:
        positional, named = list(args), dict(kwargs)
        for k, x in zip(where, values):
            (positional if isinstance(k, int) else named)[k] = x  # type: ignore[index]
        probe.base.run(probe.base.function, positional, named)

    given = [args[k] if isinstance(k, int) else kwargs[k] for k in where]
    staged = outcome(lambda: ft.make_jaxpr(f)(*given))
    if staged.kind == "hung":
        return "hang while tracing", ""
    if isinstance(staged.error, ConcretizationTypeError):
        return "", ""
    if staged.kind == "raised" and not staged.typed:
        return ("", "") if of_the_users_own(staged.error, probe) else ("internal while tracing", str(staged))
    if staged.kind == "raised" and ours.kind == "ok":
        return "only eagerly", str(staged)
    if staged.kind == "ok" and ours.kind == "raised":
        return "only while tracing", str(ours)
    return "", ""


def run(selected: Iterator[int]) -> Iterator[dict[str, Any]]:
    """Judge the calls of these numbers."""
    every = probes()
    signal.signal(signal.SIGPROF, _ring)
    warnings.simplefilter("ignore")
    with np.errstate(all="ignore"), ft.config.patch(traceback_filtering=False):
        for i in selected:
            kind, text = judge(every[i])
            yield {"i": i, "id": every[i].id, "kind": kind, "text": text}


def main(path: str, first: int, stop: int, step: int) -> None:
    """Write a line for each call."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 1)  # functions that print
    sys.stdout = open(devnull, "w")  # noqa: SIM115
    with open(path, "a", buffering=1) as file:
        for row in run(range(first, min(stop, len(probes())), step)):
            file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:5]))

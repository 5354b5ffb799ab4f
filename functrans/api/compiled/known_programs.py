"""Programs that an earlier process has lowered: their steps are read from disk, and not made again.

The key of a program is a hash of its equations and constants, the options, the number of threads, the processor, the
versions of libraries, and the state of functrans's own files. So what is found was lowered from equal equations by the
same code. Programs that hold Python functions, or call NumPy between kernels, are lowered in each process.
"""

from __future__ import annotations

import functools
import json
import logging
import os
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...control.call import call_p
from ...control.hooks.traced_hooks import sites
from ...core import Eqn, FunctransError, Jaxpr, subjaxprs
from ...core.debug_nans import looks_for_faults
from ...lowering.blas import MissingRoutineError
from ...lowering.llvm.c.native_call import layout_is_known
from ...lowering.llvm.objects import libraries
from ...lowering.llvm.store import keep_program, key_of, known_code, known_program, opened_disk
from ...lowering.llvm.symbols import load as load_code
from ...lowering.processor import processor
from ...lowering.run.filed import FiledExecutable
from ...lowering.steps import ViewStep
from ...lowering.undisturbed import undisturbed
from ...runtime.config import config
from ...runtime.module_getattr import STARTED, lazy_import
from ...runtime.option_list import OPTIONS
from ...runtime.private.python_names import blake2b
from ...runtime.unusual import recorded
from ..encoding import encode_jaxpr
from ..filed_programs import UNFIT, decode_program, encode_program, key_text

if TYPE_CHECKING:
    from ...lowering.run.executable import Executable

executable = lazy_import("functrans.lowering.run.executable")
backend = lazy_import("functrans.lowering.llvm.backend")
_log = logging.getLogger("functrans")
#: Programs with more bytes of constants are lowered in each process.
MOST_BYTES = 1 << 16
_NUMBERS = (np.ndarray, np.generic, bool, int, float, complex)


def compile_jaxpr(jaxpr: Jaxpr, donated: tuple[int, ...] = (), timed: bool = False) -> Any:
    """The executable of a jaxpr, see `executable.compile_jaxpr`: one from disk, if there is one."""
    start, consts = time.perf_counter(), tuple(_constants(jaxpr))
    key = None if donated or timed else _key(jaxpr, consts)
    if key is None:
        return executable.compile_jaxpr(jaxpr, donated, timed)
    known = recorded("cache", undisturbed, _found, key, jaxpr, consts)
    if known is None:
        return executable.compile_jaxpr(jaxpr, compiled=partial(_keep, key, consts))
    if config.log_compiles:
        types, seconds = ", ".join(map(str, jaxpr.in_avals)), time.perf_counter() - start
        _log.warning("Found %s for (%s) on disk in %.3f s", jaxpr.name, types, seconds)
    return known


def _key(jaxpr: Jaxpr, consts: Sequence[Any]) -> str | None:
    """The key of a program as it is lowered under the options of now; None if it is not looked for."""
    if not config.cache or config.checked or config.backend != "llvm" or looks_for_faults():
        return None
    if jaxpr.stats is None or sites(jaxpr) or not layout_is_known() or opened_disk() is None:
        return None
    if not all(isinstance(c, _NUMBERS) for c in consts):  # the state of a hook
        return None
    if sum(np.asarray(c).nbytes for c in consts) > MOST_BYTES:
        return None
    state = _state()
    if not state:
        return None
    try:
        encoded = encode_jaxpr(jaxpr)
    except FunctransError:
        return None
    return key_of(key_text(f"{state} {np.__version__}", encoded, config.num_threads), processor("native"))


def _constants(jaxpr: Jaxpr) -> Iterator[Any]:
    """The constants of a program, and of those in it."""
    yield from jaxpr.consts
    for eqn in jaxpr.eqns:
        for body in subjaxprs(eqn.params):
            yield from _constants(body)


@functools.cache
def _state() -> str:
    """A hash of where functrans's files are, their sizes and times: what is edited, or installed anew, compiles anew.

    (The place, since packages may have times that say nothing, and are then in a folder for each version.)
    It is empty if that happened since this process imported functrans, for then it may have loaded the files of before.
    """
    root = os.path.dirname(sys.modules["functrans"].__file__ or "")
    found, last = [root], 0.0
    try:
        for file in _files(root):
            status = file.stat()
            found.append(f"{file.path[len(root) :]} {status.st_size} {status.st_mtime_ns}")
            last = max(last, status.st_mtime, status.st_ctime)
    except OSError:  # it is in an archive
        return ""
    return "" if last >= STARTED else blake2b("\n".join(sorted(found)).encode(), digest_size=16).hexdigest()


def _files(folder: str) -> Iterator[os.DirEntry[str]]:
    """The Python files in a folder and those below it."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                yield entry
            elif "." not in entry.name and entry.name != "__pycache__" and entry.is_dir():
                yield from _files(entry.path)


_TRACED = tuple([name for name, option in OPTIONS.items() if option.traced])


def _found(key: str, jaxpr: Jaxpr, consts: Sequence[Any]) -> FiledExecutable | None:
    """The program of this key, with its kernels loaded; None if something is missing, or does not load here."""
    text = known_program(key)
    if text is None:
        return None
    libraries.run()
    origins = []

    def load(kernel: str) -> Any:
        loaded, origin = known_code(kernel, load_code)
        origins.append(origin)
        return loaded

    try:
        found = decode_program(json.loads(text), load, consts)
    except (*UNFIT, RuntimeError, MissingRoutineError):
        return None
    if found is None:
        return None
    for origin in origins:
        jaxpr.stats.count_kernel("llvm", origin)
    copy = jaxpr.replace()  # the jaxpr itself will keep this object
    copy.stats = None  # its kernels have been counted
    options = {name: getattr(config, name) for name in (*_TRACED, "num_threads")}
    return FiledExecutable(*found, partial(_lowered, copy, options), has_equations=False)


def _lowered(jaxpr: Jaxpr, options: dict[str, Any]) -> Any:
    """The program as it is lowered here under the options of its key."""
    with config.patch(**options):
        return executable.Executable(jaxpr)


def _keep(key: str, consts: Sequence[Any], made: Executable) -> None:
    """Write a program to disk that has been compiled, but not the constants that it has or that were made of them."""
    units = made.kernels
    if len(units) + sum(isinstance(step, ViewStep) for step in made.steps) != len(made.steps):
        return
    simplified, known = made.simplified, {*map(id, consts)}
    if any(unit.route != "llvm" for unit in units) or any(id(c) not in known for c in simplified.consts):
        return
    codes = {unit: backend.kernel_code(unit.kernel, made.options) for unit in units}
    # Its steps are enough: of its equations it needs the variables.
    variables = Eqn(call_p, [], [v for eqn in simplified.eqns for v in eqn.outvars], {})
    program = encode_program(simplified.replace(eqns=[variables]), made.steps, codes, consts)
    if program is not None:
        keep_program(key, json.dumps(program), f"{simplified.name}: program")

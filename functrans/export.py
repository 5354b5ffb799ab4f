"""Ship a jitted function with its kernels to another process, or another machine.

`save` writes a file with the function's machine code for one combination of argument types, compiled for a level of
processors, how to call it, and the jaxpr. `load` reads it: the function runs without tracing, lowering, compiling, or
its Python source. If these do not suit the machine or the options, the jaxpr is lowered, and its kernels are compiled,
as far as the file has none for it.

A file holds machine code. Load only files that you trust.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import struct
import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

import numpy as np

from .api.compiled.jit import jit
from .api.compiled.jitted import Jitted
from .api.compiled.lowered import Compiled, Traced
from .api.encoding import decode_jaxpr, decode_tree, encode_jaxpr, encode_tree
from .api.filed_programs import UNFIT, decode_program, encode_program, key_text
from .core import Jaxpr, current_trace, eval_trace, has_subjaxprs, run_with, subjaxprs
from .errors import ArgumentValueError, ExportError
from .frontend.arguments import check_function, path_of
from .frontend.pytree import tree_structure, tree_unflatten
from .lowering.blas import MissingRoutineError
from .lowering.llvm.c.native_call import layout_is_known
from .lowering.llvm.objects import ObjectCode
from .lowering.llvm.store import fingerprint, key_of, note_lasting, shipped
from .lowering.llvm.symbols import load as load_code
from .lowering.processor import ALL_LEVELS, LEVELS, host, processor
from .lowering.run.filed import FiledExecutable
from .lowering.undisturbed import undisturbed
from .passes.check import check_jaxpr
from .runtime.config import config
from .runtime.module_getattr import lazy_import
from .runtime.module_getattr import module_attributes as _module_attributes
from .runtime.private.python_names import blake2b

backend = lazy_import("functrans.lowering.llvm.backend")
executable = lazy_import("functrans.lowering.run.executable")
simplify = lazy_import("functrans.lowering.jaxpr.simplify")
__all__ = ("Exported", "load", "save")

_MAGIC = b"functrans export\n"
#: A number of threads for which a program is lowered otherwise than for one, if the number makes a difference.
_MANY = 64
#: Magic, checksum of the rest, length of the description.
_HEAD = struct.Struct(f"<{len(_MAGIC)}s32sQ")


class Exported(Compiled):
    """A function from a file; see `load`.

    Attributes
    ----------
    cpu : str
        The level of processors that its kernels were compiled for: 'native' if they were compiled here.
    in_avals, out_avals : list
        Shapes and dtypes of the leaves of arguments and results.
    """

    _instead = "Send the file, and load it there"

    def __init__(self, traced: Traced, in_tree: Any, cpu: str, differentiable: bool):
        super().__init__(traced, in_tree)
        self.cpu = cpu
        self.in_avals, self.out_avals = traced.jaxpr.in_avals, traced.jaxpr.out_avals
        self._differentiable = differentiable

    def _called(self) -> str:
        return f"the exported function {self._traced.jaxpr.name}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it on arguments of the types that it was exported for; others raise `ArgumentError`."""
        if not self._differentiable and current_trace.get() is not eval_trace:
            raise ExportError(
                f"{self._called()} had derivative rules, which an export does not contain: it cannot be "
                "transformed. Export the pair: functrans.export.save(path, jit(value_and_grad(f)), ...)"
            )
        return super().__call__(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<exported {self._traced.jaxpr.name} for {self.cpu}>"


def save(path: Any, fun: Callable[..., Any], *examples: Any, cpu: str = "native", **named: Any) -> None:
    """Write a function with its kernels to a file.

    Parameters
    ----------
    path : str or path-like
        The file. It is replaced in one step.
    fun : callable
        A jitted function, or one to be jitted: ``jit(f)``, ``value_and_grad(f)`` for the pair.
    *examples, **named
        The arguments of a call: arrays, numbers or `ShapeDtypeStruct`s. The file serves calls with these types.
    cpu : str
        The target processors: those like this machine's ('native'), or all of a level of its architecture: 'x86-64',
        'x86-64-v2', 'x86-64-v3' (AVX2), 'x86-64-v4' (AVX-512); 'armv8.0', 'armv8.2', 'apple-m1'.

    Raises
    ------
    ArgumentValueError
        If `cpu` is no level of this machine's architecture: only a machine of the architecture writes kernels for it.
    ExportError
        If the function calls back into Python, uses values of an enclosing trace, or its arguments or results are of
        classes that cannot be imported.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functrans import export
    >>> def loss(w, x):
    ...     return fnp.mean(fnp.tanh(x @ w) ** 2)
    >>> path = os.path.join(tempfile.mkdtemp(), "loss.ft")
    >>> export.save(path, ft.jit(ft.value_and_grad(loss)), np.ones(3), np.ones((5, 3)))
    >>> value_and_grad = export.load(path)
    >>> value, gradient = value_and_grad(np.zeros(3), np.ones((5, 3)))
    >>> value, gradient.shape
    (Array(0.), (3,))
    """
    name = path_of("export.save: path", path)
    check_function("export.save", fun)
    if cpu != "native" and cpu not in LEVELS:
        foreign = f", a level of another architecture than this machine's ({platform.machine()})"
        raise ArgumentValueError(
            f"export.save: cpu must be 'native' or one of {', '.join(LEVELS)}, got {cpu!r}"
            f"{foreign if cpu in ALL_LEVELS else ''}"
        )
    jitted = fun if isinstance(fun, Jitted) else jit(fun)
    traced, in_tree = jitted.traced(*examples, **named)
    if traced.captured or traced.hooks:
        what = "uses values of an enclosing transformation" if traced.captured else "registers hooks"
        raise ExportError(f"export.save: {traced.jaxpr.name} {what}, which a file cannot hold")
    jaxpr = simplify.inlined(traced.jaxpr).replace()
    jaxpr.stats = None
    encoded = encode_jaxpr(jaxpr)
    codes: dict[str, ObjectCode] = {}
    with config.patch(backend="llvm", disable_jit=False, debug_nans=False, debug_infs=False):
        program, threads = run_with(shipped, codes, undisturbed, _compiled, jaxpr, cpu)
        if program is not None:
            codes[_key(cpu, encoded, threads)] = ObjectCode("", (), json.dumps(program).encode())
    images = b"".join(code.image for code in codes.values())
    description = {
        "version": _version(),
        "cpu": cpu,
        "processor": _processor(cpu),
        "fingerprint": fingerprint(processor(cpu)),
        "jaxpr": encoded,
        "arguments": encode_tree(in_tree),
        "results": encode_tree(traced.out_tree),
        "differentiable": not _has_rules(traced.jaxpr),
        "kernels": [[key, code.entry, code.symbols, len(code.image)] for key, code in codes.items()],
    }
    text = json.dumps(description).encode()
    body = text + images
    _write(name, _HEAD.pack(_MAGIC, _checksum(len(text), body), len(text)) + body)


def load(path: Any) -> Exported:
    """Read a function that `save` wrote.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    Exported
        Takes arguments of the types that were exported. It may be transformed and called by jitted functions, which
        then compile its jaxpr for themselves; not if the function had derivative rules.

    Raises
    ------
    ExportError
        If the file is damaged, is not an export, or comes from another minor version of functrans.
    OSError
        If it cannot be read.

    Warns
    -----
    RuntimeWarning
        If the kernels are for processors with more features than this one, or for another version of LLVM or Python:
        they are then compiled here.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from functrans import export
    >>> path = os.path.join(tempfile.mkdtemp(), "double.ft")
    >>> export.save(path, lambda x: 2.0 * x, np.ones(3))
    >>> export.load(path)(np.arange(3.0))
    Array([0., 2., 4.])
    """
    name = path_of("export.load: path", path)
    description, images = _read(name)
    theirs, ours = description["version"], _version()
    if theirs.split(".")[:2] != ours.split(".")[:2]:
        raise ExportError(
            f"{name} was written by functrans {theirs}, and this is functrans {ours}: exports are read by the same "
            "minor version"
        )
    cpu, codes = description["cpu"], _codes(name, description["kernels"], images)
    misfit = _misfit(description)
    if misfit:
        cpu, codes = "native", {}
    try:
        jaxpr = decode_jaxpr(description["jaxpr"])
        in_tree, out_tree = decode_tree(description["arguments"]), decode_tree(description["results"])
        check_jaxpr(jaxpr)
        for tree, avals in ((in_tree, jaxpr.in_avals), (out_tree, jaxpr.out_avals)):
            leaves = [np.broadcast_to(np.zeros((), a.dtype), a.shape) for a in avals]
            if tree_structure(tree_unflatten(tree, leaves)) != tree:
                raise ValueError(f"{tree} is no structure of {len(leaves)} leaves")
        with config.patch(backend="llvm"):
            ready = run_with(shipped, codes, _ready, jaxpr, description["jaxpr"], cpu, codes)
    except UNFIT as error:
        _damaged(name, f"what it describes cannot be built here ({type(error).__name__}: {error})")
    if misfit:
        warnings.warn(f"{name}: {misfit}; its kernels are compiled here", RuntimeWarning, stacklevel=3)
    run_with(shipped, codes, ready.compile)
    jaxpr.derive(("executable", False), lambda: ready)
    return Exported(Traced(jaxpr, out_tree, ()), in_tree, cpu, description["differentiable"])


def _compiled(jaxpr: Jaxpr, cpu: str) -> tuple[dict[str, Any] | None, int | None]:
    """Compile a program: how it is lowered, and for how many threads, None for any number.

    The object code is noted, also that of kernels which are in use, and of what they share.
    """
    made = executable.Executable(jaxpr, cpu=cpu)
    native = [unit for unit in made.kernels if unit.route == "llvm"]
    codes = {unit: backend.kernel_code(unit.kernel, made.options) for unit in native}
    note_lasting()
    with config.patch(num_threads=1 if config.num_threads > 1 else _MANY):
        other = executable.Executable(jaxpr, cpu=cpu)
    threads = None if made.is_lowered_as(other) else config.num_threads
    return encode_program(made.simplified, made.steps, codes, jaxpr.consts), threads


def _ready(jaxpr: Jaxpr, encoded: dict[str, Any], cpu: str, codes: dict[str, ObjectCode]) -> Any:
    """The program, as it was lowered by the writer if it would be lowered like that here."""
    keys = [_key(cpu, encoded, threads) for threads in (None, config.num_threads)]
    program = next((codes[key] for key in keys if key in codes), None)
    lower = partial(_lowered, jaxpr.replace(), cpu)
    if program is not None and layout_is_known():
        with contextlib.suppress(RuntimeError, MissingRoutineError):
            found = undisturbed(
                decode_program, json.loads(program.image), lambda key: load_code(codes[key]), jaxpr.consts
            )
            if found is not None:
                simplified, steps = found
                return FiledExecutable(
                    simplified, steps, lambda: run_with(shipped, codes, lambda: lower().compile())
                )
    return lower()


def _lowered(jaxpr: Jaxpr, cpu: str) -> Any:
    with config.patch(backend="llvm"):
        return executable.Executable(jaxpr, cpu=cpu)


def _key(cpu: str, encoded: dict[str, Any], threads: int | None) -> str:
    """The key of a program as it is lowered under the options of now."""
    return key_of(key_text(_version(), encoded, threads), processor(cpu))


def _codes(path: str, kernels: list[Any], images: bytes) -> dict[str, ObjectCode]:
    """The object code of each kernel, whose images stand one after the other."""
    codes, place = {}, 0
    for kernel in kernels:
        match kernel:
            case [str(key), str(entry), list(symbols), int(size)] if size >= 0 and _are_strings(symbols):
                codes[key] = ObjectCode(entry, tuple(symbols), images[place : place + size])
                place += size
            case _:
                _damaged(path, f"a kernel is {kernel!r}")
    if place != len(images):
        _damaged(path, f"its kernels have {len(images)} bytes instead of {place}")
    return codes


def _are_strings(values: list[Any]) -> bool:
    return all(type(x) is str for x in values)


def _misfit(description: dict[str, Any]) -> str:
    """The reason why the kernels of a file cannot run here; empty if they can."""
    cpu = description["cpu"]
    if cpu == "native":
        if description["processor"] != _processor(cpu):
            return (
                f"it is for the processor {description['processor'][0]}, and this one is {_processor(cpu)[0]}"
            )
    elif cpu not in LEVELS:
        return f"it is for processors of the level {cpu}, and this one is of the architecture {platform.machine()}"
    elif missing := LEVELS[cpu] - host().features:
        return f"it is for processors of the level {cpu}, and this one lacks {', '.join(sorted(missing))}"
    if description["fingerprint"] != fingerprint(processor(cpu)):
        return "it was written with another version of functrans, LLVM, Python or the C library"
    return ""


def _processor(cpu: str) -> list[str]:
    target = processor(cpu)
    return [target.name, target.flags]


def _has_rules(jaxpr: Jaxpr) -> bool:
    """Whether some operation has derivative rules."""
    return any(
        (e.primitive.call is not None and e.primitive.call.opaque)
        or (has_subjaxprs(e.params) and any(map(_has_rules, subjaxprs(e.params))))
        for e in jaxpr.eqns
    )


def _version() -> str:
    return sys.modules[__package__].__version__


# --- files --------------------------------------------------------------------------------------------------


def _write(path: str, data: bytes) -> None:
    number, unfinished = tempfile.mkstemp(dir=os.path.dirname(os.path.abspath(path)), suffix=".tmp")
    try:
        with open(number, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(number)
        os.replace(unfinished, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(unfinished)
        raise


def _read(path: str) -> tuple[dict[str, Any], bytes]:
    """The description in a file, and the images of its kernels."""
    with open(path, "rb") as file:
        data = file.read()
    if len(data) < _HEAD.size:
        _damaged(path, f"it has {len(data)} bytes, fewer than a header")
    magic, checksum, length = _HEAD.unpack_from(data)
    if magic != _MAGIC:
        _damaged(path, f"it begins with {data[:12]!r}")
    body = data[_HEAD.size :]
    if _checksum(length, body) != checksum:
        _damaged(path, "its checksum is wrong: the file was cut off or changed")
    try:
        description = json.loads(body[:length])
    except (ValueError, RecursionError) as error:
        _damaged(path, f"its description is no JSON ({error})")
    if type(description) is not dict:
        _damaged(path, f"its description is a {type(description).__name__}")
    for field, fits in _FIELDS.items():
        if field not in description:
            _damaged(path, f"its description has no '{field}'")
        if not fits(description[field]):
            _damaged(path, f"its '{field}' is {description[field]!r:.80}")
    return description, body[length:]


#: What must be in a description, and what it may be; `decode_jaxpr` and `decode_tree` see to the rest.
_FIELDS: dict[str, Callable[[Any], bool]] = {
    "version": lambda x: type(x) is str,
    "cpu": lambda x: x == "native" or (type(x) is str and x in ALL_LEVELS),
    "processor": lambda x: type(x) is list and len(x) == 2 and _are_strings(x),
    "fingerprint": lambda x: type(x) is str,
    "jaxpr": lambda x: type(x) is dict,
    "arguments": lambda x: x is None or type(x) is list,
    "results": lambda x: x is None or type(x) is list,
    "differentiable": lambda x: type(x) is bool,
    "kernels": lambda x: type(x) is list,
}


def _checksum(length: int, body: bytes) -> bytes:
    """Of the description and the images, and of where one ends and the other begins."""
    return blake2b(body, digest_size=32, salt=length.to_bytes(8, "little")).digest()


def _damaged(path: str, what: str) -> NoReturn:
    raise ExportError(f"{path} is not a whole export of functrans: {what}")


__getattr__, __dir__ = _module_attributes("functrans.export", globals())

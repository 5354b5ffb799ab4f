"""A cache of object code, in memory and on disk, shared with other processes.

A key is a hash of everything that the machine code depends on: the text of a kernel in loop IR, its options, the code
of functrans that turns it into LLVM text, the versions of LLVM and CPython, the C library, and the processor. (Not the
version of Numba, which is not involved.) So equal keys mean equal machine code, and no entry ever becomes stale.
"""

from __future__ import annotations

import functools
import json
import os
import platform
import sys
import warnings
from collections import OrderedDict
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from ...runtime.config import config
from ...runtime.context import LivingValues, new_lock
from ...runtime.libraries import llvm, llvmlite
from ...runtime.private.python_names import blake2b
from ..backend import Origin
from ..blas import MissingRoutineError
from ..disk import Disk, UntrustedDirectoryError
from ..processor import Processor
from .objects import LoadedCode, ObjectCode

#: The most bytes of object code that a process caches for kernels that are no longer in use.
_KEPT = 1 << 24
#: Packages whose source determines the LLVM text, besides the text of a kernel, and how programs call kernels.
_SOURCES = (
    "lowering/llvm/**/*.py", "lowering/loops/*.py", "lowering/processor.py", "lowering/blas.py", "runtime/guards.py",
    "passes/scalar_functions.py", "primitives/special/formulas.py",
    "lowering/steps.py", "lowering/run/*.py",
)  # fmt: skip


#: The code that the kernels of this process share (calls, threads, products, memory of results, functions), by key, and
#: what the symbols begin with that need it.
_lasting: dict[str, tuple[str, ObjectCode]] = {}


def obtain(
    key_text: str,
    cpu: Processor,
    about: str,
    make: Callable[[], ObjectCode],
    load: Callable[[ObjectCode], LoadedCode],
    *,
    lasting: str | None = None,
) -> tuple[LoadedCode, Origin]:
    """Machine code from the cache, or compiled now and stored for others.

    Parameters
    ----------
    key_text : str
        The text that determines the code, apart from the processor and versions.
    cpu : Processor
    about : str
        A description for people who list the cache.
    make, load : callables
        The functions that compile it and load it.
    lasting : str, optional
        It stays loaded, and those exports of this process hold it whose kernels need a symbol that begins so.
    """
    key = key_of(key_text, cpu)
    noted = shipped.get()
    shipment = {} if noted is None else noted
    origins: tuple[tuple[Origin, Any], ...] = (
        ("disk", shipment.get),
        ("memory", _recent.get),
        ("disk", _from_disk),
    )
    for origin, find in origins:
        code = find(key)
        if code is not None:
            try:
                loaded = load(code)
            except (RuntimeError, MissingRoutineError):  # a library that it calls has changed
                continue
            if origin == "disk":
                _recent.put(key, code)
            shipment[key] = code
            if lasting is not None:
                _lasting[key] = lasting, code
            _in_use[key] = loaded
            return loaded, origin
    code = make()
    loaded = _in_use[key] = load(code)
    shipment[key] = code
    if lasting is not None:
        _lasting[key] = lasting, code
    _keep(key, code, about)
    return loaded, "compiled"


def known_code(key: str, load: Callable[[ObjectCode], LoadedCode]) -> tuple[LoadedCode, Origin]:
    """Machine code by its key, loaded by `load`, and where it was.

    Raises
    ------
    KeyError
        If no process has kept it.
    RuntimeError, MissingRoutineError
        If it cannot be loaded here.
    """
    loaded = _in_use.get(key)
    if loaded is not None:
        return loaded, "memory"
    recent = _recent.get(key)
    code = _from_disk(key) if recent is None else recent
    if code is None:
        raise KeyError(key)
    loaded = _in_use[key] = load(code)
    _recent.put(key, code)
    return loaded, "disk" if recent is None else "memory"


def object_code(
    key_text: str, cpu: Processor, about: str, make: Callable[[], ObjectCode]
) -> tuple[str, ObjectCode]:
    """The object code that `obtain` loads, and its key."""
    key = key_of(key_text, cpu)
    noted = shipped.get()
    shipment = {} if noted is None else noted
    code = shipment.get(key) or _recent.get(key) or _from_disk(key)
    if code is None:
        code = make()
        _keep(key, code, about)
    shipment[key] = code
    return key, code


def note_lasting() -> None:
    """Note in `shipped` what this process has loaded to last, and its kernels need."""
    shipment = shipped.get()
    assert shipment is not None
    symbols = {symbol for code in shipment.values() for symbol in code.symbols}
    for key, (prefix, code) in _lasting.items():
        if not prefix or any(symbol.startswith(prefix) for symbol in symbols):
            shipment[key] = code


def key_of(key_text: str, cpu: Processor) -> str:
    """The key of what depends on this text, on the processor and on versions."""
    return blake2b(f"{fingerprint(cpu)}\n{key_text}".encode(), digest_size=24).hexdigest()


def _keep(key: str, code: ObjectCode, about: str) -> None:
    """Keep object code for others, in this process and on disk."""
    _recent.put(key, code)
    disk = opened_disk()
    if disk is not None:
        disk.put(key, _packed(code, about), config.cache_limit)


#: The object code of an export, by key: sought here first, and what is obtained in the context is noted here.
shipped: ContextVar[dict[str, ObjectCode] | None] = ContextVar("functrans_shipped", default=None)


class _Recent:
    """A cache of the most recently used object code."""

    def __init__(self) -> None:
        self._codes: OrderedDict[str, ObjectCode] = OrderedDict()
        self._lock = new_lock()

    def get(self, key: str) -> ObjectCode | None:
        with self._lock:
            code = self._codes.get(key)
            if code is not None:
                self._codes.move_to_end(key)
            return code

    def put(self, key: str, code: ObjectCode) -> None:
        with self._lock:
            self._codes[key] = code
            self._codes.move_to_end(key)
            # Counted each time: a sum that is kept would be wrong after an interrupt of `clear`.
            size = sum([len(c.image) for c in self._codes.values()])
            while size > _KEPT:
                _, old = self._codes.popitem(last=False)
                size -= len(old.image)

    def clear(self) -> None:
        with self._lock:
            self._codes.clear()


_recent = _Recent()
#: Machine code that something runs, by key.
_in_use: LivingValues[str, LoadedCode] = LivingValues()


def forget() -> None:
    """Clear the object code cached in this process; who runs some keeps it."""
    _recent.clear()
    _in_use.clear()


# --- the key ------------------------------------------------------------------------------------------------


@functools.cache
def fingerprint(cpu: Processor) -> str:
    """What machine code depends on, besides the text of a kernel."""
    return json.dumps(
        [
            _hash_of_sources(),
            [*llvm.llvm_version_info, llvmlite.__version__],
            [platform.machine(), sys.platform, *_c_library()],
            [sys.implementation.cache_tag, tuple.__basicsize__, object.__basicsize__],
            [cpu.name, cpu.flags],
        ]
    )


def _hash_of_sources() -> str:
    """A hash of the modules that generate LLVM text: their version, even during development."""
    root = Path(__file__).parents[2]
    digest = blake2b(digest_size=16)
    paths = [path for pattern in _SOURCES for path in sorted(root.glob(pattern))]
    for path in paths:
        digest.update(path.read_bytes())
    # An installation may have no sources.
    return digest.hexdigest() if paths else sys.modules["functrans"].__version__


def _c_library() -> tuple[str, ...]:
    """The version of the C library, which determines the available vector functions."""
    try:
        return (os.confstr("CS_GNU_LIBC_VERSION") or "",)
    except (AttributeError, ValueError, OSError):
        return platform.libc_ver()


# --- files --------------------------------------------------------------------------------------------------


def _packed(code: ObjectCode, about: str) -> bytes:
    head = {"about": about, "entry": code.entry, "symbols": code.symbols}
    return json.dumps(head).encode() + b"\n" + code.image


def keep_program(key: str, text: str, about: str) -> None:
    """Write a lowered program to disk, whose kernels are there as well."""
    disk = opened_disk()
    if disk is not None:
        disk.put(key, _packed(ObjectCode("", (), text.encode()), about), config.cache_limit)


def known_program(key: str) -> str | None:
    """The lowered program of a key, as `keep_program` wrote it; None if there is none."""
    code = _from_disk(key)
    return None if code is None else code.image.decode()


def unpacked(data: bytes) -> tuple[ObjectCode, str]:
    """The contents of a file: code and its description. The image of a lowered program is its text, without an entry.

    Raises
    ------
    ValueError
        If it contains something else.
    """
    head, image = data.split(b"\n", 1)
    try:
        described = json.loads(head)
    except RecursionError as error:
        raise ValueError(str(error)) from None
    match described:
        case {"entry": str(entry), "symbols": list(symbols), "about": str(about)} if all(
            type(x) is str for x in symbols
        ):
            return ObjectCode(entry, tuple(symbols), image), about
    raise ValueError(f"{head!r:.80} describes no kernel")


def _from_disk(key: str) -> ObjectCode | None:
    disk = opened_disk()
    data = None if disk is None else disk.get(key)
    try:
        return None if data is None else unpacked(data)[0]
    except ValueError:
        return None


def opened_disk() -> Disk | None:
    """The cache on disk; None if it is switched off or unusable."""
    return _opened(config.cache_dir or default_directory()) if config.cache else None


@functools.cache
def _opened(path: str) -> Disk | None:
    try:
        # Absolute, for the process may change its directory, and the cache be made again.
        return Disk(os.path.abspath(os.path.expanduser(path))) if path else None
    except UntrustedDirectoryError as error:
        reason = str(error)
    except OSError as error:
        if not config.cache_dir:
            return None  # no warning for a home directory that is missing or read-only
        reason = f"{error.strerror or error}: {path}"
    warnings.warn(
        f"compiled kernels are not cached on disk: {reason}. Set FUNCTRANS_CACHE_DIR to a directory of your own, or "
        "FUNCTRANS_CACHE=0 to cache nothing",
        RuntimeWarning,
        stacklevel=2,
    )
    return None


def default_directory() -> str:
    """The directory for functrans in the user's cache directory; empty if the user has none."""
    home = os.path.expanduser("~")
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA", "")
    elif sys.platform == "darwin":
        base = os.path.join(home, "Library", "Caches") if os.path.isabs(home) else ""
    else:
        base = os.environ.get("XDG_CACHE_HOME", "")
        if not os.path.isabs(base):
            base = os.path.join(home, ".cache") if os.path.isabs(home) else ""
    return os.path.join(base, "functrans") if base else ""

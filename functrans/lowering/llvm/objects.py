"""Object code: compiled from LLVM text, and loaded.

Object code is relocatable: it contains no address of this process, only the names of the functions that it calls, so
another process can load it too. Each object is a library in an engine of LLVM's ORC, which frees the memory with the
library: when something is compiled after the last reference to the loaded code is gone.
"""

from __future__ import annotations

import ctypes
import functools
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any, Literal

from ...runtime.context import new_lock
from ...runtime.libraries import llvm
from ...runtime.private.llvmlite_names import free_passes
from ...runtime.records import dataclass
from ..processor import Processor
from ..undisturbed import Disposal

#: Objects that share an engine: an engine takes 120 KB, and frees only 30 of an object's 40 KB before it is freed
#: itself.
_SHARING = 32
#: How much LLVM does; see `compile_object`.
Effort = Literal["all", "little", "code"]
#: Modules that share a pass builder. Each run adds callbacks to it, which all later runs call: after a thousand
#: modules, a small one takes three times as long. But each builder leaks two kilobytes.
_RUNS = 16

#: On x86-64, LLVM does not make vectors from elements at computed places by one instruction. AMD's processors, and
#: Intel's with the mitigation of Downfall, take several times as long for it as for a load each; elsewhere the loads
#: limit both. LLVM takes it for cheap, and prefers it to sums of short rows one after the other.
_NO_GATHERS = "+prefer-no-gather"

#: What code for Windows refers to although no text declares it: that it uses floats, and what makes room on the stack.
_FROM_COMPILER = ("_fltused", "__chkstk") if sys.platform == "win32" else ()


@dataclass(frozen=True)
class ObjectCode:
    """The machine code of one module.

    Attributes
    ----------
    entry : str
        The function to call.
    symbols : tuple of str
        The external symbols that it needs.
    image : bytes
        The contents of an object file.
    """

    entry: str
    symbols: tuple[str, ...]
    image: bytes


class LoadedCode:
    """Object code in memory, for at least as long as this object lives.

    Attributes
    ----------
    address : int
        The address of the entry.
    size : int
        The bytes of its object code.
    """

    __slots__ = ("__weakref__", "address", "size")

    def __init__(self, library: Any, entry: str, size: int):
        libraries.hold(self, library)
        self.address: int = library[entry]
        self.size = size


#: LLVM's objects that hold the memory of loaded code. llvmlite frees them in Python code, under its lock.
libraries = Disposal()


def compile_object(text: str, entry: str, processor: Processor, effort: Effort = "all") -> ObjectCode:
    """The object code of a module.

    Parameters
    ----------
    text : str
        LLVM text.
    entry : str
        The function of the module that is called from outside.
    processor : Processor
    effort : {'all', 'little', 'code'}
        'little' is for a short time to compile; 'code' for text that is optimised already.
    """
    image = _optimised(text, processor, effort, lambda machine, module: machine.emit_object(module))
    declared = re.findall(r"^declare [^@\n]*@([\w.]+)\(", text, re.MULTILINE)
    names = {n for n in (*declared, *_FROM_COMPILER) if not n.startswith("llvm.") and n.encode() in image}
    return ObjectCode(entry, tuple(sorted(names)), image)


def compile_assembly(text: str, processor: Processor, effort: Effort = "all") -> str:
    """The assembly code of a module, for people; see `compile_object`."""
    return _optimised(text, processor, effort, lambda machine, module: machine.emit_assembly(module))


def _optimised(text: str, processor: Processor, effort: Effort, emit: Callable[[Any, Any], Any]) -> Any:
    """What `emit` makes of a module after LLVM's passes."""
    compiler = _compiler(processor, effort)
    # It has a separate context, so that types and constants are freed with it.
    context = llvm.create_context()
    module = llvm.parse_assembly(text, context)
    try:
        module.triple, module.data_layout = compiler.triple, compiler.layout
        compiler.optimize(module)
        return emit(compiler.machine, module)
    finally:
        module.close()
        context.close()


class _Compiler:
    """LLVM's passes and its code generator for a processor."""

    def __init__(self, processor: Processor, effort: Effort = "all"):
        _start_llvm()
        self.effort = effort
        self.triple = llvm.get_process_triple()
        x86 = self.triple.startswith(("x86_64", "amd64"))
        self.machine = llvm.Target.from_triple(self.triple).create_target_machine(
            processor.name,
            ",".join(filter(None, (processor.flags, _NO_GATHERS if x86 else ""))),
            opt=0 if effort == "little" else 3,
            reloc="pic",
            codemodel="default",
        )
        self.layout = str(self.machine.target_data)
        self._builders: tuple[Any, Any] = self._new_builders()
        self._runs = 0

    def _new_builders(self) -> tuple[Any, Any]:
        return self._pass_builder(0), self._pass_builder(3)

    def _pass_builder(self, level: int) -> Any:
        """LLVM's passes at a level, with Numba's options."""
        options = llvm.create_pipeline_tuning_options(level)
        options.loop_vectorization, options.slp_vectorization = level > 0, False
        return llvm.create_pass_builder(self.machine, options)

    def optimize(self, module: Any) -> None:
        """Run Numba's passes: first a few cheap ones, without which some loops take 50% longer, then all."""
        if self.effort == "code":
            return
        self._runs += 1
        if self._runs % _RUNS == 0:
            self._builders = self._new_builders()
        first, second = self._builders
        cheap = first.getModulePassManager()
        if self.effort == "little":
            cheap.add_sroa_pass()
            cheap.add_simplify_cfg_pass()
            _run(cheap, module, first)
            return
        cheap.add_loop_rotate_pass()
        cheap.add_instruction_combine_pass()
        cheap.add_jump_threading_pass()
        _run(cheap, module, first)
        _run(second.getModulePassManager(), module, second)


def _run(passes: Any, module: Any, builder: Any) -> None:
    try:
        passes.run(module, builder)
    finally:
        free_passes(passes)


_compiler = functools.cache(_Compiler)


@functools.cache
def _start_llvm() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


# --- loading ------------------------------------------------------------------------------------------------

_loading = new_lock()
_engines: list[Any] = []  # the last engine, and its number of objects


def load_object(code: ObjectCode, addresses: Mapping[str, int]) -> LoadedCode:
    """Object code, loaded and ready to be called.

    Parameters
    ----------
    code : ObjectCode
    addresses : mapping of str to int
        The addresses of its symbols. Missing ones are looked up in the process.

    Raises
    ------
    RuntimeError
        If a symbol is missing, or the image is not object code for this kind of machine.
    """
    builder = (
        llvm.orcjit.JITLibraryBuilder()
        .add_object_img(code.image)
        .add_current_process()
        .export_symbol(code.entry)
    )
    for name, address in addresses.items():
        builder.import_symbol(name, address)
    with _loading:
        if not _engines or _engines[1] == _SHARING:
            _engines[:] = [_new_engine(), 0]
        engine, number = _engines
        _engines[1] = number + 1
    return LoadedCode(builder.link(engine, f"functrans.{number}"), code.entry, len(code.image))


def keep_for_ever(owner: object) -> None:
    """Never free an object, even when the interpreter ends: Python, or a thread of C's, uses memory that it owns."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(owner))


def _new_engine() -> Any:
    _start_llvm()
    # Objects are already compiled, so any target machine of this kind will do; the processor is not detected.
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
        opt=0, reloc="pic", codemodel="default"
    )
    # JITLink places code and constants side by side. LLVM's other linker lets the system place each: in a process with
    # gigabytes of arrays between them, offsets of 32 bits do not suffice, and it ends the process.
    return llvm.orcjit.create_lljit_compiler(
        machine, use_jit_link=sys.platform != "win32", suppress_errors=True
    )

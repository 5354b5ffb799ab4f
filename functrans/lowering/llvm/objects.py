"""Object code: made of LLVM text, and loaded.

Object code is relocatable: it holds no address of this process, only the names of what it calls, so another process can
load it too. Each object is a library of its own in an engine of LLVM's ORC, which frees the memory with the last
reference to the library.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...core.context import new_lock
from ..processor import Processor

#: Objects that share an engine: an engine takes 120 KB, and gives back only 30 of an object's 40 KB before its own end.
_SHARING = 32


@dataclass(frozen=True)
class ObjectCode:
    """The machine code of one module.

    Attributes
    ----------
    entry : str
        The function that is called.
    symbols : tuple of str
        What it needs from outside.
    image : bytes
        As a compiler writes to an object file.
    """

    entry: str
    symbols: tuple[str, ...]
    image: bytes


class LoadedCode:
    """Object code in memory, for as long as this object lives.

    Attributes
    ----------
    address : int
        Of the entry.
    """

    __slots__ = ("_library", "address")

    def __init__(self, library: Any, entry: str):
        self._library = library
        self.address: int = library[entry]


def compile_object(text: str, entry: str, processor: Processor, *, optimize: bool = True) -> ObjectCode:
    """The object code of a module.

    Parameters
    ----------
    text : str
        LLVM's language.
    entry : str
        The function of the module that is called from outside.
    processor : Processor
    optimize : bool
        Whether to run LLVM's passes.
    """
    import llvmlite.binding as llvm

    compiler = _compiler(processor)
    # In a context of its own, whose types and constants go with it.
    context = llvm.create_context()
    module = llvm.parse_assembly(text, context)
    try:
        module.triple, module.data_layout = compiler.triple, compiler.layout
        if optimize:
            compiler.optimize(module)
        image = compiler.machine.emit_object(module)
    finally:
        module.close()
        context.close()
    declared = re.findall(r"^declare [^@\n]*@([\w.]+)\(", text, re.MULTILINE)
    names = {name for name in declared if not name.startswith("llvm.") and name.encode() in image}
    return ObjectCode(entry, tuple(sorted(names)), image)


class _Compiler:
    """LLVM's passes and its code generator for a processor."""

    def __init__(self, processor: Processor):
        import llvmlite.binding as llvm

        _start_llvm()
        self.triple = llvm.get_process_triple()
        self.machine = llvm.Target.from_triple(self.triple).create_target_machine(
            processor.name, processor.flags, opt=3, reloc="pic", codemodel="default"
        )
        self.layout = str(self.machine.target_data)
        self.first, self.second = map(self.pass_builder, (0, 3))

    def pass_builder(self, level: int) -> Any:
        """LLVM's passes at a level, with Numba's options. Each builder leaks a kilobyte."""
        import llvmlite.binding as llvm

        options = llvm.create_pipeline_tuning_options(level)
        options.loop_vectorization, options.slp_vectorization = level > 0, False
        return llvm.create_pass_builder(self.machine, options)

    def optimize(self, module: Any) -> None:
        """Run Numba's passes: a few cheap ones, without which some loops take half as long again, then all."""
        cheap = self.first.getModulePassManager()
        cheap.add_loop_rotate_pass()
        cheap.add_instruction_combine_pass()
        cheap.add_jump_threading_pass()
        _run(cheap, module, self.first)
        _run(self.second.getModulePassManager(), module, self.second)


def _run(passes: Any, module: Any, builder: Any) -> None:
    from llvmlite.binding import ffi

    try:
        passes.run(module, builder)
    finally:
        # llvmlite's own way to free it does nothing: the base class with an empty `_dispose` comes first.
        ffi.lib.LLVMPY_DisposeNewModulePassManger(passes)
        passes.detach()


_compiler = functools.cache(_Compiler)


@functools.cache
def _start_llvm() -> None:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


# --- loading ------------------------------------------------------------------------------------------------

_loading = new_lock()
_engines: list[Any] = []  # the last one, and how many objects it has


def load_object(code: ObjectCode, addresses: Mapping[str, int]) -> LoadedCode:
    """Object code made ready to be called.

    Parameters
    ----------
    code : ObjectCode
    addresses : mapping of str to int
        Of its symbols. Those that are missing here are sought in the process.

    Raises
    ------
    RuntimeError
        If a symbol is not found, or the image is no object code for this kind of machine.
    """
    from llvmlite.binding.orcjit import JITLibraryBuilder

    builder = JITLibraryBuilder().add_object_img(code.image).add_current_process().export_symbol(code.entry)
    for name, address in addresses.items():
        builder.import_symbol(name, address)
    with _loading:
        if not _engines or _engines[1] == _SHARING:
            _engines[:] = [_new_engine(), 0]
        engine, number = _engines
        _engines[1] = number + 1
    return LoadedCode(builder.link(engine, f"functrans.{number}"), code.entry)


def _new_engine() -> Any:
    import llvmlite.binding as llvm
    from llvmlite.binding.orcjit import create_lljit_compiler

    _start_llvm()
    # Objects are compiled already: any machine of this kind will do, and none is looked for.
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
        opt=0, reloc="pic", codemodel="default"
    )
    return create_lljit_compiler(machine, suppress_errors=True)

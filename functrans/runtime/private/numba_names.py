"""What functrans uses of Numba that Numba does not document, or calls internal. Importing this file imports Numba.

Numba's doors (`interop`) write LLVM instructions in the way of Numba's own implementations, read its typed
representation, and derive from its dispatchers. No kernel of functrans needs any of this.
"""

from __future__ import annotations

from typing import Any

import numba

from .checks import Library, Takes, method, takes

NUMBA = Library("numba", "0.65 to 0.68")

#: Statements and expressions of the representation that `interop.calls` translates.
_IR = (
    "Arg", "Assign", "Branch", "Const", "Del", "DynamicRaise", "Expr", "FreeVar", "Global", "Jump", "Raise", "Return",
    "SetItem", "StaticRaise", "StaticSetItem", "Var",
)  # fmt: skip
#: All that must be there, with what functions are called with.
NEEDED: dict[str, Takes | None] = {
    **{f"numba.core.ir:{name}": None for name in _IR},
    "numba.core.ir:FunctionIR.get_definition": method(1),
    "numba.core.ir:Expr.list_vars": method(0),
    # instructions
    "numba.core.cgutils:add_global_variable": takes(3),
    "numba.core.cgutils:alloca_once": takes(2, "size", "zfill"),
    "numba.core.cgutils:alloca_once_value": takes(2),
    "numba.core.cgutils:create_constant_array": takes(2),
    "numba.core.cgutils:false_bit": None,
    "numba.core.cgutils:gep_inbounds": takes(4),
    "numba.core.cgutils:get_or_insert_function": takes(3),
    "numba.core.cgutils:global_constant": takes(3),
    "numba.core.cgutils:is_not_null": takes(2),
    "numba.core.cgutils:is_null": takes(2),
    "numba.core.cgutils:loop_nest": takes(3),
    "numba.core.cgutils:raw_memcpy": takes(5),
    "numba.core.cgutils:true_bit": None,
    "numba.core.cgutils:unpack_tuple": takes(3),
    "numba.np.arrayobj:populate_array": takes(1, "data", "shape", "strides", "itemsize", "meminfo"),
    # what contexts do
    "numba.core.base:BaseContext.add_dynamic_addr": method(3),
    "numba.core.base:BaseContext.get_abi_sizeof": method(1),
    "numba.core.base:BaseContext.get_arg_packer": method(1),
    "numba.core.base:BaseContext.get_constant_generic": method(3),
    "numba.core.base:BaseContext.get_data_type": method(1),
    "numba.core.base:BaseContext.get_dummy_value": method(0),
    "numba.core.base:BaseContext.get_preferred_array_alignment": method(1),
    "numba.core.base:BaseContext.get_python_api": method(1),
    "numba.core.base:BaseContext.get_returned_value": method(3),
    "numba.core.base:BaseContext.insert_const_string": method(2),
    "numba.core.base:BaseContext.make_array": method(1),
    "numba.core.base:BaseContext.make_tuple": method(3),
    "numba.core.base:BaseContext.pack_value": method(4),
    "numba.core.base:BaseContext.refresh": method(0),
    "numba.core.base:BaseContext.subtarget": method(0, "enable_nrt"),
    "numba.core.base:BaseContext.unpack_value": method(3),
    "numba.core.cpu:CPUContext.call_conv": None,
    "numba.core.cpu:CPUContext.nrt": None,
    "numba.core.cpu:CPUContext.add_linking_libs": method(1),
    "numba.core.cpu:CPUContext.codegen": method(0),
    "numba.core.cpu:CPUContext.post_lowering": method(2),
    "numba.core.typing.context:BaseContext._remove_global": method(1),
    "numba.core.typing.context:BaseContext.insert_global": method(2),
    "numba.core.typing.context:BaseContext.refresh": method(0),
    "numba.core.datamodel.packer:ArgPacker.as_arguments": method(2),
    "numba.core.runtime.context:NRTContext.allocate": method(2),
    "numba.core.runtime.context:NRTContext.decref": method(3),
    "numba.core.runtime.context:NRTContext.meminfo_alloc_aligned": method(3),
    "numba.core.runtime.context:NRTContext.meminfo_alloc_aligned_unchecked": method(3),
    "numba.core.runtime.context:NRTContext.meminfo_data": method(2),
    "numba.core.codegen:CPUCodegen.create_library": method(1),
    "numba.core.codegen:CPUCodeLibrary.add_ir_module": method(1),
    "numba.core.codegen:CPUCodeLibrary.add_llvm_module": method(1),
    "numba.core.codegen:CPUCodeLibrary.create_ir_module": method(1),
    "numba.core.codegen:CPUCodeLibrary.finalize": method(0),
    "numba.core.codegen:JITCodeLibrary.get_pointer_to_function": method(1),
    "numba.core.pythonapi:PythonAPI.call_method": method(3),
    "numba.core.pythonapi:PythonAPI.decref": method(1),
    "numba.core.pythonapi:PythonAPI.err_clear": method(0),
    "numba.core.pythonapi:PythonAPI.gil_ensure": method(0),
    "numba.core.pythonapi:PythonAPI.gil_release": method(1),
    "numba.core.pythonapi:PythonAPI.import_module": method(1),
    "numba.core.pythonapi:PythonAPI.long_as_longlong": method(1),
    "numba.core.pythonapi:PythonAPI.long_from_longlong": method(1),
    # how compiled functions are called, and how they raise
    "numba.core.callconv:CPUCallConv._get_excinfo_argument": method(1),
    "numba.core.callconv:CPUCallConv._get_return_status": method(3),
    "numba.core.callconv:CPUCallConv._return_errcode_raw": method(2),
    "numba.core.callconv:CPUCallConv.get_function_type": method(2),
    "numba.core.callconv:CPUCallConv.get_return_type": method(1),
    "numba.core.callconv:CPUCallConv.return_exc": method(1),
    "numba.core.callconv:CPUCallConv.return_user_exc": method(3),
    "numba.core.callconv:RETCODE_USEREXC": None,
    "numba.core.callconv:excinfo_ptr_t": None,
    "numba.core.callconv:excinfo_t": None,
    # compiling, as far as types are inferred
    "numba.core.compiler:CompilerBase.compile_extra": method(1),
    "numba.core.compiler:CompilerBase": takes(7),
    "numba.core.compiler:DefaultPassBuilder.define_untyped_pipeline": takes(1),
    "numba.core.compiler:Flags": takes(0),
    "numba.core.compiler:_EarlyPipelineCompletion": takes(1),
    "numba.core.compiler_lock:global_compiler_lock.is_locked": takes(0),
    "numba.core.compiler_machinery:AnalysisPass.run_pass": method(1),
    "numba.core.compiler_machinery:PassManager": takes(1),
    "numba.core.compiler_machinery:PassManager.add_pass": method(2),
    "numba.core.compiler_machinery:PassManager.finalize": method(0),
    "numba.core.compiler_machinery:register_pass": takes(0, "mutates_CFG", "analysis_only"),
    "numba.core.errors:NumbaRuntimeError": None,
    "numba.core.inline_closurecall:length_of_iterator": None,
    "numba.core.ir_utils:merge_adjacent_blocks": takes(1),
    "numba.core.typed_passes:AnnotateTypes": None,
    "numba.core.typed_passes:NopythonTypeInference": None,
    "numba.core.typed_passes:PreLowerStripPhis": None,
    "numba.core.unsafe.eh:exception_check": None,
    "numba.np.numpy_support:as_dtype": takes(1),
    "numba.np.numpy_support:from_dtype": takes(1),
    "numba.np.unsafe.ndarray:empty_inferred": None,
    # types and dispatchers
    "numba.core.event:Listener": None,
    "numba.core.event:register": takes(2),
    "numba.core.imputils:lower_getattr": takes(2),
    "numba.core.serialize:dumps": takes(1),
    "numba.core.serialize:loads": takes(1),
    "numba.core.sigutils:normalize_signature": takes(1),
    "numba.core.typing.templates:AttributeTemplate": None,
    "numba.core.typing.templates:infer_getattr": takes(1),
    "numba.core.types:Dispatcher.get_call_type": method(3),
    "numba.core.types:Dispatcher.get_overload": method(1),
    "numba.core.dispatcher:Dispatcher": None,
    "numba.core.dispatcher:OmittedArg": takes(1),
    "numba.core.registry:CPUDispatcher": takes(3),
    "numba.core.registry:CPUDispatcher._compile_for_args": method(1),
    "numba.core.registry:CPUDispatcher._make_finalizer": method(0),
    "numba.core.registry:CPUDispatcher._numba_type_": None,
    "numba.core.registry:CPUDispatcher._rebuild": None,
    "numba.core.registry:CPUDispatcher._reduce_states": method(0),
    "numba.core.registry:CPUDispatcher._reset_overloads": method(0),
    "numba.core.registry:CPUDispatcher.add_overload": method(1),
    "numba.core.registry:CPUDispatcher.compile": method(1),
    "numba.core.registry:CPUDispatcher.get_call_template": method(2),
    "numba.core.registry:CPUDispatcher.get_overload": method(1),
    "numba.core.registry:CPUDispatcher.recompile": method(0),
    "numba.core.registry:cpu_target.target_context": None,
    "numba.core.registry:cpu_target.typing_context": None,
}  # fmt: skip
#: Of each dispatcher.
ATTRIBUTES = (
    "_cache", "_cache_hits", "_cache_misses", "_compiler.pysig", "_compiler._failed_cache.pop", "_type", "locals",
    "overloads", "py_func", "targetctx", "targetoptions", "typingctx",
)  # fmt: skip


@numba.njit
def _example() -> int:
    return 0


#: The dispatcher whose attributes are looked at.
example: Any = _example


def check() -> None:
    """Raise `UnsupportedLibraryError` unless all is there."""
    NUMBA.check(NEEDED)
    for name in ATTRIBUTES:
        NUMBA.find(f"{__name__}:example.{name}")


check()
find = NUMBA.find
AnalysisPass = find("numba.core.compiler_machinery:AnalysisPass")
AttributeTemplate = find("numba.core.typing.templates:AttributeTemplate")
CPUDispatcher = find("numba.core.registry:CPUDispatcher")
CompilerBase = find("numba.core.compiler:CompilerBase")
Dispatcher = find("numba.core.dispatcher:Dispatcher")
Listener = find("numba.core.event:Listener")
NumbaRuntimeError = find("numba.core.errors:NumbaRuntimeError")
OmittedArg = find("numba.core.dispatcher:OmittedArg")
PassManager = find("numba.core.compiler_machinery:PassManager")
as_dtype = find("numba.np.numpy_support:as_dtype")
callconv = find("numba.core.callconv")
cgutils = find("numba.core.cgutils")
compiler = find("numba.core.compiler")
cpu_target = find("numba.core.registry:cpu_target")
empty_inferred = find("numba.np.unsafe.ndarray:empty_inferred")
from_dtype = find("numba.np.numpy_support:from_dtype")
global_compiler_lock = find("numba.core.compiler_lock:global_compiler_lock")
infer_getattr = find("numba.core.typing.templates:infer_getattr")
ir = find("numba.core.ir")
length_of_iterator = find("numba.core.inline_closurecall:length_of_iterator")
lower_getattr = find("numba.core.imputils:lower_getattr")
merge_adjacent_blocks = find("numba.core.ir_utils:merge_adjacent_blocks")
normalize_signature = find("numba.core.sigutils:normalize_signature")
populate_array = find("numba.np.arrayobj:populate_array")
register_listener = find("numba.core.event:register")
register_pass = find("numba.core.compiler_machinery:register_pass")
serialize = find("numba.core.serialize")
typed_passes = find("numba.core.typed_passes")
types = numba.types
#: The events of which Numba says that a dispatcher compiles, and that a thread has the lock of its compiler.
COMPILING, LOCKED = "numba:compile", "numba:compiler_lock"
#: The module of the functions by which typed code asks for exceptions.
EXCEPTIONS = "numba.core.unsafe.eh"


def signature_of(dispatcher: Any) -> Any:
    """The signature of the Python function of a dispatcher."""
    return dispatcher._compiler.pysig


def forget_failure(dispatcher: Any, args: Any, return_type: Any) -> None:
    """Have a dispatcher compile for types for which it failed before; otherwise it raises that error again."""
    own = getattr(dispatcher, "_compiler", None)  # a lifted loop has none, and notes nothing
    if own is not None:
        own._failed_cache.pop((tuple(args), return_type), None)

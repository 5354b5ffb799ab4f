"""The C function by which a kernel calls a jitted function: a few instructions around its machine code.

``int64_t f(void **memory)`` reads the operands from memory and writes the results there. It calls the machine code that
Numba has made for the types of the arguments by its address, so that nothing of the function is compiled twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, Protocol

import llvmlite.ir as ir

from ..core.aval import Aval
from ..errors import ArgumentValueError
from ..frontend.pytree import PyTreeDef
from ..runtime.context import Living
from ..runtime.private.numba_names import callconv, cgutils, from_dtype, global_compiler_lock, types
from ..runtime.records import dataclass
from .emitter import ArrayEmitter, word
from .jitted.arguments import result_leaves
from .numba_parts import Dispatcher, LLVMBuilder, NumbaType, TargetContext

_I64, _I8 = ir.IntType(64), ir.IntType(8)
#: Numba's engine keeps the names of what it has unloaded.
_numbers = count()
_known: Living[dict[Any, EntryCode]] = Living()


@dataclass(frozen=True)
class EntryCode:
    """Machine code, and what must live as long."""

    address: int
    keep: Any


class Described(Protocol):
    """What is read of a `native.NativeFunction`."""

    dispatcher: Dispatcher
    tree: PyTreeDef
    static: tuple[tuple[int, Any], ...]
    in_avals: tuple[Aval, ...]
    out_avals: tuple[Aval, ...]
    out_tree: PyTreeDef
    first: int

    @property
    def arg_types(self) -> tuple[Any, ...]: ...  # noqa: D102
    @property
    def copies(self) -> bool: ...  # noqa: D102
    def arguments(self, operands: Sequence[Any], of_known: Callable[[Any], Any], /) -> Any: ...  # noqa: D102


@global_compiler_lock
def compiled_entry(f: Described) -> EntryCode:
    """The C function of a jitted function; functions of equal types share it, whatever the sizes.

    Raises
    ------
    ArgumentValueError
        If the function returns other types than declared.
    """
    dispatcher = f.dispatcher
    dispatcher.compile(f.arg_types)
    compiled = dispatcher.overloads[f.arg_types]
    operands = tuple([(a.dtype, a.ndim) for a in (*f.in_avals, *f.out_avals)])
    static = tuple([(k, type(x), x) for k, x in f.static])
    key = operands, len(f.in_avals), f.tree, static, f.first, f.copies
    known = _known.setdefault(dispatcher, {})
    if key not in known or known[key].keep[0] is not compiled:
        known[key] = _compiled(f, compiled)
    return known[key]


def _compiled(f: Described, compiled: Any) -> EntryCode:
    _check_results(f, compiled)
    context = f.dispatcher.targetctx.subtarget(enable_nrt=True)
    library = context.codegen().create_library("functrans.entry")
    module = library.create_ir_module("functrans.entry")
    name = f"functrans.entry.{next(_numbers)}"
    function = ir.Function(module, ir.FunctionType(_I64, [_I8.as_pointer().as_pointer()]), name)
    builder = ir.IRBuilder(function.append_basic_block())
    _EntryEmitter(context, builder, f, compiled).emit(function.args[0])
    context.post_lowering(module, library)
    library.add_ir_module(module)
    library.finalize()
    return EntryCode(library.get_pointer_to_function(name), (compiled, library))


def _check_results(f: Described, compiled: Any) -> None:
    found = [
        (t.ndim, t.dtype) if isinstance(t, types.Array) else (0, types.unliteral(t))
        for t, _ in result_leaves(compiled.signature.return_type)
    ]
    if found != [(a.ndim, from_dtype(a.dtype)) for a in f.out_avals]:
        raise ArgumentValueError(
            f"numba_call of {f.dispatcher.py_func.__qualname__}: the result is a {compiled.signature.return_type}, but "
            f"result_shape_dtypes is {f.out_tree} of {list(f.out_avals)}"
        )


class _EntryEmitter(ArrayEmitter):
    """Writes the C function."""

    def __init__(self, context: TargetContext, builder: LLVMBuilder, f: Described, compiled: Any):
        super().__init__(context, builder)
        self.function, self.compiled = f, compiled
        self.copies: list[tuple[Any, Any]] = []

    def emit(self, memory: Any) -> None:
        """Read the operands, call, write the results."""
        f, b = self.function, self.builder
        self.memory = memory
        sizes = b.bitcast(b.load(memory), _I64.as_pointer())
        self.sizes = iter(
            self.load(sizes, i) for i in range(sum(a.ndim for a in (*f.in_avals, *f.out_avals)))
        )
        operands = [self.operand(k) for k in range(len(f.in_avals))]
        arguments = f.arguments(operands, _Known)
        values = [self.value(a, t) for a, t in zip(arguments, f.arg_types, strict=True)]
        failed, result = self.call(values)
        for pair in self.copies:
            self.context.nrt.decref(b, *pair)
        with b.if_then(failed, likely=False):
            b.ret(word(1))
        self.deliver(result)
        self.context.nrt.decref(b, self.compiled.signature.return_type, result)
        b.ret(self.wrong)

    def runtime_memory(self, size: Any, align: Any) -> Any:
        """Memory of Numba's runtime; without any, the C function fails."""
        b = self.builder
        memory = self.context.nrt.meminfo_alloc_aligned_unchecked(b, size, align)
        with b.if_then(cgutils.is_null(b, memory), likely=False):
            b.ret(word(1))
        return memory

    def place(self, k: int) -> Any:
        """The address of the memory of operand `k`; results follow the operands."""
        return self.builder.load(self.at(self.memory, self.function.first + 1 + k))

    def operand(self, k: int) -> Any:
        """The value of an operand."""
        aval, b = self.function.in_avals[k], self.builder
        typ = from_dtype(aval.dtype)
        data = b.bitcast(self.place(k), self.context.get_data_type(typ).as_pointer())
        if not aval.ndim:
            return self.context.unpack_value(b, typ, data)
        typ = types.Array(typ, aval.ndim, "C")
        shape = [next(self.sizes) for _ in range(aval.ndim)]
        if not self.function.copies:
            return self.array(typ, shape, data)._getvalue()
        copy = self.new_array(typ, shape)
        self.copies.append((typ, copy._getvalue()))
        self.copy(b.ptrtoint(copy.data, _I64), b.ptrtoint(data, _I64), self.nbytes(typ, copy))
        return copy._getvalue()

    def value(self, argument: Any, typ: NumbaType) -> Any:
        """The value of an argument."""
        if isinstance(argument, tuple):
            parts = [self.value(a, t) for a, t in zip(argument, typ.types, strict=True)]
            return self.context.make_tuple(self.builder, typ, parts)
        if isinstance(argument, _Known):
            return self.context.get_constant_generic(self.builder, typ, argument.value)
        return self.context.get_dummy_value() if argument is None else argument

    def call(self, values: list[Any]) -> tuple[Any, Any]:
        """Call the machine code: whether it failed, and its result."""
        b, conv, sig = self.builder, self.context.call_conv, self.compiled.signature
        library, name = self.compiled.library, self.compiled.fndesc.llvm_func_name
        pointer = conv.get_function_type(sig.return_type, sig.args).as_pointer()
        code = b.inttoptr(word(library.get_pointer_to_function(name)), pointer)
        returned = cgutils.alloca_once(b, conv.get_return_type(sig.return_type).pointee, zfill=True)
        raised = cgutils.alloca_once(b, callconv.excinfo_ptr_t)
        arguments = self.context.get_arg_packer(sig.args).as_arguments(b, values)
        status = b.call(code, [returned, raised, *arguments])
        failed = conv._get_return_status(b, status, b.load(raised)).is_error
        return failed, self.context.get_returned_value(b, sig.return_type, b.load(returned))

    def deliver(self, result: Any) -> None:
        """Write the result to the memory of the kernel; `wrong` is 1 if it has other sizes than declared."""
        b, first = self.builder, len(self.function.in_avals)
        wrong = cgutils.alloca_once_value(b, word(0))
        for k, (typ, path) in enumerate(result_leaves(self.compiled.signature.return_type)):
            value, place = self.part(result, path), self.place(first + k)
            if not isinstance(typ, types.Array):
                data = b.bitcast(place, self.context.get_data_type(typ).as_pointer())
                self.context.pack_value(b, typ, value, data)
                continue
            array = self.context.make_array(typ)(self.context, b, value)
            same = cgutils.true_bit
            for n in cgutils.unpack_tuple(b, array.shape, typ.ndim):
                same = b.and_(same, b.icmp_signed("==", n, next(self.sizes)))
            with b.if_else(same, likely=True) as (fits, differs):
                with fits:
                    self.store_array(typ, array, b.ptrtoint(place, _I64))
                with differs:
                    b.store(word(1), wrong)
        self.wrong = b.load(wrong)

    def store_array(self, typ: NumbaType, array: Any, to: Any) -> None:
        """Copy an array of any layout to contiguous memory."""
        with self.builder.if_else(self.is_tidy(typ, array)) as (tidy, strided):
            with tidy:
                self.copy(to, self.builder.ptrtoint(array.data, _I64), self.nbytes(typ, array))
            with strided:
                self.each_element(typ, array, to, reading=True)


@dataclass(frozen=True)
class _Known:
    """An argument that is known while compiling."""

    value: Any

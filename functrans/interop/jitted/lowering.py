"""The machine code of a call of a jitted function, as instructions that Numba compiles into the caller.

::

    sizes = of the arguments;  entry = the table's latest if its sizes are these, else look in its list, else ask Python
    allocate the results, whose sizes are in the entry
    IN_ORDER:  kernel(pointers to the data pointers)          the usual case: straight-line code
    NATIVE:    a frame with pointers to all buffers, and scratch memory; kernel(frame); copies
    PYTHON, and where a kernel reports failure:               Python calls the function, and raises or fills the results
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from llvmlite import ir

from ...lowering.llvm.c.native_call import ARRAY_DATA, TUPLE_ITEMS
from ...lowering.llvm.emit import LLVMKernel
from ...lowering.run.native import InlinedProgram
from ...runtime.libraries import llvm
from ...runtime.private.numba_names import callconv, cgutils
from ..emitter import ArrayEmitter, word
from ..numba_parts import LLVMBuilder, NumbaType, TargetContext
from .arguments import CallTypes, result_leaves, types
from .errors import PICKLED
from .helpers import BUCKETS, FIELDS, HELPERS, IN_ORDER

_I64, _I32, _I8, _F64 = ir.IntType(64), ir.IntType(32), ir.IntType(8), ir.DoubleType()
_BYTES, _WORDS = _I8.as_pointer(), _I64.as_pointer()


class InlinedCall(ArrayEmitter):
    """Writes a call of a short program of numbers: its instructions, and a call for when it is another.

    Numba and LLVM see them where they stand, so a loop of calls may become one of vectors.

    Parameters
    ----------
    context, builder : object
        Numba's.
    arguments : CallTypes
    result : Numba type
    program : InlinedProgram
    """

    def __init__(
        self,
        context: TargetContext,
        builder: LLVMBuilder,
        arguments: CallTypes,
        result: Any,
        program: InlinedProgram,
    ):
        super().__init__(context, builder)
        self.arguments, self.result, self.program = arguments, result, program

    def emit(self, values: Sequence[Any], digest: Any, otherwise: Callable[[], Any]) -> Any:
        """Write the program, and the call that `otherwise` writes, for another `digest`; returns the result's value."""
        b = self.builder
        place = cgutils.alloca_once(b, self.context.get_value_type(self.result))
        same = b.icmp_signed("==", digest, word(self.program.digest))
        with b.if_else(same, likely=True) as (inlined, called):
            with inlined:
                b.store(self.inlined(values), place)
            with called:
                b.store(otherwise(), place)
        return b.load(place)

    def inlined(self, values: Sequence[Any]) -> Any:
        """The program's result."""
        b, places, made = self.builder, [], []
        for leaf in self.arguments.leaves:
            places.append(self.number(leaf.type))
            value = self.part(values[leaf.path[0]], leaf.path[1:])
            self.context.pack_value(b, leaf.type, value, places[-1])
        for typ, _ in result_leaves(self.result):
            places.append(self.number(typ))
            made.append(partial(self.context.unpack_value, b, typ, places[-1]))
        numbers = [*map(word, self.program.ints), *(ir.Constant(_F64, x) for x in self.program.floats)]
        given = [*(b.bitcast(p, _BYTES) for p in places), *numbers]
        function = cgutils.get_or_insert_function(
            b.module, ir.FunctionType(_I64, [x.type for x in given]), self.program.code.entry
        )
        self.context.add_linking_libs([_library(self.context, self.program.code)])
        b.call(function, given)
        return collect(self.context, b, self.result, iter(made))

    def number(self, typ: NumbaType) -> Any:
        """Memory for a number, which no other call takes the address of."""
        return cgutils.alloca_once(self.builder, self.context.get_data_type(typ))


_libraries: dict[str, Any] = {}


def _library(context: TargetContext, code: LLVMKernel) -> Any:
    """A function as a library of Numba's, to be linked with callers."""
    library = _libraries.get(code.entry)
    if library is None:
        library = context.codegen().create_library(code.entry)
        module = llvm.parse_assembly(f"{library.create_ir_module(code.entry)}\n{code.text}")
        library.add_llvm_module(module)
        library.finalize()
        _libraries[code.entry] = library
    return library


def collect(context: TargetContext, builder: LLVMBuilder, typ: NumbaType, leaves: Any) -> Any:
    """The value of a result from those of its leaves."""
    if isinstance(typ, types.NoneType):
        return context.get_dummy_value()
    if isinstance(typ, types.BaseTuple):
        return context.make_tuple(builder, typ, [collect(context, builder, t, leaves) for t in typ.types])
    return next(leaves)()


class CallEmitter(ArrayEmitter):
    """Writes one call.

    Parameters
    ----------
    context, builder : object
        Numba's.
    arguments : CallTypes
    result : Numba type
    table : callable
        ``table(emitter)``: the address of the table, as a word.
    """

    def __init__(
        self,
        context: TargetContext,
        builder: LLVMBuilder,
        arguments: CallTypes,
        result: Any,
        table: Callable[[CallEmitter], Any],
    ):
        super().__init__(context, builder)
        self.arguments = arguments
        self.result = result
        self.outs = result_leaves(result)
        self.count = len(arguments.leaves)
        self.data = self.stack(self.count + len(self.outs))
        self.temporary: list[Any] = []  # copies of arguments, to be freed
        self.allocated: list[tuple[Any, Any]] = []  # types and values of new arrays
        self.table = builder.inttoptr(table(self), _WORDS)

    def malloc(self, nbytes: Any) -> Any:
        """Memory of a size in bytes, as a word; raises if there is none."""
        block = self.builder.call(
            self.c_function("malloc", _BYTES, _I64), [self.builder.add(nbytes, word(1))]
        )
        with self.builder.if_then(cgutils.is_null(self.builder, block), likely=False):
            self.context.call_conv.return_user_exc(self.builder, MemoryError, ("out of memory",))
        return self.builder.ptrtoint(block, _I64)

    def free_temporary(self) -> None:
        """Free the copies of arguments."""
        for block in self.temporary:
            self.free(self.builder.load(block))

    # --- arguments ------------------------------------------------------------------------------------------

    def take(self, values: Sequence[Any]) -> None:
        """Write the sizes of the arguments and the addresses of their data."""
        self.sizes: list[Any] = []
        #: Addresses and sizes in bytes of the arrays that the kernel reads.
        self.read: list[tuple[Any, Any]] = []
        for i, leaf in enumerate(self.arguments.leaves):
            value = self.part(values[leaf.path[0]], leaf.path[1:])
            if leaf.is_array:
                array = self.context.make_array(leaf.type)(self.context, self.builder, value)
                self.sizes += cgutils.unpack_tuple(self.builder, array.shape, leaf.ndim)
                address = self.contiguous(leaf.type, array)
                self.store(address, self.data, i)
                self.read.append((address, self.nbytes(leaf.type, array)))
            else:
                place = cgutils.alloca_once(self.builder, self.context.get_data_type(leaf.type))
                self.context.pack_value(self.builder, leaf.type, value, place)
                self.store(place, self.data, i)

    def contiguous(self, typ: NumbaType, array: Any) -> Any:
        """The address of an array's data, or of a copy that is contiguous and aligned."""
        address = self.builder.ptrtoint(array.data, _I64)
        if (typ.layout == "C" and typ.aligned) or not typ.ndim:
            return address
        size, tidy = self.nbytes(typ, array), self.is_tidy(typ, array)
        place = cgutils.alloca_once_value(self.builder, address)
        block = cgutils.alloca_once_value(self.builder, word(0))
        self.builder.store(word(0), block)
        with self.builder.if_then(self.builder.not_(tidy)):
            copy = self.malloc(size)
            self.builder.store(copy, place)
            self.builder.store(copy, block)
            self.each_element(typ, array, copy, reading=True)
        self.temporary.append(block)
        return self.builder.load(place)

    # --- the entry ------------------------------------------------------------------------------------------

    def find(self) -> None:
        """Find the entry for the sizes, or let Python make it."""
        found = cgutils.alloca_once(self.builder, _WORDS)
        latest = self.entry_at(self.table)
        self.builder.store(latest, found)
        with self.builder.if_then(self.builder.not_(self.fits(latest)), likely=False):
            sizes = self.stack(len(self.sizes))
            for i, n in enumerate(self.sizes):
                self.store(n, sizes, i)
            address = self.helper("find", self.table, sizes, word(len(self.sizes)))
            self.leave_if_raised(address)
            self.builder.store(self.builder.inttoptr(address, _WORDS), found)
        self.entry = self.builder.load(found)

    def entry_at(self, place: Any) -> Any:
        """The entry whose address is at a place that other threads write."""
        pointer = self.builder.load_atomic(place, "acquire", 8)
        return self.builder.inttoptr(pointer, _WORDS)

    def fits(self, entry: Any) -> Any:
        """Whether there is an entry, and its sizes are these."""
        start, known = self.builder.block, self.builder.function.append_basic_block("entry.exists")
        done = self.builder.function.append_basic_block("entry.compared")
        self.builder.cbranch(cgutils.is_null(self.builder, entry), done, known)
        self.builder.position_at_end(known)
        same = cgutils.true_bit
        for i, n in enumerate(self.sizes):
            same = self.builder.and_(same, self.builder.icmp_signed("==", self.load(entry, 1 + i), n))
        self.builder.branch(done)
        self.builder.position_at_end(done)
        result = self.builder.phi(ir.IntType(1))
        result.add_incoming(cgutils.false_bit, start)
        result.add_incoming(same, known)
        return result

    def helper(self, name: str, *words: Any) -> Any:
        """The result of one of the functions whose addresses are the table's last words."""
        b = self.builder
        address = self.load(self.table, 1 + BUCKETS + HELPERS.index(name))
        function = b.inttoptr(address, ir.FunctionType(_I64, [_I64] * len(words)).as_pointer())
        given = [b.ptrtoint(w, _I64) if isinstance(w.type, ir.PointerType) else w for w in words]
        return b.call(function, given)

    @property
    def fields(self) -> Any:
        """The address of the entry's fields."""
        out_sizes = sum(t.ndim for t, _ in self.outs if isinstance(t, types.Array))
        return self.at(self.entry, 1 + len(self.sizes) + out_sizes)

    def field(self, name: str) -> Any:
        """A word of the entry."""
        return self.load(self.fields, FIELDS.index(name))

    # --- the kernel -----------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run the entry on the data."""
        b = self.builder
        in_order = b.icmp_signed("==", self.field("mode"), word(IN_ORDER))
        status = cgutils.alloca_once(b, _I64)
        with b.if_else(in_order, likely=True) as (plain, other):
            with plain:
                n = self.count + len(self.outs)
                frame = self.stack(n)
                for i in range(n):
                    self.store(b.sub(b.ptrtoint(self.at(self.data, i), _I64), word(ARRAY_DATA)), frame, i)
                b.store(self.call_kernel(frame), status)
            with other:
                b.store(word(0), status)
        result = b.load(status)
        done = b.and_(in_order, b.icmp_signed("==", result, word(0)))
        with b.if_then(b.not_(done), likely=False):
            self.leave_if_raised(self.helper("run", self.table, self.entry, self.fields, self.data, result))

    def call_kernel(self, frame: Any) -> Any:
        """Call the kernel with a frame of pointers to buffers; returns its status."""
        b = self.builder
        kernel = b.inttoptr(self.field("kernel"), ir.FunctionType(_I64, [_I64, _I64]).as_pointer())
        return b.call(kernel, [b.sub(b.ptrtoint(frame, _I64), word(TUPLE_ITEMS)), self.field("numbers")])

    # --- Python ---------------------------------------------------------------------------------------------

    def leave_if_raised(self, word_or_number: Any) -> None:
        """Return with a Numba exception unless a word is positive: minus the number of an exception."""
        b = self.builder
        with b.if_then(b.icmp_signed("<=", word_or_number, word(0)), likely=False):
            self.free_temporary()
            for array in self.allocated:
                self.context.nrt.decref(b, *array)
            self.raise_held(b.neg(word_or_number))

    def raise_held(self, number: Any) -> None:
        """Return with the exception of a number, as a dynamic exception of Numba's."""
        b, conv = self.builder, self.context.call_conv
        excinfo = callconv.excinfo_t
        size = self.context.get_abi_sizeof(excinfo)
        info = b.bitcast(self.context.nrt.allocate(b, word(size)), excinfo.as_pointer())
        pickled = cgutils.global_constant(
            b.module, ".functrans.exception", cgutils.create_constant_array(_I8, bytearray(PICKLED))
        )
        fields = (
            b.bitcast(pickled, _BYTES),
            ir.Constant(_I32, len(PICKLED)),
            b.inttoptr(number, _BYTES),
            b.bitcast(self.unwrapping(), _BYTES),
            ir.Constant(_I32, 1),
        )
        for i, value in enumerate(fields):
            b.store(value, cgutils.gep_inbounds(b, info, 0, i))
        b.store(info, conv._get_excinfo_argument(b.function))
        conv._return_errcode_raw(b, callconv.RETCODE_USEREXC)

    def unwrapping(self) -> Any:
        """The function that Numba calls under the GIL with an exception's word, for the tuple of its arguments."""
        module = self.builder.module
        name = "functrans.unwrap"
        if name in module.globals:
            return module.globals[name]
        function = ir.Function(module, ir.FunctionType(_BYTES, [_BYTES]), name)
        function.linkage = "internal"
        builder = ir.IRBuilder(function.append_basic_block())
        pyapi = self.context.get_python_api(builder)
        errors = pyapi.import_module(
            self.context.insert_const_string(module, "functrans.interop.jitted.errors")
        )
        number = pyapi.long_from_longlong(builder.ptrtoint(function.args[0], _I64))
        builder.ret(pyapi.call_method(errors, "select", [number]))
        return function


class ResultEmitter(CallEmitter):
    """A call that returns new arrays and numbers."""

    def emit(self, values: Sequence[Any]) -> Any:
        """Write the call; returns the result's value."""
        self.take(values)
        self.find()
        self.allocate()
        self.run()
        self.free_temporary()
        return collect(self.context, self.builder, self.result, iter(self.made))

    def allocate(self) -> None:
        """Allocate the results; `made` reads them after the call."""
        self.made: list[Callable[[], Any]] = []
        sizes = iter(range(1 + len(self.sizes), 1 << 30))
        for j, (typ, _) in enumerate(self.outs):
            if isinstance(typ, types.Array):
                shape = [self.load(self.entry, next(sizes)) for _ in range(typ.ndim)]
                array = self.new_array(typ, shape)
                self.store(array.data, self.data, self.count + j)
                self.allocated.append((typ, array._getvalue()))
                self.made.append(array._getvalue)
            else:
                place = cgutils.alloca_once(self.builder, self.context.get_data_type(typ))
                self.store(place, self.data, self.count + j)
                self.made.append(partial(self.context.unpack_value, self.builder, typ, place))

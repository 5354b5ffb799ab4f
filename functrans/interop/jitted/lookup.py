"""How machine code finds the table of the function that it calls: by address, or by the name of the function.

Numba writes machine code with ``cache=True`` to disk, and another process loads it. An address of this process would be
wrong there. Where the function is a global of a module, the code has a word instead that is zero at first, and asks for
the table by module and name at the first call. Elsewhere it has the address, marked as Numba marks addresses, so that
Numba warns and does not cache.
"""

from __future__ import annotations

import ctypes
import os
import sys
from importlib import import_module
from types import ModuleType
from typing import Any
from uuid import uuid4

from llvmlite import ir

from ...core import ArgumentError
from ...runtime.private.numba_names import cgutils, serialize
from ...runtime.records import NamedTuple
from ..numba_parts import LLVMBuilder, TargetContext
from .arguments import CallTypes, types
from .helpers import DIGEST
from .lowering import CallEmitter, word
from .tables import CallTable, guarded, table_of

#: Objects of this process are known by it and a number: a cache on disk outlives the process.
_PROCESS = uuid4().hex
_known: dict[tuple[str, int], Any] = {}
_THIS = "functrans.interop.jitted.lookup"


class GlobalName(NamedTuple):
    """The name of a function that is a global.

    Attributes
    ----------
    module, name : str
    file : str or None
        The module's.
    """

    module: str
    name: str
    file: str | None

    def find(self) -> Any:
        """The jitted function of this name, whose module is imported if necessary.

        Raises
        ------
        ArgumentError
            If there is none.
        """
        module = self._module()
        found = getattr(module, self.name, None)
        if not _is_jitted(found):
            raise ArgumentError(
                f"code that Numba loaded from its cache calls {self.name} of the module {self.module}, which is "
                f"{'not there' if found is None else f'a {type(found).__name__}'} now. Remove the caller's cache (the "
                "files .nbi and .nbc in its __pycache__)"
            )
        return found

    def _module(self) -> ModuleType | None:
        """The module; `__main__` may be another script than it was, and a script may be imported."""
        if self.module != "__main__" and self.module in sys.modules:
            return sys.modules[self.module]
        for module in list(sys.modules.values()):
            if _file(module) == self.file and (self.file or module.__name__ == self.module):
                return module
        if self.module != "__main__":
            return import_module(self.module)
        main = sys.modules["__main__"]
        there, here = self.file or "", _file(main) or ""
        return main if os.path.basename(there) == os.path.basename(here) else None


def _file(module: Any) -> str | None:
    file = getattr(module, "__file__", None)
    return os.path.realpath(file) if isinstance(file, str) else None


def _is_jitted(x: Any) -> bool:
    return hasattr(type(x), "known") and hasattr(type(x), "_numba_type_")


def global_name(jitted: Any) -> GlobalName | None:
    """The name of a jitted function, if it is a global of a module."""
    first = sys.modules.get(getattr(jitted, "__module__", None) or "")
    for module in (first, *list(sys.modules.values())):
        if isinstance(module, ModuleType):
            for name, value in list(vars(module).items()):
                if value is jitted:
                    return GlobalName(module.__name__, name, _file(module))
    return None


def token_of(x: Any) -> tuple[str, int]:
    """What stands for an object of this process, which lives as long as that."""
    token = _PROCESS, id(x)
    _known[token] = x
    return token


def known(token: tuple[str, int]) -> Any:
    """The object that a token stands for; None in another process."""
    return _known.get(token)


class WrittenTable:
    """Instructions for the address of a table, and for what is there, at one call of a function.

    Parameters
    ----------
    context, builder : object
        Numba's.
    table : CallTable
    """

    def __init__(self, context: TargetContext, builder: LLVMBuilder, table: CallTable):
        self.context, self.builder, self.table = context, builder, table
        self.name = global_name(table.jitted)
        if self.name is not None:
            call = self.name, token_of(table), table.arguments.names, table.arguments.types, table.result
            self._ask = _asking(context, builder.module, serialize.dumps(call))
            self._place = cgutils.add_global_variable(builder.module, word(0).type, "functrans.table")
            self._place.linkage, self._place.initializer = "internal", word(0)

    def address(self, emitter: CallEmitter) -> Any:
        """The address, as a word; returns with the exception if there is none."""
        b = self.builder
        if self.name is None:
            return self._constant(b)
        found = emitter.stack(1)
        b.store(b.load_atomic(self._place, "acquire", 8), found)
        with b.if_then(b.icmp_signed("==", b.load(found), word(0)), likely=False):
            answer = b.call(self._ask, [])
            emitter.leave_if_raised(answer)
            b.store_atomic(answer, self._place, "release", 8)
            b.store(answer, found)
        return b.load(found)

    def digest(self) -> Any:
        """The digest that the table has now, or had when the function which calls began.

        LLVM may read it before a loop, which can then become one of vectors: what Python drops meanwhile counts from
        the next call of that function.
        """
        function, b = _new_function(self.builder.module, "functrans.digest")
        words = b.inttoptr(self._address_for_digest(b), word(0).type.as_pointer())
        b.ret(b.load(b.gep(words, [word(DIGEST)])))
        return self.builder.call(function, [], attrs=("readnone", "nounwind"))

    def _constant(self, builder: LLVMBuilder) -> Any:
        pointer = self.context.add_dynamic_addr(builder, self.table.address, "the table of a jitted function")
        return builder.ptrtoint(pointer, word(0).type)

    def _address_for_digest(self, b: LLVMBuilder) -> Any:
        """The address; a function returns zero if there is none."""
        if self.name is None:
            return self._constant(b)
        found = cgutils.alloca_once(b, word(0).type)
        b.store(b.load_atomic(self._place, "acquire", 8), found)
        with b.if_then(b.icmp_signed("==", b.load(found), word(0)), likely=False):
            answer = b.call(self._ask, [])
            with b.if_then(b.icmp_signed("<=", answer, word(0))):
                b.ret(word(0))
            b.store_atomic(answer, self._place, "release", 8)
            b.store(answer, found)
        return b.load(found)


def _new_function(module: Any, name: str) -> tuple[Any, Any]:
    """A function without arguments that returns a word, and a builder at its beginning."""
    function = ir.Function(module, ir.FunctionType(word(0).type, []), module.get_unique_name(name))
    function.linkage = "internal"
    function.attributes.add("noinline")
    return function, ir.IRBuilder(function.append_basic_block())


def _asking(context: TargetContext, module: Any, call: bytes) -> Any:
    """The function without arguments that asks `table_at` for the table of a pickled call."""
    i64 = word(0).type
    function, b = _new_function(module, "functrans.ask")
    pyapi = context.get_python_api(b)
    result = cgutils.alloca_once_value(b, word(0))
    data = cgutils.global_constant(
        b, "functrans.call", cgutils.create_constant_array(ir.IntType(8), bytearray(call))
    )
    gil = pyapi.gil_ensure()
    found = pyapi.import_module(context.insert_const_string(module, _THIS))
    with b.if_then(cgutils.is_not_null(b, found)):
        words = [pyapi.long_from_longlong(w) for w in (b.ptrtoint(data, i64), word(len(call)))]
        answer = pyapi.call_method(found, "table_at", words)
        with b.if_then(cgutils.is_not_null(b, answer)):
            b.store(pyapi.long_as_longlong(answer), result)
        for x in (found, *words, answer):
            pyapi.decref(x)
    pyapi.err_clear()
    pyapi.gil_release(gil)
    b.ret(b.load(result))
    return function


@guarded
def table_at(address: int, size: int) -> int:
    """The address of the table for the pickled call at an address."""
    name, token, names, args, result = serialize.loads(ctypes.string_at(address, size))
    table = known(token)
    if table is None:
        jitted = name.find()
        table = table_of(jitted, CallTypes(jitted, args, names), result)
    return table.address


def lost_type() -> Any:
    """The type of a function of another process: equal to none."""
    return types.Opaque(f"a function of another process, {uuid4().hex}")

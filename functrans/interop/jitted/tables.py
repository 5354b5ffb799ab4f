"""The programs of a jitted function for the sizes that native code meets, and the calls by which it asks for them.

A *table* belongs to a jitted function and the types of a call. Its words are the *entry* that was used last, then the
heads of `BUCKETS` lists of entries, then the addresses of the functions of `jitted_helpers`, then the digest of the
program that callers may have inlined, if it has no sizes and is short (zero if not). An entry is for one
combination of sizes, and is never changed once it is in a list: threads search without a lock. Tables and entries live
as long as the process, because machine code holds their addresses.

Native code calls `lookup`, `run` and `refuse` with addresses, under the GIL. They return a positive number, or minus
the number of an exception (`jitted_errors`).
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from ...core import ArgumentError, ShapeError, current_trace, eval_trace, new_rlock, run_with
from ...frontend.arguments import name_of
from ...frontend.pytree import tree_flatten
from ...lowering.run.executable import compile_jaxpr
from ...lowering.run.native import (
    ALIGNMENT,
    BufferPlace,
    InlinedProgram,
    NativeProgram,
    inlined_program,
    native_program,
)
from .arguments import CallTypes, memory, result_leaves, result_type, types
from .errors import hold
from .helpers import BUCKETS, FIELDS, HELPERS, IN_ORDER, MULTIPLIER, NATIVE, PYTHON, helper, publisher

#: How a place is written: the number of a base, and an offset from it. The bases are the words that hold the data
#: pointers, those that hold the pointers of scratch memory, and zero.
KINDS = {"data": 0, "scratch": 1, "constant": 2}
#: The bytes of a pool's header, and of the guards before its memory.
POOL_HEADER = 24


class SizedEntry:
    """The program for one combination of sizes, and its words."""

    def __init__(
        self,
        sizes: tuple[int, ...],
        out_sizes: tuple[int, ...],
        program: NativeProgram | None,
        counts: tuple[int, int],
    ):
        self.program = program
        self._kept: list[np.ndarray] = []
        fields = dict.fromkeys(FIELDS, 0)
        fields["mode"] = PYTHON
        if program is not None:
            self._describe(program, fields, *counts)
        self.words = self.array([0, *sizes, *out_sizes, *fields.values()])
        self.address: int = self.words.ctypes.data

    def array(self, words: Sequence[int]) -> np.ndarray:
        """Words that live as long as the entry."""
        self._kept.append(np.array(words, np.int64))
        return self._kept[-1]

    def _describe(self, program: NativeProgram, fields: dict[str, int], inputs: int, outputs: int) -> None:
        in_order = [BufferPlace("data", i) for i in range(inputs + outputs)]
        plain = program.places == in_order and not program.copies
        fields["mode"] = IN_ORDER if plain else NATIVE
        fields["kernel"] = program.address
        numbers = np.frombuffer(program.numbers or bytes(8), np.int64)
        self._kept.append(numbers)
        fields["numbers"] = numbers.ctypes.data
        # A cell for each constant: the place where its data pointer is.
        cells = self.array([c.ctypes.data for c in program.constants] or [0])
        self._constants = program.constants

        def word(place: BufferPlace) -> list[int]:
            base = cells.ctypes.data if place.kind == "constant" else 0
            return [KINDS[place.kind], base + 8 * place.number]

        places = self.array([w for p in program.places for w in word(p)])
        fields["places"], fields["place_count"] = places.ctypes.data, len(program.places)
        # The frame: pointers to the buffers, pointers to scratch memory, scratch memory.
        head = 8 * (len(program.places) + len(program.scratch))
        end, offsets, pools = -(-head // ALIGNMENT) * ALIGNMENT, [], []
        for size in program.scratch:
            offsets.append(end)
            if size < 0:
                pools.append(end)
            end += -(-max(size, POOL_HEADER) // ALIGNMENT) * ALIGNMENT
        fields["scratch"], fields["scratch_count"] = self.array(offsets).ctypes.data, len(offsets)
        fields["pools"], fields["pool_count"] = self.array(pools).ctypes.data, len(pools)
        fields["frame_bytes"] = end + ALIGNMENT
        copies = self.array([w for j, p, n in program.copies for w in (inputs + j, *word(p), n)])
        fields["copies"], fields["copy_count"] = copies.ctypes.data, len(program.copies)


class CallTable:
    """The entries for one jitted function and the types of a call.

    Parameters
    ----------
    jitted : Jitted
    arguments : CallTypes
    result : Numba type
        That of the result, which every entry must have.
    """

    def __init__(self, jitted: Any, arguments: CallTypes, result: Any):
        self.jitted = jitted
        self.arguments = arguments
        self.result = result
        helpers = [helper(name).address for name in HELPERS]
        self._words = np.array([0, *[0] * BUCKETS, *helpers, 0], np.int64)
        self.address: int = self._words.ctypes.data
        self._entries: dict[tuple[int, ...], SizedEntry] = {}
        self._by_address: dict[int, tuple[SizedEntry, tuple[int, ...], list[Any]]] = {}
        self._lock = new_rlock()
        _tables[self.address] = self
        jitted.whenever_dropped(self.forget)

    def forget(self) -> None:
        """Forget the entries; they stay in memory, because a thread may be running one."""
        with self._lock:
            self._entries.clear()
            self._words[: 1 + BUCKETS] = self._words[-1] = 0

    def inlined(self) -> InlinedProgram | None:
        """The program for callers to inline, as long as the table has its digest."""
        if any(leaf.is_array for leaf in self.arguments.leaves) or any(
            not isinstance(typ, types.Float | types.Integer | types.Boolean)
            for typ, _ in result_leaves(self.result)
        ):
            return None
        with self._lock:
            return run_with(current_trace, eval_trace, self._traced_inlined)

    def _traced_inlined(self) -> InlinedProgram | None:
        args, kwargs = self.arguments.structs(self._shapes(()))
        return self._inlined(self.jitted.traced(*args, **kwargs)[0])

    def _inlined(self, traced: Any) -> InlinedProgram | None:
        program = inlined_program(compile_jaxpr(traced.jaxpr)) if self._is_native(traced) else None
        self._words[-1] = 0 if program is None else program.digest
        return program

    def lookup(self, sizes: tuple[int, ...]) -> int:
        """The address of the entry for these sizes, compiled if it is new."""
        with self._lock:
            entry = self._entries.get(sizes)
            if entry is None:
                entry = self._new(sizes)
                bucket = 1 + functools.reduce(lambda h, n: h * MULTIPLIER + n, sizes, 0) % BUCKETS
                entry.words[0] = self._words[bucket]
                self._entries[sizes] = entry
                publisher()(self.address + 8 * bucket, entry.address)
        return entry.address

    def _new(self, sizes: tuple[int, ...]) -> SizedEntry:
        args, kwargs = self.arguments.structs(self._shapes(sizes))
        traced, _ = self.jitted.traced(*args, **kwargs)
        avals = traced.jaxpr.out_avals
        outs = avals[: traced.out_tree.num_leaves]
        result = result_type(self.jitted, traced.out_tree, outs)
        if result != self.result:
            raise ArgumentError(
                f"jit of {name_of(self.jitted.__wrapped__)} returns {result} for arguments "
                f"{self.arguments.in_words()} of sizes {sizes}, but the code that calls it was compiled by Numba for "
                f"{self.result}. If the function was changed, remove the caller's cache (the files .nbi and .nbc in "
                "its __pycache__); if the result's type depends on sizes, return arrays of one rank and dtype"
            )
        out_sizes = tuple([n for a in outs for n in a.shape])
        program = native_program(compile_jaxpr(traced.jaxpr).compile()) if self._is_native(traced) else None
        entry = SizedEntry(sizes, out_sizes, program, (len(self.arguments.leaves), len(outs)))
        if not sizes:
            self._inlined(traced)
        self._by_address[entry.address] = entry, sizes, list(outs)
        return entry

    def _is_native(self, traced: Any) -> bool:
        dtypes = [leaf.dtype for leaf in self.arguments.leaves]
        pure = traced.is_pure and not self.jitted.is_watched
        return pure and [v.dtype for v in traced.jaxpr.in_avals] == dtypes

    def _shapes(self, sizes: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        rest = iter(sizes)
        return (tuple([next(rest) for _ in range(leaf.ndim)]) for leaf in self.arguments.leaves)

    def refuse(self, entry: int, sizes: Sequence[int]) -> NoReturn:
        """Raise the error about memory for results whose sizes are not those of the results."""
        rest = iter(sizes)
        leaves = result_leaves(self.result)
        for aval, (typ, path) in zip(self._by_address[entry][2], leaves, strict=True):
            shape = tuple([next(rest) for _ in range(getattr(typ, "ndim", 0))])
            if shape != aval.shape:
                place = f"into of {name_of(self.jitted.__wrapped__)}: out" + "".join(f"[{i}]" for i in path)
                raise ShapeError(f"{place} has shape {shape}; the result has {aval.shape}")
        raise AssertionError("the sizes are right")

    def run(self, entry: int, data: Sequence[int]) -> None:
        """Call the function from Python on copies of the arguments, and write the results to their memory."""
        _, sizes, avals = self._by_address[entry]
        leaves = self.arguments.leaves
        values = [leaf.value(p, shape) for leaf, p, shape in zip(leaves, data, self._shapes(sizes))]
        args, kwargs = self.arguments.call(values)
        outs = tree_flatten(self.jitted(*args, **kwargs))[0]
        for place, aval, x in zip(data[len(leaves) :], avals, outs, strict=True):
            if np.shape(x) != aval.shape:  # memory was taken before the instance of a method changed
                raise ShapeError(
                    f"jit of {name_of(self.jitted.__wrapped__)}: the result has the shape {np.shape(x)}, and had "
                    f"{aval.shape} before its instance changed; call it again"
                )
            memory(place, aval.dtype, aval.shape)[...] = x


_tables: dict[int, CallTable] = {}
_by_call: dict[Any, CallTable] = {}
_publishing = new_rlock()


def table_of(jitted: Any, arguments: CallTypes, result: Any) -> CallTable:
    """The table of a jitted function for the types of a call."""
    key = id(jitted), arguments.names, arguments.types, result  # a table keeps its function alive
    with _publishing:
        if key not in _by_call:
            _by_call[key] = CallTable(jitted, arguments, result)
        return _by_call[key]


def guarded(f: Callable[..., int]) -> Callable[..., int]:
    """A function for native code: `f`, outside of any transformation; it returns minus the number of its exception."""

    def call(*words: int) -> int:
        try:
            return run_with(current_trace, eval_trace, f, *words)
        except BaseException as error:
            return -hold(error)

    return call


def _words(address: int, n: int) -> tuple[int, ...]:
    return tuple((ctypes.c_ssize_t * n).from_address(address)) if n else ()


@guarded
def lookup(table: int, sizes: int, _: int) -> int:
    """The address of the entry for the sizes at an address."""
    found = _tables[table]
    return found.lookup(_words(sizes, sum(leaf.ndim for leaf in found.arguments.leaves)))


@guarded
def run(table: int, entry: int, data: int) -> int:
    """Run an entry through Python, with the data pointers at an address."""
    found = _tables[table]
    found.run(entry, _words(data, len(found.arguments.leaves) + len(result_leaves(found.result))))
    return 1


@guarded
def refuse(table: int, entry: int, sizes: int) -> int:
    """Raise the error about memory for results that has the sizes at an address."""
    found = _tables[table]
    count = sum(getattr(typ, "ndim", 0) for typ, _ in result_leaves(found.result))
    found.refuse(entry, _words(sizes, count))

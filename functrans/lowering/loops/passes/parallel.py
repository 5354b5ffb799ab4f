"""Divide loops among threads: the iterations of a long loop become chunks, which a team of threads takes one by one.

.. code-block:: text

    local s = 0                               for c in 0..chunks team w of threads:
    for i in 0..n:                                local p = 0
        t[] = ...                      ──▶        for i in units*c/chunks .. units*(c+1)/chunks:
        s = s + t[]                                   t[w] = ...
                                                      p = p + t[w]
                                                  partial[c] = p
                                              for c in 0..chunks:
                                                  s = s + partial[c]

* Only a loop whose iterations are *separate* is divided (`ir.For`). The outermost ones are, if they do enough work.
* Scratch that each iteration uses again gets a row for each thread, or lives on its stack. What it holds before the
  loop (the zeros around a padded image) is copied.
* A fold has a variable for each chunk, or a copy of the array to which it adds. The results are combined in order, so
  that a sum depends on the number of threads, but on nothing else: not on which thread took which chunk.
* The numbers of chunks and threads are parameters of the kernel, whose text is the same for every number above one.

Extents are known here, so whether a loop is worth dividing is decided now: a kernel without such a loop is what it
would be for one thread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from math import prod
from typing import Any

from ....core.dtypes import real_dtype
from ....passes.scalar_functions import COSTS
from ...blas import can_set_threads, has_own_products
from .. import ir, queries
from ..touches import touches, touches_of
from .chunk_rows import copied, shapes_of_rows, with_rows
from .partial_sums import PartialSums, folds_in_memory
from .plan import fits_on_stack
from .split_functions import all_defined, passes, uses

#: The least work of a loop that is divided, and of a chunk, in additions (`work_of`): about 50 us, at which two
#: threads, one of them woken first, are as fast as one; and 6 us. Loops of unknown work are divided from `LEAST_CHUNK`
#: on, and the pool measures their first chunk.
LEAST, LEAST_CHUNK = 3 << 19, 3 << 16
#: The cost of an operation, relative to vectors, where each waits for the one before: in a loop with a carry.
IN_SEQUENCE = 8
#: The cost of calling a routine, and of each product in it.
ROUTINE, PRODUCT = 1 << 12, 8
#: Rows and columns of a tile of our matrix product, of which blocks consist.
TILE = {"rows": 8, "columns": 16}
#: Chunks per thread: of equal work; of unequal work, where a thread would wait for the
#: other; of a matrix product, which packs its operands for each.
EVEN, UNEVEN, IN_PRODUCT = 4, 16, 2
#: Elements of which each chunk has a copy: at most its work divided by this. Each is set to zero, and added at the end.
LITTLE = 32
#: Innermost loops are cut at multiples of this, so that vectors start where they would in one piece.
UNIT = 64
#: The assumed number of iterations of a loop whose number is unknown.
UNKNOWN = 16
#: Routines on matrices with more elements are left to BLAS if it may have threads, which nothing stops.
SMALL_MATRIX = 64 * 64


def divide(kernel: ir.Kernel, threads: int, specialize_below: int) -> None:
    """Divide the loops of a kernel, in place; it must not be planned yet.

    Parameters
    ----------
    kernel : Kernel
    threads : int
        At least two.
    specialize_below : int
        Extents up to this one are literals.
    """
    _Division(kernel, threads, specialize_below).body(kernel.body)


def work_of(body: ir.StatementList, weight: int = 1) -> int:
    """The work of a block, in additions of vectors of eight; `weight` is the cost of one addition."""
    total = 0
    for s in body.statements:
        match s:
            case ir.Let(op=op):
                total += weight * COSTS.get(op, 1)
            case ir.For():
                inner = 1 if s.separate else IN_SEQUENCE if s.interruptible else weight
                total += max(queries.rounds(s, s.most or UNKNOWN), 0) * work_of(s.body, inner)
            case ir.While():
                total += UNKNOWN * (work_of(s.test, IN_SEQUENCE) + work_of(s.body, IN_SEQUENCE))
            case ir.If():
                total += work_of(s.then, weight) + work_of(s.orelse, weight)
            case ir.Copy(target=target):
                total += target.size
            case ir.Call():
                total += ROUTINE + PRODUCT * prod(_sizes(s))
            case _:
                total += weight
    return total


def _work(loop: ir.For) -> int:
    """The work of all iterations of a loop, if their number is known."""
    return queries.rounds(loop, 0) * work_of(loop.body)


def _without_marks(body: ir.StatementList) -> None:
    """Remove the marks of a body: threads would share the counters."""
    body.statements = [s for s in body.statements if type(s) is not ir.Mark]
    for s in body.statements:
        for inner in queries.bodies_of(s):
            _without_marks(inner)


def _is_uneven(loop: ir.For) -> bool:
    """Whether the work of an iteration is unknown."""
    return any(type(s) is ir.While for s in queries.walk(loop.body))


def _sizes(call: ir.Call) -> list[int]:
    """The extents of the matrices that a routine works on: its first whole numbers, as BLAS and LAPACK have them."""
    sizes = [a.value for a in call.args if type(a) is ir.Extent][:3]
    return sizes * 3 if len(sizes) == 1 else sizes


class _Division:
    def __init__(self, kernel: ir.Kernel, threads: int, specialize_below: int):
        self.kernel = kernel
        self.threads = threads
        self.specialize_below = specialize_below
        self.number = 0  # of the kernel's statement that is being looked at
        self._statements = list(kernel.body.statements)
        self._users: Counter[str] | None = None
        self._before: Counter[str] = Counter()
        self._counted = 0  # of the kernel's statements, those in `_before`

    def body(self, body: ir.StatementList) -> None:
        """Divide the outermost suitable loops of a block."""
        statements: list[ir.Statement] = []
        for number, s in enumerate(body.statements):
            if body is self.kernel.body:
                self.number = number
            possible = type(s) is ir.For and self.is_worth(s) and self.is_possible(s)
            if possible and (added := self.added(s)) is not None:
                statements += self.divided(s, added)
                continue
            if type(s) is ir.Call and (axis := _divisible(s, self.threads)) is not None:
                statements.append(self.product(s, axis))
                continue
            for inner in queries.bodies_of(s):
                self.body(inner)
                if type(s) is ir.For and any(map(queries.is_shared, queries.walk(inner))):
                    s.independent = False  # its iterations share the results of chunks
            statements.append(s)
        body.statements = statements

    @property
    def users(self) -> Counter[str]:
        """How often statements touch each storage."""
        if self._users is None:
            self._users = Counter(t.buffer.place for t in touches(self.kernel.body))
        return self._users

    def users_before(self) -> Counter[str]:
        """How often the kernel's statements before the current one touch each storage."""
        passed = self._statements[self._counted : self.number]
        self._before.update(t.buffer.place for t in touches(ir.StatementList(passed)))
        self._counted += len(passed)
        return self._before

    # --- whether --------------------------------------------------------------------------------------------

    def is_worth(self, loop: ir.For) -> bool:
        """Whether a loop's iterations are separate, and enough work."""
        n = queries.rounds(loop, 0)
        if not (loop.separate or loop.adds) or n < self.threads:
            return False
        return _work(loop) >= (LEAST_CHUNK if _is_uneven(loop) else LEAST)

    def is_possible(self, loop: ir.For) -> bool:
        """Whether the body can be a function."""
        for s in queries.walk(loop.body):
            if type(s) in (ir.HostCall, ir.Reserve):
                return False
            if type(s) is ir.Call and max(prod(_sizes(s)[:2]), 1) > SMALL_MATRIX and not can_set_threads():
                return False
            if type(s) is ir.Copy and s.target.shape != s.source.shape:
                return False
        for x in _outside(loop):
            if type(x) is ir.LocalVar and not x.fold:
                return False
            if type(x) is ir.Value and not passes(real_dtype(x.dtype)):
                return False
        return True

    def added(self, loop: ir.For) -> dict[str, str] | None:
        """The storages to whose elements several iterations add, each with its fold.

        Each chunk has a copy of them. None if these would be much beside its work, or if threads would need separate
        memory for anything else.
        """
        private = self.private(loop)
        moving = _depending(loop) if loop.separate else {loop.var}
        fixed = {
            touch.buffer.place
            for s in queries.walk(loop.body)
            for touch in (() if type(s) is ir.Mark else touches_of(s))
            if touch.writes
            and touch.buffer.role != "in"
            and touch.buffer.place not in private
            and not _moves(s, touch.buffer, moving)
        }
        if not fixed:
            return {}
        if not loop.adds or self.elements_of(fixed) * self.threads * LITTLE > _work(loop):
            return None
        return folds_in_memory(loop, fixed)

    def elements_of(self, places: Collection[str]) -> int:
        """The elements of some storages."""
        return sum({b.place: b.size for b in self.kernel.buffers if b.place in places}.values())

    def private(self, loop: ir.For) -> set[str]:
        """The scratch storages that iterations use one after the other."""
        inside = Counter(t.buffer.place for t in touches(loop.body))
        written = {t.buffer.place for t in touches(loop.body) if t.writes}
        roles: dict[str, set[str]] = {}
        for b in self.kernel.buffers:
            roles.setdefault(b.place, set()).add(b.role)
        own = {place for place in written if roles[place] == {"scratch"}}
        before = self.users_before()
        unseen = {place for place in own if inside[place] + before[place] == self.users[place]}
        return unseen - _dealt(loop, unseen)

    # --- how ------------------------------------------------------------------------------------------------

    def divided(self, loop: ir.For, added: dict[str, str]) -> list[ir.Statement]:
        """The statements in place of a loop, of whose chunks each has a copy of some storages."""
        _without_marks(loop.body)
        team = ir.Team(ir.Value(ir.INT64), ir.Extent(self.threads, outlined=True), _is_uneven(loop))
        n, chunks, unit = self.shares(loop, added)
        rows = self.deal(loop, team.worker)
        units = -(-n // unit)
        number = ir.Value(ir.INT64)
        bounds, ends = _bounds(number, n, chunks, unit)
        if loop.start != ir.Extent(0):
            counted, ends = ends, (ir.Value(ir.INT64), ir.Value(ir.INT64))
            bounds += [ir.Let(x, "add", (y, loop.start)) for x, y in zip(ends, counted)]
        loop.start, loop.stop = ends
        loop.most = -(-units // chunks) * unit
        sums = PartialSums(loop, number, chunks, self.declare)
        sums.variables(dict.fromkeys(x for x in _outside(loop) if type(x) is ir.LocalVar))
        sums.elements(list(self.kernel.buffers), added)
        body = ir.StatementList([*bounds, *rows, *sums.before, loop, *sums.after])
        stop = ir.Extent(chunks, outlined=True)
        return [ir.For(number, ir.Extent(0), stop, body, team=team), *sums.combined]

    def product(self, call: ir.Call, axis: str) -> ir.For:
        """A matrix product in chunks of rows or columns of its result; BLAS sees the transpose."""
        extent, operand, turned = (3, 8, call.args[1]) if axis == "rows" else (2, 6, call.args[0])
        n, args, number = call.args[extent].value, list(call.args), ir.Value(ir.INT64)
        chunks = IN_PRODUCT * self.threads
        statements, (start, stop) = _bounds(number, n, chunks, TILE[axis])
        args[extent] = count = ir.Value(ir.INT64)
        statements.append(ir.Let(count, "sub", (stop, start)))
        for place, leading in ((operand, (turned == "N") == (axis == "rows")), (11, axis == "rows")):
            skipped = start
            if leading:
                skipped = ir.Value(ir.INT64)
                statements.append(ir.Let(skipped, "mul", (start, call.args[place + 1])))
            moved = ir.Value(ir.INT64)
            statements.append(ir.Let(moved, "add", (call.args[place].offset, skipped)))
            args[place] = ir.Address(call.args[place].buffer, moved)
        body = ir.StatementList([*statements, ir.Call(call.routine, call.letter, tuple(args))])
        team = ir.Team(ir.Value(ir.INT64), ir.Extent(self.threads, outlined=True), uneven=False)
        return ir.For(number, ir.Extent(0), ir.Extent(chunks, outlined=True), body, team=team)

    def shares(self, loop: ir.For, added: Collection[str]) -> tuple[int, int, int]:
        """The number of iterations and of chunks, and the unit of the bounds of chunks."""
        n, work, uneven = queries.rounds(loop, 0), _work(loop), _is_uneven(loop)
        most = UNEVEN * self.threads if uneven else min(EVEN * self.threads, work // LEAST_CHUNK)
        most = min(most, work // max(LITTLE * self.elements_of(added), 1))
        chunks = min(max(most, self.threads), n)
        innermost = not any(type(s) is ir.For for s in queries.walk(loop.body))
        return n, chunks, UNIT if innermost and not uneven and n >= UNIT * chunks else 1

    def declare(
        self, name: str, dtype: Any, shape: tuple[int, ...], storage: str | None = None
    ) -> ir.BufferDecl:
        """New scratch memory, with a row for each thread or each chunk."""
        names = {b.name for b in self.kernel.buffers}
        unique, n = name, 1
        while unique in names:
            n += 1
            unique = f"{name}_{n}"
        self.kernel.buffers.append(
            decl := ir.BufferDecl(unique, dtype, shape, "scratch", storage, dealt=True)
        )
        return decl

    def deal(self, loop: ir.For, worker: ir.Value) -> list[ir.Statement]:
        """Give each thread a row of the scratch that iterations use again.

        Returns the statements that copy what such scratch holds before the loop.
        """
        places = self.private(loop)
        inside = Counter(t.buffer.place for t in touches(loop.body))
        views: dict[str, list[ir.BufferDecl]] = {}
        for b in self.kernel.buffers:
            if b.place in places:
                views.setdefault(b.place, []).append(b)
        rows: dict[ir.BufferDecl, ir.BufferDecl] = {}
        copies: list[ir.Statement] = []
        for place, decls in views.items():
            alone = inside[place] == self.users[place]
            if alone and len(decls) == 1 and fits_on_stack(decls[0], self.specialize_below):
                continue
            storage = None
            for b, shape in zip(decls, shapes_of_rows(self.threads, decls)):
                rows[b] = self.declare(f"{b.name}_rows", b.dtype, shape, storage)
                storage = rows[b].place
            if not alone:
                copies += copied(ir.Copy(decls[0], decls[0]), {}, rows, worker)
        if rows:
            with_rows(loop.body, rows, worker)
        return copies


def _divisible(call: ir.Call, threads: int) -> str | None:
    """Along which axis of its result to divide a matrix product; None if it is small, or not ours."""
    if call.routine != "gemm" or not has_own_products(call.letter) or prod(_sizes(call)) < LEAST:
        return None
    if not can_set_threads() or any(type(a) is not ir.Extent for a in call.args[2:5]):  # known at run time
        return None
    columns, rows, _ = _sizes(call)
    if rows >= 2 * threads * TILE["rows"]:
        return "rows"
    return "columns" if columns >= 2 * threads * TILE["columns"] else None


def _bounds(
    number: ir.Value, n: int, chunks: int, unit: int
) -> tuple[list[ir.Statement], tuple[ir.Value, ir.Value]]:
    """The first iteration of a chunk, and the end of its iterations; both are multiples of the unit, but for `n`."""
    count, units = ir.Extent(chunks, outlined=True), ir.Extent(-(-n // unit))
    first, product, next_number, next_product, end = (ir.Value(ir.INT64) for _ in range(5))
    lets: list[ir.Statement] = [
        ir.Let(product, "mul", (number, units)),
        ir.Let(first, "idiv", (product, count)),
        ir.Let(next_number, "add", (number, ir.Extent(1))),
        ir.Let(next_product, "mul", (next_number, units)),
        ir.Let(end, "idiv", (next_product, count)),
    ]
    if unit == 1:
        return lets, (first, end)
    start, far, stop = (ir.Value(ir.INT64) for _ in range(3))
    inside = ir.Value(ir.BOOL)
    lets += [
        ir.Let(start, "mul", (first, ir.Extent(unit))),
        ir.Let(far, "mul", (end, ir.Extent(unit))),
        ir.Let(inside, "lt", (far, ir.Extent(n))),
        ir.Let(stop, "select", (inside, far, ir.Extent(n))),
    ]
    return lets, (start, stop)


def _outside(loop: ir.For) -> Iterator[Any]:
    """The values and variables from outside that the body of a loop uses."""
    inside = {loop.var, *(v for s in loop.body.statements for v in all_defined(s))}
    for x in uses(loop.body.statements):
        if type(x) in (ir.Value, ir.LocalVar) and x not in inside:
            yield x


def _depending(loop: ir.For) -> set[Any]:
    """The values that differ between iterations, through arithmetic, elements and the bounds of inner loops."""
    moving = {loop.var}
    for s in queries.walk(loop.body):
        if not moving.isdisjoint(x for x in queries.operands_of(s) if type(x) is ir.Value):
            if isinstance(s, ir.Let | ir.Load):
                moving.add(s.value)
            elif type(s) is ir.For:
                moving.add(s.var)
    return moving


def _moves(s: ir.Statement, buffer: ir.BufferDecl, moving: set[Any]) -> bool:
    """Whether a statement writes other elements of a buffer in other iterations."""
    if type(s) is ir.Store:
        return not moving.isdisjoint(s.index)
    if type(s) is ir.Call:
        return all(
            a.offset in moving for a in s.args if type(a) is ir.Address and a.buffer.place == buffer.place
        )
    return False


def _dealt(loop: ir.For, places: set[str]) -> set[str]:
    """The storages of which each iteration only uses elements at the iteration's number."""
    axes: dict[str, set[tuple[int, ...]]] = {}
    for s in queries.walk(loop.body):
        for touch in touches_of(s):
            index = s.index if isinstance(s, ir.Load | ir.Store) else ()
            at = next((d for d, i in enumerate(index) if i is loop.var), None)
            inner = () if at is None else (at, *touch.buffer.shape[at:])
            axes.setdefault(touch.buffer.place, set()).add(inner)
    return {place for place in places if len(axes[place]) == 1 and axes[place] != {()}}

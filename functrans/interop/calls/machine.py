"""Translation of a jitted function: its typed blocks run on traced values; loops and branches become `functrans.lax`'s.

`Machine.run` follows the blocks from one to the next. Where a condition is not known while translating, both sides
run, each as a function of `lax.cond`, up to the first block that both can reach. If they stop at different blocks (one
of them leaves the loop), the label of the next block is a value like any other, and what follows runs only for its
label. A loop is a `lax.fori_loop` if only its iterator ends it, else a `lax.while_loop` whose carry says which block
comes next.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ... import lax
from ... import numpy as fnp
from ...runtime.private.numba_names import ir
from ..numba_parts import Statement
from .expressions import Expressions
from .flow import END, RESULT, Stops
from .state import (
    NONE,
    STATUS,
    Absent,
    ArrayForm,
    Incompatible,
    KnownForm,
    Packed,
    Passed,
    State,
    flag_value,
    joined,
    pack,
    unpack,
    views_in,
)
from .values import Label, Range, is_known, label_value


class Learned(BaseException):
    """A first attempt showed what a loop or branch must pass on: trace it again.

    Not an `Exception`: it passes through what explains errors.
    """


class Machine(Expressions):
    """Runs the blocks of jitted functions on traced values."""

    # ---------------------------------------------------------------- blocks

    def run(self, label: int, stops: Stops, inside: int | None = None) -> Label:
        """Run from a block until a path meets one of `stops`.

        Parameters
        ----------
        label : int
        stops : frozenset of int
        inside : int, optional
            The loop of which this is one iteration.

        Returns
        -------
        Label
            The stops that were met.
        """
        while True:
            if label == END or (label in stops and label != inside):
                return Label(frozenset({label}))
            if label in self.flow.loops and label != inside:
                after = self.loop(label)
            else:
                after = self.block(label, stops)
            inside = None
            after = self.resolve(after, stops)
            if after.target is None or after.target in stops or after.target == END:
                return after
            label = after.target

    def resolve(self, label: Label, stops: Stops) -> Label:
        """Run what follows for those of several blocks at which nothing stops."""
        while label.target is None:
            pending = [t for t in label.targets if t not in stops and t != END]
            if not pending:
                return label
            first = min(pending, key=self.flow.order.__getitem__)
            if first in self.flow.loops:
                label = self.loop(first, entered=label)
            else:
                label = self._resolved(label, first, stops)
        return label

    def _resolved(self, label: Label, first: int, stops: Stops) -> Label:
        others = label.targets - {first}
        value = label_value(label)
        return self.branch(
            value == first,
            lambda: self.run(first, stops | others),
            lambda: Label(others, None if len(others) == 1 else value),
            ("from", first),
            (first,),
            stops | others,
        )

    def block(self, label: int, stops: Stops) -> Label:
        """Run the statements of one block; a branch runs both sides."""
        block = self.flow.blocks[label]
        for statement in block.body[:-1]:
            self.statement(statement)
        last = block.terminator
        self.here = last.loc
        if isinstance(last, ir.Jump):
            return Label(frozenset({last.target}))
        if isinstance(last, ir.Return):
            self.variables[RESULT] = self.variables[last.value.name]
            return Label(frozenset({END}))
        if isinstance(last, ir.Branch):
            return self.fork(self.truth(last.cond), last.truebr, last.falsebr, stops, label)
        self.raising(True, last)
        return Label(frozenset({END}))

    def fork(self, test: Any, yes: int, no: int, stops: Stops, label: int) -> Label:
        """Go on at one of two blocks."""
        if is_known(test):
            return Label(frozenset({yes if test else no}))
        for side, other, holds in ((yes, no, test), (no, yes, fnp.logical_not(test))):
            if self.flow.only_raises(side):
                self.run_raise(side, holds)
                return Label(frozenset({other}))
        if yes in stops and no in stops:
            return Label(frozenset({yes, no}), fnp.where(test, np.int64(yes), np.int64(no)))
        if (yes in stops or no in stops) and (yes in self.flow.loops or no in self.flow.loops):
            return Label(frozenset({yes, no}), fnp.where(test, np.int64(yes), np.int64(no)))
        shared = self.flow.reachable(yes, stops) & self.flow.reachable(no, stops)
        inner = stops | shared
        return self.branch(
            test, lambda: self.run(yes, inner), lambda: self.run(no, inner), ("at", label), (yes, no), inner
        )

    def run_raise(self, label: int, holds: Any) -> None:
        """Run a block that raises, if a condition holds; what follows runs as if it did not."""
        for statement in self.flow.blocks[label].body[:-1]:
            self.statement(statement)
        self.here = self.flow.blocks[label].terminator.loc
        self.raising(holds, self.flow.blocks[label].terminator)

    # ---------------------------------------------------------------- branches

    def branch(
        self,
        test: Any,
        yes: Callable[[], Label],
        no: Callable[[], Label],
        key: Any,
        starts: tuple[int, ...],
        stops: Stops,
    ) -> Label:
        """Run one of two functions; the state afterwards is that of the one that ran."""
        region = frozenset().union(*[self.flow.reachable(s, stops) for s in starts])
        before = self.state
        live = frozenset().union(*[self.flow.live[s] for s in stops | {END} if s in self.flow.live])
        plan = self.plan(key, region, live)
        for _ in range(20):
            try:
                return self._branch(test, yes, no, plan, live)
            except Learned:
                self.state = before
        raise self.unsupported("a branch whose two sides leave different values in one variable")

    def _branch(
        self, test: Any, yes: Callable[[], Label], no: Callable[[], Label], plan: Passed, live: frozenset[str]
    ) -> Label:
        before = self.state
        sides: dict[int, tuple[Label, Packed]] = {}

        def side(k: int, run: Callable[[], Label]) -> Callable[[], list[Any]]:
            def traced() -> list[Any]:
                self.state = before.copy()
                label = run()
                reached = self.live_at(label.targets)
                packed = pack(self.state, plan, reached)
                self.learn(plan, before, self.state, reached)
                sides[k] = label.without_value(), packed
                if 1 - k in sides:
                    self.reconcile(plan, sides[1 - k][1], packed)
                self.state = before
                return [label_value(label), *packed.leaves]

            return traced

        try:
            value, *leaves = lax.cond(test, side(1, yes), side(0, no))
        finally:
            self.state = before
        targets = sides[0][0].targets | sides[1][0].targets
        after = before.copy()
        unpack(self, after, self.reconcile(plan, sides[0][1], sides[1][1]), leaves)
        self.state = after
        return Label(targets, None if len(targets) == 1 else value)

    def plan(self, key: Any, region: frozenset[int], live: frozenset[str]) -> Passed:
        """What a loop or branch passes on, so far as the blocks alone tell; kept, since it learns."""
        assigned = self.flow.assigned(region) & live
        written = self.flow.written(region)
        storages = {v.storage for n in written - assigned for v in views_in(self.variables.get(n))}
        plans = self.plans.setdefault((*self.path, key), Passed(tuple(sorted(assigned)), ()))
        plans.storages = tuple(sorted((storages | set(plans.storages)) & self.state.heap.keys()))
        plans.variables = tuple(sorted(assigned | set(plans.variables)))
        return plans

    def learn(self, plan: Passed, before: State, after: State, live: frozenset[str]) -> None:
        """Add to a plan what has changed.

        Raises
        ------
        Learned
            If something has.
        """
        old, new = before.frame.variables, after.frame.variables
        names = {n for n in live if n in new and new[n] is not old.get(n, self)} - set(plan.variables)
        keys = {k for k in before.heap if after.heap[k].value is not before.heap[k].value} - set(
            plan.storages
        )
        flags = {f for f, x in after.flags.items() if x is not before.flags.get(f, self)} - set(plan.flags)
        tied = {k for k in before.heap if after.heap[k].tied and not before.heap[k].tied}
        for k in tied:
            before.heap[k] = replace(before.heap[k], tied=True)
        if names or keys or flags:
            plan.variables = tuple(sorted({*plan.variables, *names}))
            plan.storages = tuple(sorted({*plan.storages, *keys}))
            plan.flags = tuple(sorted({*plan.flags, *flags}, key=str))
            raise Learned

    def reconcile(self, plan: Passed, one: Packed, two: Packed) -> Packed:
        """The common meaning of the flat values of two paths."""
        variables = {}
        find_mates(plan, one, two)
        find_mates(plan, two, one)
        for name in plan.variables:
            a, b = one.variables[name], two.variables[name]
            if isinstance(a, Absent) != isinstance(b, Absent):
                plan.shapes[name] = b if isinstance(a, Absent) else a
                if isinstance(plan.shapes[name], KnownForm):
                    variables[name] = plan.shapes[name]
                    continue
                raise Learned
            try:
                variables[name] = joined(a, b)
            except Incompatible as reason:
                if reason.memory and not plan.tied:
                    plan.tied = True
                    raise Learned from None
                raise self.unsupported(
                    f"'{name.split('.')[0]}' has a shape or structure that depends on the path taken",
                    "give it one shape on all paths",
                ) from None
        return Packed([], variables, one.storages, one.flags)

    # ---------------------------------------------------------------- loops

    def loop(self, header: int, entered: Label | None = None) -> Label:
        """Run a loop; `entered` is the label at its entry, if that is not known."""
        before = self.state
        live = self.flow.live[header]
        exits = self.flow.exits(header)
        if self.flow.iterated(header) is None or not self.flow.is_counted(header):
            live = live.union(*[self.flow.live[t] for t in exits if not self.flow.only_raises(t)])
        if entered is not None:
            live = live.union(*[self.flow.live[t] for t in entered.targets])
        plan = self.plan(("loop", header), self.flow.loops[header], live)
        for _ in range(20):
            try:
                if self.flow.is_counted(header) and entered is None:
                    return self.counted(header, plan)
                return self.conditional(header, plan, exits, entered)
            except Learned:
                self.state = before
        raise self.unsupported("a loop whose variables change their structure")

    def counted(self, header: int, plan: Passed) -> Label:
        """A ``for`` loop without ``break`` or ``return``."""
        iterated = self.flow.iterated(header)
        iterator = self.variables[str(iterated)]
        if not is_known(iterator.length) or iterator.length > 0:
            start = pack(self.state, plan, self.flow.live[header])
            before = self.state.copy()

            direct = isinstance(iterator, Range) and is_known(iterator.step) and iterator.step == 1
            first = iterator.start if direct else 0

            def body(k: Any, leaves: list[Any]) -> list[Any]:
                self.state = before.copy()
                unpack(self, self.state, start, leaves)
                entry = self.state.copy()
                self.iterations[iterated] = (k if direct else iterator.element(self, k), True)
                self.run(header, frozenset({header}), inside=header)
                return self.carried(plan, start, entry, before, self.flow.live[header])

            try:
                leaves = lax.fori_loop(first, first + iterator.length, body, start.leaves)
            finally:
                self.state = before
            after = before.copy()
            unpack(self, after, start, leaves)
            self.state = after
        return self.finished(header)

    def live_at(self, targets: frozenset[int]) -> frozenset[str]:
        """What is read after one of several blocks is entered."""
        return frozenset().union(*[self.flow.live[t] for t in targets])

    def carried(
        self, plan: Passed, start: Packed, entry: State, before: State, live: frozenset[str]
    ) -> list[Any]:
        """The flat values at the end of an iteration, which must have the form of those before the first."""
        end = pack(self.state, plan, live)
        entry.heap = {k: entry.heap[k] for k in before.heap}
        self.learn(plan, entry, self.state, live)
        self.reconcile(plan, start, end)
        return end.leaves

    def finished(self, header: int) -> Label:
        """Run the first block of a ``for`` loop once more: the iterator has ended."""
        iterated = self.flow.iterated(header)
        self.iterations[iterated] = (None, False)
        return self.block(header, frozenset())

    def conditional(self, header: int, plan: Passed, exits: Stops, entered: Label | None) -> Label:
        """A ``while`` loop, or a loop with ``break`` or ``return``."""
        iterated = self.flow.iterated(header)
        iterator = None if iterated is None else self.variables[iterated]
        others = frozenset() if entered is None else entered.targets - {header}
        targets: set[int] = set(others)
        start = pack(self.state, plan, self.live_at(others | {header}))
        first = np.asarray(header) if entered is None else label_value(entered)
        counter = [] if iterated is None else [np.asarray(0)]
        before = self.state.copy()
        stops = frozenset({header, END}) | exits

        def goes_on(carry: tuple[Any, ...]) -> Any:
            label, leaves, *k = carry
            holds = label == header
            if iterator is not None:
                holds = holds & (k[0] < iterator.length)
            if STATUS in plan.flags:
                state = before.copy()
                unpack(self, state, start, leaves)
                holds = holds & (flag_value(state, STATUS) == 0)
            elif STATUS in before.flags:
                holds = holds & (flag_value(before, STATUS) == 0)
            return holds

        def body(carry: tuple[Any, ...]) -> tuple[Any, ...]:
            _, leaves, *k = carry
            self.state = before.copy()
            unpack(self, self.state, start, leaves)
            entry = self.state.copy()
            if iterator is not None:
                self.iterations[iterated] = (iterator.element(self, k[0]), True)
            label = self.run(header, stops, inside=header)
            targets.update(label.targets - {header})
            leaves = self.carried(plan, start, entry, before, self.live_at(label.targets))
            return (label_value(label), leaves, *[n + 1 for n in k])

        try:
            label, leaves, *_ = lax.while_loop(goes_on, body, (first, start.leaves, *counter))
        finally:
            self.state = before
        after = before.copy()
        unpack(self, after, start, leaves)
        self.state = after
        if iterated is None:
            return Label(frozenset(targets), None if len(targets) == 1 else label)
        if not targets:
            return self.finished(header)
        return self.branch(
            label == header,
            lambda: self.finished(header),
            lambda: Label(frozenset(targets), None if len(targets) == 1 else label),
            ("after", header),
            (header,),
            frozenset(targets) | exits,
        )

    # ---------------------------------------------------------------- raise

    def raising(self, holds: Any, statement: Statement) -> None:
        """Note that a ``raise`` was met, if a condition holds and none was met before."""
        kind, args = self.exception(statement)
        self.fail(holds, kind, args)

    def fail(self, holds: Any, kind: type[BaseException], args: tuple[Any, ...]) -> None:
        """Note a failure, if a condition holds and nothing failed before."""
        number, places = self.failure(kind, args)
        now: Any = flag_value(self.state, STATUS) == 0
        if not is_known(holds):
            now = now & holds
        elif not holds:
            return
        flags = self.state.flags
        for place, value in places:
            flags[place] = fnp.where(now, value, flag_value(self.state, place))
        flags[STATUS] = fnp.where(now, np.int64(number), flag_value(self.state, STATUS))


def find_mates(plan: Passed, one: Packed, two: Packed) -> None:
    """Find variables that are read later only on the path of `two`, and share memory there with one read on both.

    Raises
    ------
    Learned
        If there are new ones.
    """
    for name, form in two.variables.items():
        if (
            not isinstance(form, ArrayForm)
            or form.group == NONE
            or getattr(one.variables[name], "group", 0) != NONE
        ):
            continue
        for other, theirs in two.variables.items():
            same = isinstance(theirs, ArrayForm) and theirs.group == form.group and other != name
            if (
                same
                and getattr(one.variables[other], "group", NONE) != NONE
                and plan.mates.get(name) != other
            ):
                plan.mates[name] = other
                raise Learned

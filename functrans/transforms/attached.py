"""Hooks attached to values that exist already: where they go once a function has been traced.

A hook on `x` sees the cotangent of all uses of `x`, also of those before the registration. So it stands directly behind
what defines `x`, and everything else reads its result::

    y = 2 x                       y  = 2 x
    z = y y                       y' = hook y
    attach(hook, y)       --->    z  = y' y'
    return z                      return z

While a function is traced a registration is only noted (`Trace.attach`). At the end its program is rewritten: the tape
of an eager derivative, or the equations of a jaxpr.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ..core.attachment import Attachment
from ..core.errors import HookError


class _Item(NamedTuple):
    """What is inserted behind a definition: the hook itself, or the note of one of its other values."""

    attachment: Attachment
    noted: int | None


class Insertion:
    """One rewriting of a program.

    Parameters
    ----------
    definitions : sequence of sequences
        The variables that each operation defines.
    make : callable
        ``make(primitive, args, params, source) -> (operation, its variables)``.
    """

    def __init__(self, definitions: Sequence[Sequence[Any]], make: Callable[..., tuple[Any, Sequence[Any]]]):
        self.place = {v: i for i, found in enumerate(definitions) for v in found}
        self.make = make
        self.env: dict[Any, Any] = {}
        self.made: list[Any] = []
        self.tokens: dict[tuple[int, int], Any] = {}
        self.pending: dict[int, list[_Item]] = {}

    def insert(
        self,
        ops: Sequence[Any],
        attachments: Iterable[Attachment],
        renamed: Callable[[Any, dict[Any, Any]], Any],
    ) -> list[Any]:
        """The operations with the hooks; `env` then says what the variables are called that have one."""
        # The hook registered first reads the cotangent first, so it stands last; what accumulates, first.
        live = [a for a in reversed(list(attachments)) if a.hook.active]
        for attachment in [a for a in live if a.hook.last] + [a for a in live if not a.hook.last]:
            self._schedule(attachment)
        self._behind(-1)
        for i, op in enumerate(ops):
            self.made.append(renamed(op, self.env))
            self._behind(i)
        return self.made

    def _schedule(self, attachment: Attachment) -> None:
        places = [self.place.get(v, -1) for v in attachment.values]
        count = attachment.count
        if attachment.hook.last and places[0] >= 0:
            raise HookError(
                f"{attachment.hook.label}: the value is not an argument of the function that is differentiated, but "
                "computed in it. Use register_hook for computed values",
                attachment.hook.source,
            )
        if attachment.hook.first_only:
            for k in sorted(range(len(places)), key=places.__getitem__):
                self.pending.setdefault(places[k], []).append(_Item(attachment, k))
            return
        if count is None:  # of several values, the one defined first: its cotangent is complete last
            first = min(range(len(places)), key=places.__getitem__)
            order = [first, *[i for i in range(len(places)) if i != first]]
            attachment = attachment.chosen(order, 1)
            places, count = [places[i] for i in order], 1
        if not count:
            return  # nothing that it could replace is differentiated
        self.pending.setdefault(max(places[:count]), []).append(_Item(attachment, None))
        for k in range(count, len(places)):
            self.pending.setdefault(places[k], []).append(_Item(attachment, k))

    def _behind(self, place: int) -> None:
        for attachment, k in self.pending.get(place, ()):
            if k is None:
                self._hook(attachment)
            elif attachment.hook.first_only:
                self._first(attachment, k)
            else:
                self._note(attachment, k)

    def _hook(self, attachment: Attachment) -> None:
        count = attachment.count
        assert count is not None
        anchors, noted = attachment.values[:count], attachment.values[count:]
        args = [*[self.env.get(v, v) for v in anchors], *attachment.state]
        op, results = self.make(
            attachment.primitive,
            args,
            attachment.params(tuple([v.aval.strong() for v in noted])),
            attachment.hook.source,
        )
        self.made.append(op)
        self.env.update(zip(anchors, results))
        for k, token in enumerate(results[count:]):
            self.tokens[id(attachment), count + k] = token

    def _first(self, attachment: Attachment, k: int) -> None:
        v = attachment.values[k]
        token = self.tokens.get((id(attachment), 0), 0.0)
        lanes = tuple([(size, (dims[k],)) for size, dims in attachment.lanes])
        args = [self.env.get(v, v), token, *attachment.state]
        params = {"hook": attachment.hook, "lanes": lanes}
        op, results = self.make(attachment.primitive, args, params, attachment.hook.source)
        self.made.append(op)
        self.env[v], self.tokens[id(attachment), 0] = results

    def _note(self, attachment: Attachment, k: int) -> None:
        v = attachment.values[k]
        token = self.tokens[id(attachment), k]
        op, (result,) = self.make(attachment.note, [self.env.get(v, v), token], {}, attachment.hook.source)
        self.made.append(op)
        self.env[v] = result

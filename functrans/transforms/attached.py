"""Hooks attached to existing values, and their insertion after the function has been traced.

A hook on `x` sees the cotangents of all uses of `x`, including those before the registration. So it is placed directly
after the definition of `x`, and everything else reads its result::

    y = 2 x                       y  = 2 x
    z = y y                       y' = hook y
    attach(hook, y)       --->    z  = y' y'
    return z                      return z

While a function is being traced, a registration is only recorded (`Trace.attach`). At the end its program is rewritten:
the tape of an eager derivative, or the equations of a jaxpr.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..core import Attachment, HookError
from ..core.ir import Var
from ..core.primitive import Linear
from ..core.values import Param
from ..runtime.records import NamedTuple

Lanes = tuple[tuple[int, tuple[int | None, ...]], ...]


def with_extra(lanes: Lanes, extra: Sequence[tuple[int | None, ...]]) -> Lanes:
    """Mapped axes that also say where each is in further operands."""
    return tuple([(size, (*dims, *more)) for (size, dims), more in zip(lanes, extra)]) if extra else lanes


class _Item(NamedTuple):
    """An equation to insert after a definition: the hook itself, or the note of some of its other values."""

    attachment: Attachment
    noted: tuple[int, ...]


class Insertion:
    """One rewriting of a program.

    Parameters
    ----------
    definitions : sequence of sequences
        The variables defined by each operation.
    make : callable
        ``make(primitive, args, params, source) -> (operation, its variables)``.
    """

    def __init__(self, definitions: Sequence[Sequence[Any]], make: Callable[..., tuple[Any, Sequence[Any]]]):
        self.place = {v: i for i, variables in enumerate(definitions) for v in variables}
        self.make = make
        self.env: dict[Any, Any] = {}
        self.made: list[Any] = []
        self.tokens: dict[tuple[int, int], Any] = {}
        #: The place of the operation that was made last.
        self.here = -1
        self.pending: dict[int, list[_Item]] = {}
        #: The places of the made operations that are hooks which captured values that are defined only later.
        self.waiting: list[tuple[int, Attachment]] = []

    def insert(
        self,
        ops: Sequence[Any],
        attachments: Iterable[Attachment],
        renamed: Callable[[Any, dict[Any, Any]], Any],
    ) -> list[Any]:
        """The operations including the hooks; `env` then maps values with hooks to their new names."""
        # The hook registered first receives the cotangent first, so it comes last; hooks that accumulate come first.
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
        count, hook = attachment.count, attachment.hook
        if hook.last and places[0] >= 0:
            raise HookError(
                f"{hook.label}: the value is not an argument of the function that is differentiated, but computed in "
                "it. Use register_hook for computed values",
                hook.source,
            )
        if hook.first_only:
            for k in sorted(range(len(places)), key=places.__getitem__):
                self._at(places[k], attachment, (k,))
            return
        if count is None:  # the first value defined: its cotangent is complete last
            first = min(range(len(places)), key=places.__getitem__)
            order = [first, *[i for i in range(len(places)) if i != first]]
            attachment = attachment.chosen(order, 1)
            places, count = [places[i] for i in order], 1
        self._at(max(places[:count]), attachment, ())
        for place in dict.fromkeys(places[count:]):
            noted = tuple([k for k in range(count, len(places)) if places[k] == place])
            if len({attachment.values[k] for k in noted}) == len(noted):
                self._at(place, attachment, noted)
            else:  # one value twice: one note after the other
                for k in noted:
                    self._at(place, attachment, (k,))

    def _at(self, place: int, attachment: Attachment, noted: tuple[int, ...]) -> None:
        self.pending.setdefault(place, []).append(_Item(attachment, noted))

    def _behind(self, place: int) -> None:
        for attachment, noted in self.pending.get(place, ()):
            self.here = place
            if not noted:
                self._hook(attachment)
            elif attachment.hook.first_only:
                self._first(attachment, noted[0])
            else:
                self._note(attachment, noted)

    def _bind(
        self, primitive: Any, attachment: Attachment, args: Sequence[Any], **params: Param
    ) -> Sequence[Any]:
        hook, extra = attachment.hook, attachment.extra
        later: tuple[Any, ...] = ()
        if any(type(x) is Var and self.place.get(x, -1) >= self.here for x in extra):
            self.waiting.append((len(self.made), attachment))
            captured, extra = extra[: len(hook.captures)], extra[len(hook.captures) :]
            later = tuple([x.aval.strong() for x in captured])
        params["lanes"] = with_extra(params["lanes"], attachment.extra_lanes)
        operands = [*args, *self.now(extra)]
        op, results = self.make(primitive, operands, {"hook": hook, "later": later, **params}, hook.source)
        self.made.append(op)
        return results[: len(results) - len(later)]

    def now(self, values: Sequence[Any]) -> list[Any]:
        """The names of values, with the hooks inserted so far."""
        return [self.env.get(v, v) if isinstance(v, Var | Linear) else v for v in values]

    def _hook(self, attachment: Attachment) -> None:
        count = attachment.count
        anchors, noted = attachment.values[:count], attachment.values[count:]
        tokens = tuple([v.aval.strong() for v in noted])
        params = {
            "tokens": tokens,
            "lanes": attachment.lanes,
            "order": attachment.order,
            "attached": True,
        }
        results = self._bind(attachment.primitive, attachment, self.now(anchors), **params)
        self.env.update(zip(anchors, results))
        for k, token in enumerate(results[count:]):
            self.tokens[id(attachment), len(anchors) + k] = token

    def _first(self, attachment: Attachment, k: int) -> None:
        v, lanes = attachment.values[k], attachment.lanes_of((k,))
        token = self.tokens.get((id(attachment), 0), 0.0)
        results = self._bind(attachment.primitive, attachment, [*self.now([v]), token], lanes=lanes)
        self.env[v], self.tokens[id(attachment), 0] = results

    def _note(self, attachment: Attachment, noted: tuple[int, ...]) -> None:
        values = [attachment.values[k] for k in noted]
        tokens = [self.tokens[id(attachment), k] for k in noted]
        order = tuple([attachment.order[k] for k in noted])
        args, lanes = [*self.now(values), *tokens], attachment.lanes_of(noted)
        op, results = self.make(
            attachment.note,
            args,
            {"hook": attachment.hook, "lanes": lanes, "order": order},
            attachment.hook.source,
        )
        self.made.append(op)
        self.env.update(zip(values, results))

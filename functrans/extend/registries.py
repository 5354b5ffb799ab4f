"""Dictionaries from primitives to rules in JAX's form: to add a rule sets a slot of the primitive's record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

from ..core import Primitive
from ..errors import ArgumentError
from ..frontend.docstrings import examples_begin
from .primitive import ExtendedPrimitive

Rule = Callable[..., Any]

#: Primitives for the examples of all registries.
primitive_example = examples_begin("""
>>> import functrans as ft
>>> from functrans import extend
>>> p, double = extend.core.Primitive("cube"), extend.core.Primitive("double")
>>> _ = p.def_impl(lambda x: x**3), double.def_impl(lambda x: 2.0 * x)
>>> _ = p.def_abstract_eval(lambda x: x), double.def_abstract_eval(lambda x: x)
""")


class Registry(MutableMapping[Primitive, Rule]):
    """Rules of one kind.

    Parameters
    ----------
    name : str
        For messages.
    slot : str
        The slot of a record.
    ours : callable
        ``ours(primitive, rule)``: the rule in functrans's form.
    """

    def __init__(self, name: str, slot: str, ours: Callable[[ExtendedPrimitive, Rule], Rule]):
        self._name, self._slot, self._ours = name, slot, ours
        self._rules: dict[Primitive, Rule] = {}

    def __setitem__(self, prim: Primitive, rule: Rule) -> None:
        if not isinstance(prim, ExtendedPrimitive):
            raise ArgumentError(
                f"{self._name}: {prim!r} is a primitive of functrans, which has its rules in its record: they cannot "
                "be replaced. Rules are for a primitive made by functrans.extend.core.Primitive"
            )
        self._rules[prim] = rule
        setattr(prim, self._slot, self._ours(prim, rule))

    def __getitem__(self, prim: Primitive) -> Rule:
        return self._rules[prim]

    def __delitem__(self, prim: Primitive) -> None:
        del self._rules[prim]
        setattr(prim, self._slot, None)

    def __iter__(self) -> Iterator[Primitive]:
        return iter(self._rules)

    def __len__(self) -> int:
        return len(self._rules)

    def __repr__(self) -> str:
        return f"<{self._name}: rules of {', '.join(map(str, self._rules)) or 'nothing'}>"

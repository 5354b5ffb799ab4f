"""Static and donated arguments of a jitted function, and how a call separates the static ones from the arrays."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, ClassVar, Self

from ...core import ArgumentError, ArgumentValueError, FunctransError, Jaxpr, StaticArgumentError, aval_of
from ...frontend.arguments import argument_name, name_of
from ...frontend.binding import Binder, listed
from ...frontend.pytree import PyTree, PyTreeDef
from ...frontend.tree_spec import TreeSpec
from ...runtime.records import dataclass


@dataclass(frozen=True)
class SplitArguments:
    """The arguments of one call: the pytrees of arrays, and the static arguments as a hashable key."""

    dynamic: tuple[tuple[Any, ...], dict[str, Any]]
    static: tuple[tuple[int | str, Any], ...]

    @property
    def key(self) -> Hashable:
        """The static values, with whatever distinguishes programs."""
        return tuple([(place, _typed(value)) for place, value in self.static])

    def call(self, fun: Callable[..., PyTree], dynamic: PyTree) -> Any:
        """`fun` with the static arguments put back in their places."""
        args, kwargs = list(dynamic[0]), dict(dynamic[1])
        for place, value in self.static:  # ascending positions first
            if isinstance(place, int):
                args.insert(place, value)
            else:
                kwargs[place] = value
        return fun(*args, **kwargs)


def _typed(value: Any) -> Hashable:
    """A static value with its type. 1, 1.0 and True are equal, and so are 0.0 and -0.0, but they make different
    programs. All NaNs make the same program.
    """
    if isinstance(value, tuple):
        return type(value), tuple([_typed(part) for part in value])
    return type(value), repr(value) if isinstance(value, float | complex) else value


class ChosenArguments:
    """Arguments of a function that an option names, by position and by name.

    Parameters
    ----------
    fun : callable
    argnums : int or sequence of int
    argnames : str or sequence of str

    Raises
    ------
    StaticArgumentError, ArgumentValueError
        If one does not match a parameter of `fun`.
    """

    option: ClassVar[str]
    error: ClassVar[type[FunctransError]]

    def __init__(
        self,
        fun: Callable[..., PyTree],
        argnums: int | Sequence[int] | None,
        argnames: str | Iterable[str] | None,
    ):
        where = f"jit of {name_of(fun)}"
        numbers = listed(where, f"{self.option}_argnums", argnums, int, ArgumentError)
        names = listed(where, f"{self.option}_argnames", argnames, str, ArgumentError)
        if numbers or names:
            numbers, names = self._complete(Binder(where, fun, self.error), numbers, names)
        self.argnums = tuple(sorted(set(numbers)))
        self.argnames = frozenset(names)

    def __bool__(self) -> bool:
        return bool(self.argnums or self.argnames)

    @property
    def key(self) -> Hashable:
        """The key that distinguishes sets of options."""
        return self.argnums, self.argnames

    def bound(self) -> Self:
        """The same of the method bound to an instance: without its first parameter."""
        rest = object.__new__(type(self))
        rest.argnums = tuple(i - 1 if i > 0 else i for i in self.argnums if i)
        rest.argnames = self.argnames
        return rest

    def _complete(
        self, binder: Binder, numbers: tuple[int, ...], names: tuple[str, ...]
    ) -> tuple[tuple[int, ...], tuple[str, ...]]:
        """Complete numbers by names and names by numbers, as far as the signature allows."""
        if binder.parameters.signature is None:
            return numbers, names
        known = binder.parameters.signature.parameters
        positional = binder.names
        if not any(p.kind is p.VAR_KEYWORD for p in known.values()):
            for n in names:
                binder.check_name(f"{self.option}_argnames", n, known)
        if binder.count is not None:
            numbers = tuple([binder.position(f"{self.option}_argnums", i) for i in numbers])
        more_numbers = tuple(positional.index(n) for n in names if n in positional)
        more_names = tuple(
            positional[i]
            for i in numbers
            if 0 <= i < len(positional)
            and known[positional[i]].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
        )
        return numbers + more_numbers, names + more_names


class StaticArguments(ChosenArguments):
    """The static arguments of a function."""

    option = "static"
    error = StaticArgumentError

    def split(
        self, fun: Callable[..., PyTree], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> SplitArguments:
        """Separate the static arguments of a call.

        Raises
        ------
        StaticArgumentError
            If one is not hashable.
        """
        if not self:
            return SplitArguments((args, kwargs), ())
        numbers = {i % len(args) if i < 0 else i for i in self.argnums if -len(args) <= i < len(args)}
        static: list[tuple[int | str, Any]] = [(i, args[i]) for i in sorted(numbers)]
        static += [(n, kwargs[n]) for n in sorted(self.argnames & kwargs.keys())]
        for place, value in static:
            _check_hashable(fun, place, value)
        dynamic = tuple([a for i, a in enumerate(args) if i not in numbers])
        return SplitArguments(
            (dynamic, {n: v for n, v in kwargs.items() if n not in self.argnames}), tuple(static)
        )


class DonatedArguments(ChosenArguments):
    """The arguments of a jitted function whose memory results may take."""

    option = "donate"
    error = ArgumentValueError

    def check_apart(self, fun: Callable[..., PyTree], static: StaticArguments) -> None:
        """Raise `ArgumentValueError` if a static argument is donated as well."""
        both = [*{*self.argnums} & {*static.argnums}, *self.argnames & static.argnames]
        if both:
            place = argument_name(fun, both[0]) if isinstance(both[0], int) else f"argument {both[0]!r}"
            raise ArgumentValueError(
                f"jit of {name_of(fun)}: {place} is both static and donated. A static argument is a constant of the "
                "program and has no memory to donate"
            )

    def leaves(self, split: SplitArguments, treedef: PyTreeDef) -> tuple[int, ...]:
        """The numbers of the donated leaves among those of a call, whose structure is `treedef`."""
        if not self:
            return ()
        positional, keywords = treedef.children()
        static = {place for place, _ in split.static}
        arguments = [*positional.children(), *keywords.children()]
        total = len(positional.children()) + sum(isinstance(place, int) for place in static)
        chosen = {i % total for i in self.argnums if -total <= i < total}
        data = keywords.node_data()
        names = () if data is None else data[1]
        marks = [i in chosen for i in range(total) if i not in static] + [n in self.argnames for n in names]
        numbers: list[int] = []
        first = 0
        for donated, argument in zip(marks, arguments, strict=True):
            if donated:
                numbers += range(first, first + argument.num_leaves)
            first += argument.num_leaves
        return tuple(numbers)


class DonatedLeaves:
    """Donated leaves besides those of donated arguments, of a function without static arguments."""

    def __init__(self, others: DonatedArguments | DonatedLeaves, numbers: Sequence[int]):
        self._others = others
        self._numbers = tuple(numbers)

    @property
    def key(self) -> Hashable:
        """The key that distinguishes sets of options."""
        return self._others.key, self._numbers

    def bound(self) -> Self:
        """Itself: leaves of a call do not include the instance."""
        return self

    def leaves(self, split: SplitArguments, treedef: PyTreeDef) -> tuple[int, ...]:
        """As of `DonatedArguments`."""
        return tuple(sorted({*self._others.leaves(split, treedef), *self._numbers}))


def _check_hashable(fun: Callable[..., PyTree], place: int | str, value: Any) -> None:
    try:
        hash(value)
    except TypeError as error:
        where = argument_name(fun, place) if isinstance(place, int) else f"argument '{place}'"
        raise StaticArgumentError(
            f"jit of {name_of(fun)}: the static {where} is a {type(value).__name__}, which is not hashable ({error}). "
            "Static arguments are part of the cache key: pass a tuple instead of a list, or an array as an "
            "ordinary argument"
        ) from None


def check_types(jaxpr: Jaxpr, expected: PyTreeDef, actual: PyTreeDef, values: Sequence[Any]) -> None:
    """Raise `ArgumentError` if the arguments differ from those that a function was compiled for."""
    avals = jaxpr.in_avals[len(jaxpr.in_avals) - len(values) :]
    mismatch = TreeSpec(expected, avals).mismatch(actual, map(aval_of, values))
    if mismatch is None:
        return
    if mismatch.aspect == "structure":
        raise ArgumentError(
            f"compiled {jaxpr.name}: arguments have the structure {actual}, but it was compiled for {expected}"
        )
    raise ArgumentError(
        f"compiled {jaxpr.name}: argument leaf {mismatch.leaf} is {mismatch.got}, but it was compiled for "
        f"{mismatch.expected}"
    )

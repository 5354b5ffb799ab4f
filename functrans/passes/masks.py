"""Split and merge sequences, by the sizes of groups and by masks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import islice
from operator import is_not
from typing import Any

from ..core.aval import Zero
from ..core.values import Tangent, Value

Mask = tuple[bool, ...]
#: For each value, which of its terms (tangents or Taylor coefficients) are there.
Masks = tuple[Mask, ...]
_not_zero = partial(is_not, Zero)


def split(values: Iterable[Any], *sizes: int) -> list[list[Any]]:
    """`values` in groups of these sizes, followed by the rest."""
    rest = iter(values)
    return [*[list(islice(rest, n)) for n in sizes], list(rest)]


def chosen(values: Sequence[Any], mask: Sequence[bool]) -> list[Any]:
    """The values where the mask is true."""
    return [x for x, m in zip(values, mask, strict=True) if m]


def scatter(mask: Iterable[Any], values: Iterable[Any], fill: Iterable[Any] | None = None) -> list[Any]:
    """`values`, in order, where the mask is true; elsewhere the elements of `fill` (None by default)."""
    rest = iter(values)
    if fill is None:
        return [next(rest) if m else None for m in mask]
    return [next(rest) if m else x for m, x in zip(mask, fill)]


def with_zeros(mask: Iterable[bool], values: Iterable[Value], like: Iterable[Any]) -> list[Tangent]:
    """`values`, in order, where the mask is true; elsewhere symbolic zeros for the elements of `like`."""
    rest = iter(values)
    return [next(rest) if m else Zero(x) for m, x in zip(mask, like)]


def perturbed(tangents: Iterable[Tangent]) -> Mask:
    """Which tangents (or cotangents) are not symbolic zeros."""
    return tuple(map(_not_zero, map(type, tangents)))


# --- several terms for each value: tangents, Taylor coefficients ----------------------------------------------


def terms_mask(terms: Iterable[Iterable[Any]]) -> Masks:
    """Which terms of each value are not symbolic zeros."""
    return tuple(map(perturbed, terms))


def chosen_terms(terms: Iterable[Sequence[Any]], masks: Iterable[Sequence[bool]]) -> list[Tangent]:
    """The terms in the masks, those of one value after the other."""
    return [t for own, mask in zip(terms, masks, strict=True) for t in chosen(own, mask)]


def nested(
    masks: Iterable[Iterable[bool]], values: Iterable[Value], like: Iterable[Value]
) -> list[list[Any]]:
    """The inverse of `chosen_terms`: `values` in their places, elsewhere symbolic zeros for the elements of `like`."""
    rest = iter(values)
    return [[next(rest) if m else Zero(x) for m in mask] for mask, x in zip(masks, like)]


def by_value(flat: Sequence[bool], count: int) -> Masks:
    """A mask of all terms, those of one value after the other, as one for each value."""
    return tuple([tuple(flat[i : i + count]) for i in range(0, len(flat), count)])

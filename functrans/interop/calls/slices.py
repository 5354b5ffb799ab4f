"""Slices whose length depends on the run: ``x[:i]``, ``A[i, j:k]``.

Shapes of functrans are known while tracing, so such a slice is all of its axis, and a mask says which elements belong
to it. Operations compute on whole axes; the elements outside are 1 before each, so that derivatives of what is not in
the program are finite, and zero after the mask. A reduction gives them its neutral element, a write keeps the old ones.
The result of an operation is again such a slice, of a new array: its elements stay where those of its operand were.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from ... import numpy as fnp
from ...core.values import PyTree
from ...runtime.private.numba_names import ir
from ...runtime.records import dataclass
from ..numba_parts import Expression
from .translator import Translator
from .values import ArrayView, LengthUnknown, Span, cast, is_known, is_number, is_slice, read, written

_ELEMENTWISE = frozenset({"where", "clip", "real", "imag", "conj", "angle", "nan_to_num", "round", "around"})
_REDUCTIONS: dict[str, Any] = {
    "sum": (fnp.sum, 0),
    "prod": (fnp.prod, 1),
    "max": (fnp.max, -np.inf),
    "amax": (fnp.max, -np.inf),
    "min": (fnp.min, np.inf),
    "amin": (fnp.min, np.inf),
    "argmax": (fnp.argmax, -np.inf),
    "argmin": (fnp.argmin, np.inf),
    "any": (fnp.any, 0),
    "all": (fnp.all, 1),
    "cumsum": (fnp.cumsum, 0),
    "cumprod": (fnp.cumprod, 1),
}
_NEEDS_ELEMENTS = frozenset({"max", "amax", "min", "amin", "argmax", "argmin"})
_UNEQUAL = ("operands could not be broadcast together", "cannot assign a slice from input of different size")


@dataclass(frozen=True)
class Padded:
    """An array, of which the elements of some spans exist: one for each axis, None for all of it."""

    array: Any
    spans: tuple[Span | None, ...]

    def mask(self) -> Any:
        """Where elements exist."""
        parts = []
        for axis, (span, n) in enumerate(zip(self.spans, self.array.shape, strict=True)):
            if span is not None:
                shape = [-1 if k == axis else 1 for k in range(self.array.ndim)]
                parts.append(_inside(span, np.arange(n)).reshape(shape))
        return reduce(operator.and_, parts) if parts else np.asarray(True)

    def filled(self, value: Any) -> Any:
        """The array, with `value` where no elements exist."""
        if all(s is None for s in self.spans):
            return self.array
        dtype = np.dtype(self.array.dtype)
        if value in (np.inf, -np.inf) and dtype.kind in "iub":
            limits = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
            value = limits[value > 0]
        return fnp.where(self.mask(), self.array, np.asarray(value).astype(dtype))


def _inside(span: Span, places: np.ndarray) -> Any:
    if is_known(span.start) and span.start == 0:
        return places < span.length
    return (places >= span.start) & (places < span.start + span.length)


class Slices(Translator):
    """Slices and their bounds, for `Machine`."""

    # ---------------------------------------------------------------- bounds

    def span(self, index: slice, size: Any) -> Span:
        """The places of a slice of an axis of `size` elements."""
        parts = [index.start, index.stop, index.step]
        if is_known(size) and all(p is None or is_known(p) for p in parts):
            start, stop, step = index.indices(size)
            return Span(start, len(range(start, stop, step)), step)
        step = 1 if index.step is None else index.step
        if not is_known(step) or step == 0:
            raise self.unsupported("a slice whose step depends on the run", "loop over its elements")
        length = self.distance(index.start, index.stop)
        if length is not None and step == 1 and is_known(size):
            start = fnp.where(index.start < 0, index.start + size, index.start)
            self.fail((start < 0) | (start + length > size), IndexError, ("a moving slice leaves its array",))
            return Span(start, length)
        key = (*map(self.identity, [index.start, index.stop, size]), step)
        if key not in self.state.spans:
            self.state.spans[key] = _clipped(index.start, index.stop, step, size), (parts, size)
        return self.state.spans[key][0]

    def note_offset(self, expr: Expression, value: Any) -> None:
        """Remember that an integer is another plus or minus a known number."""
        if not (isinstance(expr, ir.Expr) and expr.op == "binop" and expr.fn in (operator.add, operator.sub)):
            return
        variables = self.state.frame.variables
        a, b = variables[expr.lhs.name], variables[expr.rhs.name]
        if type(a) is int and expr.fn is operator.add:
            a, b = b, a
        if type(b) is int and is_number(a) and not is_known(a) and np.dtype(a.dtype).kind == "i":
            base, offset = self.offsets.get(id(a), (a, 0))
            self.offsets[id(value)] = base, offset + (b if expr.fn is operator.add else -b)
            self._kept += [a, value]

    def distance(self, start: Any, stop: Any) -> int | None:
        """The length of a slice from `start` to `stop`, if they differ by a known number: ``x[i - 1 : i + 2]``."""
        if start is None or stop is None or is_known(start) or is_known(stop):
            return None
        (base, offset), (other, end) = [self.offsets.get(id(x), (x, 0)) for x in (start, stop)]
        return max(end - offset, 0) if base is other else None

    def identity(self, x: Any) -> Any:
        """A key that equal integers have, where that is seen."""
        if x is None or is_known(x):
            return x
        base, offset = self.offsets.get(id(x), (x, 0))
        return id(base), offset

    def same(self, a: Any, b: Any) -> bool:
        """Whether two integers are seen to be equal."""
        return self.identity(a) == self.identity(b)

    # ---------------------------------------------------------------- reading

    def padded(self, value: Any) -> Padded:
        """An array or number with all the elements of its axes."""
        if not is_slice(value):
            array = self.content(value)
            array = np.asarray(array) if is_known(array) else array
            return Padded(array, (None,) * np.ndim(array))
        items, spans = list(value.items), {}
        for axis, item in enumerate(items):
            if not isinstance(item, Span) or is_known(item.length):
                continue
            n = value.base[axis]
            if item.step == 1:
                items[axis], spans[axis] = Span(0, n), item
            else:
                items[axis], spans[axis] = item, Span(0, item.length)
        whole = replace(value, items=tuple([_within(i, n) for i, n in zip(items, value.base, strict=True)]))
        array = read(self.state.heap[value.storage].value, whole)
        return Padded(array, tuple([spans.get(axis) for axis in value.order]))

    def made(self, padded: Padded) -> Any:
        """A new array, or a number."""
        if not padded.array.ndim:
            return self.result(padded.array)
        view = self.fresh(padded.array)
        pairs = zip(view.items, padded.spans, strict=True)
        return replace(view, items=tuple([item if span is None else span for item, span in pairs]))

    def aligned(self, operands: Sequence[Padded]) -> tuple[list[Padded], tuple[Span | None, ...]]:
        """Operands whose elements that belong together stand in the same places, and the spans of a result."""
        ndim = max(p.array.ndim for p in operands)
        found = list(operands)
        spans: list[Span | None] = []
        for axis in range(-ndim, 0):
            sharing = [k for k, p in enumerate(found) if p.array.ndim >= -axis]
            spans.append(self._align_axis(found, sharing, axis))
        return found, tuple(spans)

    def _align_axis(self, found: list[Padded], sharing: list[int], axis: int) -> Span | None:
        sliced = [k for k in sharing if found[k].spans[axis] is not None]
        if not sliced:
            return None
        sizes = {found[k].array.shape[axis] for k in sharing if k not in sliced} - {1}
        if sizes:
            (n,) = sizes if len(sizes) == 1 else (max(sizes),)
            for k in sliced:
                span = found[k].spans[axis]
                assert span is not None
                self.fail(span.length != n, ValueError, (_UNEQUAL[0],))
                found[k] = _taken(found[k], axis, span.start + np.arange(n), None)
            return None
        first = found[sliced[0]].spans[axis]
        assert first is not None
        n = min(found[k].array.shape[axis] for k in sliced)
        for k in sliced:
            span = found[k].spans[axis]
            assert span is not None
            if not self.same(span.length, first.length):
                self.fail(span.length != first.length, ValueError, (_UNEQUAL[0],))
            if not self.same(span.start, first.start):
                found[k] = _taken(found[k], axis, np.arange(n) - first.start + span.start, first)
            elif found[k].array.shape[axis] != n:
                found[k] = _cropped(found[k], axis, n, first)
        return first

    # ---------------------------------------------------------------- operations

    def elementwise(self, f: Callable[..., PyTree], *values: Any) -> Any:
        """Apply a function to each element, of arrays or numbers."""
        if not any(map(is_slice, values)):
            return self.result(f(*map(self.content, values)))
        operands, spans = self.aligned([self.padded(v) for v in values])
        plain = [v if is_known(v) else p.filled(1) for v, p in zip(values, operands, strict=True)]
        return self.made(Padded(f(*plain), spans))

    def of_slices(
        self, name: str, own: Callable[..., Any], args: list[Any], kwargs: dict[str, Any], is_ufunc: bool
    ) -> Any:
        """A function of NumPy, called with slices.

        Raises
        ------
        LengthUnknown
            If it needs arrays of known shapes.
        """
        if is_ufunc or (name in _ELEMENTWISE and not kwargs):
            return self.elementwise(own, *args)
        if name == "copy":
            return self.elementwise(lambda x: x, args[0])
        if name in ("dot", "vdot", "matmul") and len(args) == 2:
            return self.contracted(
                self.elementwise(fnp.conj, args[0]) if name == "vdot" else args[0], args[1]
            )
        if name == "outer":
            return self._outer(*args)
        axis = kwargs.get("axis", args[1] if len(args) == 2 else None)
        if len(args) > 2 or kwargs.keys() - {"axis"} or not (axis is None or is_known(axis)):
            raise LengthUnknown
        if name == "mean":
            return self._mean(args[0], axis)
        if name in ("var", "std") and axis is None:
            off = self.elementwise(operator.sub, args[0], self._mean(args[0], None))
            square = self._mean(self.elementwise(lambda x: fnp.real(x * fnp.conj(x)), off), None)
            return fnp.sqrt(square) if name == "std" else square
        if name == "norm" and axis is None and len(args) == 1:
            return fnp.sqrt(self.reduced("sum", self.elementwise(lambda x: fnp.abs(x) ** 2, args[0]), None))
        return self.reduced(name, args[0], axis)

    def reduced(self, name: str, value: ArrayView, axis: int | None) -> Any:
        """A reduction of a slice along one axis or all."""
        padded = self.padded(value)
        ndim = padded.array.ndim
        if name not in _REDUCTIONS or (name.startswith(("arg", "cum")) and ndim > 1):
            raise LengthUnknown
        f, neutral = _REDUCTIONS[name]
        axes = tuple(range(ndim)) if axis is None else (axis % ndim,)
        if name in _NEEDS_ELEMENTS:
            for span in [padded.spans[k] for k in axes]:
                if span is not None:
                    message = f"zero-size array to reduction operation {name} which has no identity"
                    self.fail(span.length == 0, ValueError, (message,))
        array = f(padded.filled(neutral), **({} if axis is None else {"axis": axis}))
        if name.startswith("cum"):
            return self.made(Padded(array, padded.spans))
        if name.startswith("arg") and padded.spans[0] is not None:
            array = array - padded.spans[0].start
        return self.made(Padded(array, tuple([s for k, s in enumerate(padded.spans) if k not in axes])))

    def _mean(self, value: ArrayView, axis: int | None) -> Any:
        sizes = value.shape if axis is None else (value.shape[axis],)
        count = reduce(operator.mul, sizes)
        return self.elementwise(
            operator.truediv, self.reduced("sum", value, axis), cast(count, np.dtype(float))
        )

    def contracted(self, a: Any, b: Any) -> Any:
        """The product of vectors or matrices."""
        x, y = self.padded(a), self.padded(b)
        if not (x.array.ndim in (1, 2) and y.array.ndim in (1, 2)):
            raise LengthUnknown
        last, first = x.array.ndim - 1, max(y.array.ndim - 2, 0)
        # The axis that is summed over comes last while elements are aligned.
        rest = [s for k, s in enumerate(y.spans) if k != first]
        moved = Padded(fnp.moveaxis(y.array, first, -1), (*rest, y.spans[first]))
        pair = [x, moved]
        self._align_axis(pair, [0, 1], -1)
        x, moved = pair
        left, right = x.filled(0), moved.filled(0)
        spans = (*x.spans[:last], *moved.spans[: moved.array.ndim - 1])
        if not spans:
            return self.result(fnp.sum(left * right))
        return self.made(Padded(fnp.matmul(left, right.T), spans))

    def _outer(self, a: Any, b: Any) -> Any:
        x, y = self.padded(a), self.padded(b)
        if x.array.ndim != 1 or y.array.ndim != 1:
            raise LengthUnknown
        return self.made(Padded(x.filled(1)[:, None] * y.filled(1)[None], (*x.spans, *y.spans)))

    # ---------------------------------------------------------------- writing

    def store(self, view: ArrayView, value: Any) -> None:
        """Write to an array."""
        if is_slice(view) or is_slice(value):
            self.store_slice(view, value)
            return
        storage = self.state.heap[view.storage]
        value = self.content(value)
        if storage.argument is not None:
            raise self.unsupported(
                f"the write to {storage.argument}", "copy the array before you write to it: y = x.copy()"
            )
        if storage.tied:
            raise self.unsupported(
                "the write to an array that may be one of several, depending on a condition or an earlier iteration",
                "copy the array before the write: y = y.copy()",
            )
        self.state.heap[view.storage] = replace(storage, value=written(storage.value, view, value))

    def store_slice(self, view: ArrayView, value: Any) -> None:
        """Write to a slice, or write the elements of one."""
        source = self.padded(value)
        items, masks = list(view.items), []
        for axis, storage_axis in enumerate(view.order):
            item = view.items[storage_axis]
            n = view.base[storage_axis] if not is_known(item.length) else item.length
            places: Any = np.arange(n)
            own = axis - len(view.order)
            if not is_known(item.length):
                items[storage_axis] = Span(0, n)
                steps = places - item.start
                places = steps if item.step == 1 else steps // item.step
                inside = (places >= 0) & (places < item.length)
                if item.step != 1:
                    inside = inside & (steps % item.step == 0)
                masks.append(inside.reshape([-1 if k == own else 1 for k in range(-len(view.order), 0)]))
            if -own <= source.array.ndim:
                source = self._placed(source, own, item, places, n)
        target = replace(view, items=tuple(items))
        new = source.array
        if masks:
            old = read(self.state.heap[view.storage].value, target)
            new = fnp.where(reduce(operator.and_, masks), cast(new, np.dtype(old.dtype)), old)
        self.store(target, new)

    def _placed(self, source: Padded, axis: int, item: Span, places: Any, n: int) -> Padded:
        """A value whose elements stand where those of the target do."""
        span, size = source.spans[axis], source.array.shape[axis]
        if span is None and (size == 1 or is_known(item.length)):
            return source
        length = size if span is None else span.length
        if not self.same(length, item.length):
            self.fail(length != item.length, ValueError, (_UNEQUAL[1],))
        start = 0 if span is None else span.start
        if item.step == 1 and size == n and self.same(start, item.start):
            return source
        return _taken(source, axis, places + start, None)


def _clipped(start: Any, stop: Any, step: int, size: Any) -> Span:
    """The places of a slice, as Python clips its bounds."""
    least, most = (0, size) if step > 0 else (-1, size - 1)

    def bound(x: Any, default: Any) -> Any:
        if x is None:
            return default
        if is_known(x) and x >= 0 and step > 0:
            return min(x, size) if is_known(size) else fnp.minimum(x, size) if x else 0
        return fnp.clip(fnp.where(x < 0, x + size, x), least, most)

    first = bound(start, least if step > 0 else most)
    last = bound(stop, most if step > 0 else least)
    gap = last - first if step > 0 else first - last
    length = gap if abs(step) == 1 else (gap + (abs(step) - 1)) // abs(step)
    if is_known(first) and first == 0 and step == 1:
        return Span(0, length)
    return Span(first, fnp.maximum(length, 0), step)


def _within(item: Any, n: int) -> Any:
    """A slice of another step, as far as its axis goes: what lies outside is not read."""
    return item if not isinstance(item, Span) or is_known(item.length) else replace(item, length=n)


def _taken(padded: Padded, axis: int, places: Any, span: Span | None) -> Padded:
    """The elements at some places of an axis; places outside give any."""
    array = fnp.take(padded.array, places, axis=axis, mode="clip")
    return _with_span(padded, array, axis, span)


def _cropped(padded: Padded, axis: int, n: int, span: Span) -> Padded:
    """The first elements of an axis."""
    index = [slice(None)] * padded.array.ndim
    index[axis] = slice(0, n)
    return _with_span(padded, padded.array[tuple(index)], axis, span)


def _with_span(padded: Padded, array: Any, axis: int, span: Span | None) -> Padded:
    spans = list(padded.spans)
    spans[axis] = span
    return Padded(array, tuple(spans))

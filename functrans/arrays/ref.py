"""`Ref`: a mutable cell that holds an array, also in traced code.

While tracing, the cell holds whatever value it has by then: a read is a gather from that value, a write makes a new
one. So transformations see pure programs, and need no rules for refs. What remains are functions that are traced once
and applied as a whole: jitted ones, bodies of loops, branches. Each of them is a `Region`, which gets the refs that it
uses from outside as additional inputs, and returns their last values as additional outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, NoReturn

import numpy as np

from .. import errors
from ..core import Aval, Trace, Tracer, Unportable, aval_of, current_trace, eval_trace, operators, user_source
from ..core.aval import Typed
from ..core.values import ArrayLike, DTypeLike, Index
from .array import Array, unwrap, unwrap_all, wrap
from .traced_parts import has_tracer

#: The region whose function is being traced.
current_region: ContextVar[Region | None] = ContextVar("functrans_region", default=None)


class Region:
    """A function that is being traced to be applied as a whole, and the refs from outside that it uses.

    Parameters
    ----------
    trace : Trace
        The trace of the function.
    what : str
        The function, for messages.
    enter : callable
        From the type of a ref to the additional input for it.
    read_only : bool
        Whether refs from outside may not be written.
    """

    __slots__ = ("enter", "inputs", "parent", "read_only", "trace", "values", "what", "written")

    def __init__(self, trace: Trace, what: str, enter: Callable[[Aval], Any], read_only: bool = False):
        self.parent = current_region.get()
        self.trace = trace
        self.what = what
        self.enter = enter
        self.read_only = read_only
        self.values: dict[Ref, Any] = {}
        self.inputs: list[Any] = []
        self.written: set[Ref] = set()

    def value(self, ref: Ref) -> Any:
        """The value of a ref from outside, which becomes an additional input."""
        if ref not in self.values:
            ref.value_in(self.parent)
            self.inputs.append(self.enter(ref.aval))
            self.values[ref] = self.inputs[-1]
        return self.values[ref]


class Ref(Typed, Unportable):
    """A mutable reference to an array; `functrans.new_ref` makes one.

    Index it to read and write: ``r[...]``, ``r[i]``, ``r[i] = v``, ``r[...] += v``. Values are cast to its dtype and
    broadcast as by NumPy's assignment; its shape and dtype never change.

    Attributes
    ----------
    shape, dtype, ndim, size
        Of the array.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> r = ft.new_ref(fnp.zeros(3))
    >>> r[1] = 5.0
    >>> r[...] += 1.0
    >>> r
    Ref([1., 6., 1.])
    """

    __slots__ = ("__weakref__", "_lent", "_over", "_own", "_region", "_trace", "_value", "aval")
    _instead = "Send its value r[...], and make a new one there"

    def __init__(self, value: ArrayLike):
        aval = aval_of(value)
        self.aval = aval.strong()
        self._value = value
        self._own = False  # whether the value is memory that nothing else refers to
        self._trace = current_trace.get()
        self._region = current_region.get()
        self._over: str | None = None  # why it can no longer be used
        self._lent = False  # whether it is an argument of the function that runs

    def _called(self) -> str:
        return f"a Ref of type {self.aval}"

    @property
    def is_lasting(self) -> bool:
        """Whether it was made outside of functions that are traced."""
        return self._trace is eval_trace and self._region is None

    # --- reading and writing ------------------------------------------------------------------------------------

    def __getitem__(self, index: Index) -> Any:
        value = self._now()
        if isinstance(value, Tracer):
            return operators.operator["getitem"](value, index)
        part = wrap(value)[index]
        if not isinstance(part, Tracer) and self._own:
            if part.shape == self.shape:
                self._own = False  # the next write makes a copy
            else:
                part = wrap(np.array(part))
        return part

    def __setitem__(self, index: Index, value: ArrayLike) -> None:
        self._update("set", index, value)

    def get(self, idx: Index = None) -> Any:
        """The elements at an index; the whole array without one."""
        return self[_index(idx)]

    def set(self, value: Any, idx: Index = None) -> None:
        """Write elements: ``ref[idx] = value``."""
        self._update("set", _index(idx), value)

    def addupdate(self, value: Any, idx: Index = None) -> None:
        """Add to elements; repeated indices add repeatedly."""
        self._update("add", _index(idx), value)

    def swap(self, value: Any, idx: Index = None) -> Any:
        """Write elements, and return what they were before."""
        before = self.get(idx)
        self.set(value, idx)
        return before

    def _update(self, method: str, index: Index, value: ArrayLike) -> None:
        now = self._now()
        if isinstance(value, Ref):
            value = value[...]
        if self.dtype.kind != "c" and np.result_type(getattr(value, "dtype", type(value))).kind == "c":
            raise errors.DtypeError(
                f"a complex value was written to a Ref of type {self.aval}: take its real part, or make the Ref complex"
            )
        plain = not isinstance(now, Tracer) and current_trace.get() is eval_trace
        if plain and not has_tracer((index, value)) and self._updated(method, index, value):
            return
        old = now if isinstance(now, Tracer) else wrap(now)
        new = getattr(old.at[index], method)(value)
        self.put(unwrap(new))

    def _updated(self, method: str, index: Index, value: ArrayLike) -> bool:
        """Write into the memory of the ref; false if NumPy cannot, or has a warning or an error to raise."""
        if self._value.ndim > 32:  # np.add.at would crash
            return False
        if not self._own:
            self._value, self._own = np.array(self._value), True
        index, value = unwrap_all(index), np.asarray(unwrap_all(value))
        if not np.can_cast(value.dtype, self.dtype, "same_kind"):
            return False
        try:
            if method == "set":
                self._value[index] = value
            else:
                np.add.at(self._value, index, value)
        except (IndexError, ValueError, TypeError):
            return False
        return True

    # --- where it is --------------------------------------------------------------------------------------------

    def _now(self) -> Any:
        """The value where the code now runs."""
        if self._over is not None:
            raise errors.RefError(f"a Ref of type {self.aval} was used after {self._over}")
        if self._lent:
            raise errors.RefError(
                f"a Ref of type {self.aval} is an argument of a function that also uses it from outside. Use one of "
                "the two: either pass it, or let the function refer to it"
            )
        if self._trace is not eval_trace and not any(t is self._trace for t in _traces()):
            raise self._leaked()
        return self.value_in(current_region.get())

    def value_in(self, region: Region | None) -> Any:
        """The value in a region of the enclosing functions."""
        if region is self._region:
            return self._value
        if region is None:
            raise self._leaked()
        return region.value(self)

    def take(self) -> Any:
        """The value, for a caller that keeps it: it will not change."""
        value = self._now()
        self._own = False
        return value

    def put(self, value: Any) -> None:
        """Replace the value where the code now runs, by one of the same type."""
        self._now()
        region = current_region.get()
        home = self._trace if region is None or region is self._region else region.trace
        if isinstance(value, Tracer):
            for trace in _traces():
                if trace is home:
                    break
                if trace.knows(value):
                    raise errors.RefError(self._outside(value))
        if region is self._region:
            self._value, self._own = value, False
            return
        assert region is not None
        if region.read_only:
            raise errors.RefError(f"{region.what} writes a Ref of type {self.aval}, but may only read it")
        region.values[self] = value
        region.written.add(self)

    def _outside(self, value: Tracer) -> str:
        by = value.describe()
        cure = (
            "pass the Ref as an argument that is mapped, or write what all examples share"
            if by == "vmap"
            else "make the Ref inside, return the value, or write functrans.lax.stop_gradient(value)"
        )
        return f"a value traced by {by} was written to a Ref of type {self.aval} from outside: {cure}"

    def _leaked(self) -> errors.UnexpectedTracerError:
        return errors.UnexpectedTracerError(
            f"a Ref of type {self.aval} was used after the function in which it was made had returned. Return its "
            "value r[...] from that function instead of storing the Ref"
        )

    def lend(self, donate: bool) -> Any:
        """The value, for a function whose argument the ref is, and which may not use it from outside as well.

        With `donate`, nothing else refers to its memory, unless something does that was read before.
        """
        value = wrap(self.take())
        self._lent = True
        if donate:
            self._value = None
        return value

    def return_loan(self, value: Any) -> None:
        """The end of the function, with the value that it left; the memory is lost if the function failed meanwhile."""
        self._lent = False
        if self._value is not None:
            return
        if type(value) is Array:
            self._value = unwrap(value)
        else:
            self._value = np.zeros(self.shape, self.dtype)
            self._over = "a call failed that had overwritten it"

    def is_unchanged(self, first: Any) -> bool:
        """Whether the value is still the first one."""
        return self._value is first

    def end(self, why: str) -> Any:
        """The last value; the ref cannot be used any more."""
        value = self.take()
        if current_region.get() is not self._region:
            raise errors.RefError(
                f"a Ref of type {self.aval} was {why} in a function that uses it from outside"
            )
        source = user_source()
        self._over = f"it was {why}" + ("" if source is None else f" at {source}")
        return value

    def __dir__(self) -> list[str]:
        return [*_PUBLIC, *[name for name in object.__dir__(self) if name.startswith("__")]]

    # --- what it is not -----------------------------------------------------------------------------------------

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a Ref without axes")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return iter(self[...])

    def __bool__(self) -> NoReturn:
        raise errors.RefError(f"a Ref of type {self.aval} has no truth value: read it, r[...]")

    def __array__(self, dtype: DTypeLike = None, copy: Any = None) -> NoReturn:
        raise refused(self, "this operand")

    def __repr__(self) -> str:
        if self._over is not None:
            return f"<Ref of type {self.aval}, which {self._over.removeprefix('it ')}>"
        value = self._value
        return (
            f"Ref<{self.aval}>" if isinstance(value, Tracer) else repr(wrap(value)).replace("Array", "Ref", 1)
        )


_PUBLIC = ("addupdate", "aval", "dtype", "get", "ndim", "set", "shape", "size", "swap")


def refused(ref: Ref, where: str) -> errors.RefError:
    """The error for a ref where a value is expected."""
    return errors.RefError(f"{where} is a Ref of type {ref.aval}, not an array: read it, r[...]")


def _index(idx: Index) -> Any:
    return ... if idx is None or (type(idx) is tuple and not idx) else idx


def _traces() -> Iterator[Trace]:
    """The current trace and those around it."""
    trace = current_trace.get()
    while trace is not eval_trace:
        yield trace
        trace = trace.parent
    yield eval_trace


def own_value(x: ArrayLike) -> Any:
    """The first value of a ref, as an array that does not change."""
    return np.array(x) if not isinstance(x, Array | Tracer) else unwrap(x)


def refs_among(leaves: Sequence[Any]) -> list[int]:
    """The places of refs among the leaves of a pytree."""
    return [i for i, leaf in enumerate(leaves) if type(leaf) is Ref]

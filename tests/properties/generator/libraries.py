"""What programs are run with: NumPy and Python (the oracle), or functrans with all that it compiles.

`Python(np)` is NumPy with loops and ifs of Python. `Python(fnp)` is the same on functrans's arrays, which can be
differentiated, operation by operation: no loop, branch, call, hook or reference of functrans takes part. `Functrans`
is what is tested.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np

import functrans as ft
import functrans.numpy as fnp
from functrans import lax

POLICIES = {
    "nothing": ft.checkpoint_policies.nothing_saveable,
    "everything": ft.checkpoint_policies.everything_saveable,
    "products": ft.checkpoint_policies.dots_saveable,
    "names": ft.checkpoint_policies.save_only_these_names("kept"),
}


class Box:
    """A mutable reference, in Python."""

    def __init__(self, library: Python, value: Any):
        self.library, self.value = library, value

    def get(self, index):
        return self.value[self.library.index(index)]

    def set(self, index, value, how="set"):
        self.value = self.library.put(self.value, index, value, how)

    def whole(self):
        return self.value


class Reference(Box):
    """A mutable reference of functrans."""

    def __init__(self, library: Functrans, value: Any):
        self.library, self.ref = library, ft.new_ref(value)

    def get(self, index):
        return self.ref[index]

    def set(self, index, value, how="set"):
        if how == "add":
            ft.ref.addupdate(self.ref, index, value)
        else:
            self.ref[index] = value

    def whole(self):
        return self.ref[...]


class Python:
    """Loops and branches as Python has them, over an array library."""

    compiled = False

    def __init__(self, np_: Any):
        self.np = np_
        self.differentiable = np_ is fnp
        self.log: list[tuple[Any, float]] = []

    # --- arrays

    def index(self, index):
        """An index whose scalars are Python's."""
        if isinstance(index, tuple):
            return tuple([self.index(i) for i in index])
        return int(index) if hasattr(index, "dtype") and index.ndim == 0 else index

    def put(self, x, index, value, how="set", mode=None):
        """A copy of an array with other elements."""
        if self.differentiable:
            kwargs = {} if mode is None else {"mode": mode}
            return getattr(x.at[self.index(index)], how)(value, **kwargs)
        x, index = np.array(x), self.index(index)
        if mode is not None:
            index = moved_inside(index, len(x), mode)
            if index is None:
                return x
        ufuncs = {"add": np.add, "multiply": np.multiply, "max": np.maximum, "min": np.minimum}
        if how == "set":
            x[index] = value
        else:
            ufuncs[how].at(x, index, np.asarray(value, x.dtype))
        return x

    def get(self, x, index, mode=None):
        """Elements of an array; beyond it by a mode."""
        if self.differentiable and mode is not None:
            more = {"fill_value": 0.25} if mode == "fill" else {}
            return x.at[self.index(index)].get(mode=mode, **more)
        index = self.index(index)
        if mode is not None:
            index = moved_inside(index, len(x), "drop" if mode == "fill" else mode)
            if index is None:
                return np.full(x.shape[1:], 0.25, x.dtype)
        return x[index]

    def slab(self, x, start, size):
        start = clamped(int(start), len(x), size)
        return x[start : start + size]

    def paste(self, x, slab, start):
        start = clamped(int(start), len(x), len(slab))
        return self.put(x, slice(start, start + len(slab)), slab)

    def ref(self, x):
        return Box(self, x)

    # --- loops and branches

    def scan(self, body, init, xs, length, reverse=False, unroll=1, checkpoint_every=None):
        if not length:  # rows of no rows have the shapes of rows
            _, row = body(init, None if xs is None else self.np.zeros(xs.shape[1:], xs.dtype))
            return init, [self.np.zeros((0, *y.shape), y.dtype) for y in row]
        rows = []
        for i in reversed(range(length)) if reverse else range(length):
            init, row = body(init, None if xs is None else xs[i])
            rows.append(row)
        rows = rows[::-1] if reverse else rows
        return init, [self.np.stack(column) for column in zip(*rows)]

    def map(self, f, xs):
        return self.np.stack([f(x) for x in xs])

    def fori(self, lower, upper, body, init):
        for i in range(int(lower), int(upper)):
            init = body(np.int64(i), init)
        return init

    def while_loop(self, test, body, init):
        while bool(test(init)):
            init = body(init)
        return init

    def cond(self, pred, yes, no, *operands):
        return yes(*operands) if bool(pred) else no(*operands)

    def switch(self, index, branches, *operands):
        return branches[min(max(int(index), 0), len(branches) - 1)](*operands)

    def cumulate(self, f, xs):
        """An associative scan."""
        found = [xs[0]]
        for x in xs[1:]:
            found.append(f(found[-1], x))
        return self.np.stack(found)

    # --- calls

    def jit(self, f):
        return f

    def checkpoint(self, f, policy):
        return f

    def named(self, x):
        return x

    def converted(self, f, *args):
        return f(*args)

    def ruled(self, spec, *xs):
        return spec.plain(*xs, lib=self)

    def hook(self, x, factor, how):
        """The identity, whose cotangent is multiplied."""
        return with_rule(x, lambda ct: factor * ct) if self.differentiable and factor != 1.0 else x

    def host(self, x):
        return self.np.cos(x)

    def note(self, what, x):
        """A host call that writes to the log, and gives back what it got."""
        self.log.append((what, float(x)))
        return x

    def look(self, what, x):
        """A host call that writes to the log."""
        self.log.append((what, float(x)))

    def numba(self, program):
        return lambda *args: program.by_hand(self, *args)

    def autocast(self, dtype):
        return ft.autocast(dtype) if self.differentiable else nullcontext()

    def lanes(self, f, xs, collective):
        """``out = f(x, collective of x over all lanes)`` for each lane."""
        rows = [self.np.sin(x) for x in xs]
        n = len(rows)
        match collective:
            case "psum" | "pmean":
                total = sum(rows[1:], rows[0]) / (1 if collective == "psum" else n)
                shared = [total] * n
            case "pmax":
                top = rows[0]
                for row in rows[1:]:
                    top = self.np.maximum(top, row)
                shared = [top] * n
            case "ppermute":
                shared = [rows[i - 1] for i in range(n)]
            case "all_gather":
                shared = [sum([(k + 1.0) * row for k, row in enumerate(rows)])] * n
            case _:
                shared = [x * (0.5 * i) for i, x in enumerate(xs)]
        return self.np.stack([f(x, s) for x, s in zip(xs, shared)])

    def vmap(self, f, in_axes, out_axes):
        def run(*xs):
            n = next(x.shape[a] for x, a in zip(xs, in_axes) if a is not None)
            take = self.np.take
            found = [
                f(*[x if a is None else take(x, i, axis=a) for x, a in zip(xs, in_axes)]) for i in range(n)
            ]
            return tuple([self.np.stack(column, axis=out_axes) for column in zip(*found)])

        return run


def clamped(start, size, length):
    """The start of a slice inside of an array; a negative one counts from the end."""
    return min(max(start + size if start < 0 else start, 0), size - length)


def moved_inside(index, size, mode):
    """An index by a mode; None where it is dropped."""
    index = index + size if index < 0 and mode != "wrap" else index
    if mode == "wrap":
        return index % size
    if mode == "clip":
        return min(max(index, 0), size - 1)
    return index if 0 <= index < size else None


def with_rule(x, cotangent):
    """The identity in forward mode, whose cotangent passes a function: what a hook must be equal to."""

    @ft.custom_vjp
    def identity(x):
        return x

    identity.defvjp(
        lambda x: (identity(x), None), lambda _, ct: (cotangent(ct),)
    )  # so in outer derivatives, too
    identity.defjvp(lambda xs, ts: (xs[0], ts[0]))
    return identity(x)


def late_cotangent(factor):
    return lambda ct: factor * ct + 0.125


@ft.custom_jvp
def called(x):
    """The cosine, by a call of Python."""
    return ft.pure_callback(np.cos, ft.ShapeDtypeStruct(x.shape, x.dtype), x, vmap_method="sequential")


@called.defjvp
def _(primals, tangents):
    return called(*primals), -fnp.sin(primals[0]) * tangents[0]


class Functrans(Python):
    """Everything as functrans has it."""

    compiled = True

    def __init__(self):
        super().__init__(fnp)

    def index(self, index):
        return index

    def slab(self, x, start, size):
        return lax.dynamic_slice(x, (start,) + (0,) * (x.ndim - 1), (size, *x.shape[1:]))

    def paste(self, x, slab, start):
        return lax.dynamic_update_slice(x, slab, (start,) + (0,) * (x.ndim - 1))

    def ref(self, x):
        return Reference(self, x)

    def scan(self, body, init, xs, length, reverse=False, unroll=1, checkpoint_every=None):
        options = {} if checkpoint_every is None else {"checkpoint_every": checkpoint_every}
        return lax.scan(body, init, xs, length, reverse, unroll, **options)

    def map(self, f, xs):
        return lax.map(f, xs)

    def fori(self, lower, upper, body, init):
        return lax.fori_loop(lower, upper, body, init)

    def while_loop(self, test, body, init):
        return lax.while_loop(test, body, init)

    def cond(self, pred, yes, no, *operands):
        return lax.cond(pred, yes, no, *operands)

    def switch(self, index, branches, *operands):
        return lax.switch(index, branches, *operands)

    def cumulate(self, f, xs):
        return lax.associative_scan(f, xs)

    def jit(self, f):
        return ft.jit(f)

    def checkpoint(self, f, policy):
        return ft.checkpoint(f) if policy is None else ft.checkpoint(f, policy=POLICIES[policy])

    def named(self, x):
        return ft.checkpoint_name(x, "kept")

    def converted(self, f, *args):
        converted, captured = ft.closure_convert(f, *args)
        return converted(*args, *captured)

    def ruled(self, spec, *xs):
        return spec.function(*xs)

    def hook(self, x, factor, how):
        fn = (lambda ct: None) if factor == 1.0 else (lambda ct: factor * ct)
        return ft.cotangent_hook(x, fn, mode=how)

    def host(self, x):
        return called(x)

    def note(self, what, x):
        def host(x):
            self.log.append((what, float(x)))
            return x

        return ft.io_callback(host, ft.ShapeDtypeStruct(x.shape, x.dtype), lax.stop_gradient(x))

    def look(self, what, x):
        ft.debug.callback(lambda x: self.log.append((what, float(x))), x)

    def numba(self, program):
        return program.native

    def autocast(self, dtype):
        return ft.autocast(dtype)

    def lanes(self, f, xs, collective):
        def lane(x):
            y = fnp.sin(x)
            n = len(xs)
            match collective:
                case "psum" | "pmean" | "pmax":
                    shared = getattr(lax, collective)(y, "lanes")
                case "ppermute":
                    shared = lax.ppermute(y, "lanes", [(i, (i + 1) % n) for i in range(n)])
                case "all_gather":
                    weights = np.arange(1.0, n + 1).reshape((n,) + (1,) * x.ndim)
                    shared = fnp.sum(lax.all_gather(y, "lanes") * weights, axis=0)
                case _:
                    shared = x * fnp.asarray(0.5 * lax.axis_index("lanes"), x.dtype)
            return f(x, shared)

        return ft.vmap(lane, axis_name="lanes")(xs)

    def vmap(self, f, in_axes, out_axes):
        return ft.vmap(f, in_axes=tuple(in_axes), out_axes=out_axes)

"""The Python function that runs an executable's steps, generated so that a call does only the necessary work."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...arrays.arguments import too_large
from ...arrays.array import Array, weak, wrap
from ...control.callbacks.callback import made_before
from ...core.aval import Aval
from ...core.backward_state import StateAval, state_number
from ...core.ir import Atom, Eqn, Jaxpr, Literal, Var
from ...core.tape import Tape, TapeAval, new_pool
from ...core.values import ArrayLike
from ...frontend.pytree import PyTreeDef
from ...frontend.pytree.generated import tree_expression
from ...runtime.context import run_with
from ...runtime.records import dataclass
from ...runtime.unusual import unusual
from ..backend import Run
from ..host.debug_nans import any_fault
from ..host.explain_failure import call_host, call_host_into, out_of_memory
from ..host.host_calls import HostEquation
from ..llvm.c.memory import LEAST
from ..llvm.c.native_call import ARRAYS, MOST_LEAVES, MOST_NUMBERS, NUMBERS, TIDY, result_maker
from ..steps import COUNTERS, HostStep, RunnableKernel, Step, ViewStep

if TYPE_CHECKING:
    from .timing import Counters

#: Scratch memory of up to this many bytes is kept between calls.
POOLED = 1 << 27
#: Arrays of at least this many bytes are freed after their last use.
LARGE = 1 << 12


def tidy(x: ArrayLike, dtype: np.dtype) -> np.ndarray:
    """`x` as a C-contiguous, aligned ndarray of this dtype; copied only if necessary."""
    try:
        a = np.asarray(x, dtype, order="C")
    except OverflowError:
        if isinstance(x, int):
            raise too_large(x, "an argument of a compiled function: ") from None
        raise
    return a if a.flags.num & TIDY == TIDY else a.copy(order="C")


def host_results(eqn: Eqn, *args: Any) -> list[np.ndarray]:
    """The results of a host call, each in separate memory and with the type of its variable."""
    recorder = unusual.recorder
    outs = call_host(eqn, args) if recorder is None else recorder.host(eqn, None, call_host, (eqn, args))
    results = []
    for x, v in zip(outs, eqn.outvars, strict=True):
        a = tidy(x, v.aval.dtype)
        if a.base is not None or any(a is b for b in args):
            a = a.copy()
        results.append(a.reshape(v.aval.shape) if a.shape != v.aval.shape else a)
    return results


def make_scratch(sizes: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """Uninitialised memory for each scratch storage of a kernel; an empty pool of tapes for -1."""
    return tuple([np.empty(n, np.uint8) if n >= 0 else new_pool() for n in sizes])


def _noting(run: Run, made: list[Any], arrays: tuple[np.ndarray, ...]) -> int:
    """Run a kernel, and record its host calls in `made`."""
    return run_with(made_before, made, run, arrays)


def write_wrapper(
    jaxpr: Jaxpr,
    steps: Sequence[Step],
    failed: Callable[..., list[np.ndarray]],
    look: Callable[..., None] | None = None,
    donated: Collection[int] = (),
    public: Public | None = None,
) -> Callable[..., Any]:
    """A function of the inputs that runs the steps, and returns the list of outputs.

    Parameters
    ----------
    jaxpr : Jaxpr
        Simplified.
    steps : sequence
        The compiled kernels, the host calls, and the views.
    failed : callable
        Called if a kernel reports failure, with its status, the tuple of inputs, and the results of the earlier host
        calls; its result is returned.
    look : callable, optional
        Called if a result contains a NaN, with the list of results, then the arguments of `failed` without the status.
    donated : collection of int
        The inputs that a result may be, or be written to.
    public : Public, optional
        What to return instead of the list, and which inputs need no check.
    """
    units = [step for step in steps if isinstance(step, RunnableKernel)]
    native = all(unit.route == "llvm" for unit in units)
    writer = _Writer(jaxpr, public, native, _plain_numbers(jaxpr, steps, public))
    failing = [i for i, step in enumerate(steps) if isinstance(step, RunnableKernel) and step.may_fail]
    if look is not None or failing:
        writer.note_calls([entry for unit in units for entry in unit.calls])
    ends = last_uses(jaxpr, steps, len(steps) if look is not None else max(failing, default=-1))
    for i, step in enumerate(steps):
        if isinstance(step, RunnableKernel):
            if len(steps) == 1:
                writer.make_results(step)
            writer.kernel(step)
        elif isinstance(step, ViewStep):
            writer.view(step)
        else:
            writer.host(step)
        writer.release([v for v, end in ends.items() if end == i])
    writer.returns(look, [jaxpr.invars[i] for i in donated])
    writer.names["failed"] = failed
    return writer.function()


def last_uses(jaxpr: Jaxpr, steps: Sequence[Step], failing: int) -> dict[Var, int]:
    """The number of the step that uses an array last, for large arrays that are not returned.

    If a kernel fails, NumPy evaluates the program again with what host calls returned: that stays until step `failing`.
    """
    ends: dict[Var, int] = {}
    returned = set(jaxpr.outvars)
    for i, step in enumerate(steps):
        made: Sequence[Atom]
        read: Sequence[Atom]
        if isinstance(step, RunnableKernel):
            made, read, end = step.outvars, [v for v, _ in step.interface.values()], i
        else:
            made, read = step.eqn.outvars, step.eqn.invars
            end = max(i, failing) if isinstance(step, HostStep) else i
        ends.update({a: max(i, ends[a]) for a in read if type(a) is Var and a in ends})
        ends.update({a: end for a in made if type(a) is Var and a not in returned and _is_large(a)})
    return ends


def _is_large(v: Var) -> bool:
    return not isinstance(v.aval, TapeAval | StateAval) and v.aval.size * v.aval.dtype.itemsize >= LARGE


def _plain_numbers(jaxpr: Jaxpr, steps: Sequence[Step], public: Public | None) -> dict[Atom, np.dtype]:
    """The inputs that the only kernel takes as Python's numbers, with their dtypes: an array of each takes 0.4 us."""
    if public is None or len(steps) != 1:
        return {}
    (unit,) = steps
    if not isinstance(unit, RunnableKernel) or unit.route != "llvm" or unit.checked:
        return {}
    if unit.calls or unit.counters is not None or len(unit.storages) > MOST_LEAVES:
        return {}
    found: dict[Atom, np.dtype] = {
        v: v.aval.dtype
        for v, kind in zip(jaxpr.invars, public.kinds)
        if kind in NUMBERS and v.aval.dtype == NUMBERS[kind] and v not in unit.updates.values()
    }
    return found if len(found) <= MOST_NUMBERS else {}


@dataclass(frozen=True)
class Public:
    """How users call a program.

    Attributes
    ----------
    kinds : tuple of type
        The class of each input: `Array` or ndarray for one that is always C-contiguous, aligned and of its dtype.
    out_tree : PyTreeDef
        The structure of the result.
    weak : tuple of bool
        For each output, whether the user receives a `WeakArray`, instead of an `Array`.
    """

    kinds: tuple[type, ...]
    out_tree: PyTreeDef
    weak: tuple[bool, ...]

    def finish(self, outs: Sequence[Any]) -> Any:
        """What the user receives for the list of outputs."""
        return self.out_tree.unflatten([weak(x) if w else wrap(x) for w, x in zip(self.weak, outs)])


class _Writer:
    def __init__(
        self, jaxpr: Jaxpr, public: Public | None, native: bool, plain_numbers: Mapping[Atom, np.dtype]
    ):
        self.jaxpr = jaxpr
        self.plain_numbers = plain_numbers
        self.public = public
        self.native = native  # whether LLVM is there anyway
        self.names: dict[str, Any] = {
            "ndarray": np.ndarray,
            "empty": np.empty,
            "flags": vars(np.ndarray)["flags"].__get__,
            "array": np.array,
            "asarray": np.asarray,
            "reshape": np.ndarray.reshape,
            "tidy": tidy,
            "new_pool": new_pool,
            "Tape": Tape,
            "state_number": state_number,
        }
        self.text: dict[Atom, str] = {}
        self.lines: list[str] = []
        self.public_results: set[Atom] = set()  # what `make_results` made
        self.viewed: dict[Atom, Atom] = {}  # for views: the value whose memory they share
        self.parts: dict[Atom, list[str]] = {}  # for tapes: the names of their spans and pools
        self.count = 0
        self.made: list[tuple[str, str]] = []  # host calls so far: equation name and outputs
        self.noted: list[Any] = []  # host calls in kernels that must run once, even if a kernel fails later
        self.arguments = [self.name(v, "x") for v in jaxpr.invars]
        for v, c in zip(jaxpr.constvars, jaxpr.consts):
            if isinstance(v.aval, StateAval):
                self.constant("state", c)  # to keep it
                c = state_number(c)
            self.names[self.name(v, "c")] = c if isinstance(v.aval, TapeAval) else tidy(c, v.aval.dtype)
            self.unpack(v)
        for i, v in enumerate(jaxpr.invars):
            if isinstance(v.aval, TapeAval):
                self.unpack(v)
                continue
            if public is not None and public.kinds[i] in ARRAYS:
                continue
            if isinstance(v.aval, StateAval):
                self.lines.append(f"{self.text[v]} = state_number({self.text[v]})")
                continue
            if v in self.plain_numbers:
                continue
            x, dtype = self.text[v], self.constant("d", v.aval.dtype)
            # A call of isinstance is cheaper than reading flags, so it comes first. The getter is ndarray's own,
            # because a subclass may have a slower property.
            self.lines += [f"if not isinstance({x}, ndarray) or flags({x}).num & {TIDY} != {TIDY}:"]
            self.lines += [f"    {x} = tidy({x}, {dtype})"]

    def name(self, a: Atom, stem: str) -> str:
        name = self.text[a] = self.fresh(stem)
        return name

    def unpack(self, v: Atom) -> None:
        """Name the arrays that form a tape."""
        if isinstance(v.aval, TapeAval):
            tape = self.text[v]
            self.parts[v] = [self.fresh("spans"), *[self.fresh("pool") for _ in range(v.aval.levels)]]
            spans, *pools = self.parts[v]
            self.lines.append(f"{spans} = {tape}.spans")
            self.lines += [f"{pool} = {tape}.pools[{i}]" for i, pool in enumerate(pools)]

    def array(self, v: Atom, number: int) -> str:
        """The name of the array that a kernel receives for a variable."""
        return self.parts[v][number] if v in self.parts else self.text[v]

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def constant(self, stem: str, value: Any) -> str:
        """The name of a global that holds a value."""
        name = self.fresh(stem)
        self.names[name] = value
        return name

    def read(self, a: Atom) -> str:
        if isinstance(a, Literal):
            return self.constant("n", a.value)
        return self.text[a]

    def make_results(self, unit: RunnableKernel) -> None:
        """Make what users receive before the only kernel runs, which writes to it."""
        if self.public is None or unit.route != "llvm" or unit.checked:
            return
        outs, made = self.jaxpr.outvars, []
        for a, is_weak in zip(outs, self.public.weak):
            plain = a in unit.outvars and a not in unit.updates and type(a.aval) is Aval
            if plain and outs.count(a) == 1:
                made.append((a, type(weak(np.empty((), a.aval.dtype))) if is_weak else Array))
        maker = result_maker([(kind, a.aval.dtype, a.aval.shape) for a, kind in made]) if made else None
        if maker is not None:
            self.public_results = {a for a, _ in made}
            self.lines.append(
                f"{', '.join(self.name(a, 'y') for a, _ in made)} = {self.constant('new', maker)}()"
            )

    def kernel(self, unit: RunnableKernel) -> None:
        for a in unit.outvars:
            if a in self.public_results:
                continue
            self.lines.append(f"{self.name(a, 'y')} = {self._memory(a, unit.updates)}")
            if isinstance(a.aval, TapeAval):
                self.parts[a] = [self.fresh("spans"), *[self.fresh("pool") for _ in range(a.aval.levels)]]
                self.lines.append(f"{self.parts[a][0]} = {self.text[a]}")
                self.lines += [f"{pool} = new_pool()" for pool in self.parts[a][1:]]
                pools = ", ".join(self.parts[a][1:])
                aval = self.constant("aval", a.aval)
                self.lines.append(f"{self.text[a]} = Tape({self.parts[a][0]}, ({pools},), {aval})")
        bound = unit.bind()
        counters, put_back = "", ""
        if unit.counters is not None:
            counters, put_back = self._counters(unit, unit.counters)
            bound = bound if unit.route == "llvm" else unit.counters.timed(bound)
        own = {COUNTERS: counters, **{p: f"s{{}}[{i}]" for i, p in enumerate(unit.scratch)}}
        places = [own[p] if p in own else self.array(*unit.interface[p]) for p in unit.storages]
        self.constant("calls", unit.calls)  # to keep them alive
        if self.plain_numbers:
            run = self.constant("run", self._number_call(unit))
        elif any(entry in self.noted for entry in unit.calls):
            run = f"partial({self.constant('run', partial(_noting, bound))}, made)"
        else:
            run = self.constant("run", bound)
        arrays = "".join(f"{p}, " for p in places)
        status = self.fresh("status")
        if not unit.scratch:
            self.lines.append(f"{status} = run(({arrays}))".replace("run(", f"{run}("))
        else:
            self._with_scratch(unit, run, status, arrays)
        if put_back:
            self.lines.append(put_back)
        # The kernel's text says whether it can fail; one test costs 10 ns.
        failed = f"failed({status}, {self.run_so_far()})"
        self.lines += [
            f"if {status}:",
            f"    return {failed if self.public is None else f'finish({failed})'}",
        ]

    def _number_call(self, unit: RunnableKernel) -> Run:
        """The kernel as a function that takes Python's numbers as they are."""
        known = {p: self.plain_numbers.get(v) for p, (v, _) in unit.interface.items()}
        leaves = [known.get(p) for p in unit.storages]
        return unit.bind(leaves)

    def _counters(self, unit: RunnableKernel, counters: Counters) -> tuple[str, str]:
        """The name of a kernel's counters, and the line that frees them; a kernel with the GIL needs only one."""
        if not (unit.large or unit.calls):
            return self.constant("counters", counters.new()), ""
        name, new, free = (
            self.fresh("counters"),
            self.constant("new", counters.new),
            self.constant("free", []),
        )
        self.lines += [
            "try:",
            f"    {name} = {free}.pop()",
            "except IndexError:",
            f"    {name} = {new}()",
        ]
        return name, f"{free}.append({name})"

    def run_so_far(self) -> str:
        """The arguments, and the results of the host calls so far."""
        inputs = "".join(
            f"tidy({x}, {self.constant('d', v.aval.dtype)}), " if v in self.plain_numbers else f"{x}, "
            for v, x in zip(self.jaxpr.invars, self.arguments)
        )
        made = ", ".join(f"{eqn}: ({outs})" for eqn, outs in self.made)
        return f"({inputs}), {{{made}}}" + (", made" if self.noted else "")

    def note_calls(self, calls: Sequence[HostEquation]) -> None:
        """Record the results of host calls that must not be repeated."""
        self.noted = [entry for entry in calls if entry.counts]
        if self.noted:
            self.names["partial"] = partial
            self.lines.append("made = []")

    def _memory(self, a: Atom, updates: Mapping[Any, Var]) -> str:
        """The memory of an output: that of the donated input that it overwrites, or new memory."""
        old = updates.get(a)
        if old is None:
            return self._new_memory(a)
        x = self.text[old]
        return x if old.aval.shape == a.aval.shape else f"{x}.reshape({self.constant('shape', a.aval.shape)})"

    def _new_memory(self, a: Atom) -> str:
        if type(a.aval) is Aval and a.aval.size * a.aval.dtype.itemsize >= LEAST and self.native:
            maker = result_maker([(np.ndarray, a.aval.dtype, a.aval.shape)])
            if maker is not None:
                return f"{self.constant('new', maker)}()"
        return f"empty({self._layout(a)})"

    def _layout(self, a: Atom) -> str:
        shape = self.constant("shape", a.aval.shape)
        return shape if a.aval.dtype == np.float64 else f"{shape}, {self.constant('d', a.aval.dtype)}"

    def _with_scratch(self, unit: RunnableKernel, run: str, status: str, arrays: str) -> None:
        sizes = tuple(unit.scratch.values())
        make = self.constant("make", partial(make_scratch, sizes))
        number = self.fresh("")
        taken = arrays.replace("s{}", f"s{number}")
        if sum(n for n in sizes if n > 0) > POOLED:
            self.lines += [f"s{number} = {make}()", f"{status} = {run}(({taken}))", f"del s{number}"]
            return
        # list.pop and list.append are atomic: each call has separate scratch, even among threads.
        pool = self.constant("pool", [])
        self.lines += [
            "try:",
            f"    s{number} = {pool}.pop()",
            "except IndexError:",
            f"    s{number} = {make}()",
            f"{status} = {run}(({taken}))",
        ]
        tapes = [f"s{number}[{i}][1]" for i, n in enumerate(sizes) if n < 0]
        guard = f"if {' + '.join(tapes)} < {POOLED >> 3}: " if tapes else ""
        self.lines.append(f"{guard}{pool}.append(s{number})")

    def release(self, variables: Sequence[Var]) -> None:
        """Let go of arrays that nothing reads any more; their names stay, for `run_so_far`."""
        self.lines += [f"{self.text[v]} = None" for v in variables]

    def view(self, step: ViewStep) -> None:
        (a,), (v,) = step.eqn.invars, step.eqn.outvars
        shape = self.constant("shape", v.aval.shape)
        self.lines.append(f"{self.name(v, 'v')} = reshape({self.text[a]}, {shape})")
        self.viewed[v] = self.viewed.get(a, a)

    def host(self, step: HostStep) -> None:
        eqn = step.eqn
        names = "".join(f"{self.name(v, 'h')}, " for v in eqn.outvars)
        if eqn.primitive.into is not None:
            self.lines += [f"{self.text[v]} = {self._new_memory(v)}" for v in eqn.outvars]
            call = self.constant("host", partial(call_host_into, eqn))
            args = "".join(f"{self._plain(a)}, " for a in eqn.invars)
            self.lines.append(f"{call}(({args}), ({names}))")
        else:
            call = self.constant("host", partial(host_results, eqn))
            args = ", ".join(map(self.read, eqn.invars))
            self.lines.append(f"{names} = {call}({args})" if names else f"{call}({args})")
        self.made.append((self.constant("eqn", eqn), names))

    def _plain(self, a: Atom) -> str:
        """An operand as a plain array: NumPy would note in an `Array` that it was exported as a buffer."""
        if isinstance(a, Literal):
            return self.constant("n", tidy(a.value, a.aval.dtype))
        return f"asarray({self.text[a]})" if a in self.jaxpr.invars else self.text[a]

    def returns(self, look: Callable[..., None] | None, donated: Collection[Var]) -> None:
        inputs = {*self.jaxpr.invars, *self.jaxpr.constvars}.difference(donated)
        seen: set[Atom] = set()
        outs = []
        for a in self.jaxpr.outvars:
            text, memory = self.read(a), self.viewed.get(a, a)
            if isinstance(a.aval, TapeAval):
                pass  # nothing can write to a tape
            elif isinstance(a, Literal) or memory in inputs or memory in seen:
                text = f"array({text}, {self.constant('d', a.aval.dtype)})"
            seen.add(memory)
            outs.append(text)
        if self.public is not None:
            self.finish(outs, self.public)
            return
        if look is not None:
            any_ = self.constant("any_fault", any_fault)
            self.lines += [f"outs = [{', '.join(outs)}]", f"if {any_}(outs):"]
            self.lines += [f"    {self.constant('look', look)}(outs, {self.run_so_far()})", "return outs"]
            return
        self.lines.append(f"return [{', '.join(outs)}]")

    def finish(self, outs: list[str], public: Public) -> None:
        """Return what the user receives; does the work of `Public.finish`, inlined."""
        self.names.update(view=np.ndarray.view, setflags=np.ndarray.setflags, Array=Array, weak=weak)
        self.names["finish"] = public.finish
        results = [
            text if a in self.public_results else self.fresh("out")
            for a, text in zip(self.jaxpr.outvars, outs)
        ]
        for a, result, text, is_weak in zip(self.jaxpr.outvars, results, outs, public.weak):
            if a in self.public_results:
                continue
            self.lines.append(f"{result} = {f'weak({text})' if is_weak else f'view({text}, Array)'}")
            if not is_weak:
                self.lines.append(f"setflags({result}, False)")  # by position: half the time of write=False
        flat = f"[{', '.join(results)}]"
        tree = tree_expression(public.out_tree, iter(results), self.names)
        self.lines.append(f"return {tree or f'unflatten({flat})'}")
        self.names["unflatten"] = public.out_tree.unflatten

    def function(self) -> Callable[..., list[np.ndarray]]:
        head = f"def call({''.join(f'{x}, ' for x in self.arguments)}{'/' if self.arguments else ''}):"
        self.names["out_of_memory"] = partial(out_of_memory, self.jaxpr)
        guarded = ["try:", *[f"    {line}" for line in self.lines]]
        guarded += ["except MemoryError as error:", "    raise out_of_memory(error) from None"]
        source = "\n    ".join([head, *guarded])
        exec(compile(source, f"<functrans: wrapper of {self.jaxpr.name}>", "exec"), self.names)
        return self.names.pop("call")

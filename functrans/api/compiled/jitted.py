"""Jitted functions: traced once for each combination of argument types, then run as kernels."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from types import MethodType
from typing import Any

from ...arrays.array import weak, wrap
from ...control.call import call_p
from ...control.hooks.traced_hooks import settled
from ...core.attachment import Attachment
from ...core.aval import Aval, aval_of
from ...core.named_axes import scope_key
from ...core.trace import Tracer, current_trace, eval_trace, leaked
from ...core.values import PyTree
from ...frontend.arguments import (
    Flat,
    argument_at,
    check_states,
    flatten_values,
    name_of,
    struct_aval,
)
from ...frontend.pytree import PyTreeDef, tree_flatten, tree_flatten_with_path, tree_unflatten
from ...frontend.pytree.nodes import kind_of
from ...passes.toolkit import eliminate_dead_code, lift_tracers
from ...runtime.config import config, option_values, program_key, trace_key
from ...runtime.context import cached_property, run_with
from ...runtime.portable import in_words
from ...runtime.tracebacks import show_users_frames
from ...runtime.unusual import recorded
from ...transforms.stage import Uses, captured_results, stage
from ..refs import has_refs, put_back, with_values
from .caches import Cache, CacheInfo, caches
from .donation import donating, warn_unused, with_arrays
from .fast_path import Runner, add_types, is_converted
from .instances import InstanceCaches, InstanceChangedError, held_weakly, instance_of, refresh, remembered
from .lowered import Lowered, Traced, TracedFunction, bound
from .numba_door import CalledFromNumba
from .static import DonatedArguments, DonatedLeaves, SplitArguments, StaticArguments
from .traced_blocks import TraceInProgress, traces

#: What each call reads. To look the methods up there takes 60 ns of 800.
trace_now, current_patch = current_trace.get, option_values.current


def _is_tracer(x: Any) -> bool:
    return isinstance(x, Tracer)


class Jitted(CalledFromNumba):
    """A compiled function; see `jit`."""

    _transient = frozenset(("_instances", "_cache", "_runners", "_hit", "_plain", "_of_methods", "_forms"))

    #: Whether inline hooks of a backward pass in it are traced with it.
    _settles = True

    def __init__(
        self,
        fun: Callable[..., PyTree],
        signature: StaticArguments,
        donated: DonatedArguments | DonatedLeaves,
    ):
        functools.update_wrapper(self, fun, updated=())
        self._fun = fun
        self._signature = signature
        self._donated = donated
        self._arrived()

    def _arrived(self) -> None:
        self._instances = InstanceCaches()
        self._use(caches.get(self._fun, (self._signature.key, self._donated.key)))

    def _use(self, cache: Cache) -> None:
        self._cache = cache
        self._runners = cache.runners
        self._hit = cache.stats.hit
        self._plain = not self._signature

    def __call__(self, *args: PyTree, **kwargs: PyTree) -> Any:
        """Run the function's kernels, after tracing and compiling it if these argument types are new."""
        try:
            if trace_now() is eval_trace:
                fast = self._cache.latest
                # Without a patch, the key that `trace_key` returns.
                if fast.options is (option_values.key if current_patch() is None else trace_key()):
                    read = fast.read
                    leaves = read(args, kwargs) if read is not None else () if kwargs else args
                    if fast.match(leaves):
                        self._hit()
                        return fast.call(*leaves)
                if self._plain:
                    return self._looked_up(args, kwargs)
            return self._call(args, kwargs, None)
        except InstanceChangedError:
            self._renew()
            return self(*args, **kwargs)
        except Exception as error:
            show_users_frames(error)
            raise

    def _looked_up(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        options, treedef = trace_key(), None
        earlier = self._cache.earlier
        if earlier.options is options and earlier.match(fitting := earlier.leaves(args, kwargs)):
            self._cache.note(earlier)
            self._hit()
            return earlier.call(*fitting)
        leaves: Sequence[Any] = args
        key: list[Any] = [options]
        if kwargs or not add_types(key, args):
            leaves, treedef = tree_flatten((args, kwargs))
            key = [options, treedef]
            if not add_types(key, leaves):
                return self._call(args, kwargs, None)
        runner = self._runners[tuple(key)]
        if runner is None:
            return self._call(args, kwargs, tuple(key))
        self._hit()
        fast = runner.fast(options, treedef, leaves, self._guarded)
        if fast is not None:
            self._cache.note(fast)
            if fast.match(leaves := tuple(leaves)):
                return fast.call(*leaves)
        return runner.call(*leaves)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any], fast_key: Hashable) -> Any:
        if config.disable_jit:
            return self._fun(*args, **kwargs)
        split = self._signature.split(self._fun, args, kwargs)
        if has_refs(split.dynamic):
            donate = current_trace.get() is eval_trace and not self._signature
            return with_values("jit", self._fun, self._of_values, args, kwargs, donate=donate)
        values, treedef = flatten_values(split.dynamic, partial(argument_at, "jit", self._fun))
        traced = self._traced(split, [aval_of(x) for x in values], treedef)
        if current_trace.get() is not eval_trace:
            return bound(call_p, traced, values)
        for x in filter(_is_tracer, values):
            raise leaked(x)
        run = donating(traced.jaxpr, traced.donated)
        values = with_arrays(values, split.dynamic, traced.donated)
        if traced.uses.refs:
            outs = put_back(traced.uses, run(*values, *[ref.take() for ref in traced.uses.refs]))
            fast_key = None
        else:
            outs = run(*values)
        numbers = [a.is_number for a in traced.jaxpr.out_avals]
        if fast_key is not None and not is_converted(fast_key):
            self._runners[fast_key] = Runner(run, traced.out_tree, numbers, self._guarded)
        return tree_unflatten(traced.out_tree, [weak(x) if w else wrap(x) for w, x in zip(numbers, outs)])

    def _traced(self, split: SplitArguments, avals: list[Aval], treedef: PyTreeDef) -> Traced:
        key = (program_key(), treedef, split.key, *avals, *scope_key())
        cache = self._cache
        traced = cache.traced[key]
        if traced is not None:
            self._hit()
            for block in traced.blocks:
                block.met()
            return traced

        return cache.get(key, lambda: recorded("trace", self._trace, key, split, avals, treedef))

    def _trace(
        self, key: tuple[Any, ...], split: SplitArguments, avals: list[Aval], treedef: PyTreeDef
    ) -> Traced:
        flat = Flat(self._fun, treedef, lambda f, dynamic: split.call(f, dynamic))
        check_states("jit", self._fun, avals, treedef)
        hooks: list[Attachment] = []
        in_progress = TraceInProgress(self._cache, key)
        uses, name, stats = Uses(), name_of(self._fun), self._cache.stats
        with self._tracing():
            trace = partial(stage, flat, avals, name, stats, hooks, uses=uses, argument=flat.argument)
            staged = run_with(traces, in_progress, trace)
        closed, captured = lift_tracers(settled(staged) if self._settles else staged)
        extra, hooked = captured_results(hooks, len(staged.invars)), None
        if extra:
            hooked = closed
            closed = eliminate_dead_code(closed.replace(outvars=closed.outvars[:-extra]))
        donated = self._donated.leaves(split, treedef)
        if donated:
            paths = [path for path, _ in tree_flatten_with_path(split.dynamic)[0]]
            warn_unused(closed, donated, lambda i: argument_at("jit", self._fun, paths[i]))
        tree, blocks = flat.out_tree.held(), tuple(in_progress.blocks)
        return Traced(closed, tree, captured, tuple(hooks), donated, blocks, uses, hooked)

    def _of_values(self, fun: Callable[..., PyTree], key: tuple[Any, ...]) -> Jitted:
        """`fun`, which does the same with values instead of refs, jitted in the same way."""
        jitted = object.__new__(Jitted)
        _, places, _, donate = key
        donated = DonatedLeaves(self._donated, places) if donate else self._donated
        vars(jitted).update(_fun=fun, _signature=self._signature, _donated=donated)
        jitted._use(self._cache.derived(key))
        vars(jitted)["_tracing"] = self._tracing
        return jitted

    def _tracing(self) -> AbstractContextManager[None]:
        """Hook around each trace."""
        return nullcontext()

    def _renew(self) -> None:
        """Hook that runs when a program was refused because of its instance."""

    def _guarded(self, runner: Callable[..., Any]) -> Callable[..., Any]:
        """The fast path to call a program, as it is cached."""
        return runner

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """A jitted method: `self` is an argument if its class is a registered pytree; else instances have caches."""
        if instance is None:
            return self
        if kind_of(instance) is not None:
            return partial(self, instance)
        bound = object.__new__(JittedMethod)
        attributes = bound.__dict__
        attributes.update(self.__dict__)
        attributes["_unbound"] = self
        attributes["_fun"] = attributes["__wrapped__"] = MethodType(self._fun, instance)
        attributes["_signature"], attributes["_donated"] = self._of_methods
        attributes["_watched"] = 0 not in self._signature.argnums  # otherwise the user made it static
        cache = self._instances.of(instance)
        bound._use(self._instances.of_equal(instance) if cache is None else cache)
        if cache is None:  # the fast path would keep the instance alive
            attributes["_plain"] = False
        return bound

    @cached_property
    def _of_methods(self) -> tuple[StaticArguments, DonatedArguments | DonatedLeaves]:
        return self._signature.bound(), self._donated.bound()

    def traced(self, *args: Any, **kwargs: Any) -> tuple[Traced, PyTreeDef]:
        """The traced function at these arguments (or `ShapeDtypeStruct`s), and their structure."""
        split = self.split(args, kwargs)
        leaves, treedef = tree_flatten(split.dynamic)
        avals = [struct_aval(x, lambda: f"jit of {name_of(self._fun)}: an argument") for x in leaves]
        return self._traced(split, avals, treedef), treedef

    def known(self, *args: PyTree, **kwargs: PyTree) -> Traced | None:
        """The last traced program whose arguments have the dtypes and ranks of these, and any sizes."""
        split = self.split(args, kwargs)
        leaves, treedef = tree_flatten(split.dynamic)
        avals = [struct_aval(x, lambda: f"jit of {name_of(self._fun)}: an argument") for x in leaves]
        return self._cache.like((program_key(), treedef, split.key), avals)

    def split(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> SplitArguments:
        """The static and the other arguments of a call."""
        return self._signature.split(self._fun, args, kwargs)

    def whenever_dropped(self, do: Callable[[], None]) -> None:
        """Do something whenever programs are dropped, as by `clear_cache`."""
        self._cache.on_drop.append(do)

    @property
    def is_watched(self) -> bool:
        """Whether each call checks the instance of a method."""
        return self._cache.snapshot is not None

    def lower(self, *args: PyTree, **kwargs: PyTree) -> Lowered:
        """Lower the function for arguments of these types, without running it.

        Returns
        -------
        Lowered
            With ``.jaxpr``, ``.as_text(dialect)``, ``.cost_analysis()`` and ``.compile()``.

        Examples
        --------
        >>> import functrans as ft
        >>> lowered = ft.jit(lambda x: 2.0 * x).lower(ft.ShapeDtypeStruct((3,), "float64"))
        >>> print(lowered.jaxpr)
        lambda a:f64[3].
          b:f64[3] = mul 2.0 a
          return (b,)
        """
        return self.trace(*args, **kwargs).lower()

    def trace(self, *args: Any, **kwargs: Any) -> TracedFunction:
        """Trace the function for arguments of these types (`ShapeDtypeStruct`s will do), without lowering it.

        Returns
        -------
        TracedFunction
            With ``.jaxpr``, ``.out_info`` and ``.lower()``.

        Examples
        --------
        >>> import functrans as ft
        >>> traced = ft.jit(lambda x: 2.0 * x).trace(ft.ShapeDtypeStruct((3,), "float64"))
        >>> traced.out_info
        ShapeDtypeStruct(shape=(3,), dtype=dtype('float64'), weak_type=False)
        """
        return TracedFunction(*self.traced(*args, **kwargs))

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """The shapes and dtypes of the result at these arguments, without computing it.

        Examples
        --------
        >>> import functrans as ft
        >>> ft.jit(lambda x: x @ x.T).eval_shape(ft.ShapeDtypeStruct((3, 5), "float32"))
        ShapeDtypeStruct(shape=(3, 3), dtype=dtype('float32'), weak_type=False)
        """
        return self.trace(*args, **kwargs).out_info

    def cache_info(self) -> CacheInfo:
        """Counts of traces, compiled kernels, hits and misses, including kernels of derivatives."""
        return self._cache.stats.info()

    def clear_cache(self) -> None:
        """Drop the traces and kernels of this function."""
        self._cache.clear()

    def __repr__(self) -> str:
        return f"<jit of {in_words(self._fun)}>"


class JittedMethod(Jitted):
    """A jitted function bound to an instance: a method, or a callable object.

    The instance is a constant of its programs, so they are traced again once it has changed; see `snapshots`.
    """

    _unbound: Jitted | None = None
    _watched = True

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any], fast_key: Hashable) -> Any:
        refresh(self._fun, self._cache)
        return Jitted._call(self, args, kwargs, fast_key)

    def traced(self, *args: Any, **kwargs: Any) -> tuple[Traced, PyTreeDef]:
        """As `Jitted.traced`."""
        refresh(self._fun, self._cache)
        return Jitted.traced(self, *args, **kwargs)

    def _guarded(self, runner: Callable[..., Any]) -> Callable[..., Any]:
        snapshot = self._cache.snapshot
        if snapshot is None:
            return runner
        same, instance = snapshot.same, held_weakly(instance_of(self._fun))

        def guarded(*leaves: Any) -> Any:
            if not same(instance()):
                raise InstanceChangedError
            return runner(*leaves)

        return guarded

    def _renew(self) -> None:
        if not refresh(self._fun, self._cache):
            self._cache.drop_calls()

    def _tracing(self) -> AbstractContextManager[None]:
        return remembered(self._fun, self._cache) if self._watched else nullcontext()

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        """A method of an instance pickles as these two."""
        if self._unbound is None:
            return super().__reduce_ex__(protocol)
        return _bind, (self._unbound, instance_of(self._fun))


def _bind(method: Jitted, instance: Any) -> Any:
    return method.__get__(instance, type(instance))

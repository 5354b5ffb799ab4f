"""Blocks with hooks around them: `hookable`, and hooks of a group of blocks."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ...control.hooks.hook_calls import Hook
from ...control.hooks.hooks import hook_p, note_p, own_p, supply_p
from ...core.attachment import Attachment
from ...core.aval import aval_of
from ...core.dtypes import is_inexact
from ...core.trace import Tracer, current_trace, eval_trace
from ...errors import ArgumentError, ArgumentValueError, HookError
from ...errors.source import Source, user_source
from ...frontend.arguments import check_function, name_of
from ...frontend.checked import checked
from ...frontend.pytree import PyTreeDef, tree_flatten, tree_unflatten
from ...frontend.tree_spec import derivative_leaves
from ...runtime.portable import Transformed
from ..compiled.traced_blocks import MetBlock
from .hooks import MODES, RemovableHandle

_Value = TypeVar("_Value")


class Hookable(Transformed):
    """A function with hooks around it; see `hookable`."""

    _copied_names = (*Transformed._copied_names, "__doc__")
    _transient = frozenset(("_programs", "_groups"))

    def __init__(self, fun: Callable[..., Any]):
        super().__init__("hookable", fun)
        self._hooks: dict[str, list[_BlockHook]] = {kind: [] for kind in _KINDS}
        self._arrived()

    def _arrived(self) -> None:
        self._programs = MetBlock()
        self._groups: list[_BlockGroup] = []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function between its hooks."""
        self._programs.met()
        try:
            for group in self._groups:
                args = _new_args(args, group.before(self, args))
            for h in list(self._hooks["forward_pre"]):
                args, kwargs = h.before(self, args, kwargs)
            out = self._with_backward_hooks(args, kwargs)
            for group in self._groups:
                out = _kept(out, group.after(self, out))
        except BaseException:
            for group in self._groups:
                group.reset()
            raise
        return out

    def _with_backward_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        before, after = list(self._hooks["full_backward_pre"]), list(self._hooks["full_backward"])
        watched = current_trace.get() is not eval_trace and bool(before or after)
        ins = _Watched(args) if watched and after else None
        inner = args if ins is None else ins.tree()
        waiting, out = list(self._hooks["forward"]), None
        try:
            out = self._fun(*inner, **kwargs)
            while waiting:
                h = waiting.pop(0)
                out = _kept(out, h.after(self, inner, kwargs, out))
        except Exception:
            for h in [h for h in waiting if h.always]:
                out = _kept(out, h.after_failure(self, inner, kwargs, out))
            raise
        if not watched:
            return out
        outs = _Watched(out if isinstance(out, tuple) else (out,))
        if outs.values:
            self._attach(before, after, ins, outs)
        return outs.tree() if isinstance(out, tuple) else outs.tree()[0]

    def _attach(
        self, before: Sequence[_BlockHook], after: Sequence[_BlockHook], ins: _Watched | None, outs: _Watched
    ) -> None:
        if ins is not None:
            values = (*ins.values, *outs.values)
            for h in after:
                hook = _FullBackwardHook.of(h, self, ins, outs)
                count = len(ins.values) or len(values)
                order = tuple(range(len(values)))
                current_trace.get().attach(
                    Attachment(hook_p, note_p, supply_p, hook, values, count, order=order)
                )
        for h in reversed(before):  # the last one applied sees the cotangents first
            hook = _BackwardPreHook.of(h, self, None, outs)
            order = tuple(range(len(outs.values)))
            outs.values = hook_p.bind(*outs.values, hook=hook, tokens=(), lanes=(), order=order)

    def _register(
        self, kind: str, hook: Any, prepend: bool, mode: str = "host", **options: bool
    ) -> RemovableHandle:
        if not callable(hook):
            raise ArgumentError(
                f"register_{kind}_hook of {name_of(self)}: expected a function, got {str(hook)[:60]!r} of type "
                f"{type(hook).__name__}"
            )
        if mode not in MODES:
            raise ArgumentValueError(f"register_{kind}_hook: mode must be 'host' or 'inline', got {mode!r}")
        block_hook = _BlockHook(hook, mode, user_source(), **options)
        self._hooks[kind] = [block_hook, *self._hooks[kind]] if prepend else [*self._hooks[kind], block_hook]
        self._programs.changed()
        return _BlockHandle(block_hook, self)

    def _remove(self, hook: _BlockHook) -> None:
        for kind, hooks in self._hooks.items():
            self._hooks[kind] = [h for h in hooks if h is not hook]
        self._programs.changed()

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(block, args)`` before the function; it returns other arguments (a tuple, or one), or None.

        With `with_kwargs` call ``hook(block, args, kwargs)``, which returns a pair ``(args, kwargs)``, or None.
        """
        return self._register("forward_pre", hook, prepend, with_kwargs=with_kwargs)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call ``hook(block, args, output)`` after the function; it returns another output, or None.

        With `with_kwargs` call ``hook(block, args, kwargs, output)``. With `always_call` it is also called where the
        function or another hook raises: with the output so far, or None. What it raises then is a warning.
        """
        return self._register("forward", hook, prepend, with_kwargs=with_kwargs, always=always_call)

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, mode: str = "host"
    ) -> RemovableHandle:
        """Call ``hook(block, grad_output)`` when the cotangents of the output are complete.

        It returns another tuple of them, or None.
        """
        return self._register("full_backward_pre", hook, prepend, mode)

    def register_full_backward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, mode: str = "host"
    ) -> RemovableHandle:
        """Call ``hook(block, grad_input, grad_output)`` when the cotangents of the arguments are complete.

        It returns another tuple of them, or None.
        """
        return self._register("full_backward", hook, prepend, mode)


_KINDS = ("forward_pre", "forward", "full_backward_pre", "full_backward")


def _kept(old: _Value, new: _Value | None) -> _Value:
    return old if new is None else new


def _new_args(args: tuple[Any, ...], new: Any) -> tuple[Any, ...]:
    if new is None:
        return args
    return new if isinstance(new, tuple) else (new,)


@dataclass(eq=False)
class _BlockHook:
    """A hook registered on a block."""

    function: Callable[..., Any]
    mode: str
    source: Source | None
    active: bool = True
    with_kwargs: bool = False
    always: bool = False

    def before(
        self, block: Hookable, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments after it has run before the function."""
        if not self.with_kwargs:
            return _new_args(args, self.function(block, args)), kwargs
        new = self.function(block, args, kwargs)
        if new is None:
            return args, kwargs
        if not (
            isinstance(new, tuple)
            and len(new) == 2
            and isinstance(new[0], tuple)
            and isinstance(new[1], dict)
        ):
            raise HookError(
                f"register_forward_pre_hook: the hook '{self.name}' must return a pair of a tuple of arguments and a "
                f"dict of keyword arguments, or None, but returned an object of type {type(new).__name__}",
                self.source,
            )
        return new

    def after(self, block: Hookable, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Any:
        """What it returns after the function."""
        if self.with_kwargs:
            return self.function(block, args, kwargs, out)
        return self.function(block, args, out)

    def after_failure(self, block: Hookable, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Any:
        """The same where an exception is on its way, which it must not replace."""
        try:
            return self.after(block, args, kwargs, out)
        except Exception as error:
            warnings.warn(
                f"register_forward_hook: the hook '{self.name}' with always_call=True raised {error!r} after another "
                "error",
                RuntimeWarning,
                stacklevel=2,
            )
            return None

    @property
    def name(self) -> str:
        """The name of the function."""
        return name_of(self.function)


class _BlockHandle(RemovableHandle):
    __slots__ = ("_block",)

    def __init__(self, hook: _BlockHook, block: Hookable):
        super().__init__(hook)
        self._block = block

    def remove(self) -> None:
        """End the registration; a second call does nothing."""
        if self._hook.active:
            super().remove()
            self._block._remove(self._hook)


# --- cotangents of a call -----------------------------------------------------------------------------------


class _Watched:
    """A tuple of arguments or results, as values that only this call of a block reads or returns."""

    def __init__(self, values: tuple[Any, ...]):
        self.leaves, self.treedef = tree_flatten(values)
        self.size = len(values)
        self.places = [
            i for i, x in enumerate(self.leaves) if isinstance(x, Tracer) and is_inexact(aval_of(x).dtype)
        ]
        self.values: Sequence[Any] = own_p.bind(*[self.leaves[i] for i in self.places]) if self.places else []

    def tree(self) -> tuple[Any, ...]:
        """The tuple, with these values."""
        leaves = list(self.leaves)
        for i, x in zip(self.places, self.values):
            leaves[i] = x
        return tree_unflatten(self.treedef, leaves)


class _Cotangents:
    """The positions of a tuple's cotangents in its structure; holds no values."""

    def __init__(self, watched: _Watched):
        self.treedef: PyTreeDef = watched.treedef
        self.places, self.size, self.count = watched.places, watched.size, len(watched.leaves)

    def tree(self, cts: Sequence[Any]) -> tuple[Any, ...]:
        """The tuple of cotangents, with None where there is none."""
        leaves: list[Any] = [None] * self.count
        for i, ct in zip(self.places, cts):
            leaves[i] = ct
        return tree_unflatten(self.treedef, leaves)


class _CallHook(Hook):
    """A hook of a block during one call."""

    dense = True
    block: Hookable
    ins: _Cotangents | None
    outs: _Cotangents

    @classmethod
    def of(cls, hook: _BlockHook, block: Hookable, ins: _Watched | None, outs: _Watched) -> _CallHook:
        """The hook for a call with these arguments and results."""
        call_hook = cls(hook.function, None, None, hook.mode, hook.source)
        call_hook.size = len(outs.values) + (0 if ins is None else len(ins.values))
        call_hook.block, call_hook.outs = block, _Cotangents(outs)
        call_hook.ins = None if ins is None else _Cotangents(ins)
        return call_hook

    def replaced(self, what: str, layout: _Cotangents, new: Any) -> list[Any]:
        """The cotangents in the tuple that a hook returned."""
        if new is None:
            return [None] * len(layout.places)
        if not isinstance(new, tuple) and layout.size == 1:
            new = (new,)
        if not isinstance(new, tuple) or len(new) != layout.size:
            got = (
                f"{len(new)} of them" if isinstance(new, tuple) else f"an object of type {type(new).__name__}"
            )
            raise HookError(
                f"{self.label}: the hook '{self.name}' must return a tuple of {layout.size} for {what}, or None, but "
                f"returned {got}",
                self.source,
            )
        leaves = derivative_leaves(new, layout.treedef)
        if not isinstance(leaves, list):
            raise HookError(
                f"{self.label}: the hook '{self.name}' returned {leaves.got}{leaves.at} for {what}, where it got "
                f"{leaves.expected}",
                self.source,
            )
        return [leaves[i] for i in layout.places]


class _BackwardPreHook(_CallHook):
    label = "register_full_backward_pre_hook"
    outlives = True

    def call(self, f: Callable[..., Any], cts: Sequence[Any]) -> Sequence[Any]:
        """The function receives the block, and the tuple of the cotangents of its results."""
        return self.replaced("grad_output", self.outs, f(self.block, self.outs.tree(cts)))


class _FullBackwardHook(_CallHook):
    label = "register_full_backward_hook"
    outlives = True

    def call(self, f: Callable[..., Any], cts: Sequence[Any]) -> Sequence[Any]:
        """The function receives the block, and the tuples of the cotangents of its arguments and results."""
        assert self.ins is not None
        count = len(self.ins.places)
        grad_input, grad_output = self.ins.tree(cts[:count]), self.outs.tree(cts[count:])
        new_cts = self.replaced("grad_input", self.ins, f(self.block, grad_input, grad_output))
        return [*new_cts, *[None] * (len(cts) - count)]


# --- groups -------------------------------------------------------------------------------------------------


class _BlockGroup:
    """Blocks that run together: a hook before the first of them, and one after the last."""

    def __init__(self, blocks: tuple[Hookable, ...], pre: Any, post: Any):
        self.blocks, self.pre, self.post = blocks, pre, post
        self._now = threading.local()

    @property
    def left(self) -> set[int]:
        """The blocks that have not run yet in this thread, by ``id``."""
        return vars(self._now).setdefault("left", set())

    def reset(self) -> None:
        """Start again, after an exception."""
        self.left.clear()

    def before(self, block: Hookable, args: tuple[Any, ...]) -> Any:
        """Call `pre` if this block is the first to run; returns its result."""
        if self.left:
            return None
        self.left.update(map(id, self.blocks))
        return None if self.pre is None else self.pre(args)

    def after(self, block: Hookable, out: Any) -> Any:
        """Call `post` if this block is the last to run; returns its result."""
        self.left.discard(id(block))
        return None if self.left or self.post is None else self.post(out)


class MultiHandle:
    """What `register_group_hooks` returns; ``remove()`` ends the registration on all blocks.

    Also a context manager, as `RemovableHandle` is.
    """

    __slots__ = ("_group",)

    def __init__(self, group: _BlockGroup):
        self._group = group

    def remove(self) -> None:
        """End the registration; a second call does nothing."""
        for block in self._group.blocks:
            block._groups = [g for g in block._groups if g is not self._group]
            block._programs.changed()

    def __enter__(self) -> MultiHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


@checked
def hookable(fun: Callable[..., Any]) -> Hookable:
    """Give a function PyTorch's module hooks.

    Parameters
    ----------
    fun : callable
        A function of arrays and pytrees: a layer, a block of a network.

    Returns
    -------
    Hookable
        Called like `fun`. Each of these methods returns a `RemovableHandle`:

        - ``register_forward_pre_hook(hook)``: ``hook(block, args)`` may return other arguments.
        - ``register_forward_hook(hook)``: ``hook(block, args, output)`` may return another output.
        - ``register_full_backward_pre_hook(hook)``: ``hook(block, grad_output)`` may return other cotangents.
        - ``register_full_backward_hook(hook)``: ``hook(block, grad_input, grad_output)`` may return another
          `grad_input`.

    Notes
    -----
    Gradients are tuples. `grad_output` has one entry for each element of the output, if it is a tuple; `grad_input` one
    for each positional argument, a pytree where that is one. None stands for arguments that are not differentiated.
    Hooks run in the order of registration; ``prepend=True`` puts one in front. Those of the backward pass take
    ``mode="inline"``, as `cotangent_hook` does.

    Forward hooks are part of the function: under `jit` they run while it is traced. After registering or removing a
    hook, exactly the jitted functions that used the block are traced again.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> @ft.hookable
    ... def layer(w, x):
    ...     return fnp.tanh(w * x)
    >>> def show(block, grad_input, grad_output):
    ...     print("into", grad_output[0].round(3), "out of", grad_input[0].round(3))
    >>> handle = layer.register_full_backward_hook(show)
    >>> step = ft.jit(ft.grad(lambda w: layer(w, 2.0) ** 2))
    >>> _ = step(0.1)
    into 0.395 out of 0.759
    >>> handle.remove()
    >>> _ = step(0.1)
    """
    check_function("hookable", fun)
    return Hookable(fun)


def register_group_hooks(
    blocks: Iterable[Hookable],
    pre: Callable[..., Any] | None = None,
    post: Callable[..., Any] | None = None,
) -> MultiHandle:
    """Attach hooks to a group of blocks: around all of them instead of around each.

    Parameters
    ----------
    blocks : iterable of Hookable
    pre : callable, optional
        ``pre(args)`` is called before the first block that runs, with its arguments; it returns new ones, or None.
    post : callable, optional
        ``post(output)`` is called after the last block, with its output; it returns a new one, or None.

    Returns
    -------
    MultiHandle

    Notes
    -----
    The last block is the one after which all have run. `pre` is then called again before the next one, and also after
    an exception in a block. Each thread counts separately.

    Examples
    --------
    >>> import functrans as ft
    >>> first, second = ft.hookable(lambda x: x + 1.0), ft.hookable(lambda x: 2.0 * x)
    >>> handle = ft.register_group_hooks([first, second], pre=lambda args: print("before"), post=lambda y: -y)
    >>> second(first(1.0))
    before
    -4.0
    """
    group_blocks = tuple(blocks) if np.iterable(blocks) else (blocks,)
    for block in group_blocks:
        if not isinstance(block, Hookable):
            raise ArgumentError(
                "register_group_hooks: blocks must be a sequence of functions made by hookable, got an object of type "
                f"{type(block).__name__}"
            )
    for name, hook in (("pre", pre), ("post", post)):
        if hook is not None and not callable(hook):
            raise ArgumentError(f"register_group_hooks: {name} must be a function, got {str(hook)[:60]!r}")
    group = _BlockGroup(group_blocks, pre, post)
    for block in group_blocks:
        block._groups = [group, *block._groups]
        block._programs.changed()
    return MultiHandle(group)

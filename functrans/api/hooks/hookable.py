"""Blocks with hooks around them: `hookable`, and hooks of a group of blocks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ...control.hooks.hooks import hook_p, note_p, supply_p
from ...core.attachment import Attachment
from ...core.trace import current_trace, eval_trace
from ...core.values import ArrayLike, PyTree, Value
from ...errors import ArgumentError, ArgumentValueError
from ...errors.source import user_source
from ...frontend.arguments import check_function, name_of
from ...frontend.checked import checked
from ...runtime.module_getattr import lazy_import
from ...runtime.portable import Transformed
from ..compiled.traced_blocks import MetBlock
from .hooks import MODES, RemovableHandle

if TYPE_CHECKING:
    from .block_hooks import BlockHook, WatchedValues

#: Loads with the first hook.
block_hooks = lazy_import("functrans.api.hooks.block_hooks")
_Value = TypeVar("_Value")


class Hookable(Transformed):
    """A function with hooks around it; see `hookable`."""

    _copied_names = (*Transformed._copied_names, "__doc__")
    _transient = frozenset(("_programs", "_groups"))

    def __init__(self, fun: Callable[..., PyTree]):
        super().__init__("hookable", fun)
        self._hooks: dict[str, list[BlockHook]] = {kind: [] for kind in _KINDS}
        self._arrived()

    def _arrived(self) -> None:
        self._programs = MetBlock()
        self._groups: list[_BlockGroup] = []

    def __call__(self, *args: ArrayLike, **kwargs: PyTree) -> Any:
        """Call the function between its hooks."""
        self._programs.met()
        try:
            for group in self._groups:
                args = block_hooks.new_args(args, group.before(self, args))
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

    def _with_backward_hooks(self, args: tuple[Value, ...], kwargs: dict[str, Any]) -> Value:
        before, after = list(self._hooks["full_backward_pre"]), list(self._hooks["full_backward"])
        watched = current_trace.get() is not eval_trace and bool(before or after)
        ins = block_hooks.WatchedValues(args) if watched and after else None
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
        outs = block_hooks.WatchedValues(out if isinstance(out, tuple) else (out,))
        if outs.values:
            self._attach(before, after, ins, outs)
        return outs.tree() if isinstance(out, tuple) else outs.tree()[0]

    def _attach(
        self,
        before: Sequence[BlockHook],
        after: Sequence[BlockHook],
        ins: WatchedValues | None,
        outs: WatchedValues,
    ) -> None:
        if ins is not None:
            values = (*ins.values, *outs.values)
            for h in after:
                hook = block_hooks.FullBackwardHook.of(h, self, ins, outs)
                count = len(ins.values) or len(values)
                order = tuple(range(len(values)))
                current_trace.get().attach(
                    Attachment(hook_p, note_p, supply_p, hook, values, count, order=order)
                )
        for h in reversed(before):  # the last one applied sees the cotangents first
            hook = block_hooks.BackwardPreHook.of(h, self, None, outs)
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
        block_hook = block_hooks.BlockHook(hook, mode, user_source(), **options)
        self._hooks[kind] = [block_hook, *self._hooks[kind]] if prepend else [*self._hooks[kind], block_hook]
        self._programs.changed()
        return _BlockHandle(block_hook, self)

    def _remove(self, hook: BlockHook) -> None:
        for kind, hooks in self._hooks.items():
            self._hooks[kind] = [h for h in hooks if h is not hook]
        self._programs.changed()

    def register_forward_pre_hook(
        self, hook: Callable[..., PyTree], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(block, args)`` before the function; it returns other arguments (a tuple, or one), or None.

        With `with_kwargs` call ``hook(block, args, kwargs)``, which returns a pair ``(args, kwargs)``, or None.
        """
        return self._register("forward_pre", hook, prepend, with_kwargs=with_kwargs)

    def register_forward_hook(
        self,
        hook: Callable[..., PyTree],
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
        self, hook: Callable[..., PyTree], *, prepend: bool = False, mode: str = "host"
    ) -> RemovableHandle:
        """Call ``hook(block, grad_output)`` when the cotangents of the output are complete.

        It returns another tuple of them, or None.
        """
        return self._register("full_backward_pre", hook, prepend, mode)

    def register_full_backward_hook(
        self, hook: Callable[..., PyTree], *, prepend: bool = False, mode: str = "host"
    ) -> RemovableHandle:
        """Call ``hook(block, grad_input, grad_output)`` when the cotangents of the arguments are complete.

        It returns another tuple of them, or None.
        """
        return self._register("full_backward", hook, prepend, mode)


_KINDS = ("forward_pre", "forward", "full_backward_pre", "full_backward")


def _kept(old: _Value, new: _Value | None) -> _Value:
    return old if new is None else new


class _BlockHandle(RemovableHandle):
    __slots__ = ("_block",)

    def __init__(self, hook: BlockHook, block: Hookable):
        super().__init__(hook)
        self._block = block

    def remove(self) -> None:
        """End the registration; a second call does nothing."""
        if self._hook.active:
            super().remove()
            self._block._remove(self._hook)


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
def hookable(fun: Callable[..., PyTree]) -> Hookable:
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

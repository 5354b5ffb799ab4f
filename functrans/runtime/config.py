"""Options: values for the whole process, and overrides for one context.

`config.x = v` sets the value for the process; `config.patch(x=v)` overrides it in the running thread (or task) until
the block or the call ends. Options that affect tracing or compilation are part of `trace_key`, and so of the key
of every cache.

To add an option, write one line in `Config`.
"""

from __future__ import annotations

import difflib
import functools
import os
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from ..errors import ConfigError, UnknownOptionError
from .context import Override, new_lock
from .cores import usable_cores
from .options import AutocastOption, NamesOption, Option
from .passes import BY_NAME, PASSES, Pass
from .unusual import unusual

#: The most trace keys of which each is one object.
_MOST_KEYS = 1024


class Patch:
    """The overrides of a context, including outer ones, and their trace key until the process's values change."""

    __slots__ = ("key", "outer", "overrides", "version")

    def __init__(self, overrides: dict[str, Any], outer: Patch | None):
        self.overrides: dict[str, Any] = overrides if outer is None else {**outer.overrides, **overrides}
        self.outer = outer
        self.version = -1
        self.key: tuple[Any, ...] = ()


class OptionValues:
    """The values of the process. Separate from `Config`, whose `__getattr__` makes attribute access slow."""

    __slots__ = ("_keys", "current", "key", "lock", "patch", "values", "version")

    def __init__(self, values: dict[str, Any]):
        self.patch: ContextVar[Patch | None] = ContextVar("functrans_config_patch", default=None)
        self.current = self.patch.get
        self.values = values
        self.version = 0
        self.lock = new_lock()
        self._keys: dict[tuple[Any, ...], tuple[Any, ...]] = {}  # equal keys are one object
        self.key = self.key_with({})

    def set(self, name: str, value: Any) -> None:
        """Set the value for the process."""
        with self.lock:
            key = self.key_with({name: value})
            # Python runs no signal handler, and no other thread, between assignments that call nothing.
            self.values, self.key, self.version = {**self.values, name: value}, key, self.version + 1

    def key_with(self, overrides: dict[str, Any]) -> tuple[Any, ...]:
        """The trace key under these overrides."""
        values = {**self.values, **overrides}
        key = tuple([values[name] for name, option in _OPTIONS.items() if option.traced])
        key = (*key, values.get("autocast"))  # no option: `core.autocast` overrides it
        if values.get("timed"):  # no option: a profile is open
            key = (*key, "timed")
        if len(self._keys) >= _MOST_KEYS:  # a program that tries thousands of values of an option
            self._keys.clear()
        return self._keys.setdefault(key, key)

    def trace_key(self) -> tuple[Any, ...]:
        """The trace key of this context, cached because compiled functions need it at every call."""
        patch = self.current()
        if patch is None:
            return self.key
        if patch.version != self.version:
            version = self.version  # read first: a concurrent change makes the key stale, but not forever
            patch.key = self.key_with(patch.overrides)
            patch.version = version
        return patch.key

    def program_key(self) -> tuple[Any, ...]:
        """The trace key without what only kernels depend on: whether they are timed."""
        key = self.trace_key()
        return key[:-1] if key[-1] == "timed" else key


class Config:
    """The options of functrans, as ``functrans.config``.

    Parameters
    ----------
    environment : mapping of str to str
        The source of initial values.

    Notes
    -----
    An environment variable ``FUNCTRANS_<NAME>`` (for example ``FUNCTRANS_STRICT=1``) gives the initial
    value of the option; true and false are written ``1`` and ``0``, or ``true`` and ``false``.

    Attributes
    ----------
    {options}

    Raises
    ------
    ConfigError
        If an option is set to an invalid value.
    UnknownOptionError
        If the option does not exist. It is an `AttributeError`, and names the nearest option.

    Examples
    --------
    >>> with config.patch(strict=True, specialize_below=2):
    ...     config.strict, config.specialize_below
    (True, 2)
    >>> config.strict
    False
    """

    specialize_below = Option(
        16,
        "Extents and strides up to this one are compiled in as literals; larger ones are run-time parameters.",
    )
    strict = Option(
        False,
        "Compiled ``+ - * /`` and square roots equal NumPy's bit for bit: no contraction, no reordering, and scalar "
        "libm for all other functions.",
    )
    linalg_errors = Option(
        "raise",
        "What a failed decomposition does: raise `numpy.linalg.LinAlgError`, or fill its result with NaN.",
        choices=("raise", "nan"),
    )
    index_errors = Option(
        "raise",
        "What an index out of bounds does where no ``mode=`` says it: raise `IndexOutOfBoundsError`, or, as in JAX, "
        "read the nearest element and write nothing (`take` and `take_along_axis` give NaN). `functrans.as_jax` sets "
        "``'clamp'``.",
        choices=("raise", "clamp"),
    )
    backend = Option(
        "llvm",
        "How kernels are generated: as native code, or as readable Python source.",
        choices=("llvm", "python"),
    )
    partitioner = Option(
        "min_cut",
        "What the forward program of a `jit`-compiled function keeps for the backward program: the values from which "
        "that is fastest, by estimate; all that it reads; or only the arguments (and results of callbacks).",
        choices=("min_cut", "save_all", "recompute_all"),
    )
    activation_memory_budget = Option(
        1.0,
        "The most bytes that it keeps, besides the arguments, as a share of what ``partitioner='save_all'`` keeps. "
        "Below what the partitioner needs, values that are expensive to compute are computed again, too.",
        most=1,
    )
    memory_budget_solver = Option(
        "dp",
        "How the values to keep are chosen for such a budget: by dynamic programming, or the most expensive by byte "
        "first.",
        choices=("dp", "greedy"),
    )
    tape_limit = Option(
        1 << 32,
        "The most bytes that reverse mode through a loop of unknown length may store for each residual; beyond it "
        "`TapeLimitError` is raised.",
        least=1,
    )
    num_threads = Option(
        usable_cores(),
        "The most threads that share the long loops of a kernel; 1 for none besides the caller's. Sums depend on the "
        "number, in the last digits, and on nothing else.",
        least=1,
        shown="the number of cores that the process may use, or OMP_NUM_THREADS if that is less",
    )
    disable_jit = Option(False, "Run everything as Python and NumPy.")
    strict_ctx = Option(
        False,
        "Raise an error if a `Function` assigns an array to an attribute of its `ctx`, instead of treating it as "
        "saved: every array must then go through `save_for_backward`.",
    )
    dirty_residuals = Option(
        "copy",
        "What becomes of a residual saved for a derivative when its value is donated later by ``ctx.mark_dirty``: the "
        "old value is kept, or its use raises `InplaceModificationError`, as torch does.",
        choices=("copy", "error"),
    )
    debug_nans = Option(
        False,
        "Raise `NaNError` when a NaN appears, with the operation that made it and your line: in the result of an "
        "operation outside `jit`, in the results of a compiled function (which is then evaluated again, equation by "
        "equation, to locate it), and in the gradients that your own rules return. Operations that only move numbers "
        "(indexing, ``where``, ``sort``) pass an existing NaN on; arithmetic with it raises.",
        watches_operators=True,
    )
    debug_key_reuse = Option(
        False,
        "Raise `KeyReuseError` when a key of `functrans.random` is used twice, also in compiled functions, which then "
        "call Python at each use. Keys in the form of `PRNGKey` are not checked.",
    )
    debug_infs = Option(
        False,
        "Raise `InfError` when an infinity appears, as `debug_nans` does for NaN.",
        watches_operators=True,
    )
    check_tracer_leaks = Option(
        False,
        "Raise `UnexpectedTracerError` if a traced value outlives its trace, as soon as the trace ends. Slow.",
    )
    check_collectives = Option(
        False,
        "Before each collective, compare over the ranks of its axis what they call, and raise `CollectiveError` where "
        "they differ, instead of waiting for ever. All ranks must set it.",
        traced=False,
    )
    trace_limit = Option(
        2048,
        "The most programs that a process keeps for one jitted function: one for each combination of types, sizes and "
        "static arguments. Those not used for longest are dropped, and traced again when they are called; kernels that "
        "other programs use stay.",
        least=2,
        traced=False,
    )
    log_compiles = Option(
        False,
        "Log each compilation, with the types of the arguments and the time, as a warning of the logger ``functrans``.",
        traced=False,
    )
    no_tracing = Option(
        False,
        "Raise `NoTracingError` where a function would be traced: `jit` may only call programs that it has compiled.",
        traced=False,
    )
    backward_pass_autocast = AutocastOption(
        "same_as_forward",
        "The autocast of the code of custom rules (``backward``, ``bwd``) in a compiled region, where it is traced "
        "with the forward pass: that of the forward pass, none, or blocks of `autocast` by their keyword arguments, "
        "in a dict or a list of dicts. Outside compiled regions it is that where the pullback is called.",
        choices=("same_as_forward", "off"),
    )
    check_backward_autocast = Option(
        "off",
        "What happens when the pullback of a compiled function with custom rules is called under another autocast than "
        "``backward_pass_autocast`` assumes: nothing, a warning, or an `AutocastError`.",
        choices=("off", "warn", "error"),
        traced=False,
    )
    numpy_dtype_promotion = Option(
        "standard",
        "Whether arithmetic promotes arrays of different dtypes as NumPy does (as JAX does with ``jax_semantics``), by "
        "JAX's lattice in any case (beside floating-point arrays integers have no influence: float32 with int64 is "
        "float32), or raises `DtypeError`, where Python numbers are allowed if they do not change the dtype.",
        choices=("standard", "jax", "strict"),
        watches_operators=True,
    )
    numpy_rank_promotion = Option(
        "allow",
        "Whether arithmetic broadcasts arrays of different ranks (not numbers) silently, warns, or raises "
        "`ShapeError`.",
        choices=("allow", "warn", "raise"),
    )
    jax_semantics = Option(
        False,
        "Compute as JAX does where NumPy does otherwise: dtypes are promoted by JAX's lattice, functions of Python's "
        "numbers are weak, integers divided by 0 give JAX's numbers. Setting it also sets ``enable_x64`` to False, "
        "``index_errors`` to ``'clamp'`` and ``linalg_errors`` to ``'nan'``, which may then be set otherwise. "
        "`functrans.as_jax` sets it.",
        watches_operators=True,
    )
    enable_x64 = Option(
        True,
        "Whether arrays may have elements of 64 bits (128 if complex). False only with ``jax_semantics``: then "
        "arguments and results of these dtypes are converted to half of them.",
    )
    num_cpu_devices = Option(
        1,
        "Always 1: the CPU is one device, and each process of a mesh another.",
        fixed="functrans has one device in a process: see functrans.make_mesh for several processes",
        traced=False,
    )
    default_matmul_precision = Option(
        "", "Accepted, without effect: on a CPU, products have the precision of their dtype."
    )
    platforms = Option("cpu", "The only platform.", choices=("cpu",), traced=False)
    platform_name = Option("cpu", "The only platform.", choices=("cpu",), traced=False)
    traceback_filtering = Option(
        True,
        "Show your frames, without the frames of functrans between them, in errors that leave a transformation, a "
        "loop, a branch or a custom rule. Set it to False to see all.",
        traced=False,
    )
    without = NamesOption(
        frozenset(),
        "The names of optimisations to leave out, of those that `config.passes` lists. In the environment they stand "
        "with commas between them.",
        choices=tuple(BY_NAME),
        shown="none",
    )
    verify = Option(False, "Check every jaxpr between passes.", traced=False)
    checked = Option(
        False,
        "Detect writes of compiled code outside its memory: guard words surround every buffer of a kernel and are "
        "checked after each call; memory that is not yet written, or already released, is filled with NaN. "
        "`MemoryDamageError` names the kernel and the buffer. Kernels are compiled differently, and arguments and "
        "results are copied.",
    )
    cache = Option(
        True,
        "Keep compiled kernels on disk, where other processes find them.",
        traced=False,
    )
    cache_dir = Option(
        "",
        "The directory of that cache; the empty text stands for ``functrans`` in the user's cache directory.",
        traced=False,
    )
    cache_limit = Option(
        1 << 30,
        "The most bytes that the cache on disk may take; the kernels that were not used for longest are removed.",
        traced=False,
    )
    _store: OptionValues

    def __init__(self, environment: Mapping[str, str]):
        values = {}
        for name, option in _OPTIONS.items():
            variable = f"FUNCTRANS_{name.upper()}"
            text = environment.get(variable)
            where = f"environment variable {variable}"
            values[name] = option.default if text is None else option.checked(option.parsed(text), where)
        if values["jax_semantics"]:
            implied = _implied(_option("jax_semantics"), True)
            values |= {
                name: v for name, v in implied.items() if f"FUNCTRANS_{name.upper()}" not in environment
            }
        self._check_bits(values)
        self.__dict__["_store"] = OptionValues(values)  # __setattr__ takes options only

    def patch(self, **options: Any) -> Override:
        """Override options in this thread, within a block or during the calls of a function.

        Parameters
        ----------
        **options
            New values by option name.

        Returns
        -------
        context manager and decorator
            May be nested and reused. The previous values return however the block ends.

        Raises
        ------
        ConfigError, UnknownOptionError
            Immediately, before the block is entered.

        Notes
        -----
        A thread started inside the block does not see the patch: it uses the values of the process.
        Setting ``config.x`` inside a block that patches `x` changes the process, not the block.

        Examples
        --------
        >>> @config.patch(backend="python")
        ... def backend():
        ...     return config.backend
        >>> backend(), config.backend
        ('python', 'llvm')
        """
        overrides: dict[str, Any] = {}
        for name, value in options.items():
            overrides |= _implied(_option(name), value)
        overrides |= {name: _option(name).checked(value) for name, value in options.items()}
        self._check_bits({**self._values(), **overrides})
        return Override(self._store.patch, functools.partial(Patch, overrides))

    def update(self, name: str, value: Any) -> None:
        """Set an option for the process, also by JAX's name.

        Parameters
        ----------
        name : str
            With or without the prefix ``jax_``.
        value
            A valid value.

        Raises
        ------
        ConfigError
            If the option does not exist (the message names the nearest one), or the value is invalid.

        Examples
        --------
        >>> config.update("jax_debug_nans", True)
        >>> config.debug_nans, config.jax_debug_nans
        (True, True)
        >>> config.update("debug_nans", False)
        """
        try:
            option = _option(name)
        except UnknownOptionError as error:
            raise ConfigError(error.message) from None
        if option.name == "default_matmul_precision" and value is None:
            value = ""
        setattr(self, option.name, value)

    def read(self, name: str) -> Any:
        """The value of an option, also by JAX's name.

        Examples
        --------
        >>> config.read("jax_enable_x64")
        True
        """
        return getattr(self, _option(name).name)

    @property
    def passes(self) -> tuple[Pass, ...]:
        """The optimisations, in the order in which a program meets them; `without` turns them off by name.

        Examples
        --------
        >>> [p.name for p in config.passes if p.stage == "schedule"]
        ['reads_first', 'fusion', 'sharing']
        >>> with config.patch(without={"fusion", "sharing"}):
        ...     sorted(config.without)
        ['fusion', 'sharing']
        """
        return PASSES

    def runs(self, which: Pass) -> bool:
        """Whether an optimisation is on."""
        return which.name not in self.without

    def trace_key(self) -> tuple[Any, ...]:
        """The values of the options that affect tracing or compilation: part of the key of every cache."""
        return self._store.trace_key()

    def __getattr__(self, name: str) -> Any:
        option = _option(name)
        if option.name != name:  # JAX's name of it
            return getattr(self, option.name)
        raise AttributeError(name)  # a half-built object, which is being copied

    def __setattr__(self, name: str, value: Any) -> None:
        option = _option(name)
        implied = _implied(option, value)
        self._check_bits({**self._store.values, **implied, option.name: value})
        object.__setattr__(self, option.name, value)
        for other, its_value in implied.items():
            object.__setattr__(self, other, its_value)

    def _values(self) -> dict[str, Any]:
        """The values of all options in this context."""
        patch = self._store.current()
        return self._store.values if patch is None else {**self._store.values, **patch.overrides}

    def _check_bits(self, values: Mapping[str, Any]) -> None:
        """Raise `ConfigError` where 64 bits are off, but JAX's semantics are not on."""
        if values["enable_x64"] is False:
            if not values["jax_semantics"]:
                raise ConfigError(_X64)
            unusual.narrow = True

    def __dir__(self) -> list[str]:
        return [*_OPTIONS, "passes", "patch", "read", "runs", "trace_key", "update"]

    def __repr__(self) -> str:
        return f"Config({', '.join(f'{name}={getattr(self, name)!r}' for name in _OPTIONS)})"


_X64 = (
    "config.enable_x64 can only be True: functrans has 64-bit types, except with config.jax_semantics = True. For "
    "single precision, make the arguments float32 (dtype=float32, x.astype(float32)): what is computed from them is "
    "float32, too"
)
#: What `jax_semantics` sets other options to.
_IN_JAX = {"enable_x64": False, "index_errors": "clamp", "linalg_errors": "nan"}


def _implied(option: Option[Any], value: Any) -> dict[str, Any]:
    """The values of other options that follow from one: by `jax_semantics` JAX's, or the defaults."""
    if option.name != "jax_semantics":
        return {}
    return {
        name: _OPTIONS[name].checked(jaxs if value else _OPTIONS[name].default)
        for name, jaxs in _IN_JAX.items()
    }


_OPTIONS: dict[str, Option[Any]] = {name: o for name, o in vars(Config).items() if isinstance(o, Option)}
Config.__doc__ = (Config.__doc__ or "").replace(
    "    {options}", "\n".join(option.described() for option in _OPTIONS.values())
)


#: JAX's names, besides those that only have the prefix ``jax_``.
_JAX_NAMES = {
    "jax_compilation_cache_dir": "cache_dir",
    "jax_compilation_cache_max_size": "cache_limit",
    "jax_enable_compilation_cache": "cache",
    "jax_enable_checks": "verify",
}


def _option(name: str) -> Option[Any]:
    """The option with that name, perhaps JAX's; raises an `UnknownOptionError` that names the nearest one."""
    own = name if name in _OPTIONS else _JAX_NAMES.get(name) or name.removeprefix("jax_")
    if own in _OPTIONS:
        return _OPTIONS[own]
    near = difflib.get_close_matches(own, _OPTIONS, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"the options are {', '.join(_OPTIONS)}"
    raise UnknownOptionError(f"config has no option {name!r}: {hint}")


config = Config(os.environ)
trace_key = config._store.trace_key  # the same as `config.trace_key`, in half the time
program_key = config._store.program_key


def is_timed() -> bool:
    """Whether kernels that are compiled now count their time."""
    return bool(config._store.values.get("timed"))


def set_timed(value: bool) -> None:
    """Let kernels count their time from now on, in all threads, or no more: these have programs of their own."""
    config._store.set("timed", value)

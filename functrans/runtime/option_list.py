"""The options of functrans: what each means, its default and its valid values. To add one, write one line here."""

from __future__ import annotations

from .cores import usable_cores
from .options import AutocastOption, NamesOption, Option
from .passes import BY_NAME


class OptionList:
    """The options, as attributes; `config.Config` has their values."""

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


#: All of them by name, in the order of their documentation.
OPTIONS: dict[str, Option[object]] = {
    name: o for name, o in vars(OptionList).items() if isinstance(o, Option)
}

"""The optimisations, in the order in which a program meets them. Each can be turned off: `config.without`.

A record states what its pass does and what may be assumed before it. With all passes off a program is slow, and right.
`tests/properties/test_without.py` turns each off in random programs, and ``python -m functrans.bisect`` finds the one
that changes a script's result.

To add a pass, add its record here, and test ``config.runs(RECORD)`` where it begins.
"""

from __future__ import annotations

from dataclasses import field

from .records import dataclass

#: The stages: what a pass reads and writes.
STAGES = {
    "residuals": "What reverse mode stores for a loop, and what it computes again: bodies of loops and branches.",
    "jaxpr": "Jaxpr to jaxpr, in `lowering/jaxpr/simplify.py`.",
    "schedule": "Which values to store, which of them share loops and memory: decided before loops are written.",
    "loops": "Loop IR, while it is written or afterwards.",
    "code": "From outlined loop IR to machine code: the same text of a kernel, compiled otherwise.",
}


@dataclass(frozen=True)
class Pass:
    """One optimisation.

    Attributes
    ----------
    name : str
        As in ``config.without``.
    stage : str
        One of `STAGES`.
    doc : str
        What it does, in a sentence.
    assumes : str
        What holds before it, besides that the program is valid.
    exact : bool
        Whether results are the same bit for bit without it; otherwise they differ by rounding.
    where : str
        The module that does it.
    """

    name: str
    stage: str
    doc: str
    where: str
    assumes: str = ""
    exact: bool = field(default=True, kw_only=True)


# --- residuals ----------------------------------------------------------------------------------------------

HOISTING = Pass(
    "hoisting",
    "residuals",
    "Compute what is the same in each iteration before the loop.",
    "control.bodies.building",
)
READ_BACK = Pass(
    "read_back",
    "residuals",
    "Read elements that a loop does not overwrite later back from its last array, instead of storing them.",
    "control.residuals.read_back",
    "The body is not linearized yet.",
)
ECONOMY = Pass(
    "economy",
    "residuals",
    "Store the values of an iteration from which arithmetic recomputes the others fastest, not all that is read.",
    "control.residuals.partitioner",
    "The body is linearized; marks of `read_back` are still there.",
)
REWINDING = Pass(
    "rewinding",
    "residuals",
    "Log the elements that a loop overwrites, and restore its arrays one iteration after the other, instead of storing "
    "an array in each.",
    "control.residuals.rewinding",
    "Residuals are chosen.",
)
COUNTING = Pass(
    "counting",
    "residuals",
    "Compute a residual that grows by the same number in each iteration of a ``while_loop`` from the iteration's "
    "number, instead of storing it on a tape.",
    "control.residuals.counting",
    "Residuals are chosen.",
)
TOTALS = Pass(
    "totals",
    "residuals",
    "Add to the cotangent of a large array in place: a loop's body receives the sum of the other iterations.",
    "transforms.transpose",
    exact=False,
)
LANES = Pass(
    "lanes",
    "residuals",
    "Run the lanes of a batched loop that would copy a carried array one after the other.",
    "control.loops.scan_lanes",
)

# --- jaxpr --------------------------------------------------------------------------------------------------

FUSED_SCANS = Pass(
    "fused_scans",
    "jaxpr",
    "Join a scan to the only one that reads its large rows.",
    "lowering.jaxpr.fused_scans",
    "Calls are inlined.",
)
ALGEBRA = Pass(
    "algebra",
    "jaxpr",
    "Apply the exact identities that primitives name (`Primitive.simplify`), and compute what only literals make.",
    "lowering.jaxpr.simplify",
    "Calls are inlined.",
)
CARRIED_VALUES = Pass(
    "carried_values",
    "jaxpr",
    "Carry what an iteration computes from its carry, where the iteration before computed it from the same numbers.",
    "control.residuals.carried_values",
    "The bodies are simplified.",
)
COMMON = Pass(
    "common",
    "jaxpr",
    "Compute equal equations once.",
    "lowering.jaxpr.simplify",
    "Calls are inlined.",
)
IN_PLACE_SUMS = Pass(
    "in_place_sums",
    "jaxpr",
    "Add the nonzero parts of mostly zero arrays to a total: ``x + scatter_add(0, u)`` is ``scatter_add(x, u)``.",
    "lowering.jaxpr.sparse_sums",
    exact=False,
)
WINDOWS = Pass(
    "windows",
    "jaxpr",
    "Write into a slice that is written back directly into the array.",
    "lowering.jaxpr.windows",
)
NARROWING = Pass(
    "narrowing",
    "jaxpr",
    "Leave out results of loops and branches that nothing reads, with what only they need.",
    "passes.toolkit",
)
SUMS_OF_WINDOWS = Pass(
    "sums_of_windows",
    "jaxpr",
    "Compute long sums of windows of arrays element by element, as one equation.",
    "lowering.jaxpr.sparse_sums",
    exact=False,
)
REPEATED_SUMS = Pass(
    "repeated_sums",
    "jaxpr",
    "Compute sums of equal elements, such as those of a gradient of ``tile``, as products.",
    "lowering.jaxpr.repeated_sums",
    exact=False,
)
MIRRORED_SUMS = Pass(
    "mirrored_sums",
    "jaxpr",
    "Compute the sums of a symmetric or antisymmetric array along its two axes once.",
    "lowering.jaxpr.mirrored_sums",
    exact=False,
)
RESHAPES = Pass(
    "reshapes",
    "jaxpr",
    "Move reshapes that merge axes to inputs, and to values that are in memory anyway.",
    "lowering.jaxpr.reshapes",
)
COUNTERS = Pass(
    "counters",
    "jaxpr",
    "Replace rows and carries of a scan that count by the loop's number.",
    "lowering.jaxpr.counters",
)

# --- schedule -----------------------------------------------------------------------------------------------

READS_FIRST = Pass(
    "reads_first",
    "schedule",
    "Read a value before the block that may overwrite it, so that the block needs no copy.",
    "lowering.loops.from_jaxpr.order",
)
FUSION = Pass(
    "fusion",
    "schedule",
    "Compute several values in one nest of loops; what one iteration alone needs stays in a register.",
    "lowering.loops.from_jaxpr.fuse",
    exact=False,
)
MIRRORED_PAIRS = Pass(
    "mirrored_pairs",
    "schedule",
    "Compute what is symmetric or antisymmetric in two axes for half of the pairs, and add it to the sums of both "
    "halves.",
    "lowering.loops.from_jaxpr.pairs",
    "Loops are fused.",
    exact=False,
)
SHARING = Pass(
    "sharing",
    "schedule",
    "Write a value into the memory of one that is read there for the last time.",
    "lowering.loops.from_jaxpr.aliasing",
)
# --- loops --------------------------------------------------------------------------------------------------

COUNTED_LOOPS = Pass(
    "counted_loops",
    "loops",
    "Make a ``while_loop`` that counts to a limit a counted loop.",
    "control.loops.while_kernel",
)
GROUPS = Pass(
    "groups",
    "loops",
    "Run lanes of small ``while_loop``s side by side, as vectors.",
    "control.loops.vectorized_while",
)
RANGES = Pass(
    "ranges",
    "loops",
    "Leave out tests of indices that are in bounds by what loops and conditions say.",
    "passes.indices.int_ranges",
)
INTERIOR = Pass(
    "interior",
    "loops",
    "Give the ends of an axis separate loops, so that the loop over the middle has no conditions.",
    "lowering.loops.from_jaxpr.nests",
)
VERSIONS = Pass(
    "versions",
    "loops",
    "Test indices that grow evenly before the loop, at its first and its last number.",
    "lowering.loops.passes.versions",
    "What the builder knows of indices is still there.",
)
LATE_READS = Pass(
    "late_reads",
    "loops",
    "Overwrite an array in a stencil, with the old elements that are still needed in variables.",
    "lowering.loops.passes.late_reads",
    "Stencils write working copies.",
)
ROW_BLOCKS = Pass(
    "row_blocks",
    "loops",
    "Run products with a tall matrix, and the loops over its rows, block by block of its rows, so that it is read from "
    "memory once; of batches of products, and of the scores of attention, no more than a part is in memory.",
    "lowering.loops.passes.row_blocks",
    "Loops over adjacent axes are not merged yet.",
    exact=False,
)
COLLAPSING = Pass(
    "collapsing",
    "loops",
    "Merge nested loops over adjacent axes that are always used together.",
    "lowering.loops.passes.collapse",
    exact=False,
)
STRIPS = Pass(
    "strips",
    "loops",
    "Read an array against its rows in strips of eight columns.",
    "lowering.loops.passes.strips",
)
HAND_ON = Pass(
    "hand_on",
    "loops",
    "Hand what an iteration stores and the next one reads on in a variable.",
    "lowering.loops.passes.hand_on",
    "The kernel may reorder sums.",
)
HOLDING = Pass(
    "holding",
    "loops",
    "Keep an element that a loop only reads, or only adds to, in a variable.",
    "lowering.loops.passes.hold",
    "The kernel may reorder sums.",
    exact=False,
)
TEAMS = Pass(
    "teams",
    "loops",
    "Divide long loops among threads.",
    "lowering.loops.passes.parallel",
    "``config.num_threads`` is at least 2.",
    exact=False,
)
BLOCKS = Pass(
    "blocks",
    "loops",
    "Compute long sums in blocks, so that their error does not grow with the number of elements.",
    "lowering.loops.passes.blocked",
    exact=False,
)
SCRATCH = Pass(
    "scratch",
    "loops",
    "Let temporary arrays that are not needed at the same time share memory, and keep small ones on the stack.",
    "lowering.loops.passes.plan",
)

# --- code ---------------------------------------------------------------------------------------------------

PARTS = Pass(
    "parts",
    "code",
    "Compile large kernels as functions of a few loops each; equal ones are shared.",
    "lowering.loops.passes.split_functions",
    exact=False,
)
UNROLLING = Pass(
    "unrolling",
    "code",
    "Unroll loops that branch much, make vectors of short rows, and count brief loops without a test for interrupts.",
    "lowering.llvm.statements",
    exact=False,
)
VECTOR_MATHS = Pass(
    "vector_maths",
    "code",
    "Use vectorized mathematical functions: functrans's own, or libmvec's.",
    "lowering.llvm.maths.choice",
    exact=False,
)
OWN_PRODUCTS = Pass(
    "own_products",
    "code",
    "Multiply matrices by code of functrans's own, on processors with AVX-512.",
    "lowering.llvm.gemm",
    exact=False,
)

LLVM_PASSES = Pass(
    "llvm_passes",
    "code",
    "Run LLVM's passes of level 3, which vectorize loops, and its optimizing code generator. Without them kernels are "
    "slower, and compile several times faster.",
    "lowering.llvm.objects",
    exact=False,
)

PASSES: tuple[Pass, ...] = tuple(x for x in list(globals().values()) if type(x) is Pass)
BY_NAME = {p.name: p for p in PASSES}
#: The names of those that the text of a kernel does not show.
OF_CODE = frozenset(p.name for p in PASSES if p.stage == "code")

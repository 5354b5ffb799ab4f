"""Matrix products as LLVM text, for processors on which SciPy's BLAS makes poor use of vectors.

OpenBLAS chooses its kernels by the processor's name, and uses 256-bit vectors on processors that it does not know. On a
processor with AVX-512 these products take half the time. They also help for small and narrow matrices, since they read
data in place if possible, while BLAS packs both matrices.

Each element of the result is a sum in index order, in blocks of `_BLOCK_DEPTH`, whatever its position and the size of
the matrix. The code is compiled once per process, with the first kernel that multiplies matrices.

References
----------
K. Goto, R. A. van de Geijn, Anatomy of high-performance matrix multiplication, ACM TOMS 34 (2008), article 12.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field

from ...runtime.context import new_lock
from ...runtime.records import dataclass
from ..blas import GET_THREADS, address, thread_function
from ..processor import processor
from .objects import LoadedCode, compile_object, load_object
from .store import obtain

#: An AVX-512 register.
_VECTOR_BYTES = 64
# A tile of the result stays in registers: its 8 * 2 sums take 16 of the 32. The others hold the two vectors of the
# right matrix, and elements of the left one.
_TILE_ROWS = 8
_TILE_VECTORS = 2
#: How many products are added before a tile is written: so many rows of the right matrix, two vectors wide, are 32 KiB,
#: and stay in the first cache while the tile moves down.
_BLOCK_DEPTH = 256
#: The rows of a block of the left matrix: with `_BLOCK_DEPTH` numbers each, 512 KiB at most, which the second cache
#: holds.
_BLOCK_ROWS = 256
#: Packing the right matrix pays if more tiles than this read what was packed, and if its rows are further apart than so
#: many tiles are wide.
_TILES_UNPACKED = 4
#: Up to this number of multiplications one thread is as fast as BLAS with many.
_WORK_OF_ONE_THREAD = 2.0**20
_TYPES = {"s": ("float", 4), "d": ("double", 8)}
_loading = new_lock()
_ATTRIBUTES = (
    f'nounwind "prefer-vector-width"="{8 * _VECTOR_BYTES}" "min-legal-vector-width"="{8 * _VECTOR_BYTES}"'
)


def own_gemm(letter: str) -> int:
    """The address of our product, which has the signature of ``sgemm`` or ``dgemm``."""
    with _loading:
        return _own_product(letter).address


@functools.cache
def _own_product(letter: str) -> LoadedCode:
    threads = thread_function(GET_THREADS)
    text = gemm_text(letter, bool(threads))
    addresses = {_of_blas(letter): address(f"{letter}gemm"), GET_THREADS: threads}
    # No optimisation pass would improve it: 30 ms instead of 100.
    code, _ = obtain(
        text,
        processor(),
        f"{letter}gemm",
        lambda: compile_object(text, _own(letter), processor(), "code"),
        lambda code: load_object(code, addresses),
        lasting="",
    )
    return code


def _own(letter: str) -> str:
    return f"functrans.own.{letter}gemm"


def _of_blas(letter: str) -> str:
    return f"functrans.blas.{letter}gemm"


# --- text ---------------------------------------------------------------------------------------------------


@dataclass
class _Text:
    """The body of a function under construction."""

    lines: list[str] = field(default_factory=list)
    block: str = "entry"
    count: int = 0

    def __post_init__(self) -> None:
        self.lines.append("entry:")

    def new(self, code: str) -> str:
        """Append an instruction, and name its value."""
        self.count += 1
        self.lines.append(f"  %v{self.count} = {code}")
        return f"%v{self.count}"

    def do(self, code: str) -> None:
        """Append an instruction without a value."""
        self.lines.append(f"  {code}")

    def label(self, name: str) -> str:
        """A name for a block."""
        self.count += 1
        return f"{name}{self.count}"

    def mark(self, label: str) -> None:
        """Start a basic block; the previous one falls through unless it has ended."""
        self.lines.append(f"{label}:")
        self.block = label

    def add(self, x: str, y: str | int) -> str:
        """The sum of two integers."""
        return self.new(f"add nsw i64 {x}, {y}")

    def mul(self, x: str, y: str | int) -> str:
        """The product of two integers."""
        return self.new(f"mul nsw i64 {x}, {y}")

    def least(self, x: str | int, y: str | int) -> str:
        """The smaller of two integers."""
        return self.new(f"call i64 @llvm.smin.i64(i64 {x}, i64 {y})")

    def at(self, t: str, base: str, *offsets: str | int) -> str:
        """The address of an element."""
        for offset in offsets:
            base = self.new(f"getelementptr {t}, ptr {base}, i64 {offset}")
        return base

    @contextmanager
    def loop(self, stop: str | int, step: int, start: str | int = 0) -> Iterator[str]:
        """A loop over integers."""
        before, head, body, done = self.block, *map(self.label, ("head", "body", "done"))
        self.do(f"br label %{head}")
        self.mark(head)
        i, after = f"%{self.label('i')}", f"%{self.label('next')}"
        place = len(self.lines)
        inside = self.new(f"icmp slt i64 {i}, {stop}")
        self.do(f"br i1 {inside}, label %{body}, label %{done}")
        self.mark(body)
        yield i
        self.do(f"{after} = add nsw i64 {i}, {step}")
        self.do(f"br label %{head}")
        self.lines.insert(place, f"  {i} = phi i64 [ {start}, %{before} ], [ {after}, %{self.block} ]")
        self.mark(done)

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """Statements that run only if a condition holds."""
        then, done = self.label("then"), self.label("done")
        self.do(f"br i1 {condition}, label %{then}, label %{done}")
        self.mark(then)
        yield
        self.do(f"br label %{done}")
        self.mark(done)


@dataclass(frozen=True)
class _Type:
    """A number type, and its vectors."""

    letter: str

    @property
    def number(self) -> str:
        return _TYPES[self.letter][0]

    @property
    def size(self) -> int:
        return _TYPES[self.letter][1]

    @property
    def lanes(self) -> int:
        return _VECTOR_BYTES // self.size

    @property
    def vector(self) -> str:
        return f"<{self.lanes} x {self.number}>"

    @property
    def mask(self) -> str:
        return f"<{self.lanes} x i1>"

    @property
    def suffix(self) -> str:
        return f"v{self.lanes}f{8 * self.size}"

    def load(self, f: _Text, place: str, mask: str) -> str:
        """Load the elements of a vector selected by a mask; zero for the others."""
        return f.new(
            f"call {self.vector} @llvm.masked.load.{self.suffix}.p0(ptr {place}, i32 {self.size}, "
            f"{self.mask} {mask}, {self.vector} zeroinitializer)"
        )

    def store(self, f: _Text, x: str, place: str, mask: str) -> None:
        """Store the elements of a vector selected by a mask."""
        f.do(
            f"call void @llvm.masked.store.{self.suffix}.p0({self.vector} {x}, ptr {place}, i32 {self.size}, "
            f"{self.mask} {mask})"
        )

    def masks(self, f: _Text, columns: str, vectors: int) -> list[str]:
        """For each vector, which elements are among the first columns."""
        words = f"<{self.lanes} x i32>"
        narrow = f.new(f"trunc i64 {columns} to i32")
        all_columns = _spread(f, "i32", narrow, self.lanes)
        return [
            f.new(
                f"icmp slt {words} <{', '.join(f'i32 {v * self.lanes + i}' for i in range(self.lanes))}>, {all_columns}"
            )
            for v in range(vectors)
        ]


def _spread(f: _Text, t: str, x: str, lanes: int) -> str:
    """A vector with all elements equal."""
    first = f.new(f"insertelement <{lanes} x {t}> poison, {t} {x}, i32 0")
    zeros = f"<{lanes} x i32> zeroinitializer"
    return f.new(f"shufflevector <{lanes} x {t}> {first}, <{lanes} x {t}> poison, {zeros}")


def gemm_text(letter: str, threads: bool) -> str:
    """A module with ``functrans.own.sgemm`` or ``functrans.own.dgemm``, which have the signatures of BLAS's.

    Parameters
    ----------
    letter : {'s', 'd'}
    threads : bool
        Whether a function is available that returns BLAS's number of threads.
    """
    t = _Type(letter)
    pointers = ", ".join(["ptr"] * 13)
    declared = [
        f"declare void @{_of_blas(letter)}({pointers})",
        f"declare i32 @{GET_THREADS}()" if threads else "",
        "declare i64 @llvm.smin.i64(i64, i64)",
        f"declare {t.vector} @llvm.masked.load.{t.suffix}.p0(ptr, i32, {t.mask}, {t.vector})",
        f"declare void @llvm.masked.store.{t.suffix}.p0({t.vector}, ptr, i32, {t.mask})",
    ]
    tiles = [_tile(t, vectors) for vectors in range(1, _TILE_VECTORS + 1)]
    return "\n".join([*declared, *tiles, _product(t, threads)])


# --- a tile -------------------------------------------------------------------------------------------------


def _tile(t: _Type, vectors: int) -> str:
    """The product of a few rows by a few columns, which is stored, or added to the existing numbers.

    Rows after the last one are computed like the last one, and not stored.
    """
    f = _Text()
    masks = t.masks(f, "%columns", vectors)
    rows = [f.mul("%row", f.least("%last", i)) for i in range(_TILE_ROWS)]
    body, done = f.label("body"), f.label("done")
    f.do(f"br label %{body}")
    f.mark(body)
    f.do(f"%n = phi i64 [ %depth, %entry ], [ %fewer, %{body} ]")
    f.do(f"%x = phi ptr [ %a, %entry ], [ %x.next, %{body} ]")
    f.do(f"%y = phi ptr [ %b, %entry ], [ %y.next, %{body} ]")
    cells = [(i, v) for i in range(_TILE_ROWS) for v in range(vectors)]
    for i, v in cells:
        f.do(f"%sum{i}.{v} = phi {t.vector} [ zeroinitializer, %entry ], [ %more{i}.{v}, %{body} ]")
    ys = [t.load(f, f.at(t.number, "%y", v * t.lanes), masks[v]) for v in range(vectors)]
    for i in range(_TILE_ROWS):
        x = _spread(f, t.number, f.new(f"load {t.number}, ptr {f.at(t.number, '%x', rows[i])}"), t.lanes)
        for v in range(vectors):
            product = f.new(f"fmul contract {t.vector} {x}, {ys[v]}")
            f.do(f"%more{i}.{v} = fadd contract {t.vector} %sum{i}.{v}, {product}")
    f.do("%fewer = sub nsw i64 %n, 1")
    f.do(f"%x.next = getelementptr {t.number}, ptr %x, i64 %step")
    f.do(f"%y.next = getelementptr {t.number}, ptr %y, i64 %b_row")
    f.do(f"br i1 {f.new('icmp sgt i64 %fewer, 0')}, label %{body}, label %{done}")
    f.mark(done)
    yes, no, end = f.label("add"), f.label("set"), f.label("end")
    f.do(f"br i1 %add, label %{yes}, label %{no}")
    for label in (yes, no):
        f.mark(label)
        for i in range(_TILE_ROWS):
            if i:
                following = f.label("row")
                f.do(f"br i1 {f.new(f'icmp slt i64 %last, {i}')}, label %{end}, label %{following}")
                f.mark(following)
            for v in range(vectors):
                place, x = f.at(t.number, "%c", f.mul("%c_row", i), v * t.lanes), f"%more{i}.{v}"
                if label == yes:
                    x = f.new(f"fadd {t.vector} {t.load(f, place, masks[v])}, {x}")
                t.store(f, x, place, masks[v])
        f.do(f"br label %{end}")
    f.mark(end)
    f.do("ret void")
    arguments = "ptr %a, i64 %row, i64 %step, ptr %b, i64 %b_row, ptr noalias %c, i64 %c_row"
    arguments += ", i64 %depth, i64 %last, i64 %columns, i1 %add"
    return _function(f"internal void @functrans.tile{vectors}({arguments}) noinline", f)


def _function(head: str, f: _Text) -> str:
    return "\n".join([f"define {head} {_ATTRIBUTES} {{", *f.lines, "}"])


# --- all ----------------------------------------------------------------------------------------------------


def _product(t: _Type, threads: bool) -> str:
    """The whole product, as in BLAS: column-major matrices C = A B, which are row-major C' = B' A'."""
    f = _Text()
    f.do(f"%packed = alloca [{_BLOCK_DEPTH * _TILE_VECTORS * t.lanes} x {t.number}], align {_VECTOR_BYTES}")
    columns, rows, depth, lda, ldb, ldc = (
        f.new(f"sext i32 {f.new(f'load i32, ptr %{p}')} to i64") for p in ("m", "n", "k", "lda", "ldb", "ldc")
    )
    beta = f.new(f"load {t.number}, ptr %beta")
    adds = f.new(f"fcmp oeq {t.number} {beta}, 1.0")
    own, other = f.label("own"), f.label("other")
    f.do(f"br i1 {_is_ours(t, f, (rows, columns, depth), beta, adds, threads)}, label %{own}, label %{other}")
    f.mark(other)
    names = ("transa", "transb", "m", "n", "k", "alpha", "a", "lda", "b", "ldb", "beta", "c", "ldc")
    f.do(f"call void @{_of_blas(t.letter)}({', '.join(f'ptr %{name}' for name in names)})")
    f.do("ret void")
    f.mark(own)
    flat = [_is_plain(f, name) for name in ("transa", "transb")]
    y_row, y_column = _chosen(f, flat[0], lda, 1), _chosen(f, flat[0], 1, lda)
    x_row, x_column = _chosen(f, flat[1], ldb, 1), _chosen(f, flat[1], 1, ldb)
    wide = _TILE_VECTORS * t.lanes
    direct = f.new(
        f"or i1 {f.new(f'icmp sle i64 {y_row}, {_TILES_UNPACKED * wide}')}, "
        f"{f.new(f'icmp sle i64 {rows}, {_TILES_UNPACKED * _TILE_ROWS}')}"
    )
    direct = f.new(f"and i1 {flat[0]}, {direct}")
    with f.loop(depth, _BLOCK_DEPTH) as k, f.loop(rows, _BLOCK_ROWS) as top, f.loop(columns, wide) as j:
        deep = f.least(_BLOCK_DEPTH, f.new(f"sub nsw i64 {depth}, {k}"))
        bottom = f.least(rows, f.add(top, _BLOCK_ROWS))
        some = f.least(wide, f.new(f"sub nsw i64 {columns}, {j}"))
        add = f.new(f"or i1 {adds}, {f.new(f'icmp sgt i64 {k}, 0')}")
        y = f.at(t.number, "%a", f.mul(k, y_row), f.mul(j, y_column))
        with f.when(f.new(f"xor i1 {direct}, true")):
            _pack(t, f, y, (y_row, y_column), (deep, some), flat[0])
        y = f.new(f"select i1 {direct}, ptr {y}, ptr %packed")
        row = _chosen(f, direct, y_row, wide)
        narrow = f.new(f"icmp sle i64 {some}, {t.lanes}")
        with f.loop(bottom, _TILE_ROWS, top) as i:
            last = f.least(_TILE_ROWS - 1, f.new(f"sub nsw i64 {f.add(rows, -1)}, {i}"))
            x = f.at(t.number, "%b", f.mul(i, x_row), f.mul(k, x_column))
            place = f.at(t.number, "%c", f.mul(i, ldc), j)
            tile = f.new(f"select i1 {narrow}, ptr @functrans.tile1, ptr @functrans.tile{_TILE_VECTORS}")
            f.do(
                f"call void {tile}(ptr {x}, i64 {x_row}, i64 {x_column}, ptr {y}, i64 {row}, ptr {place}, "
                f"i64 {ldc}, i64 {deep}, i64 {last}, i64 {some}, i1 {add})"
            )
    f.do("ret void")
    return _function(f"void @{_own(t.letter)}({', '.join(f'ptr %{name}' for name in names)})", f)


def _is_ours(t: _Type, f: _Text, extents: tuple[str, str, str], beta: str, adds: str, threads: bool) -> str:
    """Whether to compute it here: not if BLAS has threads for it, or if there are factors."""
    unscaled = f.new(f"fcmp oeq {t.number} {f.new(f'load {t.number}, ptr %alpha')}, 1.0")
    sets = f.new(f"fcmp oeq {t.number} {beta}, 0.0")
    simple = f.new(f"and i1 {unscaled}, {f.new(f'or i1 {sets}, {adds}')}")
    simple = f.new(f"and i1 {simple}, {f.new(f'icmp sgt i64 {extents[2]}, 0')}")
    rows, columns, depth = (f.new(f"sitofp i64 {x} to double") for x in extents)
    work = f.new(f"fmul double {f.new(f'fmul double {rows}, {columns}')}, {depth}")
    alone = f.new(f"fcmp ole double {work}, {_WORK_OF_ONE_THREAD}")
    if threads:
        one = f.new(f"icmp sle i32 {f.new(f'call i32 @{GET_THREADS}()')}, 1")
        alone = f.new(f"or i1 {alone}, {one}")
    return f.new(f"and i1 {simple}, {alone}")


def _is_plain(f: _Text, name: str) -> str:
    """Whether a matrix is not transposed, ``'N'`` or ``'n'``."""
    letter = f.new(f"load i8, ptr %{name}")
    small = f.new(f"or i8 {letter}, {ord('n') - ord('N')}")
    return f.new(f"icmp eq i8 {small}, {ord('n')}")


def _chosen(f: _Text, condition: str, x: str | int, y: str | int) -> str:
    return f.new(f"select i1 {condition}, i64 {x}, i64 {y}")


def _pack(t: _Type, f: _Text, y: str, strides: tuple[str, str], extents: tuple[str, str], flat: str) -> None:
    """Pack rows of a few columns side by side."""
    (row, column), (deep, some) = strides, extents
    wide = _TILE_VECTORS * t.lanes
    by_rows, by_columns, done = (f.label(name) for name in ("rows", "columns", "done"))
    masks = t.masks(f, some, _TILE_VECTORS)
    f.do(f"br i1 {flat}, label %{by_rows}, label %{by_columns}")
    f.mark(by_rows)
    with f.loop(deep, 1) as p:
        source, target = f.at(t.number, y, f.mul(p, row)), f.at(t.number, "%packed", f.mul(p, wide))
        for v, mask in enumerate(masks):
            x = t.load(f, f.at(t.number, source, v * t.lanes), mask)
            f.do(f"store {t.vector} {x}, ptr {f.at(t.number, target, v * t.lanes)}")
    f.do(f"br label %{done}")
    f.mark(by_columns)
    with f.loop(some, 1) as j:
        source = f.at(t.number, y, f.mul(j, column))
        with f.loop(deep, 1) as p:
            x = f.new(f"load {t.number}, ptr {f.at(t.number, source, p)}")
            f.do(f"store {t.number} {x}, ptr {f.at(t.number, '%packed', f.mul(p, wide), j)}")
    f.do(f"br label %{done}")
    f.mark(done)

"""Make the LLVM text of what is written in C: ``python -m functrans.lowering.llvm.c.generate``.

It needs clang of version `CLANG`, ``clang-22`` or ``clang`` on the path. Only developers run it, after a change of
a C file; the texts are files of the repository. A test compares both where that clang is there.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

#: The version of clang, since the text differs from one to the next.
CLANG = 22
FOLDER = Path(__file__).parent
#: The texts, each with its source and the options that it needs.
TEXTS: dict[str, tuple[str, ...]] = {
    "pool.ll": ("pool.c",),
    "pool_serial.ll": ("pool.c", "-DSERIAL"),
    "call.ll": ("call.c",),
    "memory.ll": ("memory.c",),
}
#: The target is one of those that the text is for: integers and pointers are passed alike. Names of values stay.
_OPTIONS = [
    *(
        "--target=x86_64-unknown-linux-gnu",
        "-std=c17",
        "-O1",
        "-ffreestanding",
        "-Wall",
        "-Wextra",
        "-Werror",
    ),
    *(
        "-fno-stack-protector",
        "-fno-pic",
        "-fno-ident",
        "-fno-discard-value-names",
        "-emit-llvm",
        "-S",
        "-o",
        "-",
    ),
]
#: What holds for one target, or serves optimisations that are over. Older releases of LLVM do not know some of it, and
#: ``zeroext`` would say of the kernels' functions of type i1, which are LLVM text, what only C's functions do.
_WORDS = re.compile(
    r" (?:dso_local|local_unnamed_addr|unnamed_addr|noundef|nonnull|zeroext|signext|readonly|writeonly|readnone"
    r"|noalias|(?:captures|range|memory|dereferenceable)\([^()]*(?:\([^()]*\)[^()]*)*\)|#\d+)(?=[ ,)\n]|$)"
)
_LINES = re.compile(
    r"; ModuleID|; Function Attrs|source_filename|target |attributes #|!|  (?:tail )?call void @llvm\.lifetime"
    r"|declare void @llvm\.lifetime"
)


def clang() -> str | None:
    """The path of a clang of the right version, or None."""
    for name in (f"clang-{CLANG}", "clang"):
        path = shutil.which(name)
        if path and f"clang version {CLANG}." in _output(path, "--version"):
            return path
    return None


def generated(compiler: str, name: str) -> str:
    """The text of one of `TEXTS`."""
    source, *options = TEXTS[name]
    raw = _output(compiler, *_OPTIONS, *options, str(FOLDER / source))
    head = f"; Generated from {source} by clang {CLANG}: python -m functrans.lowering.llvm.c.generate"
    return neutral(f"{head}\n\n{raw}")


def neutral(text: str) -> str:
    """LLVM text without what clang says of its target, and without attributes and metadata."""
    lines: list[str] = []
    for line in text.splitlines():
        if _LINES.match(line):
            continue
        line = re.sub(r"(, !\w+(?:\.\w+)* !\d+)+$", "", line)
        line = re.sub(r"\s+; preds = .*", "", line)
        line = re.sub(r"\b(?:tail|musttail) call ", "call ", line)
        line = _WORDS.sub("", line).rstrip()
        if line or (lines and lines[-1]):
            lines.append(line)
    return "\n".join(lines).strip("\n") + "\n"


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def main() -> None:
    """Write the files."""
    compiler = clang()
    if compiler is None:
        raise SystemExit(
            f"clang {CLANG} is needed: the text of other versions differs (see https://apt.llvm.org)"
        )
    for name in TEXTS:
        (FOLDER / name).write_text(generated(compiler, name))


if __name__ == "__main__":
    main()

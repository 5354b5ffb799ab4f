"""The C source of the thread pool: what each system adds to its text, and what ThreadSanitizer says of it."""

import re
import subprocess
from pathlib import Path

import pytest

from functrans.lowering.llvm.c import generate, pool
from functrans.lowering.loops import ir

CLANG = generate.clang()
SOURCE = generate.FOLDER / "pool.c"
DRIVER = Path(__file__).with_name("pool_driver.c")
needs_clang = pytest.mark.skipif(CLANG is None, reason=f"needs clang {generate.CLANG}")


def test_the_statuses_are_those_of_kernels():
    source = SOURCE.read_text()
    assert f"#define OVERWRITTEN ((int64_t)1 << {ir.OVERWRITTEN.bit_length() - 1})" in source
    assert ir.OVERWRITTEN.bit_count() == 1
    assert "#define PENDING INT64_MIN" in source
    assert ir.PENDING == -(1 << 63)


@pytest.mark.parametrize("machine", ["x86_64", "AMD64", "arm64", "aarch64", "riscv64"])
@pytest.mark.parametrize("system", ["linux", "darwin", "win32"])
def test_each_system_defines_what_the_source_declares(machine, system, monkeypatch):
    import llvmlite.binding as llvm

    numbers = {"sig_setmask": 3, "clock_monotonic": 6} if system == "darwin" else pool._NUMBERS
    monkeypatch.setattr(pool, "_NUMBERS", numbers)
    monkeypatch.setattr(pool.platform, "machine", lambda: machine)
    monkeypatch.setattr(pool.sys, "platform", system)
    text = pool._text()
    llvm.parse_assembly(text, llvm.create_context()).verify()
    assert not re.search(r"(declare|external).*@functrans\.|@functrans\.spinning", text)
    assert ("llvm.x86" in text) == (machine in ("x86_64", "AMD64") and system != "win32")
    assert ("llvm.aarch64" in text) == (machine in ("arm64", "aarch64") and system != "win32")
    for name, number in numbers.items():
        assert system == "win32" or f"@functrans.{name} = internal constant i32 {number}," in text


def built(tmp_path, *options, source=SOURCE):
    program = tmp_path / "driver"
    command = [CLANG, "-std=gnu17", "-g", "-pthread", *options, source, DRIVER, "-o", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and "-fsanitize=thread" in options and "tsan" in done.stderr:
        pytest.skip("clang has no ThreadSanitizer")
    assert done.returncode == 0, done.stderr
    return program


def run(program, *arguments):
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False, timeout=300)
    return done.returncode, done.stdout, done.stderr


@needs_clang
@pytest.mark.skipif(pool.sys.platform == "win32", reason="needs POSIX threads")
def test_jobs_and_forks_in_c(tmp_path):
    assert run(built(tmp_path, "-O2"), "fork") == (0, "good\n", "")


@needs_clang
@pytest.mark.slow
@pytest.mark.skipif(pool.sys.platform == "win32", reason="needs POSIX threads")
@pytest.mark.parametrize("level", ["-O0", "-O1"])
def test_thread_sanitizer_finds_nothing(tmp_path, level):
    """Without forks: it does not follow threads that a child starts."""
    assert run(built(tmp_path, level, "-fsanitize=thread")) == (0, "good\n", "")


#: Weaker orders: what `pool.c` says of them is true if each is found.
WEAKER = {
    "leaving publishes nothing": (
        "fetch_sub_explicit(&inside, 1, SEQUENTIAL)",
        "fetch_sub_explicit(&inside, 1, RELAXED)",
    ),
    "the door publishes nothing": (
        "atomic_store_explicit(&open, 1, SEQUENTIAL)",
        "atomic_store_explicit(&open, 1, RELAXED)",
    ),
    "the door is left open": ("atomic_store_explicit(&open, 0, SEQUENTIAL); /* then", "; /* then"),
    "the owner does not wait": ("  await_workers(poll, &last);", ""),
    "two owners": (
        "!atomic_compare_exchange_strong_explicit(&busy, &idle, 1, SEQUENTIAL, SEQUENTIAL)",
        "idle",
    ),
}


@needs_clang
@pytest.mark.slow
@pytest.mark.skipif(pool.sys.platform == "win32", reason="needs POSIX threads")
@pytest.mark.parametrize("name", WEAKER)
def test_thread_sanitizer_finds_weaker_orders(tmp_path, name):
    old, new = WEAKER[name]
    text = SOURCE.read_text()
    assert text.count(old) >= 1
    source = tmp_path / "pool.c"
    source.write_text(text.replace(old, new))
    code, output, errors = run(built(tmp_path, "-O1", "-fsanitize=thread", source=source))
    assert code != 0
    assert "data race" in errors or output != "good\n"

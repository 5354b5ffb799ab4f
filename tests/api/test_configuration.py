"""What `show_config` says of this machine, and of others."""

import subprocess
import sys
import warnings

import llvmlite
import numpy as np
import pytest

import functrans as ft
from functrans.api import configuration
from functrans.lowering.processor import Processor
from functrans.lowering.run import compile as compiling
from functrans.runtime.config import config

PARTS = ["versions", "system", "processor", "kernels", "calls", "maths", "BLAS", "threads", "cache"]


def test_all_parts_are_printed(capsys):
    found = ft.show_config("dicts")
    assert list(found) == [*PARTS, "reasons"]
    assert found["versions"].startswith(f"functrans {ft.__version__}, cpython {sys.version.split()[0]}")
    assert f"numpy {np.__version__}" in found["versions"]
    assert f"llvmlite {llvmlite.__version__}" in found["versions"]
    assert ft.show_config() is None
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[: len(PARTS)]] == PARTS
    assert ("not the best that functrans has:" in lines) == bool(found["reasons"])


@pytest.mark.slow
def test_the_command_prints_them():
    done = subprocess.run([sys.executable, "-m", "functrans"], capture_output=True, text=True, check=True)
    assert [line.split()[0] for line in done.stdout.splitlines()[: len(PARTS)]] == PARTS
    assert done.stderr == ""


def test_a_mode_that_there_is_not():
    with pytest.raises(ft.errors.ArgumentValueError, match="one of stdout, dicts, got 'html'"):
        ft.show_config("html")


def test_a_backend_that_does_not_work(monkeypatch, capsys):
    """Its reason is printed, and not warned of."""

    class Broken:
        name = "broken"

        def compile(self, kernel, options, text=""):
            raise RuntimeError("no such instruction")

    monkeypatch.setattr(compiling, "_best", [])
    monkeypatch.setattr(compiling, "BACKENDS", (Broken(), compiling.BACKENDS[-1]))
    monkeypatch.setattr(configuration, "BACKENDS", compiling.BACKENDS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ft.show_config()
    out = capsys.readouterr().out
    assert "\nkernels    python\n" in out
    assert "  kernels: RuntimeError: no such instruction\n" in out


def test_options(monkeypatch):
    with config.patch(disable_jit=True, cache=False, num_threads=1):
        found = ft.show_config("dicts")
    assert found["kernels"] == "python"
    assert found["threads"].startswith("1 of ")
    assert found["cache"] == "none on disk"
    assert (
        found["reasons"] | {"kernels": "config.disable_jit is True", "cache": "config.cache is False"}
        == found["reasons"]
    )


def test_a_cache_that_others_may_write_to(tmp_path):
    tmp_path.chmod(0o777)
    with config.patch(cache=True, cache_dir=str(tmp_path)):
        assert "other users may write to" in ft.show_config("dicts")["reasons"]["cache"]


def test_a_machine_that_lacks_everything(monkeypatch):
    monkeypatch.setattr(configuration, "processor", lambda: Processor("i786", "", frozenset()))
    monkeypatch.setattr(configuration, "has_libmvec", lambda: False)
    monkeypatch.setattr(configuration, "scalar_functions_of", lambda cpu: ["cos", "sin"])
    monkeypatch.setattr(configuration, "fields_are_known", lambda: False)
    monkeypatch.setattr(configuration, "frees_passes", lambda: False)
    monkeypatch.setattr(configuration, "EXPORTS_ARE_KNOWN", False)
    monkeypatch.setattr(configuration, "can_set_threads", lambda: False)
    monkeypatch.setattr(configuration.sys, "platform", "win32")
    reasons = ft.show_config("dicts")["reasons"]
    assert reasons["processor"].startswith("without fused multiply-add, float16 in hardware")
    assert "no libmvec: cos, sin are computed number by number" in reasons["maths"]
    for word in ("laid out", "donated arrays are copied", "frees LLVM's passes"):
        assert word in reasons["calls"]
    assert "cannot be set" in reasons["BLAS"]
    assert "one thread" in reasons["threads"]

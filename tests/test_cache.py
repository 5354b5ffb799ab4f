"""The command line of the cache on disk."""

import os
import re
import subprocess
import sys

import numpy as np

import functrans as ft
import functrans.numpy as fnp
from functrans import cache, config
from functrans.lowering.llvm import store
from functrans.lowering.run.cache import kernels


def run_softplus(path):
    def softplus(x):
        return fnp.log1p(fnp.exp(x)) + 0.0625

    kernels.clear()
    with config.patch(cache=True, cache_dir=str(path)):
        f = ft.jit(softplus)
        f(np.ones(3))
    return f.cache_info()


def test_list_verify_and_clear(tmp_path, capsys, monkeypatch):
    def command(name):
        code = cache.main([name, "--dir", str(tmp_path / "cache")])
        return code, capsys.readouterr().out

    store._opened.cache_clear()
    monkeypatch.setattr(config, "cache", False)
    assert command("list") == (
        0,
        f"{tmp_path}/cache: 0 files, 0 bytes of at most 1.1 GB, 0 hits; config.cache is off\n",
    )
    assert [run_softplus(tmp_path / "cache").disk_hits for _ in range(3)] == [0, 1, 1]
    code, out = command("list")
    assert code == 0
    assert re.search(r"^ +2 +[\d.]+ kB +\d seconds ago +softplus +[0-9a-f]{12}$", out, re.MULTILINE)
    assert re.search(r" \d files, .* [2-9] hits", out)
    assert command("verify")[0] == 0
    path, *_ = [p for p in (tmp_path / "cache").iterdir() if b"softplus" in p.read_bytes()]
    path.write_bytes(path.read_bytes()[:-7])
    code, out = command("verify")
    assert code == 1
    assert f"damaged: {path.name}" in out
    assert "(damaged)" in command("list")[1]
    assert "removed" in command("clear")[1]
    assert os.listdir(tmp_path / "cache") == []


def test_a_directory_of_others_is_not_opened(tmp_path, capsys):
    tmp_path.chmod(0o777)
    assert cache.main(["clear", "--dir", str(tmp_path)]) == 2
    assert "chmod 700" in capsys.readouterr().err
    assert cache.main(["--dir", ""]) == 2
    assert "no home directory" in capsys.readouterr().err


def test_the_module_runs_as_a_program(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "functrans.cache"],
        env={**os.environ, "FUNCTRANS_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(f"{tmp_path}: 0 files")

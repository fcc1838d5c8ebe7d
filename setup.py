"""Builds the fused kernel beside the package. A missing compiler is recorded and leaves a working package behind.

Without torch nothing is built, and nothing is installed: ``pip install .`` builds in an isolated environment, where it
would leave the kernel out without a word. ``REMANENCE_REQUIRE=kernel`` makes every failed build fatal. The record,
``_build.json``, is read by ``remanence doctor``.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import platform
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.dist_info import dist_info

HERE = Path(__file__).resolve().parent
SOURCES = Path("src/remanence/csrc")
# Contraction into fused multiply-add is the compiler's default; bits may differ between instruction sets, never
# between calls. -ffast-math would break the treatment of NaN.
FLAGS = ["-std=c++20", "-O3", "-fPIC", "-fno-math-errno", "-fno-trapping-math", "-fvisibility=hidden"]
NO_TORCH = (
    "remanence: torch is not in the build environment, and the kernel is built against the torch that will run it. "
    "Install torch and setuptools first, then the package without isolation: "
    "pip install torch setuptools && pip install --no-build-isolation ."
)
OLDEST_PYTHON = "cp311"  # the library calls nothing of Python: one wheel serves this and every newer one
ABI_FLOOR = "-DTORCH_TARGET_VERSION=0x020b000000000000"  # torch 2.11


def source_hash(folder: Path) -> str:
    """As in ``remanence.ops._library``, which compares."""
    digest = hashlib.sha256()
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(file.relative_to(folder).as_posix().encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def need_torch() -> None:
    """Ends a build that would have to leave the kernel out."""
    if importlib.util.find_spec("torch") is None:
        raise SystemExit(NO_TORCH)


class Metadata(dist_info):
    """What pip asks for first: refused here, an isolated install ends before it downloads torch and all else."""

    def run(self) -> None:
        """As setuptools does it, if the build can follow."""
        need_torch()
        super().run()


class BuildKernel(build_ext):
    """Compiles the files side by side; catches a missing compiler, missing torch and compile errors alike."""

    def build_extension(self, ext: Extension) -> None:
        """Build, record, and fail only where the kernel is required."""
        record: dict[str, str] = {"machine": platform.machine()}
        need_torch()
        try:
            self._build(Path(self.get_ext_fullpath(ext.name)), record)
        except (ImportError, OSError, subprocess.CalledProcessError) as error:
            record["error"] = _say(error)
            if "kernel" in os.environ.get("REMANENCE_REQUIRE", "").split(","):
                raise SystemExit(f"REMANENCE_REQUIRE names the kernel, but: {record['error']}") from error
            print(f"remanence: the fused kernel was not built: {record['error']}", file=sys.stderr)
        place = Path(self.get_ext_fullpath(ext.name)).parent
        place.mkdir(parents=True, exist_ok=True)
        (place / "_build.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")

    def copy_extensions_to_source(self) -> None:
        """Only what exists: a build that failed has nothing to copy. The record goes along."""
        build_py = self.get_finalized_command("build_py")
        for ext in self.extensions:
            built = Path(self.build_lib, self.get_ext_filename(ext.name))
            package = Path(build_py.get_package_dir(ext.name.rpartition(".")[0]))  # type: ignore[attr-defined]
            for file in (built, built.parent / "_build.json"):
                if file.exists():
                    self.copy_file(str(file), str(package / file.name))

    def _build(self, library: Path, record: dict[str, str]) -> None:
        import torch

        compiler = os.environ.get("CXX", "c++")
        version = subprocess.run([compiler, "--version"], check=True, capture_output=True, text=True).stdout
        record |= {"compiler": version.splitlines()[0], "torch": torch.__version__, "sources": source_hash(SOURCES)}
        home = Path(torch.__file__).parent
        files = sorted(SOURCES.rglob("*.cpp"))
        library.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            objects = [Path(folder, f"{file.parent.name}_{file.stem}.o") for file in files]
            list(pool.map(lambda pair: self._compile(compiler, home, *pair), zip(files, objects, strict=True)))
            libraries = [f"-L{home / 'lib'}", "-ltorch_cpu", "-ltorch", "-lc10"]
            _run([compiler, "-shared", "-o", str(library), *map(str, objects), *libraries])

    def _compile(self, compiler: str, home: Path, source: Path, target: Path) -> None:
        flags = list(FLAGS)
        if source.parent.name == "torch":
            flags += [ABI_FLOOR, f'-DREMANENCE_SOURCE_HASH="{source_hash(SOURCES)}"', f"-I{home / 'include'}"]
        _run([compiler, *flags, "-c", str(source), "-o", str(target)])


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)


def _say(error: Exception) -> str:
    if isinstance(error, ImportError):
        return f"torch is not in the build environment ({error}); install with --no-build-isolation"
    if isinstance(error, FileNotFoundError):
        return f"no C++ compiler: {error.filename!r} was not found; install g++ or clang++, or set CXX"
    if isinstance(error, subprocess.CalledProcessError):
        last = [line for line in (error.stderr or "").splitlines() if "error" in line][:3] or ["no message"]
        return f"{Path(error.cmd[0]).name} failed: {' | '.join(last)}"
    return str(error)


os.chdir(HERE)
setup(
    ext_modules=[Extension("remanence._kernel", sources=[], py_limited_api=True)],
    cmdclass={"build_ext": BuildKernel, "dist_info": Metadata},
    options={"bdist_wheel": {"py_limited_api": OLDEST_PYTHON}},
)

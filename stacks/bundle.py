"""The functions' zips: our code, and the controller's pinned wheels for Lambda. Docker is not needed.

The zip with wheels is made when it is published, by `python -m stacks.bundle`, which prints its path: `cdk ls`,
`synth`, `diff` and `destroy` need no wheels.

The asset's hash is that of the inputs (our files, the requirement file, the recipe below, whether there is byte code),
so an unchanged checkout gives an unchanged template, and the wheels are fetched once per requirement file and kept
under build/.
"""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import jsii
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3

from stacks.byte_code import interpreter, uv_command, write_byte_code

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "controller"  # holds the package `argosy`
REQUIREMENTS = ROOT / "requirements" / "controller.txt"
CACHE = ROOT / "build" / "lambda"
RUNTIME, PYTHON = lambda_.Runtime.PYTHON_3_13, "3.13"
ARCHITECTURE = lambda_.Architecture.ARM_64
SIZE_LIMIT_MB = 120  # DESIGN D14, unpacked; Lambda's own limit is 250
RECIPE = "2"  # raise it when the steps below change the content of the zip

_SHIPPED = (".py", ".json", ".lark")
# The rooms of `argosy` that run on a user's machine; no function imports them.
USERS_HALF = (
    "cli", "client", "emulator", "figures", "local", "loopback", "replay", "runner", "sdk", "ui",
)  # fmt: skip
# Files that no import touches. numpy's tests alone are a fifth of the zip.
_PRUNED = ("**/tests", "numpy/f2py", "numpy/_pyinstaller", "**/*.pyi", "bin", "include", "share", "**/__pycache__")
# The functions without wheels: boto3 is in the runtime.
WATCHDOG_FILES = ("aws/watchdog.py", "aws/cell_records.py", "aws/shutdown.py")
TEARDOWN_FILES = ("aws/teardown.py", "aws/cell_records.py", "aws/shutdown.py")
CELL_GUARD_FILES = ("aws/cell_guard.py", "aws/cell_records.py", "aws/shutdown.py")


class BundleError(RuntimeError):
    """The zip could not be built; the message names the command to type."""


def controller_code(stack: cdk.Stack, *, dependencies: bool) -> lambda_.Code:
    """The code of `api` and `controller`. Without dependencies it is a folder of the assembly, but does not run."""
    if not dependencies:
        return _code(_controller_sources())
    python = interpreter(PYTHON)
    place = stack.synthesizer.add_file_asset(
        source_hash=_digest(_controller_sources(), REQUIREMENTS, has_byte_code=python is not None),
        executable=[sys.executable, "-m", "stacks.bundle"],
        display_name="the functions' code with its wheels",
    )
    return lambda_.Code.from_bucket(s3.Bucket.from_bucket_name(stack, "Code", place.bucket_name), place.object_key)


def small_code(files: Iterable[str]) -> lambda_.Code:
    """The code of a function that needs nothing but these files of `argosy` and the runtime's boto3."""
    names = ("__init__.py", "aws/__init__.py", *files)
    return _code([SOURCE / "argosy" / name for name in names])


def _controller_sources() -> list[Path]:
    return [p for p in _sources() if p.relative_to(SOURCE).parts[1] not in USERS_HALF]


def _sources() -> list[Path]:
    return sorted(p for p in (SOURCE / "argosy").rglob("*") if p.suffix in _SHIPPED and p.is_file())


def _code(sources: list[Path]) -> lambda_.Code:
    bundling = cdk.BundlingOptions(image=cdk.DockerImage.from_registry("never-used"), local=_Bundler(sources))
    return lambda_.Code.from_asset(
        str(SOURCE),
        asset_hash=_digest(sources, None, has_byte_code=False),
        asset_hash_type=cdk.AssetHashType.CUSTOM,
        bundling=bundling,
    )


def _digest(sources: list[Path], requirements: Path | None, *, has_byte_code: bool) -> str:
    digest = hashlib.sha256(f"{RECIPE} {PYTHON} {ARCHITECTURE.name} {has_byte_code}".encode())
    for path in [*sources, *([requirements] if requirements else [])]:
        digest.update(f"\0{path.relative_to(ROOT).as_posix()}\0".encode() + path.read_bytes())
    return digest.hexdigest()


@jsii.implements(cdk.ILocalBundling)
class _Bundler:
    def __init__(self, sources: list[Path]) -> None:
        self._sources = sources

    def try_bundle(self, output_dir: str, *_: Any, **__: Any) -> bool:
        _copy(self._sources, Path(output_dir))
        return True


def _copy(sources: list[Path], folder: Path) -> None:
    for source in sources:
        target = folder / source.relative_to(SOURCE)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


def zipped(sources: list[Path], requirements: Path, python: str | None, cache: Path = CACHE) -> Path:
    """The path of a zip with wheels. python: the interpreter that compiles all of it, if any. Raises BundleError."""
    folder = cache / "zip"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(wheels(requirements, python, cache), folder)
    _copy(sources, folder)
    if python:
        write_byte_code(folder / "argosy", python, root=folder)
    check_size(folder)
    return Path(shutil.make_archive(str(cache / "functions"), "zip", folder))


def check_size(folder: Path) -> None:
    """Raises BundleError when the files under `folder` take more than SIZE_LIMIT_MB."""
    megabytes = sum(p.stat().st_size for p in folder.rglob("*") if p.is_file()) / 1e6
    if megabytes > SIZE_LIMIT_MB:
        raise BundleError(f"the functions' zip would take {megabytes:.0f} MB unpacked; the limit is {SIZE_LIMIT_MB}")


def wheels(requirements: Path, python: str | None, cache: Path = CACHE) -> Path:
    """The folder with the installed wheels of a requirement file, made if it is missing. Raises BundleError.

    python: the interpreter that compiles them; None for wheels without byte code, which have their own folder.
    """
    made_from = f"{RECIPE} {PYTHON} {ARCHITECTURE.name} {python is not None}".encode() + requirements.read_bytes()
    name = hashlib.sha256(made_from).hexdigest()[:16]
    folder = cache / name
    if not folder.is_dir():
        part = cache / f"{name}.part"
        shutil.rmtree(part, ignore_errors=True)
        _install(requirements, part)
        _prune(part)
        if python:
            write_byte_code(part, python, root=part)
        part.rename(folder)
    return folder


def _install(requirements: Path, target: Path) -> None:
    print(f"Fetching the functions' wheels into {target.parent} (once per requirement file)", file=sys.stderr)
    command = installer(uv_command(), pip=importlib.util.find_spec("pip") is not None)
    command += [
        "--only-binary=:all:",
        "--python-version",
        PYTHON,
        "--target",
        str(target),
        "--require-hashes",
        "--no-deps",
        "--requirement",
        str(requirements),
    ]
    try:
        subprocess.run(command, check=True, stdout=sys.stderr)
    except subprocess.CalledProcessError as error:
        raise BundleError(
            "the functions' wheels could not be fetched (above is why). Only deploying needs them."
        ) from error


def installer(uv: str | None, *, pip: bool) -> list[str]:
    """The command for Lambda's platform: uv's when there is one, else pip's. Raises BundleError.

    Both need the option that accepts wheels of glibc 2.28, or they silently install numpy 2.2.
    """
    machine = "aarch64"
    if uv:
        return [uv, "pip", "install", "--quiet", "--python-platform", f"{machine}-manylinux_2_28"]
    if not pip:
        raise BundleError("the functions' wheels need an installer: neither uv nor pip is in this environment")
    tags = (f"manylinux_2_28_{machine}", f"manylinux_2_17_{machine}", f"manylinux2014_{machine}")
    platforms = [part for tag in tags for part in ("--platform", tag)]
    return [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--implementation", "cp", *platforms]


def _prune(folder: Path) -> None:
    for pattern in _PRUNED:
        for path in list(folder.glob(pattern)):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def main() -> int:
    """Print the path of the controller's zip, as the CDK asks for it; 1, with a sentence, when it cannot be made."""
    try:
        print(zipped(_controller_sources(), REQUIREMENTS, interpreter(PYTHON)))
    except BundleError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""How do the images get into the wheel? The build copies `containers/` into the package, where local mode looks first.

Everything else about the build is in pyproject.toml.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.pyc", ".*_cache", "tests")


class BuildWithImages(build_py):
    """Builds into an empty folder: modules of an earlier build that have moved since must not be shipped."""

    def run(self) -> None:
        if not self.editable_mode:
            shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()
        if not self.editable_mode:
            shutil.copytree(ROOT / "containers", Path(self.build_lib, "argosy", "containers"), ignore=LEFT_OUT)


setup(cmdclass={"build_py": BuildWithImages})

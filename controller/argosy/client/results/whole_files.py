"""How does a file appear complete or not at all, even when two programs write it at once? Each writes a private file
and renames it at the end."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A file that becomes `path` at the end, and is removed if anything is raised. Raises OSError.

    Opened by name and not by tempfile, whose files are readable by their owner only.
    """
    unfinished = path.with_name(f".argosy-{secrets.token_hex(8)}.unfinished")
    with unfinished.open("xb") as file:
        try:
            yield file
            file.flush()
            os.replace(unfinished, path)
        except BaseException:
            unfinished.unlink()
            raise

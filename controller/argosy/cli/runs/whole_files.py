"""How does a file appear whole or not at all, even when two commands write it at once? By a name of each one's own."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def whole(path: Path) -> Iterator[IO[bytes]]:
    """A file that becomes `path` at the end, and is gone if anything is raised. Raises OSError.

    Opened by name and not by tempfile, whose files only their owner may read.
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

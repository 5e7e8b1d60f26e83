"""How the site shows what docs/ says for readers of the repository: MkDocs calls these hooks.

A link to a folder, or out of docs/, becomes its text and the path. A link to an example on its own line becomes
the example. The menu is the one of the configuration, followed by the decisions. The start page has the whole width.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[2] / "docs"
# Found after the pages that are about a thing as it is today.
OLD = ("maintainers/decisions/", "maintainers/notes/")
EXAMPLE = re.compile(r"^\[[^\]]*\]\((\S*examples/[\w.-]+)\)$", re.MULTILINE)
LINK = re.compile(r"\[([^\]]*)\]\((?![a-z]+:|#)([^)#\s]+)[^)]*\)")


def on_config(config: Any) -> None:
    decisions = sorted((DOCS / "maintainers/decisions").glob("[0-9]*.md"))
    config.nav[-1]["Maintainers"].append({"Decisions": [path.relative_to(DOCS).as_posix() for path in decisions]})


def on_page_markdown(text: str, page: Any, **_: Any) -> str:
    folder = Path(page.file.abs_src_path).parent
    if page.file.src_uri.startswith(OLD):
        page.meta["search"] = {"boost": 0.3}
    if page.file.src_uri == "index.md":
        page.meta["hide"] = ["navigation", "toc"]

    def example(link: re.Match[str]) -> str:
        path = folder / link[1]
        return f'```{path.suffix[1:]} title="{path.name}"\n{path.read_text(encoding="utf-8")}```'

    def inside(link: re.Match[str]) -> str:
        target = (folder / link[2]).resolve()
        leads_out = target.is_dir() or (target.exists() and not target.is_relative_to(DOCS))
        return f"{link[1]} (`{target.relative_to(DOCS.parent)}`)" if leads_out else link[0]

    return LINK.sub(inside, EXAMPLE.sub(example, text))

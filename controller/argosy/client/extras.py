"""What installs an extra of Argosy? It is on no index yet, so it comes from where this one came from."""

from __future__ import annotations


def installing(extra: str) -> str:
    """`pip install -e '/home/you/argosy[local]'` for a checkout; a wheel or an archive is named by its address."""
    import json
    import shlex
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import unquote, urlsplit

    try:
        told = json.loads(distribution("argosy").read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        told = {}
    url = str(told.get("url", ""))
    if told.get("dir_info", {}).get("editable"):
        return f"pip install -e {shlex.quote(f'{unquote(urlsplit(url).path)}[{extra}]')}"
    return f"pip install 'argosy[{extra}]{f' @ {url}' if url else ''}'"

"""The embedded AWS in the foreground, until a signal or a client ends it."""

from __future__ import annotations

import argparse
import signal
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from argosy.local.cloud import LocalAws
from argosy.local.forks import Forks
from argosy.local.options import LocalOptions
from argosy.runner.single_program import SIGNAL_S


def serve(port: int, options: LocalOptions, ready: Callable[[LocalAws], None], forks: Forks | None = None) -> None:
    """Run until Ctrl-C, SIGTERM, the end of its terminal or POST /argosy/shutdown; main thread only. Raises OSError if
    the port is taken, and the errors of `LocalAws` for an unusable state."""
    ended = threading.Event()
    signals = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # like nohup
        signals.append(signal.SIGHUP)
    before = {each: signal.signal(each, lambda *_: ended.set()) for each in signals}
    try:
        with LocalAws(port, options, forks) as aws:
            aws.on_shutdown = ended.set
            ready(aws)
            while not ended.wait(SIGNAL_S):
                pass
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def main() -> None:
    """`python -m argosy.local.run`: for development; users have `argosy local`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=4566)
    parser.add_argument("--state-dir", type=Path, help="where the functions' logs are kept")
    arguments = parser.parse_args()
    options = replace(LocalOptions(), state_dir=arguments.state_dir)
    serve(arguments.port, options, lambda aws: print(aws.endpoint_url, flush=True))


if __name__ == "__main__":
    main()

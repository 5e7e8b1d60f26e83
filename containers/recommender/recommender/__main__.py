"""DSSTNE's verbs with its flags: `python -m recommender train -c config.json -i gl_input.nc -o gl_output.nc -n gl.nc`.

Without a verb: the whole chain of the ECS template, as its environment says (see pipeline.py). Exit codes: 0 done (also
when the output was there already), 64 bad input, 75 trouble that another try or another instance may not have, 143
stopped by SIGTERM with nothing half-written, 1 otherwise.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

from recommender.faults import EXIT_BAD_INPUT, EXIT_STOPPED, EXIT_TEMPORARY, BadInput, NoDevice


def _stop(_signal: int, _frame: object) -> NoReturn:
    """At once, even in the middle of TensorFlow's slow import: outputs are written as a whole or not at all."""
    os.write(2, b"recommender: stopped by SIGTERM\n")
    os._exit(EXIT_STOPPED)


# Before the slow imports, and because the first process of a container ignores SIGTERM unless it says otherwise.
signal.signal(signal.SIGTERM, _stop)
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # warnings only

import argosy_storage as storage  # noqa: E402

from recommender import verbs  # noqa: E402
from recommender.pipeline import run_chain  # noqa: E402


def main() -> int:
    arguments = sys.argv[1:]
    try:
        if arguments:
            verbs.run(arguments, os.environ)
        else:
            run_chain(os.environ)
    except BadInput as fault:
        return _fail(EXIT_BAD_INPUT, *fault.faults)
    except storage.Refused as fault:
        return _fail(EXIT_BAD_INPUT, str(fault))
    except (storage.Temporary, NoDevice) as fault:
        return _fail(EXIT_TEMPORARY, str(fault))
    return 0


def _fail(code: int, *sentences: str) -> int:
    for sentence in sentences:
        print(f"recommender: {sentence}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())

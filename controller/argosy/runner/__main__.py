"""`python -m argosy.runner [--] PROGRAM [ARGUMENT ...]`: the runner as a program, which the contract's tests start."""

from __future__ import annotations

import os
import sys

from argosy.model.run_terms import RUNNER_PROTOCOL
from argosy.runner.order import RunnerFault
from argosy.runner.single_program import SingleProgram


def main() -> int:
    """The exit code."""
    if sys.argv[1:] == ["--version"]:
        os.write(1, b"argosy-runner protocol %d\n" % RUNNER_PROTOCOL)
        return 0
    try:
        return SingleProgram(sys.argv[1:], os.environ).run()
    except RunnerFault as fault:
        os.write(2, f"{fault.line}\n".encode())
        return fault.code


if __name__ == "__main__":
    os._exit(main())  # threads that still wait for S3 are left behind

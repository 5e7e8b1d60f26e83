"""Without the runner of users' programs podman runs none of them: the message's commands work where it is shown."""

from __future__ import annotations

from argosy.local.containers.engine import no_runner
from argosy.local.options import is_checkout


def test_make_is_named_where_there_is_a_makefile_and_a_checkout_where_there_is_none() -> None:
    assert is_checkout()
    assert "is not built: type `make runner` in the checkout" in no_runner(in_checkout=True)
    assert "an installed package does not include: start `argosy local` from a checkout" in no_runner(in_checkout=False)
    for each in (no_runner(in_checkout=True), no_runner(in_checkout=False)):
        assert each.endswith("or run `argosy local` without --runtime")

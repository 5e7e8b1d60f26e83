"""`local`: what it prints for a newcomer."""

from __future__ import annotations

from controller.cli.local import welcome


def test_the_welcome_names_the_next_commands() -> None:
    lines = welcome("http://127.0.0.1:4566")
    assert lines[0].startswith("Local AWS is ready at http://127.0.0.1:4566")
    assert any("argosy submit containers/digits/run.yaml" in line for line in lines)
    assert any(line.strip().startswith("aws --endpoint-url http://127.0.0.1:4566 ecs ") for line in lines)

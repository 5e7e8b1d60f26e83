"""What `python -m tests.structure` counts and what has a limit: loose modules, import circles, class names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.structure import (
    Module,
    circles,
    doubled_classes,
    functions_of_many_parameters,
    import_circles,
    imported,
    loose_modules,
    modules,
    short_modules,
)

MOST_LOOSE_MODULES = 3  # handlers, ports and layout


@pytest.fixture(scope="module")
def argosy() -> dict[str, Module]:
    return modules()


def planted(folder: Path, **texts: str) -> dict[str, Module]:
    """A package `planted` with these modules; a double underscore in a name stands for a folder."""
    package = folder / "planted"
    for name, text in {"__init__": "", **texts}.items():
        path = package / (name if name == "__init__" else name.replace("__", "/"))
        path.parent.mkdir(exist_ok=True, parents=True)
        path.with_suffix(".py").write_text(text)
    return modules(package)


def test_few_modules_stand_in_no_room(argosy: dict[str, Module]) -> None:
    assert len(loose_modules(argosy)) <= MOST_LOOSE_MODULES


def test_a_loose_module_is_seen(tmp_path: Path) -> None:
    assert loose_modules(planted(tmp_path, loose="", room__inside="")) == ["planted.loose"]


def test_no_modules_import_each_other_in_a_circle(argosy: dict[str, Module]) -> None:
    assert import_circles(argosy) == []


def test_an_import_for_type_checkers_or_inside_a_function_closes_a_circle_too(tmp_path: Path) -> None:
    found = planted(
        tmp_path,
        first="from planted.second import f",
        second="if TYPE_CHECKING:\n    from planted import third",
        third="def f():\n    import planted.first",
        apart="import planted.first",
    )
    imports = {name: imported(module, found) for name, module in found.items()}
    assert circles(imports) == [["planted.first", "planted.second", "planted.third"]]


def test_a_class_name_means_one_thing(argosy: dict[str, Module]) -> None:
    assert doubled_classes(argosy) == {}


def test_a_class_name_that_two_modules_define_is_seen(tmp_path: Path) -> None:
    found = planted(tmp_path, one="class Plan: ...", two="def f():\n    class Plan: ...", three="class Other: ...")
    assert doubled_classes(found) == {"Plan": ["planted.one", "planted.two"]}


def test_parameters_are_counted_with_self_and_commands_apart(tmp_path: Path) -> None:
    found = planted(
        tmp_path,
        many="class A:\n    def many(self, a, b, c, *, d, e): ...\n    def few(self, a, b, c, d, *more): ...",
        command="def typed(a, b, c, d, e, f: Annotated[int, typer.Option()]): ...",
    )
    assert functions_of_many_parameters(found) == (["planted.many.many"], ["planted.command.typed"])


def test_short_modules_are_counted_without_the_files_of_packages(tmp_path: Path) -> None:
    assert short_modules(planted(tmp_path, short="x = 1\n" * 29, long="x = 1\n" * 30)) == ["planted.short"]

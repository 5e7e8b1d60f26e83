"""The figures that `python -m tests.structure` counts, and the ceilings that docs hold for them."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.structure import (
    PAGE,
    ROOT,
    Figure,
    Module,
    circles,
    doubled_classes,
    functions_of_many_parameters,
    imported,
    loose_modules,
    lowered,
    modules,
    participles,
    perhaps_imported,
    rows,
    short_modules,
    small_modules_of_one_importer,
    words_of_documents,
)

TABLE = """
| figure | before | ceiling | why it rose |
| -- | -- | -- | -- |
| lines | 92,407 | 1,000 | |
| circles | 1 | 0 | |
"""


@pytest.mark.slow
def test_each_figure_is_at_its_ceiling_and_each_row_is_counted() -> None:
    counting = [sys.executable, "-m", "tests.structure", "--figures"]
    found = json.loads(subprocess.run(counting, cwd=ROOT, check=True, capture_output=True, text=True).stdout)
    table = rows(PAGE.read_text(encoding="utf-8"))
    assert found.keys() == table.keys()
    wrong = {
        what: (n, table[what].ceiling) for what, n in found.items() if not Figure(what, n).may_be(table[what].ceiling)
    }
    assert wrong == {}, "figure, ceiling: lower a ceiling with `python -m tests.structure --write`, or save the weight"


def test_a_ceiling_above_the_figure_before_has_its_reason() -> None:
    assert [what for what, row in rows(PAGE.read_text(encoding="utf-8")).items() if row.lacks_reason] == []


def test_a_row_above_the_figure_before_lacks_a_reason_until_one_is_written() -> None:
    row = rows("| figure | before | ceiling | why it rose |\n| -- | -- | -- | -- |\n| lines | 1,000 | 1,001 | |\n")[
        "lines"
    ]
    assert row.lacks_reason
    assert not replace(row, ceiling=1000).lacks_reason
    assert not replace(row, why="shares of GPUs (issue 29)").lacks_reason


@pytest.mark.parametrize(
    ("count", "fits"),
    [(1000, True), (1001, False), (991, True), (990, False), (989, False)],
    ids=["at it", "above it", "a hundredth below", "just too far below", "far below"],
)
def test_a_ceiling_is_never_passed_and_falls_with_its_figure(count: int, fits: bool) -> None:
    assert Figure("lines", count).may_be(1000) is fits


def test_a_small_count_has_its_ceiling_exactly() -> None:
    assert Figure("circles", 3).may_be(3)
    assert not Figure("circles", 2).may_be(3)


def test_writing_lowers_a_ceiling_and_raises_none() -> None:
    written = rows(lowered(TABLE, [Figure("lines", 900), Figure("circles", 2)]))
    assert {what: row.ceiling for what, row in written.items()} == {"lines": 904, "circles": 0}


def test_explaining_is_no_code(tmp_path: Path) -> None:
    explained = '"""What it is."""\nimport os\n\n# why\nX = 1\n"""Unit: s."""\ndef f():\n    """Text\n    more."""\n'
    text = explained + '    return """a\n\n"""\n'
    assert planted(tmp_path, one=text)["planted.one"].code_lines == 4


def test_words_of_decisions_and_of_generated_pages_do_not_count(tmp_path: Path) -> None:
    for page in ("a.md", "guides/b.md", "decisions/c.md", "reference/d.md", "maintainers/notes/e.md"):
        (tmp_path / page).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / page).write_text("two words\n")
    assert words_of_documents(tmp_path) == 4


def test_a_small_module_that_one_other_imports_is_seen(tmp_path: Path) -> None:
    found = planted(tmp_path, one="import planted.two\nimport planted.three", two="import planted.three", three="")
    assert small_modules_of_one_importer(found) == ["planted.two"]


def planted(folder: Path, **texts: str) -> dict[str, Module]:
    """A package `planted` with these modules; a double underscore in a name means a folder."""
    package = folder / "planted"
    for name, text in {"__init__": "", **texts}.items():
        path = package / (name if name == "__init__" else name.replace("__", "/"))
        path.parent.mkdir(exist_ok=True, parents=True)
        path.with_suffix(".py").write_text(text)
    return modules(package)


def test_a_loose_module_is_seen(tmp_path: Path) -> None:
    assert loose_modules(planted(tmp_path, loose="", room__inside="")) == ["planted.loose"]


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


def test_a_class_name_that_two_modules_define_is_seen(tmp_path: Path) -> None:
    found = planted(tmp_path, one="class Plan: ...", two="def f():\n    class Plan: ...", three="class Other: ...")
    assert doubled_classes(found) == {"Plan": ["planted.one", "planted.two"]}


def test_rooms_of_the_model_import_each_other_one_way_only() -> None:
    found = {name: module for name, module in modules().items() if name.startswith("argosy.model.")}
    needs = [(name, each) for name, module in found.items() for each in perhaps_imported(module, found.keys())]
    rooms = {(name.split(".")[2], each.split(".")[2]) for name, each in needs}
    assert [(a, b) for a, b in sorted(rooms) if a < b and (b, a) in rooms] == []


def test_a_class_that_is_called_by_a_participle_alone_is_seen(tmp_path: Path) -> None:
    found = planted(
        tmp_path, one="class Filled: ...\nclass _Waiting: ...", two="class RunFilled: ...\nclass Reading: ..."
    )
    assert participles(found) == ["planted.one.Filled", "planted.one._Waiting"]


def test_parameters_are_counted_with_self_and_commands_apart(tmp_path: Path) -> None:
    found = planted(
        tmp_path,
        many="class A:\n    def many(self, a, b, c, *, d, e): ...\n    def few(self, a, b, c, d, *more): ...",
        command="def typed(a, b, c, d, e, f: Annotated[int, typer.Option()]): ...",
    )
    assert functions_of_many_parameters(found) == (["planted.many.many"], ["planted.command.typed"])


def test_short_modules_are_counted_without_the_files_of_packages(tmp_path: Path) -> None:
    assert short_modules(planted(tmp_path, short="x = 1\n" * 29, long="x = 1\n" * 30)) == ["planted.short"]

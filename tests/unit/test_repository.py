"""The rules of the source: the content of a file, the imports at a start, the promises of the documents.

A rule is checked on the files of the tree and, where it searches text, on a planted offence: a check that sees nothing
fails.
"""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

pytestmark = pytest.mark.slow  # it reads and parses every file; `make lint` runs it as well
ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("controller", "stacks", "containers", "tests", "docs", "requirements", ".ci")
SKIPPED = ("__pycache__", "node_modules", ".pytest_cache")
LINES_MAX = 400  # of a file; docs/maintainers/changing.md
FUNCTION_LINES_MAX = 60
COLUMNS_MAX = 120  # of a line of a document

# Put together here, so that this file does not offend against its own rules.
REGISTRIES = ("py" + "pi.org", "python" + "hosted.org", "npm" + "js.org", "npm" + "js.com", "registry." + "yarnpkg")
MACHINE_PATHS = tuple(f"/{folder}/" for folder in ("work/" + "main", "work/" + "shared", "root/" + ".pyenv")) + (
    "/tmp/" + "argosy",
)
REQUIREMENTS = sorted([*ROOT.glob("requirements/*.txt"), *ROOT.glob("containers/*/requirements*.txt")])


def files() -> Iterator[Path]:
    """Every file that belongs to the project: those at the top, and those in its folders."""
    ignored = (ROOT / ".gitignore").read_text().split()
    here = (path for path in ROOT.iterdir() if path.is_file() and path.name != ".git")  # of a second work tree
    yield from (path for path in here if not any(fnmatch(path.name, pattern) for pattern in ignored))
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and not any(part in SKIPPED or part.endswith(".egg-info") for part in path.parts):
                yield path


def sources(*folders: str) -> list[Path]:
    return [path for path in files() if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in folders]


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


# --- what may stand in a file ----------------------------------------------------------------------------------------


def found_in(text: str, words: Iterable[str]) -> list[str]:
    return [word for word in words if word in text]


@pytest.mark.parametrize("words", [REGISTRIES, MACHINE_PATHS], ids=["registry addresses", "paths of one machine"])
def test_no_file_names(words: tuple[str, ...]) -> None:
    offences = {name(path): found for path in files() if (found := found_in(path.read_text("latin-1"), words))}
    assert offences == {}
    assert found_in(f"see https://{words[0]}/x", words) == [words[0]]


def long_functions(text: str) -> list[str]:
    functions = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [f.name for f in functions if f.end_lineno and f.end_lineno - f.lineno >= FUNCTION_LINES_MAX]


def test_files_and_functions_stay_short() -> None:
    looked_at = sources("controller", "stacks", "containers", "requirements")
    long_files = {name(path): n for path in looked_at if (n := path.read_text().count("\n")) > LINES_MAX}
    assert long_files == {}
    assert {name(path): f for path in looked_at if (f := long_functions(path.read_text()))} == {}
    assert long_functions("def f():\n" + "    pass\n" * FUNCTION_LINES_MAX) == ["f"]


def nameless_functions(text: str) -> list[int]:
    if not re.search(r"\bdef\s+_+\W", text):
        return []  # without parsing, which takes seconds for all files
    functions = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [f.lineno for f in functions if not f.name.strip("_")]


def test_every_function_has_a_name() -> None:
    """Stack traces, profiles and `git log -L` name functions; cases of a dispatch have the name of their case."""
    looked_at = sources("controller", "stacks", "containers", "tests", "requirements")
    assert {name(path): lines for path in looked_at if (lines := nameless_functions(path.read_text()))} == {}
    assert nameless_functions("def _(x): ...") == [1]


def lacks_docstring(text: str) -> bool:
    if text.startswith('"""'):
        return False  # without parsing, which takes seconds for all files
    tree = ast.parse(text)
    return bool(tree.body) and ast.get_docstring(tree) is None


def test_every_module_says_which_question_it_answers() -> None:
    looked_at = sources("controller", "stacks", "containers", "tests", "requirements") + [
        path for path in files() if path.suffix == ".py" and path.parent == ROOT
    ]
    assert [name(path) for path in looked_at if lacks_docstring(path.read_text())] == []
    assert lacks_docstring("x = 1")


def test_package_files_are_empty() -> None:
    """An `__init__.py` that imports makes everything below it slow and ties layers together."""

    def code(text: str) -> list[ast.stmt]:
        return ast.parse(text).body[1:] if not lacks_docstring(text) else ast.parse(text).body

    library = ROOT / "controller/argosy/__init__.py"  # says what is public, and loads it when it is used
    looked_at = [path for path in sources("controller", "stacks") if path.name == "__init__.py" and path != library]
    assert [name(path) for path in looked_at if code(path.read_text())] == []


def test_no_module_has_a_name_that_says_nothing() -> None:
    banned = {"utils", "util", "helper", "helpers", "manager", "common", "base", "misc"}
    assert [name(path) for path in sources("controller", "stacks", "containers") if path.stem in banned] == []


def test_code_of_our_own_is_not_patched_in_tests() -> None:
    """A fake that the code is handed cannot drift from it unseen; a patched name can."""
    pattern = re.compile(r"\bmock\.patch|\bfrom unittest\.mock|\bfrom unittest import mock")
    assert pattern.search("from unittest import mock")
    assert [name(p) for p in sources("tests") if p != Path(__file__) and pattern.search(p.read_text())] == []


IMPORTS = re.compile(r"^[ \t>]*(?:from [\w.]+ import (?:\([^)]*\)|.*)|import .*)", re.MULTILINE)


def imports_some(text: str, name: str) -> bool:
    """Whether a statement that looks like an import has a word that begins so."""
    word = re.compile(rf"\b{name}")
    return any(word.search(found[0]) for found in IMPORTS.finditer(text))


def imported_tests(text: str) -> list[str]:
    """Modules of tests that a text imports: what two tests share is in tests/fakes or next to tests/builders.py."""
    if not imports_some(text, "test_"):
        return []
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            names = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        found += [each for each in names if re.search(r"^tests\..*\btest_\w+$", each)]
    return found


def test_no_test_imports_another() -> None:
    assert {name(p): found for p in sources("tests") if (found := imported_tests(p.read_text()))} == {}
    assert imported_tests("from tests.unit.test_a import f") == ["tests.unit.test_a"]
    assert imported_tests("def f():\n    from tests.unit import fakes, test_b") == ["tests.unit.test_b"]


PLANTING = ("tests/mutations/", "tests/properties/test_planted_bugs.py")  # a planted bug stands inside the code
PUBLIC = {
    "_replace",
    "_asdict",
    "_fields",
    "_exit",
    "_repr_html_",
    "_ipython_display_",
}  # of named tuples, os._exit, and notebooks' own


GETTING = ("getattr", "setattr")
# Where nothing looks like one, nothing is parsed.
PRIVATE = re.compile(
    rf"(?<!\bself)(?<!\bcls)\._(?!(?:{'|'.join(each[1:] for each in PUBLIC)})\b)[a-zA-Z]|{'|'.join(GETTING)}"
)


def private_names(text: str) -> list[str]:
    """Private attributes that a text reaches for in other objects, and private names that it imports."""
    if not (PRIVATE.search(text) or imports_some(text, "_[a-zA-Z]")):
        return []
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute):
            if node.attr[0] == "_" and ast.unparse(node.value) not in ("self", "cls"):
                found.append((node.attr, ast.unparse(node)))
        elif isinstance(node, ast.ImportFrom):
            found += [(alias.name, f"{node.module}.{alias.name}") for alias in node.names]
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in GETTING:
            texts = [each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
            found += [(each.rpartition(".")[2], each) for each in texts]
    return [what for member, what in found if re.match(r"_[a-zA-Z]", member) and member not in PUBLIC]


def test_no_test_touches_a_private_name() -> None:
    looked_at = [path for path in sources("tests") if not name(path).startswith(PLANTING)]
    assert {name(p): found for p in looked_at if (found := private_names(p.read_text()))} == {}
    assert private_names("engine._commit(state)\nself._mine\nkey._replace(index=1)") == ["engine._commit"]
    assert private_names("from a.b import _c\nmonkeypatch.setattr(d, '_e', 1)") == ["a.b._c", "_e"]


def sleeping_tests(text: str) -> list[str]:
    if "time.sleep" not in text:
        return []
    functions = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef) and n.name.startswith("test_")]
    calls = {f.name: [n.func for n in ast.walk(f) if isinstance(n, ast.Call)] for f in functions}
    return [test for test, called in calls.items() if "time.sleep" in map(ast.unparse, called)]


def test_tests_wait_for_conditions_and_not_for_time() -> None:
    assert {name(p): found for p in sources("tests") if (found := sleeping_tests(p.read_text()))} == {}
    assert sleeping_tests("def test_it():\n    time.sleep(1)") == ["test_it"]


# --- requirements -----------------------------------------------------------------------------------------------------


def pins(text: str) -> list[Requirement]:
    """The requirements of a hashed file: its lines without the hashes and comments."""
    return [Requirement(line.rstrip("\\ ")) for line in text.splitlines() if line and line[0] not in " #"]


def without_hash(text: str) -> list[str]:
    blocks = re.split(r"\n(?=\S)", "".join(f"{line}\n" for line in text.splitlines() if not line.startswith("#")))
    return [block.split()[0] for block in blocks if block.strip() and "--hash=sha256:" not in block]


@pytest.mark.parametrize("path", REQUIREMENTS, ids=name)
def test_requirements_are_exact_hashed_and_name_no_registry(path: Path) -> None:
    text = path.read_text()
    assert "://" not in text
    assert without_hash(text) == []
    assert [str(pin) for pin in pins(text) if not str(pin.specifier).startswith("==") or pin.url] == []
    assert without_hash("numpy==2.0\nlark==1.0 \\\n    --hash=sha256:00\n") == ["numpy==2.0"]


def test_requirement_files_are_those_of_the_project_file() -> None:
    process = subprocess.run(
        [sys.executable, "requirements/export.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (process.returncode, process.stderr) == (0, "")


def test_a_changed_project_file_makes_the_requirement_files_out_of_date(tmp_path: Path) -> None:
    for path in ["pyproject.toml", "requirements", "containers"]:
        copy = shutil.copytree if (ROOT / path).is_dir() else shutil.copy
        copy(ROOT / path, tmp_path / path)
    project = tmp_path / "pyproject.toml"
    project.write_text(project.read_text().replace('"numpy>=', '"numpy>', 1))
    process = subprocess.run(
        [sys.executable, str(tmp_path / "requirements/export.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 1
    assert "requirements/controller.txt" in process.stderr
    assert "containers/digits" not in process.stderr


def test_each_file_holds_what_its_group_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = project["dependency-groups"]
    asked = {"controller": [*project["project"]["dependencies"], *groups["functions"]], **groups}
    for file in ("controller", "install"):
        held = pins((ROOT / f"requirements/{file}.txt").read_text())
        for wanted in map(Requirement, asked[file]):
            versions = [p for p in held if canonicalize_name(p.name) == canonicalize_name(wanted.name)]
            assert versions, f"{wanted} is missing in {file}.txt"
            assert all(wanted.specifier.contains(str(p.specifier).removeprefix("==")) for p in versions)


@pytest.mark.parametrize("smaller", ["local", "controller", "install"])
def test_every_environment_has_the_versions_that_were_tested(smaller: str) -> None:
    def versions(file: str) -> set[str]:
        return {f"{pin.name}{pin.specifier}" for pin in pins((ROOT / f"requirements/{file}.txt").read_text())}

    assert versions(smaller) <= versions("dev")


def test_the_lambda_functions_get_no_development_packages() -> None:
    shipped = {pin.name for pin in pins((ROOT / "requirements/controller.txt").read_text())}
    assert shipped.isdisjoint({"moto", "typer", "rich", "scikit-learn", "aws-cdk-lib", "pytest", "setuptools", "uv"})


def test_the_node_lock_names_no_registry_and_pins_the_cdk_command() -> None:
    """npm's `latest` of aws-cdk is an accidental publication that cannot read what the library writes."""
    lock = json.loads((ROOT / "package-lock.json").read_text())
    assert [key for key, package in lock["packages"].items() if "resolved" in package] == []
    wanted = json.loads((ROOT / "package.json").read_text())["devDependencies"]["aws-cdk"]
    assert re.fullmatch(r"2\.\d+\.\d+", wanted)
    assert lock["packages"]["node_modules/aws-cdk"]["version"] == wanted


# --- what a start loads -----------------------------------------------------------------------------------------------


def loaded_by(*modules: str) -> set[str]:
    """Top-level names of everything in sys.modules after a fresh interpreter has imported `modules`."""
    code = f"import {', '.join(modules)}, sys; print(*{{m.partition('.')[0] for m in sys.modules}})"
    process = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    return set(process.stdout.split())


def modules_in(package: str) -> list[str]:
    source = ROOT / "controller"
    paths = sorted((source / "argosy" / package).rglob("*.py"))
    files = [p.relative_to(source).as_posix().removesuffix(".py") for p in paths]
    return [file.removesuffix("/__init__").replace("/", ".") for file in files]


@pytest.mark.parametrize("package", ["model", "placement", "sharing", "market"])
def test_the_core_loads_neither_boto3_nor_pydantic(package: str) -> None:
    assert loaded_by(*modules_in(package)).isdisjoint({"boto3", "botocore", "pydantic", "moto", "aws_cdk"})


def test_the_lambda_functions_load_nothing_of_local_mode_or_the_command() -> None:
    assert loaded_by("argosy.handlers").isdisjoint({"moto", "rich", "typer", "flask", "sklearn", "aws_cdk", "psutil"})


def test_the_command_answers_help_without_loading_aws() -> None:
    code = (
        "import sys, argosy.cli.main as command\n"
        "try: command.main()\n"
        "except SystemExit: pass\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    process = subprocess.run(
        [sys.executable, "-c", code, "--help"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert "submit" in process.stdout
    assert {"boto3", "botocore", "moto", "numpy", "pydantic"}.isdisjoint(process.stderr.split())


# --- what the documents promise ---------------------------------------------------------------------------------------


def targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))


def documents() -> list[Path]:
    return [path for path in files() if path.suffix == ".md"]


def test_every_decision_has_a_number_of_its_own_which_its_heading_repeats() -> None:
    records = sorted((ROOT / "docs/maintainers/decisions").glob("*.md"))[1:]  # without the template
    numbers = [int(each.name[:4]) for each in records]
    assert numbers == sorted({*numbers})
    headings = [each.read_text().partition(".")[0] for each in records]
    assert headings == [f"# {number}" for number in numbers]


def commands_in(text: str, command: str) -> set[str]:
    """The words that follow `command` in code: inside backticks, or in a fenced block. `argosy boot:` begins a line of
    the console."""
    code = re.findall(r"`([^`\n]+)`", text) + re.findall(r"^ *(?:\$ )?(\S.*)$", "\n".join(blocks(text)), re.MULTILINE)
    return {m for c in code for m in re.findall(rf"(?:^|[ ;&/]){command} ([a-z][a-z-]*)\b(?!:)", c)}


def blocks(text: str) -> list[str]:
    return re.findall(r"^```.*?\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def test_every_make_target_in_the_documents_exists_and_help_lists_it() -> None:
    named = {(name(path), word) for path in documents() for word in commands_in(path.read_text(), "make")}
    assert {(path, word) for path, word in named if word not in targets()} == set()
    assert commands_in("`make demo`\n```\ncd x; make test\n```\nthey make sense", "make") == {"demo", "test"}


def test_make_alone_prints_every_target() -> None:
    process = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert set(re.findall(r"^ *make ([a-z-]+) ", process.stdout, re.MULTILINE)) == targets()
    assert {"setup", "demo", "test", "test-deep", "check", "bench", "synth", "deploy", "destroy"} <= targets()


def test_every_argosy_command_in_the_documents_exists() -> None:
    process = subprocess.run(
        [sys.executable, "-c", "from argosy.cli.main import main; main()", "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", "COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"},
    )
    offered = set(re.findall(r"^\W*([a-z]+(?:-[a-z]+)*)\b", process.stdout, re.MULTILINE))
    looked_at = [path for path in documents() if path.name != "CHANGELOG.md"]  # which tells of the past
    named = {(name(path), word) for path in looked_at for word in commands_in(path.read_text(), "argosy")}
    assert {(path, word) for path, word in named if word not in offered} == set()


def anchors(path: Path) -> set[str]:
    """Of the headings of a document, as GitHub and MkDocs make them."""
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", each.lower()).strip().replace(" ", "-") for each in headings}


def broken_links(path: Path) -> list[str]:
    """Links to files that are not there, and to headings that their document does not have."""
    found = []
    for link, anchor in re.findall(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)", path.read_text()):
        target = path.parent / link if link else path
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            found.append(f"{link}#{anchor}" if anchor else link)
    return found


def test_links_between_the_documents_lead_somewhere() -> None:
    assert {name(path): broken for path in documents() if (broken := broken_links(path))} == {}


def long_lines(text: str) -> list[int]:
    """Numbers of the lines that are too long, outside tables, fenced code and lines of one link or one code span."""
    fenced, found = False, []
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif (
            not fenced
            and len(line) > COLUMNS_MAX
            and not re.match(r" *(\||(- )?(\[.*\]\(\S*\)|`[^`]*`)[.,:;]?$)", line)
        ):
            found.append(number)
    return found


def test_documents_wrap() -> None:
    assert {name(path): found for path in documents() if (found := long_lines(path.read_text()))} == {}
    wide = "word " * COLUMNS_MAX
    assert long_lines(f"short\n| {wide} |\n```\n{wide}\n```\n{wide}\n`{wide}`.") == [6]


PACKAGE = ROOT / "controller" / "argosy"
OPTIONAL = {"catalogue/overrides.json"}  # users write it
MADE_HERE = {"out", "build"}  # by demos and builds


def wrong_paths(text: str, folder: Path = ROOT) -> list[str]:
    """Paths in backticks that do not exist and names of tests that nothing defines, in a document in `folder`.

    A text that begins with one of our folders is a path, relative to the root, to controller/argosy/ or to `folder`.
    `api/views`, `model/runs.Run` and `containers/tensorflow-*` are paths too.
    """
    prose = re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)
    spans = {span.split(":")[0].removeprefix("controller/argosy/") for span in re.findall(r"`([^`\s]+)`", prose)}
    roots = (ROOT, PACKAGE, folder)
    paths = {span for span in spans if re.fullmatch(r"[a-z.]\w*/[\w./*-]*", span) and is_ours(span, roots)}
    tests = {span for span in spans if re.fullmatch(r"test_\w+(\.py)?", span)}
    missing = [path for path in paths - OPTIONAL if not exists(path, roots)]
    return sorted(missing + [test for test in tests if not is_test(test)])


def is_ours(path: str, roots: Iterable[Path]) -> bool:
    top, _, rest = path.partition("/")
    is_pattern = re.search(r"\b[A-Z]+\b(?!\.)", rest)  # containers/NAME
    return not is_pattern and top not in MADE_HERE and any((root / top).is_dir() for root in roots)


def exists(path: str, roots: Iterable[Path]) -> bool:
    if any(next(root.glob(path.rstrip("/") + end), None) for root in roots for end in ("", ".py")):
        return True
    module, _, member = path.rpartition(".")
    file = PACKAGE / f"{module}.py"
    return bool(module) and file.is_file() and bool(re.search(rf"\b{member}\b", file.read_text()))


@cache
def texts_of_tests() -> dict[str, str]:
    """By the name of the file, which several folders may have."""
    found: dict[str, str] = {}
    for path in sources("tests"):
        found[path.stem] = found.get(path.stem, "") + path.read_text()
    return found


def is_test(test: str) -> bool:
    return test.removesuffix(".py") in texts_of_tests() or any(
        f"def {test}(" in text for text in texts_of_tests().values()
    )


def test_paths_and_tests_that_the_documents_name_exist() -> None:
    looked_at = [path for path in documents() if path.name != "CHANGELOG.md"]  # which tells of the past
    assert {name(path): found for path in looked_at if (found := wrong_paths(path.read_text(), path.parent))} == {}
    good = "`model/runs.py` `controller/argosy/model/` `docs/*.md` `model/runs.Run` `containers/NAME` `results/x.json`"
    assert wrong_paths(f"{good} `test_repository` `test_documents_wrap`") == []
    assert wrong_paths("`model/gone.py` `docs/gone.md` `model/runs.gone` `test_gone`") == [
        "docs/gone.md",
        "model/gone.py",
        "model/runs.gone",
        "test_gone",
    ]


def test_the_published_schema_is_the_specs() -> None:
    """Editors read docs/reference/run.schema.json; `argosy schema > docs/reference/run.schema.json` writes it again."""
    from argosy.spec.parse import schema

    assert json.loads((ROOT / "docs/reference/run.schema.json").read_text()) == schema()


def test_the_licence_is_apache_2() -> None:
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License" in text
    assert "END OF TERMS AND CONDITIONS" in text
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["license"] == "Apache-2.0"


def test_images_have_what_local_mode_and_the_docker_engine_need() -> None:
    """The exec form: local mode runs it, and signals reach the program in a container."""
    for dockerfile in ROOT.glob("containers/*/Dockerfile"):
        lines = dockerfile.read_text().splitlines()
        entry = [line.removeprefix("ENTRYPOINT ") for line in lines if line.startswith("ENTRYPOINT")]
        assert len(entry) == 1, name(dockerfile)
        assert json.loads(entry[0])[0] == "python"
        users = [line.split()[1] for line in lines if line.startswith("USER")]
        assert users, f"{name(dockerfile)} runs as root"
        assert users[-1] not in ("0", "root")
        assert "STOPSIGNAL SIGTERM" in lines


@pytest.mark.parametrize(
    ("image", "target"),
    [
        ("digits", "demo-containers"),
        ("recommender", "images-test"),
        ("tensorflow-benchmark", "images-test"),
        ("tensorflow-inference", "images-test"),
    ],
)
def test_a_readme_says_that_its_image_is_built_where_a_make_target_builds_it(image: str, target: str) -> None:
    page = " ".join((ROOT / "containers" / image / "README.md").read_text().split())
    assert f"`make {target}`" in page
    for claim in re.findall(r"([^.;:]*) not been built", page):
        assert "GPU flavour" in claim
    run = re.search(rf"^{target}: .*\n(?:\t.*\n)+", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert run
    assert ("demo --runtime" if image == "digits" else "$(IMAGES_TESTED)") in run.group()


# --- a page for each package ------------------------------------------------------------------------------------------

PACKAGES = sorted(path.parent for path in (ROOT / "controller/argosy").glob("*/__init__.py"))
ROOMS = sorted(
    path.parent for each in ("model", "scheduler") for path in (ROOT / "controller/argosy" / each).glob("*/__init__.py")
)
SIMULATION = ROOT / "tests/harness/simulation"
HEADINGS = ["Question", "Entry points", "Invariants", "Reading order"]
FILE_ENDINGS = ("py", "json", "jsonl", "yaml", "md", "lark", "toml", "csv")
HALVES = {False: "What Lambda ships", True: "What users' machines run"}


def page_of(package: Path) -> str:
    return (package / "README.md").read_text()


def sections(page: str) -> dict[str, str]:
    """The text under each heading of the second level."""
    _, *parts = re.split(r"^## (.*)\n", page, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def names_in(text: str) -> list[str]:
    """A text in backticks that could be a module, or a name in one: `decide.decide(moment)` is decide.decide."""
    code = [each.partition("(")[0] for each in re.findall(r"`([^`\n]+)`", text)]
    names = [each for each in code if re.fullmatch(r"[a-z]\w*(\.\w+)+", each)]
    return [each for each in names if each.rpartition(".")[2] not in FILE_ENDINGS]


def defined_in(node: ast.AST) -> dict[str, ast.AST]:
    found: dict[str, ast.AST] = {}
    for each in getattr(node, "body", []):
        if isinstance(each, ast.FunctionDef | ast.ClassDef):
            found[each.name] = each
        elif isinstance(each, ast.Assign | ast.AnnAssign):
            targets = each.targets if isinstance(each, ast.Assign) else [each.target]
            found |= {target.id: each for target in targets if isinstance(target, ast.Name)}
    return found


def leads_somewhere(dotted: str, folder: Path) -> bool:
    """Whether a name leads from a package's folder to a module, a package, or something that a module defines."""
    first, _, rest = dotted.partition(".")
    if (folder / first / "__init__.py").exists():
        return not rest or leads_somewhere(rest, folder / first)
    module = folder / f"{first}.py"
    if not module.exists():
        return False
    node: ast.AST | None = ast.parse(module.read_text())
    for part in rest.split(".") if rest else []:
        node = defined_in(node).get(part) if node else None
    return node is not None


def modules_below(package: Path) -> list[str]:
    """The modules of a package and the packages in it, but not the content of those."""
    modules = [path.stem for path in package.glob("*.py") if path.name != "__init__.py"]
    return sorted(modules + [path.parent.name for path in package.glob("*/__init__.py")])


def in_reading_order(page: str) -> list[str]:
    """The modules of the numbered list: the text in backticks before the colon of each item."""
    items = re.findall(r"^\d+\. ([^:]+):", sections(page)["Reading order"], re.MULTILINE)
    return [each for item in items for each in re.findall(r"`(\w+)/?`", item)]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_every_package_has_a_page_that_leads_through_its_modules(package: Path) -> None:
    page = page_of(package)
    assert page.startswith(f"# {package.name}\n")
    assert list(sections(page)) == HEADINGS
    assert sorted(in_reading_order(page)) == modules_below(package)
    assert ast.get_docstring(ast.parse((package / "__init__.py").read_text()))


@pytest.mark.parametrize("package", ROOMS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_room_of_a_package_has_a_page_with_one_picture(package: Path) -> None:
    page = page_of(package)
    assert page.startswith(f"# {package.name}\n")
    assert list(sections(page)) == ["Question", "Entry points", "Invariants", "Picture"]
    assert sections(page)["Picture"].count("```") == 2
    folders = (package, package.parent, package.parent.parent)
    assert [each for each in names_in(page) if not any(leads_somewhere(each, folder) for folder in folders)] == []


def test_every_room_of_the_simulation_has_a_page_that_leads_through_its_modules() -> None:
    rooms = sorted(path.parent for path in SIMULATION.glob("*/__init__.py"))
    assert len(rooms) > 1
    for room in rooms:
        page = page_of(room)
        assert page.startswith(f"# {room.name}\n")
        assert list(sections(page)) == ["Question", "Entry points", "Reading order"], room
        assert sorted(in_reading_order(page)) == modules_below(room)
        folders = (room, SIMULATION, ROOT / "controller")
        assert [each for each in names_in(page) if not any(leads_somewhere(each, where) for where in folders)] == []


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_what_a_package_page_names_exists(package: Path) -> None:
    folders = (package, package.parent)
    named = names_in(page_of(package))
    assert [each for each in named if not any(leads_somewhere(each, folder) for folder in folders)] == []


def test_package_pages_say_which_half_each_belongs_to() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    [ships] = [each for each in contracts if each.get("source_modules") == ["argosy.handlers"]]
    users = {each.removeprefix("argosy.") for each in ships["forbidden_modules"]}
    said = {package.name: page_of(package).splitlines()[2] for package in PACKAGES}
    assert {name: half for name, half in said.items() if not half.startswith(HALVES[name in users])} == {}


def test_a_page_that_names_what_does_not_exist_is_seen() -> None:
    package = ROOT / "controller/argosy/scheduler"
    assert names_in("`decide.decide(moment)`, `Moment`, `cdk.json`, `model.moment`") == [
        "decide.decide",
        "model.moment",
    ]
    assert leads_somewhere("decide.decide", package)
    assert leads_somewhere("model.moment.Moment.owed", package.parent)
    assert not leads_somewhere("decide.gone", package)
    assert not leads_somewhere("gone.decide", package)
    assert in_reading_order("## Reading order\n\n1. `decide`: what is next?\n2. `a/`, `b`: `c`\n") == [
        "decide",
        "a",
        "b",
    ]

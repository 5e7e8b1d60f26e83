"""The files of a program become its result if it succeeds."""

from __future__ import annotations

import os

import pytest

from tests.fakes.signed_s3 import TOKEN
from tests.runners import OUTPUT, PART, RunnerUnderTest

pytestmark = pytest.mark.slow


MIB = 1024 * 1024


def test_standard_output_is_the_result_and_the_log(runner: RunnerUnderTest) -> None:
    ended = runner.shell("echo '{\"n\": 1}'; echo aside >&2; echo '{\"n\": 2}'", result="stdout")
    assert ended.code == 0
    assert ended.out == runner.s3.body(PART) == b'{"n": 1}\n{"n": 2}\n'
    assert ended.err == b"aside\n"


def test_a_part_names_the_attempt_that_wrote_it(runner: RunnerUnderTest) -> None:
    runner.shell("echo 1", result="stdout")
    assert runner.s3.buckets["results"][PART].metadata == {"argosy-attempt": "2"}


def test_a_part_of_an_earlier_attempt_stays(runner: RunnerUnderTest) -> None:
    runner.s3.put(PART, b"earlier\n")
    ended = runner.shell("echo later", result="stdout")
    assert ended.code == 0
    assert runner.s3.body(PART) == b"earlier\n"


OTHER_VERSION = {"ARGOSY_FIRST_ATTEMPT": "2"}  # of the program: the attempt under test is the second


def test_a_part_of_another_version_of_the_program_is_replaced(runner: RunnerUnderTest) -> None:
    runner.s3.put(PART, b"earlier\n", metadata={"argosy-attempt": "1"})
    ended = runner.shell("echo later", changes=OTHER_VERSION, result="stdout")
    assert ended.code == 0
    assert runner.s3.body(PART) == b"later\n"
    assert runner.s3.buckets["results"][PART].metadata == {"argosy-attempt": "2"}


@pytest.mark.parametrize("there", [{"argosy-attempt": "2"}, {"argosy-attempt": "3"}, {}])
def test_a_part_of_the_same_version_or_of_the_program_itself_stays(
    runner: RunnerUnderTest, there: dict[str, str]
) -> None:
    runner.s3.put(PART, b"there\n", metadata=there)
    assert runner.shell("echo later", changes=OTHER_VERSION, result="stdout").code == 0
    assert runner.s3.body(PART) == b"there\n"


def test_a_large_part_replaces_that_of_another_version(runner: RunnerUnderTest) -> None:
    runner.s3.put(PART, b"earlier\n", metadata={"argosy-attempt": "1"})
    script = f"import os; open(os.environ['ARGOSY_OUT'] + '/part.jsonl', 'wb').truncate({65 * MIB})"
    assert runner.python(script, changes=OTHER_VERSION, result="folder").code == 0
    assert len(runner.s3.body(PART)) == 65 * MIB


def test_a_folder_is_uploaded_file_by_file(runner: RunnerUnderTest) -> None:
    script = """
        cd "$ARGOSY_OUT" && mkdir -p a/b empty
        printf one > a/b/one.txt; printf two > "two words+ä%20.txt"; : > nothing
    """
    assert runner.shell(script, result="folder").code == 0
    assert runner.s3.names() == [f"{OUTPUT}a/b/one.txt", f"{OUTPUT}nothing", f"{OUTPUT}two words+ä%20.txt"]
    assert runner.s3.body(f"{OUTPUT}a/b/one.txt") == b"one"
    assert runner.s3.body(f"{OUTPUT}nothing") == b""


def test_a_file_named_part_is_the_part(runner: RunnerUnderTest) -> None:
    script = 'cd "$ARGOSY_OUT"; echo 7 > part.jsonl; echo model > model.bin; mkdir d; echo x > d/part.jsonl'
    assert runner.shell(script, result="folder").code == 0
    assert runner.s3.body(PART) == b"7\n"
    assert runner.s3.names(OUTPUT) == [f"{OUTPUT}d/part.jsonl", f"{OUTPUT}model.bin"]
    assert runner.s3.requests[-1][2] == PART  # last: where it is, everything is


def test_the_only_file_is_the_part_when_its_name_ends_alike(runner: RunnerUnderTest) -> None:
    assert runner.shell('echo 7 > "$ARGOSY_OUT/rows.jsonl"', result="folder").code == 0
    assert runner.s3.names(OUTPUT) == []
    assert runner.s3.body(PART) == b"7\n"


def test_the_only_file_of_another_kind_is_a_file(runner: RunnerUnderTest) -> None:
    assert runner.shell('echo 7 > "$ARGOSY_OUT/model.bin"', result="folder").code == 0
    assert runner.s3.names() == [f"{OUTPUT}model.bin"]


def test_the_parts_suffix_is_that_of_its_address(runner: RunnerUnderTest) -> None:
    csv = PART.replace(".jsonl", ".csv")
    changes = {"ARGOSY_PART_URI": f"s3://results/{csv}"}
    script = 'echo 7 > "$ARGOSY_OUT/part.csv"; echo 8 > "$ARGOSY_OUT/part.jsonl"'
    assert runner.shell(script, changes=changes, result="folder").code == 0
    assert runner.s3.names() == [f"{OUTPUT}part.jsonl", csv]


@pytest.mark.parametrize("result", ["stdout", "folder"])
def test_a_program_that_writes_nothing_is_reported(runner: RunnerUnderTest, result: str) -> None:
    ended = runner.shell("mkdir $ARGOSY_OUT/empty; echo only a log >&2", result=result)
    assert ended.code == 65
    assert "wrote" in ended.sentence
    assert runner.s3.names() == []


def test_without_a_result_nothing_is_needed(runner: RunnerUnderTest) -> None:
    ended = runner.shell("echo x > $ARGOSY_OUT/x", result="none")
    assert (ended.code, ended.is_silent) == (0, True)
    assert runner.s3.requests == []


@pytest.mark.parametrize("result", ["stdout", "folder"])
def test_a_program_that_fails_leaves_nothing(runner: RunnerUnderTest, result: str) -> None:
    ended = runner.shell('echo half; echo half > "$ARGOSY_OUT/part.jsonl"; exit 7', result=result)
    assert (ended.code, ended.out) == (7, b"half\n")
    assert runner.s3.names() == []
    assert ended.is_silent


def test_a_program_that_is_killed_leaves_nothing(runner: RunnerUnderTest) -> None:
    assert runner.shell("echo half; kill -9 $$", result="stdout").code == 137
    assert runner.s3.names() == []


@pytest.mark.parametrize("number", ["2", "0", "one", ""])
def test_another_protocol_is_refused(runner: RunnerUnderTest, number: str) -> None:
    ended = runner.shell("echo ran", changes={"ARGOSY_RUNNER": number}, result="stdout")
    assert (ended.code, ended.out) == (64, b"")
    assert "protocol" in ended.sentence


def test_an_unknown_kind_of_result_is_refused(runner: RunnerUnderTest) -> None:
    ended = runner.shell("echo ran", result="database")
    assert (ended.code, ended.out) == (64, b"")
    assert "database" in ended.sentence


def test_a_program_that_is_not_there_is_named(runner: RunnerUnderTest) -> None:
    ended = runner.run("argosy:program", "no-such-program", result="folder")
    assert ended.code == 127
    assert "no-such-program" in ended.sentence


def test_a_file_that_cannot_be_executed_is_named(runner: RunnerUnderTest) -> None:
    job = runner.job(runner.program({"data.txt": "not a program"}))
    ended = runner.run("argosy:program", "./data.txt", result="folder", job=job)
    assert ended.code == 126
    assert "./data.txt" in ended.sentence


def test_large_files_travel_in_pieces(runner: RunnerUnderTest) -> None:
    times = (65 * MIB + 1024) // 256
    script = f"import os; open(os.environ['ARGOSY_OUT'] + '/big', 'wb').write(bytes(range(256)) * {times})"
    assert runner.python(script, result="folder").code == 0
    body = runner.s3.body(f"{OUTPUT}big")
    assert body == bytes(range(256)) * times
    assert runner.s3.asked("PUT", f"{OUTPUT}big") > 1


def test_a_large_part_is_written_once(runner: RunnerUnderTest) -> None:
    script = f"import os; open(os.environ['ARGOSY_OUT'] + '/part.jsonl', 'wb').truncate({65 * MIB})"
    assert runner.python(script, result="folder").code == 0
    assert runner.s3.buckets["results"][PART].metadata == {"argosy-attempt": "2"}
    runner.s3.put(PART, b"earlier\n")
    assert runner.python(script, result="folder").code == 0
    assert runner.s3.body(PART) == b"earlier\n"


def test_more_files_than_the_job_allows_are_refused_before_the_first_is_sent(runner: RunnerUnderTest) -> None:
    job = runner.job(limits={"resultFiles": 3, "resultBytes": 100})
    ended = runner.shell("cd $ARGOSY_OUT; touch 1 2 3 4", result="folder", job=job)
    assert ended.code == 64
    assert "3" in ended.sentence
    assert runner.s3.names(RUN_OUTPUT) == []


def test_more_files_than_ten_thousand_are_refused_unless_the_job_allows_them(runner: RunnerUnderTest) -> None:
    script = "import os\nfor n in range(10_001): open(f\"{os.environ['ARGOSY_OUT']}/{n}\", 'w')"
    ended = runner.python(script, result="folder")
    assert ended.code == 64
    assert "10,000" in ended.sentence.replace("10000", "10,000")
    assert runner.s3.names() == []


def test_more_bytes_than_the_job_allows_are_refused(runner: RunnerUnderTest) -> None:
    job = runner.job(limits={"resultFiles": 3, "resultBytes": 100})
    ended = runner.shell("cd $ARGOSY_OUT; printf %0101d 1 > large", result="folder", job=job)
    assert ended.code == 64
    assert runner.s3.names(RUN_OUTPUT) == []


def test_fifty_gigabytes_are_refused_by_default(runner: RunnerUnderTest) -> None:
    script = "import os; open(os.environ['ARGOSY_OUT'] + '/sparse', 'wb').truncate(50 * 1024**3 + 1)"
    ended = runner.python(script, result="folder")
    assert ended.code == 64
    assert runner.s3.requests == []


def test_a_link_to_a_file_is_uploaded_as_the_file(runner: RunnerUnderTest) -> None:
    assert runner.shell("cd $ARGOSY_OUT; echo 3 > step3; ln -s step3 latest", result="folder").code == 0
    assert runner.s3.body(f"{OUTPUT}latest") == b"3\n"


@pytest.mark.parametrize(
    "script", ["ln -s /etc odd", "ln -s odd odd", "mkfifo odd"], ids=["a folder's link", "a circle", "a pipe"]
)
def test_what_is_no_file_is_named_before_anything_is_sent(runner: RunnerUnderTest, script: str) -> None:
    ended = runner.shell(f"cd $ARGOSY_OUT; echo fine > fine; {script}", result="folder")
    assert ended.code == 64
    assert "odd" in ended.sentence
    assert runner.s3.names() == []


def test_a_link_that_leads_nowhere_is_left_out_with_a_line_and_the_rest_is_the_result(runner: RunnerUnderTest) -> None:
    script = "cd $ARGOSY_OUT; echo 3 > step3; ln -s step2 latest; mkdir d; ln -s ../gone d/old"
    ended = runner.shell(script, result="folder")
    assert ended.code == 0
    assert runner.s3.names() == [f"{OUTPUT}step3"]
    for name in ("latest", "d/old"):
        assert f"argosy: {name} in $ARGOSY_OUT is a link that leads nowhere: left out" in ended.err.decode()


def test_links_that_lead_nowhere_alone_are_no_result(runner: RunnerUnderTest) -> None:
    assert runner.shell("ln -s gone $ARGOSY_OUT/latest", result="folder").code == 65


def test_a_name_that_is_not_utf_8_is_refused(runner: RunnerUnderTest) -> None:
    ended = runner.python(
        "import os; open(os.environb[b'ARGOSY_OUT'] + b'/\\xff\\x1b[2J', 'w').write('x')", result="folder"
    )
    assert ended.code == 64
    assert "UTF-8" in ended.sentence
    assert b"\x1b" not in ended.err


def test_nothing_is_left_on_the_disk(runner: RunnerUnderTest) -> None:
    job = runner.job(runner.program({"a.txt": "a"}))
    assert runner.shell("cat a.txt > $ARGOSY_OUT/part.jsonl", result="folder", job=job).code == 0
    assert list(runner.roots.iterdir()) == []


def test_a_program_has_its_own_folders(runner: RunnerUnderTest) -> None:
    script = 'test -w "$ARGOSY_OUT" && test -d "$ARGOSY_IN" && test -w "$HOME" && echo "$ARGOSY_OUT $ARGOSY_IN $HOME"'
    ended = runner.shell(script, changes={"HOME": None}, result="stdout")
    folders = ended.out.decode().split()
    assert len(set(folders)) == 3
    assert all(os.path.isabs(each) and each.startswith(str(runner.roots)) for each in folders)


def test_a_home_that_is_set_stays(runner: RunnerUnderTest) -> None:
    assert runner.shell('echo "$HOME $PYTHONUNBUFFERED"', result="stdout").out.decode() == f"{runner.folder} 1\n"


def test_credentials_of_a_session_are_used(runner: RunnerUnderTest) -> None:
    runner.s3.tokens_needed = True
    assert runner.shell("echo 1", changes={"AWS_SESSION_TOKEN": TOKEN}, result="stdout").code == 0
    assert runner.s3.body(PART) == b"1\n"


RUN_OUTPUT = "run/"

"""Functions run in processes of their own and fail as on Lambda; only their processes are ever lost."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from argosy.local.lambdas.function import FunctionSpec, LambdaFunction, ThrottledError
from argosy.local.lambdas.ticker import Ticker
from argosy.local.options import package_root
from tests.fakes.local_mode import forks
from tests.fakes.serving import front
from tests.fakes.waiting import is_gone, until

pytestmark = pytest.mark.slow

Deploy = Callable[..., AbstractContextManager[LambdaFunction]]


@pytest.fixture
def deployed(tmp_path: Path) -> Deploy:
    """A function of tests/fakes/lambda_handlers.py for the length of a `with`."""

    @contextmanager
    def deploy(
        handler: str = "obey", concurrency: int = 1, throttles: bool = True, timeout_s: float = 30.0
    ) -> Iterator[LambdaFunction]:
        spec = FunctionSpec(
            name="argosy-test",
            handler=f"tests.fakes.lambda_handlers.{handler}",
            arn="arn:aws:lambda:us-east-1:123456789012:function:argosy-test",
            environment={"PATH": os.environ["PATH"], "PYTHONPATH": str(package_root()), "SET_FOR_TEST": "yes"},
            concurrency=concurrency,
            throttles=throttles,
            timeout_s=timeout_s,
            retry_delay_s=0.0,
        )
        function = LambdaFunction(spec, forks(), tmp_path / "function.log")
        try:
            yield function
        finally:
            function.close()

    return deploy


def _invoke(function: LambdaFunction, **event: Any) -> tuple[str | None, Any]:
    outcome = function.invoke(json.dumps(event).encode(), "request-1")
    return outcome.error, json.loads(outcome.payload)


def test_a_disk_that_is_full_costs_log_lines_and_no_invocation(
    deployed: Deploy, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "function.log"
    log.symlink_to("/dev/full")  # whatever is written there, the kernel answers ENOSPC
    with deployed("echo") as function:
        for _ in range(2):
            assert _invoke(function, a=1)[0] is None
        assert until(lambda: "No space left" in capsys.readouterr().err)
        log.unlink()
        assert _invoke(function, a=1)[0] is None
        assert until(lambda: log.exists() and "hello" in log.read_text())
    assert capsys.readouterr().err == ""  # it was said once


def test_the_handler_gets_event_context_and_environment_and_its_output_goes_to_the_log(
    deployed: Deploy, tmp_path: Path
) -> None:
    with deployed("echo") as function:
        error, reply = _invoke(function, a=[1, None])
    assert error is None
    assert reply["event"] == {"a": [1, None]}
    assert (reply["variable"], reply["requestId"], reply["function"]) == ("yes", "request-1", "argosy-test")
    assert reply["arn"].endswith(":function:argosy-test")
    assert 0 < reply["remainingMs"] <= 30_000
    assert "hello" in (tmp_path / "function.log").read_text()  # complete once the function is closed


def test_an_invocation_that_fails_is_reported_with_its_log_and_one_that_is_killed_is_not(tmp_path: Path) -> None:
    told: list[tuple[str, Path]] = []
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(package_root())}
    handler, log = "tests.fakes.lambda_handlers.obey", tmp_path / "function.log"
    spec = FunctionSpec("argosy-test", handler, "arn", environment, 1, True, 30.0, 0.0)
    function = LambdaFunction(spec, forks(), log, lambda what, where: told.append((what, where)))
    try:
        assert _invoke(function, do="fail")[0] == "Unhandled"
        assert _invoke(function, do="exit")[0] == "Unhandled"
        assert _invoke(function)[0] is None
        with ThreadPoolExecutor() as pool:
            hanging = pool.submit(_invoke, function, do="hang", path=str(tmp_path / "pid"))
            until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text() != "")
            function.kill()
            assert hanging.result()[0] == "Unhandled"
    finally:
        function.close()
    assert [what for what, _ in told] == [
        "argosy-test failed: ValueError: as asked",
        "argosy-test failed: Runtime.ExitError: RequestId: request-1 Error: Runtime exited with error: exit status 3",
    ]
    assert {where for _, where in told} == {log}


def test_a_process_is_used_again_and_ends_with_the_function(deployed: Deploy) -> None:
    with deployed() as function:
        pids = {_invoke(function)[1]["pid"] for _ in range(3)}
    assert len(pids) == 1
    assert is_gone(pids.pop())


def test_an_exception_is_an_unhandled_error_and_the_process_lives_on(deployed: Deploy) -> None:
    with deployed() as function:
        before = _invoke(function)[1]["pid"]
        error, document = _invoke(function, do="fail")
        assert _invoke(function)[1]["pid"] == before
    assert error == "Unhandled"
    assert (document["errorType"], document["errorMessage"]) == ("ValueError", "as asked")


def test_a_reply_that_is_no_json_is_an_unhandled_error(deployed: Deploy) -> None:
    with deployed() as function:
        assert _invoke(function, do="unspeakable")[0] == "Unhandled"


@pytest.mark.parametrize(("do", "told"), [("exit", "exit status 3"), ("die", "SIGKILL")])
def test_a_process_that_dies_is_an_unhandled_error_and_is_replaced(deployed: Deploy, do: str, told: str) -> None:
    with deployed() as function:
        before = _invoke(function)[1]["pid"]
        error, document = _invoke(function, do=do)
        assert (error, document["errorType"]) == ("Unhandled", "Runtime.ExitError")
        assert told in document["errorMessage"]
        assert _invoke(function)[1]["pid"] != before


def test_a_process_killed_while_idle_is_replaced_without_an_error(deployed: Deploy) -> None:
    with deployed() as function:
        (pid,) = {_invoke(function)[1]["pid"]}
        assert function.kill() == [pid]
        until(lambda: is_gone(pid))
        error, reply = _invoke(function)
    assert error is None
    assert reply["pid"] != pid


def test_an_invocation_that_overruns_its_time_is_killed(deployed: Deploy, tmp_path: Path) -> None:
    with deployed(timeout_s=1.0) as function:
        error, document = _invoke(function, do="hang", path=str(tmp_path / "pid"))
    assert (error, document["errorType"]) == ("Unhandled", "Sandbox.Timedout")


def test_reserved_concurrency_throttles_a_second_synchronous_call(deployed: Deploy, tmp_path: Path) -> None:
    started = tmp_path / "pid"
    with deployed() as function, ThreadPoolExecutor(1) as pool:
        hanging = pool.submit(_invoke, function, do="hang", path=str(started))
        until(started.exists)
        assert function.is_busy
        with pytest.raises(ThrottledError):
            _invoke(function)
        function.kill()
        assert hanging.result(30)[0] == "Unhandled"


def test_without_reserved_concurrency_calls_wait_for_a_free_process(deployed: Deploy) -> None:
    with deployed("echo", concurrency=2, throttles=False) as function, ThreadPoolExecutor(6) as pool:
        replies = list(pool.map(lambda number: _invoke(function, n=number), range(12)))
    assert sorted(reply["event"]["n"] for _, reply in replies) == list(range(12))
    assert len({reply["pid"] for _, reply in replies}) <= 2


def test_an_event_is_tried_three_times_and_no_more(deployed: Deploy, tmp_path: Path) -> None:
    counted = tmp_path / "count"
    with deployed() as function:
        function.invoke_later(json.dumps({"do": "count", "path": str(counted), "until": 99}).encode(), "r")
        until(lambda: counted.exists() and len(counted.read_text().splitlines()) == 3)
        until(lambda: not function.is_busy)
        assert len(counted.read_text().splitlines()) == 3


def test_an_event_waits_for_the_running_invocation(deployed: Deploy, tmp_path: Path) -> None:
    started, counted = tmp_path / "pid", tmp_path / "count"
    with deployed() as function, ThreadPoolExecutor(1) as pool:
        hanging = pool.submit(_invoke, function, do="hang", path=str(started))
        until(started.exists)
        function.invoke_later(json.dumps({"do": "count", "path": str(counted)}).encode(), "r")
        assert not counted.exists()
        function.kill()
        hanging.result(30)
        until(counted.exists)


def test_close_ends_a_running_invocation_and_its_threads(deployed: Deploy, tmp_path: Path) -> None:
    before, started = set(threading.enumerate()), tmp_path / "pid"
    with ThreadPoolExecutor(1) as pool:
        with deployed() as function:
            hanging = pool.submit(_invoke, function, do="hang", path=str(started))
            pid = int(until(lambda: started.exists() and started.read_text()))
        assert hanging.result(30)[0] == "Unhandled"
    assert is_gone(pid)
    assert set(threading.enumerate()) == before


def test_being_killed_by_several_threads_at_once_is_one_death(deployed: Deploy, tmp_path: Path) -> None:
    with deployed() as function, ThreadPoolExecutor(9) as pool:
        for number in range(5):
            started = tmp_path / f"pid{number}"
            hanging = pool.submit(_invoke, function, do="hang", path=str(started))
            until(started.exists)
            for killing in [pool.submit(function.kill) for _ in range(8)]:
                killing.result(30)
            assert hanging.result(30)[0] == "Unhandled"


def test_boto3_sees_payloads_errors_and_throttles_as_on_lambda(deployed: Deploy, tmp_path: Path) -> None:
    started = tmp_path / "pid"
    with deployed() as function, front(functions={"argosy-test": function}) as clients, ThreadPoolExecutor(1) as pool:
        client = clients("lambda")
        reply = client.invoke(FunctionName=function.spec.arn, Payload=b"{}")
        assert reply["StatusCode"] == 200
        assert "FunctionError" not in reply
        assert json.load(reply["Payload"])["pid"]
        assert client.invoke(FunctionName="argosy-test", Payload=b'{"do": "fail"}')["FunctionError"] == "Unhandled"
        assert client.invoke(FunctionName="argosy-test", InvocationType="DryRun")["StatusCode"] == 204
        event = json.dumps({"do": "hang", "path": str(started)}).encode()
        assert client.invoke(FunctionName="argosy-test", InvocationType="Event", Payload=event)["StatusCode"] == 202
        until(started.exists)
        busy = pool.submit(_throttled, client)
        assert busy.result(30) == "TooManyRequestsException"


def _throttled(client: Any) -> str:
    with pytest.raises(ClientError) as caught:
        client.invoke(FunctionName="argosy-test")
    return str(caught.value.response["Error"]["Code"])


@pytest.mark.parametrize(
    ("name", "kind", "payload", "code"),
    [
        ("unknown", "RequestResponse", b"{}", "ResourceNotFoundException"),
        ("argosy-test", "Sometimes", b"{}", "InvalidParameterValueException"),
        ("argosy-test", "RequestResponse", b"{", "InvalidRequestContentException"),
        pytest.param("argosy-test", "RequestResponse", b"[" * 200_000, "InvalidRequestContentException", id="too deep"),
        ("argosy-test", "Event", b'"' + b"x" * 1_100_000 + b'"', "RequestTooLargeException"),
    ],
)
def test_bad_invocations_are_refused(deployed: Deploy, name: str, kind: str, payload: bytes, code: str) -> None:
    with (
        deployed() as function,
        front(functions={"argosy-test": function}) as clients,
        pytest.raises(ClientError) as caught,
    ):
        clients("lambda").invoke(FunctionName=name, InvocationType=kind, Payload=payload)
    assert caught.value.response["Error"]["Code"] == code


def test_the_ticker_invokes_while_its_rule_is_enabled(deployed: Deploy, tmp_path: Path) -> None:
    asked = threading.Event()

    def is_enabled() -> bool:
        asked.set()
        return enabled.is_set()

    enabled = threading.Event()
    with deployed("echo") as function:
        ticker = Ticker(function, is_enabled, 0.01)
        ticker.start()
        try:
            assert asked.wait(10)
            assert not (tmp_path / "function.log").exists()
            enabled.set()
            until(lambda: (tmp_path / "function.log").exists() and "hello" in (tmp_path / "function.log").read_text())
        finally:
            ticker.close()


def test_the_ticker_takes_its_time_after_an_invocation_that_left_quiet(deployed: Deploy, tmp_path: Path) -> None:
    asked = threading.Semaphore(0)

    def is_enabled() -> bool:
        asked.release()
        return True

    with deployed("quiet") as function:
        ticker = Ticker(function, is_enabled, 0.01)
        ticker.start()
        try:
            until(lambda: function.latest == b'{"reason": "quiet"}')
            assert asked.acquire(timeout=60)
            while asked.acquire(timeout=0.3):
                assert (tmp_path / "function.log").read_text().count("hello") == 1
            function.invoke(b'{"found": "rest"}', "called")
            assert asked.acquire(timeout=60)
        finally:
            ticker.close()


def test_a_call_that_waits_for_its_turn_is_reported(deployed: Deploy, tmp_path: Path) -> None:
    with deployed() as function:
        hanging = tmp_path / "pid"
        function.invoke_later(json.dumps({"do": "hang", "path": str(hanging)}).encode(), "r")
        until(hanging.exists)
        assert not function.waits
        function.invoke_later(b"{}", "r")
        assert function.waits
        function.kill()


def test_an_asynchronous_call_that_has_to_wait_for_another_tells_so(deployed: Deploy, tmp_path: Path) -> None:
    told = threading.Event()
    with deployed() as function:
        function.on_wait = told.set
        function.invoke_later(b"{}", "r")
        until(lambda: not function.is_busy)
        assert not told.is_set()
        hanging = tmp_path / "pid"
        function.invoke_later(json.dumps({"do": "hang", "path": str(hanging)}).encode(), "r")
        until(hanging.exists)
        function.invoke_later(b"{}", "r")
        assert told.is_set()


def test_a_function_that_is_warm_has_its_process_before_it_is_called(deployed: Deploy) -> None:
    with deployed() as function:
        function.warm()
        (pid,) = function.kill()
        assert pid != _invoke(function)[1]["pid"]
        function.warm()
        assert len(function.kill()) == 1

"""Where is the deployment, and what does its api function answer?

The user's own credentials read one SSM parameter (or, failing that, the stack's outputs) and invoke one function.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from controller.cli.problems import AWS_FAULT, USAGE, CliError, error_code

if TYPE_CHECKING:
    from controller.cli.session import Session

PAGE_SIZE = 1000  # tasks asked for in one DescribeRun
_EXIT_CODES = {400: USAGE, 404: USAGE, 409: USAGE}  # the user can put these right by typing something else


@dataclass(frozen=True)
class Deployment:
    """What `/<prefix>/deployment` says. Names, not ARNs, unless a field says otherwise."""

    prefix: str
    region: str
    cluster: str
    api_function: str
    bucket: str
    log_group: str
    cells: tuple[str, ...] = ()


class ApiError(CliError):
    """The api refused the request: `code` is its own, `faults` are (path, message)."""

    def __init__(self, status: int, error: Mapping[str, Any]) -> None:
        self.code = str(error.get("code", "InternalError"))
        self.faults = [(str(each["path"]), str(each["message"])) for each in error.get("fieldList") or ()]
        super().__init__(
            str(error.get("message", "no message")),
            exit_code=_EXIT_CODES.get(status, AWS_FAULT),
            details=[": ".join(part for part in each if part) for each in self.faults],
            next_step=_next_step(self.code, str(error.get("requestId") or "")),
        )


def _next_step(code: str, request_id: str) -> str:
    steps = {
        "ResourceNotFoundException": "type `argosy runs` to see the runs there are",
        "ConflictException": "use another --client-token, or leave it out",
        "ThrottlingException": "wait a little and type it again",
        "InternalError": f"look for request {request_id} in the api function's log",
    }
    return steps.get(code, "")


def prefix_of(stage: str) -> str:
    """The start of every name of a deployment. Raises CliError for what cannot be a stage."""
    from pydantic import ValidationError

    from controller.settings import Settings

    try:
        return Settings(stage=stage).prefix
    except ValidationError as fault:
        raise CliError(f"{stage!r} is no stage: 1 to 16 lower-case letters, digits and -, a letter first.") from fault


def find_deployment(session: Session) -> Deployment:
    """Raises CliError when there is none."""
    prefix = prefix_of(session.place.stage)
    found = _from_parameter(session, prefix) or _from_stack(session, prefix)
    if found is None:
        raise CliError(
            f"No deployment found: there is no parameter /{prefix}/deployment and no stack {prefix}.",
            next_step=_where_else(session),
            exit_code=AWS_FAULT,
        )
    return found


def _where_else(session: Session) -> str:
    if session.place.is_loopback:
        return f"type `argosy local --port {session.place.endpoint_url.rsplit(':')[-1].strip('/')}`"  # type: ignore[union-attr]
    return "type `make deploy`, or name another --stage, --region or --profile (`argosy local` needs no account)"


def _from_parameter(session: Session, prefix: str) -> Deployment | None:
    from botocore.exceptions import ClientError

    try:
        value = session.client("ssm").get_parameter(Name=f"/{prefix}/deployment")["Parameter"]["Value"]
    except ClientError as fault:
        if error_code(fault) == "ParameterNotFound":
            return None
        raise
    body = json.loads(value)
    return Deployment(
        prefix=prefix,
        region=body["region"],
        cluster=body["cluster"],
        api_function=body["apiFunction"],
        bucket=body["bucket"],
        log_group=body["logGroup"],
        cells=tuple(body.get("cells") or ()),
    )


def _from_stack(session: Session, prefix: str) -> Deployment | None:
    """The stack's outputs: for a user who may not read parameters, or one deleted by hand."""
    from botocore.exceptions import ClientError

    if session.place.is_loopback:
        return None  # local mode has no stacks
    try:
        [stack] = session.client("cloudformation").describe_stacks(StackName=prefix)["Stacks"]
    except ClientError as fault:
        if error_code(fault) == "ValidationError":  # "Stack with id argosy does not exist"
            return None
        raise
    outputs = {each["OutputKey"]: each["OutputValue"] for each in stack.get("Outputs", ())}
    if "ApiFunctionName" not in outputs:
        return None
    return Deployment(
        prefix=prefix,
        region=stack["StackId"].split(":")[3],
        cluster=outputs.get("ClusterName", prefix),
        api_function=outputs["ApiFunctionName"],
        bucket=outputs.get("ResultsBucketName", ""),
        log_group=outputs.get("LogGroupName", f"/ecs/{prefix}/tasks"),
    )


class Api:
    """The five actions. Each answers the body of the envelope, and raises ApiError or what botocore raises."""

    def __init__(self, functions: Any, function_name: str) -> None:
        self._functions = functions
        self._function_name = function_name

    def submit(self, spec: Mapping[str, Any], client_token: str) -> dict[str, Any]:
        """The same token and spec again answer the same run with created = false."""
        return self._call("SubmitRun", spec=spec, clientToken=client_token)

    def plan(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        return self._call("PlanRun", spec=spec)

    def describe(self, run_id: str) -> dict[str, Any]:
        return self._call("DescribeRun", runId=run_id)

    def describe_with_cost(self, run_id: str) -> dict[str, Any]:
        """The run view with its ledger, `cost`."""
        return self._call("DescribeRun", runId=run_id, include=["cost"])

    def describe_with_tasks(self, run_id: str) -> dict[str, Any]:
        """The run view with all pages of `taskList` in one."""
        view = self._call("DescribeRun", runId=run_id, include=["tasks"], maxResults=PAGE_SIZE)
        tasks, token = list(view.get("taskList", ())), view.get("nextToken")
        while token:
            page = self._call("DescribeRun", runId=run_id, include=["tasks"], maxResults=PAGE_SIZE, nextToken=token)
            tasks += page.get("taskList", ())
            token = page.get("nextToken")
        return {**view, "taskList": tasks, "nextToken": None}

    def runs(self, limit: int) -> dict[str, Any]:
        """The newest `limit` runs; `nextToken` is null when those were all."""
        page = self._call("ListRuns", maxResults=min(limit, 100))
        runs, token = list(page["runs"]), page.get("nextToken")
        while token and len(runs) < limit:
            page = self._call("ListRuns", maxResults=min(limit - len(runs), 100), nextToken=token)
            runs += page["runs"]
            token = page.get("nextToken")
        return {"runs": runs, "nextToken": token}

    def cancel(self, run_id: str, reason: str | None) -> dict[str, Any]:
        return self._call("CancelRun", runId=run_id, **({"reason": reason} if reason else {}))

    def retry(self, run_id: str, failed: bool, cancelled: bool, client_token: str) -> dict[str, Any]:
        """The same token again answers created = false."""
        wanted = {"failed": failed, "cancelled": cancelled, "clientToken": client_token}
        try:
            return self._call("RetryRun", runId=run_id, **wanted)
        except ApiError as refusal:
            if refusal.code == "ConflictException" and "clientToken" not in str(refusal):
                refusal.next_step = ""  # it says itself what is in the way
            raise

    def explain(self, run_id: str, index: int | None) -> dict[str, Any]:
        return self._call("ExplainRun", runId=run_id, **({} if index is None else {"index": index}))

    def cluster(self) -> dict[str, Any]:
        return self._call("DescribeCluster")

    def _call(self, action: str, **fields: Any) -> dict[str, Any]:
        request = json.dumps({"action": action, **fields})
        answer = self._functions.invoke(FunctionName=self._function_name, Payload=request.encode())
        reply = json.loads(answer["Payload"].read() or b"null")
        if answer.get("FunctionError"):
            raise _crashed(self._function_name, reply)
        if not isinstance(reply, dict) or "statusCode" not in reply:
            raise CliError(f"{self._function_name} did not answer as Argosy's api does.", exit_code=AWS_FAULT)
        if reply["statusCode"] != 200:
            raise ApiError(reply["statusCode"], reply["body"]["error"])
        body: dict[str, Any] = reply["body"]
        return body


def _crashed(function_name: str, reply: Any) -> CliError:
    reason = reply.get("errorMessage", "") if isinstance(reply, dict) else ""
    return CliError(
        f"The function {function_name} failed: {reason or 'no reason given'}",
        next_step=f"look at the log group /aws/lambda/{function_name}",
        exit_code=AWS_FAULT,
    )

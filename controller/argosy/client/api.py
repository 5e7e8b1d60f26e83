"""The api of a deployment: one method for each action, invoked with the user's own credentials.

The proof of the sender's identity is a signed call of sts:GetCallerIdentity, which the client does not send itself.
That needs no right and no call, and no secret leaves the machine: only a signature does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from argosy.client.errors import ArgosyError, error_code
from argosy.model.entrances import alias_of
from argosy.model.signed_requests import BODY, PROOF, TEXT, WITH_SPECS, SignedFor


@dataclass(frozen=True, slots=True)
class Signer:
    """Of one deployment. credentials: returns those to sign with, as botocore has them; None = there are none. region:
    of the
    deployment.
    """

    signed_for: SignedFor
    credentials: Callable[[], Any]
    region: str

    def headers(self, action: str, text: str) -> dict[str, str] | None:
        """Of the call, for a request of this text. None if nothing can be signed."""
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest

        found = self.credentials()
        if found is None:
            return None
        call = AWSRequest(
            "POST", f"https://{self.signed_for.host}/", self.signed_for.headers(action, text), BODY.encode()
        )
        SigV4Auth(found, "sts", self.region).add_auth(call)
        return {name.lower(): str(value) for name, value in call.headers.items()}


PAGE_OF_RUNS = 100
PAGE_OF_SCHEDULES = 50
PAGE_SIZE = 1000  # tasks, or instances, in one request
_OF_ENVIRONMENTS = ("Environment", "Environments", "Deployment")  # endings of actions' names
_USERS_FAULTS = (400, 403, 404, 409, 410)  # a different request would succeed


class ApiError(ArgosyError):
    """The api refused the request: `code` is its own, `faults` are (path, message)."""

    def __init__(self, status: int, error: Mapping[str, Any], action: str = "") -> None:
        self.code = str(error.get("code", "InternalError"))
        self.faults = [(str(each["path"]), str(each["message"])) for each in error.get("fieldList") or ()]
        message = str(error.get("message", "no message"))
        super().__init__(
            message,
            is_users_fault=status in _USERS_FAULTS,
            details=[": ".join(part for part in each if part) for each in self.faults],
            next_step=_next_step(self.code, str(error.get("requestId") or ""), action, message),
        )


def _next_step(code: str, request_id: str, action: str, message: str) -> str:
    is_of_environments = action.endswith(_OF_ENVIRONMENTS)
    if code == "ConflictException" and (is_of_environments or action == "CancelRun"):
        return ""  # its message says what to do
    if code == "ResourceNotFoundException" and "has no revision" in message:
        return f"type `argosy env status {message.partition(' ')[0]}` to see its revisions"
    if code == "ResourceNotFoundException" and is_of_environments:
        return "type `argosy env list` to see the environments"
    if action == "ApplySharing":
        return "type `argosy queues` to see what is in force"
    if "schedule" in message and code == "ResourceNotFoundException":
        return "type `argosy schedule list` to see the schedules"
    if "read its current state, then try again" in message or "update it" in message:
        return ""  # the message says what to do
    steps = {
        "ResourceNotFoundException": "type `argosy runs` to see the runs",
        "ConflictException": "use another --client-token, or leave it out",
        "ChangesExpired": "see the present state with `argosy cluster` and `argosy runs`, then leave --since out",
        "ThrottlingException": "wait a moment and try again",
        "InternalError": f"look for request {request_id} in the api function's log",
    }
    return steps.get(code, "")


class ApiClient:
    """One deployment's api. Each method returns the reply's body, and raises ApiError or botocore's errors."""

    def __init__(self, functions: Any, function_name: str, queue: str = "", signer: Signer | None = None) -> None:
        """queue: through whose entrance; "" = the whole deployment's. signer: proves the caller's identity; None = no
        proof.
        """
        self._functions, self._queue, self._signer = functions, queue, signer
        self._function_name = function_name
        self._through = {"Qualifier": alias_of(queue)} if queue else {}

    def submit(self, spec: Mapping[str, Any], client_token: str) -> dict[str, Any]:
        """The run view. Repeating the same token and spec returns the same run, with `created` false."""
        return self._call("SubmitRun", spec=spec, clientToken=client_token)

    def validate(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """What a run of this spec would be; nothing is stored. Raises ApiError with every fault, as submit would."""
        return self._call("ValidateRun", spec=spec)

    def plan(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """What a run of this spec would buy, cost and take; nothing is started."""
        return self._call("PlanRun", spec=spec)

    def describe(self, run_id: str) -> dict[str, Any]:
        """The run view."""
        return self._call("DescribeRun", runId=run_id)

    def describe_with_standing(self, run_id: str) -> dict[str, Any]:
        """The run view with `standing`: its place in line while no task runs and some wait, else null."""
        return self._call("DescribeRun", runId=run_id, include=["standing"])

    def describe_with_cost(self, run_id: str) -> dict[str, Any]:
        """The run view with its ledger, `cost`."""
        return self._call("DescribeRun", runId=run_id, include=["cost"])

    def describe_with_statuses(self, run_id: str) -> dict[str, Any]:
        """The run view with the status of every task, a column (`figures.history.column` reads it)."""
        return self._call("DescribeRun", runId=run_id, include=["statuses"])

    def describe_with_tasks(self, run_id: str) -> dict[str, Any]:
        """The run view with the complete `taskList`."""
        view = self._call("DescribeRun", runId=run_id, include=["tasks"], maxResults=PAGE_SIZE)
        tasks, token = list(view.get("taskList", ())), view.get("nextToken")
        while token:
            page = self._call("DescribeRun", runId=run_id, include=["tasks"], maxResults=PAGE_SIZE, nextToken=token)
            tasks += page.get("taskList", ())
            token = page.get("nextToken")
        return {**view, "taskList": tasks, "nextToken": None}

    def runs(self, limit: int, statuses: Collection[str] = ()) -> dict[str, Any]:
        """The newest `limit` runs; `nextToken` is null when there are no others. statuses: none means all."""
        runs: list[dict[str, Any]] = []
        token: str | None = None
        while True:
            size = PAGE_OF_RUNS if statuses else min(limit - len(runs), PAGE_OF_RUNS)
            page = self._call("ListRuns", maxResults=size, **({"nextToken": token} if token else {}))
            runs += [each for each in page["runs"] if not statuses or each["status"] in statuses]
            token = page.get("nextToken")
            if token is None or len(runs) >= limit:
                cut_at = runs[limit - 1]["runId"] if len(runs) > limit else None
                return {"runs": runs[:limit], "nextToken": token or cut_at}

    def cancel(
        self, run_id: str, reason: str | None, dependents: bool = False, tasks: Sequence[Sequence[int]] = ()
    ) -> dict[str, Any]:
        """The run view after the request. dependents: also the runs that depend on it. tasks: only these stretches."""
        given = {"reason": reason, "dependents": dependents, "tasks": tasks}
        return self._call("CancelRun", runId=run_id, **{name: value for name, value in given.items() if value})

    def retry(self, run_id: str, wanted: Mapping[str, Any], client_token: str) -> dict[str, Any]:
        """The run view. wanted: members of RetryRun, camelCase. Repeating the same token retries nothing and gives
        `created` false.
        """
        return self._call_for_change("RetryRun", runId=run_id, **wanted, clientToken=client_token)

    def update(self, run_id: str, changes: Mapping[str, Any], reason: str, client_token: str) -> dict[str, Any]:
        """The run view as it will be. changes: by the name of the field; None removes a limit. Repeating the same token
        changes
        nothing and gives `created` false.
        """
        why = {"reason": reason} if reason else {}
        return self._call_for_change("UpdateRun", runId=run_id, changes=dict(changes), clientToken=client_token, **why)

    def explain(self, run_id: str, index: int | None) -> dict[str, Any]:
        """Why the run's tasks wait; with `index`, that task's own state too."""
        return self._call("ExplainRun", runId=run_id, **({} if index is None else {"index": index}))

    def cluster(self) -> dict[str, Any]:
        """The deployment's instances, fleets and cost."""
        return self._call("DescribeCluster")

    def cluster_columns(self) -> dict[str, Any]:
        """The same, with its instances and the work on them as columns."""
        return self._call("DescribeCluster", form="columns", include=["attempts"])

    def cluster_history(self, hours: float) -> dict[str, Any]:
        """The same, with its instances as columns, and its `history` of the last hours."""
        return self._call("DescribeCluster", form="columns", include=["history"], historyHours=hours)

    def scale_cluster(self, instances: int, types: Sequence[str], until: float | None) -> dict[str, Any]:
        """Keep at least this many instances, of these types or of any; until: epoch seconds. The reply has the `floor`,
        null if
        there is none.
        """
        wanted: dict[str, Any] = {"instances": instances, "instanceTypes": list(types)}
        return self._call("ScaleCluster", **wanted, **({} if until is None else {"until": until}))

    def drain_instance(self, instance_id: str, until: float | None) -> dict[str, Any]:
        """Let an instance drain until then (epoch seconds); None = let it take tasks again."""
        return self._call("DrainInstance", instanceId=instance_id, **({} if until is None else {"until": until}))

    def tasks(self, limit: int, **filters: Any) -> dict[str, Any]:
        """At most `limit` tasks; `nextToken` is null when there are no others. filters: members of ListTasks."""
        return self._listed("ListTasks", "tasks", limit, filters)

    def instances(self, limit: int, **filters: Any) -> dict[str, Any]:
        """At most `limit` instances; `nextToken` is null when there are no others. filters: members of
        ListInstances."""
        return self._listed("ListInstances", "instances", limit, filters)

    def _listed(self, action: str, what: str, limit: int, filters: Mapping[str, Any]) -> dict[str, Any]:
        page = self._call(action, **filters, maxResults=min(limit, PAGE_SIZE))
        found = list(page[what])
        while page["nextToken"] and len(found) < limit:
            size = min(limit - len(found), PAGE_SIZE)
            page = self._call(action, **filters, maxResults=size, nextToken=page["nextToken"])
            found += page[what]
        return {**page, what: found}

    def changes(self, **wanted: Any) -> dict[str, Any]:
        """A page of the journal's lines: `changes`, and `next`, after which the following page begins. wanted: members
        of ListChanges, camelCase. Raises ApiError with the code ChangesExpired when lines after `since` are gone."""
        return self._call("ListChanges", **wanted)

    def history(self, run_id: str) -> dict[str, Any]:
        """The run's history, all of its instances, its purchases and its failures in groups."""
        view = self._call("DescribeHistory", runId=run_id)
        instances, token = list(view["instances"]), view.get("nextToken")
        while token:
            page = self._call("DescribeHistory", runId=run_id, nextToken=token)
            instances += page["instances"]
            token = page.get("nextToken")
        return {**view, "instances": instances, "nextToken": None}

    def task(self, run_id: str, index: int) -> dict[str, Any]:
        """One task with all its attempts, and where each one's log is."""
        return self._call("DescribeTask", runId=run_id, index=index)

    def attempts(self, run_id: str, token: str | None = None) -> dict[str, Any]:
        """A page of the run's attempts as columns (`client.history` reads them)."""
        return self._call("ListAttempts", runId=run_id, **({"nextToken": token} if token else {}))

    def create_environment(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """`name` and `revision`; nothing is started."""
        return self._call("CreateEnvironment", spec=spec)

    def update_environment(self, name: str, base: int, spec: Mapping[str, Any]) -> dict[str, Any]:
        """The new `revision`, or the newest with `created` false if it is the same. base: the newest revision."""
        return self._call("UpdateEnvironment", name=name, baseRevision=base, spec=spec)

    def start_deployment(self, name: str, revision: int | None, client_token: str) -> dict[str, Any]:
        """The environment, and `deploying`, the revision. revision None: the newest."""
        wanted = {} if revision is None else {"revision": revision}
        return self._call("StartDeployment", name=name, clientToken=client_token, **wanted)

    def roll_back(self, name: str, client_token: str) -> dict[str, Any]:
        """The same, to the revision that was completed before."""
        return self._call("RollBackDeployment", name=name, clientToken=client_token)

    def stop_deployment(self, name: str, reason: str) -> dict[str, Any]:
        """The environment before the request."""
        return self._call("StopDeployment", name=name, reason=reason)

    def scale_environment(self, name: str, desired: int) -> dict[str, Any]:
        """The environment before the request, with the new `desired`."""
        return self._call("ScaleEnvironment", name=name, desired=desired)

    def freeze_environment(self, name: str, reason: str) -> dict[str, Any]:
        """The environment before the request."""
        return self._call("FreezeEnvironment", name=name, reason=reason)

    def thaw_environment(self, name: str) -> dict[str, Any]:
        """The environment before the request."""
        return self._call("ThawEnvironment", name=name)

    def delete_environment(self, name: str, tasks: str = "stop") -> dict[str, Any]:
        """The environment before the request. tasks: stop, or leave."""
        return self._call("DeleteEnvironment", name=name, **({} if tasks == "stop" else {"tasks": tasks}))

    def environment(self, name: str) -> dict[str, Any]:
        """Its state, with its revisions and latest deployments."""
        return self._call("DescribeEnvironment", name=name)

    def endpoints(self, name: str) -> dict[str, Any]:
        """The same, with the addresses of its tasks."""
        return self._call("DescribeEnvironment", name=name, include=["endpoints"])

    def environments(self, prefix: str = "") -> dict[str, Any]:
        """All whose names have this beginning, by name."""
        return self._all_pages("ListEnvironments", "environments", **({"prefix": prefix} if prefix else {}))

    def apply_sharing(
        self, document: Mapping[str, Any] | None, restore: int | None = None, revision: int | None = None
    ) -> dict[str, Any]:
        """The new `revision`. document: None = the one of the revision `restore`. revision: the one that it follows."""
        given = {"document": document, "restore": restore, "revision": revision}
        return self._call("ApplySharing", **{name: value for name, value in given.items() if value is not None})

    def sharing(self) -> dict[str, Any]:
        """The queues: their shares, their use and the runs that wait in them."""
        return self._call("DescribeSharing")

    def create_schedule(self, **wanted: Any) -> dict[str, Any]:
        """The schedule's view. wanted: members of CreateSchedule, camelCase. Repeating it gives `created` false."""
        return self._call("CreateSchedule", **wanted)

    def update_schedule(self, **wanted: Any) -> dict[str, Any]:
        """The schedule's view. wanted: members of UpdateSchedule, camelCase."""
        return self._call("UpdateSchedule", **wanted)

    def schedule(self, name: str, times: int | None = None) -> dict[str, Any]:
        """A schedule with its spec, its next times (as many as the api chooses, unless given) and its last verdicts."""
        return self._call("DescribeSchedule", name=name, **({} if times is None else {"times": times}))

    def schedules(self) -> dict[str, Any]:
        """All of them, by name."""
        return self._all_pages("ListSchedules", "schedules", maxResults=PAGE_OF_SCHEDULES)

    def pause_schedule(self, name: str) -> dict[str, Any]:
        """Its view."""
        return self._call("PauseSchedule", name=name)

    def resume_schedule(self, name: str) -> dict[str, Any]:
        """Its view."""
        return self._call("ResumeSchedule", name=name)

    def run_schedule_now(self, name: str, client_token: str) -> dict[str, Any]:
        """The view of the run that was started; repeating the same token gives the same run."""
        return self._call("RunScheduleNow", name=name, clientToken=client_token)

    def delete_schedule(self, name: str) -> dict[str, Any]:
        """The rest of it: name and state."""
        return self._call("DeleteSchedule", name=name)

    def _all_pages(self, action: str, what: str, **fields: Any) -> dict[str, Any]:
        """One reply with the items of every page."""
        found, token = [], None
        while True:
            page = self._call(action, **fields, **({"nextToken": token} if token else {}))
            found += page[what]
            token = page.get("nextToken")
            if token is None:
                return {what: found}

    def _call_for_change(self, action: str, **fields: Any) -> dict[str, Any]:
        try:
            return self._call(action, **fields)
        except ApiError as refusal:
            if refusal.code == "ConflictException" and "clientToken" not in str(refusal):
                refusal.next_step = ""  # its message says what to do
            raise

    def _call(self, action: str, **fields: Any) -> dict[str, Any]:
        payload = self._payload(action, json.dumps({"action": action, **fields}))
        try:
            answer = self._functions.invoke(FunctionName=self._function_name, Payload=payload, **self._through)
        except Exception as fault:
            if error_code(fault) == "ResourceNotFoundException":
                raise _no_function(self._function_name, self._queue) from fault
            raise
        reply = json.loads(answer["Payload"].read() or b"null")
        if answer.get("FunctionError"):
            raise _crashed(self._function_name, reply)
        if not isinstance(reply, dict) or "statusCode" not in reply:
            raise ArgosyError(f"{self._function_name} did not answer like Argosy's api.")
        if reply["statusCode"] != 200:
            raise ApiError(reply["statusCode"], reply["body"]["error"], action)
        body: dict[str, Any] = reply["body"]
        return body

    def _payload(self, action: str, request: str) -> bytes:
        """Signed if the request starts something, so that its owner is known."""
        proof = self._signer.headers(action, request) if self._signer and action in WITH_SPECS else None
        return (json.dumps({TEXT: request, PROOF: proof}) if proof else request).encode()


def _no_function(function_name: str, queue: str) -> ArgosyError:
    if queue:
        return ArgosyError(
            f"The deployment's function {function_name} has no entrance for the queue {queue}.",
            is_users_fault=True,
            next_step=f"its owner creates one with `argosy access {queue}`; `argosy access` lists the entrances",
        )
    return ArgosyError(
        f"The deployment has no function {function_name}.",
        next_step="if local mode is just starting, try again in a few seconds; else type `argosy doctor`",
    )


def _crashed(function_name: str, reply: Any) -> ArgosyError:
    reason = reply.get("errorMessage", "") if isinstance(reply, dict) else ""
    return ArgosyError(
        f"The function {function_name} failed: {reason or 'no reason given'}",
        next_step=f"look at the log group /aws/lambda/{function_name}",
    )

"""The deployment's present answers, and how often it is queried.

Everything is read with the user's own rights through the api; the controller gets no requests. The answers of one
page serve every tab for some seconds. Pages of ListAttempts never change once another follows them, so that only the
last one is read again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Set
from dataclasses import dataclass, field, replace
from typing import Any

from argosy import layout
from argosy.client import task_use as of_tasks
from argosy.client.access import Access
from argosy.client.api import ApiError
from argosy.client.checkpoints import checkpoints_of
from argosy.client.errors import InvalidInput, is_from_aws
from argosy.client.experiments import may_interrupt
from argosy.client.failures import KINDS_READ, AlikeAttempts, kinds_of, with_last_lines
from argosy.client.gpu_use import advice, uses_of
from argosy.client.price_history import history
from argosy.client.progress import CANCELLING, TERMINAL
from argosy.client.run_names import run_id_of
from argosy.figures.checkpoints import checkpoints
from argosy.figures.cluster import cluster_page
from argosy.figures.confirmation import CANCEL, INTERRUPT, RETRY
from argosy.figures.document import Figure, Page
from argosy.figures.history import Attempts, attempts_of
from argosy.figures.market import Prices, market_page
from argosy.figures.markup import Content, element, joined
from argosy.figures.plan import plan_page
from argosy.figures.queues import queues_page
from argosy.figures.run import QUEUE, SERVICE, run_page
from argosy.figures.runs import RunChoice, runs_page
from argosy.figures.use import gpu_use, task_use
from argosy.ui.answer_cache import AnswerCache, known

JSON = dict[str, Any]
RUNS_SHOWN, RUNS_SEARCHED = 100, 500
RUN_S, CLUSTER_S, MARKET_S, ENDED_S, FAILURES_S = 2.0, 8.0, 300.0, 30.0, 60.0  # seconds for which an answer serves

SPANS = {  # of the cluster's history, by address: name, hours, seconds for which an answer serves
    "/cluster/hour": ("an hour", 1.0, 8.0),
    "/cluster": ("a day", 24.0, 60.0),
    "/cluster/week": ("a week", 168.0, 300.0),
    "/cluster/quarter": ("90 days", 2160.0, 900.0),
}


class NoSuchPage(Exception):
    """There is nothing to show at that address; the message says why."""


@dataclass
class DeploymentReader:
    """One user's reads of one deployment. now: epoch seconds."""

    access: Access
    now: Callable[[], float]
    kept: AnswerCache = field(init=False)
    _pages: dict[str, list[JSON]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.kept = AnswerCache(self.now)

    def runs(self, query: str = "") -> Page:
        """The newest runs; more of them are searched if the address filters. query: of the address."""
        choice = RunChoice.of(query)
        most, key, serves_s = (RUNS_SEARCHED, "searched", CLUSTER_S) if choice.filters else (RUNS_SHOWN, "runs", RUN_S)
        reply = self.kept.once(key, serves_s, lambda: self.access.api.runs(most))
        return runs_page(reply["runs"], bool(reply["nextToken"]), choice)

    def run(self, run_id: str) -> Page:
        """run_id: or another name of a run. Raises NoSuchPage if none matches."""
        return self.kept.once(("run", run_id), RUN_S, lambda: self._read_linked(run_id))

    def _read_linked(self, run_id: str) -> Page:
        return _linked(self.read_run(self.meant(run_id)), may_interrupt(self.access))

    def meant(self, wanted: str) -> str:
        """The id of the run of that name. Raises NoSuchPage if none matches."""
        try:
            return run_id_of(self.access.api, wanted)
        except InvalidInput as refusal:
            raise NoSuchPage(refusal.message) from refusal

    def cluster(self, address: str = "/cluster") -> Page:
        """address: one of `SPANS`, which says how far back its history goes."""
        return self.kept.once(address, CLUSTER_S, lambda: self._read_cluster(address))

    def _read_cluster(self, address: str) -> Page:
        _, hours, serves_s = SPANS[address]
        history = known(
            lambda: self.kept.once(hours, serves_s, lambda: self.access.api.cluster_history(hours)["history"])
        )
        links: list[Content] = []
        for to, (name, _, _) in SPANS.items():
            link = element("a", name, href=to, aria_current="true" if to == address else None)
            links += [" · ", link] if links else [link]
        return cluster_page(self.cluster_now(), history, [("over time", links)])

    def queues(self) -> Page:
        """How the cluster is shared."""
        return queues_page(self.kept.once("queues", CLUSTER_S, self.access.api.sharing))

    def market(self) -> Page:
        """Prices of all deployed pools in every cell."""
        cluster = self.cluster_now()
        pools = frozenset((each["cell"], each["instanceType"]) for each in cluster["fleets"])
        prices, unread = self.kept.once(pools, MARKET_S, lambda: self._prices(pools))
        return market_page(cluster, prices, self.now(), unread)

    def plan(self, run_id: str) -> Page:
        """The run's cost if it were submitted again now. Raises NoSuchPage when its spec is not in S3."""
        return self.kept.once(
            ("plan", run_id), ENDED_S, lambda: plan_page(self.access.api.plan(self._spec(self.meant(run_id))))
        )

    def read_run(self, run_id: str) -> Page:
        """The run's page from fresh answers."""
        api = self.access.api
        view = self.found(run_id)
        told = known(lambda: api.history(run_id))
        attempts = known(lambda: self.attempts(run_id))
        explained = None if view["status"] in TERMINAL else known(lambda: api.explain(run_id, None))
        return run_page(view, told, attempts, explained, self.now(), self.failures(view), self._measured(view))

    def _measured(self, view: JSON) -> list[Figure]:
        """What its tasks used, of their GPUs too, and what they saved."""
        run_id, region = view["runId"], self.access.deployment.region
        tasks = self.kept.once(("use", run_id), ENDED_S, lambda: of_tasks.tasks_measured(self.access, view))
        uses = self.kept.once(("gpus", run_id), ENDED_S, lambda: uses_of(self.access, view))
        saved = self.kept.once(("checkpoints", run_id), ENDED_S, lambda: checkpoints_of(self.access, view))
        figures = [task_use(tasks, view, of_tasks.advice(tasks, view, region))] if tasks else []
        figures += [gpu_use(uses, advice(uses, view, region))] if uses else []
        return [*figures, *([checkpoints(saved, self.now())] if saved else [])]

    def failures(self, view: JSON) -> list[AlikeAttempts]:
        """With what their logs say, which is read again only when there are others."""
        kinds, run_id = kinds_of(view), str(view["runId"])
        key = ("failures", run_id, *((kind.reason, kind.exit_code, kind.first) for kind in kinds[:KINDS_READ]))
        read = self.kept.once(key, FAILURES_S, lambda: with_last_lines(self.access, run_id, kinds))
        return [replace(kind, said=said) for kind, said in zip(kinds, [each.said for each in read], strict=False)]

    def found(self, run_id: str, read: Callable[[str], JSON] | None = None) -> JSON:
        """read: an action of the api, DescribeRun with its cost unless given. Raises NoSuchPage."""
        try:
            return (read or self.access.api.describe_with_cost)(run_id)
        except ApiError as refusal:
            if refusal.code == "ResourceNotFoundException":
                raise NoSuchPage(f"There is no run {run_id!r}.") from refusal
            raise

    def attempts(self, run_id: str) -> Attempts:
        """All of the run's attempts."""
        kept = self._pages.setdefault(run_id, [])
        while True:
            page = self.access.api.attempts(run_id, kept[-1]["nextToken"] if kept else None)
            if not page.get("nextToken"):
                return attempts_of([*kept, page])
            kept.append(page)

    def cluster_now(self) -> JSON:
        """DescribeCluster's reply, with its instances as columns."""
        return self.kept.once("cluster", CLUSTER_S, self.access.api.cluster_columns)

    def _prices(self, pools: Set[tuple[str, str]]) -> tuple[Prices, list[str]]:
        """pools: (cell, instance type). Also the cells whose prices cannot be read."""
        found: dict[tuple[str, str], tuple[list[float], list[float]]] = {}
        unread = []
        for cell in sorted({cell for cell, _ in pools}):
            names = sorted(name for each, name in pools if each == cell)
            try:
                series, _ = history(self.access.client("ec2", cell), names, self.now())
            except Exception as fault:
                if not is_from_aws(fault):
                    raise
                unread.append(cell)
                continue
            found |= {pool: (each.times, each.prices) for pool, each in series.items()}
        return found, unread

    def _spec(self, run_id: str) -> JSON:
        bucket, key = layout.split_s3(layout.spec_uri(str(self.found(run_id)["output"])))
        try:
            body = self.access.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
        except Exception as fault:
            if not is_from_aws(fault):
                raise
            raise NoSuchPage(f"The spec of {run_id} cannot be read from its results.") from fault
        found: JSON = json.loads(body)
        return found


def _linked(page: Page, may_be_interrupted: bool) -> Page:
    """The page of a run leads to its tasks, its service and the queues; a report, which is a file, cannot."""
    tasks = element("a", "as a table", href=f"/runs/{page.heading}/tasks")
    facts: list[tuple[str, Content]] = [(what, _link(what, said)) for what, said in page.facts]
    facts.append(("tasks", tasks))
    action = RETRY if page.status in TERMINAL else CANCEL
    if page.status not in ("SUCCEEDED", CANCELLING) and SERVICE not in dict(page.facts):
        actions = [action, INTERRUPT] if may_be_interrupted and action == CANCEL else [action]
        links = [element("a", f"{each}…", href=f"/runs/{page.heading}/{each}", class_="act") for each in actions]
        facts.append(("change", joined([links[0], *(part for link in links[1:] for part in (" ", link))])))
    return replace(page, facts=facts)


def _link(what: str, said: Content) -> Content:
    to = {SERVICE: f"/services/{said}", QUEUE: "/queues"}.get(what)
    return element("a", said, href=to) if to else said

"""One tick turns facts into effects: load, take facts in, decide, commit, carry out, observe.

Nothing is done outside before the intent is committed. Every outcome is a fact of the next tick (DESIGN section 5).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from argosy.engine.bounds import check_size, is_progress, one_by_one
from argosy.engine.culprit import Rehearsal, culprit
from argosy.engine.intake import TickIntake, ended_dependencies, event_of
from argosy.engine.loading import record_of, stored, tried_again
from argosy.engine.own_faults import Exclusions, OwnFailure, PortFailed, TickFailed, marked, ours, run_of
from argosy.engine.report import ReportedShortages, TickReport, figures_of, reported_damage
from argosy.engine.steps import Fact, awaits_instances, begin, conclude, epoch_of, is_idle, take
from argosy.lifecycle.apply import pass_time
from argosy.lifecycle.suspension import refuse
from argosy.messages.eventbridge import PoisonMessage, to_event
from argosy.model import inbox
from argosy.model.actions import Action, Inside
from argosy.model.damage import FAULTS
from argosy.model.events import ActionFailed, Event, Observed, RunResumed
from argosy.model.instance_types import InstanceType
from argosy.model.journal.commit import documents_of_commit
from argosy.model.moment import Moment
from argosy.model.policy import Policy
from argosy.model.state import State
from argosy.model.stored import documents
from argosy.model.stored.documents import Documents
from argosy.model.suspensions import reason_of
from argosy.placement.custom import OwnFunctions
from argosy.ports import EventQueue, Executor, Key, Message, StaleState, Store
from argosy.recording.recorder import Recorder, Start, digest_of
from argosy.scheduler.decide import NO_FUNCTIONS
from argosy.scheduler.due import next_due
from argosy.scheduler.supply.roster import Roster
from argosy.spec.earlier_versions import request_from

SEARCH_S = 20.0  # of one tick, for all its rounds after the first failure; part of loop.RESERVE_S
MAX_REQUESTS_PER_TICK = 10  # each folded-in run adds three documents and one deletion
MAX_REQUEST_BYTES = 800_000  # their specs are stored in the same commit


@dataclass(slots=True)
class Engine:
    """One controller, which keeps its state between ticks. Of two that work at once, the first to commit wins and the
    other starts over."""

    store: Store
    queue: EventQueue
    executor: Executor
    catalogue: Mapping[str, InstanceType]
    policy: Policy
    now: Callable[[], float]
    execute_s: float = 5.0  # how long a tick may spend on executing actions
    functions: OwnFunctions = NO_FUNCTIONS
    keep_alive: Callable[[], None] = lambda: None  # called before every rehearsal: a search may outlast the lease
    recorder: Recorder | None = None  # None: nothing is recorded
    state: State | None = None
    backlog: deque[Message] = field(default_factory=deque)
    outcomes: deque[Fact] = field(default_factory=deque)
    sightings: deque[Event] = field(default_factory=deque)  # facts of the last sweep that are not applied yet
    shortages: ReportedShortages = field(default_factory=ReportedShortages)
    committed_root: bytes = b""
    acted_at: float = 0.0  # when something outside was last changed, as far as is known
    looked_at: float = 0.0  # the last sweep that showed every instance
    excluded: Exclusions = field(default_factory=Exclusions)
    taken: TickIntake = field(default_factory=TickIntake)  # set by the current tick
    roster: Roster = field(default_factory=Roster)
    has_company: bool = False  # whether another controller has committed during this invocation
    is_new: bool = True  # until the first load: perhaps a new deployment
    left_quiet: bool = False  # whether its last invocation left with nothing under way

    def tick(self, wait_s: float = 0.0) -> TickReport:
        """One tick. Raises StaleState when another controller has committed; the next tick then loads again.

        If the controller's own code fails on a run, a message or a request, the tick begins again without it
        (`own_faults`). Faults that they do not explain are raised.
        """
        until = float("inf")
        try:
            while True:
                try:
                    return self._tick(wait_s)
                except TickFailed as stumble:
                    until, wait_s = min(until, self.now() + SEARCH_S), 0.0
                    self._exclude(stumble, until)
        except BaseException as error:
            known = self.taken if isinstance(error, StaleState) else TickIntake()
            self.forget(known.open_ends.heard())  # what was sent is not known: the next load doubts every intent
            self.backlog.extend(known.messages)
            self.has_company |= isinstance(error, StaleState)
            if isinstance(error, TickFailed | PortFailed):
                raise error.error from None
            raise

    def _exclude(self, stumble: TickFailed, until: float) -> None:
        """Leave out the cause of the failure. Raises the failure when nothing explains it before `until`."""
        if self.now() > until:
            raise stumble
        taken, excluded = self.taken, self.excluded
        run_id = run_of(self.state, stumble.fact) if self.state and stumble.fact else ""
        if self.state is not None and run_id in self.state.runs.keys() - excluded.runs:
            what = f"run {run_id}"
            excluded.runs[run_id] = reason_of(stumble.error)
        elif stumble.fact is not None and stumble.fact is taken.message:
            what = "a message"
            excluded.messages.append(stumble.fact)
        elif taken.request and taken.request not in excluded.requests:
            what = f"request {taken.request}"
            excluded.requests.add(taken.request)
        elif found := self._search(until):
            what = f"run {found}"
            excluded.runs[found] = reason_of(stumble.error)
        else:
            raise stumble
        excluded.note(what, stumble.error)
        backlog, outcomes = deque([*taken.messages, *self.backlog]), deque([*taken.outcomes, *self.outcomes])
        self.forget()
        self.backlog, self.outcomes = backlog, outcomes

    def _search(self, until: float) -> str | None:
        """Search for the run on which the round failed, with the facts that the round had taken in."""
        now, known = self.now(), frozenset(self.excluded.runs)
        moment = Moment(State(open_ends=self.taken.open_ends), self.catalogue, now, self.policy)
        read = stored(self.store).state
        rehearsal = Rehearsal(read, self.taken.facts, moment, self.store.switches(), self.functions)

        def fails(without: Set[str]) -> bool:
            self.keep_alive()
            return rehearsal.fails(known | without)

        return culprit([each for each in rehearsal.runs() if each not in known], fails, lambda: self.now() >= until)

    def resume(self) -> None:
        """Begin another invocation. The state in memory counts if the last invocation ended with nothing under way and
        no other controller has committed since."""
        if not self.left_quiet or self.state is None or self.state.version != self.store.version():
            self.forget(self.state.open_ends.heard() if self.state else ())
        self.left_quiet = self.has_company = False

    def flush_record(self) -> None:
        """Store the record so far, if there is any."""
        if self.recorder is not None:
            self.recorder.flush()

    def forget(self, heard: Sequence[Fact] = ()) -> None:
        """Drop the state in memory; messages that were not deleted come again. heard: facts that would not."""
        self.state = None
        self.backlog.clear()
        self.outcomes = deque(heard)
        self.sightings.clear()
        self.taken = TickIntake()

    def _tick(self, wait_s: float) -> TickReport:
        self.taken = TickIntake()
        with ours():
            state = self.state = self.state or self._load()
        if self.has_company:
            self._observe(state)  # its commits would drop every sweep that waits for the next tick
        with ours():
            self.taken.open_ends = state.open_ends.copy()
            taken = self._take_in(state, wait_s)
            actions = self._decide(state, taken)
            effects = [action for action in actions if not isinstance(action, Inside)]
            puts, expires_at = documents_of_commit(state, taken.decided_at, taken.refused)
        committed = self._commit(state, puts, expires_at, bool(effects))
        if self.recorder is not None:
            version = state.version if committed else None
            self.recorder.tick(taken.record(actions, digest_of(puts), version, is_whole=not self.excluded.is_in_use))
        self._carry_out(state, effects)
        self._observe(state)
        return self._report(state, actions)

    def _load(self) -> State:
        store = marked(self.store)
        read = stored(store)
        state = read.state()
        self.excluded.apply(state, self.now(), partial(record_of, store))
        how = Start(self.now(), epoch_of(state, self.now()), self.is_new)
        self.is_new = False
        idle = begin(state, how, self.policy)
        if self.recorder is not None:
            self.recorder.loaded(None if self.excluded.is_in_use else read, how)
        self.acted_at = 0.0 if idle else self.now()  # by an earlier controller
        return state

    def _take_in(self, state: State, wait_s: float) -> TickIntake:
        """Apply every fact that one commit can hold. wait_s: how long to wait for messages if there is nothing else to
        do."""
        taken = self.taken
        self._resume(state)
        busy = self._apply_outcomes(state) or bool(self.sightings)
        taken.repaired = self._apply_sightings(state)
        self._fold_requests(state, taken)
        for fact in ended_dependencies(marked(self.store), state):
            self._take(state, fact, self.now())
        busy |= bool(taken.folded or self.backlog) or any(each.losing for each in state.instances.values())
        self.backlog.extend(marked(self.queue).receive(0.0 if busy else wait_s))
        taken.began_at = self.now()
        self._apply_messages(state, taken)
        taken.passed_at = self.now()
        pass_time(state, taken.passed_at, self.policy)
        return taken

    def _take(self, state: State, event: Event, at: float) -> None:
        """at: the time of the event, if it carries none."""
        self.taken.facts.append((event, at))
        with ours(event):
            take(state, self.taken.facts[-1], self.policy)

    def _resume(self, state: State) -> None:
        """Retry suspended runs whose pause is over."""
        for run_id, found in list(state.suspended.items()):
            if self.now() < found.again_at or run_id in self.excluded.runs:
                continue
            fact = tried_again(marked(self.store), run_id)
            if isinstance(fact, RunResumed):
                self.excluded.earlier[run_id], self.excluded.tried_at[run_id] = found, self.now()
            self._take(state, fact, self.now())

    def _decide(self, state: State, taken: TickIntake) -> list[Action]:
        """The actions, marked in the state as far as a commit can hold the marks."""
        taken.switches = marked(self.store).switches()
        taken.decided_at = self.now()
        moment = Moment(state, self.catalogue, taken.decided_at, self.policy)
        return conclude(moment, taken.switches, self.functions, len(taken.folded), self.roster)

    def _carry_out(self, state: State, effects: Sequence[Action]) -> None:
        if effects:
            self.acted_at = self.now()
        for outcome in self.executor.carry_out(effects, state, self.now() + self.execute_s):
            if not isinstance(outcome, ActionFailed):
                self.outcomes.append((outcome, self.now()))
                continue
            what = f"run {outcome.run_id}" if outcome.run_id else "an action"
            self.excluded.troubles.append(OwnFailure(what, outcome.reason, outcome.trace))
            if outcome.run_id:
                self.excluded.runs[outcome.run_id] = outcome.reason
                self.state = None  # the next load suspends it

    def _observe(self, state: State) -> None:
        """Sweep everything, if a sweep is due and the last one is applied."""
        if self.sightings or not self._sweep_is_due(state):
            return
        before, state.observed_at = state.observed_at, self.now()  # a failed sweep is repeated when one is due
        with self.excluded.tolerating("a sweep"):
            sweep = self.executor.observe(self.now(), state)
            for unread in sweep.unread if isinstance(sweep, Observed) else ():
                self.excluded.troubles.append(OwnFailure("a thing that a sweep showed", unread.reason, unread.trace))
            if isinstance(sweep, Observed) and self.recorder is not None:
                self.recorder.observed(sweep)
            self.sightings.extend(one_by_one(sweep) if sweep else ())
            state.observed_at = before

    def _report(self, state: State, actions: Sequence[Action]) -> TickReport:
        taken = self.taken
        self.excluded.note_left_out(state)
        figures: dict[str, Any] = {}
        with self.excluded.tolerating("a tick's report"):
            figures |= {**figures_of(state, actions, self.now()), "at_rest": self._at_rest(state)}
            waits = not (actions or taken.folded or self.outcomes or self.sightings or self.backlog)
            if waits and not (self.excluded.is_in_use or is_idle(state)):
                figures["due_at"] = next_due(Moment(state, self.catalogue, taken.decided_at, self.policy))
            figures["short"] = self.shortages.new(state, self.now())
            figures["damage"] = reported_damage(state)
        return TickReport(
            events=len(taken.messages),
            poison=taken.poison,
            seconds=self.now() - taken.began_at,
            repaired=taken.repaired,
            troubles=self.excluded.reported(),
            **figures,
        )

    def _fold_requests(self, state: State, taken: TickIntake) -> None:
        """Take the inbox in. Requests that cannot be read are set aside, so that they hold nothing up."""
        size = 0
        taken.requests.extend(marked(self.store).page(inbox.INBOX, MAX_REQUESTS_PER_TICK, oldest_first=True)[0])
        while taken.requests:
            key, body = taken.requests.popleft()
            size += len(body)
            if taken.folded and (size > MAX_REQUEST_BYTES or not state.has_room(self.policy, len(taken.folded))):
                break
            taken.folded.append(key)
            request: inbox.Request | None = None
            try:
                with ours():
                    request = request_from(body)
                    event = event_of(marked(self.store), state, request)
            except TickFailed as stumble:  # at the request itself, or at the run that it concerns
                if not isinstance(stumble.error.__cause__ or stumble.error, FAULTS):
                    self.excluded.note(f"request {key}", stumble.error)
                self._refuse(state, key, body, request)
                continue
            if self.excluded.refuses(state, key, request.run_id):
                self._refuse(state, key, body, request)
                continue
            taken.request = key
            self._take(state, event, self.now())
            taken.request = ""

    def _refuse(self, state: State, key: str, body: bytes, request: inbox.Request | None) -> None:
        """Set the request aside. Where it can be read, the record of its run says so."""
        self.taken.refused[key] = body
        if request is None:
            return
        record = None
        with suppress(*FAULTS):
            record = record_of(marked(self.store), request.run_id)
        with self.excluded.tolerating(f"the refusal of request {key}"):
            refuse(state, request, record, self.now())

    def _apply_outcomes(self, state: State) -> bool:
        """Apply all outcomes of the last tick's actions before anything else is judged. An intent that is left
        afterwards was never sent. `begin_all` made sure that one commit can hold them. Each counts from when it
        happened: the process may have been frozen for hours since, and that time must be charged to no run. Returns
        whether something progressed."""
        taken, progress = self.taken, False
        while self.outcomes:
            outcome, at = self.outcomes.popleft()
            taken.outcomes.append((outcome, at))
            self._take(state, outcome, at)
            with self.excluded.tolerating("whether to wait"):
                progress |= is_progress(outcome)
        return progress

    def _apply_sightings(self, state: State) -> int:
        """Apply the sweep's sightings until the commit is full; the next tick applies the rest. They come before
        requests: a stream of requests would hold them back, and instances that have arrived would be ordered again.
        Returns how many ends of tasks and instances it showed."""
        if not self.sightings:
            return 0
        live, alive = len(state.attempts.live()), [each for each in state.instances.values() if each.alive]
        while self.sightings and state.has_room(self.policy):
            seen = self.sightings.popleft()
            self._take(state, seen, self.now())
            if isinstance(seen, Observed) and seen.hosts_complete:
                self.looked_at = seen.at
        return live - len(state.attempts.live()) + sum(not instance.alive for instance in alive)

    def _apply_messages(self, state: State, taken: TickIntake) -> None:
        """As many as the commit has room for."""
        now = self.now()
        while self.backlog and state.has_room(self.policy, len(taken.folded)):
            message = self.backlog.popleft()
            try:
                event = to_event(message.body)
            except Exception as error:  # noqa: BLE001 - PoisonMessage, or a fault of our own at this message
                taken.poison += 1  # not deleted: after some more deliveries the queue moves it to the dead letters
                if not isinstance(error, PoisonMessage):
                    self.excluded.note("a message", error)
                continue
            if event in self.excluded.messages:
                taken.poison += 1
                continue
            taken.messages.append(message)
            if event is not None:
                taken.message = event
                self._take(state, event, now)

    def _commit(self, state: State, puts: Documents, expires_at: Mapping[Key, float], effects: bool) -> bool:
        """Store the changes, then delete the messages that they contain. Nothing outside is changed without a commit
        before it; a tick without changes writes nothing. Returns whether anything was written."""
        taken, root = self.taken, puts[documents.STATE, documents.ROOT]
        wanted = len(puts) > 1 or root != self.committed_root or bool(taken.folded) or effects
        if wanted:
            puts = puts | {(inbox.REFUSED, key): body for key, body in taken.refused.items()}
            check_size(len(puts), len(taken.folded))
            self.store.commit(state.version, puts, [(inbox.INBOX, key) for key in taken.folded], expires_at)
            documents.committed(state)
            self.committed_root = root
            self.excluded.committed()
        self.queue.delete([message.receipt for message in taken.messages])
        return wanted

    def _sweep_is_due(self, state: State) -> bool:
        eager = True
        with self.excluded.tolerating("when to look again"):
            eager = awaits_instances(state) or (is_idle(state) and not self._has_looked())
            eager |= self.has_company and bool(state.open_ends)  # a lost commit drops the answer
        period_s = self.policy.eager_sweep_s if eager else self.policy.sweep_s
        return self.now() - state.observed_at >= period_s

    def _at_rest(self, state: State) -> bool:
        """Nothing to do, nothing that costs money, and a sweep since the last change outside: a fleet may have launched
        an instance just before its target was lowered, and no controller would return for it."""
        return is_idle(state) and not (self.outcomes or self.sightings or self.backlog) and self._has_looked()

    def _has_looked(self) -> bool:
        """Sweep every instance, and late enough for the last launches to show."""
        return self.looked_at >= self.acted_at + self.policy.eager_sweep_s

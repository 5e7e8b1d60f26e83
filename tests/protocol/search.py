"""Which states can the launch protocol reach? Breadth-first search over a model of it: one task, two controllers.

The model follows the code: one stored version, intents committed before they are sent, a token that ECS remembers for a
while, an age gate, adoption from listings, nothing sent again before a listing was complete, disproof of launches that
two of them do not show, events tied to attempt and ARN. Controllers crash at any time, replies get lost, listings lag
or break off, tokens expire, and events arrive late and twice. Sending and looking at the age are one step: what
Lambda's own time limit and the deadline of each call make of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

KEYS = [(1, 0), (1, 1), (2, 0), (2, 1)]  # (attempt, launch number): two attempts, each may be placed again once
NEVER, YOUNG, OLD, SETTLED = -1, 0, 1, 2  # ages of an intent: may be sent; must not; absence from a listing is proof


@dataclass(frozen=True)
class Protocol:
    """Which safeguards are on."""

    token: bool = True
    age_gate: bool = True
    conditional_events: bool = True
    start_task: bool = False  # no token, but adoption from the listing; with token off there is not even that


class Row(NamedTuple):
    """The task as in the store (or a controller's memory)."""

    kind: str = "pending"  # pending | intent | doubt | missed (doubt, and one listing lacked it) | launched | done
    key: int = 0  # row in KEYS: the current attempt, or the next one
    copy: int = -1  # the ECS task it was given


class Copy(NamedTuple):
    """An ECS task."""

    key: int
    listed: bool = False
    stopped: str = ""  # "" | lost | succeeded


class Controller(NamedTuple):
    """A process with the state it loaded; `todo` is its next call outside, `heard` the outcome of that.

    Only one thing matters about version numbers: whether another controller has committed since (`fresh` False).
    """

    row: Row
    todo: str = ""  # "" | send | resolve
    heard: str = ""  # "" | doubt | missed | disproved | the number of a copy
    fresh: bool = True


class World(NamedTuple):
    row: Row = Row()
    controllers: tuple[Controller | None, ...] = (None, None)
    copies: tuple[Copy, ...] = ()
    tokens: tuple[int, ...] = (-1,) * len(KEYS)  # which copy ECS remembers for a key's token; -1 = none
    ages: tuple[int, ...] = (NEVER,) * len(KEYS)
    ends: tuple[int, ...] = (0, 0)  # how often the end of each attempt was booked
    crashes: int = 1
    lost_replies: int = 1


class Violation(NamedTuple):
    sentence: str
    steps: tuple[str, ...]


def search(protocol: Protocol, start: World | None = None) -> tuple[int, Violation | None]:
    """How many states there are, and the shortest way to a violation. The budgets of faults make them finite."""
    start = start or World()
    came_from: dict[World, tuple[World, str] | None] = {start: None}
    queue = deque([start])
    while queue:
        world = queue.popleft()
        if sentence := violated(world):
            return len(came_from), Violation(sentence, _steps(world, came_from))
        for step, after in successors(world, protocol):
            if after not in came_from:
                came_from[after] = (world, step)
                queue.append(after)
    return len(came_from), None


def _steps(world: World, came_from: dict[World, tuple[World, str] | None]) -> tuple[str, ...]:
    steps = []
    while (before := came_from[world]) is not None:
        world, step = before
        steps.append(step)
    return tuple(reversed(steps))


def violated(world: World) -> str:
    attempts = [KEYS[copy.key][0] for copy in world.copies]
    if len(attempts) != len(set(attempts)):
        return "an attempt was started twice"
    if max(world.ends) > 1:
        return "the end of an attempt was booked twice"
    known = [KEYS[copy.key][0] for copy in world.copies if copy.stopped]
    if any(ends and attempt not in known for attempt, ends in enumerate(world.ends, start=1)):
        return "the end of an attempt was booked that had not ended"
    return ""


def successors(world: World, protocol: Protocol) -> Iterator[tuple[str, World]]:
    yield from _environment(world, protocol)
    for number, controller in enumerate(world.controllers):
        if controller is None:
            loaded = replace_row(world.row, "doubt") if world.row.kind == "intent" else world.row
            yield f"{number} loads", _with(world, number, Controller(loaded))
            continue
        if world.crashes:
            yield f"{number} crashes", _with(world, number, None)._replace(crashes=world.crashes - 1)
        if controller.todo:
            yield from _act(world, number, controller, protocol)
        else:
            yield from _commit(world, number, controller, protocol)


def _environment(world: World, protocol: Protocol) -> Iterator[tuple[str, World]]:
    for number, copy in enumerate(world.copies):
        if not copy.listed:
            yield f"listing shows {number}", _with_copy(world, number, copy._replace(listed=True))
        if not copy.stopped:
            for how in ("lost", "succeeded"):
                yield f"{number} is {how}", _with_copy(world, number, copy._replace(stopped=how))
    older = tuple(age if age == NEVER else min(age + 1, SETTLED) for age in world.ages)
    if older != world.ages and all(copy.listed or world.ages[copy.key] != OLD for copy in world.copies):
        yield "minutes pass", world._replace(ages=older)
    for key, copy in enumerate(world.tokens):
        if copy >= 0 and world.ages[key] == SETTLED:
            tokens = tuple(-1 if other == key else held for other, held in enumerate(world.tokens))
            yield f"token of {KEYS[key]} expires", world._replace(tokens=tokens)


def _commit(world: World, number: int, controller: Controller, protocol: Protocol) -> Iterator[tuple[str, World]]:
    """A tick: the outcome of the last one or an event is applied, the next intent decided, all of it committed."""
    for said in ("", *(f"stop {k}" for k, copy in enumerate(world.copies) if copy.stopped)):
        row, ends = _apply(world, controller.row, controller.heard, protocol)
        if said:
            row, ends = _apply(world._replace(ends=ends), row, said, protocol)
        if row.kind == "pending":
            row = Row("intent", row.key)
        todo = {"intent": "send", "doubt": "resolve", "missed": "resolve"}.get(row.kind, "")
        if row != world.row or todo:
            ages = world.ages
            if row.kind == "intent" and ages[row.key] == NEVER:
                ages = tuple(YOUNG if key == row.key else age for key, age in enumerate(ages))
            others = tuple(each and each._replace(fresh=False) for each in world.controllers)
            after = world._replace(row=row, ages=ages, ends=ends, controllers=others)
            yield f"{number} applies {said!r}, commits {row.kind}", _with(after, number, Controller(row, todo))


def _apply(world: World, row: Row, fact: str, protocol: Protocol) -> tuple[Row, tuple[int, ...]]:
    """The lifecycle in small."""
    if fact == "doubt" and row.kind == "intent":
        return replace_row(row, "doubt"), world.ends
    if fact == "missed" and row.kind in ("intent", "doubt"):
        return replace_row(row, "missed"), world.ends
    if fact == "disproved" and row.kind in ("intent", "doubt", "missed"):
        return Row("pending", row.key + 1) if KEYS[row.key][1] == 0 else Row("done"), world.ends
    if fact.isdecimal() and row.kind in ("intent", "doubt", "missed"):
        return Row("launched", row.key, int(fact)), world.ends
    if not fact.startswith("stop "):
        return row, world.ends
    number = int(fact.removeprefix("stop "))
    copy = world.copies[number]
    if protocol.conditional_events:
        ours = row.copy == number or (row.kind in ("intent", "doubt", "missed") and row.key == copy.key)
    else:
        ours = row.kind != "done"
    if not ours or (row.kind in ("pending", "done") and protocol.conditional_events):
        return row, world.ends
    attempt = KEYS[row.key][0] if protocol.conditional_events else KEYS[copy.key][0]
    ends = tuple(count + (position == attempt) for position, count in enumerate(world.ends, start=1))
    again = copy.stopped == "lost" and attempt == 1
    return Row("pending", KEYS.index((2, 0))) if again else Row("done"), ends


def _act(world: World, number: int, controller: Controller, protocol: Protocol) -> Iterator[tuple[str, World]]:
    """The action that the commit allowed: send, or list and then send again."""
    key, idle = controller.row.key, controller._replace(todo="")
    looks = controller.todo == "resolve" and (protocol.token or protocol.start_task)
    if looks:
        yield f"a listing of {number} breaks off", _with(world, number, idle._replace(heard="doubt"))
    found = [k for k, copy in enumerate(world.copies) if looks and copy.key == key and copy.listed]
    if found:
        yield f"{number} adopts {found[0]}", _with(world, number, idle._replace(heard=str(found[0])))
    elif protocol.age_gate and world.ages[key] != YOUNG:
        heard = "doubt"
        if controller.todo == "resolve" and world.ages[key] == SETTLED:
            heard = "disproved" if controller.row.kind == "missed" else "missed"
        yield f"{number} does not send", _with(world, number, idle._replace(heard=heard))
    else:
        copies, tokens, copy = world.copies, world.tokens, world.tokens[key]
        if copy < 0 or not protocol.token:
            copy, copies = len(copies), (*copies, Copy(key))
            tokens = tuple(copy if other == key else held for other, held in enumerate(tokens))
        sent = world._replace(copies=copies, tokens=tokens)
        yield f"{number} sends", _with(sent, number, idle._replace(heard=str(copy)))
        if world.lost_replies:
            lost = sent._replace(lost_replies=world.lost_replies - 1)
            yield f"{number} sends, reply lost", _with(lost, number, idle._replace(heard="doubt"))


def replace_row(row: Row, kind: str) -> Row:
    return row._replace(kind=kind)


def _with(world: World, number: int, controller: Controller | None) -> World:
    """A stale controller that has nothing left to do fails at its next commit: it is as good as not there. Which of
    the two is which does not matter."""
    changed = [controller if other == number else held for other, held in enumerate(world.controllers)]
    alive = [each for each in changed if each is not None and (each.fresh or each.todo)]
    padding: list[Controller | None] = [None] * (len(changed) - len(alive))
    return world._replace(controllers=(*sorted(alive), *padding))


def _with_copy(world: World, number: int, copy: Copy) -> World:
    return world._replace(copies=tuple(copy if other == number else held for other, held in enumerate(world.copies)))


def variant(**switches: bool) -> Protocol:
    return replace(Protocol(), **switches)

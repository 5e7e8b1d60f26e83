"""From tokens to a query: lark's LALR parser over query.lark, and the meaning of each comparison for its subject."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from argosy.placement import query_nodes as nodes
from argosy.placement.query_nodes import Accepts, Node
from argosy.placement.query_tokens import QuerySyntaxError, tokens

if TYPE_CHECKING:
    from lark import Token
    from lark.exceptions import UnexpectedToken

T = TypeVar("T")

_REGEX_MEMORY_BYTES: Final = 1 << 16  # RE2 refuses a pattern that would need more, so that a hostile one ends early
_PROGRAM_LIMIT: Final = 160  # of RE2's instructions; (g5|g6|p3).* has 18, i-[0-9a-f]{17} has 40
REGEX_LIMIT: Final = 256  # characters of one pattern: matching takes time in proportion to it, for every value
_ORDERINGS: Final = frozenset({"GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"})
_NEGATIVES: Final = frozenset({"NOT_EQUAL", "NOT_IN", "NOT_MATCHES", "NOT_EXISTS"})
_MEMBERS: Final = frozenset({"task:group", "task:startedBy"})
# The operators that the documentation gives each subject; attributes and groups are not restricted.
_COMPARED_ONLY: Final = frozenset({"agentVersion", "registeredAt", "runningTasksCount"})
_NEVER_ORDERED: Final = frozenset({"agentConnected", "ec2InstanceId"}) | _MEMBERS
_SHOWN: Final = {
    "LPAR": "(",
    "RPAR": ")",
    "LSQB": "[",
    "RSQB": "]",
    "COMMA": ",",
    "AND": "and",
    "OR": "or",
    "NOT": "not",
    "SUBJECT": "a subject",
    "VALUE": "a value",
    "PATTERN": "a regular expression",
    "$END": "the end of the expression",
}


def build(expression: str) -> Node:
    """The tree of an expression, or QuerySyntaxError."""
    from lark.exceptions import UnexpectedToken  # not at import: lark takes 0.1 s

    try:
        return cast(Node, _parser().parse(expression))
    except UnexpectedToken as error:
        raise _located(expression, error) from None


def _located(expression: str, error: UnexpectedToken) -> QuerySyntaxError:
    expected = ", ".join(sorted({_SHOWN.get(kind, "an operator") for kind in error.expected}))
    if error.token.type == "$END":
        return QuerySyntaxError("the expression ends too early", len(expression) + 1, expected)
    return QuerySyntaxError(f"{str(error.token)[:60]!r} is misplaced", (error.token.start_pos or 0) + 1, expected)


@cache
def _parser() -> Any:  # noqa: C901 - a class with a method per rule, inside so that lark is imported late
    from lark import Lark, Token, Transformer, v_args
    from lark.lexer import Lexer

    class TokenLexer(Lexer):
        """query_tokens in the form that lark expects."""

        def __init__(self, lexer_conf: Any) -> None:
            """lark passes its settings; none is needed."""

        def lex(self, data: str) -> Iterator[Token]:  # type: ignore[override]
            for kind, text, position in tokens(data):
                yield Token(kind, text, start_pos=position)

    @v_args(inline=True)
    class NodeBuilder(Transformer[Any, Node]):
        """One method per rule of the grammar."""

        def start(self, node: Node) -> Node:
            return node

        def any_of(self, *parts: Any) -> Node:
            return _joined(parts, all_of=False)

        def all_of(self, *parts: Any) -> Node:
            return _joined(parts, all_of=True)

        def negated(self, _not: Token, part: Node) -> Node:
            return nodes.Negation(part, part.depth + 1)

        def grouped(self, _open: Token, part: Node, _close: Token) -> Node:
            return part

        def compared(self, subject: Token, sign: Token, value: Token) -> Node:
            return _compared(subject, sign, value)

        def matched(self, subject: Token, sign: Token, pattern: Token) -> Node:
            _refuse_where(str(subject) in _COMPARED_ONLY, subject, sign)
            return _text(subject, sign, _regex(pattern))

        def listed(self, subject: Token, sign: Token, *rest: Token) -> Node:
            _refuse_where(str(subject) in _COMPARED_ONLY, subject, sign)
            return _text(subject, sign, nodes.one_of([str(token) for token in rest if token.type == "VALUE"]))

        def present(self, subject: Token, sign: Token) -> Node:
            allowed = subject.startswith("attribute:") or str(subject) in _MEMBERS
            _refuse_where(not allowed, subject, sign)
            return _present(subject, sign)

    grammar = Path(__file__).with_name("query.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", lexer=TokenLexer, transformer=NodeBuilder())


def _joined(parts: tuple[Any, ...], *, all_of: bool) -> Node:
    kept = parts[::2]  # joining words are between them
    return cast(Node, kept[0]) if len(kept) == 1 else nodes.Clauses(kept, all_of)


def _compared(subject: Token, sign: Token, value: Token) -> Node:
    ordering = sign.type in _ORDERINGS
    _refuse_where(ordering and str(subject) in _NEVER_ORDERED, subject, sign)
    compare = nodes.COMPARISONS[sign.type]
    if subject == "runningTasksCount":
        return nodes.TaskCountTest(compare, _read(value, _whole, "a whole number"))
    if subject == "registeredAt":
        return nodes.RegistrationTest(compare, _read(value, nodes.instant, "a date such as 2018-06-18T22:28:28+00:00"))
    if ordering:
        return _text(subject, sign, nodes.ordered(sign.type, _read(value, nodes.dotted, "numbers joined by dots")))
    return _text(subject, sign, nodes.one_of([str(value)]))


def _text(subject: Token, sign: Token, accepts: Accepts) -> Node:
    negative = sign.type in _NEGATIVES
    if str(subject) in _MEMBERS:
        return nodes.MembersTest(str(subject), accepts, negative)
    return nodes.TextTest(str(subject), (lambda text: not accepts(text)) if negative else accepts)


def _present(subject: Token, sign: Token) -> Node:
    negative = sign.type in _NEGATIVES
    if str(subject) in _MEMBERS:
        return nodes.MembersTest(str(subject), lambda _: True, negative)
    return nodes.TextTest(str(subject), lambda _: not negative, missing=negative)


def _regex(pattern: Token) -> Accepts:
    """Accepts a string that the pattern matches as a whole: every documented example ends in .*, which has a meaning
    only then.
    """
    import re2

    if len(pattern) > REGEX_LIMIT:
        message = f"a pattern has {len(pattern)} characters; {REGEX_LIMIT} are allowed"
        raise QuerySyntaxError(message, (pattern.start_pos or 0) + 1, "a shorter pattern")
    options = re2.Options()
    options.max_mem, options.log_errors = _REGEX_MEMORY_BYTES, False
    try:
        compiled = re2.compile(str(pattern), options)
    except re2.error as error:
        why = error.args[0].decode() if error.args and isinstance(error.args[0], bytes) else str(error)
        message = f"{str(pattern)[:60]!r} is not a regular expression: {why[:120]}"
        raise QuerySyntaxError(message, (pattern.start_pos or 0) + 1, "RE2's syntax") from None
    if compiled.programsize > _PROGRAM_LIMIT:
        message = f"{str(pattern)[:60]!r} is too complex to match against every instance"
        raise QuerySyntaxError(message, (pattern.start_pos or 0) + 1, "a simpler pattern")
    return lambda text: compiled.fullmatch(text) is not None


def _whole(text: str) -> int | None:
    return int(text) if re.fullmatch(r"\d{1,15}", text) else None


def _read(value: Token, reader: Callable[[str], T | None], expected: str) -> T:
    found = reader(str(value))
    if found is None:
        raise QuerySyntaxError(f"{str(value)[:60]!r} cannot be compared here", (value.start_pos or 0) + 1, expected)
    return found


def _refuse_where(refused: bool, subject: Token, sign: Token) -> None:
    if refused:
        raise QuerySyntaxError(f"{subject} does not take {sign}", (sign.start_pos or 0) + 1, "another operator")

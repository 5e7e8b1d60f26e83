"""Text from outside never becomes markup, in a page or in a file."""

from __future__ import annotations

import json
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from argosy.figures.document import data_block
from argosy.figures.markup import Markup, element, joined

TEXTS = st.text(st.characters(exclude_categories=()), max_size=40)


@given(TEXTS, TEXTS)
def test_any_text_and_attribute_gives_one_element_that_holds_them(text: str, value: str) -> None:
    [made] = [ElementTree.fromstring(element("p", text, title=value))]
    assert (len(made), list(made.attrib)) == (0, ["title"])
    assert all(sign not in (made.text or "") for sign in "\x00\x1b\x7f\u202e\u2066")


def test_markup_is_kept_and_nothing_else_is() -> None:
    assert joined(["<b>", Markup("<i>x</i>"), None, ["&"]]) == "&lt;b&gt;<i>x</i>&amp;"


def test_attributes_that_are_not_wanted_are_left_out() -> None:
    made = element("a", "x", href=None, hidden=False, open=True, data_of="runs", class_="k", x=0.123456789)
    assert made == '<a open data-of="runs" class="k" x="0.123457">x</a>'


def test_data_cannot_end_the_element_that_holds_it() -> None:
    hostile = "</script><script>alert(1)</script><!--\u2028"
    made = data_block({"reason": hostile})
    assert not {"<", ">", "&", "\u2028"} & set(made)

    assert json.loads(made) == {"reason": hostile}

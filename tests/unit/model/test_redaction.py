"""Text from outside is shown without secrets and account ids."""

from __future__ import annotations

import pytest

from argosy.model.redaction import last_lines, redacted


@pytest.mark.parametrize(
    "secret",
    [
        "AKIAIOSFODNN7EXAMPLE",
        "ASIAIOSFODNN7EXAMPLE",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln",
        "hunter2",
        "123456789012",
    ],
)
@pytest.mark.parametrize("form", ["password={}", '"Token": "{}", "a": 1', "X-Amz-Signature={}&x=1", "api_key: {}"])
def test_no_secret_is_left(secret: str, form: str) -> None:
    assert secret not in redacted(form.format(secret))


def test_account_ids_are_left_out_of_arns_and_the_rest_stays() -> None:
    said = "not authorized to perform ecs:Poll on arn:aws:ecs:us-east-1:123456789012:cluster/argosy at 1795380996.54"
    assert redacted(said) == said.replace("123456789012", "<account>")


def test_of_an_output_the_last_lines_are_kept_within_bounds() -> None:
    text = "\n".join(f"line {number}\r" for number in range(100)) + "\n\n"
    assert last_lines(text, 2, 100) == "line 98\nline 99"
    assert last_lines(text, 2, 7) == "line 99"

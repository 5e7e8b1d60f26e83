"""Text from outside is shown without secrets and account ids."""

from __future__ import annotations

import pytest

from argosy.model.redaction import last_lines, redacted, without_secrets


@pytest.mark.parametrize(
    "secret",
    [
        "AKIAIOSFODNN7EXAMPLE",
        "ASIAIOSFODNN7EXAMPLE",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln",
        "hunter2",
        "123456789012",
        "ghp_0123456789abcdefghij",
        "someone@example.com",
        "FwoGZXIvYXdzE" * 12,
    ],
)
@pytest.mark.parametrize(
    "form",
    [
        "password={}",
        '"Token": "{}", "a": 1',
        "X-Amz-Signature={}&x=1",
        "api_key: {}",
        "--db-password {} --x",
        "https://me:{}@host/x",
        "Bearer {}",
        'password="a {}"',
    ],
)
def test_no_secret_is_left(secret: str, form: str) -> None:
    assert secret not in redacted(form.format(secret))


def test_account_ids_are_left_out_of_arns_and_the_rest_stays() -> None:
    said = "not authorized to perform ecs:Poll on arn:aws:ecs:us-east-1:123456789012:cluster/argosy at 1795380996.54"
    assert redacted(said) == said.replace("123456789012", "<account>")


def test_of_an_output_the_last_lines_are_kept_within_bounds() -> None:
    text = "\n".join(f"line {number}\r" for number in range(100)) + "\n\n"
    assert last_lines(text, 2, 100) == "line 98\nline 99"
    assert last_lines(text, 2, 7) == "line 99"


def test_of_a_document_every_member_is_redacted_and_the_rest_keeps_its_form() -> None:
    spec = {
        "container": {"environment": {"A": "hunter2"}, "command": ["x", "--api-key", "abc"]},
        "listed": {"environment": [{"name": "A", "value": "hunter2"}]},
        "run": "python main.py 5",
        "secretAccessKey": "abc",
        "reasons": ["hunter2 was refused in 123456789012"],
        "arn:aws:iam::123456789012:role/x": [1, 2.5, None, True],
    }
    assert without_secrets(spec, known=["hunter2"]) == {
        "container": {"environment": {"A": "<redacted>"}, "command": "<redacted: it holds a secret>"},
        "listed": {"environment": [{"name": "A", "value": "<redacted>"}]},
        "run": "python main.py 5",
        "secretAccessKey": "<redacted>",
        "reasons": ["<redacted> was refused in <account>"],
        "arn:aws:iam::<account>:role/x": [1, 2.5, None, True],
    }

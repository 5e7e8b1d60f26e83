"""Do the guards of conftest.py hold? Tests reach only the loopback interface and have no real credentials."""

from __future__ import annotations

import os
import socket

import boto3
import pytest


def test_another_host_cannot_be_reached() -> None:
    with pytest.raises(RuntimeError, match=r"tests use 127\.0\.0\.1 only"):
        socket.create_connection(("192.0.2.1", 80), timeout=1)
    with pytest.raises(RuntimeError, match=r"tests use 127\.0\.0\.1 only"):
        socket.getaddrinfo("example.com", 443)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp, pytest.raises(RuntimeError, match="sendto"):
        udp.sendto(b"", ("192.0.2.1", 53))


def test_this_host_can_be_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
        socket.create_connection((host, port), timeout=5).close()
        assert socket.getaddrinfo("localhost", port)


def test_an_aws_client_that_was_given_no_endpoint_fails_at_once() -> None:
    with pytest.raises(Exception, match=r"tests use 127\.0\.0\.1 only"):
        boto3.client("sts").get_caller_identity()


def test_what_holds_for_every_test_holds_here(request: pytest.FixtureRequest) -> None:
    """A folder's fixtures are bound to its node, which tests/run has to keep from one file to the next."""
    assert "_states_are_consistent" in request.fixturenames


def test_no_credentials_but_invented_ones_are_known() -> None:
    assert boto3.Session().get_credentials().access_key == "testing"
    assert "AWS_PROFILE" not in os.environ
    assert "ARGOSY_STAGE" not in os.environ

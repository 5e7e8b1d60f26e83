"""Who may call local mode: what its key has signed, however a client of AWS signs it, and nothing else."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import quote, urlsplit

import boto3
import pytest
import requests
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st

from argosy.client.errors import from_aws
from argosy.client.local_key import LocalKey
from argosy.local.clients import LocalClients
from argosy.local.server.signatures import SKEW_S, BadSignature, Signatures
from argosy.loopback.server import RequestHeaders
from tests.fakes.serving import SIGNATURES, front, moto_clients
from tests.fakes.signing import KEY, signed

ADDRESS = "http://127.0.0.1:4566"
OTHER = LocalKey(KEY.id, "another-secret", KEY.region)


def environ_of(method: str, url: str, headers: dict[str, str], body: bytes = b"") -> dict[str, Any]:
    """As the server makes it of a request."""
    parts, given = urlsplit(url), {}
    for name, value in {"Host": parts.netloc, **headers}.items():
        given[name.lower()] = [value]
    target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
    made = {
        "REQUEST_METHOD": method,
        "RAW_URI": target,
        "QUERY_STRING": parts.query,
        "argosy.headers": RequestHeaders(given),
    }
    made |= {f"HTTP_{name.upper().replace('-', '_')}": value for name, [value] in given.items()}
    return {**made, "wsgi.input": io.BytesIO(body)}


def why_not(environ: dict[str, Any], signatures: Signatures = SIGNATURES) -> str:
    """The code of the refusal; empty if there is none."""
    try:
        signatures.check(environ)
    except BadSignature as fault:
        return fault.code
    return ""


TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=12)
WORDS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=8)


@given(
    st.sampled_from(["s3", "lambda", "ec2"]),
    st.lists(TEXTS, max_size=4),
    st.lists(st.tuples(TEXTS, TEXTS), max_size=4),
    st.lists(WORDS, max_size=3),
    st.binary(max_size=40),
)
def test_what_botocore_signs_is_accepted_and_what_differs_in_a_byte_is_not(
    service: str, path: list[str], query: list[tuple[str, str]], values: list[str], body: bytes
) -> None:
    """botocore is the oracle: paths with dots and slashes, equal names, spaces within values, bodies."""
    url = ADDRESS + "/" + "/".join(quote(each, safe="-._~") for each in path)
    url += "?" + "&".join(f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}" for name, value in query)
    given = {"X-Amz-Meta-my_key": "  ".join(values)} if values else {}
    headers = signed("POST", url, service, body, given)
    assert why_not(environ_of("POST", url, headers, body)) == ""
    assert why_not(environ_of("POST", url, headers, body + b"!")) == "InvalidSignatureException"
    assert why_not(environ_of("DELETE", url, headers, body)) == "InvalidSignatureException"
    assert why_not(environ_of("POST", f"{url}&x=1", headers, body)) == "InvalidSignatureException"
    forged = headers["Authorization"][:-1] + ("0" if headers["Authorization"][-1] != "0" else "1")
    changed = {**headers, "Authorization": forged}
    assert why_not(environ_of("POST", url, changed, body)) == "InvalidSignatureException"


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, "MissingAuthenticationTokenException"),
        ({"Authorization": "Basic YTpi"}, "MissingAuthenticationTokenException"),
        ({"Authorization": "AWS testing:c2lnbmF0dXJl"}, "IncompleteSignatureException"),
        ({"Authorization": "AWS4-ECDSA-P256-SHA256 Credential=a"}, "IncompleteSignatureException"),
        (signed("POST", ADDRESS, "sts", key=OTHER), "InvalidSignatureException"),
        (signed("POST", ADDRESS, "sts", key=LocalKey("AKIDSTRANGER", "s")), "UnrecognizedClientException"),
    ],
)
def test_a_caller_without_the_key_is_refused(headers: dict[str, str], code: str) -> None:
    assert why_not(environ_of("POST", f"{ADDRESS}/", headers)) == code


@pytest.mark.parametrize(
    ("changed", "to"),
    [
        ("/us-east-1/", "/eu-west-1/"), ("/sts/", "/ecs/"), ("aws4_request", "aws5_request"), ("host;", ""),
        ("Credential=testing/", "Credential=testing/2020"),
    ],
)  # fmt: skip
def test_no_part_of_a_signature_can_be_changed(changed: str, to: str) -> None:
    headers = signed("POST", f"{ADDRESS}/", "sts")
    assert changed in headers["Authorization"]
    headers["Authorization"] = headers["Authorization"].replace(changed, to)
    assert why_not(environ_of("POST", f"{ADDRESS}/", headers))


@pytest.mark.parametrize(("late_s", "accepted"), [(0, True), (SKEW_S - 2, True), (SKEW_S + 2, False), (-1000, False)])
def test_a_request_is_served_in_its_time_only_and_the_refusal_names_both_times(late_s: float, accepted: bool) -> None:
    then = Signatures({KEY.id: KEY.secret}.get, lambda: time.time() + late_s)
    environ = environ_of("POST", f"{ADDRESS}/", signed("POST", f"{ADDRESS}/", "sts"))
    assert why_not(environ, then) == ("" if accepted else "RequestTimeTooSkewed")
    if not accepted:
        with pytest.raises(BadSignature, match=r"signed at \d{8}T\d{6}Z for 900 s, and this machine's clock says \d"):
            then.check(environ)


@pytest.mark.parametrize("date", ["", "yesterday"])
def test_a_request_without_a_date_is_refused(date: str) -> None:
    headers = {**signed("POST", f"{ADDRESS}/", "sts"), "X-Amz-Date": date}
    assert why_not(environ_of("POST", f"{ADDRESS}/", headers)) == "IncompleteSignatureException"


@pytest.mark.parametrize(
    "payload", ["UNSIGNED-PAYLOAD", "STREAMING-UNSIGNED-PAYLOAD-TRAILER", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"]
)
def test_a_client_may_leave_the_body_out_of_the_signature(payload: str) -> None:
    url, given = f"{ADDRESS}/bucket/key", {"X-Amz-Content-SHA256": payload}
    request = AWSRequest(method="PUT", url=url, headers=given)
    SigV4Auth(Credentials(KEY.id, KEY.secret), "s3", "us-east-1").add_auth(request)
    assert why_not(environ_of("PUT", url, dict(request.headers.items()), b"5;chunk-signature=0\r\nhello")) == ""


@pytest.fixture(scope="module")
def served() -> Any:
    with moto_clients() as clients:
        clients("s3").create_bucket(Bucket="bucket")
        yield clients


def s3_of(clients: LocalClients, key: LocalKey = KEY, **config: Any) -> Any:
    made = Config(proxies={}, retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}, **config)
    session = boto3.Session(key.id, key.secret, region_name="us-east-1")
    return session.client("s3", endpoint_url=clients.endpoint, config=made)


@pytest.mark.slow
@pytest.mark.parametrize("version", ["s3", "s3v4", None])
@pytest.mark.parametrize("name", ["key", "a b/c+d=e&f/é~", "x//y"])
def test_presigned_addresses_of_both_versions_work_until_they_expire(
    served: LocalClients, version: str | None, name: str
) -> None:
    client = s3_of(served, **({"signature_version": version} if version else {}))
    place = {"Bucket": "bucket", "Key": name}
    put = client.generate_presigned_url("put_object", Params=place, ExpiresIn=60)
    assert requests.put(put, data=b"body", timeout=60).status_code == 200
    get = client.generate_presigned_url("get_object", Params={**place, "ResponseContentType": "text/x"}, ExpiresIn=60)
    assert requests.get(get, timeout=60).content == b"body"
    past = client.generate_presigned_url("get_object", Params=place, ExpiresIn=-2)
    forged = s3_of(served, OTHER, signature_version=version or "s3").generate_presigned_url("get_object", place)
    assert [requests.get(each, timeout=60).status_code for each in (past, forged)] == [403, 403]


@pytest.mark.slow
def test_uploads_of_every_form_arrive(served: LocalClients) -> None:
    """A checksum behind the body, signed parts, and metadata whose names have an underscore."""
    client = s3_of(served, request_checksum_calculation="when_supported")
    client.put_object(Bucket="bucket", Key="k", Body=io.BytesIO(b"x" * 100_000), ChecksumAlgorithm="SHA256")
    client.put_object(Bucket="bucket", Key="m", Body=b"y", Metadata={"my_key": "a  b"})
    upload = client.create_multipart_upload(Bucket="bucket", Key="parts")
    part = {"Bucket": "bucket", "Key": "parts", "UploadId": upload["UploadId"]}
    tag = client.upload_part(**part, PartNumber=1, Body=b"z" * 1000)["ETag"]
    client.complete_multipart_upload(**part, MultipartUpload={"Parts": [{"ETag": tag, "PartNumber": 1}]})
    sizes = [client.get_object(Bucket="bucket", Key=each)["ContentLength"] for each in ("k", "m", "parts")]
    assert sizes == [100_000, 1, 1000]


@pytest.mark.slow
def test_keys_that_iam_and_sts_give_out_are_known(served: LocalClients) -> None:
    """As on AWS: a program that assumes a role signs with that role's key."""
    from argosy.local.moto.app import secret_of_moto

    iam, role = served("iam"), "arn:aws:iam::123456789012:role/x"
    iam.create_user(UserName="u")
    of_user = iam.create_access_key(UserName="u")["AccessKey"]
    given = served("sts").assume_role(RoleArn=role, RoleSessionName="session")["Credentials"]
    for each in (of_user, given):
        assert secret_of_moto("123456789012", each["AccessKeyId"]) == each["SecretAccessKey"]
    assert secret_of_moto("123456789012", "AKIDSTRANGER") is None


CALLS: dict[str, Callable[[Any], Any]] = {
    "ssm": lambda client: client.get_parameter(Name="/argosy/deployment"),
    "lambda": lambda client: client.invoke(FunctionName="argosy-api"),
    "sts": lambda client: client.get_caller_identity(),
    "ec2": lambda client: client.describe_fleets(),
    "s3": lambda client: client.list_objects_v2(Bucket="bucket"),
}


@pytest.mark.slow
@pytest.mark.parametrize("service", CALLS)
@pytest.mark.parametrize("key", [OTHER, replace(KEY, id="AKIDSTRANGER")])
def test_every_client_of_aws_understands_the_refusal_and_argosy_says_what_to_type(service: str, key: LocalKey) -> None:
    with front() as clients:
        stranger = LocalClients(clients.endpoint, "us-east-1", key)
        with pytest.raises(ClientError) as refused:
            CALLS[service](stranger(service))
        stranger.close()
    code = refused.value.response["Error"]["Code"]
    assert code.startswith(("InvalidSignature", "SignatureDoesNotMatch", "Unrecognized", "InvalidAccessKeyId"))
    told = from_aws(refused.value)
    assert told.message.startswith("Local mode did not accept the access key")
    assert 'eval "$(argosy local env)"' in told.next_step

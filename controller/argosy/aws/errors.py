"""What does a failed AWS call mean for us? One table from error codes, and from what messages betray, to a class.

Codes alone will not do: throttling comes dressed as other errors (reliability.md row 6), and ECS says "not found" and
"may not" with ClientException. The patterns are therefore looked at before the codes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    NoCredentialsError,
    ParamValidationError,
    PartialCredentialsError,
)

AWS_ERRORS = (ClientError, BotoCoreError)  # what a call can raise because of what AWS, or the way to it, did
MESSAGE_LIMIT = 300  # characters kept of a message; long enough for a role's ARN and an action


class Kind(StrEnum):
    THROTTLED = "throttled"  # not executed: slower, then again
    ACCESS_DENIED = "access-denied"  # no repetition will help until somebody changes a policy
    INVALID = "invalid"  # no repetition of this request will help
    CAPACITY = "capacity"  # AWS has no room now, or our quota has none
    NOT_FOUND = "not-found"
    CONFLICT = "conflict"  # something else is there already, or is being changed
    IN_DOUBT = "in-doubt"  # the effect may have happened


@dataclass(frozen=True, slots=True)
class Fault:
    kind: Kind
    code: str
    message: str

    @property
    def text(self) -> str:
        return f"{self.code}: {self.message}" if self.message else self.code

    @property
    def lasting(self) -> bool:
        """True when asking again changes nothing."""
        return self.kind in (Kind.ACCESS_DENIED, Kind.INVALID)

    @property
    def passing(self) -> bool:
        """True when nothing is wrong with the request: an overload, a lost connection, an error of AWS's own."""
        return self.kind in (Kind.THROTTLED, Kind.IN_DOUBT)


_PATTERNS = (
    (
        re.compile(r"rate exceeded|too many requests|request limit exceeded|reduce your request rate", re.I),
        Kind.THROTTLED,
    ),
    (re.compile(r"security token .*expired|signature (not yet current|expired)", re.I), Kind.IN_DOUBT),
    (re.compile(r"not authorized to perform|unable to assume the role|access denied", re.I), Kind.ACCESS_DENIED),
    (re.compile(r"no container instances were found", re.I), Kind.CAPACITY),
    (re.compile(r"max spot instance count exceeded|do not have sufficient .*capacity", re.I), Kind.CAPACITY),
    # A definition that is gone or inactive will not come back: the run pins its revision.
    (re.compile(r"task ?definition (is inactive|not found|does not exist)", re.I), Kind.INVALID),
    (re.compile(r"unable to describe task ?definition|referenced (task|cluster) was not found", re.I), Kind.NOT_FOUND),
)

_CODES = {
    Kind.THROTTLED: """
        ThrottlingException Throttling ThrottledException RequestLimitExceeded RequestThrottled
        RequestThrottledException TooManyRequestsException ProvisionedThroughputExceededException SlowDown
        EC2ThrottledException PriorRequestNotComplete BandwidthLimitExceeded OverLimit""",
    Kind.ACCESS_DENIED: """
        AccessDeniedException AccessDenied UnauthorizedOperation AuthFailure NotAuthorized OptInRequired
        UnrecognizedClientException InvalidClientTokenId InvalidSignatureException SignatureDoesNotMatch
        MissingAuthenticationToken BlockedException AllAccessDisabled 403 KMS.AccessDeniedException""",
    Kind.CAPACITY: """
        InsufficientInstanceCapacity InsufficientHostCapacity InsufficientReservedInstanceCapacity
        InsufficientCapacity InsufficientFreeAddressesInSubnet UnfulfillableCapacity SpotMaxPriceTooLow
        MaxSpotInstanceCountExceeded InstanceLimitExceeded VcpuLimitExceeded LimitExceededException
        MaxSpotFleetRequestCountExceeded""",
    Kind.NOT_FOUND: """
        ResourceNotFoundException ClusterNotFoundException NoSuchKey NoSuchBucket NotFound 404 ParameterNotFound
        InvalidInstanceID.NotFound InvalidFleetId.NotFound InvalidFleetIds.NotFound QueueDoesNotExist
        AWS.SimpleQueueService.NonExistentQueue""",
    Kind.CONFLICT: """
        ConflictException ConditionalCheckFailedException TransactionConflictException TransactionCanceledException
        ResourceConflictException PreconditionFailed 412 ConditionalRequestConflict OperationAborted
        UpdateInProgressException ResourceInUseException ConcurrentModificationException FleetNotInModifiableState
        IdempotentParameterMismatch IncorrectInstanceState""",
    # Nothing was done, but neither is anything wrong with the request: credentials are renewed, clocks are set.
    Kind.IN_DOUBT: """
        ServerException InternalError InternalFailure InternalServerError InternalServiceError ServiceUnavailable
        ServiceUnavailableException Unavailable RequestTimeout RequestTimeoutException RequestExpired ExpiredToken
        ExpiredTokenException TransactionInProgressException""",
}
# What DynamoDB gives as the reason of a transaction that it cancelled for want of capacity.
_THROTTLED_TRANSACTION = {"ThrottlingError", "ProvisionedThroughputExceeded"}
KIND_OF_CODE = {code: kind for kind, codes in _CODES.items() for code in codes.split()}


def classify(error: BaseException) -> Fault:
    """What `error` means. What nobody foresaw is in doubt: the class that is never mistaken for a refusal."""
    if not isinstance(error, ClientError):
        return Fault(_kind_of_exception(error), type(error).__name__, str(error)[:MESSAGE_LIMIT])
    said = error.response.get("Error", {})
    code, message = str(said.get("Code", "")), str(said.get("Message", ""))
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") or 0)
    reasons = {str(reason.get("Code")) for reason in error.response.get("CancellationReasons") or ()}
    kind = Kind.THROTTLED if reasons & _THROTTLED_TRANSACTION else _kind_of_answer(code, message, status)
    return Fault(kind, code, message[:MESSAGE_LIMIT])


def _kind_of_exception(error: BaseException) -> Kind:
    if isinstance(error, ParamValidationError):
        return Kind.INVALID  # botocore itself refused to send it
    if isinstance(error, (NoCredentialsError, PartialCredentialsError)):
        return Kind.ACCESS_DENIED
    return Kind.IN_DOUBT


def _kind_of_answer(code: str, message: str, status: int) -> Kind:
    for pattern, kind in _PATTERNS:
        if pattern.search(message):
            return kind
    if code in KIND_OF_CODE:
        return KIND_OF_CODE[code]
    if code.endswith(".NotFound"):
        return Kind.NOT_FOUND  # EC2 names the kind of the thing before it
    return Kind.INVALID if 400 <= status < 500 else Kind.IN_DOUBT

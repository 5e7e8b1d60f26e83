"""The meaning of a failed AWS call: one table maps error codes, and phrases in messages, to a kind.

Codes alone are not enough: throttling hides behind other codes (reliability.md row 6), and ECS reports both "not found"
and "not authorized" as ClientException. So the patterns are tried before the codes.
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

AWS_ERRORS = (ClientError, BotoCoreError)  # what a call raises when AWS, or the connection to it, fails
MESSAGE_LIMIT = 400  # characters kept of a message; long enough for a role's ARN, an action, a fleet's ARN and a policy
_ENCODED = re.compile(r"\s*Encoded authorization failure message: \S*")  # hundreds of characters


class FailureKind(StrEnum):
    THROTTLED = "throttled"  # not executed: slow down and try again
    ACCESS_DENIED = "access-denied"  # until a policy is changed, or a change of one has spread
    INVALID = "invalid"  # the request is wrong, or the code is not known
    CAPACITY = "capacity"  # AWS has no capacity now, or the quota is used up
    NOT_FOUND = "not-found"
    CONFLICT = "conflict"  # it exists already, or is being changed
    IN_DOUBT = "in-doubt"  # the effect may have happened


@dataclass(frozen=True, slots=True)
class CallFailure:
    kind: FailureKind
    code: str
    message: str

    @property
    def text(self) -> str:
        return f"{self.code}: {self.message}" if self.message else self.code

    certain: bool = False  # AWS, or botocore, names a fault of the request itself

    @property
    def lasting(self) -> bool:
        """Whether AWS refuses. Unless it is `final`, AWS may accept minutes later: rights take time to spread, and ECS
        also reports passing faults as the client's."""
        return self.kind in (FailureKind.ACCESS_DENIED, FailureKind.INVALID)

    @property
    def final(self) -> bool:
        """Whether repeating this request changes nothing."""
        return self.certain and self.kind is FailureKind.INVALID

    @property
    def passing(self) -> bool:
        """Whether the request itself is sound: the cause is an overload, a lost connection, or a fault inside AWS."""
        return self.kind in (FailureKind.THROTTLED, FailureKind.IN_DOUBT)


# A deregistered revision stays so. For Argosy's own definition there is another one (`preparation.replaces`).
_DEFINITION_GONE = re.compile(r"task ?definition (is inactive|not found|does not exist)", re.I)
_FAULTY_VALUE = re.compile(r"invalid '[^']*' setting|should not be null or empty|unknown parameter", re.I)
_PATTERNS = (
    (
        re.compile(
            r"rate exceeded|too many requests|request limit exceeded|reduce your request rate|too many concurrent", re.I
        ),
        FailureKind.THROTTLED,
    ),
    (re.compile(r"security token .*expired|signature (not yet current|expired)", re.I), FailureKind.IN_DOUBT),
    (re.compile(r"not authorized to perform|unable to assume the role|access denied", re.I), FailureKind.ACCESS_DENIED),
    (re.compile(r"no container instances were found", re.I), FailureKind.CAPACITY),
    (re.compile(r"max spot instance count exceeded|do not have sufficient .*capacity", re.I), FailureKind.CAPACITY),
    (_DEFINITION_GONE, FailureKind.INVALID),
    (
        re.compile(r"unable to describe task ?definition|referenced (task|cluster) was not found", re.I),
        FailureKind.NOT_FOUND,
    ),
)

_CODES = {
    FailureKind.THROTTLED: """
        ThrottlingException Throttling ThrottledException RequestLimitExceeded RequestThrottled
        RequestThrottledException TooManyRequestsException ProvisionedThroughputExceededException SlowDown
        EC2ThrottledException PriorRequestNotComplete BandwidthLimitExceeded OverLimit KMSThrottlingException
        KMS.ThrottlingException ReplicatedWriteConflictException""",
    FailureKind.ACCESS_DENIED: """
        AccessDeniedException AccessDenied UnauthorizedOperation AuthFailure NotAuthorized OptInRequired
        UnrecognizedClientException InvalidClientTokenId InvalidSignatureException SignatureDoesNotMatch
        MissingAuthenticationToken BlockedException AllAccessDisabled 403 KMS.AccessDeniedException""",
    FailureKind.CAPACITY: """
        InsufficientInstanceCapacity InsufficientHostCapacity InsufficientReservedInstanceCapacity
        InsufficientCapacity InsufficientFreeAddressesInSubnet UnfulfillableCapacity SpotMaxPriceTooLow
        MaxSpotInstanceCountExceeded InstanceLimitExceeded VcpuLimitExceeded LimitExceededException
        MaxSpotFleetRequestCountExceeded ReservationCapacityExceeded""",
    FailureKind.NOT_FOUND: """
        ResourceNotFoundException ClusterNotFoundException NoSuchKey NoSuchBucket NotFound 404 ParameterNotFound
        InvalidInstanceID.NotFound InvalidFleetId.NotFound InvalidFleetIds.NotFound QueueDoesNotExist
        AWS.SimpleQueueService.NonExistentQueue""",
    FailureKind.CONFLICT: """
        ConflictException ConditionalCheckFailedException TransactionConflictException TransactionCanceledException
        ResourceConflictException PreconditionFailed 412 ConditionalRequestConflict OperationAborted
        UpdateInProgressException ResourceInUseException ConcurrentModificationException FleetNotInModifiableState
        IdempotentParameterMismatch IncorrectInstanceState IncorrectState ConcurrentTagAccess""",
    # With expired credentials or a wrong clock nothing was done: the same request works once that is corrected.
    FailureKind.IN_DOUBT: """
        ServerException InternalError InternalFailure InternalServerError InternalServiceError ServiceUnavailable
        ServiceUnavailableException Unavailable RequestTimeout RequestTimeoutException RequestExpired ExpiredToken
        ExpiredTokenException TransactionInProgressException RequestTimeTooSkewed""",
}
# Codes of the services' models for a request whose parameters are wrong: they stay wrong. ClientException is not among
# them: ECS says it of nearly everything.
_FAULTY_REQUEST = """
    InvalidParameterException InvalidParameterValue InvalidParameterCombination InvalidParameter MissingParameter
    ValidationException ValidationError SerializationException MalformedQueryString InvalidArgument InvalidBucketName
    EntityTooLarge KeyTooLongError UnsupportedFeatureException PlatformTaskDefinitionIncompatibilityException
    PlatformUnknownException InvalidAction UnknownOperationException"""
NO_CLUSTER = "ClusterNotFoundException"
FAULTY_REQUEST = frozenset(_FAULTY_REQUEST.split())
# The reasons that DynamoDB gives when it cancels a transaction because capacity is lacking.
_THROTTLED_TRANSACTION = {"ThrottlingError", "ProvisionedThroughputExceeded"}
KIND_OF_CODE = {code: kind for kind, codes in _CODES.items() for code in codes.split()}


def classify(error: BaseException) -> CallFailure:
    """The meaning of `error`. An unknown error is in doubt; it is never taken for a refusal."""
    if not isinstance(error, ClientError):
        unsent = isinstance(error, ParamValidationError)
        return CallFailure(_kind_of_exception(error), type(error).__name__, str(error)[:MESSAGE_LIMIT], unsent)
    said = error.response.get("Error", {})
    code, message = str(said.get("Code", "")), _ENCODED.sub("", str(said.get("Message", "")))
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") or 0)
    reasons = {str(reason.get("Code")) for reason in error.response.get("CancellationReasons") or ()}
    kind = FailureKind.THROTTLED if reasons & _THROTTLED_TRANSACTION else _kind_of_answer(code, message, status)
    certain = code in FAULTY_REQUEST or is_definition_gone(message) or bool(_FAULTY_VALUE.search(message))
    return CallFailure(kind, code, message[:MESSAGE_LIMIT], certain)


def is_definition_gone(message: str) -> bool:
    """Whether ECS refuses a task because its definition is deregistered or does not exist."""
    return bool(_DEFINITION_GONE.search(message))


def _kind_of_exception(error: BaseException) -> FailureKind:
    if isinstance(error, ParamValidationError):
        return FailureKind.INVALID  # botocore itself refused to send it
    if isinstance(error, (NoCredentialsError, PartialCredentialsError)):
        return FailureKind.ACCESS_DENIED
    return FailureKind.IN_DOUBT


def _kind_of_answer(code: str, message: str, status: int) -> FailureKind:
    for pattern, kind in _PATTERNS:
        if pattern.search(message):
            return kind
    if code in KIND_OF_CODE:
        return KIND_OF_CODE[code]
    if code.endswith(".NotFound"):
        return FailureKind.NOT_FOUND  # EC2 puts the kind of resource before it
    return FailureKind.INVALID if 400 <= status < 500 else FailureKind.IN_DOUBT

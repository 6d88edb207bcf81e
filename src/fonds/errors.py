"""Every error a user of fonds can meet, as one tree; retryability is in the type.

FondsError
├── UsageError                what was asked for makes no sense; exit code 2
│   ├── SettingsError         a setting is malformed or contradictory
│   │   └── MissingKeyError   an upstream wants a key that is not set
│   ├── UnknownSourceError    no source of that name is registered
│   ├── UnknownDocumentError  no document has that id or alias
│   ├── RecordError           a record that does not fit its index
│   ├── UploadRefusedError    a file, or a claim about one, that is not taken in
│   └── AddressRefusedError   a signed address that is not ours, or whose time is over
├── FetchError                asking an upstream
│   ├── RetryableFetchError   worth another try, now or in the next run
│   │   ├── RateLimitedError      429, or 503 with Retry-After
│   │   ├── UpstreamDownError     5xx
│   │   ├── ConnectionFailedError no answer, or the connection broke
│   │   ├── FetchTimeoutError     no byte within the time allowed
│   │   └── IncompleteBodyError   fewer bytes than announced
│   ├── NotFoundError         404, 410
│   ├── RefusedError          any other 4xx
│   ├── RobotsForbiddenError  not to be asked for, by the host's robots.txt
│   ├── TooLargeError         more bytes than the cap, before or after decompression
│   ├── ForbiddenAddressError a private, loopback or link-local address
│   ├── BadRedirectError      too many hops, or a scheme that is not HTTP
│   └── NotRecordedError      a replay was asked for an exchange it does not hold
├── ParseError                the bytes are not what the publisher promises
│   ├── MalformedError        broken XML, YAML, JSON, encoding
│   ├── WrongContentError     well-formed, but something else (an HTML apology)
│   ├── EncryptedError        locked with a password nobody gave us
│   ├── NoTextError           readable, but without a word: scanned, and no OCR at hand
│   └── DuplicateKeyError     one key, two different records
├── SuspiciousYieldError      zero, capped, repeated or shrunken results
├── EmbedError                asking a model for vectors
│   ├── RetryableEmbedError   worth another try: 429, 5xx, no answer in time
│   │   └── BreakerOpenError      the endpoint failed so often that it is left alone for a while
│   ├── BadVectorsError       too few, wrongly sized, or not finite
│   └── ModelMissingError     the model's files or package are not there
├── ParserError               asking an outside parser for the text of an upload
│   └── RetryableParserError  worth another try: 429, 5xx, no answer in time
├── GateError                 what a stage of an upload left behind is not plausible
├── WebhookError              a webhook that is not believed
├── ServerError               a `fonds serve` that does not answer, or refuses
├── StoreError                database and blobs
│   ├── BlobMissingError      no object under that key
│   ├── BlobExistsError       create-only write found an object
│   ├── BlobChangedError      compare-and-swap lost
│   ├── EditionChangedError   other bytes under a published stamp
│   ├── ShardError            a shard that is cut off, or holds what it should not
│   ├── BundleError           a bundle that is damaged, or no bundle at all
│   └── SchemaError           the database is older or newer than this program
├── EngineError               one item in a worker process; the others are not touched by it
│   ├── ItemTimeoutError      longer than its time limit
│   ├── ItemMemoryError       more memory than its limit
│   ├── WorkerDiedError       the worker ended before it answered
│   └── ItemFailedError       something else went wrong inside it
└── RunError                  runs and their coordination
    ├── SourceBusyError       another run of this source is going on
    ├── LeaseLostError        another process took over while we were working
    ├── BudgetSpentError      the next sub-request would pass the limit; go on in a new invocation
    └── UnitTooLargeError     a unit cannot be walked, or not executed, within any one budget
"""


class FondsError(Exception):
    """Anything fonds reports by itself; its text is fit for a user's eyes."""


class UsageError(FondsError):
    """What was asked for makes no sense."""


class SettingsError(UsageError):
    """A setting is malformed or contradictory."""


class MissingKeyError(SettingsError):
    """An upstream wants a key that is not set."""


class UnknownSourceError(UsageError):
    """No source of that name is registered."""


class UnknownDocumentError(UsageError):
    """No document has that id or alias."""


class RecordError(UsageError):
    """A record that does not fit its index."""


class UploadRefusedError(UsageError):
    """A file, or a claim about one, that is not taken in; `kind` is for programs."""

    def __init__(self, message: str, *, kind: str) -> None:
        super().__init__(message)
        self.kind = kind
        """`too-large`, `empty`, `type-unknown`, `type-mismatch`, `bad-hash`, `hash-mismatch`,
        `size-mismatch`, `not-there`, `bad-name`, `archive-bomb`."""


class AddressRefusedError(UsageError):
    """An address that we did not sign, or whose time is over; `kind` is for programs."""

    def __init__(self, message: str, *, kind: str) -> None:
        super().__init__(message)
        self.kind = kind
        """`bad-signature` or `expired`."""


class FetchError(FondsError):
    """Asking an upstream did not give what was asked for."""


class RetryableFetchError(FetchError):
    """Worth another try; `retry_after` is what the upstream asked for, in seconds."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class RateLimitedError(RetryableFetchError):
    """The upstream asks us to slow down."""


class UpstreamDownError(RetryableFetchError):
    """The upstream failed with a 5xx."""


class ConnectionFailedError(RetryableFetchError):
    """No connection, or it broke."""

    was_open = True
    """False where there never was a connection, and so nothing was sent."""


class FetchTimeoutError(RetryableFetchError):
    """No byte arrived within the time allowed."""


class IncompleteBodyError(RetryableFetchError):
    """The body ended before the announced length."""


class NotFoundError(FetchError):
    """The upstream has no such thing (404, 410)."""


class RefusedError(FetchError):
    """The upstream answered any other 4xx."""


class RobotsForbiddenError(FetchError):
    """A host's robots.txt says that this is not to be asked for."""


class TooLargeError(FetchError):
    """More bytes than the cap, before or after decompression."""


class ForbiddenAddressError(FetchError):
    """A private, loopback or link-local address."""


class BadRedirectError(FetchError):
    """Too many hops, or a hop to something that is not HTTP."""


class NotRecordedError(FetchError):
    """A replay was asked for an exchange its recording does not hold."""


class ParseError(FondsError):
    """The bytes are not what the publisher promises."""


class MalformedError(ParseError):
    """Broken XML, YAML, JSON or encoding."""


class WrongContentError(ParseError):
    """Well-formed, but not the thing that was asked for."""


class EncryptedError(ParseError):
    """Locked with a password nobody gave us."""


class NoTextError(ParseError):
    """Readable, but without a word: scanned pages and no OCR at hand, or blank ones."""


class DuplicateKeyError(ParseError):
    """One key stands for two different records of one input."""


class SuspiciousYieldError(FondsError):
    """Zero, capped, repeated or shrunken results: reported, never recorded as success."""


class EmbedError(FondsError):
    """A model could not make vectors of texts."""


class RetryableEmbedError(EmbedError):
    """Worth another try: 429, 5xx, no answer in time."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds the endpoint asked us to wait."""


class BreakerOpenError(RetryableEmbedError):
    """The endpoint failed so often that it is left alone for a while."""


class BadVectorsError(EmbedError):
    """Too few vectors, wrongly sized ones, or some that are not finite."""


class ModelMissingError(EmbedError):
    """The model's files or package are not there."""


class ParserError(FondsError):
    """An outside parser refused a file, or its answer makes no sense."""


class RetryableParserError(ParserError):
    """Worth another try: 429, 5xx, no answer in time."""


class GateError(FondsError):
    """What a stage of an upload left behind is not plausible, or not whole."""


class WebhookError(FondsError):
    """A webhook that is not believed; `kind` is for programs."""

    def __init__(self, message: str, *, kind: str) -> None:
        super().__init__(message)
        self.kind = kind
        """`unsigned`, `bad-signature`, `stale`, `replayed`, `malformed`, `hash-mismatch`,
        `unknown-job`."""


class ServerError(FondsError):
    """A `fonds serve` does not answer, or refuses; the text is its own."""


class StoreError(FondsError):
    """The database or the blob store refused."""


class BlobMissingError(StoreError):
    """No object is stored under that key."""


class BlobExistsError(StoreError):
    """A create-only write found an object under its key."""


class BlobChangedError(StoreError):
    """A compare-and-swap found another version than the one expected."""


class EditionChangedError(StoreError):
    """Other bytes under a stamp the publisher calls immutable."""


class ShardError(StoreError):
    """A shard that is cut off, or holds what it should not."""


class BundleError(StoreError):
    """A bundle that is damaged, or no bundle at all."""


class SchemaError(StoreError):
    """The database is older or newer than this program."""


class EngineError(FondsError):
    """An item could not be worked on; the others are not touched by it."""


class ItemTimeoutError(EngineError):
    """The item took longer than its time limit; its worker was ended."""


class ItemMemoryError(EngineError):
    """The item needed more memory than its limit."""


class WorkerDiedError(EngineError):
    """The worker ended before it answered: killed, or crashed in native code."""


class ItemFailedError(EngineError):
    """The function raised something that is no error of fonds, or that cannot be sent back."""


class RunError(FondsError):
    """A run could not be started, or lost its claim."""


class SourceBusyError(RunError):
    """Another run of this source is going on."""


class LeaseLostError(RunError):
    """Another process took over while this one was working."""


class BudgetSpentError(RunError):
    """The next sub-request, or batch, would pass a limit; the next invocation goes on from here."""


class UnitTooLargeError(RunError):
    """One invocation is not enough for a step that cannot be divided."""

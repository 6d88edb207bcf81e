"""All errors that users of fonds can meet, as one tree; the type tells whether to retry.

FondsError
├── UsageError                the request is invalid; exit code 2
│   ├── SettingsError         a setting is malformed or contradictory
│   │   └── MissingKeyError   a publisher requires a key that is not set
│   ├── MissingLibraryError   a library is to be read, and there is none
│   ├── UnknownSourceError    no source of this name is registered
│   ├── UnknownDocumentError  no document has this id or alias
│   ├── RecordError           a record does not match the schema of its index
│   ├── UploadRefusedError    a file, or its announcement, was rejected
│   └── AddressRefusedError   a signed address is invalid or expired
├── FetchError                a request to a publisher failed
│   ├── RetryableFetchError   may succeed later, in this run or the next
│   │   ├── RateLimitedError      429, or 503 with Retry-After
│   │   ├── UpstreamDownError     5xx
│   │   ├── ConnectionFailedError no connection, or it was lost
│   │   ├── FetchTimeoutError     no byte within the time limit
│   │   └── IncompleteBodyError   fewer bytes than announced
│   ├── NotFoundError         404, 410
│   ├── RefusedError          any other 4xx
│   ├── RobotsForbiddenError  the robots.txt of the host forbids the request
│   ├── TooLargeError         more bytes than allowed, before or after decompression
│   ├── ForbiddenAddressError a private, loopback or link-local address
│   ├── BadRedirectError      too many redirects, or one to another scheme than HTTP
│   └── NotRecordedError      a replay needs an exchange that the recording lacks
├── ParseError                the content is not what the publisher promises
│   ├── MalformedError        invalid XML, YAML, JSON or encoding
│   ├── WrongContentError     valid, but something else (such as an HTML error page)
│   ├── EncryptedError        protected by an unknown password
│   ├── NoTextError           no text: scanned pages without OCR, or blank pages
│   └── DuplicateKeyError     two different records with the same key
├── SuspiciousYieldError      a listing is empty, capped, repeated or shrank sharply
├── EmbedError                texts could not be embedded
│   ├── RetryableEmbedError   may succeed later: 429, 5xx, timeout
│   │   └── BreakerOpenError      requests are paused after repeated failures of the endpoint
│   ├── EndpointRefusedError  will not be accepted later: a wrong key, a quota that is used up
│   ├── BadVectorsError       too few vectors, wrong dimensions, or values that are not finite
│   └── ModelMissingError     the files or the package of the model are missing
├── ParserError               an external parser failed for an upload
│   └── RetryableParserError  may succeed later: 429, 5xx, timeout
├── GateError                 the result of an upload stage is missing or implausible
├── WebhookError              a webhook was rejected
├── ServerError               a `fonds serve` does not respond, or rejects a request
├── PluginError               a plugin of an installed package cannot be loaded
├── StoreError                a database or blob store operation failed
│   ├── StoreUnavailableError  nothing can be stored now, whatever it is; may succeed later
│   │   ├── StoreFullError        no space is left
│   │   └── DatabaseUnavailableError  the database does not respond
│   │       └── ConnectionLostError   in a transaction, of which nothing was stored
│   ├── BlobMissingError      no object has this key
│   ├── BlobExistsError       an object with this key already exists
│   ├── BlobChangedError      an object changed since it was read
│   ├── EditionChangedError   a published edition has other content than before
│   ├── ShardError            a shard is truncated or contains invalid records
│   ├── BundleError           a bundle is damaged, or is not a bundle
│   ├── SchemaError           the database schema is older or newer than this program
│   └── LibraryBusyError      a library cannot be replaced, or opened, while others have it
├── EngineError               one item failed in a worker process; others are unaffected
│   ├── ItemTimeoutError      the item exceeded its time limit
│   ├── ItemMemoryError       the item exceeded its memory limit
│   ├── WorkerDiedError       the worker process ended before it returned a result
│   └── ItemFailedError       any other failure in the worker
└── RunError                  a run could not start or continue
    ├── SourceBusyError       another run of this source is in progress
    ├── LeaseLostError        another process took over the work
    ├── BudgetSpentError      the next request would exceed the budget of the invocation
    └── UnitTooLargeError     one step of a unit needs more than the budget of an invocation
"""


class FondsError(Exception):
    """Base of all errors that fonds raises on purpose; the message is for users."""


class UsageError(FondsError):
    """The request is invalid; change the arguments."""


class SettingsError(UsageError):
    """A setting is malformed or contradictory."""


class MissingKeyError(SettingsError):
    """A publisher requires a key that is not set."""


class MissingLibraryError(UsageError):
    """A library is to be read, and there is none; nothing was created."""


class UnknownSourceError(UsageError):
    """No source of this name is registered."""


class UnknownDocumentError(UsageError):
    """No document has this id or alias."""


class RecordError(UsageError):
    """A record does not match the schema of its index."""


class UploadRefusedError(UsageError):
    """A file, or its announcement, was rejected; `kind` is for programs."""

    def __init__(self, message: str, *, kind: str) -> None:
        super().__init__(message)
        self.kind = kind
        """`too-large`, `empty`, `type-unknown`, `type-mismatch`, `bad-hash`, `hash-mismatch`,
        `size-mismatch`, `not-there`, `bad-name`, `archive-bomb`."""


class AddressRefusedError(UsageError):
    """A signed address is invalid or expired; `kind` is for programs."""

    def __init__(self, message: str, *, kind: str) -> None:
        super().__init__(message)
        self.kind = kind
        """`bad-signature` or `expired`."""


class FetchError(FondsError):
    """A request to a publisher failed."""


class RetryableFetchError(FetchError):
    """May succeed later; `retry_after` has the seconds that the publisher asked to wait."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class RateLimitedError(RetryableFetchError):
    """The publisher limits the request rate (429, or 503 with Retry-After)."""


class UpstreamDownError(RetryableFetchError):
    """The publisher responded with a 5xx status."""


class ConnectionFailedError(RetryableFetchError):
    """No connection, or it was lost."""

    was_open = True
    """False if no connection was made, so that nothing was sent."""


class FetchTimeoutError(RetryableFetchError):
    """No byte arrived within the time limit."""


class IncompleteBodyError(RetryableFetchError):
    """The response ended before the announced length."""


class NotFoundError(FetchError):
    """The publisher does not have it (404, 410)."""


class RefusedError(FetchError):
    """The publisher responded with another 4xx status."""


class RobotsForbiddenError(FetchError):
    """The robots.txt of the host forbids the request."""


class TooLargeError(FetchError):
    """More bytes than allowed, before or after decompression."""


class ForbiddenAddressError(FetchError):
    """A private, loopback or link-local address."""


class BadRedirectError(FetchError):
    """Too many redirects, or one to another scheme than HTTP."""


class NotRecordedError(FetchError):
    """A replay needs an exchange that the recording lacks."""


class ParseError(FondsError):
    """The content is not what the publisher promises."""


class MalformedError(ParseError):
    """Invalid XML, YAML, JSON or encoding."""


class WrongContentError(ParseError):
    """Valid, but not the requested content."""


class EncryptedError(ParseError):
    """Protected by an unknown password."""


class NoTextError(ParseError):
    """No text: scanned pages without OCR, or blank pages."""


class DuplicateKeyError(ParseError):
    """Two different records of one input have the same key."""


class SuspiciousYieldError(FondsError):
    """A listing is empty, capped, repeated or shrank sharply, so the run is not a success."""


class EmbedError(FondsError):
    """A model could not embed texts."""


class RetryableEmbedError(EmbedError):
    """May succeed later: 429, 5xx, timeout."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """The wait time that the endpoint requested, in seconds."""


class BreakerOpenError(RetryableEmbedError):
    """Requests to the endpoint are paused after repeated failures."""


class EndpointRefusedError(EmbedError):
    """A request that will not be accepted later: a wrong key, a quota that is used up."""


class BadVectorsError(EmbedError):
    """Too few vectors, wrong dimensions, or values that are not finite."""


class ModelMissingError(EmbedError):
    """The files or the package of the model are missing."""


class ParserError(FondsError):
    """An external parser rejected a file, or returned an invalid result."""


class RetryableParserError(ParserError):
    """May succeed later: 429, 5xx, timeout."""


class GateError(FondsError):
    """The result of an upload stage is missing, incomplete or implausible."""


class WebhookError(FondsError):
    """A webhook was rejected; `kind` is for programs."""

    def __init__(self, message: str, *, kind: str) -> None:
        super().__init__(message)
        self.kind = kind
        """`unsigned`, `bad-signature`, `stale`, `replayed`, `malformed`, `hash-mismatch`,
        `unknown-job`."""


class ServerError(FondsError):
    """A `fonds serve` does not respond, or rejects a request; the message is its own."""


class PluginError(FondsError):
    """A plugin of an installed package cannot be loaded; the message names both."""


class StoreError(FondsError):
    """A database or blob store operation failed."""


class StoreUnavailableError(StoreError):
    """The database or the blob store does not respond, or is full: no fault of what is stored."""


class StoreFullError(StoreUnavailableError):
    """No space is left for another blob."""


class DatabaseUnavailableError(StoreUnavailableError):
    """The database does not respond."""


class ConnectionLostError(DatabaseUnavailableError):
    """The connection was lost in a transaction, of which nothing was stored; it may be repeated."""


class BlobMissingError(StoreError):
    """No object has this key."""


class BlobExistsError(StoreError):
    """An object with this key already exists."""


class BlobChangedError(StoreError):
    """An object changed since it was read."""


class EditionChangedError(StoreError):
    """A published edition, which should be immutable, has other content than before."""


class ShardError(StoreError):
    """A shard is truncated or contains invalid records."""


class BundleError(StoreError):
    """A bundle is damaged, or is not a bundle."""


class SchemaError(StoreError):
    """The database schema is older or newer than this program."""


class LibraryBusyError(StoreError):
    """A library is to be replaced while it is in use, or to be opened while it is replaced."""


class EngineError(FondsError):
    """One item failed in a worker process; the others are unaffected."""


class ItemTimeoutError(EngineError):
    """The item exceeded its time limit, and its worker was killed."""


class ItemMemoryError(EngineError):
    """The item exceeded its memory limit."""


class WorkerDiedError(EngineError):
    """The worker process was killed or crashed before it returned a result."""


class ItemFailedError(EngineError):
    """The function raised an error outside of fonds, or one that cannot be serialized."""


class RunError(FondsError):
    """A run could not start or continue."""


class SourceBusyError(RunError):
    """Another run of this source is in progress."""


class LeaseLostError(RunError):
    """Another process took over the work."""


class BudgetSpentError(RunError):
    """The next request would exceed the budget; the next invocation continues from here."""


class UnitTooLargeError(RunError):
    """One step that cannot be divided needs more than the budget of an invocation."""
